//! One load point: its figures, before its verdict. Its charts, the sessions that clients kept, and
//! where the processor time of each host went.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::assignment::Load;
use plimsoll_model::consumers::{Consumer, ConsumerWork, HostConsumers, HostWork, InterruptRate};
use plimsoll_model::counters::Counter;
use plimsoll_model::event::{
    Phase, PointRecord, ResourceUse, RunStarted, ShapedPoint, TICK, TimeKind, WorkerHealth,
    WorkerTotals,
};
use plimsoll_model::finding::{Finding, Rule};
use plimsoll_model::outcome::ErrorSample;
use plimsoll_model::result::{
    Censored, CompoundCalls, NotCounted, OpResult, PhaseResult, PointResult, ResponseHeatmap,
    TargetResult, TimelineSecond,
};
use plimsoll_model::sessions::{SessionStep, Sessions};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::NANOS_PER_SECOND;

use crate::coarse::{Coarse, STEPS, lower_edge_ns};
use crate::health::{agent_results, busy_ratio_between, generator_result};
use crate::raw::{PointTimes, PointView, Slice};
use crate::times::{histogram, percentile_series, summarise};

/// Error samples a point shows; more would bury the report.
const ERROR_SAMPLES_MAX: usize = 10;
/// First ops of a point whose mean is meaningful; the very first meets cold caches.
const FIRST_OPS_MIN: u64 = 3;

/// The position of a point, in its findings too, until the neighbouring points are known.
pub(crate) const UNPLACED: u32 = 0;

/// The figures of a point. Its `valid` is false until the rules have been checked.
pub(crate) fn point_result(
    started: &RunStarted,
    view: &PointView<'_>,
    times: Option<&PointTimes>,
) -> PointResult {
    let record = view.record;
    let totals = &record.totals;
    let closed = matches!(record.load, Load::Closed { .. });
    let mut result = PointResult {
        position: UNPLACED,
        stem: Some(record.point.stem()),
        requested: requested(record),
        phase: record.phase.as_deref().map(phase_result),
        offered_ops_per_s: match record.load {
            Load::Open { .. } => per_second(record, totals.due),
            Load::Closed { .. } => None,
        },
        achieved_ops_per_s: per_second(record, totals.done_in_window),
        think_s: match &record.load {
            Load::Closed { think, axis_think_ns: Some(_), .. } => Some(think.mean.as_secs_f64()),
            Load::Closed { .. } | Load::Open { .. } => None,
        },
        iterations: (closed && totals.pieces < totals.done_in_window / 2).then_some(totals.pieces),
        clients_requested: Some(record.load.clients()),
        clients_participating: Some(totals.clients_participating),
        seconds: Some(record.measured_ns.as_secs_f64()),
        ops: op_results(started, record, times),
        sessions: sessions(started, record, times),
        compound_calls: compound_calls(record, times),
        errors: totals.errors.clone(),
        unexpected: totals.unexpected.clone(),
        error_samples: error_samples(view),
        censored: censored(totals),
        first_service_ns: first_service_ns(totals),
        arrived_stamped_ratio: arrived_stamped_ratio(totals),
        nonconformities: totals.nonconformities.clone(),
        agents: agent_results(record),
        generator: generator_result(record),
        timeline: timeline(record, times),
        per_target: per_target(record),
        resources: [record.resources.clone(), bursts(totals, closed)].concat(),
        data_set_bytes: record.data_set_bytes,
        server_core_users: record.server_core_users.clone().unwrap_or_default(),
        consumers: host_consumers(record),
        late: totals.late.clone(),
        failed_bytes: Some(totals.failed_bytes).filter(|bytes| *bytes > 0),
        ..PointResult::default()
    };
    for counter in Counter::ALL {
        *result.counter_mut(*counter) = Some(totals.counter(*counter));
    }
    if let Some(times) = times {
        let total = times.window_total();
        result.response_ns = Some(summarise(&total.response, &times.batches(|s| s.response)));
        result.service_ns = Some(summarise(&total.service, &times.batches(|s| s.service)));
        let receive_lag = summarise(&total.receive_lag, &[]);
        result.receive_lag_ns = (receive_lag.n > 0).then_some(receive_lag);
        result.send_lag_ns = Some(summarise(&total.send_lag, &times.batches(|s| s.send_lag)));
        result.generator.lateness_ns =
            Some(summarise(&total.lateness, &times.batches(|s| s.lateness)));
        result.response_percentiles = percentile_series(&total.response);
        result.response_histogram = histogram(&total.response);
        result.response_over_time = response_heatmap(record, times);
    }
    result
}

