//! Writes a figure with its uncertainty interval: `4.31 ms (4.20–4.36)`.

use crate::capacity::Figure;
use crate::condition::{ConditionFigure, LimitUnit};
use crate::figure::{JourneyFigure, StreamFigure};
use crate::gate::GateResult;
use crate::result::{Censored, OverallResponse, PointResult, Summary, TimeIntervals, TimeSummary};
use crate::suite::Metric;
use crate::units::{byte_unit, decimals, grouped, percent, three_digits, time_unit};

/// An interval wider than this share of its figure is a wide one, which deserves a warning.
pub const WIDE_RATIO: f64 = 1.0 / 3.0;
/// More decimals than the figure's that bounds may have, so that they differ.
const FURTHER_DECIMALS_MAX: usize = 2;

/// A figure with its interval, as far as it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReportedFigure {
    /// As measured.
    pub value: f64,
    /// Lower and upper bound; `None` where unknown. Infinite where the sample shows no upper one.
    pub interval: Option<[f64; 2]>,
    /// Ops that were not sent or not finished may make it larger: it is shown behind a `≥`.
    pub lower_bound: bool,
}

impl ReportedFigure {
    /// A figure of a distribution, in nanoseconds; absent where the sample is too small.
    fn from_times(
        times: Option<&TimeSummary>,
        intervals: Option<&TimeIntervals>,
        figure: Figure,
    ) -> Option<Self> {
        let interval = intervals.and_then(|intervals| intervals.figure(figure));
        Some(Self::new(times?.figure(figure)?, interval))
    }

    /// Any other figure; without an interval where that is unknown.
    pub const fn new(value: f64, interval: Option<[f64; 2]>) -> Self {
        Self { value, interval, lower_bound: false }
    }

    /// Of the response time of a point, in nanoseconds.
    pub fn response(point: &PointResult, figure: Figure) -> Option<Self> {
        let intervals = point.response_interval_ns.as_ref();
        let reported = Self::from_times(point.response_ns.as_ref(), intervals, figure)?;
        let bounds = |censored: Censored| censored.bounds_response(figure, reported.value);
        Some(Self { lower_bound: point.censored.is_some_and(bounds), ..reported })
    }

    /// Of the service time of a point, in nanoseconds.
    pub fn service(point: &PointResult, figure: Figure) -> Option<Self> {
        let intervals = point.service_interval_ns.as_ref();
        let reported = Self::from_times(point.service_ns.as_ref(), intervals, figure)?;
        let bounds = |censored: Censored| censored.bounds_service(figure, reported.value);
        Some(Self { lower_bound: point.censored.is_some_and(bounds), ..reported })
    }

    /// Of a time within the ops of a point, in nanoseconds.
    pub fn stream(point: &PointResult, of: StreamFigure, figure: Figure) -> Option<Self> {
        let (times, intervals) = point.generation.as_ref()?.times(of)?;
        let reported = Self::from_times(Some(times), intervals, figure)?;
        let from_due = matches!(of, StreamFigure::FirstOutput);
        let bounds =
            |censored: Censored| from_due && censored.bounds_response(figure, reported.value);
        Some(Self { lower_bound: point.censored.is_some_and(bounds), ..reported })
    }

    /// Of the journeys of a point: a time in nanoseconds, or a part.
    pub fn journey(point: &PointResult, figure: &JourneyFigure) -> Option<Self> {
        let journeys = point.journeys.as_ref()?;
        match figure {
            JourneyFigure::Page(page, figure) => {
                let op = point.ops.get(page)?;
                Self::from_times(op.page_ns.as_ref(), op.page_interval_ns.as_ref(), *figure)
            }
            JourneyFigure::Time(figure) => {
                let intervals = journeys.time_interval_ns.as_ref();
                Self::from_times(journeys.time_ns.as_ref(), intervals, *figure)
            }
            JourneyFigure::Completed => {
                let interval = journeys.completed_interval_ratio;
                journeys.completed_ratio.map(|ratio| Self::new(ratio, interval))
            }
        }
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

    /// The width of the interval by the figure, where that is wide.
    pub fn wide_ratio(&self) -> Option<f64> {
        let [low, high] = self.interval?;
        Some((high - low) / self.value).filter(|ratio| *ratio > WIDE_RATIO)
    }

    /// Sign before a lower bound.
    const fn sign(&self) -> &'static str {
        if self.lower_bound { "≥\u{a0}" } else { "" }
    }

