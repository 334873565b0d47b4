//! One load point: its figures, before its verdict.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::assignment::Load;
use plimsoll_model::counters::Counter;
use plimsoll_model::event::{PointRecord, RunStarted, TimeKind, WorkerTotals};
use plimsoll_model::finding::{Finding, Rule};
use plimsoll_model::outcome::ErrorSample;
use plimsoll_model::result::{Censored, NotCounted, OpResult, PointResult, TargetResult};

use crate::agents::agent_results;
use crate::bursts::bursts;
use crate::consumers::host_consumers;
use crate::health::generator_result;
use crate::raw::{PointTimes, PointView};
use crate::sessions::sessions;
use crate::timeline::{response_over_time, timeline};
use crate::times::{percentile_series, summarise};

/// Error samples a point shows; more would bury the report.
const ERROR_SAMPLES_MAX: usize = 10;
/// First ops of a point whose mean says something; the very first meets caches that are cold.
const FIRST_OPS_MIN: u64 = 3;

/// The position of a point, in its findings too, until the points beside it are known.
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
        requested: record.load.requested(),
        offered_ops_per_s: match record.load {
            Load::Open { .. } => per_second(record, totals.due),
            Load::Closed { .. } => None,
        },
        achieved_ops_per_s: per_second(record, totals.done_in_window),
        think_s: match &record.load {
            Load::Closed { think, axis_think_ns: Some(_), .. } => Some(think.mean.as_secs_f64()),
            Load::Closed { .. } | Load::Open { .. } => None,
        },
        clients_requested: Some(record.load.clients()),
        clients_participating: Some(totals.clients_participating),
        seconds: Some(record.measured_ns.as_secs_f64()),
        ops: op_results(started, record, times),
        sessions: sessions(started, record, times),
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
        result.response_over_time = response_over_time(record, times);
    }
    result
}

/// Throughput did not follow the load that was asked for. Ops without a reply leave a point out, too,
/// and say nothing of that.
pub(crate) fn missed_load(point: &PointResult) -> bool {
    let unfinished = |finding: &Finding| matches!(finding.rule, Rule::Unfinished { .. });
    point.not_counted == Some(NotCounted::NotHeld)
        && !point.not_counted_because.as_ref().is_some_and(unfinished)
}

/// `None` where every op was sent and ended, or the bundle is older than the ages of the others.
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

fn per_second(record: &PointRecord, count: u64) -> Option<f64> {
    let seconds = record.measured_ns.as_secs_f64();
    (seconds > 0.0).then(|| count as f64 / seconds)
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
        let streamed = |kind: TimeKind| kind.of(op).map(|times| summarise(times, &[]));
        result.first_piece_ns = streamed(TimeKind::FirstByte);
        result.piece_gap_ns = streamed(TimeKind::ChunkGap);
    }
    let wanted = started.op_shares.as_deref().unwrap_or_default();
    let whole: f64 = wanted.iter().sum();
    for (name, share) in started.op_names.0.iter().zip(wanted).filter(|_| whole > 0.0) {
        results.entry(name.clone()).or_default().wanted_ratio = Some(share / whole);
    }
    results
}

/// The first sample of each class, then the others, as far as there is room.
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

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::testing::RunBuilder;
    use plimsoll_model::event::{JournalRecord, OpCounts};

    #[test]
    fn each_op_has_its_share_of_the_ops_and_the_methods_beside_it() {
        let mut run = RunBuilder::open(&[500.0]);
        let started = run.started_mut();
        started.op_names.0 = vec!["get".to_owned(), "put".to_owned()];
        // Weights, as the method prints them: their sum need not be 100.
        started.op_shares = Some(vec![74.0, 25.0]);
        for record in &mut run.journal {
            if let JournalRecord::PointFinished(point) = record {
                let counts = OpCounts { count: 5_000, ..OpCounts::default() };
                point.totals.ops.insert("put".to_owned(), counts);
            }
        }
        let ops = &analyse(&run.raw()).points[0].ops;
        assert_eq!((ops["get"].share_ratio, ops["put"].share_ratio), (Some(0.75), Some(0.25)));
        assert_eq!(ops["put"].wanted_ratio, Some(25.0 / 99.0));
    }

    #[test]
    fn ops_of_a_free_mix_have_no_wanted_share() {
        let ops = &analyse(&RunBuilder::open(&[500.0]).raw()).points[0].ops;
        assert_eq!((ops["get"].share_ratio, ops["get"].wanted_ratio), (Some(1.0), None));
    }
}
