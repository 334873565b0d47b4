//! Tables of load points, their percentiles and seconds.

use plimsoll_model::capacity::Figure;
use plimsoll_model::counters::Counter;
use plimsoll_model::result::{NotCounted, PointResult, RunResult, TimeSummary};
use plimsoll_model::stated::Stated;
use plimsoll_model::suite::Metric;
use plimsoll_model::units::clients as clients_text;

use super::drawn::{selected_points, timeline_spans, timeline_time};
use super::errors::class_text;
use super::limits::{has_limits, limit_name};
use super::moved::{metric, mib_per_s, ops_unit};
use crate::table::{Filled, Table, figures, filled, table_of, words};
use crate::text::{ABSENT, TimeUnit, count, load, number, percent, three_digits, time};

/// Rows of a timeline's table; the whole of it is in `timeline.csv`.
const TIMELINE_ROWS_MAX: usize = 40;

/// Share of the time a worker had to wait for its core from which it is shown.
const RUN_DELAY_SHOWN_MIN_RATIO: f64 = 0.005;
/// Of the table of points; where a strip below the curve says the same, its room is wanted.
pub(crate) const LIMIT_COLUMN: &str = "limit";
/// What response time is.
const DUE_NOTE: &str = "Response time runs from the instant at which an op was due to the last byte \
    of its reply: the wait for a free connection and the generator's own lateness are in it. Service \
    time runs from the send instead.";
/// What the mark of a lower bound means.
pub(super) const CENSORED_NOTE: &str = "≥ marks a lower bound: ops that were never sent, or had no reply when \
    the drain ended, count with their age at that instant, and would have taken longer.";
/// What the marks of uncertainty intervals mean.
const INTERVALS_NOTE: &str = "Behind a figure stands its uncertainty interval (95 %): what the \
    generator's own delays, the sample, other runs and the histogram leave open. A percentile whose interval \
    is wider than a third of it is shown as the interval alone. p99.9 and max have none.";

pub(super) fn points_table(run: &RunResult) -> Table {
    let caption = match run.suite {
        Some(_) => DUE_NOTE,
        None => "The load points as the other program gave them.",
    };
    let mut columns = match has_generator_table(run) {
        true => [
            load_columns(run, &run.points),
            time_columns(run, &run.points),
            failed_columns(run, &run.points),
        ]
        .into_iter()
        .flatten()
        .collect(),
        false => columns(run, &run.points),
    };
    if has_limits(run) {
        columns.push(filled(words(LIMIT_COLUMN), |p| limit_name(&p.limit)));
    }
    let table = table_of(&run.points, columns, caption);
    if run.suite.is_none() { table.without_empty_columns() } else { table }
}

/// A ladder's table is wide enough without the generator's own figures.
fn has_generator_table(run: &RunResult) -> bool {
    run.suite.is_some() && run.points.len() > 1
}

/// How the generator fared at each load point of a ladder.
pub(super) fn generator_table(run: &RunResult) -> Table {
    let points = if has_generator_table(run) { &run.points[..] } else { &[] };
    let mut columns = vec![
        filled(figures("point", ""), |p| p.position.to_string()),
        filled(figures("requested", &run.axis.unit), |p| number(Some(p.requested))),
    ];
    columns.extend(generator_columns(points));
    table_of(points, columns, "The generator at each load point.")
}

pub(super) fn probes_table(run: &RunResult) -> Table {
    let caption = "Probes of the search for the peak, not part of the ladder";
    table_of(&run.probes, columns(run, &run.probes), caption).without_empty_columns()
}

fn columns(run: &RunResult, points: &[PointResult]) -> Vec<Filled<'static>> {
    let mut columns = load_columns(run, points);
    columns.extend(time_columns(run, points));
    columns.extend(generator_columns(points));
    columns.extend(failed_columns(run, points));
    columns
}

