//! One open load: what client and server recorded, by its schedule.

use crate::queueing::Queue;
use crate::queueing::delayed::Delays;
use crate::queueing::scatter::{Plan, scatter};
use plimsoll_engine::pacer::Arrivals;
use plimsoll_model::calibrated::{CalibratedSpec, ServiceLaw};
use plimsoll_model::certificate::{JudgementOutcome, QueueCase, Reading};
use plimsoll_model::result::TimeIntervals;
use plimsoll_model::suite::InterArrival;
use plimsoll_model::units::{Nanos, OpsPerSec};
use plimsoll_servers::log::{Scheduled, truths_ns};
use plimsoll_servers::queue::ServiceQueue;

use super::cross_check;
use super::judgement::{self, Pauses};
use super::readings::{ScheduleSide, Sides, readings};
use super::server_log::ServerLog;
use super::wire::Wire;
use crate::trial::Observation;
use plimsoll_protocol::host::HostError;

/// A load, open or closed, and its server.
#[derive(Clone, Copy)]
pub(crate) struct CaseLoad<'a> {
    pub(crate) wire: Wire,
    pub(crate) spec: &'a CalibratedSpec,
    /// Utilisation and rate.
    pub(crate) load: (f64, f64),
}

/// The result of one open load; `round_trip` has the cost of the round trip.
pub(crate) fn open_case(
    case_load: CaseLoad<'_>,
    observation: &Observation,
    (log, round_trip): (&ServerLog, &Delays),
) -> Result<QueueCase, HostError> {
    let CaseLoad { wire, spec, load: (_, rate) } = case_load;
    // Where nobody waits there is no queue to compare with.
    let queue = Queue::from_rate(rate, spec.service, spec.servers);
    let waits = matches!(spec.service, ServiceLaw::Exponential(_) | ServiceLaw::Lognormal { .. });
    if queue.is_none() && waits {
        return Err(no_points());
    }
    let plan = Plan {
        rate_per_s: rate,
        service: spec.service,
        servers: spec.servers,
        warm_up_s: observation.record.warm_up_ns.as_secs_f64(),
        window_s: observation.record.measured_ns.as_secs_f64(),
    };
    let schedule = schedule((spec.seed, InterArrival::Exponential), rate, observation);
    let scatter = queue.map(|_| scatter(&plan));
    let schedule_side = queue.as_ref().zip(scatter.as_ref()).map(|(queue, scatter)| {
        let responses_s = scheduled_s(spec, &schedule, (observation, log));
        ScheduleSide { responses_s, queue, scatter }
    });
    let ops = scheduled_ops(wire, spec.seed, &schedule, observation);
    let reported = observation.reported.zip(truths_s(&schedule, &ops, (observation, log)));
    let mut case = case_load.case(observation, (log, round_trip), schedule_side, reported);
    case.queue = queue.map_or_else(|| service_name(spec.service), |queue| queue.name());
    case.ops_scheduled = Some(in_window(&schedule, observation).count() as u64);
    case.witness = Some(cross_check::cross_check(wire, &ops, observation, log));
    Ok(case)
}

/// The ops of a schedule, on the clock of the server's log, with the names that the log uses.
pub(crate) fn scheduled_ops(
    wire: Wire,
    seed: u64,
    schedule: &[u64],
    observation: &Observation,
) -> Vec<Scheduled> {
    let origin_ns = observation.origin_ns();
    let key = |index: usize| wire.its_own().map(|proper| (proper.key)(seed, index as u64));
    let op =
        |(index, due_ns): (usize, &u64)| Scheduled { due_ns: origin_ns + due_ns, key: key(index) };
    schedule.iter().enumerate().map(op).collect()
}

/// `constant 1.00 ms`, `0.80 to 1.20 ms`.
pub(crate) fn service_name(service: ServiceLaw) -> String {
    match service {
        ServiceLaw::Uniform(least, most) => {
            format!("{:.2} to {:.2} ms", least.as_secs_f64() * 1e3, most.as_secs_f64() * 1e3)
        }
        _ => format!("constant {:.2} ms", service.mean_s() * 1e3),
    }
}

