//! Up to which load the slowest of a hundred ops stayed within round times, for readers who have
//! promised one.

use plimsoll_model::capacity::Figure;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{PointResult, RunResult};

use crate::text::load;

/// Times that people promise.
const PROMISED_NS: [(f64, &str); 4] =
    [(1e6, "1 ms"), (1e7, "10 ms"), (1e8, "100 ms"), (1e9, "1 s")];
/// Loads on which more of it means more work; fewer points show no bound between them.
const UNITS: [&str; 4] = ["ops/s", "logons/s", "sessions/s", "clients"];
const POINTS_MIN: usize = 3;

/// `p99, its interval included, stayed within 1 ms up to 7,059 ops/s and within 10 ms up to
/// 49,416 ops/s.`
pub(super) fn sentence(run: &RunResult) -> Option<String> {
    let is_of_load = run.suite.is_some() && UNITS.contains(&run.axis.unit.as_str());
    if !is_of_load || run.points.len() < POINTS_MIN {
        return None;
    }
    let mut points: Vec<&PointResult> = run.points.iter().collect();
    points.sort_by(|a, b| a.requested.total_cmp(&b.requested));
    let mut promises: Vec<(&str, f64)> = Vec::new();
    for (promised, name) in PROMISED_NS {
        let within = points.iter().take_while(|point| {
            point.counts() && highest_p99(point).is_some_and(|p99| p99 <= promised)
        });
        let Some(last) = within.last() else { continue };
        if promises.last().is_none_or(|(_, load)| *load < last.requested) {
            promises.push((name, last.requested));
        }
    }
    let highest = points.last().map(|point| point.requested);
    let text = |(name, at): &(&str, f64)| {
        let beyond = if Some(*at) == highest { ", the highest load" } else { "" };
        format!("within {name} up to {}{beyond}", load(*at, &run.axis))
    };
    let (last, others) = promises.split_last()?;
    let others: Vec<String> = others.iter().map(text).collect();
    let and = if others.is_empty() { "" } else { " and " };
    let interval = |p: &PointResult| ReportedFigure::response(p, Figure::P99)?.interval;
    let included = match run.points.iter().any(|p| interval(p).is_some()) {
        true => ", its interval included,",
        false => "",
    };
    Some(format!("p99{included} stayed {}{and}{}.", others.join(", "), text(last)))
}

fn highest_p99(point: &PointResult) -> Option<f64> {
    // A lower bound promises nothing.
    let p99 = ReportedFigure::response(point, Figure::P99).filter(|p99| !p99.lower_bound)?;
    Some(p99.interval.map_or(p99.value, |[_, high]| high))
}

#[cfg(test)]
mod tests {
    use plimsoll_model::result::{Axis, SuiteSummary, TimeSummary};

    use super::*;

    fn point(requested: f64, p99_ms: f64) -> PointResult {
        let p99 = Some((p99_ms * 1e6) as u64);
        let times = TimeSummary { n: 9_999, p99, ..TimeSummary::default() };
        PointResult {
            valid: true,
            requested,
            achieved_ops_per_s: Some(requested),
            response_ns: Some(times),
            ..PointResult::default()
        }
    }

    fn promise_text(points: &[(f64, f64)]) -> Option<String> {
        let run = RunResult {
            suite: Some(SuiteSummary::default()),
            axis: Axis { name: "load".to_owned(), unit: "ops/s".to_owned() },
            points: points.iter().map(|(load, p99)| point(*load, *p99)).collect(),
            ..RunResult::default()
        };
        sentence(&run)
    }

    #[test]
    fn a_load_is_named_for_each_time_that_gives_another() {
        let both = "p99 stayed within 1 ms up to 1,000 ops/s and within 10 ms up to 3,000 ops/s.";
        assert_eq!(
            promise_text(&[(1e3, 0.4), (2e3, 2.0), (3e3, 9.0), (4e3, 2_000.0)]).unwrap(),
            both
        );
        let all = "p99 stayed within 1 ms up to 3,000 ops/s, the highest load.";
        assert_eq!(
            promise_text(&[(3e3, 0.9), (1e3, 0.4), (2e3, 0.8)]).unwrap(),
            all,
            "in any order"
        );
    }

    #[test]
    fn a_load_that_is_quick_again_behind_a_slow_one_promises_nothing() {
        let text = promise_text(&[(1e3, 0.4), (2e3, 5_000.0), (3e3, 0.4)]).unwrap();
        assert_eq!(text, "p99 stayed within 1 ms up to 1,000 ops/s.");
        assert_eq!(promise_text(&[(1e3, 5_000.0), (2e3, 0.4), (3e3, 0.4)]), None);
        assert_eq!(promise_text(&[(1e3, 0.4), (2e3, 0.4)]), None, "two points are no ladder");
    }
}
