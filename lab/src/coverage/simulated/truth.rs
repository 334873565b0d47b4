//! The truth of a row: by formula where there is one, otherwise from a long simulation of the same
//! server and clients. Neither the engine nor the analysis takes part.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use hdrhistogram::Histogram;
use plimsoll_calibration::queueing::many::Markov;
use plimsoll_engine::pacer::{Arrivals, Thinker};
use plimsoll_model::figure::Figure;
use plimsoll_model::suite::InterArrival;
use plimsoll_model::units::{Nanos, OpsPerSec};
use serde_json::{Value, json};
use xtask::verb::Result;

use super::row::{LoadKind, RATE_OPS_PER_S, Row, Service};
use super::server::Server;

/// Percentiles whose intervals are evaluated.
pub const PERCENTILES: [(Figure, f64); 5] = [
    (Figure::P50, 0.5),
    (Figure::P90, 0.9),
    (Figure::P95, 0.95),
    (Figure::P99, 0.99),
    (Figure::P999, 0.999),
];
/// Figures of a load point whose intervals are evaluated.
pub const FIGURES: [&str; 8] =
    ["mean", "p50", "p90", "p95", "p99", "p99.9", "throughput", "good ops"];
/// Indices in [`FIGURES`]; percentiles are between them.
pub const MEAN: usize = 0;
pub const THROUGHPUT: usize = 6;
pub const GOOD: usize = 7;
/// A truth is that of as long a time as this many windows: its own error is a twentieth of a run's.
const WINDOWS: u64 = 400;
/// Digits of its histogram, one more than a result has.
const DIGITS: u8 = 4;
const NS_MAX: u64 = 3_600_000_000_000;
/// Number of the run whose seed is the truth's.
const RUN: u64 = u64::MAX;

/// What is true of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// Mean response time, and its standard deviation.
    pub mean_ns: f64,
    pub deviation_ns: f64,
    /// Of the response time.
    pub percentiles_ns: [f64; PERCENTILES.len()],
    /// An op that takes less is good. About the 90th percentile.
    pub limit_ns: u64,
    pub good_ratio: f64,
    /// Of a closed load.
    pub closed: Option<Cycle>,
}

/// The cycle of a closed client, from one request to its next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycle {
    /// Ops per second of all clients.
    pub throughput_per_s: f64,
    /// Standard deviation of a cycle's length, as a share of its mean.
    pub variation: f64,
}

/// Response times of a long simulation.
struct Responses {
    histogram: Histogram<u64>,
    sum_ns: f64,
    squares_ns2: f64,
}

impl Truth {
    /// Of a row.
    pub fn from_row(row: &Row) -> Result<Self> {
        Self::from_seconds(row, row.window_s * WINDOWS)
    }

    /// The same from a simulation of this length.
    pub fn from_seconds(row: &Row, seconds: u64) -> Result<Self> {
        let truth = simulated(row, seconds)?;
        Ok(match queue(row) {
            Some(queue) => truth.with_theory(&queue),
            None => truth,
        })
    }

    /// Exact where theory is.
    fn with_theory(&self, queue: &Markov) -> Self {
        let mean_ns = queue.mean_response_s() * 1e9;
        Self {
            mean_ns,
            // The response time of M/M/1 is exponential.
            deviation_ns: mean_ns,
            percentiles_ns: PERCENTILES.map(|(_, share)| queue.response_quantile_s(share) * 1e9),
            good_ratio: 1.0 - queue.response_tail(self.limit_ns as f64 / 1e9),
            ..self.clone()
        }
    }

    /// The truth of a figure of [`FIGURES`]; `None` where it has none: an open load's throughput
    /// is its schedule's.
    pub fn figure(&self, figure: usize) -> Option<f64> {
        match figure {
            MEAN => Some(self.mean_ns),
            THROUGHPUT => self.closed.map(|cycle| cycle.throughput_per_s),
            GOOD => Some(self.good_ratio),
            percentile => self.percentiles_ns.get(percentile - 1).copied(),
        }
    }

    /// As part of a line of a file.
    pub fn json(&self) -> Value {
        let closed = self.closed.map(|it| json!([it.throughput_per_s, it.variation]));
        json!({
            "mean_ns": self.mean_ns, "deviation_ns": self.deviation_ns,
            "percentiles_ns": self.percentiles_ns, "limit_ns": self.limit_ns,
            "good_ratio": self.good_ratio, "closed": closed,
        })
    }

    /// The reverse of [`Truth::json`].
    pub fn parse(value: &Value) -> Option<Self> {
        let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_f64);
        let mut percentiles_ns = [0.0; PERCENTILES.len()];
        for (index, percentile) in percentiles_ns.iter_mut().enumerate() {
            *percentile = number(&format!("/percentiles_ns/{index}"))?;
        }
        let cycle =
            |throughput_per_s| Some(Cycle { throughput_per_s, variation: number("/closed/1")? });
        Some(Self {
            mean_ns: number("/mean_ns")?,
            deviation_ns: number("/deviation_ns")?,
            percentiles_ns,
            limit_ns: value.get("limit_ns")?.as_u64()?,
            good_ratio: number("/good_ratio")?,
            closed: number("/closed/0").and_then(cycle),
        })
    }
}

/// The theory of a row that has one.
fn queue(row: &Row) -> Option<Markov> {
    let has_theory = row.load == LoadKind::Open && row.service == Service::Exponential;
    let setup = row.setup();
    let queue = Markov::new(RATE_OPS_PER_S, setup.service_mean_ns / 1e9, setup.servers);
    queue.filter(|_| has_theory)
}

