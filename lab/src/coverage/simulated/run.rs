//! One run: the engine's own worker under simulated time, and the analysis of a real run.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, sync_channel};

use plimsoll_analysis::{Analysis, PointTimes};
use plimsoll_engine::fresh::FreshTimes;
use plimsoll_engine::rng::{Random, Stream};
use plimsoll_engine::worker::{WorkerContext, WorkerDriver};
use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::{
    Assignment, Endpoint, Load, Pacing, Phases, PointId, Priority, Purpose,
};
use plimsoll_model::bundle::IntervalSlice;
use plimsoll_model::event::{
    AgentEvent, Interval, JOURNAL_FORMAT, OpTimes, PointRecord, RunOptions, RunStarted,
    SecondRecord, WorkerHealth, WorkerTotals,
};
use plimsoll_model::gate::Gates;
use plimsoll_model::goodput::GoodLimits;
use plimsoll_model::result::PointResult;
use plimsoll_model::suite::{Arrivals, InterArrival, OnClientFailure, Suite};
use plimsoll_model::units::{Nanos, OpsPerSec};
use plimsoll_model::until::Until;
use plimsoll_report::sentences::SENTENCES;
use plimsoll_testkit::echo::Echo;
use plimsoll_testkit::sim::SimDriver;
use xtask::verb::Result;

use super::outcome::Measured;
use super::row::{Host, LoadKind, RATE_OPS_PER_S, Row};
use super::server::Server;
use super::truth::{FIGURES, PERCENTILES, Truth};

/// A disturbed generator stands still this often, in nanoseconds from begin to begin …
const PAUSE_EVERY_NS: f64 = 100e6;
/// … for this long: as for a program that wakes up now and then on the worker's core.
const PAUSE_NS: f64 = 200e3;
/// Events of a worker: its slices, and its totals.
const EVENTS_MAX: usize = 100_000;
/// A step of the histograms, as a share of the value.
const RESOLUTION_RATIO: f64 = 1e-3;
/// 2026-11-21T20:00:00Z.
const STARTED_UNIX_NS: u64 = 1_795_291_200_000_000_000;

/// Makes the runs of a row.
pub struct RowRunner {
    row: Row,
    truth: Truth,
    suite: Suite,
}

/// What the worker of a run reported.
#[derive(Default)]
struct Report {
    times: PointTimes,
    seconds: Vec<SecondRecord>,
    health: Vec<WorkerHealth>,
    totals: WorkerTotals,
}

impl RowRunner {
    /// For a row and its truth.
    pub fn new(row: Row, truth: Truth) -> Result<Self> {
        let mode = if row.load == LoadKind::Open { "open" } else { "closed" };
        let text = format!(
            "format = 1\nname = \"coverage\"\ntitle = \"Coverage\"\nprotocol = \"echo\"\n\
             [load]\nmode = \"{mode}\"\n[ladder]\nkind = \"points\"\npoints = [1]\n[workload]\n"
        );
        let suite = Suite::parse("coverage.toml", &text, &[], &|_, _| Ok(toml::Table::new()));
        let mut suite = suite.map_err(|e| e.to_string())?;
        suite.goodput = Some(good_limits(&truth));
        Ok(Self { row, truth, suite })
    }

    /// Makes the run of this number: of each figure the interval, if the result has one.
    pub fn run(&self, number: u64) -> Result<[Option<Measured>; FIGURES.len()]> {
        let length = Nanos::from_secs(self.row.window_s);
        let (point, record, times) = self.analysed(number, length, None)?;
        Ok(self.figures(&point, &record, &times))
    }

    /// The result of one window of this length, which says how precise its figure is.
    pub fn window(&self, number: u64, length: Nanos, until: Until) -> Result<PointResult> {
        self.analysed(number, length, Some(until)).map(|(point, _, _)| point)
    }

    /// A window's result, and what it is derived from.
    fn analysed(
        &self,
        number: u64,
        length: Nanos,
        until: Option<Until>,
    ) -> Result<(PointResult, PointRecord, PointTimes)> {
        let assignment = self.assignment(self.row.seed(number), length);
        let report = self.simulate(&assignment)?;
        let record = record(&assignment, &report);
        let started = started(&assignment, until);
        let mut analysis = Analysis::begin(&self.suite, SENTENCES, started, None);
        let point = analysis.add_point(&record, Some(&report.times)).result.clone();
        Ok((point, record, report.times))
    }

    fn simulate(&self, assignment: &Assignment) -> Result<Report> {
        let mut driver = SimDriver::new(Server::new(&self.row, assignment.seed));
        driver.stamps = true;
        if self.row.host == Host::Disturbed {
            driver.stalls = pauses(assignment);
        }
        let (events, received) = sync_channel(EVENTS_MAX);
        let stop = AtomicBool::new(false);
        Echo.run_worker(WorkerContext {
            assignment,
            worker: 0,
            op_names: Echo.op_names(),
            ops_per_arrival: Echo.ops_per_arrival(),
            clients_per_session: Echo.clients_per_session(),
            spare_links: u32::MAX,
            recorded: None,
            events: &events,
            fresh: FreshTimes::on_the_spot(Echo.op_names().0.len()),
            stop: &stop,
            driver: WorkerDriver::Simulated(&mut driver),
        });
        drop(events);
        Report::from_events(received)
    }

