//! How the ops of a point divide: by op and by target.

use plimsoll_model::result::{OpResult, PointResult, RunResult};

use super::headline::headline_point;
use super::moved::ops_unit;
use crate::table::{Rows, Table};
use crate::text::{ABSENT, TimeUnit, bytes, count, load, number};

pub(super) fn ops_tables(run: &RunResult) -> Vec<Table> {
    run.points.iter().filter(|p| !p.ops.is_empty()).map(|p| ops_table(run, p)).collect()
}

fn ops_table(run: &RunResult, point: &PointResult) -> Table {
    let times = || point.ops.values().filter_map(|op| op.response_ns?.p50);
    let unit = TimeUnit::for_largest(times().max().unwrap_or(0).max(1_000_000) as f64);
    let load = load(point.requested, &run.axis);
    let left_out = |op: &OpResult| op.count == 0 && op.wanted_ratio.unwrap_or_default() == 0.0;
    let ops = by_expected_share(point).into_iter().filter(|(_, op)| !left_out(op));
    let rows = Rows::new(format!("Point {} · {load}", point.position), ops)
        .text("op", |(name, _)| name.as_str())
        .figures("count", "", |(_, op)| count(Some(op.count)))
        .figures("share", "%", |(_, op)| share(op.share_ratio))
        .figures("in the mix", "%", |(_, op)| share(op.wanted_ratio))
        .figures("errors", "", |(_, op)| count(Some(op.errors)))
        .figures("expected failures", "", |(_, op)| count(Some(op.expected_failures)));
    let columns: [(&str, Time); 10] = [
        ("response p50", |op| op.response_ns?.p50),
        ("p95", |op| op.response_ns?.p95),
        ("p99", |op| op.response_ns?.p99),
        ("max", |op| op.response_ns?.max),
        ("service p50", |op| op.service_ns?.p50),
        ("p99", |op| op.service_ns?.p99),
        ("first chunk p50", |op| op.first_piece_ns?.p50),
        ("p99", |op| op.first_piece_ns?.p99),
        ("chunk gap p50", |op| op.piece_gap_ns?.p50),
        ("p99", |op| op.piece_gap_ns?.p99),
    ];
    let mut table = with_times(rows, unit, &columns);
    if point.censored.is_some_and(|censored| censored.unsent > 0) {
        table.caption.push_str(" · ops that were never sent are in no row");
    }
    if point.ops.values().any(left_out) && !table.rows.is_empty() {
        table.caption.push_str(" · ops that did not occur are left out");
    }
    table.without_empty_columns()
}

/// The ops of the point the headline speaks of, in few columns; empty for one kind of op.
pub(super) fn op_mix(run: &RunResult) -> Table {
    let point =
        headline_point(run).filter(|p| p.ops.values().filter(|op| op.count > 0).count() > 1);
    let Some(point) = point else { return Table::default() };
    let times = || point.ops.values().filter_map(|op| op.response_ns?.p50);
    let unit = TimeUnit::for_largest(times().max().unwrap_or(0).max(1_000_000) as f64);
    let load = load(point.requested, &run.axis);
    let caption = format!(
        "Response time of each op at load point {} ({load}), as measured, without intervals",
        point.position
    );
    let failed = point.ops.values().any(|op| op.errors > 0);
    let ops = by_expected_share(point).into_iter().filter(|(_, op)| op.count > 0);
    let rows = Rows::new(caption, ops)
        .text("op", |(name, _)| name.as_str())
        .figures("share", "%", |(_, op)| share(op.share_ratio))
        .figures("in the mix", "%", |(_, op)| share(op.wanted_ratio))
        // A column of zeros is left out: there is little room.
        .figures("failed", "", |(_, op)| count(Some(op.errors).filter(|_| failed)));
    let columns: [(&str, Time); 4] = [
        ("p50", |op| op.response_ns?.p50),
        ("p95", |op| op.response_ns?.p95),
        ("p99", |op| op.response_ns?.p99),
        ("max", |op| op.response_ns?.max),
    ];
    with_times(rows, unit, &columns).without_empty_columns()
}

type Time = fn(&OpResult) -> Option<u64>;

fn with_times(rows: Rows<(&String, &OpResult)>, unit: TimeUnit, columns: &[(&str, Time)]) -> Table {
    let all = columns.iter().fold(rows, |rows, (name, time)| {
        rows.figures(name, unit.name(), |(_, op)| unit.text(time(op).map(|n| n as f64)))
    });
    all.table()
}

/// The method's order of weight; by name where no mix is fixed.
fn by_expected_share(point: &PointResult) -> Vec<(&String, &OpResult)> {
    let mut ops: Vec<_> = point.ops.iter().collect();
    let expected_ratio = |op: &OpResult| op.wanted_ratio.unwrap_or_default();
    ops.sort_by(|(_, a), (_, b)| expected_ratio(b).total_cmp(&expected_ratio(a)));
    ops
}

/// Two decimals, since a mix is checked to a percentage point.
fn share(ratio: Option<f64>) -> String {
    let ratio = ratio.filter(|ratio| ratio.is_finite());
    ratio.map_or_else(|| ABSENT.to_owned(), |ratio| format!("{:.2}", ratio * 100.0))
}

pub(super) fn per_target_table(run: &RunResult) -> Table {
    let mut shares = run.points.iter().flat_map(|point| &point.per_target);
    let writes = shares.any(|share| share.bytes_written > 0);
    let points = run.points.iter().filter(|p| p.per_target.len() > 1);
    let shares = points.flat_map(|point| point.per_target.iter().map(move |it| (point, it)));
    Rows::new("By target", shares)
        .figures("point", "", |(point, _)| point.position)
        .text("target", |(_, share)| share.target.as_str())
        .figures("achieved", ops_unit(run), |(_, share)| number(Some(share.achieved_ops_per_s)))
        .figures("errors", "", |(_, share)| count(Some(share.errors)))
        .figures("read", "", |(_, share)| bytes(Some(share.bytes_read)))
        .figures_if(writes, ("written", ""), |(_, share)| bytes(Some(share.bytes_written)))
        .table()
}