fn simulated(row: &Row, seconds: u64) -> Result<Truth> {
    let mut responses = Responses::new()?;
    let (begin_ns, length_ns) = (row.warm_up().0, Nanos::from_secs(seconds).0);
    let span_ns = begin_ns..begin_ns + length_ns;
    match row.load {
        LoadKind::Open => open(row, span_ns, &mut responses),
        LoadKind::InStep | LoadKind::Saturating | LoadKind::Thinking => {
            closed(row, span_ns, &mut responses);
        }
    }
    Ok(responses.truth(row, length_ns))
}

/// Ops of a Poisson schedule that are due in this span.
fn open(row: &Row, span_ns: Range<u64>, responses: &mut Responses) {
    let seed = row.seed(RUN);
    let mut server = Server::new(row, seed);
    let Some(rate) = OpsPerSec::new(RATE_OPS_PER_S) else { return };
    for (_, Nanos(due_ns)) in Arrivals::new(rate, InterArrival::Exponential, seed, 0, 1) {
        if due_ns >= span_ns.end {
            break;
        }
        let response_ns = server.completion_ns(due_ns) - due_ns;
        if due_ns >= span_ns.start {
            responses.add(response_ns);
        }
    }
}

/// Ops of clients that wait for each reply, in the order of their requests.
fn closed(row: &Row, span_ns: Range<u64>, responses: &mut Responses) {
    let (seed, setup) = (row.seed(RUN), row.setup());
    let mut server = Server::new(row, seed);
    let mut thinkers: Vec<Thinker> =
        (0..setup.clients).map(|client| Thinker::new(setup.think(), seed, client)).collect();
    let mut requests: BinaryHeap<Reverse<(u64, u32)>> =
        (0..setup.clients).map(|client| Reverse((0, client))).collect();
    while let Some(Reverse((due_ns, client))) = requests.pop() {
        if due_ns >= span_ns.end {
            break;
        }
        let done_ns = server.completion_ns(due_ns);
        if due_ns >= span_ns.start {
            responses.add(done_ns - due_ns);
        }
        let think = thinkers.get_mut(client as usize).map_or(Nanos::ZERO, Thinker::draw);
        requests.push(Reverse((done_ns + think.0, client)));
    }
}

impl Responses {
    fn new() -> Result<Self> {
        let histogram = Histogram::new_with_bounds(1, NS_MAX, DIGITS).map_err(|e| e.to_string())?;
        Ok(Self { histogram, sum_ns: 0.0, squares_ns2: 0.0 })
    }

    fn add(&mut self, response_ns: u64) {
        self.histogram.saturating_record(response_ns);
        let ns = response_ns as f64;
        self.sum_ns += ns;
        self.squares_ns2 += ns * ns;
    }

    fn truth(&self, row: &Row, span_ns: u64) -> Truth {
        let (n, setup) = (self.histogram.len() as f64, row.setup());
        let mean_ns = self.sum_ns / n;
        let variance_ns2 = (self.squares_ns2 / n - mean_ns * mean_ns).max(0.0);
        let percentiles_ns =
            PERCENTILES.map(|(_, share)| self.histogram.value_at_quantile(share) as f64);
        // Of whole microseconds, and no less than the percentile.
        let limit_ns = (percentiles_ns[1] / 1e3).ceil() as u64 * 1_000 + 1_000;
        let throughput_per_s = n / (span_ns as f64 / 1e9);
        let cycle_ns = f64::from(setup.clients) / throughput_per_s * 1e9;
        let think_ns = setup.think.0 as f64;
        let variation = (variance_ns2 + think_ns * think_ns).sqrt() / cycle_ns;
        Truth {
            mean_ns,
            deviation_ns: variance_ns2.sqrt(),
            percentiles_ns,
            limit_ns,
            good_ratio: self.histogram.count_between(0, limit_ns - 1) as f64 / n,
            closed: (row.load != LoadKind::Open).then_some(Cycle { throughput_per_s, variation }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::simulated::row::Host;

    fn row(load: LoadKind, service: Service) -> Row {
        Row { load, utilisation: 0.3, window_s: 3, service, host: Host::Quiet }
    }

    #[test]
    fn a_simulation_comes_to_the_figures_of_theory() {
        let row = row(LoadKind::Open, Service::Exponential);
        let simulated = simulated(&row, 200).unwrap();
        let exact = simulated.with_theory(&queue(&row).unwrap());
        for (figure, name) in FIGURES.into_iter().enumerate() {
            let Some((one, other)) = simulated.figure(figure).zip(exact.figure(figure)) else {
                assert_eq!(figure, THROUGHPUT, "of an open load");
                continue;
            };
            let tolerance = if name == "p99.9" { 0.04 } else { 0.02 };
            assert!((one / other - 1.0).abs() < tolerance, "{name}: {one} {other}");
        }
        assert!((exact.good_ratio - 0.9).abs() < 0.01, "{exact:?}");
    }

    #[test]
    fn closed_loads_make_about_the_rate_of_every_row() {
        for load in [LoadKind::InStep, LoadKind::Saturating, LoadKind::Thinking] {
            let truth = simulated(&row(load, Service::Exponential), 60).unwrap();
            let cycle = truth.closed.unwrap();
            assert!((cycle.throughput_per_s / RATE_OPS_PER_S - 1.0).abs() < 0.03, "{load:?}");
            assert!((0.9..1.1).contains(&cycle.variation), "{load:?}: {cycle:?}");
        }
    }

    #[test]
    fn a_truth_survives_its_line() {
        for load in [LoadKind::Open, LoadKind::Thinking] {
            let truth = simulated(&row(load, Service::Lognormal), 2).unwrap();
            assert_eq!(Truth::parse(&truth.json()), Some(truth));
        }
        assert_eq!(Truth::parse(&json!({ "mean_ns": 1.0 })), None);
    }
}
