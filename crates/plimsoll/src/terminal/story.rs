//! A run in one line.

use plimsoll_model::capacity::Figure;
use plimsoll_model::event::Bound;
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::{BytesPerSec, grouped};
use plimsoll_report::limit_line;

use super::Style;
use super::point_line::response;

/// The most that was held, how slow the slowest answers were half way and there, what limited the
/// run from which load on, and the verdict.
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
    let half_way = counted().min_by(|a, b| off(a).total_cmp(&off(b)));
    let limit = limit_line(result);
    let verdict = match result.verdict.valid {
        true => style.good("valid"),
        false => style.bad("invalid"),
    };
    format!(
        "{suite:<13} {}, p99 {} half way and {} there, limit: {limit}, {verdict}",
        style.bold(&most),
        p99(half_way),
        p99(peak)
    )
}

fn rate(point: &PointResult) -> f64 {
    point.achieved_ops_per_s.unwrap_or_default()
}

fn p99(point: Option<&PointResult>) -> String {
    point.map_or("–".to_owned(), |point| response(point, Figure::P99))
}

#[cfg(test)]
mod tests {
    use plimsoll_model::limit::{Limit, LimitKind, LimitSpan};

    use super::*;

    #[test]
    fn the_line_has_the_limit_of_the_ladder_and_not_that_of_its_last_point() {
        let core =
            Limit { kind: LimitKind::Core, place: Some("core 1".to_owned()), ..Limit::default() };
        let mut run = RunResult { points: vec![PointResult::default(); 3], ..RunResult::default() };
        run.axis.unit = "clients".to_owned();
        run.summary.limits = vec![LimitSpan { from: 4.0, limit: core }];
        let told = story(&run, Style::new(false));
        assert!(told.ends_with("limit: core 1 from 4 clients on, invalid"), "{told}");
    }

    #[test]
    fn a_run_without_a_figure_is_told_too() {
        let told = story(&RunResult::default(), Style::new(false));
        assert_eq!(
            told,
            "              no load held, p99 – half way and – there, limit: unknown, invalid"
        );
    }
}
