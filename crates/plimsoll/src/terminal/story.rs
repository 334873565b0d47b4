//! A run in one line.

use plimsoll_model::capacity::Figure;
use plimsoll_model::event::Bound;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::{BytesPerSec, grouped};
use plimsoll_report::limit_line;

use super::Style;

/// The highest sustained load, response times half way and at the peak, what limited the run from
/// which load on, and the verdict.
pub(crate) fn story(result: &RunResult, style: Style) -> String {
    let suite = result.suite.as_ref().map_or("", |suite| suite.name.as_str());
    let most = result.summary.value.map_or("no load held".to_owned(), |value| {
        let bound = if result.summary.bound == Bound::AtLeast { "at least " } else { "" };
        match result.suite.as_ref().map(|suite| suite.metric) {
            Some(Metric::Bytes) => format!("{bound}{}", BytesPerSec(value)),
            _ => format!("{bound}{} {}", grouped(value.round()), result.summary.unit),
        }
    });
    let counted = || result.points.iter().filter(|point| point.counts());
    let peak = counted().max_by(|a, b| rate(a).total_cmp(&rate(b)));
    let half = peak.map_or(0.0, |peak| rate(peak) / 2.0);
    let off = |point: &PointResult| (rate(point) - half).abs();
    let halfway = counted().min_by(|a, b| off(a).total_cmp(&off(b)));
    let limit = limit_line(result);
    let verdict = if result.verdict.valid { style.good("valid") } else { style.bad("invalid") };
    let times = halfway.zip(peak).and_then(|(halfway, peak)| times(halfway, peak));
    format!(
        "{suite:<13} {}, {}limit: {limit}, {verdict}",
        style.bold(&most),
        times.unwrap_or_default(),
    )
}

/// The highest percentile up to p99 that both load points have: few ops give no p99.
fn times(halfway: &PointResult, peak: &PointResult) -> Option<String> {
    let figures = [Figure::P99, Figure::P95, Figure::P90, Figure::P50, Figure::Mean];
    figures.into_iter().find_map(|figure| {
        let [there, half] = [peak, halfway].map(|point| ReportedFigure::response(point, figure));
        let [there, half] = [there?, half?].map(|reported| reported.short_time_text());
        Some(format!("{} {half} half way and {there} there, ", figure.as_str()))
    })
}

fn rate(point: &PointResult) -> f64 {
    point.achieved_ops_per_s.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use plimsoll_model::limit::{Limit, LimitKind, LimitSpan};
    use plimsoll_model::result::TimeSummary;

    use super::*;

    #[test]
    fn the_line_has_the_limit_of_the_ladder_and_not_that_of_its_last_point() {
        let core =
            Limit { kind: LimitKind::Core, place: Some("core 1".to_owned()), ..Limit::default() };
        let mut run = RunResult { points: vec![PointResult::default(); 3], ..RunResult::default() };
        run.axis.unit = "clients".to_owned();
        run.summary.limits = vec![LimitSpan { from: 4.0, limit: core }];
        let line = story(&run, Style::new(false));
        assert!(line.ends_with("limit: core 1 from 4 clients on, invalid"), "{line}");
    }

    #[test]
    fn a_run_without_a_figure_is_told_too() {
        let line = story(&RunResult::default(), Style::new(false));
        assert_eq!(line, "              no load held, limit: unknown, invalid");
    }

    #[test]
    fn the_line_of_few_ops_has_the_figure_that_they_tell_and_no_dash() {
        let point = |achieved: f64, p99, p95| PointResult {
            valid: true,
            achieved_ops_per_s: Some(achieved),
            response_ns: Some(TimeSummary { p99, p95, ..TimeSummary::default() }),
            ..PointResult::default()
        };
        let line = |half, full| {
            let points =
                vec![point(50.0, half, Some(7_000_000)), point(100.0, full, Some(9_000_000))];
            story(&RunResult { points, ..RunResult::default() }, Style::new(false))
        };
        let both = line(Some(8_000_000), Some(12_000_000));
        assert!(both.contains("p99 8.00 ms half way and 12.0 ms there, limit"), "{both}");
        let one = line(None, Some(12_000_000));
        assert!(one.contains("p95 7.00 ms half way and 9.00 ms there, limit"), "{one}");
        assert!(!one.contains('–'), "{one}");
    }
}