/// Requested load, on the axis. A number of clients that changes has a mean.
fn requested(record: &PointRecord) -> f64 {
    record.phase.as_ref().map_or_else(|| record.load.requested(), |shaped| shaped.phase.mean)
}

fn phase_result(shaped: &ShapedPoint) -> PhaseResult {
    PhaseResult {
        name: shaped.phase.name.clone(),
        kind: shaped.phase.kind,
        from: shaped.phase.from,
        to: shaped.phase.to,
        start_s: shaped.phase.start_ns.as_secs_f64(),
        is_steady: shaped.is_steady(),
    }
}

/// Throughput did not follow the requested load. Ops without a reply leave a point out, too, and
/// are no evidence of that.
pub(crate) fn missed_load(point: &PointResult) -> bool {
    let unfinished = |finding: &Finding| matches!(finding.rule, Rule::Unfinished { .. });
    point.not_counted == Some(NotCounted::NotHeld)
        && !point.not_counted_because.as_ref().is_some_and(unfinished)
}

/// `None` where every op was sent and ended, or the bundle is older than the ages of unfinished
/// ops.
pub(crate) fn censored(totals: &WorkerTotals) -> Option<Censored> {
    Some(Censored {
        unsent: totals.not_sent,
        unfinished: totals.unfinished,
        response_exact_to_ns: totals.response_age_min?.0,
        service_exact_to_ns: totals.service_age_min.map(|age| age.0),
    })
}

fn first_service_ns(totals: &WorkerTotals) -> Option<f64> {
    let enough = totals.first_ops >= FIRST_OPS_MIN;
    enough.then(|| totals.first_service_ns_total as f64 / totals.first_ops as f64)
}

/// `None` where no reply came, or the bundle is older than arrivals.
fn arrived_stamped_ratio(totals: &WorkerTotals) -> Option<f64> {
    let all = totals.arrived_stamped + totals.arrived_bounded;
    (all > 0).then(|| totals.arrived_stamped as f64 / all as f64)
}

pub(crate) fn per_second(record: &PointRecord, count: u64) -> Option<f64> {
    let seconds = record.measured_ns.as_secs_f64();
    (seconds > 0.0).then(|| count as f64 / seconds)
}

/// `None` where there were none.
fn compound_calls(record: &PointRecord, times: Option<&PointTimes>) -> Option<CompoundCalls> {
    let totals = &record.totals;
    let window = times.map(PointTimes::window_total);
    let of = |kind: TimeKind| kind.times_in(window.as_ref()?).map(|times| summarise(times, &[]));
    (totals.compounds > 0).then(|| CompoundCalls {
        compounds_per_s: per_second(record, totals.compounds),
        operations_per_s: per_second(record, totals.operations),
        opens_per_s: per_second(record, totals.opens),
        open_ns: of(TimeKind::Open),
        close_ns: of(TimeKind::Close),
        slot_wait_ns: of(TimeKind::SlotWait),
    })
}

fn op_results(
    started: &RunStarted,
    record: &PointRecord,
    times: Option<&PointTimes>,
) -> BTreeMap<String, OpResult> {
    let mut results: BTreeMap<String, OpResult> = BTreeMap::new();
    let mix = record.totals.mix();
    let ended: u64 = mix.values().sum();
    for (name, counts) in &record.totals.ops {
        let result = results.entry(name.clone()).or_default();
        result.count = counts.count;
        let of_mix = mix.get(name.as_str()).copied().unwrap_or(0);
        result.share_ratio = (ended > 0).then(|| of_mix as f64 / ended as f64);
        result.errors = counts.errors;
        result.expected_failures = counts.expected_failures;
    }
    let window = times.map(PointTimes::window).unwrap_or_default();
    for (name, op) in started.op_names.0.iter().zip(window) {
        let result = results.entry(name.clone()).or_default();
        result.response_ns = Some(summarise(&op.response, &[]));
        result.service_ns = Some(summarise(&op.service, &[]));
        let streamed = |kind: TimeKind| kind.times_in(op).map(|times| summarise(times, &[]));
        result.page_ns = streamed(TimeKind::Page);
        result.first_piece_ns = streamed(TimeKind::FirstByte);
        result.piece_gap_ns = streamed(TimeKind::ChunkGap);
    }
    let shares = started.op_shares.as_deref().unwrap_or_default();
    let whole: f64 = shares.iter().sum();
    for (name, share) in started.op_names.0.iter().zip(shares).filter(|_| whole > 0.0) {
        results.entry(name.clone()).or_default().wanted_ratio = Some(share / whole);
    }
    results
}

