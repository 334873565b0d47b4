//! Compares the figures of Plimsoll with servers of known behaviour. A case runs a load, compares
//! what client, schedule and server recorded, and judges the differences. [`Bench`] makes the runs.
//!
//! | module | content |
//! | --- | --- |
//! | [`queueing`] | queueing theory of servers with a known law |
//! | `cases` | the cases on the calibrated server |
//! | `protocols` | the cases over other protocols |
//! | `punctual` | the highest rate on time |
//! | `open`, `readings` | one open load, and its times by statistic |
//! | `cross_check` | the check against the server's log |
//! | [`judgement`] | the limits of the judgements |
//! | [`trial`], [`wire`], [`server_log`] | a load, its protocol, the server's log |

mod cases;
mod cross_check;
pub mod judgement;
mod open;
mod protocols;
mod punctual;
pub mod queueing;
mod readings;
pub mod server_log;
pub mod trial;
pub mod wire;

use std::path::Path;

use plimsoll_model::certificate::{
    ClosedCase, Floor, PunctualRate, QueueCase, StallCase, Statistic,
};
use plimsoll_model::units::{Nanos, grouped};
use plimsoll_protocol::host::HostError;
use plimsoll_servers::ServerProcess;

pub use server_log::ServerLog;
pub use trial::{Observation, Pattern, Trial};
pub use wire::Wire;

/// Makes runs against servers of known behaviour.
pub trait Bench {
    /// Schedules and service times follow from it.
    fn seed(&self) -> u64;
    /// The protocol of the calibrated server proper.
    fn proper(&self) -> Wire;
    /// A run against a server of its own, and that server's log.
    fn run(&self, trial: &Trial, spec: &str) -> Result<(Vec<Observation>, ServerLog), HostError>;
    /// Starts a server behind a queue of known law.
    fn start(&self, wire: Wire, spec: &str, log: Option<&Path>)
    -> Result<ServerProcess, HostError>;
    /// A run against a running server.
    fn run_on(&self, trial: &Trial, server: &ServerProcess) -> Result<Vec<Observation>, HostError>;
}

/// How long each case runs.
pub struct Timing {
    pub(crate) warm_up: Nanos,
    pub(crate) floor: Nanos,
    pub(crate) window: Nanos,
    pub(crate) closed: Nanos,
    pub(crate) stall: Nanos,
    pub(crate) protocol_warm_up: Nanos,
    pub(crate) protocol_constant: Nanos,
    pub(crate) protocol_queue: Nanos,
    pub(crate) probe_warm_up: Nanos,
    pub(crate) probe: Nanos,
}

/// About eight minutes.
pub const FULL: Timing = Timing {
    warm_up: Nanos::from_secs(2),
    floor: Nanos::from_secs(10),
    window: Nanos::from_secs(30),
    closed: Nanos::from_secs(20),
    stall: Nanos::from_secs(15),
    protocol_warm_up: Nanos::from_secs(2),
    protocol_constant: Nanos::from_secs(10),
    protocol_queue: Nanos::from_secs(20),
    probe_warm_up: Nanos::from_millis(500),
    probe: Nanos::from_secs(2),
};

/// Under two minutes.
pub const QUICK: Timing = Timing {
    warm_up: Nanos::from_millis(700),
    floor: Nanos::from_secs(3),
    window: Nanos::from_secs(3),
    closed: Nanos::from_secs(3),
    stall: Nanos::from_secs(5),
    protocol_warm_up: Nanos::from_millis(800),
    protocol_constant: Nanos::from_secs(2),
    protocol_queue: Nanos::from_secs(3),
    probe_warm_up: Nanos::from_millis(200),
    probe: Nanos::from_millis(800),
};

impl Timing {
    /// Everything shorter, for tests of the program.
    pub fn scaled(&self, scale: f64) -> Self {
        let short = |span: Nanos| Nanos::from_secs_f64(span.as_secs_f64() * scale);
        Self {
            warm_up: short(self.warm_up),
            floor: short(self.floor),
            window: short(self.window),
            closed: short(self.closed),
            stall: short(self.stall),
            protocol_warm_up: short(self.protocol_warm_up),
            protocol_constant: short(self.protocol_constant),
            protocol_queue: short(self.protocol_queue),
            probe_warm_up: short(self.probe_warm_up),
            probe: short(self.probe),
        }
    }
}

/// Quiet hosts stay below it, also virtual machines.
const FLOOR_P99_QUIET: Nanos = Nanos::from_millis(1);

/// The results of all cases.
pub struct Findings {
    /// The round trip.
    pub floor: Floor,
    /// Open loads on queues.
    pub queues: Vec<QueueCase>,
    /// Clients that wait and think.
    pub closed: ClosedCase,
    /// A server that pauses.
    pub stall: StallCase,
    /// The highest rate on time.
    pub punctual: PunctualRate,
}

/// Runs all cases, one after the other; `report` is called with the name of each.
pub fn find(
    bench: &dyn Bench,
    timing: &Timing,
    wires: &[Wire],
    report: &mut dyn FnMut(&str),
) -> Result<Findings, HostError> {
    report("the way there and back: a server where nobody waits");
    let round_trip = cases::round_trip(bench, timing)?;
    let mut queues = Vec::new();
    for index in 0..cases::queue_count() {
        report(&format!("{} at 30, 60 and 90 % of its capacity", cases::queue_name(index)));
        queues.extend(cases::queue(bench, timing, index, &round_trip)?);
    }
    report("a worker that looks for replies now and then");
    queues.push(cases::unread(bench, timing, &round_trip)?);
    for wire in wires {
        report(&format!("over {}: a constant delay, and a queue", wire.name()));
        queues.extend(protocols::cases(bench, timing, (*wire, &round_trip))?);
    }
    report("clients that wait and think");
    let closed = cases::closed(bench, timing, &round_trip.floor)?;
    report("a server that pauses for 1.4 s");
    let stall = cases::stall(bench, timing)?;
    let punctual = punctual::search(bench, timing, |rate| {
        report(&format!("does it send on time at {} ops/s?", grouped(rate)));
    })?;
    Ok(Findings { floor: round_trip.floor, queues, closed, stall, punctual })
}

/// Warnings that follow from the results.
pub fn concerns(findings: &Findings) -> Vec<String> {
    let mut concerns = Vec::new();
    if findings.floor.ops == 0 {
        concerns.push("no op came back from a server where nobody waits".to_owned());
    }
    let p99 = findings.floor.under(Statistic::P99);
    if p99 > FLOOR_P99_QUIET {
        concerns.push(format!(
            "there and back takes {p99} at p99: the host was busy with something else, and what \
             is allowed is wider by as much, or left unjudged; make another certificate when it is quiet"
        ));
    }
    if findings.punctual.highest_ops_per_s.is_none() {
        concerns.push(format!(
            "no rate was sent on time (send lag p99 below {}): is the host busy with something \
             else?",
            findings.punctual.send_lag_p99_max_ns
        ));
    }
    concerns
}
