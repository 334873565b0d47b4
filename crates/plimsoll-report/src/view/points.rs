//! Tables of load points, their ops, errors and seconds.

use plimsoll_model::result::{PointResult, RunResult, TimeSummary};

use crate::svg::{selected_points, timeline_spans, timeline_time};
use crate::table::{Column, Table, figures, words};
use crate::text::{ABSENT, TimeUnit, count, load, number, percent, three_digits, time};

/// Rows of a timeline's table; the whole of it is in `timeline.csv`.
const TIMELINE_ROWS_MAX: usize = 40;

pub(super) fn points_table(run: &RunResult) -> Table {
    let caption = match run.suite {
        Some(_) => "Response time runs from due to done: it includes the generator's own lateness.",
        None => "The load points as the other program gave them.",
    };
    let table = table_of(run, &run.points, caption);
    if run.suite.is_none() { table.without_empty_columns() } else { table }
}

pub(super) fn probes_table(run: &RunResult) -> Table {
    table_of(run, &run.probes, "Probes of the search for the peak, not part of the ladder")
        .without_empty_columns()
}

fn table_of(run: &RunResult, points: &[PointResult], caption: &str) -> Table {
    let unit = time_unit(points);
    let mut table = Table::new(caption, columns(run, points, unit));
    for point in points {
        table.push_judged(cells(run, point, unit, points), point.valid || run.suite.is_none());
    }
    table
}

fn columns(run: &RunResult, points: &[PointResult], unit: TimeUnit) -> Vec<Column> {
    let time = unit.name();
    let mut columns = vec![
        figures("point", ""),
        figures("requested", &run.axis.unit),
        figures("offered", "ops/s"),
        figures("achieved", "ops/s"),
        figures("p50", time),
        figures("p95", time),
        figures("p99", time),
        figures("p99.9", time),
        figures("max", time),
        figures(if run.suite.is_some() { "mean\u{a0}±\u{a0}95\u{a0}%" } else { "mean" }, time),
        figures("not sent", ""),
        figures("busy", "worker"),
        figures("send lag p99", lag_unit(points).name()),
        words("errors"),
        words("valid"),
    ];
    if loses_clients(points) {
        columns.insert(2, figures("clients", ""));
    }
    columns
}

fn loses_clients(points: &[PointResult]) -> bool {
    points.iter().any(|p| p.clients_requested != p.clients_participating)
}

fn cells(
    run: &RunResult,
    point: &PointResult,
    unit: TimeUnit,
    points: &[PointResult],
) -> Vec<String> {
    let times = point.response_ns.unwrap_or_default();
    let lag = point.send_lag_ns.unwrap_or_default();
    let nanos = |n: Option<u64>| unit.text(n.map(|n| n as f64));
    let foreign = run.suite.is_none();
    let mut cells = vec![
        point.position.to_string(),
        number(Some(point.requested)),
        number(point.offered_ops_per_s),
        number(point.achieved_ops_per_s),
        nanos(times.p50),
        nanos(times.p95),
        nanos(times.p99),
        nanos(times.p999),
        nanos(times.max),
        mean(point, unit),
        count(point.not_sent),
        percent(point.generator.cpu_busy_ratio_max),
        lag_unit(points).text(lag.p99.map(|n| n as f64)),
        if foreign && point.errors.is_empty() { ABSENT.to_owned() } else { errors(point) },
        if foreign { ABSENT.to_owned() } else { judged(point) },
    ];
    if loses_clients(points) {
        let (taking_part, asked) = (point.clients_participating, point.clients_requested);
        let part = |n: Option<u32>| count(n.map(u64::from));
        cells.insert(2, format!("{}\u{a0}of\u{a0}{}", part(taking_part), part(asked)));
    }
    cells
}

fn mean(point: &PointResult, unit: TimeUnit) -> String {
    let times = point.response_ns.filter(|t| t.mean.is_some()).or(point.service_ns);
    let Some(TimeSummary { mean: Some(mean), mean_error, .. }) = times else {
        return ABSENT.to_owned();
    };
    match mean_error {
        Some(error) => format!("{}\u{a0}±\u{a0}{}", unit.text(Some(mean)), unit.text(Some(error))),
        None => unit.text(Some(mean)),
    }
}

