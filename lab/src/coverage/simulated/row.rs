//! The rows: load, server, window and host of the simulated runs, as a covering array.

use std::collections::BTreeSet;
use std::fmt;

use plimsoll_calibration::queueing::finite::Loop;
use plimsoll_engine::rng::key;
use plimsoll_model::suite::{Think, ThinkDistribution};
use plimsoll_model::units::Nanos;
use plimsoll_testkit::pairs::array::covering;

use crate::coverage::UTILISATIONS;

/// Rows of the array: every two levels meet in two of them at least.
pub const ROWS: usize = 48;
/// Ops per second of every row, as far as its law has a mean that says so.
pub const RATE_OPS_PER_S: f64 = 2_000.0;
/// Lengths of the window: those of `quick`, `standard` and half of a long run.
const WINDOWS_S: [u64; 3] = [3, 10, 30];
/// Seed of all rows; each run of each has its own of it.
const SEED: u64 = 43;

/// How clients ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadKind {
    /// A Poisson schedule over a pool, one server.
    Open,
    /// No think time. A server that answers all requests that wait at once keeps them in step.
    InStep,
    /// No think time, ten servers.
    Saturating,
    /// Exponential think times, one server.
    Thinking,
}

/// Service times, relative to their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// All the same.
    Constant,
    /// Exponential.
    Exponential,
    /// Lognormal, sigma 1.
    Lognormal,
    /// Of 100, 92 are about 0.4 means, the others 7.9.
    TwoHumped,
    /// Exponential; the server is by turns twice as fast and two thirds as fast.
    Bursty,
    /// Exponential; the server stands still for 20 ms, once a second on average.
    Stalls,
}

/// What the host does to the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// The generator is never late.
    Quiet,
    /// It stands still now and then.
    Disturbed,
}

const LOADS: [LoadKind; 4] =
    [LoadKind::Open, LoadKind::InStep, LoadKind::Saturating, LoadKind::Thinking];
const SERVICES: [Service; 6] = [
    Service::Constant,
    Service::Exponential,
    Service::Lognormal,
    Service::TwoHumped,
    Service::Bursty,
    Service::Stalls,
];
const HOSTS: [Host; 2] = [Host::Quiet, Host::Disturbed];

/// A row: one level of each factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// How clients ask.
    pub load: LoadKind,
    /// Utilisation of the server where a queue decides it; in step it stands for longer waves.
    pub utilisation: f64,
    /// Length of the window.
    pub window_s: u64,
    /// The law of the service times.
    pub service: Service,
    /// The generator's host.
    pub host: Host,
}

/// The clients of a row, and its server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// Clients, or connections of an open load.
    pub clients: u32,
    /// Mean of the exponential think times.
    pub think: Nanos,
    /// Requests served at a time.
    pub servers: u32,
    /// All that wait are answered together.
    pub batches: bool,
    /// Mean service time.
    pub service_mean_ns: f64,
}

/// The array: coverings of all rows, then of those that are left, until there are enough. The second
/// begins with the last rows, so that it does not repeat the first with another host.
pub fn rows() -> Vec<Row> {
    let mut left = all();
    let mut rows = Vec::new();
    while rows.len() < ROWS && !left.is_empty() {
        let levels: Vec<Vec<usize>> = left.iter().map(Row::levels).collect();
        let chosen = covering(&levels);
        rows.extend(chosen.iter().map(|at| left[*at]));
        let chosen: BTreeSet<usize> = chosen.into_iter().collect();
        let mut at = 0..;
        left.retain(|_| at.next().is_some_and(|at| !chosen.contains(&at)));
        left.reverse();
    }
    rows.truncate(ROWS);
    rows
}

/// Every row that can exist.
fn all() -> Vec<Row> {
    let mut rows = Vec::new();
    for load in LOADS {
        for utilisation in UTILISATIONS {
            for window_s in WINDOWS_S {
                for service in SERVICES {
                    for host in HOSTS {
                        rows.push(Row { load, utilisation, window_s, service, host });
                    }
                }
            }
        }
    }
    rows.retain(|row| !row.remembers_its_start());
    rows
}

impl Row {
    /// The index of a level for each factor: load, think time, clients in step or not, utilisation,
    /// window, service, host; and the three that concern clients together, so that each kind of
    /// load meets every other level.
    fn levels(&self) -> Vec<usize> {
        // Zero where an open load has no such factor.
        let [load, think, clients] = match self.load {
            LoadKind::Open => [0, 0, 0],
            LoadKind::InStep => [1, 1, 1],
            LoadKind::Saturating => [1, 1, 2],
            LoadKind::Thinking => [1, 2, 2],
        };
        let window = index(&WINDOWS_S, &self.window_s);
        let service = index(&SERVICES, &self.service);
        let (host, kind) = (index(&HOSTS, &self.host), index(&LOADS, &self.load));
        vec![load, think, clients, self.utilisation_level(), window, service, host, kind]
    }

    /// Nothing in it is random but the instants at which its clients start, and their order stays:
    /// each run has a truth of its own.
    fn remembers_its_start(&self) -> bool {
        self.load == LoadKind::Saturating && self.service == Service::Constant
    }

    fn utilisation_level(&self) -> usize {
        index(&UTILISATIONS, &self.utilisation)
    }

