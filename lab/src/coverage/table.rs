//! The table: how often the uncertainty intervals contained the truth, and how wide they were.

use std::fmt::Write as _;

use super::REAL_UTILISATIONS;
use super::outcome::{Outcome, PERCENTILES, ReportedInterval, Truths};
use crate::bench::median;

/// The whole of it, with a line for all.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut out = String::from(
        "| utilisation | host | runs (valid) | truth p50, p95, p99 | held p50 | held p95 | \
         held p99 | width of p50, p95, p99 | generator's part of p50, p99 |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut all = Vec::new();
    for utilisation in REAL_UTILISATIONS {
        let of_utilisation: Vec<&Outcome> =
            outcomes.iter().filter(|outcome| outcome.utilisation == utilisation).collect();
        let truths = truths_ns(&of_utilisation);
        for disturbed in [false, true] {
            let runs: Vec<&Outcome> =
                of_utilisation.iter().copied().filter(|it| it.disturbed == disturbed).collect();
            row(&mut out, (utilisation, disturbed), &runs, truths);
        }
        all.extend(of_utilisation.iter().map(|outcome| (*outcome, truths)));
    }
    let _ = writeln!(out, "\nOf all {} runs: {}.", all.len(), overall_coverage(&all));
    out
}

/// Truth by percentile, of the quiet runs among these.
fn truths_ns(runs: &[&Outcome]) -> [Option<f64>; 3] {
    let mut pooled = Truths::default();
    runs.iter().filter(|outcome| !outcome.disturbed).for_each(|o| pooled.add(&o.truths));
    PERCENTILES.map(|(_, share)| pooled.percentile_ns(share))
}

fn row(
    out: &mut String,
    (utilisation, disturbed): (f64, bool),
    runs: &[&Outcome],
    truths: [Option<f64>; 3],
) {
    let intervals = |index: usize| runs.iter().filter_map(move |o| o.intervals[index]);
    let coverage = |index: usize| {
        let (covered, of) = count_covering(intervals(index), truths[index]);
        format!("{covered} of {of}")
    };
    let percent = |ratios: Vec<f64>| {
        median(&ratios).map_or_else(|| "–".to_owned(), |ratio| format!("{:.1} %", ratio * 100.0))
    };
    let width =
        |index: usize| percent(intervals(index).filter_map(|it| it.width_ratio()).collect());
    let generator = |index: usize| {
        percent(intervals(index).filter_map(|s| Some(s.generator_ns? / s.value_ns)).collect())
    };
    let truth = |truth: Option<f64>| {
        truth.map_or_else(|| "–".to_owned(), |ns| format!("{:.2} ms", ns / 1e6))
    };
    let valid = runs.iter().filter(|outcome| outcome.valid).count();
    let _ = writeln!(
        out,
        "| {utilisation} | {} | {} ({valid}) | {} | {} | {} | {} | {}, {}, {} | {}, {} |",
        if disturbed { "disturbed" } else { "quiet" },
        runs.len(),
        truths.map(truth).join(", "),
        coverage(0),
        coverage(1),
        coverage(2),
        width(0),
        width(1),
        width(2),
        generator(0),
        generator(2),
    );
}

/// How many of the uncertainty intervals contain the truth.
fn count_covering(
    intervals: impl Iterator<Item = ReportedInterval>,
    truth_ns: Option<f64>,
) -> (usize, usize) {
    let Some(truth_ns) = truth_ns else { return (0, 0) };
    intervals.fold((0, 0), |(covered, of), interval| {
        (covered + usize::from(interval.holds(truth_ns)), of + 1)
    })
}

fn overall_coverage(all: &[(&Outcome, [Option<f64>; 3])]) -> String {
    let each = PERCENTILES.iter().enumerate().map(|(index, (name, _))| {
        let (covered, of) = all
            .iter()
            .filter_map(|(outcome, truths)| {
                Some(count_covering(outcome.intervals[index].into_iter(), Some(truths[index]?)))
            })
            .fold((0, 0), |(covered, of), (more, of_more)| (covered + more, of + of_more));
        match of {
            0 => format!("{name} was not stated"),
            _ => {
                let percent = covered as f64 / of as f64 * 100.0;
                format!("{name} held in {covered} of {of} ({percent:.1} %)")
            }
        }
    });
    each.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(number: u64, disturbed: bool, low_ms: f64, high_ms: f64) -> Outcome {
        let (low_ns, high_ns) = (low_ms * 1e6, high_ms * 1e6);
        let interval = ReportedInterval {
            low_ns,
            high_ns: Some(high_ns),
            value_ns: high_ns,
            generator_ns: Some(0.1 * high_ns),
        };
        // The log of a disturbed run's server is not used as truth.
        let times: Vec<u64> =
            (1..=1_000).map(|i| if disturbed { 9_000_000 } else { i * 2_000 }).collect();
        Outcome {
            number,
            seed: number,
            window_s: 3,
            utilisation: 0.6,
            disturbed,
            valid: true,
            intervals: [Some(interval), None, None],
            truths: Truths::from_times(&times),
        }
    }

    #[test]
    fn the_truth_is_the_quiet_runs_and_disturbed_runs_are_held_against_it() {
        let outcomes =
            [outcome(0, false, 0.9, 1.1), outcome(1, false, 0.5, 0.8), outcome(2, true, 0.8, 1.6)];
        let text = table(&outcomes);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| 0.6")).collect();
        assert!(rows[0].contains("quiet | 2 (2) | 1.00 ms, 1.90 ms, 1.98 ms | 1 of 2"), "{text}");
        assert!(rows[1].contains("disturbed | 1 (1)") && rows[1].contains("| 1 of 1"), "{text}");
        assert!(rows[1].contains("50.0 %") && rows[1].contains("10.0 %"), "{text}");
        assert!(text.contains("p50 held in 2 of 3 (66.7 %), p95 was not stated"), "{text}");
    }
}
