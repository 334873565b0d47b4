//! Journeys of users, and their pages.

use plimsoll_model::figure::{Figure, JourneyFigure};
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{JourneySummary, OpResult, PointResult, RunResult, TimeSummary};

use crate::table::{Rows, Table};
use crate::text::{ABSENT, TimeUnit, count, number};

/// How many there were at each load point, and how long they took.
pub(super) fn journeys_table(run: &RunResult) -> Table {
    let points = run.points.iter().filter_map(|point| Some((point, point.journeys.as_ref()?)));
    let unit = unit_of(points.clone().filter_map(|(_, it)| it.time_ns));
    let busy = |pick: fn(&TimeSummary) -> Option<u64>| {
        move |(_, it): &(&PointResult, &JourneySummary)| {
            unit.text(it.busy_ns.as_ref().and_then(pick).map(|ns| ns as f64))
        }
    };
    let whole = |figure| {
        move |(point, _): &(&PointResult, &JourneySummary)| {
            unit.figure_text(ReportedFigure::journey(point, &JourneyFigure::Time(figure)))
        }
    };
    Rows::new("Journeys", points)
        .figures("point", "", |(point, _)| point.position)
        .figures("begun", "", |(_, it)| count(Some(it.begun)))
        .figures("completed", "", |(_, it)| count(Some(it.completed)))
        .figures("failed", "", |(_, it)| count(Some(it.failed)))
        .figures("abandoned", "", |(_, it)| count(Some(it.abandoned)))
        .figures("completed", "per s", |(_, it)| number(it.completed_per_s))
        .figures("redirects", "", |(_, it)| count(Some(it.redirects)))
        .figures("completed", "%", |(point, _)| {
            let part = ReportedFigure::journey(point, &JourneyFigure::Completed);
            part.map_or_else(|| ABSENT.to_owned(), |part| part.text_in(0.01))
        })
        .figures("time p50", unit.name(), whole(Figure::P50))
        .figures("p95", unit.name(), whole(Figure::P95))
        .figures("without think times p50", unit.name(), busy(|times| times.p50))
        .figures("p95", unit.name(), busy(|times| times.p95))
        .table()
}

/// How long the pages of each load point took: from the due time of the first request to the last
/// byte of the last reply, redirects included.
pub(super) fn pages_table(run: &RunResult) -> Table {
    let pages = run
        .points
        .iter()
        .filter(|point| point.journeys.is_some())
        .flat_map(|point| point.ops.iter().map(move |(name, op)| (point, name.as_str(), op)));
    let unit = unit_of(pages.clone().filter_map(|(_, _, op)| op.page_ns));
    let time = |figure| {
        move |(point, name, _): &(&PointResult, &str, &OpResult)| {
            let of_page = JourneyFigure::Page((*name).to_owned(), figure);
            unit.figure_text(ReportedFigure::journey(point, &of_page))
        }
    };
    Rows::new("Pages", pages)
        .figures("point", "", |(point, ..)| point.position)
        .text("page", |(_, name, _)| (*name).to_owned())
        .figures("complete", "", |(_, _, op)| count(op.page_ns.map(|times| times.n)))
        .figures("requests", "", |(_, _, op)| count(Some(op.count)))
        .figures("failed", "", |(_, _, op)| count(Some(op.errors)))
        .figures("good", "%", |(_, _, op)| number(op.good_ratio.map(|part| 100.0 * part)))
        .figures("tolerable", "%", |(_, _, op)| number(op.tolerable_ratio.map(|part| 100.0 * part)))
        .figures("time p50", unit.name(), time(Figure::P50))
        .figures("p95", unit.name(), time(Figure::P95))
        .figures("p99", unit.name(), time(Figure::P99))
        .figures("max", unit.name(), time(Figure::Max))
        .table()
}

fn unit_of(times: impl Iterator<Item = TimeSummary>) -> TimeUnit {
    let medians = times.filter_map(|times| times.p50);
    TimeUnit::for_largest(medians.map(|ns| ns as f64).fold(1e6, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_users_has_a_line_for_each_point_and_each_page() {
        let times =
            TimeSummary { n: 7, p50: Some(2_000_000), p95: Some(3_000_000), ..Default::default() };
        let journeys = JourneySummary {
            begun: 9,
            completed: 7,
            failed: 2,
            time_ns: Some(times),
            ..Default::default()
        };
        let op = OpResult { count: 8, errors: 1, page_ns: Some(times), ..Default::default() };
        let ops = [("login".to_owned(), op)].into();
        let point =
            PointResult { position: 1, journeys: Some(journeys), ops, ..Default::default() };
        let run = RunResult { points: vec![point, PointResult::default()], ..Default::default() };
        let (journeys, pages) = (journeys_table(&run), pages_table(&run));
        assert_eq!((journeys.rows.len(), pages.rows.len()), (1, 1));
        let text = format!("{:?} {:?}", journeys.rows, pages.rows);
        assert!(text.contains("login") && text.contains("2.00"), "{text}");
    }
}
