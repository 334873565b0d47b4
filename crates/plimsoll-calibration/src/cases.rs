//! The cases, each a run against a server of its own.

use crate::queueing::delayed::Delays;
use crate::queueing::finite::Loop;
use crate::queueing::scatter::figure;
use crate::queueing::stall::Stalled;
use plimsoll_model::assignment::Pacing;
use plimsoll_model::calibrated::{CalibratedSpec, ServiceLaw};
use plimsoll_model::certificate::{
    ClosedCase, CrossCheck, Floor, JudgementOutcome, QueueCase, StallCase, Statistic,
};
use plimsoll_model::suite::InterArrival;
use plimsoll_model::units::{Nanos, span_text};

use super::cross_check;
use super::judgement::{self, Pauses};
use super::open::{CaseLoad, no_points, open_case, schedule, scheduled_ops};
use super::server_log::ServerLog;
use crate::trial::{Observation, Pattern, Trial};
use crate::{Bench, Timing};
use plimsoll_protocol::host::HostError;

/// Rate of the floor: slow enough that everybody sleeps in between.
const FLOOR_OPS_PER_S: f64 = 2_000.0;
/// A server that answered at once would do so before the client is asleep, and hide that it has to
/// wake up twice: to send, and for the reply.
const FLOOR_SERVICE: Nanos = Nanos::from_millis(1);
/// Far more than are ever busy: nobody waits.
const FLOOR_SERVERS: u32 = 64;
/// Rate of the worker that polls on a grid of 0.4 ms.
const UNREAD_OPS_PER_S: f64 = 1_000.0;
/// As wide as the grid: although sent on it, replies come at any time between two polls, on a fast
/// host and on a slow one.
const UNREAD_SERVICE: ServiceLaw =
    ServiceLaw::Uniform(Nanos::from_micros(800), Nanos::from_micros(1_200));
/// The queues, and their utilisations.
const QUEUES: [(ServiceLaw, u32); 2] = [
    (ServiceLaw::Exponential(Nanos::from_millis(1)), 4),
    (ServiceLaw::Constant(Nanos::from_micros(500)), 1),
];
const UTILISATIONS: [f64; 3] = [0.3, 0.6, 0.9];
const CLOSED_CLIENTS: u32 = 16;
const CLOSED_SERVICE: Nanos = Nanos::from_millis(1);
const CLOSED_SERVERS: u32 = 4;
/// As in the suite.
const CLOSED_THINK: Nanos = Nanos::from_millis(5);
/// Length of the stall: 560 ops that are due in it wait, and 8 connections must not hide that.
const STALL: Nanos = Nanos::from_millis(1_400);
const STALL_OPS_PER_S: f64 = 400.0;
const STALL_SERVICE: Nanos = Nanos::from_micros(200);
const STALL_CLIENTS: u32 = 8;

/// The round trip.
pub(crate) struct RoundTrip {
    pub(crate) floor: Floor,
    pub(crate) delays: Delays,
}

/// A server where every request takes the same and nobody waits, at a low rate: the measured time
/// beyond that is the round trip.
pub(crate) fn round_trip(bench: &dyn Bench, timing: &Timing) -> Result<RoundTrip, HostError> {
    let trial = Trial::new(
        "floor",
        bench.proper(),
        (Pattern::Poisson, vec![FLOOR_OPS_PER_S]),
        [timing.warm_up, timing.floor],
    );
    let spec = format!("service=const:{},servers={FLOOR_SERVERS}", span_text(FLOOR_SERVICE));
    let (observations, _) = bench.run(&trial, &spec)?;
    let Observation { times, reasons, .. } = only(&observations)?;
    let run = judgement::run_verdict(reasons);
    let floor = judgement::floor(FLOOR_OPS_PER_S, FLOOR_SERVICE, &times.response, run);
    Ok(RoundTrip { floor, delays: Delays::beyond(&times.response, FLOOR_SERVICE) })
}

pub(crate) const fn queue_count() -> usize {
    QUEUES.len()
}

/// Name in Kendall's notation.
pub(crate) fn queue_name(index: usize) -> &'static str {
    ["M/M/4", "M/D/1"][index]
}