impl CaseLoad<'_> {
    /// Client and server, by their records of the same window.
    pub(crate) fn case(
        &self,
        observation: &Observation,
        (log, round_trip): (&ServerLog, &Delays),
        schedule: Option<ScheduleSide<'_>>,
        reported: Option<(TimeIntervals, Vec<f64>)>,
    ) -> QueueCase {
        let Self { wire, spec, load: (utilisation, rate) } = *self;
        let served_s = log.responses_s(observation.window_ns);
        let (ops_served, ops_due) = (served_s.len() as u64, observation.due());
        let late = log.late(observation.window_ns);
        let times = &observation.times;
        let pauses =
            Pauses::from_delays(&[&times.send_lag, &times.receive_lag, &late], utilisation);
        // The delays of the sends, the replies and the reads of this run.
        let own = [&times.send_lag, &late, &times.receive_lag];
        let own = own.map(|times| Delays::beyond(times, Nanos::ZERO));
        let rate_error_ratio = observation.done_ratio() - 1.0;
        let served_error_ratio = ops_served as f64 / ops_due.max(1) as f64 - 1.0;
        let allowed = judgement::rate_allowed_ratio(utilisation, spec.servers, ops_due);
        let at = (&pauses, rate, ops_due);
        let counted = match observation.troubles() {
            0 => judgement::count(rate_error_ratio, allowed, at),
            _ => JudgementOutcome::Broken,
        };
        let served = judgement::count(served_error_ratio, judgement::RATE_ERROR_MAX_RATIO, at);
        let readings = readings(Sides {
            measured: &times.response,
            served_s,
            delays: &[round_trip, &own[0], &own[1], &own[2]],
            pauses,
            schedule,
            reported,
        });
        QueueCase {
            protocol: wire.name().to_owned(),
            queue: String::new(),
            service: spec.service.to_string(),
            servers: spec.servers,
            utilisation,
            rate_ops_per_s: rate,
            seconds: observation.record.measured_ns.as_secs_f64(),
            ops_due,
            ops_scheduled: None,
            ops_done: observation.record.totals.done_in_window,
            ops_served,
            server_late_p99_ns: Nanos(late.value_at_quantile(0.99)),
            rate_error_ratio,
            rate_allowed_ratio: allowed,
            rate: counted,
            served_error_ratio,
            served,
            run: judgement::run_verdict(&observation.reasons),
            witness: None,
            open_because: open_because([counted, served], &readings, &pauses),
            readings,
        }
    }
}

fn open_because(
    counts: [JudgementOutcome; 2],
    readings: &[Reading],
    pauses: &Pauses,
) -> Vec<String> {
    let open = |outcome: &JudgementOutcome| *outcome == JudgementOutcome::NotJudged;
    let of = |reading: &Reading| {
        [Some(reading.tight), reading.schedule.map(|schedule| schedule.on_schedule)]
    };
    let any = counts.iter().any(open)
        || readings.iter().flat_map(of).flatten().any(|outcome| open(&outcome));
    any.then(|| pauses.sentence()).into_iter().collect()
}

/// When the ops of the point were due, from its start, up to the end of the window. It is the
/// schedule of the run, since both follow from the seed.
pub(crate) fn schedule(
    (seed, inter_arrival): (u64, InterArrival),
    rate: f64,
    observation: &Observation,
) -> Vec<u64> {
    let Some(rate) = OpsPerSec::new(rate) else { return Vec::new() };
    let until = observation.record.warm_up_ns + observation.record.measured_ns;
    let dues = Arrivals::new(rate, inter_arrival, seed, 0, 1).map(|(_, due)| due);
    dues.take_while(|due| *due < until).map(|due| due.0).collect()
}

fn in_window<'a>(
    schedule: &'a [u64],
    observation: &Observation,
) -> impl Iterator<Item = usize> + 'a {
    let warm_up_ns = observation.record.warm_up_ns.0;
    (0..schedule.len()).filter(move |index| schedule[*index] >= warm_up_ns)
}

/// Response times of the same requests, had each arrived at the instant it was due.
fn scheduled_s(
    spec: &CalibratedSpec,
    schedule: &[u64],
    (observation, log): (&Observation, &ServerLog),
) -> Vec<f64> {
    let earlier = log.arrived_before(observation.origin_ns());
    let mut queue = ServiceQueue::after(spec, earlier as u64);
    let passages: Vec<_> = schedule.iter().map(|due_ns| queue.arrive(*due_ns)).collect();
    let response_s =
        |index: usize| (passages[index].completion_ns - passages[index].arrival_ns) as f64 / 1e9;
    in_window(schedule, observation).map(response_s).collect()
}

/// Times from due to the reply handed to the kernel, of the ops that were due in the window;
/// `None` when the server's log has other ops than the schedule.
fn truths_s(
    schedule: &[u64],
    ops: &[Scheduled],
    (observation, log): (&Observation, &ServerLog),
) -> Option<Vec<f64>> {
    let truths = truths_ns(log.arrived_in_point(observation), ops)?;
    Some(in_window(schedule, observation).map(|index| truths[index] as f64 / 1e9).collect())
}

pub(crate) fn no_points() -> HostError {
    HostError::unusable("a run of the calibration has no load point; keep it with --out and look")
}
