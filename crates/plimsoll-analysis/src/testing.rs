//! Synthetic points and runs for tests: healthy until a test changes something.

use std::collections::BTreeMap;

use plimsoll_model::assignment::{Load, Pacing, PointId, Purpose};
use plimsoll_model::bundle::IntervalSlice;
use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::{
    JOURNAL_FORMAT, JournalRecord, OpCounts, OpTimes, Phase, PointRecord, RunStarted, SecondRecord,
    WorkerHealth, WorkerTotals,
};
use plimsoll_model::finding::Rule;
use plimsoll_model::outcome::OpNames;
use plimsoll_model::result::{NotCounted, RunResult, Verdict};
use plimsoll_model::suite::{
    Arrivals, InterArrival, Ladder, Parameters, Suite, Think, ThinkDistribution,
};
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos, OpsPerSec};
use plimsoll_report::sentences::SENTENCES;

use crate::analyse::{Analysis, not_started};
use crate::raw::{PointTimes, PointView};
use crate::validity::{Evidence, check_counted, check_point};

const WARM_UP_SECONDS: u32 = 10;
const MEASURE_SECONDS: u32 = 30;
/// 2026-11-21T20:00:00Z.
const STARTED_UNIX_NS: u64 = 1_795_291_200 * NANOS_PER_SECOND;

/// The workload of a suite whose load is a recording.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Recording {}

impl Parameters for Recording {
    fn is_recorded(&self) -> bool {
        true
    }
}

impl PointTimes {
    /// All seconds of a point, in order.
    pub(crate) fn from_seconds(seconds: impl IntoIterator<Item = IntervalSlice>) -> Self {
        let mut times = Self::default();
        seconds.into_iter().for_each(|second| times.add(&second));
        times
    }
}

/// Asserts that the rule fires on the one point and not on the other.
pub(crate) fn check_rule(rule: &str, broken: &TestPoint, intact: &TestPoint) {
    assert!(broken.reasons().contains(&rule), "{rule} did not fire: {:?}", broken.reasons());
    assert!(!intact.reasons().contains(&rule), "{rule} fired: {:?}", intact.verdict().reasons);
}

/// Asserts that the finding leaves the one point out of the headline, still valid, and not the
/// other.
pub(crate) fn check_counted_out(why: NotCounted, out: &TestPoint, counted: &TestPoint) {
    assert_eq!(out.not_counted().map(|(why, _)| why), Some(why));
    assert!(out.verdict().valid, "{:?}", out.verdict());
    assert_eq!(counted.not_counted(), None);
}

/// A load point with all inputs of the rules.
pub(crate) struct TestPoint {
    pub suite: Suite,
    pub started: RunStarted,
    pub record: PointRecord,
    pub times: Option<OpTimes>,
    pub seconds: Option<PointTimes>,
    pub lost: Vec<String>,
    pub disclosure: Option<Disclosure>,
}

impl TestPoint {
    pub(crate) fn verdict(&self) -> Verdict {
        self.evaluate(check_point)
    }

    /// Why it is left out of the headline.
    pub(crate) fn not_counted(&self) -> Option<(NotCounted, Rule)> {
        self.evaluate(check_counted)
    }

    fn evaluate<T>(&self, check: impl Fn(&Evidence<'_>) -> T) -> T {
        let view = PointView { record: &self.record, samples: &[], lost: &self.lost };
        check(&Evidence {
            suite: &self.suite,
            started: &self.started,
            view: &view,
            times: self.times.as_ref(),
            seconds: self.seconds.as_ref(),
            disclosure: self.disclosure.as_ref(),
        })
    }

    /// Sets the ops done in the window, in the seconds and in the totals.
    pub(crate) fn done_in_window(&mut self, ops: u64) {
        self.record.totals.done_in_window = ops;
        let mut left = ops;
        let seconds = self.record.seconds.iter_mut().filter(|s| s.phase == Phase::Measure);
        let count = u64::from(MEASURE_SECONDS);
        for (index, second) in seconds.enumerate() {
            second.done = left / (count - index as u64);
            left -= second.done;
        }
    }

    /// Names of the rules that fired.
    pub(crate) fn reasons(&self) -> Vec<&'static str> {
        self.verdict().reasons.into_iter().map(|reason| reason.rule.name()).collect()
    }
}

/// Builds a point whose every op takes the same time.
#[derive(Clone)]
pub(crate) struct PointBuilder {
    load: Load,
    achieved_ops_per_s: u64,
    due_ops_per_s: u64,
    response_ns: u64,
    send_lag_ns: u64,
    lateness_ns: u64,
    receive_lag_ns: u64,
    busy: f64,
    core_taken: f64,
}

