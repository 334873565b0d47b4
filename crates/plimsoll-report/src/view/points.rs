//! Tables of load points, their percentiles and seconds.

use plimsoll_model::capacity::Figure;
use plimsoll_model::counters::Counter;
use plimsoll_model::reported::ReportedFigure;
use plimsoll_model::result::{NotCounted, PointResult, RunResult, TimeSummary, TimelineSecond};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::clients as clients_text;

use super::errors::class_text;
use super::limits::{has_limits, limit_name};
use super::load_shape::phase_text;
use super::moved::{metric, mib_per_s, ops_unit};
use crate::table::{Rows, Table};
use crate::text::{ABSENT, TimeUnit, count, load, number, percent, three_digits, time};

/// Rows of a timeline's table; the whole of it is in `timeline.csv`.
const TIMELINE_ROWS_MAX: usize = 40;

/// Share of the time a worker had to wait for its core from which it is shown.
const RUN_DELAY_SHOWN_MIN_RATIO: f64 = 0.005;
/// Of the table of points; omitted where a strip below the curve shows the same.
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
    generator's own delays, the sample, other runs and the histogram leave open. p99.9 and max have none.";

pub(super) fn points_table(run: &RunResult) -> Table {
    let caption = match run.suite {
        Some(_) => DUE_NOTE,
        None => "The load points as the other program gave them.",
    };
    let rows = Rows::of_points(caption, &run.points);
    let rows = match has_generator_table(run) {
        true => {
            let rows = time_columns(load_columns(rows, run, &run.points), run, &run.points);
            failed_columns(rows, run, &run.points)
        }
        false => columns(rows, run, &run.points),
    };
    let table = match has_limits(run) {
        true => rows.text(LIMIT_COLUMN, |p| limit_name(&p.limit)).table(),
        false => rows.table(),
    };
    if run.suite.is_none() { table.without_empty_columns() } else { table }
}

/// A ladder's table is wide enough without the generator's own figures.
fn has_generator_table(run: &RunResult) -> bool {
    run.suite.is_some() && run.points.len() > 1
}

/// Health of the generator at each load point of a ladder.
pub(super) fn generator_table(run: &RunResult) -> Table {
    let points = if has_generator_table(run) { &run.points[..] } else { &[] };
    let rows = Rows::of_points("The generator at each load point.", points)
        .figures("point", "", |p| p.position)
        .figures("requested", &run.axis.unit, |p| number(Some(p.requested)));
    generator_columns(rows, points).table()
}

pub(super) fn probes_table(run: &RunResult) -> Table {
    let caption = "Probes of the search for the peak, not part of the ladder";
    let rows = Rows::of_points(caption, &run.probes);
    columns(rows, run, &run.probes).table().without_empty_columns()
}

type PointRows<'p> = Rows<&'p PointResult>;

fn columns<'p>(rows: PointRows<'p>, run: &RunResult, points: &[PointResult]) -> PointRows<'p> {
    let rows = time_columns(load_columns(rows, run, points), run, points);
    failed_columns(generator_columns(rows, points), run, points)
}

fn load_columns<'p>(rows: PointRows<'p>, run: &RunResult, points: &[PointResult]) -> PointRows<'p> {
    let foreign = run.suite.is_none();
    let asks_for_rates = run.axis.unit == ops_unit(run) && !foreign;
    let has = |of: fn(&PointResult) -> bool| points.iter().any(of);
    let unit = ops_unit(run);
    let counts_bytes = metric(run) == Metric::Bytes;
    let has_offered = !counts_bytes || has(|p| p.offered_ops_per_s.is_some());
    rows.figures("point", "", |p| p.position)
        // Where no width of the page hides it.
        .text("valid", |p| (!foreign || !p.valid).then(|| verdict_text(p)))
        .figures_if(has(|p| p.phase.is_some()), ("phase", ""), |p| phase_text(p))
        .figures("requested", &run.axis.unit, |p| match p.offered_ops_per_s {
            // The search begins with all clients at once and no rate.
            None if asks_for_rates => {
                format!("none, {}", clients_text(p.requested)).replace(' ', "\u{a0}")
            }
            _ => number(Some(p.requested)),
        })
        .figures_if(has(|p| p.clients_requested != p.clients_participating), ("clients", ""), |p| {
            clients(p)
        })
        .figures_if(
            has(|p| p.think_s.is_some_and(|used| used != p.requested)),
            ("think time used", "s"),
            |p| number(p.think_s),
        )
        .figures_if(has_offered, ("offered", unit), |p| number(p.offered_ops_per_s))
        .figures_if(counts_bytes, ("achieved", "MiB/s"), |p| mib_per_s(p.achieved_bytes_per_s))
        .figures("achieved", unit, |p| ReportedFigure::achieved(p).map(|rate| rate.rate_text()))
        .figures_if(has(|p| p.score.is_some()), ("score", "tps"), |p| number(p.score))
}

fn clients(point: &PointResult) -> String {
    let part = |n: Option<u32>| count(n.map(u64::from));
    let (taking_part, requested) = (point.clients_participating, point.clients_requested);
    format!("{}\u{a0}of\u{a0}{}", part(taking_part), part(requested))
}

