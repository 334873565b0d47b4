//! The other protocols: their reference servers behind a queue of known law. A constant delay is
//! compared with the round trip of the calibrated server, and a queue with the round trip that this
//! constant delay showed over the same protocol.

use crate::queueing::delayed::Delays;
use plimsoll_model::calibrated::{CalibratedSpec, ServiceLaw};
use plimsoll_model::certificate::QueueCase;
use plimsoll_model::units::Nanos;

use super::cases::{RoundTrip, only};
use super::cross_check;
use super::open::{CaseLoad, open_case, service_name};
use super::server_log::ServerLog;
use super::wire::Wire;
use crate::trial::{Observation, Pattern, Trial};
use crate::{Bench, Timing};
use plimsoll_protocol::host::HostError;

/// Of the constant delay, and far more servers than are ever busy.
const CONSTANT: Nanos = Nanos::from_millis(1);
const CONSTANT_SERVERS: u32 = 64;
const CONSTANT_OPS_PER_S: f64 = 500.0;
/// Of the queue: M/D/1 at 60 %.
const SERVICE: Nanos = Nanos::from_micros(500);
const UTILISATION: f64 = 0.6;
/// SMB clients, each with one READ at a time: nobody waits, or two of six do.
const CONSTANT_CLIENTS: u32 = 2;
const QUEUE_CLIENTS: u32 = 6;
const QUEUE_SERVERS: u32 = 4;
const QUEUE_MEAN: Nanos = Nanos::from_millis(1);

/// Both cases over one protocol.
pub(crate) fn cases(
    bench: &dyn Bench,
    timing: &Timing,
    (wire, round_trip): (Wire, &RoundTrip),
) -> Result<Vec<QueueCase>, HostError> {
    let constant = spec(ServiceLaw::Constant(CONSTANT), CONSTANT_SERVERS, bench);
    let run = |name: &str, spec: &CalibratedSpec, point: f64, window: Nanos| {
        let name = format!("{}-{name}", wire.name());
        let spans = [timing.protocol_warm_up, window];
        let trial = Trial::new(name, wire, (Pattern::OfSuite, vec![point]), spans);
        bench.run(&trial, &spec.to_string())
    };
    let is_closed = wire.waits();
    let point = if is_closed { f64::from(CONSTANT_CLIENTS) } else { CONSTANT_OPS_PER_S };
    let (observations, log) = run("constant", &constant, point, timing.protocol_constant)?;
    let observation = only(&observations)?;
    let floor = Delays::beyond(&observation.times.response, CONSTANT);
    let first = match is_closed {
        true => closed_case((wire, &constant), point, observation, (&log, &round_trip.delays)),
        false => {
            let utilisation = point * CONSTANT.as_secs_f64() / f64::from(CONSTANT_SERVERS);
            let case_load = CaseLoad { wire, spec: &constant, load: (utilisation, point) };
            open_case(case_load, observation, (&log, &round_trip.delays))?
        }
    };
    let (law, servers) = match is_closed {
        true => (ServiceLaw::Exponential(QUEUE_MEAN), QUEUE_SERVERS),
        false => (ServiceLaw::Constant(SERVICE), 1),
    };
    let queue = spec(law, servers, bench);
    let rate = UTILISATION * queue.capacity_ops_per_s().unwrap_or_default();
    let point = if is_closed { f64::from(QUEUE_CLIENTS) } else { rate };
    let (observations, log) = run("queue", &queue, point, timing.protocol_queue)?;
    let observation = only(&observations)?;
    let second = match is_closed {
        true => closed_case((wire, &queue), point, observation, (&log, &floor)),
        false => {
            let case_load = CaseLoad { wire, spec: &queue, load: (UTILISATION, rate) };
            open_case(case_load, observation, (&log, &floor))?
        }
    };
    Ok(vec![first, second])
}

fn spec(service: ServiceLaw, servers: u32, bench: &dyn Bench) -> CalibratedSpec {
    CalibratedSpec { service, servers, stall: None, seed: bench.seed() }
}

/// Clients that wait for each reply. Only they know when an op was due, so there is no schedule to
/// compare the server's log with.
fn closed_case(
    (wire, spec): (Wire, &CalibratedSpec),
    clients: f64,
    observation: &Observation,
    sides: (&ServerLog, &Delays),
) -> QueueCase {
    let seconds = observation.record.measured_ns.as_secs_f64();
    let rate = observation.record.totals.done_in_window as f64 / seconds;
    let utilisation = rate * spec.service.mean_s() / f64::from(spec.servers);
    let load = ((utilisation * 100.0).round() / 100.0, rate);
    let mut case = CaseLoad { wire, spec, load }.case(observation, sides, None, None);
    let log = sides.0;
    let mut checked = cross_check::counts(observation, log, observation.due());
    // The time when a reply of the SMB server is handed to the kernel is unknown.
    checked.replies = None;
    case.witness = Some(checked);
    case.queue = match spec.service {
        ServiceLaw::Constant(_) => service_name(spec.service),
        _ => format!("M/M/{}//{clients}", spec.servers),
    };
    case
}