/// The first sample of each class, then the others, up to the maximum.
fn error_samples(view: &PointView<'_>) -> Vec<String> {
    let mut classes = BTreeSet::new();
    let (first, others): (Vec<&ErrorSample>, Vec<&ErrorSample>) =
        view.samples.iter().partition(|sample| classes.insert(&sample.class));
    let samples = first.into_iter().chain(others);
    let texts = samples.map(|s| format!("{} ({}): {}", s.op, s.class, s.detail));
    let lost = view.lost.iter().map(|reason| format!("client lost: {reason}"));
    texts.chain(lost).take(ERROR_SAMPLES_MAX).collect()
}

fn per_target(record: &PointRecord) -> Vec<TargetResult> {
    let targets = record.totals.per_target.iter();
    targets
        .map(|totals| TargetResult {
            target: totals.target.clone(),
            achieved_ops_per_s: per_second(record, totals.done_in_window).unwrap_or_default(),
            errors: totals.errors,
            bytes_read: totals.bytes_read,
            bytes_written: totals.bytes_written,
        })
        .collect()
}

/// A few late replies in a shorter piece of the drain are no rate: it is left out.
const RATE_MIN_NS: u64 = NANOS_PER_SECOND / 10;

/// Ops that were due and had not ended this long after the start, where that was counted.
fn outstanding_ops(record: &PointRecord, at_ns: u64) -> Option<u64> {
    record.phase.as_ref()?;
    let of_worker = |worker: &Vec<WorkerHealth>| {
        let mut end_ns = 0;
        let last = worker.iter().take_while(|health| {
            end_ns += health.wall_ns;
            end_ns <= at_ns
        });
        last.last().map_or(Some(0), |it| Some(it.backlog_ops + it.in_flight_ops?))
    };
    record.workers.iter().map(of_worker).sum()
}

/// The seconds of a point in order; one that holds a border between phases has two entries.
fn timeline(record: &PointRecord, times: Option<&PointTimes>) -> Vec<TimelineSecond> {
    let mut start_ns = 0u64;
    let mut requested = record.phase.iter().flat_map(|shaped| &shaped.requested).copied();
    let entries = record.seconds.iter().filter_map(|second| {
        let end_ns = start_ns.saturating_add(second.length_ns);
        let summary = times.and_then(|t| t.second(second.second, second.phase));
        let succeeded = second.done.saturating_sub(second.errors);
        let entry = TimelineSecond {
            second: second.second,
            phase: second.phase.as_str().to_owned(),
            ops_per_s: match second.length_ns {
                0 => 0.0,
                length => succeeded as f64 * NANOS_PER_SECOND as f64 / length as f64,
            },
            errors: second.errors,
            response_p50_ns: summary.and_then(|s| s.response_p50_ns),
            response_p99_ns: summary.and_then(|s| s.response_p99_ns),
            response_max_ns: summary.and_then(|s| s.response_max_ns),
            generator_busy_ratio: busy_ratio_between(record, start_ns, end_ns),
            requested: match second.phase {
                Phase::Measure => requested.next(),
                Phase::WarmUp | Phase::Drain => None,
            },
            outstanding_ops: outstanding_ops(record, end_ns),
        };
        start_ns = end_ns;
        let is_end = second.phase == Phase::Drain && second.length_ns < RATE_MIN_NS;
        (!is_end || second.errors > 0).then_some(entry)
    });
    entries.collect()
}

/// Spans of a point: ten points with that many fill the width of a page.
const SPANS_MAX: usize = 40;
/// Buckets of the slices that are merged into one here: two a doubling, near seven a power of ten.
const MERGED: u16 = STEPS as u16 / 2;

/// Response times across the window; `None` where it has none.
fn response_heatmap(record: &PointRecord, times: &PointTimes) -> Option<ResponseHeatmap> {
    heatmap(record, times, |slice| Some(&slice.response))
}