/// Open loads on queue number `index`.
pub(crate) fn queue(
    bench: &dyn Bench,
    timing: &Timing,
    index: usize,
    round_trip: &RoundTrip,
) -> Result<Vec<QueueCase>, HostError> {
    let (service, servers) = QUEUES[index];
    let spec = CalibratedSpec { service, servers, stall: None, seed: bench.seed() };
    let capacity = spec.capacity_ops_per_s().unwrap_or_default();
    let trial = Trial::new(
        format!("queue-{}", index + 1),
        bench.proper(),
        (Pattern::Poisson, UTILISATIONS.iter().map(|utilisation| utilisation * capacity).collect()),
        [timing.warm_up, timing.window],
    );
    let (observations, log) = bench.run(&trial, &spec.to_string())?;
    let pairs = UTILISATIONS.iter().zip(trial.points.iter().zip(&observations));
    pairs
        .map(|(utilisation, (rate, observation))| {
            let case_load =
                CaseLoad { wire: bench.proper(), spec: &spec, load: (*utilisation, *rate) };
            open_case(case_load, observation, (&log, &round_trip.delays))
        })
        .collect()
}

/// A worker that polls for replies on a grid only, so that they lie unread, and ops wait to be
/// sent, for a known reason: its reported lateness is compared with the server's log.
pub(crate) fn unread(
    bench: &dyn Bench,
    timing: &Timing,
    round_trip: &RoundTrip,
) -> Result<QueueCase, HostError> {
    let trial = Trial {
        pacing: Some(Pacing::Coalesce),
        ..Trial::new(
            "unread",
            bench.proper(),
            (Pattern::Poisson, vec![UNREAD_OPS_PER_S]),
            [timing.warm_up, timing.floor],
        )
    };
    let service = UNREAD_SERVICE;
    let spec = CalibratedSpec { service, servers: FLOOR_SERVERS, stall: None, seed: bench.seed() };
    let (observations, log) = bench.run(&trial, &spec.to_string())?;
    let utilisation = UNREAD_OPS_PER_S * service.mean_s() / f64::from(FLOOR_SERVERS);
    let case_load =
        CaseLoad { wire: bench.proper(), spec: &spec, load: (utilisation, UNREAD_OPS_PER_S) };
    let mut case = open_case(case_load, only(&observations)?, (&log, &round_trip.delays))?;
    case.queue = format!("{}, read on a grid,", case.queue);
    Ok(case)
}

/// Clients that wait and think.
pub(crate) fn closed(
    bench: &dyn Bench,
    timing: &Timing,
    floor: &Floor,
) -> Result<ClosedCase, HostError> {
    let trial = Trial::new(
        "closed",
        bench.proper(),
        (Pattern::Closed, vec![f64::from(CLOSED_CLIENTS)]),
        [timing.warm_up, timing.closed],
    );
    let service = ServiceLaw::Exponential(CLOSED_SERVICE);
    let spec = CalibratedSpec { service, servers: CLOSED_SERVERS, stall: None, seed: bench.seed() };
    let (observations, log) = bench.run(&trial, &spec.to_string())?;
    let observation = only(&observations)?;
    let late = log.late(observation.window_ns);
    let pauses = Pauses::from_delays(
        &[&late, &observation.times.receive_lag, &observation.times.send_lag],
        0.6,
    );
    let served_s = log.responses_s(observation.window_ns);
    let mut case = closed_case(observation, (&served_s, &pauses), floor.under(Statistic::Mean));
    case.witness = Some(cross_check::counts(observation, &log, observation.due()));
    Ok(case)
}