/// By class, since a sum would hide what failed.
fn errors(point: &PointResult) -> String {
    let errors = point.errors.iter().filter(|(_, n)| **n > 0);
    let texts: Vec<_> =
        errors.map(|(class, n)| format!("{}\u{a0}{class}", count(Some(*n)))).collect();
    if texts.is_empty() { "0".to_owned() } else { texts.join(", ") }
}

fn judged(point: &PointResult) -> String {
    if point.valid {
        return "✓".to_owned();
    }
    let mut rules: Vec<_> = point.reasons.iter().map(|r| r.rule.replace('_', " ")).collect();
    rules.dedup();
    match rules.is_empty() {
        true => "✗ invalid".to_owned(),
        false => format!("✗ {}", rules.join(", ")),
    }
}

/// The generator's health in words, for the one point that has no course over load.
pub(super) fn generator_note(run: &RunResult) -> String {
    let [point] = run.points.as_slice() else { return String::new() };
    let health = &point.generator;
    let busy = health.cpu_busy_ratio_max.map(|ratio| {
        let limit = percent(health.cpu_busy_ratio_limit);
        format!("Busiest worker {} of one core (limit {limit}).", percent(Some(ratio)))
    });
    let lag = health.lateness_ns.and_then(|t| t.p99).map(|nanos| {
        let limit = time(health.lateness_limit_ns);
        let own = time(Some(nanos));
        format!("Send lag p99 without waits for a connection {own} (limit {limit}).")
    });
    busy.into_iter().chain(lag).collect::<Vec<_>>().join(" ")
}

/// What an absent value in the table means.
pub(super) fn note(run: &RunResult, table: &Table) -> String {
    if run.suite.is_none() {
        return "The curve comes from elsewhere: columns it does not fill are left out.".to_owned();
    }
    if !table.has_gaps() {
        return String::new();
    }
    format!("{ABSENT} means not measured, or a sample too small to support the percentile.")
}

fn time_unit(points: &[PointResult]) -> TimeUnit {
    let times = |p: &PointResult| p.response_ns.or(p.service_ns);
    let typical = |t: TimeSummary| t.p50.map(|n| n as f64).or(t.mean);
    let largest = points.iter().filter(|p| p.valid).filter_map(|p| typical(times(p)?));
    let any = points.iter().filter_map(|p| typical(times(p)?));
    TimeUnit::for_largest(largest.reduce(f64::max).or(any.reduce(f64::max)).unwrap_or(1e6).max(1e6))
}

fn lag_unit(points: &[PointResult]) -> TimeUnit {
    let largest = points.iter().filter_map(|p| p.send_lag_ns?.p99).max();
    TimeUnit::for_largest(largest.unwrap_or(0) as f64)
}

pub(super) fn errors_table(run: &RunResult) -> Table {
    let columns = vec![figures("point", ""), words("class"), figures("ops", "")];
    let mut table = Table::new("Errors by class", columns);
    for point in &run.points {
        for (class, n) in point.errors.iter().filter(|(_, n)| **n > 0) {
            table.push(vec![point.position.to_string(), class.clone(), count(Some(*n))]);
        }
    }
    table
}

pub(super) fn unexpected_table(run: &RunResult) -> Table {
    let columns = vec![
        figures("point", ""),
        words("op"),
        figures("expected status", ""),
        figures("seen", ""),
        figures("ops", ""),
    ];
    let mut table = Table::new("Statuses other than expected", columns);
    for point in &run.points {
        for seen in &point.unexpected {
            table.push(vec![
                point.position.to_string(),
                seen.op.clone(),
                seen.expected.to_string(),
                seen.actual.to_string(),
                count(Some(seen.count)),
            ]);
        }
    }
    table
}

pub(super) fn error_samples(run: &RunResult) -> Vec<(String, Vec<String>)> {
    let failed = run.points.iter().filter(|p| !p.error_samples.is_empty());
    failed.map(|p| (format!("point {}", p.position), p.error_samples.clone())).collect()
}

