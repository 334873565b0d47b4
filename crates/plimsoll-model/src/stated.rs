//! How a figure is written beside its uncertainty interval: `4.31 ms (4.20–4.36)`, or `4.1–6.2 ms`
//! where the interval is too wide for the figure to mean anything.

use crate::capacity::Figure;
use crate::condition::{ConditionFigure, LimitUnit};
use crate::figure::StreamFigure;
use crate::gate::GateResult;
use crate::result::{Censored, OverallResponse, PointResult, Summary, TimeIntervals, TimeSummary};
use crate::suite::Metric;
use crate::units::{byte_unit, decimals, grouped, percent, three_digits, time_unit};

/// A percentile with an interval wider than this share of itself is shown as the interval alone.
const WIDE_RATIO: f64 = 1.0 / 3.0;
/// Digits of the bounds that stand alone: they differ by a third and more.
const ALONE_DIGITS: usize = 2;
/// Bounds further apart than so many times stand in a unit each.
const FAR_APART_RATIO: f64 = 100.0;
/// More decimals than the figure's that bounds may have, so that they differ.
const FURTHER_DECIMALS_MAX: usize = 2;

/// A figure with its interval, as far as it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stated {
    /// As measured.
    pub value: f64,
    /// Lower and upper bound; `None` where nothing is known of it.
    pub interval: Option<[f64; 2]>,
    /// Ops that were not sent or not finished may make it larger: it is shown behind a `≥`.
    pub lower_bound: bool,
    /// Percentiles are shown as the interval alone when it is wide.
    percentile: bool,
}

impl Stated {
    /// A figure of a distribution, in nanoseconds; absent where the sample is too small.
    fn of(
        times: Option<&TimeSummary>,
        intervals: Option<&TimeIntervals>,
        figure: Figure,
    ) -> Option<Self> {
        let (times, bounds) = (times?, intervals.copied().unwrap_or_default());
        let whole = |ns: Option<u64>| ns.map(|ns| ns as f64);
        let (value, interval) = match figure {
            Figure::Mean => (times.mean, bounds.mean),
            Figure::P50 => (whole(times.p50), bounds.p50),
            Figure::P90 => (whole(times.p90), bounds.p90),
            Figure::P95 => (whole(times.p95), bounds.p95),
            Figure::P99 => (whole(times.p99), bounds.p99),
            Figure::P999 => (whole(times.p999), None),
            Figure::Max => (whole(times.max), None),
        };
        let percentile = figure != Figure::Mean;
        Some(Self { interval, percentile, ..Self::new(value?, None) })
    }

    /// Any other figure. Without an interval where nothing is known of it.
    pub const fn new(value: f64, interval: Option<[f64; 2]>) -> Self {
        Self { value, interval, lower_bound: false, percentile: false }
    }

    /// Of the response time of a point, in nanoseconds.
    pub fn response(point: &PointResult, figure: Figure) -> Option<Self> {
        let intervals = point.response_interval_ns.as_ref();
        let stated = Self::of(point.response_ns.as_ref(), intervals, figure)?;
        let bounds = |censored: Censored| censored.bounds_response(figure, stated.value);
        Some(Self { lower_bound: point.censored.is_some_and(bounds), ..stated })
    }

    /// Of the service time of a point, in nanoseconds.
    pub fn service(point: &PointResult, figure: Figure) -> Option<Self> {
        let intervals = point.service_interval_ns.as_ref();
        let stated = Self::of(point.service_ns.as_ref(), intervals, figure)?;
        let bounds = |censored: Censored| censored.bounds_service(figure, stated.value);
        Some(Self { lower_bound: point.censored.is_some_and(bounds), ..stated })
    }