fn closed_case(
    observation: &Observation,
    (served_s, pauses): (&[f64], &Pauses),
    floor: Nanos,
) -> ClosedCase {
    let Observation { record, times, .. } = observation;
    let totals = &record.totals;
    let ops_per_s = totals.done_in_window as f64 / record.measured_ns.as_secs_f64();
    let think_s = totals.think_ns_total as f64 / 1e9 / totals.pieces.max(1) as f64;
    let response_s = times.response.mean() / 1e9;
    let error_ratio = ops_per_s * (response_s + think_s) / f64::from(CLOSED_CLIENTS) - 1.0;
    let response_ns = Nanos::from_secs_f64(response_s);
    let served = figure(&mut served_s.to_vec(), Statistic::Mean).map(Nanos::from_secs_f64);
    let paused = Nanos::from_secs_f64(pauses.mean_s());
    let span = served.map(|truth| judgement::Span {
        truth,
        delayed: truth + floor,
        paused: truth + paused,
    });
    let law = Loop {
        clients: CLOSED_CLIENTS,
        servers: CLOSED_SERVERS,
        service_s: CLOSED_SERVICE.as_secs_f64(),
        think_s: CLOSED_THINK.as_secs_f64(),
        delay_s: floor.as_secs_f64(),
    };
    let spans_s = (record.warm_up_ns.as_secs_f64(), record.measured_ns.as_secs_f64());
    let (low, high) = judgement::throughputs(&law, floor, spans_s);
    let think_allowed = judgement::think_allowed(CLOSED_THINK, totals.pieces);
    let think_ns = Nanos::from_secs_f64(think_s);
    let think_error = think_ns.0.abs_diff(CLOSED_THINK.0);
    ClosedCase {
        clients: CLOSED_CLIENTS,
        ops_per_s,
        response_ns,
        think_ns,
        error_ratio,
        troubles: observation.troubles(),
        held: judgement::closed_holds(error_ratio) && observation.troubles() == 0,
        served_ns: served.unwrap_or_default(),
        allowed_ns: span.map_or(Nanos::ZERO, |span| span.allowed(response_ns)),
        tight: span.map_or(JudgementOutcome::Broken, |span| span.evaluate(response_ns)),
        theory_ops_per_s: law.throughput_per_s(),
        theory_interval_ops_per_s: (low, high),
        theory: judgement::throughput(ops_per_s, (low, high), (served.unwrap_or_default(), floor)),
        think_allowed_ns: think_allowed,
        think: JudgementOutcome::from_bool(think_error <= think_allowed.0),
        run: judgement::run_verdict(&observation.reasons),
        witness: None,
    }
}

/// A server that pauses: ops due meanwhile must show their wait.
pub(crate) fn stall(bench: &dyn Bench, timing: &Timing) -> Result<StallCase, HostError> {
    let trial = Trial::new(
        "stall",
        bench.proper(),
        (Pattern::Even { clients: STALL_CLIENTS }, vec![STALL_OPS_PER_S]),
        [timing.warm_up, timing.stall],
    );
    let after = timing.warm_up + Nanos(timing.stall.0 / 4);
    let spec = format!(
        "service=const:{},servers=1,stall={}@{}",
        span_text(STALL_SERVICE),
        span_text(STALL),
        span_text(after)
    );
    let (observations, log) = bench.run(&trial, &spec)?;
    let observation = only(&observations)?;
    let inter_arrival_s = 1.0 / STALL_OPS_PER_S;
    let first_ns = log.stall_ns.and_then(|(from, _)| Some(log.first_arrival_from(from)? - from));
    let law = Stalled {
        stall_s: STALL.as_secs_f64(),
        inter_arrival_s,
        service_s: STALL_SERVICE.as_secs_f64(),
        first_s: first_ns
            .map_or(inter_arrival_s / 2.0, |ns| Nanos(ns).as_secs_f64().min(inter_arrival_s)),
    };
    let expected_s = law.quantile_s(0.99, observation.due());
    let p99_ns = judgement::client_ns(&observation.times.response, Statistic::P99);
    let error_ratio = p99_ns.as_secs_f64() / expected_s - 1.0;
    Ok(StallCase {
        stall_ns: STALL,
        rate_ops_per_s: STALL_OPS_PER_S,
        ops: observation.due(),
        p99_ns,
        service_p99_ns: judgement::client_ns(&observation.times.service, Statistic::P99),
        expected_p99_ns: Nanos::from_secs_f64(expected_s),
        error_ratio,
        troubles: observation.troubles(),
        // Without a pause in the server's log there is nothing to compare it with.
        held: judgement::stall_holds(error_ratio)
            && observation.troubles() == 0
            && first_ns.is_some(),
        run: judgement::run_verdict(&observation.reasons),
        witness: Some(stall_cross_check(bench, observation, &log)),
    })
}

