//! The run itself: a search if needed, the ladder, and a bundle that is usable at every moment.

mod capacity;
mod making;
mod pilots;
mod profile;
mod request;
mod search;
mod shaped;
mod tries;

use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_analysis::Analysis;
use plimsoll_engine::agent;
use plimsoll_model::assignment::{Endpoint, Load, Phases, Purpose};
use plimsoll_model::bundle::{BundleReader, BundleWriter, MONITORS_DIR, Manifest};
use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::{JournalRecord, PointRecord};
use plimsoll_model::load_shape::LoadShape;
use plimsoll_model::result::RunResult;
use plimsoll_model::suite::Profile;
use plimsoll_model::units::Nanos;
use plimsoll_protocol::Work;
use plimsoll_protocol::host::reach;
use plimsoll_protocol::net::Dial as _;
use plimsoll_report::sentences::SENTENCES;

use super::ladder::{self, LadderPlan};
use super::run_setup::{RunRequest, RunSetup};
use super::sources::{OpenedSource, SourceHost};
use super::watcher::Watcher;
use super::{disclose, disk_sets, sources};
use crate::clock::{Countdown, Stopwatch, unix_ns};
use crate::derive;
use crate::failure::{Failure, FailureKind};
use crate::fleet::Fleet;
use crate::observers::Observers;
use crate::own_addresses::check_ports;
use crate::progress::{LoadUnit, RunProgress};
use crate::signals::Signals;
pub use request::like;
use request::{not_begun, planned_loads, request_of, run_started};
use search::PeakOutcome;

/// How long a target that does not answer before a load point may take to come back.
const COMEBACK_WAIT: Duration = Duration::from_secs(10);
/// Pause between two checks of a target that is away.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How a run ended, with its result.
pub struct RunEnd {
    /// The result.
    pub result: RunResult,
    /// The page.
    pub report: PathBuf,
    /// The user requested the end.
    pub is_interrupted: bool,
}

/// Makes a run.
pub fn run(
    request: &RunRequest,
    signals: &Signals,
    live: &mut dyn RunProgress,
) -> Result<RunEnd, Failure> {
    BundleWriter::refuse_occupied(&request.out)?;
    sources::refuse_more_servers_than_targets(&request.monitors, request.targets.len())?;
    let sources = sources::open(&request.monitors)?;
    let hosts: Vec<&SourceHost> = sources.iter().map(|it| &it.host).collect();
    disk_sets::declared(&request.systems.declared, &hosts)?;
    let observers = Observers::open(&request.observers)?;
    for greeting in observers.greetings() {
        live.note(&greeting);
    }
    let mut fleet = launch(request, signals, live)?;
    let setup = RunSetup::prepare(request, None, fleet.as_mut(), (signals, live))?;
    profile::check(request, &setup, &sources)?;
    let disclosure = disclose::disclosure(request, &setup, fleet.as_ref());
    let bundle = BundleWriter::create(&request.out, &request.suite)?;
    bundle.write_disclosure(&disclosure)?;
    let started = run_started(request, &setup, fleet.as_ref());
    let analysis =
        Analysis::begin(&request.suite, SENTENCES, started.clone(), Some(disclosure.clone()));
    let parts = (setup, sources, observers);
    let mut run = Run::new(request, parts, (bundle, disclosure, analysis), signals)?;
    run.fleet = fleet;
    run.disclose_sources()?;
    run.record_durably(JournalRecord::RunStarted(started))?;
    let begun = run.analysis.finish();
    run.observers.notify(|observer| observer.run_begins(&begun));
    run.complete(live)
}

/// Continues an interrupted run.
pub fn resume(
    dir: &Path,
    signals: &Signals,
    live: &mut dyn RunProgress,
) -> Result<RunEnd, Failure> {
    let reader = BundleReader::open(dir)?;
    if reader.journal().is_finished() && Manifest::read(dir)?.is_none() {
        return finish_late(&reader);
    }
    let request = request_of(&reader)?;
    // Before the servers are touched: another process may be measuring them.
    let bundle = BundleWriter::resume(&reader)?;
    let earlier = derive::analysis_of(&reader, &request.suite)?;
    let planned = planned_loads(&reader.journal().records);
    let highest = planned.and_then(|loads| loads.iter().copied().reduce(f64::max));
    let sources = sources::open(&request.monitors)?;
    let observers = Observers::open(&request.observers)?;
    let mut fleet = launch(&request, signals, live)?;
    let setup = RunSetup::prepare(&request, highest, fleet.as_mut(), (signals, live))?;
    profile::check(&request, &setup, &sources)?;
    bundle.forget_derived()?;
    let disclosure = match reader.disclosure()? {
        Some(disclosure) => disclosure,
        None => disclose::disclosure(&request, &setup, fleet.as_ref()),
    };
    bundle.write_disclosure(&disclosure)?;
    let mut analysis = earlier.ok_or_else(|| not_begun(dir))?;
    analysis.disclose(disclosure.clone());
    let parts = (setup, sources, observers);
    let mut run = Run::new(&request, parts, (bundle, disclosure, analysis), signals)?;
    run.fleet = fleet;
    run.records = reader.journal().records.clone();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let debug_build = cfg!(debug_assertions);
    let at_unix_ns = unix_ns();
    run.record_durably(JournalRecord::Resumed { at_unix_ns, version, debug_build })?;
    run.complete(live)
}