    /// Of a time within the ops of a point, in nanoseconds.
    pub fn stream(point: &PointResult, of: StreamFigure, figure: Figure) -> Option<Self> {
        let (times, intervals) = point.generation.as_ref()?.times(of)?;
        let stated = Self::of(Some(times), intervals, figure)?;
        let from_due = matches!(of, StreamFigure::FirstOutput);
        let bounds =
            |censored: Censored| from_due && censored.bounds_response(figure, stated.value);
        Some(Self { lower_bound: point.censored.is_some_and(bounds), ..stated })
    }

    /// The output tokens of a point per second.
    pub fn tokens_per_s(point: &PointResult) -> Option<Self> {
        let generation = point.generation.as_ref()?;
        let interval = generation.output_tokens_interval_per_s;
        generation.output_tokens_per_s.map(|value| Self::new(value, interval))
    }

    /// The part of a point's ops that were good ones.
    pub fn goodput(point: &PointResult) -> Option<Self> {
        let goodput = point.goodput.as_ref()?;
        goodput.share_ratio.map(|share| Self::new(share, goodput.share_interval_ratio))
    }

    /// The throughput of a point, in ops per second.
    pub fn achieved(point: &PointResult) -> Option<Self> {
        let interval = point.achieved_interval_ops_per_s;
        point.achieved_ops_per_s.map(|value| Self::new(value, interval))
    }

    /// The headline of a run, in its unit.
    pub fn headline(summary: &Summary) -> Option<Self> {
        summary.value.map(|value| Self::new(value, summary.value_interval))
    }

    /// The score of a run.
    pub fn score(summary: &Summary) -> Option<Self> {
        summary.score.map(|score| Self::new(score, summary.score_interval))
    }

    /// Overall response time of a run by one of the definitions, in nanoseconds.
    pub fn overall(
        summary: &Summary,
        definition: fn(&OverallResponse) -> Option<f64>,
    ) -> Option<Self> {
        let nanos = |overall: &OverallResponse| definition(overall).map(|ms| ms * 1e6);
        let [low, high] = summary.overall_response_interval_ms.unwrap_or_default();
        let interval = nanos(&low).zip(nanos(&high)).map(|(low, high)| [low, high]);
        nanos(&summary.overall_response_ms).map(|value| Self::new(value, interval))
    }

    /// The bounds that are shown without the figure, because they are too far apart for it.
    pub fn alone(&self) -> Option<[f64; 2]> {
        let wide = |[low, high]: &[f64; 2]| high - low > WIDE_RATIO * self.value;
        self.interval.filter(|_| self.percentile).filter(wide)
    }

