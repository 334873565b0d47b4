//! Compound calls (NFSv4.1), and the times around ops: OPEN, CLOSE and waits for a slot.

use plimsoll_model::result::{CompoundCalls, PointResult, RunResult, TimeSummary};

use crate::table::{Rows, Table};
use crate::text::{TimeUnit, number};

/// Their rates and times at each load point.
pub(super) fn table(run: &RunResult) -> Table {
    let points = run.points.iter().filter_map(|point| Some((point, point.compound_calls?)));
    let all = points.clone().flat_map(|(_, it)| [it.open_ns, it.close_ns, it.slot_wait_ns]);
    let longest = all.filter_map(|times| times?.p50).max().unwrap_or_default();
    let unit = TimeUnit::for_largest(longest as f64);
    let time = |times: fn(&CompoundCalls) -> Option<TimeSummary>,
                pick: fn(TimeSummary) -> Option<u64>| {
        move |(_, it): &(&PointResult, CompoundCalls)| {
            unit.text(times(it).and_then(pick).map(|ns| ns as f64))
        }
    };
    Rows::new("Compound calls, and the times around ops", points)
        .figures("point", "", |(point, _)| point.position)
        .figures("compounds", "per s", |(_, it)| number(it.compounds_per_s))
        .figures("operations", "per s", |(_, it)| number(it.operations_per_s))
        .figures("opens", "per s", |(_, it)| number(it.opens_per_s))
        .figures("OPEN p50", unit.name(), time(|it| it.open_ns, |times| times.p50))
        .figures("p99", unit.name(), time(|it| it.open_ns, |times| times.p99))
        .figures("CLOSE p50", unit.name(), time(|it| it.close_ns, |times| times.p50))
        .figures("p99", unit.name(), time(|it| it.close_ns, |times| times.p99))
        .figures("wait for a slot p50", unit.name(), time(|it| it.slot_wait_ns, |times| times.p50))
        .figures("p99", unit.name(), time(|it| it.slot_wait_ns, |times| times.p99))
        .table()
        .without_empty_columns()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_compounds_has_a_line_for_each_point_that_has_them() {
        let times = TimeSummary { n: 7, p50: Some(2_000_000), ..TimeSummary::default() };
        let calls = CompoundCalls {
            compounds_per_s: Some(1_380.0),
            open_ns: Some(times),
            ..CompoundCalls::default()
        };
        let point = PointResult { position: 1, compound_calls: Some(calls), ..Default::default() };
        let run = RunResult { points: vec![point, PointResult::default()], ..Default::default() };
        let table = table(&run);
        assert_eq!(table.rows.len(), 1);
        let text = format!("{:?}", table.rows);
        assert!(text.contains("1,380") && text.contains("2.00"), "{text}");
    }
}