    /// The seed of its run of this number.
    pub fn seed(&self, run: u64) -> u64 {
        let levels = self.levels().into_iter().map(|level| level as u64);
        key(&[SEED].into_iter().chain(levels).chain([run]).collect::<Vec<_>>())
    }

    /// Load before the window: long queues need longer.
    pub fn warm_up(&self) -> Nanos {
        Nanos::from_secs(if self.utilisation > 0.8 { 3 } else { 1 })
    }

    /// Of its clients and its server. Without think time, three and six clients meet no queue at
    /// ten servers, and 36 keep them busy. Waves of clients in step take 10, 30 and 100 ms.
    pub fn setup(&self) -> Setup {
        let level = self.utilisation_level();
        let one = Setup {
            clients: 256,
            think: Nanos::ZERO,
            servers: 1,
            batches: false,
            service_mean_ns: self.utilisation / RATE_OPS_PER_S * 1e9,
        };
        match self.load {
            LoadKind::Open => one,
            LoadKind::InStep => {
                let clients = [20, 60, 200][level];
                let service_mean_ns = f64::from(clients) / RATE_OPS_PER_S * 1e9;
                Setup { clients, batches: true, service_mean_ns, ..one }
            }
            LoadKind::Saturating => {
                let (clients, servers) = ([3, 6, 36][level], 10);
                let service_mean_ns = f64::from(clients.min(servers)) / RATE_OPS_PER_S * 1e9;
                Setup { clients, servers, service_mean_ns, ..one }
            }
            LoadKind::Thinking => {
                let clients = 16;
                Setup { clients, think: think_time(clients, one.service_mean_ns / 1e9), ..one }
            }
        }
    }
}

impl Setup {
    /// The think time of its clients.
    pub fn think(&self) -> Think {
        Think { mean: self.think, distribution: ThinkDistribution::Exponential }
    }
}

/// The think time with which clients make the rate of every row at one exponential server.
fn think_time(clients: u32, service_s: f64) -> Nanos {
    const HALVINGS: usize = 50;
    let (mut low, mut high) = (0.0, f64::from(clients) / RATE_OPS_PER_S);
    for _ in 0..HALVINGS {
        let think_s = f64::midpoint(low, high);
        let queue = Loop { clients, servers: 1, service_s, think_s, delay_s: 0.0 };
        if queue.throughput_per_s() > RATE_OPS_PER_S { low = think_s } else { high = think_s }
    }
    Nanos::from_secs_f64(high)
}

fn index<T: PartialEq>(levels: &[T], level: &T) -> usize {
    levels.iter().take_while(|it| *it != level).count()
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let load = match self.load {
            LoadKind::Open => "open",
            LoadKind::InStep => "closed, in step",
            LoadKind::Saturating => "closed",
            LoadKind::Thinking => "closed, thinking",
        };
        let service = match self.service {
            Service::Constant => "constant",
            Service::Exponential => "exponential",
            Service::Lognormal => "lognormal",
            Service::TwoHumped => "two humps",
            Service::Bursty => "bursts",
            Service::Stalls => "stalls",
        };
        let host = match self.host {
            Host::Quiet => "quiet",
            Host::Disturbed => "disturbed",
        };
        write!(f, "{load}; {}; {} s; {service}; {host}", self.utilisation, self.window_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_two_levels_that_can_meet_do_so_in_48_rows_that_are_the_same_each_time() {
        let rows = rows();
        assert_eq!((rows.len(), all().len()), (ROWS, 414));
        assert_eq!(rows, super::rows());
        let meet = |rows: &[Row], first: (usize, usize), second: (usize, usize)| {
            let has = |row: &Row, (factor, level)| row.levels()[factor] == level;
            rows.iter().any(|row| has(row, first) && has(row, second))
        };
        let counts = [2, 3, 3, 3, 3, 6, 2, 4];
        let mut pairs = 0;
        for (factor, other) in (0..8).flat_map(|one| (one + 1..8).map(move |two| (one, two))) {
            for level in 0..counts[factor] {
                for with in 0..counts[other] {
                    let (first, second) = ((factor, level), (other, with));
                    let possible = meet(&all(), first, second);
                    assert_eq!(possible, meet(&rows, first, second), "{first:?} {second:?}");
                    pairs += usize::from(possible);
                }
            }
        }
        assert!(pairs > 200, "{pairs}");
    }

    #[test]
    fn seeds_and_names_are_those_of_one_run_of_one_row() {
        let rows = rows();
        let names: BTreeSet<String> = rows.iter().map(Row::to_string).collect();
        assert_eq!(names.len(), ROWS);
        let seeds = rows.iter().flat_map(|row| (0..100).map(|run| row.seed(run)));
        assert_eq!(seeds.collect::<BTreeSet<u64>>().len(), 100 * ROWS);
    }

    #[test]
    fn clients_that_think_make_the_rate_of_every_row() {
        for utilisation in UTILISATIONS {
            let service_s = utilisation / RATE_OPS_PER_S;
            let think_s = think_time(16, service_s).as_secs_f64();
            let queue = Loop { clients: 16, servers: 1, service_s, think_s, delay_s: 0.0 };
            assert!((queue.throughput_per_s() / RATE_OPS_PER_S - 1.0).abs() < 1e-3, "{think_s}");
        }
    }
}
