//! A running load point: its current figures and its history, second by second.

use plimsoll_model::assignment::Phases;
use plimsoll_model::event::Phase;
use plimsoll_model::suite::Metric;
use plimsoll_model::units::{BytesPerSec, grouped};
use plimsoll_run::observers::SecondView;

use super::Style;
use super::point_line::{lengths, time, warm_up};

/// Seconds that are kept: more than any terminal has columns.
const SECONDS_MAX: usize = 512;
const LABEL_COLUMNS: usize = 34;
/// Share of a core from which the generator's load is marked as a problem.
const BUSY_WORRY: f64 = 0.9;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The seconds of one load point so far.
pub(crate) struct LiveView {
    title: String,
    /// Length of warm-up and measurement; empty if unknown.
    lengths: String,
    /// What replaces the time left of a point that ends after a number of ops.
    pub ops: Option<String>,
    metric: Metric,
    seconds: Vec<SecondView>,
    errors: u64,
}

impl LiveView {
    pub(crate) fn new(title: &str, metric: Metric) -> Self {
        let (title, lengths) = (title.to_owned(), String::new());
        Self { title, lengths, ops: None, metric, seconds: Vec::new(), errors: 0 }
    }

    /// Adds the length of its phases.
    pub(crate) fn of_lengths(self, phases: &Phases) -> Self {
        let lengths = match phases.ops {
            // The time left is shown elsewhere.
            Some(_) => warm_up(phases).map_or(String::new(), |text| format!(", {text}")),
            None => format!(", {}", lengths(phases)),
        };
        let ops = phases.ops.map(|ops| format!("{} ops in all", grouped(ops as f64)));
        Self { lengths, ops, ..self }
    }

    pub(crate) fn add_second(&mut self, last: &SecondView) {
        self.errors += last.errors;
        self.seconds.push(*last);
        if self.seconds.len() > SECONDS_MAX {
            self.seconds.remove(0);
        }
    }

    /// Lines of at most `columns`; `left` is the remaining time.
    pub(crate) fn lines(&self, left: &str, columns: usize, style: Style) -> Vec<String> {
        let Some(last) = self.seconds.last() else {
            let text = format!("{}{}, {left}: begins", self.title, self.lengths);
            return vec![cut(&text, columns)];
        };
        let phase = match last.phase {
            Phase::WarmUp if self.lengths.is_empty() => ", warm-up",
            Phase::WarmUp => &self.lengths,
            Phase::Measure => ", measuring",
            Phase::Drain => ", draining",
        };
        let noun = if self.errors == 1 { "error" } else { "errors" };
        let errors = format!("{} {noun}", grouped(self.errors as f64));
        let errors = if self.errors > 0 { style.bad(&errors) } else { errors };
        let busy = format!("generator {:.0} % busy", last.generator_busy_ratio * 100.0);
        let is_worry = last.generator_busy_ratio > BUSY_WORRY;
        let busy = if is_worry { style.mixed(&busy) } else { busy };
        let (rate, rates): (String, fn(&SecondView) -> f64) = match self.metric {
            Metric::Bytes => (BytesPerSec(last.bytes_per_s).to_string(), |s| s.bytes_per_s),
            Metric::Ops | Metric::Logons if last.chunks_per_s > 0.0 => {
                let [ops, chunks] = [last.ops_per_s, last.chunks_per_s.round()].map(grouped);
                (format!("{ops}/s, {chunks} chunks/s"), |s| s.chunks_per_s)
            }
            Metric::Ops | Metric::Logons => {
                (format!("{}/s", grouped(last.ops_per_s)), |s| s.ops_per_s)
            }
        };
        let times =
            format!("p50 {}  p99 {}", time(last.response_p50_ns), time(last.response_p99_ns));
        let p99 = |second: &SecondView| second.response_p99_ns.unwrap_or_default() as f64;
        vec![
            cut(&format!("{}{phase}, {left}", self.title), columns),
            format!("  {errors}  {busy}"),
            self.picture(&format!("throughput {rate}"), rates, columns),
            self.picture(&times, p99, columns),
        ]
    }