impl PointBuilder {
    /// Ops of 1 ms at this rate.
    pub(crate) fn open(rate: f64) -> Self {
        let load = Load::Open {
            rate_ops_per_s: OpsPerSec::new(rate).unwrap(),
            arrivals: Arrivals::PerClient,
            gaps: InterArrival::Exponential,
            clients: 64,
            backlog_ops_max: 1_000,
        };
        Self::from_load(load, rate as u64)
    }

    /// Ops of 1 ms without think time.
    pub(crate) fn closed(clients: u32) -> Self {
        let think = Think { mean: Nanos::ZERO, distribution: ThinkDistribution::Constant };
        let start_delay_ns = Nanos::ZERO;
        let load = Load::Closed {
            clients,
            think,
            start_delay_ns,
            starts_thinking: false,
            axis_think_ns: None,
        };
        Self::from_load(load, u64::from(clients) * 1_000)
    }

    fn from_load(load: Load, ops_per_s: u64) -> Self {
        Self {
            load,
            achieved_ops_per_s: ops_per_s,
            due_ops_per_s: ops_per_s,
            response_ns: 1_000_000,
            send_lag_ns: 10_000,
            lateness_ns: 10_000,
            receive_lag_ns: 5_000,
            busy: 0.2,
            core_taken: 0.0,
        }
    }

    pub(crate) fn response_ns(mut self, response_ns: u64) -> Self {
        self.response_ns = response_ns;
        self
    }

    pub(crate) fn send_lag_ns(mut self, send_lag_ns: u64) -> Self {
        self.send_lag_ns = send_lag_ns;
        self.lateness_ns = send_lag_ns;
        self
    }

    /// Of the send lag, the generator's own part; the rest waited for a connection.
    pub(crate) fn lateness_ns(mut self, lateness_ns: u64) -> Self {
        self.lateness_ns = lateness_ns;
        self
    }

    pub(crate) fn receive_lag_ns(mut self, receive_lag_ns: u64) -> Self {
        self.receive_lag_ns = receive_lag_ns;
        self
    }

    pub(crate) fn worker_busy(mut self, busy: f64) -> Self {
        self.busy = busy;
        self
    }

    /// For this part of the time another thread had the worker's core.
    pub(crate) fn core_taken(mut self, ratio: f64) -> Self {
        self.core_taken = ratio;
        self
    }

    /// For closed loads the ops due follow the achieved rate.
    pub(crate) fn achieved(mut self, ops_per_s: u64) -> Self {
        self.achieved_ops_per_s = ops_per_s;
        if let Load::Closed { .. } = self.load {
            self.due_ops_per_s = ops_per_s;
        }
        self
    }

    pub(crate) fn build(&self) -> TestPoint {
        let mut times = OpTimes::new();
        self.record_times(&mut times, u64::from(MEASURE_SECONDS));
        TestPoint {
            suite: suite(&self.load),
            started: started(&[self.load.requested()]),
            record: self.record(PointId { ordinal: 1, purpose: Purpose::Ladder }),
            times: Some(times),
            seconds: None,
            lost: Vec::new(),
            disclosure: None,
        }
    }

    fn record_times(&self, times: &mut OpTimes, seconds: u64) {
        let n = u32::try_from(self.due_ops_per_s * seconds).unwrap();
        let service_ns = self.response_ns.saturating_sub(self.send_lag_ns);
        times.response.record_n(self.response_ns, n).unwrap();
        times.service.record_n(service_ns, n).unwrap();
        times.send_lag.record_n(self.send_lag_ns, n).unwrap();
        times.lateness.record_n(self.lateness_ns, n).unwrap();
        times.receive_lag.record_n(self.receive_lag_ns, n).unwrap();
        let own_ns = self.receive_lag_ns + self.lateness_ns;
        times.response_low.record_n(self.response_ns.saturating_sub(own_ns), n).unwrap();
        times.service_low.record_n(service_ns.saturating_sub(own_ns), n).unwrap();
    }

    fn phases() -> impl Iterator<Item = (u32, Phase)> {
        (0..WARM_UP_SECONDS + MEASURE_SECONDS).map(|second| match second {
            s if s < WARM_UP_SECONDS => (s, Phase::WarmUp),
            s => (s, Phase::Measure),
        })
    }

    pub(crate) fn point_times(&self) -> PointTimes {
        PointTimes::from_seconds(self.slices())
    }