fn time_columns<'p>(rows: PointRows<'p>, run: &RunResult, points: &[PointResult]) -> PointRows<'p> {
    let unit = time_unit(points);
    let service = |p: &&PointResult| unit.figure_text(ReportedFigure::service(p, Figure::Mean));
    let rows = rows.figures_if(caps(run), ("service mean", unit.name()), service);
    let percentiles = [
        ("p50", Figure::P50),
        ("p95", Figure::P95),
        ("p99", Figure::P99),
        ("p99.9", Figure::P999),
        ("max", Figure::Max),
    ];
    let rows = percentiles.into_iter().fold(rows, |rows, (name, figure)| {
        let text = |p: &&PointResult| unit.figure_text(ReportedFigure::response(p, figure));
        rows.figures(name, unit.name(), text)
    });
    let name = match run.suite.is_some() && !points.iter().any(has_intervals) {
        true => "mean\u{a0}±\u{a0}95\u{a0}%",
        false => "mean",
    };
    rows.figures(name, unit.name(), |p| mean(p, unit))
}

fn has_intervals(point: &PointResult) -> bool {
    point.response_interval_ns.is_some() || point.service_interval_ns.is_some()
}

fn generator_columns<'p>(rows: PointRows<'p>, points: &[PointResult]) -> PointRows<'p> {
    let lag_unit = lag_unit(points);
    let unfinished = |p: &PointResult| p.censored.map_or(0, |it| it.unfinished);
    let has_unfinished = points.iter().any(|p| unfinished(p) > 0);
    let delayed = |p: &PointResult| p.generator.run_delay_ratio_max.unwrap_or_default();
    let has_delayed = points.iter().any(|p| delayed(p) >= RUN_DELAY_SHOWN_MIN_RATIO);
    rows.figures("not sent", "", |p| count(p.not_sent))
        .figures_if(has_unfinished, ("unfinished", ""), |p| count(Some(unfinished(p))))
        .figures("generator busy", "without polling", |p| percent(p.generator.cpu_busy_ratio_max))
        .figures_if(has_delayed, ("generator waiting for a core", ""), |p| {
            percent(p.generator.run_delay_ratio_max)
        })
        .figures("send lag p99", lag_unit.name(), |p| {
            let lag = p.send_lag_ns.unwrap_or_default();
            lag_unit.text(lag.p99.map(|n| n as f64))
        })
}

/// Ops that had to be sent again, and ops that failed.
fn failed_columns<'p>(
    rows: PointRows<'p>,
    run: &RunResult,
    points: &[PointResult],
) -> PointRows<'p> {
    let foreign = run.suite.is_none();
    let shown = |counter: Counter| {
        // Suites with a cap measure file servers: that nothing was sent again is of interest too.
        let always = caps(run) && counter == Counter::Retransmissions;
        always || points.iter().any(|p| p.counter(counter).is_some_and(|n| n > 0))
    };
    let counters = Counter::ALL.iter().filter(|counter| shown(**counter));
    let rows = counters.fold(rows, |rows, counter| match counter.columns().1 {
        Some(name) => rows.figures(name, "", |p| count(p.counter(*counter))),
        None => rows,
    });
    rows.figures("errors", "", |p| (!foreign || !p.errors.is_empty()).then(|| errors(p)))
}

/// Does the suite cap the mean service time of the points it counts?
pub(crate) fn caps(run: &RunResult) -> bool {
    run.suite.as_ref().is_some_and(|suite| suite.response_cap_ms.is_some())
}

