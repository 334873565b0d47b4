//! How the ops of a point divide: by op and by target.

use plimsoll_model::result::{OpResult, PointResult, RunResult};

use super::headline::headline_point;
use super::moved::ops_unit;
use crate::table::{Table, figures, words};
use crate::text::{ABSENT, TimeUnit, count, load, number};

pub(super) fn ops_tables(run: &RunResult) -> Vec<Table> {
    run.points.iter().filter(|p| !p.ops.is_empty()).map(|p| ops_table(run, p)).collect()
}

fn ops_table(run: &RunResult, point: &PointResult) -> Table {
    let times = || point.ops.values().filter_map(|op| op.response_ns?.p50);
    let unit = TimeUnit::for_largest(times().max().unwrap_or(0).max(1_000_000) as f64);
    let load = load(point.requested, &run.axis);
    let mut table = Table::new(
        format!("Point {} · {load}", point.position),
        vec![
            words("op"),
            figures("count", ""),
            figures("share", "%"),
            figures("in the mix", "%"),
            figures("errors", ""),
            figures("expected failures", ""),
            figures("response p50", unit.name()),
            figures("p95", unit.name()),
            figures("p99", unit.name()),
            figures("max", unit.name()),
            figures("service p50", unit.name()),
            figures("p99", unit.name()),
            figures("first chunk p50", unit.name()),
            figures("p99", unit.name()),
            figures("chunk gap p50", unit.name()),
            figures("p99", unit.name()),
        ],
    );
    let left_out = |op: &OpResult| op.count == 0 && op.wanted_ratio.unwrap_or_default() == 0.0;
    for (name, op) in by_wanted_share(point).into_iter().filter(|(_, op)| !left_out(op)) {
        let (response, service) =
            (op.response_ns.unwrap_or_default(), op.service_ns.unwrap_or_default());
        let (first, gap) =
            (op.first_piece_ns.unwrap_or_default(), op.piece_gap_ns.unwrap_or_default());
        let nanos = |n: Option<u64>| unit.text(n.map(|n| n as f64));
        table.push(vec![
            name.clone(),
            count(Some(op.count)),
            share(op.share_ratio),
            share(op.wanted_ratio),
            count(Some(op.errors)),
            count(Some(op.expected_failures)),
            nanos(response.p50),
            nanos(response.p95),
            nanos(response.p99),
            nanos(response.max),
            nanos(service.p50),
            nanos(service.p99),
            nanos(first.p50),
            nanos(first.p99),
            nanos(gap.p50),
            nanos(gap.p99),
        ]);
    }
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
    let columns = vec![
        words("op"),
        figures("share", "%"),
        figures("in the mix", "%"),
        figures("failed", ""),
        figures("p50", unit.name()),
        figures("p95", unit.name()),
        figures("p99", unit.name()),
        figures("max", unit.name()),
    ];
    let caption = format!(
        "Response time of each op at load point {} ({load}), as measured, without intervals",
        point.position
    );
    let mut table = Table::new(caption, columns);
    let failed = point.ops.values().any(|op| op.errors > 0);
    for (name, op) in by_wanted_share(point).into_iter().filter(|(_, op)| op.count > 0) {
        let response = op.response_ns.unwrap_or_default();
        let nanos = |n: Option<u64>| unit.text(n.map(|n| n as f64));
        table.push(vec![
            name.clone(),
            share(op.share_ratio),
            share(op.wanted_ratio),
            // A column of zeros is left out: there is little room.
            count(Some(op.errors).filter(|_| failed)),
            nanos(response.p50),
            nanos(response.p95),
            nanos(response.p99),
            nanos(response.max),
        ]);
    }
    table.without_empty_columns()
}

/// The method's order of weight; by name where no mix is fixed.
fn by_wanted_share(point: &PointResult) -> Vec<(&String, &OpResult)> {
    let mut ops: Vec<_> = point.ops.iter().collect();
    let wanted = |op: &OpResult| op.wanted_ratio.unwrap_or_default();
    ops.sort_by(|(_, a), (_, b)| wanted(b).total_cmp(&wanted(a)));
    ops
}

/// Two decimals, since a mix is judged to a percentage point.
fn share(ratio: Option<f64>) -> String {
    let ratio = ratio.filter(|ratio| ratio.is_finite());
    ratio.map_or_else(|| ABSENT.to_owned(), |ratio| format!("{:.2}", ratio * 100.0))
}

pub(super) fn per_target_table(run: &RunResult) -> Table {
    let mut shares = run.points.iter().flat_map(|point| &point.per_target);
    let writes = shares.any(|share| share.bytes_written > 0);
    let mut columns = vec![
        figures("point", ""),
        words("target"),
        figures("achieved", ops_unit(run)),
        figures("errors", ""),
        figures("read", ""),
    ];
    if writes {
        columns.push(figures("written", ""));
    }
    let mut table = Table::new("By target", columns);
    for point in run.points.iter().filter(|p| p.per_target.len() > 1) {
        for share in &point.per_target {
            let mut row = vec![
                point.position.to_string(),
                share.target.clone(),
                number(Some(share.achieved_ops_per_s)),
                count(Some(share.errors)),
                crate::text::bytes(Some(share.bytes_read)),
            ];
            if writes {
                row.push(crate::text::bytes(Some(share.bytes_written)));
            }
            table.push(row);
        }
    }
    table
}