    /// What stands before a lower bound.
    const fn sign(&self) -> &'static str {
        if self.lower_bound { "≥\u{a0}" } else { "" }
    }

    /// A time in a unit of its own: the number, and its unit with the interval behind it.
    pub fn time_parts(&self) -> (String, String) {
        let largest = self.alone().map_or(self.value, |[_, high]| high);
        let (unit_ns, unit) = time_unit(largest);
        match self.alone() {
            Some([low, high]) if low > 0.0 && high > FAR_APART_RATIO * low => {
                let (low_unit_ns, low_unit) = time_unit(low);
                let low = bound_text(low / low_unit_ns);
                let number = format!("{low} {low_unit}–{}", bound_text(high / unit_ns));
                return (number, unit.to_owned());
            }
            Some(bounds) => return (alone_text(bounds.map(|ns| ns / unit_ns)), unit.to_owned()),
            None => {}
        }
        let value = self.value / unit_ns;
        let bounds = self.interval.map(|bounds| bounds.map(|ns| ns / unit_ns));
        let behind = bounds.map(|bounds| format!(" ({})", beside_text(value, bounds)));
        (
            self.sign().to_owned() + &three_digits(value),
            unit.to_owned() + &behind.unwrap_or_default(),
        )
    }

    /// A time in a unit of its own: `4.31 ms (4.20–4.36)`.
    pub fn time_text(&self) -> String {
        let (number, unit) = self.time_parts();
        format!("{number} {unit}")
    }

    /// The same without the interval, where the figure may stand without: `4.31 ms`.
    pub fn short_time_text(&self) -> String {
        match self.alone() {
            Some(_) => self.time_text(),
            None => self.bare_time_text(),
        }
    }

    /// The figure alone: `4.31 ms`.
    pub fn bare_time_text(&self) -> String {
        Self { interval: None, ..*self }.time_text()
    }

    /// A time in a column whose unit, so many nanoseconds, stands above it: `4.31 (4.20–4.36)`.
    pub fn text_in(&self, unit_ns: f64) -> String {
        if let Some(bounds) = self.alone() {
            return alone_text(bounds.map(|ns| ns / unit_ns));
        }
        let value = self.value / unit_ns;
        let bounds = self.interval.map(|bounds| bounds.map(|ns| ns / unit_ns));
        let behind = bounds.map(|bounds| format!("\u{a0}({})", beside_text(value, bounds)));
        format!("{}{}{}", self.sign(), three_digits(value), behind.unwrap_or_default())
    }

    /// A rate, with its interval where that is wider than the rounding.
    pub fn rate_text(&self) -> String {
        let number = grouped(self.value);
        match self.rate_interval_text() {
            Some(interval) => format!("{number}\u{a0}({interval})"),
            None => number,
        }
    }

    /// A throughput for a person: the number, and its unit. A rate of bytes is written in a
    /// binary multiple, `102` and `MiB/s`.
    pub fn throughput_parts(&self, unit: &str) -> (String, String) {
        if unit != Metric::Bytes.unit() {
            return (grouped(self.value), unit.to_owned());
        }
        let (bytes, name) = byte_unit(self.value);
        (three_digits(self.value / bytes), format!("{name}/s"))
    }

    /// The interval of a throughput in the unit of [`Stated::throughput_parts`], where it is wider
    /// than the rounding.
    pub fn throughput_interval_text(&self, unit: &str) -> Option<String> {
        if unit != Metric::Bytes.unit() {
            return self.rate_interval_text();
        }
        let (bytes, _) = byte_unit(self.value);
        let bounds = self.interval.filter(|[low, high]| low < high)?;
        Some(beside_text(self.value / bytes, bounds.map(|bound| bound / bytes)))
    }

    /// A throughput with its unit and its interval: `102 MiB/s (101–104)`.
    pub fn throughput_text(&self, unit: &str) -> String {
        let (number, name) = self.throughput_parts(unit);
        match self.throughput_interval_text(unit) {
            Some(interval) => format!("{number} {name} ({interval})"),
            None => format!("{number} {name}"),
        }
    }

    /// The interval of a rate where it is wider than the rounding: `30,800–31,050`.
    pub fn rate_interval_text(&self) -> Option<String> {
        let [low, high] = self.interval?.map(grouped);
        (low != high).then(|| format!("{low}–{high}"))
    }
}

/// Bounds with two digits each: `4.1–6.2`.
fn alone_text([low, high]: [f64; 2]) -> String {
    format!("{}–{}", bound_text(low.max(0.0)), bound_text(high))
}

fn bound_text(bound: f64) -> String {
    match decimals(bound, ALONE_DIGITS) {
        0 => grouped(bound.round().max(0.0)),
        decimals => format!("{bound:.decimals$}"),
    }
}

/// Bounds with the decimals of the figure they stand behind, and more where they would read alike.
fn beside_text(value: f64, [low, high]: [f64; 2]) -> String {
    let first = decimals(value, 3);
    let text = |decimals: usize, bound: f64| match decimals {
        0 => grouped(bound.round()),
        _ => format!("{bound:.decimals$}"),
    };
    let apart = |decimals: &usize| text(*decimals, low) != text(*decimals, high);
    let last = first + FURTHER_DECIMALS_MAX;
    let decimals = (first..last).find(apart).unwrap_or(last);
    format!("{}–{}", text(decimals, low), text(decimals, high))
}