    fn assignment(&self, seed: u64, window: Nanos) -> Assignment {
        Assignment {
            point: PointId { ordinal: 1, purpose: Purpose::Ladder },
            load: self.load(),
            phases: Phases {
                warm_up_ns: self.row.warm_up(),
                measure_ns: window,
                ramp_down_ns: Nanos::ZERO,
                drain_ns: Nanos::from_secs(30),
                ops: None,
            },
            seed,
            workers: 1,
            crew: None,
            files: None,
            cores: Vec::new(),
            pacing: Pacing::Precise,
            own_cores: false,
            priority: Priority::Normal,
            op_timeout: Nanos::from_secs(60),
            endpoints: vec![Endpoint {
                target: "simulated".to_owned(),
                address: ([127, 0, 0, 1], 1).into(),
                unix: None,
            }],
            sources: Vec::new(),
            reserved_ports: false,
            nonce: 0,
            on_client_failure: OnClientFailure::Drop,
            goodput: Some(good_limits(&self.truth)),
            counts_clients: false,
            shape: None,
        }
    }

    fn load(&self) -> Load {
        let setup = self.row.setup();
        match self.row.load {
            LoadKind::Open => Load::Open {
                rate_ops_per_s: OpsPerSec::new(RATE_OPS_PER_S).unwrap_or_default(),
                arrivals: Arrivals::Shared,
                gaps: InterArrival::Exponential,
                clients: setup.clients,
                backlog_ops_max: 65_536,
            },
            kind => Load::Closed {
                clients: setup.clients,
                think: setup.think(),
                start_delay_ns: match kind {
                    LoadKind::Saturating => Nanos::from_millis(50),
                    _ => Nanos::ZERO,
                },
                starts_thinking: kind == LoadKind::Thinking,
                axis_think_ns: None,
            },
        }
    }

    fn figures(
        &self,
        point: &PointResult,
        record: &PointRecord,
        times: &PointTimes,
    ) -> [Option<Measured>; FIGURES.len()] {
        let intervals = point.response_interval_ns.unwrap_or_default();
        let measured = |interval: Option<[f64; 2]>, estimate: f64, share: f64, apart: f64| {
            let [low, high] = interval?;
            let high = Some(high).filter(|high| high.is_finite());
            Some(Measured { low, high, estimate, share, apart })
        };
        let OpTimes { response, response_low, .. } = times.window_total();
        let n = response.len() as f64;
        let percentile = |index: usize| {
            let (figure, share) = PERCENTILES[index];
            let within = response.count_between(0, self.truth.percentiles_ns[index] as u64);
            let [estimate, low] =
                [&response, &response_low].map(|it| it.value_at_quantile(share) as f64);
            let apart = estimate - low + estimate * RESOLUTION_RATIO;
            measured(intervals.figure(figure), estimate, within as f64 / n, apart)
        };
        let [p50, p90, p95, p99, p999] = [0, 1, 2, 3, 4].map(percentile);
        let bounds = |figure: &str| {
            let parts = point.uncertainty.get(figure);
            parts.map_or(0.0, |parts| parts.generator + 2.0 * parts.resolution)
        };
        let totals = &record.totals;
        let cycles_s = (totals.piece_ns_total + totals.think_ns_total) as f64 / 1e9;
        let rate = f64::from(record.load.clients()) * totals.pieces as f64 / cycles_s;
        let achieved = point.achieved_interval_ops_per_s.filter(|_| self.truth.closed.is_some());
        let throughput = measured(achieved, rate, 0.0, bounds("achieved_ops_per_s"));
        let good = totals.good as f64 / totals.due.max(1) as f64;
        let good_interval = point.goodput.as_ref().and_then(|it| it.share_interval_ratio);
        let [within, within_low] =
            [&response, &response_low].map(|it| it.count_between(0, self.truth.limit_ns) as f64);
        let good = measured(good_interval, good, good, (within_low - within) / n);
        let mean = measured(intervals.mean, response.mean(), 0.0, bounds("response_mean_ns"));
        [mean, p50, p90, p95, p99, p999, throughput, good]
    }
}

impl Report {
    /// As an agent collects them, of one worker.
    fn from_events(received: Receiver<AgentEvent>) -> Result<Self> {
        let mut report = Self::default();
        for event in received {
            match event {
                AgentEvent::Interval(interval) => report.add(*interval),
                AgentEvent::WorkerFinished { totals, .. } => report.totals = *totals,
                other => return Err(format!("a simulated worker reported {other:?}")),
            }
        }
        Ok(report)
    }