    /// Its seconds.
    pub(crate) fn slices(&self) -> Vec<IntervalSlice> {
        let slice = |(second, phase)| {
            let mut times = OpTimes::new();
            self.record_times(&mut times, 1);
            let start = Nanos::from_secs(u64::from(second));
            IntervalSlice { length: Nanos::from_secs(1), second, start, phase, ops: vec![times] }
        };
        Self::phases().map(slice).collect()
    }

    pub(crate) fn record(&self, point: PointId) -> PointRecord {
        let measured_ns = Nanos::from_secs(u64::from(MEASURE_SECONDS));
        let due = self.due_ops_per_s * u64::from(MEASURE_SECONDS);
        let done = self.achieved_ops_per_s * u64::from(MEASURE_SECONDS);
        let counts = OpCounts { count: due, ..OpCounts::default() };
        let second = |(second, phase)| SecondRecord {
            second,
            phase,
            length_ns: NANOS_PER_SECOND,
            done: self.achieved_ops_per_s,
            errors: 0,
            bytes_read: 1_000,
            ..SecondRecord::default()
        };
        let health = WorkerHealth {
            cpu_ns: (self.busy * NANOS_PER_SECOND as f64) as u64,
            wall_ns: NANOS_PER_SECOND,
            run_delay_ns: Some((self.core_taken * NANOS_PER_SECOND as f64) as u64),
            ..WorkerHealth::default()
        };
        PointRecord {
            point,
            load: self.load.clone(),
            pacing: Pacing::Precise,
            started_unix_ns: STARTED_UNIX_NS,
            warm_up_ns: Nanos::from_secs(u64::from(WARM_UP_SECONDS)),
            measured_ns,
            clock_step_ns: 0,
            totals: WorkerTotals {
                due,
                done_in_window: done,
                ops: BTreeMap::from([("get".to_owned(), counts)]),
                bytes_read: 1_000 * done,
                clients_participating: self.load.clients(),
                pieces: done,
                piece_ns_total: u64::from(self.load.clients()) * measured_ns.0,
                ..WorkerTotals::default()
            },
            seconds: Self::phases().map(second).collect(),
            workers: vec![vec![health; (WARM_UP_SECONDS + MEASURE_SECONDS) as usize]],
            process_cpu_ns: 1_000_000_000,
            monitor_cpu_ns: 0,
            panic: None,
            ended_early: None,
            resources: Vec::new(),
            core_users: None,
            server_core_users: None,
            server_lost: None,
            data_set_bytes: None,
            access_pattern: None,
            host_work: Vec::new(),
            agents: Vec::new(),
            phase: None,
            ops: None,
        }
    }
}

/// A bundle: the journal's records, and histograms by stem of the point.
pub(crate) struct RawRun<'a> {
    pub suite: &'a Suite,
    pub journal: &'a [JournalRecord],
    pub histograms: BTreeMap<String, PointTimes>,
    pub disclosure: Option<Disclosure>,
}

/// The result of a bundle, as the program derives it.
pub(crate) fn analyse(raw: &RawRun<'_>) -> RunResult {
    let Some(JournalRecord::RunStarted(started)) = raw.journal.first() else {
        return not_started(raw.suite, raw.disclosure.as_ref());
    };
    let mut analysis =
        Analysis::begin(raw.suite, SENTENCES, started.clone(), raw.disclosure.clone());
    for record in &raw.journal[1..] {
        add(&mut analysis, record, &raw.histograms);
    }
    analysis.finish()
}

/// Takes in one record.
pub(crate) fn add(
    analysis: &mut Analysis<'_>,
    record: &JournalRecord,
    histograms: &BTreeMap<String, PointTimes>,
) {
    match record {
        JournalRecord::PointFinished(point) => {
            analysis.add_point(point, histograms.get(&point.point.stem()));
        }
        other => analysis.add_record(other),
    }
}

/// A run with its journal.
pub(crate) struct RunBuilder {
    pub suite: Suite,
    pub journal: Vec<JournalRecord>,
    pub histograms: BTreeMap<String, PointTimes>,
}

impl RunBuilder {
    /// Open points that sustain their load.
    pub(crate) fn open(rates: &[f64]) -> Self {
        Self::from_points(rates.iter().map(|rate| PointBuilder::open(*rate)))
    }