fn mean(point: &PointResult, unit: TimeUnit) -> String {
    let response = ReportedFigure::response(point, Figure::Mean);
    let Some(mean) = response.or_else(|| ReportedFigure::service(point, Figure::Mean)) else {
        return ABSENT.to_owned();
    };
    let times = if response.is_some() { point.response_ns } else { point.service_ns };
    match times.and_then(|t| t.mean_error).filter(|_| mean.interval.is_none()) {
        Some(error) if !mean.lower_bound => {
            format!("{}\u{a0}±\u{a0}{}", unit.figure_text(Some(mean)), unit.text(Some(error)))
        }
        _ => unit.figure_text(Some(mean)),
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

fn verdict_text(point: &PointResult) -> String {
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
pub const fn not_counted_word(why: NotCounted) -> &'static str {
    match why {
        NotCounted::Cap => "above the cap",
        NotCounted::NotHeld => "not held",
        NotCounted::Errors => "errors",
        NotCounted::ServerLost => "server lost",
    }
}

/// The generator's health as text, for a single point, which makes no curve over load.
pub(super) fn generator_note(run: &RunResult) -> String {
    let [point] = run.points.as_slice() else { return String::new() };
    let health = &point.generator;
    let busy = health.cpu_busy_ratio_max.map(|ratio| {
        let limit = percent(health.cpu_busy_ratio_limit);
        let busy = percent(Some(ratio));
        format!("Busiest worker {busy} of one core, without polling (limit {limit}).")
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
    if table.has_absent() {
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

/// The points whose distribution is worth a line: the first, a middle and the last that count. A
/// run in which none does shows any.
pub(crate) fn selected_points(run: &RunResult) -> Vec<&PointResult> {
    let drawn = |p: &&PointResult| p.response_percentiles.len() > 1;
    let mut points: Vec<_> = run.points.iter().filter(|p| p.counts()).filter(drawn).collect();
    if points.is_empty() {
        points = run.points.iter().filter(drawn).collect();
    }
    let last = points.len().saturating_sub(1);
    let mut chosen = vec![0, last / 2, last];
    chosen.dedup();
    chosen.into_iter().filter_map(|i| points.get(i).copied()).collect()
}

/// The response time a timeline shows: p99, or what there is instead.
pub(crate) fn timeline_time(
    point: &PointResult,
) -> (&'static str, fn(&TimelineSecond) -> Option<u64>) {
    let has =
        |pick: fn(&TimelineSecond) -> Option<u64>| point.timeline.iter().any(|s| pick(s).is_some());
    if has(|s| s.response_p99_ns) {
        ("p99", |s| s.response_p99_ns)
    } else if has(|s| s.response_max_ns) {
        ("longest", |s| s.response_max_ns)
    } else {
        ("p50", |s| s.response_p50_ns)
    }
}

/// What the chart of percentiles draws.
pub(super) fn percentiles_table(run: &RunResult) -> Table {
    let points = selected_points(run);
    let all = || points.iter().flat_map(|p| &p.response_percentiles);
    let unit = TimeUnit::for_largest(all().map(|(_, n)| *n).max().unwrap_or(0) as f64);
    let caption = match points.iter().all(|p| p.counts()) {
        _ if points.len() == run.points.len() => "Every load point.",
        true => "First, middle and last load point that counts.",
        false => "First, middle and last load point; none counts.",
    };
    let caption = match points.iter().filter_map(|p| p.censored).next() {
        Some(_) => format!("{caption} {CENSORED_NOTE}"),
        None => caption.to_owned(),
    };
    let mut percentiles: Vec<f64> = all().map(|(p, _)| *p).filter(|p| p.is_finite()).collect();
    percentiles.sort_by(f64::total_cmp);
    percentiles.dedup();
    let begin = Rows::new(caption, percentiles).figures("percentile", "%", f64::to_string);
    let all = points.iter().fold(begin, |rows, point| {
        rows.figures(&load(point.requested, &run.axis), unit.name(), |percentile| {
            let entry = point.response_percentiles.iter().find(|(other, _)| other == percentile);
            let exact_to =
                point.censored.map_or(u64::MAX, |censored| censored.response_exact_to_ns);
            let sign = if entry.is_some_and(|(_, n)| *n > exact_to) { "≥\u{a0}" } else { "" };
            format!("{sign}{}", unit.text(entry.map(|(_, n)| *n as f64)))
        })
    });
    all.table()
}

/// The figures behind a timeline: each second, or the range within spans of seconds.
pub(crate) fn timeline_table(point: &PointResult) -> Table {
    let (name, time) = timeline_time(point);
    let largest = point.timeline.iter().filter_map(time).max().unwrap_or(0);
    let unit = TimeUnit::for_largest(largest as f64);
    let several = match point.timeline.len() > TIMELINE_ROWS_MAX {
        true => "; of several seconds their lowest and highest",
        false => "",
    };
    let spans = timeline_spans(&point.timeline, TIMELINE_ROWS_MAX);
    let ends = |span: &'_ [TimelineSecond]| Some((span.first()?.second, span.last()?.second));
    Rows::new(format!("Point {} second by second{several}", point.position), spans)
        .text("seconds", |span| match ends(span)? {
            (first, last) if first == last => Some(first.to_string()),
            (first, last) => Some(format!("{first}–{last}")),
        })
        .text("phase", |span| Some(span.first()?.phase.replace('_', "-")))
        .figures("throughput", "ops/s", |span| {
            let rates = || span.iter().map(|s| s.ops_per_s);
            range(rates().reduce(f64::min), rates().reduce(f64::max), |v| number(Some(v)))
        })
        .figures(&format!("response {name}"), unit.name(), |span| {
            let times = || span.iter().filter_map(time).map(|n| unit.convert(n as f64));
            range(times().reduce(f64::min), times().reduce(f64::max), three_digits)
        })
        .table()
}

/// Seconds grouped so that at most `spans_max` remain: what a drawing or a table has room for.
fn timeline_spans(seconds: &[TimelineSecond], spans_max: usize) -> Vec<&[TimelineSecond]> {
    seconds
        .chunk_by(|a, b| a.phase == b.phase)
        .flat_map(|phase| phase.chunks(seconds.len().div_ceil(spans_max.max(1)).max(1)))
        .collect()
}

fn range(low: Option<f64>, high: Option<f64>, text: impl Fn(f64) -> String) -> String {
    let (Some(low), Some(high)) = (low.map(&text), high.map(&text)) else {
        return ABSENT.to_owned();
    };
    if low == high { low } else { format!("{low}–{high}") }
}
