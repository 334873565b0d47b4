//! A load as users give it, in ops/s, bytes/s or users, and what it comes to in ops/s.
//!
//! Interactive law: X = N / (R + Z), with the response time R of the server that is sized. Z is the
//! pause before each op; a think time before several ops is divided among them.

use std::fmt;

use plimsoll_model::size::{SizeRequest, Sizing};
use plimsoll_model::suite::{Metric, Origins};
use plimsoll_model::units::{Nanos, grouped, parse_span};

use super::measured::Measured;
use super::{NS_PER_S, size_of};
use crate::compare::RunInput;

/// The load as it was requested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RequestedLoad {
    /// Ops per second.
    Ops(f64),
    /// Application bytes per second, both directions.
    Bytes(f64),
    /// Users.
    Users(f64),
}

/// Why a request comes to no load in ops/s. Each has the name of the suite.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadError {
    /// Bytes per second, of a suite that does not count them.
    NoBytes(String),
    /// Users, without any think time.
    NoThink(String),
    /// A user's think time, of a suite whose clients think before several ops.
    ThinksPerIteration {
        /// The suite.
        suite: String,
        /// Ops of an iteration; absent where none ended in a window.
        ops: Option<f64>,
    },
    /// Users, of such a suite whose clients did not think.
    NoThinkPerIteration(String),
    /// Users, of such a suite where no iteration ended in a window.
    NoIteration(String),
    /// Users, of a suite whose clients are none.
    Clients {
        /// The suite.
        suite: String,
        /// What one client stands for.
        client: String,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBytes(suite) => write!(
                f,
                "--load: suite {suite} does not count bytes; write the load in ops/s, for example \
                 --load 50k"
            ),
            Self::NoThink(suite) => write!(
                f,
                "--users: the clients of suite {suite} do not pause; write --think, the pause of a \
                 user between two requests, for example --think 25s"
            ),
            Self::ThinksPerIteration { suite, ops } => {
                let ops = ops.map_or_else(|| "many".to_owned(), |ops| grouped(ops.round()));
                write!(
                    f,
                    "--think: clients of suite {suite} think once before {ops} ops, so a number of \
                     users with a pause before each op would be false; leave --think out: --users \
                     takes the suite's own think time (to change that, measure with --set \
                     load.think.mean=25s)"
                )
            }
            Self::NoThinkPerIteration(suite) => write!(
                f,
                "--users: the clients of suite {suite} did not think in these runs, as its method \
                 has it; measure with its think time, without --set load.think.mean, or write \
                 --load"
            ),
            Self::NoIteration(suite) => write!(
                f,
                "--users: no session of suite {suite} ended in the window of a load point, so the \
                 ops of a session are not known; measure longer, for example with --profile \
                 standard, or write --load"
            ),
            Self::Clients { suite, client } => write!(
                f,
                "--users: clients of suite {suite} are no users: {client}; write \
                 --users-per-client, for example --users-per-client 5"
            ),
        }
    }
}

/// The sizing for the load; its request has what the load comes to. `run` has the suite.
pub(super) fn size_of_load(
    run: &RunInput,
    points: &[Measured],
    load: RequestedLoad,
    request: SizeRequest,
) -> Result<Sizing, LoadError> {
    let suite = MeasuredSuite { run, points };
    if request.think.is_some() && suite.thinks_per_iteration() {
        let (suite, ops) = (suite.name(), suite.ops_per_iteration());
        return Err(LoadError::ThinksPerIteration { suite, ops });
    }
    let (users, load_bytes_per_s) = match load {
        RequestedLoad::Ops(_) => (None, None),
        RequestedLoad::Bytes(rate) => (None, Some(rate)),
        RequestedLoad::Users(users) => (Some(users), None),
    };
    let request = SizeRequest { users, load_bytes_per_s, ..request };
    let by_load =
        |load_ops_per_s: f64| size_of(points, SizeRequest { load_ops_per_s, ..request.clone() });
    match load {
        RequestedLoad::Ops(rate) => Ok(by_load(rate)),
        _ if points.is_empty() => Ok(by_load(0.0)),
        RequestedLoad::Bytes(rate) => Ok(by_load(rate / suite.bytes_per_op()?)),
        RequestedLoad::Users(users) => {
            let pause_s = suite.pause_s(&request)?;
            let users_each = request.users_per_client.unwrap_or(1.0);
            let with_cycle = |load: f64| {
                let sizing = by_load(load);
                let mean_s = sizing.response.first().map(|mean| mean.ns.value / NS_PER_S);
                let mean_s = mean_s.unwrap_or_else(|| nearest_mean_s(points, load));
                (sizing, pause_s + mean_s)
            };
            let (mut sizing, cycle_s) = settle(users / users_each, pause_s, with_cycle);
            if sizing.refused.is_none() {
                sizing.users = Some(sizing.asked.load_ops_per_s * cycle_s * users_each);
            }
            Ok(sizing)
        }
    }
}