    /// A time in a unit of its own: the number, and its unit with the interval behind it.
    pub fn time_parts(&self) -> (String, String) {
        let (unit_ns, unit) = time_unit(self.value);
        let value = self.value / unit_ns;
        let bounds = self.interval.map(|bounds| bounds.map(|ns| ns / unit_ns));
        let behind = bounds.map(|bounds| format!(" ({})", bounds_text(value, bounds)));
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

    /// The same with an interval only where that is wide.
    pub fn short_time_text(&self) -> String {
        match self.wide_ratio() {
            Some(_) => self.time_text(),
            None => self.bare_time_text(),
        }
    }

    /// The figure alone: `4.31 ms`.
    pub fn bare_time_text(&self) -> String {
        Self { interval: None, ..*self }.time_text()
    }

    /// A time in a column whose header names the unit, of `unit_ns`: `4.31 (4.20–4.36)`.
    pub fn text_in(&self, unit_ns: f64) -> String {
        let value = self.value / unit_ns;
        let bounds = self.interval.map(|bounds| bounds.map(|ns| ns / unit_ns));
        let behind = bounds.map(|bounds| format!("\u{a0}({})", bounds_text(value, bounds)));
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

    /// The interval of a throughput in the unit of [`ReportedFigure::throughput_parts`], where it
    /// is wider than the rounding.
    pub fn throughput_interval_text(&self, unit: &str) -> Option<String> {
        if unit != Metric::Bytes.unit() {
            return self.rate_interval_text();
        }
        let (bytes, _) = byte_unit(self.value);
        let bounds = self.interval.filter(|[low, high]| low < high)?;
        Some(bounds_text(self.value / bytes, bounds.map(|bound| bound / bytes)))
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

/// Bounds with the decimals of their figure, and more where they would read alike; `≥ 4.20` without
/// an upper one.
fn bounds_text(value: f64, [low, high]: [f64; 2]) -> String {
    let first = decimals(value, 3);
    let text = |decimals: usize, bound: f64| match decimals {
        0 => grouped(bound.round()),
        _ => format!("{bound:.decimals$}"),
    };
    if high.is_infinite() {
        return format!("≥\u{a0}{}", text(first, low));
    }
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
    let reported =
        ReportedFigure { lower_bound: gate.high.is_none(), ..ReportedFigure::new(value, interval) };
    let figure = match &gate.expr.figure {
        figure if figure.unit() == LimitUnit::Time => reported.time_text(),
        figure if figure.unit() == LimitUnit::Share => format!("{} %", grouped(value)),
        figure if figure.unit() == LimitUnit::Part => percent(value),
        _ => reported.rate_text(),
    };
    let at_load = gate.load.map_or(String::new(), |load| format!(" at load {}", grouped(load)));
    let unsure = gate.state.unsure_text(gate.fails);
    format!("{}: {}, {figure}{at_load}{unsure}", gate.expr, gate.state.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported_figure(value: f64, low: f64, high: f64) -> ReportedFigure {
        ReportedFigure::new(value, Some([low, high]))
    }

    #[test]
    fn a_rate_of_bytes_is_written_in_a_binary_multiple_and_any_other_as_it_is() {
        let rate = ReportedFigure::new(107_287_676.0, Some([106_000_000.0, 108_000_000.0]));
        assert_eq!(rate.throughput_text("bytes/s"), "102 MiB/s (101–103)");
        assert_eq!(rate.throughput_text("ops/s"), "107,287,676 ops/s (106,000,000–108,000,000)");
        assert_eq!(ReportedFigure::new(900.0, None).throughput_text("bytes/s"), "900 B/s");
    }

    #[test]
    fn a_time_is_followed_by_its_interval_in_the_same_unit() {
        let p50 = reported_figure(4_310_000.0, 4_200_000.0, 4_360_000.0);
        assert_eq!(p50.time_text(), "4.31 ms (4.20–4.36)");
        assert_eq!(p50.short_time_text(), "4.31 ms");
        assert_eq!(p50.text_in(1e6), "4.31\u{a0}(4.20–4.36)");
        assert_eq!(p50.text_in(1e3), "4,310\u{a0}(4,200–4,360)");
        assert_eq!(
            reported_figure(85_400.0, 84_950.0, 86_010.0).time_text(),
            "85.4 µs (85.0–86.0)"
        );
        let bare = ReportedFigure { interval: None, ..p50 };
        assert_eq!((bare.time_text(), bare.text_in(1e6)), ("4.31 ms".into(), "4.31".into()));
    }

    #[test]
    fn a_wide_interval_stands_behind_its_figure_and_in_short_texts_too() {
        let wide = reported_figure(195_000.0, 61_000.0, 253_000.0);
        assert_eq!(wide.time_text(), "195 µs (61–253)");
        assert_eq!(wide.short_time_text(), "195 µs (61–253)");
        assert_eq!(wide.text_in(1e6), "0.195\u{a0}(0.061–0.253)");
        assert!(wide.wide_ratio().is_some_and(|ratio| (ratio - 192.0 / 195.0).abs() < 1e-9));
        assert_eq!(reported_figure(5e6, 0.0, 131.4e6).time_text(), "5.00 ms (0.00–131.40)");
        assert_eq!(reported_figure(195_000.0, 61_000.0, 67e6).time_text(), "195 µs (61–67,000)");
        let third = reported_figure(300.0, 250.0, 350.0);
        assert_eq!((third.wide_ratio(), third.short_time_text()), (None, "300 ns".into()));
    }

    #[test]
    fn bounds_that_would_read_alike_get_another_digit() {
        assert_eq!(reported_figure(4.31e6, 4.307e6, 4.314e6).time_text(), "4.31 ms (4.307–4.314)");
    }

    #[test]
    fn a_rate_shows_its_interval_where_it_is_wider_than_the_rounding() {
        let rate = reported_figure(31_000.0, 30_800.0, 31_050.4);
        assert_eq!(rate.rate_text(), "31,000\u{a0}(30,800–31,050)");
        assert_eq!(reported_figure(31_000.0, 30_999.8, 31_000.2).rate_text(), "31,000");
    }
}