/// What became of a gate, for a person.
pub fn gate_text(gate: &GateResult) -> String {
    let Some(value) = gate.value else {
        return format!(
            "{}: unknown, this run has no such figure (no point counts, or too few ops)",
            gate.expr
        );
    };
    let bounds = gate.low.zip(gate.high).filter(|(low, high)| low < high);
    let interval = bounds.map(|(low, high)| [low, high]);
    let stated = Stated { lower_bound: gate.high.is_none(), ..Stated::new(value, interval) };
    let figure = match gate.expr.figure {
        figure if figure.unit() == LimitUnit::Time => stated.time_text(),
        figure if figure.unit() == LimitUnit::Share => format!("{} %", grouped(value)),
        figure if figure.unit() == LimitUnit::Part => percent(value),
        _ => stated.rate_text(),
    };
    let place = gate.load.map_or(String::new(), |load| format!(" at load {}", grouped(load)));
    format!("{}: {}, {figure}{place}", gate.expr, gate.state.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(value: f64, low: f64, high: f64) -> Stated {
        Stated { percentile: true, ..Stated::new(value, Some([low, high])) }
    }

    #[test]
    fn a_rate_of_bytes_is_written_in_a_binary_multiple_and_any_other_as_it_is() {
        let rate = Stated::new(107_287_676.0, Some([106_000_000.0, 108_000_000.0]));
        assert_eq!(rate.throughput_text("bytes/s"), "102 MiB/s (101–103)");
        assert_eq!(rate.throughput_text("ops/s"), "107,287,676 ops/s (106,000,000–108,000,000)");
        assert_eq!(Stated::new(900.0, None).throughput_text("bytes/s"), "900 B/s");
    }

    #[test]
    fn a_time_is_followed_by_its_interval_in_the_same_unit() {
        let p50 = stated(4_310_000.0, 4_200_000.0, 4_360_000.0);
        assert_eq!(p50.time_text(), "4.31 ms (4.20–4.36)");
        assert_eq!(p50.short_time_text(), "4.31 ms");
        assert_eq!(p50.text_in(1e6), "4.31\u{a0}(4.20–4.36)");
        assert_eq!(p50.text_in(1e3), "4,310\u{a0}(4,200–4,360)");
        assert_eq!(stated(85_400.0, 84_950.0, 86_010.0).time_text(), "85.4 µs (85.0–86.0)");
        let bare = Stated { interval: None, ..p50 };
        assert_eq!((bare.time_text(), bare.text_in(1e6)), ("4.31 ms".into(), "4.31".into()));
    }

    #[test]
    fn a_percentile_with_an_interval_wider_than_a_third_is_shown_as_the_interval_alone() {
        let wide = stated(5e6, 4.1e6, 6.2e6);
        assert_eq!(wide.time_text(), "4.1–6.2 ms");
        assert_eq!(wide.short_time_text(), "4.1–6.2 ms");
        assert_eq!(wide.text_in(1e6), "4.1–6.2");
        assert_eq!(stated(5e6, 0.0, 131.4e6).time_text(), "0–131 ms");
        assert_eq!(stated(5e6, 8_900.0, 40e6).time_text(), "8.9 µs–40 ms", "each in its unit");
        // A mean keeps its value: what is built on it is shown too.
        let mean = Stated { percentile: false, ..wide };
        assert_eq!(mean.time_text(), "5.00 ms (4.10–6.20)");
    }

    #[test]
    fn bounds_that_would_read_alike_get_another_digit() {
        assert_eq!(stated(4.31e6, 4.307e6, 4.314e6).time_text(), "4.31 ms (4.307–4.314)");
    }

    #[test]
    fn a_rate_shows_its_interval_where_it_is_wider_than_the_rounding() {
        let rate = stated(31_000.0, 30_800.0, 31_050.4);
        assert_eq!(rate.rate_text(), "31,000\u{a0}(30,800–31,050)");
        assert_eq!(stated(31_000.0, 30_999.8, 31_000.2).rate_text(), "31,000");
    }
}