fn stall_cross_check(bench: &dyn Bench, observation: &Observation, log: &ServerLog) -> CrossCheck {
    let (wire, seed) = (bench.proper(), bench.seed());
    let schedule = schedule((seed, InterArrival::Uniform), STALL_OPS_PER_S, observation);
    cross_check::cross_check(
        wire,
        &scheduled_ops(wire, seed, &schedule, observation),
        observation,
        log,
    )
}

/// The only load point of a run.
pub(crate) fn only(observations: &[Observation]) -> Result<&Observation, HostError> {
    observations.first().ok_or_else(no_points)
}

#[cfg(test)]
mod tests {
    use crate::queueing::Queue;
    use crate::queueing::scatter::{Plan, scatter};
    use plimsoll_engine::pacer::Arrivals;
    use plimsoll_model::units::OpsPerSec;
    use plimsoll_servers::queue::ServiceQueue;

    use super::*;

    /// Response times of the server's own queue at these instants.
    fn served(spec: &str, arrivals: impl Iterator<Item = u64>) -> Vec<f64> {
        let mut queue = ServiceQueue::new(&spec.parse().unwrap());
        let passages = arrivals.map(|at| queue.arrive(at));
        passages.map(|p| (p.completion_ns - p.arrival_ns) as f64 / 1e9).collect()
    }

    /// The schedule of the instrument itself.
    fn poisson(rate_per_s: f64, count: usize) -> impl Iterator<Item = u64> {
        let arrivals =
            Arrivals::new(OpsPerSec::new(rate_per_s).unwrap(), InterArrival::Exponential, 11, 0, 1);
        arrivals.map(|(_, due)| due.0).take(count)
    }

    #[test]
    fn the_servers_queue_lies_within_the_scatter_of_the_theory() {
        for (text, servers, rate) in [("exp:1ms", 4, 2_400.0), ("const:500us", 1, 1_200.0)] {
            let service: ServiceLaw = text.parse().unwrap();
            let plan = Plan { rate_per_s: rate, service, servers, warm_up_s: 0.5, window_s: 4.0 };
            let queue = Queue::from_rate(rate, service, servers).unwrap();
            let skipped = (rate * 0.5) as usize;
            let spec = format!("service={text},servers={servers},seed=3");
            let mut served = served(&spec, poisson(rate, skipped + (rate * 4.0) as usize));
            served.drain(..skipped);
            let scatter = scatter(&plan);
            for statistic in Statistic::ALL {
                let actual = figure(&mut served, statistic).unwrap();
                let (low, high) = scatter.interval_s(statistic).unwrap();
                assert!(
                    (low..=high).contains(&actual),
                    "{text} {statistic:?} {actual} {low} {high}"
                );
                let exact = queue.response_s(statistic);
                assert!((low..=high).contains(&exact), "{text} {statistic:?} theory {exact}");
            }
        }
    }

    #[test]
    fn the_stall_of_the_servers_queue_is_the_one_that_was_derived() {
        let inter_arrival_ns = 2_500_000;
        let arrivals = (0..6_000_u64).map(|i| 700 + i * inter_arrival_ns);
        // From the first request on: between the 1,000th arrival and the next.
        let stall_after_ns = 999 * inter_arrival_ns + 1_000_000;
        let spec = format!("service=const:200us,servers=1,stall=1400ms@{stall_after_ns}ns");
        let mut responses = served(&spec, arrivals);
        let law =
            Stalled { stall_s: 1.4, inter_arrival_s: 2.5e-3, service_s: 0.2e-3, first_s: 1.5e-3 };
        for (k, response) in responses[1_000..2_000].iter().enumerate() {
            assert!((response - law.response_s(k as u64)).abs() < 1e-8, "{k}: {response}");
        }
        let p99 = figure(&mut responses, Statistic::P99).unwrap();
        assert!((p99 - law.quantile_s(0.99, 6_000)).abs() < 1e-8, "{p99}");
    }
}