/// How times of one kind lay within the window; `None` where it has none.
pub(crate) fn heatmap<'t>(
    record: &PointRecord,
    times: &'t PointTimes,
    of: impl Fn(&'t Slice) -> Option<&'t Coarse>,
) -> Option<ResponseHeatmap> {
    let counts = |slice| of(slice).map(Coarse::counts).unwrap_or_default();
    let slices: Vec<_> = times.slices().map(|(start, slice)| (start, counts(slice))).collect();
    let begin = slices.first()?.0;
    let merged =
        || slices.iter().flat_map(|(_, counts)| counts.iter()).map(|(bucket, _)| bucket / MERGED);
    let (low, high) = (merged().min()?, merged().max()?);
    let spans = slices.chunks(slices.len().div_ceil(SPANS_MAX));
    let mut starts_ns = Vec::with_capacity(SPANS_MAX + 1);
    let mut counts = Vec::with_capacity(SPANS_MAX);
    for span in spans {
        let mut row = vec![0; usize::from(high - low) + 1];
        for (bucket, count) in span.iter().flat_map(|(_, counts)| counts.iter()) {
            row[usize::from(bucket / MERGED - low)] += u64::from(*count);
        }
        starts_ns.extend(span.first().map(|(start, _)| start.saturating_sub(begin).0));
        counts.push(row);
    }
    let last = starts_ns.last().copied().unwrap_or_default();
    starts_ns.push(record.measured_ns.0.max(last + 1));
    let edges = (low..=high + 1).map(|bucket| lower_edge_ns(bucket * MERGED));
    Some(ResponseHeatmap { starts_ns, edges_ns: edges.collect(), counts })
}

/// Number of lines of the table.
const SESSION_STEPS: u64 = 10;

/// `None` where the clients keep no sessions.
fn sessions(
    started: &RunStarted,
    record: &PointRecord,
    times: Option<&PointTimes>,
) -> Option<Sessions> {
    let plan = started.sessions.as_ref()?;
    let op = started.op_names.0.iter().position(|name| *name == plan.op)?;
    let (totals, requested) = (&record.totals, record.load.clients());
    let mut slices: Vec<&Coarse> = times.map(|t| t.warm_up_of_op(op).collect()).unwrap_or_default();
    // Sessions that took longer than the warm-up.
    let late = totals.ops.get(&plan.op).map_or(0, |counts| counts.ended_in_window);
    let opened = slices.iter().map(|slice| slice.n).sum::<u64>() + late;
    let window = times.and_then(|times| times.window().get(op)).filter(|_| late > 0);
    let late = window.map(|times| {
        let mut late = Coarse::from_times(&times.service);
        TimeKind::FromWarmUp.times_in(times).into_iter().for_each(|times| late.add(times));
        late
    });
    slices.extend(late.iter().filter(|late| late.n > 0));
    let mut errors: BTreeMap<String, u64> = totals.errors.clone();
    for (class, count) in &totals.warm_up_errors {
        *errors.entry(class.clone()).or_default() += count;
    }
    Some(Sessions {
        asked: requested,
        opened,
        held: opened.min(u64::from(totals.clients_participating)),
        lost: requested.saturating_sub(totals.clients_participating),
        errors,
        steps: steps(&slices, u64::from(requested)),
    })
}

/// Tenths of the requested sessions. A slice belongs to the tenth in which its first session is.
fn steps(slices: &[&Coarse], requested: u64) -> Vec<SessionStep> {
    let mut tenths: BTreeMap<u64, (u64, Vec<&Coarse>)> = BTreeMap::new();
    let mut opened = 0;
    for slice in slices {
        let tenth = opened * SESSION_STEPS / requested.max(1);
        tenths.entry(tenth).or_insert((opened, Vec::new())).1.push(slice);
        opened += slice.n;
    }
    tenths.into_values().map(|(from, slices)| step(from, &slices)).collect()
}

fn step(from: u64, slices: &[&Coarse]) -> SessionStep {
    let mut all = Coarse::default();
    slices.iter().for_each(|slice| all.merge(slice));
    let at = |share: f64| all.quantile_ns(share).unwrap_or(0.0);
    SessionStep { from, to: from + all.n, p50_ns: at(0.5), p99_ns: at(0.99), max_ns: at(1.0) }
}

/// Of a load point, by host.
fn host_consumers(record: &PointRecord) -> Vec<HostConsumers> {
    let ops_per_s = record.totals.done_in_window as f64 / record.measured_ns.as_secs_f64();
    let hosts = record.host_work.iter().filter(|work| work.elapsed_ns > 0);
    hosts.map(|work| of_host(work, ops_per_s)).collect()
}

