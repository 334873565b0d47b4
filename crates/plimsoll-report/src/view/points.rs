//! Tables of load points, their percentiles and seconds.

use plimsoll_model::result::{PointResult, RunResult, TimeSummary};
use plimsoll_model::suite::Metric;

use super::errors::class_text;
use super::moved::{metric, mib_per_s, ops_unit};
use crate::svg::{selected_points, timeline_spans, timeline_time};
use crate::table::{Column, Mark, Table, figures, words};
use crate::text::{ABSENT, TimeUnit, count, load, number, percent, three_digits, time};

/// Rows of a timeline's table; the whole of it is in `timeline.csv`.
const TIMELINE_ROWS_MAX: usize = 40;

/// Ops from which the share beyond a percentile is known to a twentieth of itself with 99 %
/// confidence: (2.5758 / 0.05)² × p / (1 − p), for p = 99 %.
const P99_OPS_MIN: u64 = 262_742;
/// The same for p = 99.9 %.
const P999_OPS_MIN: u64 = 2_651_305;
/// Before a percentile from fewer ops.
const ROUGH: char = '≈';
/// Share of the time a worker had to wait for its core from which it is shown.
const RUN_DELAY_SHOWN_MIN_RATIO: f64 = 0.005;
/// Of a valid point that the suite leaves out.
const ABOVE_CAP: &str = "above the cap, not\u{a0}counted";

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

/// A column of the table of points with what stands in its cells.
type Filled = (Column, Box<dyn Fn(&PointResult) -> String>);

fn table_of(run: &RunResult, points: &[PointResult], caption: &str) -> Table {
    let filled = columns(run, points);
    let (columns, cells): (Vec<Column>, Vec<_>) = filled.into_iter().unzip();
    let mut table = Table::new(caption, columns);
    for point in points {
        table.push_marked(cells.iter().map(|cell| cell(point)).collect(), Mark::of(run, point));
    }
    table
}

fn columns(run: &RunResult, points: &[PointResult]) -> Vec<Filled> {
    let mut columns = load_columns(run, points);
    columns.extend(time_columns(run, points));
    columns.extend(health_columns(run, points));
    columns
}

fn filled(column: Column, cell: impl Fn(&PointResult) -> String + 'static) -> Filled {
    (column, Box::new(cell))
}

fn load_columns(run: &RunResult, points: &[PointResult]) -> Vec<Filled> {
    let mut columns = vec![
        filled(figures("point", ""), |p| p.position.to_string()),
        filled(figures("requested", &run.axis.unit), |p| number(Some(p.requested))),
    ];
    if points.iter().any(|p| p.clients_requested != p.clients_participating) {
        columns.push(filled(figures("clients", ""), clients));
    }
    if points.iter().any(|p| p.think_s.is_some_and(|used| used != p.requested)) {
        columns.push(filled(figures("think time used", "s"), |p| number(p.think_s)));
    }
    let unit = ops_unit(run);
    let counts_bytes = metric(run) == Metric::Bytes;
    if !counts_bytes || points.iter().any(|p| p.offered_ops_per_s.is_some()) {
        columns.push(filled(figures("offered", unit), |p| number(p.offered_ops_per_s)));
    }
    if counts_bytes {
        columns.push(filled(figures("achieved", "MiB/s"), |p| mib_per_s(p.achieved_bytes_per_s)));
    }
    columns.push(filled(figures("achieved", unit), |p| number(p.achieved_ops_per_s)));
    if points.iter().any(|p| p.score.is_some()) {
        columns.push(filled(figures("score", "tps"), |p| number(p.score)));
    }
    columns
}

fn clients(point: &PointResult) -> String {
    let part = |n: Option<u32>| count(n.map(u64::from));
    let (taking_part, asked) = (point.clients_participating, point.clients_requested);
    format!("{}\u{a0}of\u{a0}{}", part(taking_part), part(asked))
}

fn time_columns(run: &RunResult, points: &[PointResult]) -> Vec<Filled> {
    type Pick = fn(&TimeSummary) -> Option<u64>;
    let unit = time_unit(points);
    let column = move |name: &str, pick: Pick, ops_min: u64| {
        filled(figures(name, unit.name()), move |p| {
            let times = p.response_ns.unwrap_or_default();
            let text = unit.text(pick(&times).map(|n| n as f64));
            let rough = times.n < ops_min && text != ABSENT;
            if rough { format!("{ROUGH}{text}") } else { text }
        })
    };
    let mut columns = Vec::new();
    if caps(run) {
        let service = |p: &PointResult| p.service_ns.and_then(|t| t.mean);
        let name = "service mean";
        columns.push(filled(figures(name, unit.name()), move |p| unit.text(service(p))));
    }
    columns.extend([
        column("p50", |t| t.p50, 0),
        column("p95", |t| t.p95, 0),
        column("p99", |t| t.p99, P99_OPS_MIN),
        column("p99.9", |t| t.p999, P999_OPS_MIN),
        column("max", |t| t.max, 0),
    ]);
    let name = if run.suite.is_some() { "mean\u{a0}±\u{a0}95\u{a0}%" } else { "mean" };
    columns.push(filled(figures(name, unit.name()), move |p| mean(p, unit)));
    columns
}