fn load_columns(run: &RunResult, points: &[PointResult]) -> Vec<Filled<'static>> {
    let foreign = run.suite.is_none();
    let asks_for_rates = run.axis.unit == ops_unit(run) && !foreign;
    let mut columns = vec![
        filled(figures("point", ""), |p| p.position.to_string()),
        // Where no width of the page hides it.
        filled(words("valid"), move |p| match foreign && p.valid {
            true => ABSENT.to_owned(),
            false => judged(p),
        }),
        filled(figures("requested", &run.axis.unit), move |p| match p.offered_ops_per_s {
            // The search begins with all clients at once and no rate.
            None if asks_for_rates => {
                format!("none, {}", clients_text(p.requested)).replace(' ', "\u{a0}")
            }
            _ => number(Some(p.requested)),
        }),
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
    columns.push(filled(figures("achieved", unit), achieved));
    if points.iter().any(|p| p.score.is_some()) {
        columns.push(filled(figures("score", "tps"), |p| number(p.score)));
    }
    columns
}

fn achieved(point: &PointResult) -> String {
    Stated::achieved(point).map_or_else(|| ABSENT.to_owned(), |rate| rate.rate_text())
}

fn clients(point: &PointResult) -> String {
    let part = |n: Option<u32>| count(n.map(u64::from));
    let (taking_part, asked) = (point.clients_participating, point.clients_requested);
    format!("{}\u{a0}of\u{a0}{}", part(taking_part), part(asked))
}

fn time_columns(run: &RunResult, points: &[PointResult]) -> Vec<Filled<'static>> {
    let unit = time_unit(points);
    let stated = move |name: &str, figure: Figure| {
        filled(figures(name, unit.name()), move |p| unit.stated(Stated::response(p, figure)))
    };
    let mut columns = Vec::new();
    if caps(run) {
        let service = move |p: &PointResult| unit.stated(Stated::service(p, Figure::Mean));
        columns.push(filled(figures("service mean", unit.name()), service));
    }
    columns.extend([
        stated("p50", Figure::P50),
        stated("p95", Figure::P95),
        stated("p99", Figure::P99),
        stated("p99.9", Figure::P999),
        stated("max", Figure::Max),
    ]);
    let name = match run.suite.is_some() && !points.iter().any(has_intervals) {
        true => "mean\u{a0}±\u{a0}95\u{a0}%",
        false => "mean",
    };
    columns.push(filled(figures(name, unit.name()), move |p| mean(p, unit)));
    columns
}

fn has_intervals(point: &PointResult) -> bool {
    point.response_interval_ns.is_some() || point.service_interval_ns.is_some()
}

fn generator_columns(points: &[PointResult]) -> Vec<Filled<'static>> {
    let lag_unit = lag_unit(points);
    let mut columns = vec![
        filled(figures("not sent", ""), |p| count(p.not_sent)),
        filled(figures("generator busy", "without polling"), |p| {
            percent(p.generator.cpu_busy_ratio_max)
        }),
    ];
    let unfinished = |p: &PointResult| p.censored.map_or(0, |it| it.unfinished);
    if points.iter().any(|p| unfinished(p) > 0) {
        columns.insert(1, filled(figures("unfinished", ""), move |p| count(Some(unfinished(p)))));
    }
    let delayed = |p: &PointResult| p.generator.run_delay_ratio_max.unwrap_or_default();
    if points.iter().any(|p| delayed(p) >= RUN_DELAY_SHOWN_MIN_RATIO) {
        columns.push(filled(figures("generator waiting for a core", ""), |p| {
            percent(p.generator.run_delay_ratio_max)
        }));
    }
    columns.push(filled(figures("send lag p99", lag_unit.name()), move |p| {
        let lag = p.send_lag_ns.unwrap_or_default();
        lag_unit.text(lag.p99.map(|n| n as f64))
    }));
    columns
}

