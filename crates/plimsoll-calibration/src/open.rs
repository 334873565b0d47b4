//! One open load: what client and server recorded, by its schedule.

use crate::queueing::Queue;
use crate::queueing::delayed::Delays;
use crate::queueing::scatter::{Plan, scatter};
use plimsoll_engine::pacer::Arrivals;
use plimsoll_model::calibrated::{CalibratedSpec, ServiceLaw};
use plimsoll_model::certificate::{Judged, QueueCase, Reading};
use plimsoll_model::result::TimeIntervals;
use plimsoll_model::suite::Gaps;
use plimsoll_model::units::{Nanos, OpsPerSec};
use plimsoll_servers::log::{Scheduled, truths_ns};
use plimsoll_servers::station::Station;

use super::cross_check;
use super::judge::{self, Pauses};
use super::readings::{ScheduleSide, Sides, readings};
use super::server_log::ServerLog;
use super::wire::Wire;
use crate::trial::Seen;
use plimsoll_protocol::host::HostError;

/// A load, open or closed, and its server.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) wire: Wire,
    pub(crate) spec: &'a CalibratedSpec,
    /// Utilisation and rate.
    pub(crate) load: (f64, f64),
}

/// What came of it; `way` is what the way there and back costs.
pub(crate) fn open_case(
    asked: Asked<'_>,
    seen: &Seen,
    (log, way): (&ServerLog, &Delays),
) -> Result<QueueCase, HostError> {
    let Asked { wire, spec, load: (_, rate) } = asked;
    // Where nobody waits there is no queue to say anything of.
    let queue = Queue::of(rate, spec.service, spec.servers);
    let waits = matches!(spec.service, ServiceLaw::Exponential(_) | ServiceLaw::Lognormal { .. });
    if queue.is_none() && waits {
        return Err(no_points());
    }
    let plan = Plan {
        rate_per_s: rate,
        service: spec.service,
        servers: spec.servers,
        warm_up_s: seen.record.warm_up_ns.as_secs_f64(),
        window_s: seen.record.measured_ns.as_secs_f64(),
    };
    let schedule = schedule((spec.seed, Gaps::Exponential), rate, seen);
    let scatter = queue.map(|_| scatter(&plan));
    let schedule_side = queue.as_ref().zip(scatter.as_ref()).map(|(queue, scatter)| {
        let responses_s = scheduled_s(spec, &schedule, (seen, log));
        ScheduleSide { responses_s, queue, scatter }
    });
    let ops = scheduled_ops(wire, spec.seed, &schedule, seen);
    let stated = seen.stated.zip(truths_s(&schedule, &ops, (seen, log)));
    let mut case = asked.case(seen, (log, way), schedule_side, stated);
    case.queue = queue.map_or_else(|| service_name(spec.service), |queue| queue.name());
    case.ops_scheduled = Some(in_window(&schedule, seen).count() as u64);
    case.witness = Some(cross_check::cross_check(wire, &ops, seen, log));
    Ok(case)
}