    /// The last seconds that fit, as bars from zero.
    fn picture(&self, label: &str, value: impl Fn(&SecondView) -> f64, columns: usize) -> String {
        let label = format!("  {label:<width$} ", width = LABEL_COLUMNS - 3);
        let room = columns.saturating_sub(label.chars().count());
        let from = self.seconds.len().saturating_sub(room);
        let values: Vec<f64> = self.seconds[from..].iter().map(value).collect();
        let most = values.iter().copied().fold(0.0, f64::max);
        cut(&values.into_iter().fold(label, |line, value| line + &bar(value, most)), columns)
    }
}

fn bar(value: f64, most: f64) -> String {
    let height = if most > 0.0 { value / most * BARS.len() as f64 } else { 0.0 };
    match height.ceil() as usize {
        0 => " ".to_owned(),
        height => BARS[height.min(BARS.len()) - 1].to_string(),
    }
}

/// The part of a line that fits.
pub(super) fn cut(text: &str, columns: usize) -> String {
    text.chars().take(columns).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_model::units::Nanos;

    use super::*;

    fn second(ops_per_s: f64, errors: u64) -> SecondView {
        SecondView {
            second: 0,
            phase: Phase::Measure,
            start_unix_ns: 0,
            end_unix_ns: 0,
            ops_per_s,
            bytes_per_s: 0.0,
            chunks_per_s: 0.0,
            errors,
            response_p50_ns: Some(1_210_000),
            response_p99_ns: Some(4_860_000),
            generator_busy_ratio: 0.52,
        }
    }

    #[test]
    fn lines_are_cut_between_characters() {
        assert_eq!(cut("µµµµµ", 3), "µµµ");
        assert_eq!(cut("ab", 79), "ab");
    }

    #[test]
    fn the_lengths_of_warm_up_and_measurement_are_told_until_they_are_over() {
        let phases = Phases {
            warm_up_ns: Nanos::from_secs(5),
            measure_ns: Nanos::from_secs(30),
            ramp_down_ns: Nanos::ZERO,
            drain_ns: Nanos::ZERO,
            ops: None,
        };
        let first = |view: &LiveView| view.lines("36 s left", 79, Style::new(false)).swap_remove(0);
        let title = "point 1/1, 64 clients";
        let mut view = LiveView::new(title, Metric::Ops).of_lengths(&phases);
        let heading = format!("{title}, 5 s warm-up + 30 s, 36 s left");
        assert_eq!(first(&view), format!("{heading}: begins"));
        view.add_second(&SecondView { phase: Phase::WarmUp, ..second(1.0, 0) });
        assert_eq!(first(&view), heading);
        view.add_second(&second(1.0, 0));
        assert_eq!(first(&view), format!("{title}, measuring, 36 s left"));
        let counted = Phases { ops: Some(9), warm_up_ns: Nanos::ZERO, ..phases };
        let view = LiveView::new(title, Metric::Ops).of_lengths(&counted);
        assert_eq!(first(&view), format!("{title}, 36 s left: begins"));
    }

    #[test]
    fn a_point_is_drawn_second_by_second_and_fits_the_screen() {
        let mut view = LiveView::new("point 3/10, 2,000 ops/s", Metric::Ops);
        assert_eq!(
            view.lines("4 min left", 79, Style::new(false)),
            ["point 3/10, 2,000 ops/s, 4 min left: begins"]
        );
        for n in 0..200 {
            view.add_second(&second(f64::from(n % 9) * 250.0, u64::from(n == 7)));
        }
        let lines = view.lines("4 min left", 79, Style::new(false));
        assert_eq!(lines[0], "point 3/10, 2,000 ops/s, measuring, 4 min left");
        assert_eq!(lines[1], "  1 error  generator 52 % busy");
        assert!(lines[2].starts_with("  throughput 250/s  "), "{}", lines[2]);
        assert!(lines[2].ends_with("▁▂▃▄▅▆▇█ ▁"), "{}", lines[2]);
        assert!(lines[3].starts_with("  p50 1.21 ms  p99 4.86 ms  "), "{}", lines[3]);
        for columns in [10, 40, 79, 119] {
            let lines = view.lines("4 min left", columns, Style::new(false));
            let longest = lines.iter().map(|line| line.chars().count()).max();
            assert!(longest <= Some(columns.max(31)), "{columns}: {lines:?}");
        }
    }
}