    /// These points as the ladder.
    pub(crate) fn from_points(points: impl IntoIterator<Item = PointBuilder>) -> Self {
        let points: Vec<PointBuilder> = points.into_iter().collect();
        let loads: Vec<f64> = points.iter().map(|p| p.load.requested()).collect();
        let first = points.first().cloned().unwrap_or_else(|| PointBuilder::open(1.0));
        let mut run = Self {
            suite: suite(&first.load),
            journal: vec![JournalRecord::RunStarted(started(&loads))],
            histograms: BTreeMap::new(),
        };
        run.journal.push(JournalRecord::RunFinished { at_unix_ns: STARTED_UNIX_NS });
        for point in points {
            run.push(&point, Purpose::Ladder);
        }
        run
    }

    /// 100 clients with one think time after the other: seconds, and achieved ops/s.
    pub(crate) fn thinking(points: &[(u64, u64)]) -> Self {
        let mut run = Self::from_points(points.iter().map(|(think_s, ops)| {
            let mut point = PointBuilder::closed(100).achieved(*ops);
            if let Load::Closed { axis_think_ns, .. } = &mut point.load {
                *axis_think_ns = Some(Nanos::from_secs(*think_s));
            }
            point
        }));
        let thinks = points.iter().map(|(think_s, _)| Nanos::from_secs(*think_s)).collect();
        run.suite.ladder = Ladder::Think { clients: 100, thinks };
        run
    }

    /// A probe that achieved half of its requested rate.
    pub(crate) fn with_failed_probe(self, rate: f64) -> Self {
        self.with_probe(PointBuilder::open(rate).achieved(rate as u64 / 2))
    }

    /// A step of the search for the peak.
    pub(crate) fn with_probe(mut self, probe: PointBuilder) -> Self {
        self.push(&probe, Purpose::Probe);
        self
    }

    /// A re-run of a search's claim.
    pub(crate) fn with_rerun(mut self, point: PointBuilder) -> Self {
        self.push(&point, Purpose::Verify);
        self
    }

    /// A pilot, whichever load point it is of.
    pub(crate) fn with_pilot(mut self, pilot: PointBuilder) -> Self {
        self.push(&pilot, Purpose::Pilot);
        self
    }

    fn push(&mut self, point: &PointBuilder, purpose: Purpose) {
        let ordinal = self.histograms.len() as u32 + 1;
        let id = PointId { ordinal, purpose };
        let before_last = self.journal.len() - 1;
        let record = JournalRecord::PointFinished(Box::new(point.record(id)));
        self.journal.insert(before_last, record);
        self.histograms.insert(id.stem(), point.point_times());
    }

    /// The record of the point at this index of the ladder.
    pub(crate) fn finished_mut(&mut self, index: usize) -> &mut PointRecord {
        let mut finished = self.journal.iter_mut().filter_map(|record| match record {
            JournalRecord::PointFinished(point) => Some(&mut **point),
            _ => None,
        });
        finished.nth(index).expect("the ladder has that point")
    }

    pub(crate) fn started_mut(&mut self) -> &mut RunStarted {
        match self.journal.first_mut() {
            Some(JournalRecord::RunStarted(started)) => started,
            other => panic!("the journal begins with {other:?}"),
        }
    }

    pub(crate) fn raw(&self) -> RawRun<'_> {
        RawRun {
            suite: &self.suite,
            journal: &self.journal,
            histograms: self.histograms.clone(),
            disclosure: None,
        }
    }
}

fn started(ladder: &[f64]) -> RunStarted {
    RunStarted {
        gates: plimsoll_model::gate::Gates::default(),
        asked: None,
        format: JOURNAL_FORMAT,
        version: "0.1.0".to_owned(),
        debug_build: false,
        profile: "standard".to_owned(),
        seed: 1,
        targets: vec!["builtin:".to_owned()],
        ladder: Some(ladder.to_vec()),
        op_names: OpNames(vec!["get".to_owned()]),
        op_shares: None,
        page_limits: Vec::new(),
        sessions: None,
        departures: Vec::new(),
        method: Vec::new(),
        command: vec!["plimsoll".to_owned(), "run".to_owned()],
        capacity: None,
        at_unix_ns: STARTED_UNIX_NS,
    }
}

fn suite(load: &Load) -> Suite {
    let mode = match load {
        Load::Open { .. } => "open",
        Load::Closed { .. } => "closed",
    };
    let text = format!(
        "format = 1\nname = \"test\"\ntitle = \"A test\"\nprotocol = \"test\"\n\
         [load]\nmode = \"{mode}\"\n[ladder]\nkind = \"points\"\npoints = [1]\n[workload]\n"
    );
    Suite::parse("test.toml", &text, &[], &|_, _| Ok(toml::Table::new())).unwrap()
}