/// One table for each point.
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
            figures("errors", ""),
            figures("failed as expected", ""),
            figures("response p50", unit.name()),
            figures("p95", unit.name()),
            figures("p99", unit.name()),
            figures("max", unit.name()),
            figures("service p50", unit.name()),
            figures("p99", unit.name()),
        ],
    );
    for (name, op) in &point.ops {
        let (response, service) =
            (op.response_ns.unwrap_or_default(), op.service_ns.unwrap_or_default());
        let nanos = |n: Option<u64>| unit.text(n.map(|n| n as f64));
        table.push(vec![
            name.clone(),
            count(Some(op.count)),
            count(Some(op.errors)),
            count(Some(op.expected_failures)),
            nanos(response.p50),
            nanos(response.p95),
            nanos(response.p99),
            nanos(response.max),
            nanos(service.p50),
            nanos(service.p99),
        ]);
    }
    table
}

pub(super) fn per_target_table(run: &RunResult) -> Table {
    let columns = vec![
        figures("point", ""),
        words("target"),
        figures("achieved", "ops/s"),
        figures("errors", ""),
        figures("read", ""),
    ];
    let mut table = Table::new("By target", columns);
    for point in run.points.iter().filter(|p| p.per_target.len() > 1) {
        for share in &point.per_target {
            table.push(vec![
                point.position.to_string(),
                share.target.clone(),
                number(Some(share.achieved_ops_per_s)),
                count(Some(share.errors)),
                crate::text::bytes(Some(share.bytes_read)),
            ]);
        }
    }
    table
}

/// What the chart of percentiles draws.
pub(super) fn percentiles_table(run: &RunResult) -> Table {
    let points = selected_points(run);
    let all = || points.iter().flat_map(|p| &p.response_percentiles);
    let unit = TimeUnit::for_largest(all().map(|(_, n)| *n).max().unwrap_or(0) as f64);
    let mut columns = vec![figures("percentile", "%")];
    columns.extend(points.iter().map(|p| {
        let load = load(p.requested, &run.axis);
        figures(&load, unit.name())
    }));
    let caption = match points.iter().all(|p| p.valid) {
        _ if points.len() == run.points.len() => "Every load point.",
        true => "First, middle and last valid load point.",
        false => "First, middle and last load point; none is valid.",
    };
    let mut table = Table::new(caption, columns);
    let mut percentiles: Vec<f64> = all().map(|(p, _)| *p).filter(|p| p.is_finite()).collect();
    percentiles.sort_by(f64::total_cmp);
    percentiles.dedup();
    for percentile in percentiles {
        let mut row = vec![format!("{percentile}")];
        row.extend(points.iter().map(|p| {
            let found = p.response_percentiles.iter().find(|(other, _)| *other == percentile);
            unit.text(found.map(|(_, n)| *n as f64))
        }));
        table.push(row);
    }
    table
}

/// The figures behind a timeline: each second, or the range within spans of seconds.
pub(crate) fn timeline_table(point: &PointResult) -> Table {
    let (name, time) = timeline_time(point);
    let largest = point.timeline.iter().filter_map(time).max().unwrap_or(0);
    let unit = TimeUnit::for_largest(largest as f64);
    let mut table = Table::new(
        format!("Point {} second by second", point.position),
        vec![
            words("seconds"),
            words("phase"),
            figures("throughput", "ops/s"),
            figures(&format!("response {name}"), unit.name()),
        ],
    );
    for span in timeline_spans(&point.timeline, TIMELINE_ROWS_MAX) {
        let (Some(first), Some(last)) = (span.first(), span.last()) else { continue };
        let rates = || span.iter().map(|s| s.ops_per_s);
        let times = || span.iter().filter_map(time).map(|n| unit.of(n as f64));
        table.push(vec![
            if first.second == last.second {
                first.second.to_string()
            } else {
                format!("{}–{}", first.second, last.second)
            },
            first.phase.replace('_', "-"),
            range(rates().reduce(f64::min), rates().reduce(f64::max), |v| number(Some(v))),
            range(times().reduce(f64::min), times().reduce(f64::max), three_digits),
        ]);
    }
    table
}

fn range(low: Option<f64>, high: Option<f64>, text: impl Fn(f64) -> String) -> String {
    let (Some(low), Some(high)) = (low.map(&text), high.map(&text)) else {
        return ABSENT.to_owned();
    };
    if low == high { low } else { format!("{low}–{high}") }
}