    fn add(&mut self, interval: Interval) {
        let Interval { start, end, record, ops, health, .. } = interval;
        let SecondRecord { second, phase, length_ns, .. } = record;
        let length = end.saturating_sub(start);
        self.times.add(&IntervalSlice { second, start, length, phase, ops });
        self.health.push(health);
        let same = |last: &&mut SecondRecord| (last.second, last.phase) == (second, phase);
        match self.seconds.last_mut().filter(same) {
            Some(last) => {
                last.add(record);
                last.length_ns += length_ns;
            }
            None => self.seconds.push(record),
        }
    }
}

fn good_limits(truth: &Truth) -> GoodLimits {
    GoodLimits { response: Some(Nanos(truth.limit_ns)), ..GoodLimits::default() }
}

/// Spans in which the generator stands still, to the end of the drain.
fn pauses(assignment: &Assignment) -> Vec<(Nanos, Nanos)> {
    let mut random = Random::new(assignment.seed, Stream::Data, 1);
    let end = assignment.phases.load_end() + assignment.phases.drain_ns;
    let mut at_ns = 0.0;
    let mut pauses = Vec::new();
    while at_ns < end.0 as f64 {
        at_ns += random.exponential() * PAUSE_EVERY_NS;
        let until_ns = at_ns + random.exponential() * PAUSE_NS;
        pauses.push((Nanos(at_ns as u64), Nanos(until_ns as u64)));
    }
    pauses
}

fn started(assignment: &Assignment, until: Option<Until>) -> RunStarted {
    RunStarted {
        format: JOURNAL_FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        debug_build: false,
        profile: "standard".to_owned(),
        seed: assignment.seed,
        targets: vec!["simulated".to_owned()],
        ladder: Some(vec![assignment.load.requested()]),
        op_names: Echo.op_names(),
        op_shares: None,
        page_limits: Vec::new(),
        sessions: None,
        departures: Vec::new(),
        method: Vec::new(),
        command: Vec::new(),
        capacity: None,
        gates: Gates::default(),
        asked: Some(Box::new(RunOptions { until, ..RunOptions::default() })),
        at_unix_ns: STARTED_UNIX_NS,
    }
}

fn record(assignment: &Assignment, report: &Report) -> PointRecord {
    PointRecord {
        point: assignment.point,
        load: assignment.load.clone(),
        pacing: assignment.pacing,
        started_unix_ns: STARTED_UNIX_NS,
        warm_up_ns: assignment.phases.warm_up_ns,
        measured_ns: assignment.phases.measure_ns,
        clock_step_ns: 0,
        totals: report.totals.clone(),
        seconds: report.seconds.clone(),
        workers: vec![report.health.clone()],
        process_cpu_ns: 0,
        monitor_cpu_ns: 0,
        panic: None,
        ended_early: None,
        server_lost: None,
        resources: Vec::new(),
        core_users: None,
        server_core_users: None,
        host_work: Vec::new(),
        ops: None,
        data_set_bytes: None,
        access_pattern: None,
        agents: Vec::new(),
        phase: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::simulated::row::Service;

    fn measured(load: LoadKind, host: Host) -> [Option<Measured>; FIGURES.len()] {
        let row = Row { load, utilisation: 0.3, window_s: 3, service: Service::Exponential, host };
        let truth = Truth::from_seconds(&row, 30).unwrap();
        let runner = RowRunner::new(row, truth).unwrap();
        let figures = runner.run(0).unwrap();
        assert_eq!(figures, runner.run(0).unwrap(), "the same seed gives the same run");
        assert_ne!(figures, runner.run(1).unwrap());
        figures
    }

    #[test]
    fn a_window_says_what_it_would_need() {
        let row = Row {
            load: LoadKind::Open,
            utilisation: 0.6,
            window_s: 3,
            service: Service::Exponential,
            host: Host::Quiet,
        };
        let runner = RowRunner::new(row, Truth::from_seconds(&row, 30).unwrap()).unwrap();
        let until = Until { precision: "mean±1%".parse().unwrap(), at_most_ns: None };
        let point = runner.window(0, Nanos::from_secs(3), until).unwrap();
        let reached = point.precision.unwrap();
        assert!(
            reached.window_needed_ns > Some(Nanos::from_secs(100)),
            "{reached:?} {:?}",
            point.not_counted_because
        );
    }

    #[test]
    fn a_run_has_an_interval_near_the_truth_for_every_figure() {
        for (load, host) in [
            (LoadKind::Open, Host::Quiet),
            (LoadKind::Thinking, Host::Disturbed),
            (LoadKind::InStep, Host::Quiet),
        ] {
            let figures = measured(load, host);
            let all = figures.iter().zip(FIGURES);
            for (figure, name) in all.filter(|(_, name)| *name != "p99.9") {
                let Some(Measured { low, high, estimate, .. }) = *figure else {
                    assert_eq!((name, load), ("throughput", LoadKind::Open));
                    continue;
                };
                // The rate of cycles and that of ops in the window differ a little.
                let around = low * 0.95..=high.unwrap_or(f64::INFINITY) * 1.05;
                assert!(around.contains(&estimate), "{name} {load:?}: {figure:?}");
            }
        }
    }
}