/// What had to be sent again, and what failed.
fn failed_columns(run: &RunResult, points: &[PointResult]) -> Vec<Filled<'static>> {
    let foreign = run.suite.is_none();
    let shown = |counter: Counter| {
        // Suites with a cap measure file servers: that nothing was sent again says something, too.
        let always = caps(run) && counter == Counter::Retransmissions;
        always || points.iter().any(|p| p.counter(counter).is_some_and(|n| n > 0))
    };
    let mut columns: Vec<Filled<'static>> = Counter::ALL
        .iter()
        .filter(|counter| shown(**counter))
        .filter_map(|counter| {
            Some(filled(figures(counter.columns().1?, ""), |p| count(p.counter(*counter))))
        })
        .collect();
    columns.push(filled(figures("errors", ""), move |p| match foreign && p.errors.is_empty() {
        true => ABSENT.to_owned(),
        false => errors(p),
    }));
    columns
}

/// Does the suite cap the mean service time of the points it counts?
pub(crate) fn caps(run: &RunResult) -> bool {
    run.suite.as_ref().is_some_and(|suite| suite.response_cap_ms.is_some())
}

fn mean(point: &PointResult, unit: TimeUnit) -> String {
    let response = Stated::response(point, Figure::Mean);
    let Some(mean) = response.or_else(|| Stated::service(point, Figure::Mean)) else {
        return ABSENT.to_owned();
    };
    let times = if response.is_some() { point.response_ns } else { point.service_ns };
    match times.and_then(|t| t.mean_error).filter(|_| mean.interval.is_none()) {
        Some(error) if !mean.lower_bound => {
            format!("{}\u{a0}±\u{a0}{}", unit.stated(Some(mean)), unit.text(Some(error)))
        }
        _ => unit.stated(Some(mean)),
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
    let left_out = point.not_counted.map(not_counted_word);
    if point.valid {
        return left_out.map_or_else(|| "✓".to_owned(), |why| format!("{why}, not\u{a0}counted"));
    }
    let mut rules: Vec<_> = point.reasons.iter().map(|r| r.rule.name().replace('_', " ")).collect();
    rules.dedup();
    let left_out = left_out.map(|why| format!("; {why}")).unwrap_or_default();
    match rules.is_empty() {
        true => format!("✗ invalid{left_out}"),
        false => format!("✗ {}{left_out}", rules.join(", ")),
    }
}

/// Why a point is left out of the headline.
pub(super) const fn not_counted_word(why: NotCounted) -> &'static str {
    match why {
        NotCounted::Cap => "above the cap",
        NotCounted::NotHeld => "not held",
        NotCounted::Errors => "errors",
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
    if run.points.iter().any(|point| point.censored.is_some()) {
        notes.push(CENSORED_NOTE.to_owned());
    }
    if run.points.iter().any(has_intervals) {
        notes.push(INTERVALS_NOTE.to_owned());
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
    let caption = match points.iter().all(|p| p.counts()) {
        _ if points.len() == run.points.len() => "Every load point.",
        true => "First, middle and last load point that counts.",
        false => "First, middle and last load point; none counts.",
    };
    let caption = match points.iter().filter_map(|p| p.censored).next() {
        Some(_) => format!("{caption} {CENSORED_NOTE}"),
        None => caption.to_owned(),
    };
    let mut table = Table::new(caption, columns);
    let mut percentiles: Vec<f64> = all().map(|(p, _)| *p).filter(|p| p.is_finite()).collect();
    percentiles.sort_by(f64::total_cmp);
    percentiles.dedup();
    for percentile in percentiles {
        let mut row = vec![format!("{percentile}")];
        row.extend(points.iter().map(|p| {
            let found = p.response_percentiles.iter().find(|(other, _)| *other == percentile);
            let exact_to = p.censored.map_or(u64::MAX, |censored| censored.response_exact_to_ns);
            let sign = if found.is_some_and(|(_, n)| *n > exact_to) { "≥\u{a0}" } else { "" };
            format!("{sign}{}", unit.text(found.map(|(_, n)| *n as f64)))
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
        match point.timeline.len() > TIMELINE_ROWS_MAX {
            true => format!(
                "Point {} second by second; of several seconds their lowest and highest",
                point.position
            ),
            false => format!("Point {} second by second", point.position),
        },
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