/// Rounds of [`settle`]; whole processors may make it alternate between two loads.
const ROUNDS: u32 = 32;
/// Loads this near are the same.
const SETTLED_RATIO: f64 = 1e-6;

/// The sizing for a number of clients, and the time from one op of a client to its next, which
/// depends on the size of the server as that does on the load.
fn settle(clients: f64, pause_s: f64, with_cycle: impl Fn(f64) -> (Sizing, f64)) -> (Sizing, f64) {
    let mut ops_per_s = clients / pause_s;
    let (mut sizing, mut cycle_s) = with_cycle(ops_per_s);
    for _ in 0..ROUNDS {
        let next = clients / cycle_s;
        if (next / ops_per_s - 1.0).abs() < SETTLED_RATIO {
            break;
        }
        ops_per_s = next;
        (sizing, cycle_s) = with_cycle(ops_per_s);
    }
    (sizing, cycle_s)
}

/// The mean response time at the measured load next to this one; zero where none was measured.
fn nearest_mean_s(points: &[Measured], load: f64) -> f64 {
    let distance = |point: &Measured| (point.ops_per_s - load).abs();
    let measured = points.iter().filter(|point| point.response.mean.is_some());
    let nearest = measured.min_by(|a, b| distance(a).total_cmp(&distance(b)));
    nearest.and_then(|point| point.response.mean).unwrap_or_default() / NS_PER_S
}

/// The suite of the runs, and its load points.
struct MeasuredSuite<'a> {
    run: &'a RunInput,
    points: &'a [Measured],
}

impl MeasuredSuite<'_> {
    fn name(&self) -> String {
        self.run.result.suite.as_ref().map(|suite| suite.name.clone()).unwrap_or_default()
    }

    fn thinks_per_iteration(&self) -> bool {
        self.points.iter().any(|point| point.iterations_per_s.is_some())
    }

    /// Sum of a rate over the load points that have it, by that of their ops.
    fn by_ops(&self, rate: impl Fn(&Measured) -> Option<f64>) -> Option<f64> {
        let with = self.points.iter().filter_map(|point| Some((rate(point)?, point.ops_per_s)));
        let (sum, ops) = with.fold((0.0, 0.0), |(sum, ops), (rate, of)| (sum + rate, ops + of));
        (sum > 0.0).then(|| sum / ops)
    }

    fn ops_per_iteration(&self) -> Option<f64> {
        Some(self.by_ops(|point| point.iterations_per_s)?.recip())
    }

    fn bytes_per_op(&self) -> Result<f64, LoadError> {
        let suite = self.run.result.suite.as_ref();
        let counts_bytes = suite.is_some_and(|suite| suite.metric == Metric::Bytes);
        let bytes = self.by_ops(|point| point.bytes_per_s).filter(|_| counts_bytes);
        bytes.ok_or_else(|| LoadError::NoBytes(self.name()))
    }

    /// The pause of a client before each op: the requested one, or the suite's own.
    fn pause_s(&self, request: &SizeRequest) -> Result<f64, LoadError> {
        if let Some(think) = request.think {
            return Ok(think.as_secs_f64());
        }
        let think = self.think().filter(|think| *think > Nanos::ZERO);
        let per_iteration = self.thinks_per_iteration();
        let Some(think) = think else {
            return Err(match per_iteration {
                true => LoadError::NoThinkPerIteration(self.name()),
                false => LoadError::NoThink(self.name()),
            });
        };
        let unknown = || per_iteration.then(|| "the suite does not say how many".to_owned());
        let client = self.client().or_else(unknown);
        if let Some(client) = client.filter(|_| request.users_per_client.is_none()) {
            return Err(LoadError::Clients { suite: self.name(), client });
        }
        match (per_iteration, self.ops_per_iteration()) {
            (false, _) => Ok(think.as_secs_f64()),
            (true, Some(ops)) => Ok(think.as_secs_f64() / ops),
            (true, None) => Err(LoadError::NoIteration(self.name())),
        }
    }

    /// Mean think time of a closed load, before any profile's scale.
    fn think(&self) -> Option<Nanos> {
        let load = self.run.suite.get("load")?;
        let is_closed = load.get("mode")?.as_str() == Some("closed");
        parse_span(load.get("think")?.get("mean")?.as_str()?).filter(|_| is_closed)
    }

    /// What one client stands for, where it is no user.
    fn client(&self) -> Option<String> {
        let origins: Origins = self.run.suite.get("origins")?.clone().try_into().ok()?;
        origins.client()
    }
}