/// Derives the result of a run whose load points are all there: the disk was full or the program
/// killed before the result was complete.
fn finish_late(reader: &BundleReader) -> Result<RunEnd, Failure> {
    let bundle = BundleWriter::resume(reader)?;
    let (result, report) = derive::finish(bundle.dir())?;
    Ok(RunEnd { result, report, is_interrupted: false })
}

/// Why the points stop.
enum Stop {
    /// All done.
    Finished,
    /// The user requested it.
    Interrupted,
    /// The server failed in the search.
    NoPeak(String),
}

/// A run in progress.
struct Run<'a> {
    request: &'a RunRequest,
    profile: &'a Profile,
    setup: RunSetup,
    endpoints: Vec<Endpoint>,
    disclosure: Disclosure,
    bundle: BundleWriter,
    records: Vec<JournalRecord>,
    signals: &'a Signals,
    watcher: Watcher,
    observers: Observers,
    /// The agents that make the load; `None` if this program makes it alone.
    fleet: Option<Fleet>,
    /// The analysis of the journal so far.
    analysis: Analysis<'a>,
}

impl<'a> Run<'a> {
    fn new(
        request: &'a RunRequest,
        (setup, sources, observers): (RunSetup, Vec<OpenedSource>, Observers),
        (bundle, disclosure, analysis): (BundleWriter, Disclosure, Analysis<'a>),
        signals: &'a Signals,
    ) -> Result<Self, Failure> {
        let (dir, cores) = (bundle.dir().join(MONITORS_DIR), &setup.placement.rest_cores);
        let sent = request.headers.put_into(&request.suite);
        let watcher = Watcher::start(&dir, setup.served(&sent), sources, cores)?;
        Ok(Self {
            profile: request.suite.profiles.get(request.profile),
            endpoints: setup.endpoints(),
            request,
            setup,
            disclosure,
            bundle,
            records: Vec::new(),
            signals,
            watcher,
            observers,
            fleet: None,
            analysis,
        })
    }

    /// Adds to the disclosure what sources report about their hosts, and the roles of disks.
    fn disclose_sources(&mut self) -> Result<(), Failure> {
        let hosts: Vec<&SourceHost> = self.watcher.source_hosts().collect();
        self.disclosure.monitored = hosts.iter().map(|host| host.disclosed()).collect();
        let declared = disk_sets::declared(&self.request.systems.declared, &hosts)?;
        self.disclosure.disk_sets = disk_sets::with_sets_of_files(declared, &self.setup.targets);
        if self.disclosure.monitored.is_empty() && self.disclosure.disk_sets.is_empty() {
            return Ok(());
        }
        self.disclosure.setup.extend_from_slice(self.watcher.facts());
        self.disclose()
    }

    fn disclose(&mut self) -> Result<(), Failure> {
        self.analysis.disclose(self.disclosure.clone());
        Ok(self.bundle.write_disclosure(&self.disclosure)?)
    }

    fn record_durably(&mut self, record: JournalRecord) -> Result<(), Failure> {
        self.bundle.record_durably(&record)?;
        self.analysis.add_record(&record);
        self.records.push(record);
        Ok(())
    }

    /// Records what set-up noted about the servers' replies since the last call.
    fn record_nonconformities(&mut self) -> Result<(), Failure> {
        let nonconformities = self.setup.dial.nonconformities().take();
        match nonconformities.is_empty() {
            true => Ok(()),
            false => {
                self.record_durably(JournalRecord::SetupNonconformities { seen: nonconformities })
            }
        }
    }

    /// Runs what is left, then derives result and report in any case.
    fn complete(mut self, live: &mut dyn RunProgress) -> Result<RunEnd, Failure> {
        let points = self.points(live);
        let stop = match points.and_then(|stop| self.profile_server(stop, live)) {
            // Ctrl-C while a file set was written.
            Err(failure) if failure.kind() == FailureKind::Interrupted => Ok(Stop::Interrupted),
            stop => stop,
        };
        let noted = self.record_nonconformities();
        let at_unix_ns = unix_ns();
        let last = match &stop {
            Ok(Stop::Finished) => JournalRecord::RunFinished { at_unix_ns },
            Ok(Stop::Interrupted) => JournalRecord::Interrupted { at_unix_ns },
            Ok(Stop::NoPeak(reason)) => {
                JournalRecord::Aborted { at_unix_ns, reason: reason.clone() }
            }
            Err(failure) => JournalRecord::Aborted { at_unix_ns, reason: failure.to_string() },
        };
        let recorded = noted.and(self.record_durably(last));
        // Includes a load point whose server went away: `resume` makes it again.
        let is_point = |record: &&JournalRecord| matches!(record, JournalRecord::PointFinished(_));
        let points = self.records.iter().filter(is_point).count();
        let Self { bundle, watcher, setup, fleet, mut observers, analysis, .. } = self;
        drop(fleet);
        let watched = watcher.stop();
        drop(setup);
        let dir = bundle.dir();
        if let Err(failure) = stop {
            // The first failure is reported; the rest is still derived if possible.
            let _ = derive::finish(dir);
            see_off(observers, live);
            return Err(failure.with_bundle(dir, points));
        }
        recorded.map_err(|failure| failure.with_bundle(dir, points))?;
        for problem in watched {
            live.note(&format!("warning: {problem}"));
        }
        let (result, report) =
            derive::finish(dir).map_err(|failure| failure.with_bundle(dir, points))?;
        debug_assert!(result == analysis.finish(), "{} gives another result", dir.display());
        observers.notify(|observer| observer.run_finished(&result, &report));
        see_off(observers, live);
        let is_interrupted = matches!(stop, Ok(Stop::Interrupted));
        Ok(RunEnd { result, report, is_interrupted })
    }

    fn points(&mut self, live: &mut dyn RunProgress) -> Result<Stop, Failure> {
        match self.shape(live)? {
            Some(Ok(shape)) => return self.run_shape(&shape, live),
            Some(Err(stop)) => return Ok(stop),
            None => {}
        }
        let loads = match self.setup.ladder.clone() {
            LadderPlan::Fixed(loads) => loads,
            LadderPlan::Capacity => return self.capacity(live),
            LadderPlan::Search { steps, headroom } => match self.search(steps, live)? {
                PeakOutcome::Peak(peak) => self.plan_ladder(peak * headroom, steps, live)?,
                PeakOutcome::Nothing { reason } => return Ok(Stop::NoPeak(reason)),
                PeakOutcome::Interrupted => return Ok(Stop::Interrupted),
            },
        };
        let done = self.finished(|purpose| purpose == Purpose::Ladder).count();
        let left = loads.len().saturating_sub(done) as u64;
        let opening = |load: &f64| self.opening_span(*load as u32).0;
        let opening: u64 = loads.iter().skip(done).map(opening).sum();
        // With a precision, a pilot and half as much again at least.
        let halves = if self.request.options.until.is_some() { 5 } else { 2 };
        let points_ns = left * self.point_ns(Purpose::Ladder) * halves / 2;
        let countdown = Countdown::start(Nanos(points_ns + opening));
        self.check_connections(loads.get(done..).unwrap_or_default())?;
        let unit = LoadUnit::from_suite(&self.request.suite, self.profile);
        if let Some(loads) = loads.get(done..).filter(|left| !left.is_empty()) {
            live.ladder_begins(loads, unit, &self.phases(Purpose::Ladder));
        }
        for (index, requested) in loads.iter().enumerate().skip(done) {
            let load = ladder::load_at(&self.request.suite, self.profile, *requested);
            let title = format!("point {}/{}, {}", index + 1, loads.len(), unit.text(*requested));
            let last = index + 1 == loads.len() && !self.is_to_be_profiled();
            let purpose = Purpose::Ladder;
            let window = Window::Usual(1);
            let point = Planned { load, purpose, window, title, countdown, last };
            if self.measure(point, live)?.is_none() {
                return Ok(Stop::Interrupted);
            }
        }
        Ok(Stop::Finished)
    }

    /// Checks that this host has files and ports for the connections of all load points, if it
    /// makes the load: before the first point, not at the last.
    fn check_connections(&self, loads: &[f64]) -> Result<(), Failure> {
        if self.fleet.is_some() {
            return Ok(());
        }
        let load = |requested: &f64| ladder::load_at(&self.request.suite, self.profile, *requested);
        let connections = loads.iter().map(|requested| {
            let load = load(requested);
            match &self.setup.plan.work {
                Work::Fixed(workload) => agent::connections_of(&load, load.clients(), &**workload),
                Work::PerPoint(_) => load.clients(),
            }
        });
        let connections = connections.max().unwrap_or(0);
        agent::raise_descriptor_limit(connections)
            .map_err(|error| Failure::unusable(error.to_string()))?;
        match self.setup.plan.reserved_ports {
            true => Ok(()),
            false => check_ports(connections, &self.setup.sources, &self.setup.endpoints()),
        }
    }

    /// Waits until every target answers; false if the user requested the end.
    fn wait_for_targets(&mut self, live: &mut dyn RunProgress) -> Result<bool, Failure> {
        let waiting = Stopwatch::start();
        loop {
            if self.signals.is_stop_requested() {
                return Ok(false);
            }
            for target in &mut self.setup.targets {
                if let Some(process) = &mut target.process {
                    process.check()?;
                }
            }
            match self.probe() {
                Ok(()) => return Ok(true),
                Err(failure) if waiting.elapsed() > COMEBACK_WAIT => return Err(failure),
                Err(_) => live.passing("a target is away, waiting for it"),
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn probe(&mut self) -> Result<(), Failure> {
        match &mut self.setup.plan.work {
            Work::PerPoint(preparation) => Ok(preparation.probe(&self.setup.dial)?),
            Work::Fixed(_) => self.setup.targets.iter().try_for_each(|target| {
                reach::connect(&target.name(), &target.resolved, LOOK_AGAIN)?;
                Ok(())
            }),
        }
    }

    /// Finished points, without those whose server went away: they are made again.
    fn finished(&self, includes: impl Fn(Purpose) -> bool) -> impl Iterator<Item = &PointRecord> {
        let finished = self.records.iter().filter_map(|record| match record {
            JournalRecord::PointFinished(point) => Some(&**point),
            _ => None,
        });
        finished.filter(move |it| it.server_lost.is_none() && includes(it.point.purpose))
    }

    fn point_ns(&self, purpose: Purpose) -> u64 {
        self.phases(purpose).load_end().0
    }

    /// Timings of a point. The warm-up begins when the last client has begun to open its session.
    fn phases_of(&self, point: &Planned) -> Phases {
        let phases = self.phases(point.purpose);
        let phases = Phases {
            warm_up_ns: phases.warm_up_ns + self.opening_span(point.load.clients()),
            ramp_down_ns: if point.is_pilot() { Nanos::ZERO } else { phases.ramp_down_ns },
            ..phases
        };
        match &point.window {
            Window::Usual(windows) => {
                Phases { measure_ns: Nanos(phases.measure_ns.0 * u64::from(*windows)), ..phases }
            }
            Window::Pilot(length) | Window::Length(length) => {
                Phases { measure_ns: *length, ..phases }
            }
            Window::Shape(shape) => Phases {
                // There is nothing to warm up with.
                warm_up_ns: if shape.first_load() > 0.0 { phases.warm_up_ns } else { Nanos::ZERO },
                measure_ns: shape.length(),
                ramp_down_ns: Nanos::ZERO,
                ops: None,
                ..phases
            },
        }
    }

    /// How long this many clients take to open the sessions that they keep.
    fn opening_span(&self, clients: u32) -> Nanos {
        self.setup.plan.sessions.as_ref().map_or(Nanos::ZERO, |sessions| sessions.span(clients))
    }

    fn phases(&self, purpose: Purpose) -> Phases {
        let capacity = self.request.capacity.as_ref().filter(|_| purpose != Purpose::Profile);
        match capacity {
            Some(capacity) => tries::phases(self.request.profile, self.profile, capacity, purpose),
            None => ladder::phases(self.profile, purpose),
        }
    }
}

/// Starts the agents of a run that has any.
fn launch(
    request: &RunRequest,
    signals: &Signals,
    live: &mut dyn RunProgress,
) -> Result<Option<Fleet>, Failure> {
    let options = request.options.agents.as_ref();
    options
        .map(|options| Fleet::launch(options, Some(&request.targets), (signals, live)))
        .transpose()
}

/// Ends the observers and reports their problems.
fn see_off(observers: Observers, live: &mut dyn RunProgress) {
    for problem in observers.end() {
        live.note(&format!("warning: {problem}"));
    }
}

/// How long the window of a load point is.
#[derive(Clone, Debug, PartialEq)]
enum Window {
    /// This many times as long as usual.
    Usual(u32),
    /// Of a pilot, which finds the length of the next one.
    Pilot(Nanos),
    /// As long as its pilots found.
    Length(Nanos),
    /// Those of the phases of a load that changes.
    Shape(LoadShape),
}

/// A load point that will run next.
#[derive(Clone)]
struct Planned {
    load: Load,
    purpose: Purpose,
    window: Window,
    title: String,
    countdown: Countdown,
    /// No further point follows.
    last: bool,
}

impl Planned {
    fn is_pilot(&self) -> bool {
        matches!(self.window, Window::Pilot(_))
    }
}
