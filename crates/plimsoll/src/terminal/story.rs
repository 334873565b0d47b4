//! A run in one line.

use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_report::limit_name;

use super::Style;
use super::point_line::time;
use super::summary::value_text;

/// The headline, how long answers took there, what limited the highest load, and the verdict.
pub(crate) fn story(result: &RunResult, style: Style) -> String {
    let suite = result.suite.as_ref().map_or("", |suite| suite.name.as_str());
    let value = result.summary.value.map_or("no load held".to_owned(), |v| value_text(v, result));
    let counted = result.points.iter().filter(|point| point.counts());
    let peak = counted.max_by(|a, b| rate(a).total_cmp(&rate(b)));
    let p99 = peak.and_then(|point| point.response_ns.as_ref()).and_then(|times| times.p99);
    let limit = result.points.last().map(|point| limit_name(&point.limit)).unwrap_or_default();
    let verdict = match result.verdict.valid {
        true => style.good("valid"),
        false => style.bad("invalid"),
    };
    format!("{suite:<13} {}, p99 {}, limit: {limit}, {verdict}", style.bold(&value), time(p99))
}

fn rate(point: &PointResult) -> f64 {
    point.achieved_ops_per_s.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_figure_is_told_too() {
        let told = story(&RunResult::default(), Style::new(false));
        assert_eq!(told, "              no load held, p99 –, limit: , invalid");
    }
}