fn of_host(work: &HostWork, ops_per_s: f64) -> HostConsumers {
    let elapsed_s = seconds(work.elapsed_ns);
    let capacity_s = elapsed_s * f64::from(work.processors.max(1));
    let interrupts = work.interrupts.iter().map(|it| {
        let per_s = it.count as f64 / elapsed_s;
        let per_op = Some(per_s / ops_per_s).filter(|ratio| ratio.is_finite());
        InterruptRate { name: it.name.clone(), kind: it.kind, count: it.count, per_s, per_op }
    });
    let all = work.consumers.iter().chain([&work.others]);
    let attributed_ns = all.fold(0u64, |sum, it| sum.saturating_add(it.cpu_ns()));
    HostConsumers {
        source: work.source.clone(),
        seconds: elapsed_s,
        processors: work.processors,
        busy_s: seconds(work.busy_ns),
        irq_s: seconds(work.irq_ns),
        softirq_s: seconds(work.softirq_ns),
        not_seen_s: seconds(work.busy_ns.saturating_sub(attributed_ns)),
        forks_per_s: work.forks.map(|forks| forks as f64 / elapsed_s),
        consumers: work.consumers.iter().map(|it| consumer(it, capacity_s)).collect(),
        others: consumer(&work.others, capacity_s),
        interrupts: interrupts.collect(),
    }
}

fn consumer(work: &ConsumerWork, capacity_s: f64) -> Consumer {
    Consumer {
        name: work.name.clone(),
        kind: work.kind,
        ended: work.ended,
        processes: work.processes,
        user_s: seconds(work.user_ns),
        system_s: seconds(work.system_ns),
        share_ratio: seconds(work.cpu_ns()) / capacity_s,
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / NANOS_PER_SECOND as f64
}

/// Fewer ticks show nothing.
const TICKS_MIN: usize = 40;
/// With fewer ops a tick, chance alone makes them differ.
const OPS_MIN: f64 = 20.0;
/// The slowest quarter of the ticks has at most this part of the fastest quarter's ops. A normal
/// law has that where its deviation is a third of its mean.
const SLOW_MAX_RATIO: f64 = 0.4;
/// Changes between the slower half of the ticks and the faster one, a second.
const CHANGES_MIN_PER_S: f64 = 1.0;
/// Where the load itself paused, at most this part of it was sent in the slower half.
const SENT_MIN_RATIO: f64 = 0.7;

/// Name of the reported rate among a point's resources: ops a second in the slowest quarter of
/// ticks.
pub(crate) const SLOW_RATE: &str = "load.slow_rate";
pub(crate) const FAST_RATE: &str = "load.fast_rate";

/// How far apart slow and fast ticks are, if they are. `closed`: clients send when they are
/// answered, so the send rate carries no information of its own.
fn bursts(totals: &WorkerTotals, closed: bool) -> Vec<ResourceUse> {
    let done = &totals.done_by_tick;
    let sum: f64 = done.iter().map(|&n| f64::from(n)).sum();
    if done.len() < TICKS_MIN || sum < OPS_MIN * done.len() as f64 {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..done.len()).collect();
    order.sort_by_key(|tick| done[*tick]);
    let (slower, faster) = order.split_at(order.len() / 2);
    let (slow, fast) = (&slower[..slower.len() / 2], &faster[faster.len() / 2..]);
    let (slow, fast) = (mean(done, slow), mean(done, fast));
    let median = done[faster[0]];
    let changes = done.windows(2).filter(|pair| (pair[0] < median) != (pair[1] < median)).count();
    let per_second = NANOS_PER_SECOND as f64 / TICK.0 as f64;
    let within_seconds = changes as f64 >= CHANGES_MIN_PER_S * done.len() as f64 / per_second;
    let sent = &totals.sent_by_tick;
    let load_went_on = closed || mean(sent, slower) >= SENT_MIN_RATIO * mean(sent, faster);
    if slow > SLOW_MAX_RATIO * fast || !within_seconds || !load_went_on {
        return Vec::new();
    }
    let use_ = |(name, rate)| {
        let rate = rate * per_second;
        ResourceUse::of_window(name, "1/s", rate, rate)
    };
    [(SLOW_RATE, slow), (FAST_RATE, fast)].map(use_).into()
}

fn mean(counts: &[u32], ticks: &[usize]) -> f64 {
    let of_ticks = ticks.iter().filter_map(|tick| counts.get(*tick));
    of_ticks.map(|&n| f64::from(n)).sum::<f64>() / ticks.len().max(1) as f64
}

/// The headline figure of one point.
pub(crate) fn throughput(metric: Metric, point: &PointResult) -> Option<f64> {
    match metric {
        Metric::Ops | Metric::Logons => point.achieved_ops_per_s,
        Metric::Bytes => bytes_per_s(point),
    }
}

/// Application bytes moved per second, in both directions.
pub(crate) fn bytes_per_s(point: &PointResult) -> Option<f64> {
    let bytes = point.bytes_read? + point.bytes_written?;
    point.seconds.filter(|seconds| *seconds > 0.0).map(|seconds| bytes as f64 / seconds)
}

#[cfg(test)]
mod tests;