/// The ops of a schedule, on the clock of the server's log, with the names that it has for them.
pub(crate) fn scheduled_ops(
    wire: Wire,
    seed: u64,
    schedule: &[u64],
    seen: &Seen,
) -> Vec<Scheduled> {
    let origin_ns = seen.origin_ns();
    let key = |place: usize| wire.its_own().map(|proper| (proper.key)(seed, place as u64));
    let op =
        |(place, due_ns): (usize, &u64)| Scheduled { due_ns: origin_ns + due_ns, key: key(place) };
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

impl Asked<'_> {
    /// Both sides, by what they wrote down in the same window.
    pub(crate) fn case(
        &self,
        seen: &Seen,
        (log, way): (&ServerLog, &Delays),
        schedule: Option<ScheduleSide<'_>>,
        stated: Option<(TimeIntervals, Vec<f64>)>,
    ) -> QueueCase {
        let Self { wire, spec, load: (utilisation, rate) } = *self;
        let served_s = log.responses_s(seen.window_ns);
        let (ops_served, ops_due) = (served_s.len() as u64, seen.due());
        let late = log.late(seen.window_ns);
        let times = &seen.times;
        let pauses = Pauses::of(&[&times.send_lag, &times.receive_lag, &late], utilisation);
        // What delayed the sends, the replies and the reads of this very run.
        let own = [&times.send_lag, &late, &times.receive_lag];
        let own = own.map(|times| Delays::beyond(times, Nanos::ZERO));
        let rate_error_ratio = seen.done_ratio() - 1.0;
        let served_error_ratio = ops_served as f64 / ops_due.max(1) as f64 - 1.0;
        let allowed = judge::rate_allowed_ratio(utilisation, spec.servers, ops_due);
        let at = (&pauses, rate, ops_due);
        let counted = match seen.troubles() {
            0 => judge::count(rate_error_ratio, allowed, at),
            _ => Judged::Broken,
        };
        let served = judge::count(served_error_ratio, judge::RATE_ERROR_MAX_RATIO, at);
        let readings = readings(Sides {
            measured: &times.response,
            served_s,
            delays: &[way, &own[0], &own[1], &own[2]],
            pauses,
            schedule,
            stated,
        });
        QueueCase {
            protocol: wire.name().to_owned(),
            queue: String::new(),
            service: spec.service.to_string(),
            servers: spec.servers,
            utilisation,
            rate_ops_per_s: rate,
            seconds: seen.record.measured_ns.as_secs_f64(),
            ops_due,
            ops_scheduled: None,
            ops_done: seen.record.totals.done_in_window,
            ops_served,
            server_late_p99_ns: Nanos(late.value_at_quantile(0.99)),
            rate_error_ratio,
            rate_allowed_ratio: allowed,
            rate: counted,
            served_error_ratio,
            served,
            run: judge::run_verdict(&seen.reasons),
            witness: None,
            open_because: open_because([counted, served], &readings, &pauses),
            readings,
        }
    }
}

fn open_because(counts: [Judged; 2], readings: &[Reading], pauses: &Pauses) -> Vec<String> {
    let open = |judged: &Judged| *judged == Judged::NotJudged;
    let of = |reading: &Reading| {
        [Some(reading.tight), reading.schedule.map(|schedule| schedule.on_schedule)]
    };
    let any = counts.iter().any(open)
        || readings.iter().flat_map(of).flatten().any(|judged| open(&judged));
    any.then(|| pauses.sentence()).into_iter().collect()
}

/// When the ops of the point were due, from its start, up to the end of the window. It is the
/// schedule of the run, since both follow from the seed.
pub(crate) fn schedule((seed, gaps): (u64, Gaps), rate: f64, seen: &Seen) -> Vec<u64> {
    let Some(rate) = OpsPerSec::new(rate) else { return Vec::new() };
    let until = seen.record.warm_up_ns + seen.record.measured_ns;
    let dues = Arrivals::new(rate, gaps, seed, 0, 1).map(|(_, due)| due);
    dues.take_while(|due| *due < until).map(|due| due.0).collect()
}

fn in_window<'a>(schedule: &'a [u64], seen: &Seen) -> impl Iterator<Item = usize> + 'a {
    let warm_up_ns = seen.record.warm_up_ns.0;
    (0..schedule.len()).filter(move |place| schedule[*place] >= warm_up_ns)
}

/// Response times of the same requests, had each arrived at the instant it was due.
fn scheduled_s(
    spec: &CalibratedSpec,
    schedule: &[u64],
    (seen, log): (&Seen, &ServerLog),
) -> Vec<f64> {
    let earlier = log.arrived_before(seen.origin_ns());
    let mut station = Station::after(spec, earlier as u64);
    let passages: Vec<_> = schedule.iter().map(|due_ns| station.arrive(*due_ns)).collect();
    let response_s =
        |place: usize| (passages[place].departure_ns - passages[place].arrival_ns) as f64 / 1e9;
    in_window(schedule, seen).map(response_s).collect()
}

/// Times from due to the reply handed to the kernel, of the ops that were due in the window;
/// `None` when the server's log has other ops than the schedule.
fn truths_s(
    schedule: &[u64],
    ops: &[Scheduled],
    (seen, log): (&Seen, &ServerLog),
) -> Option<Vec<f64>> {
    let truths = truths_ns(log.arrived_in_point(seen), ops)?;
    Some(in_window(schedule, seen).map(|place| truths[place] as f64 / 1e9).collect())
}

pub(crate) fn no_points() -> HostError {
    HostError::unusable("a run of the calibration has no load point; keep it with --out and look")
}