fn health_columns(run: &RunResult, points: &[PointResult]) -> Vec<Filled> {
    let foreign = run.suite.is_none();
    let lag_unit = lag_unit(points);
    let mut columns = vec![filled(figures("not sent", ""), |p| count(p.not_sent))];
    let seen = |pick: fn(&PointResult) -> Option<u64>| {
        points.iter().any(|p| pick(p).is_some_and(|n| n > 0))
    };
    if caps(run) || seen(|p| p.retransmissions) {
        columns.push(filled(figures("sent again", ""), |p| count(p.retransmissions)));
    }
    if seen(|p| p.ambiguous) {
        columns.push(filled(figures("ambiguous", ""), |p| count(p.ambiguous)));
    }
    columns.push(filled(figures("busy", "worker"), |p| percent(p.generator.cpu_busy_ratio_max)));
    let delayed = |p: &PointResult| p.generator.run_delay_ratio_max.unwrap_or_default();
    if points.iter().any(|p| delayed(p) >= RUN_DELAY_SHOWN_MIN_RATIO) {
        columns.push(filled(figures("kept waiting", "worker"), |p| {
            percent(p.generator.run_delay_ratio_max)
        }));
    }
    columns.extend([
        filled(figures("send lag p99", lag_unit.name()), move |p| {
            let lag = p.send_lag_ns.unwrap_or_default();
            lag_unit.text(lag.p99.map(|n| n as f64))
        }),
        filled(words("errors"), move |p| match foreign && p.errors.is_empty() {
            true => ABSENT.to_owned(),
            false => errors(p),
        }),
        filled(words("valid"), move |p| if foreign { ABSENT.to_owned() } else { judged(p) }),
    ]);
    columns
}

/// Does the suite cap the mean service time of the points it counts?
pub(super) fn caps(run: &RunResult) -> bool {
    run.suite.as_ref().is_some_and(|suite| suite.response_cap_ms.is_some())
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
    let texts: Vec<_> = errors
        .map(|(class, n)| {
            format!("{}\u{a0}{}", count(Some(*n)), class_text(class, &point.unexpected))
        })
        .collect();
    if texts.is_empty() { "0".to_owned() } else { texts.join(", ") }
}

fn judged(point: &PointResult) -> String {
    let above = point.not_counted.is_some();
    if point.valid {
        return if above { ABOVE_CAP.to_owned() } else { "✓".to_owned() };
    }
    let mut rules: Vec<_> = point.reasons.iter().map(|r| r.rule.replace('_', " ")).collect();
    rules.dedup();
    let cap = if above { "; above the cap" } else { "" };
    match rules.is_empty() {
        true => format!("✗ invalid{cap}"),
        false => format!("✗ {}{cap}", rules.join(", ")),
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

/// What marks and absent values in the table mean.
pub(super) fn note(run: &RunResult, table: &Table) -> String {
    if run.suite.is_none() {
        return "The curve comes from elsewhere: columns it does not fill are left out.".to_owned();
    }
    let mut notes = Vec::new();
    if table.has_gaps() {
        notes.push(format!(
            "{ABSENT} means not measured, or a sample too small to support the percentile."
        ));
    }
    if table.any_cell(|cell| cell.starts_with(ROUGH)) {
        notes.push(format!(
            "{ROUGH} marks a percentile from fewer ops ({} for p99, {} for p99.9) than it takes to \
             know the share beyond it to a twentieth, with 99 % confidence: do not compare runs by it.",
            count(Some(P99_OPS_MIN)),
            count(Some(P999_OPS_MIN)),
        ));
    }
    if let Some(cap_ms) = run.suite.as_ref().and_then(|suite| suite.response_cap_ms) {
        notes.push(format!(
            "The suite counts points with a mean service time of up to {} ms, and the overall \
             response time rests on that mean; the percentiles are those of the response time.",
            number(Some(cap_ms)),
        ));
    }
    notes.join(" ")
}

fn time_unit(points: &[PointResult]) -> TimeUnit {
    let times = |p: &PointResult| p.response_ns.or(p.service_ns);
    let typical = |t: TimeSummary| t.p50.map(|n| n as f64).or(t.mean);
    let largest = points.iter().filter(|p| p.counts()).filter_map(|p| typical(times(p)?));
    let any = points.iter().filter_map(|p| typical(times(p)?));
    TimeUnit::for_largest(largest.reduce(f64::max).or(any.reduce(f64::max)).unwrap_or(1e6).max(1e6))
}

fn lag_unit(points: &[PointResult]) -> TimeUnit {
    let largest = points.iter().filter_map(|p| p.send_lag_ns?.p99).max();
    TimeUnit::for_largest(largest.unwrap_or(0) as f64)
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
