//! The run itself: search if need be, climb the ladder, keep the bundle usable at every moment.

mod asked;
mod capacity;
mod search;
mod tries;

use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_analysis::{Analysis, JudgedPoint, PointTimes};
use plimsoll_model::assignment::{Assignment, Endpoint, Load, Phases, PointId, Purpose};
use plimsoll_model::bundle::{BundleReader, BundleWriter, MONITORS_DIR, Manifest};
use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::{JournalRecord, PointRecord};
use plimsoll_model::outcome::OpNames;
use plimsoll_model::result::RunResult;
use plimsoll_model::suite::Profile;
use plimsoll_model::units::{Nanos, grouped};
use plimsoll_monitor::Source;
use plimsoll_protocol::Work;
use plimsoll_protocol::host::reach;
use plimsoll_protocol::net::{Dial as _, SetupError};

use super::fleet_point::{FleetPoint, crews, deal};
use super::ladder::{self, LadderPlan};
use super::point::{Makers, PointDesk, PointEnd};
use super::run_setup::{RunRequest, RunSetup};
use super::setup::setup_shower;
use super::watcher::Watcher;
use super::{conditioning, disclose, sources};
use crate::clock::{Stopwatch, unix_ns};
use crate::derive;
use crate::exit::{Exit, Failure};
use crate::fleet::Fleet;
use crate::observers::{BeginningPoint, FinishedPoint, Observers, SecondView};
use crate::signals::Signals;
use crate::terminal::{
    Countdown, Live, LiveView, LoadUnit, finished_line, note, opening_line, search_line,
};
pub(crate) use asked::like;
use asked::{not_begun, planned_loads, request_of, run_started};
use search::Found;

/// A target that does not answer before a load point may take this long to come back.
const COMEBACK_WAIT: Duration = Duration::from_secs(10);
/// Pause between looks at a target that is away.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How a run ended, with its result.
pub(crate) struct RunEnd {
    /// The result.
    pub result: RunResult,
    /// The page.
    pub report: PathBuf,
    /// How the program ends.
    pub exit: Exit,
}

/// Makes a run.
pub(crate) fn run(
    request: &RunRequest,
    signals: &Signals,
    live: &mut Live,
) -> Result<RunEnd, Failure> {
    BundleWriter::refuse_occupied(&request.out)?;
    let sources = sources::open(&request.monitors)?;
    let observers = Observers::open(&request.observers)?;
    for greeting in observers.greetings() {
        live.clear();
        note(&greeting);
    }
    let mut fleet = launch(request, signals, live)?;
    let setup = RunSetup::prepare(request, None, fleet.as_mut(), (signals, live))?;
    let disclosure = disclose::disclosure(request, &setup, fleet.as_ref());
    let bundle = BundleWriter::create(&request.out, &request.suite)?;
    bundle.write_disclosure(&disclosure)?;
    let started = run_started(request, &setup, fleet.as_ref());
    let analysis = Analysis::begin(&request.suite, started.clone(), Some(disclosure.clone()));
    let parts = (setup, sources, observers);
    let mut run = Run::new(request, parts, (bundle, disclosure, analysis), signals)?;
    run.fleet = fleet;
    run.disclose_sources()?;
    run.record_durably(JournalRecord::RunStarted(started))?;
    let begun = run.analysis.finish();
    run.observers.tell(|observer| observer.run_begins(&begun));
    run.complete(live)
}

/// Goes on with an interrupted run.
pub(crate) fn resume(dir: &Path, signals: &Signals, live: &mut Live) -> Result<RunEnd, Failure> {
    let reader = BundleReader::open(dir)?;
    if reader.journal().is_finished() && Manifest::read(dir)?.is_none() {
        return finish_late(&reader);
    }
    let request = request_of(&reader)?;
    // Before the servers hear of it: another process may be measuring them.
    let bundle = BundleWriter::resume(&reader)?;
    let earlier = derive::analysis_of(&reader, &request.suite)?;
    let found = planned_loads(&reader.journal().records);
    let highest = found.and_then(|loads| loads.iter().copied().reduce(f64::max));
    let sources = sources::open(&request.monitors)?;
    let observers = Observers::open(&request.observers)?;
    let mut fleet = launch(&request, signals, live)?;
    let setup = RunSetup::prepare(&request, highest, fleet.as_mut(), (signals, live))?;
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

/// Every load point is there, but the disk was full or the program killed before the result was
/// whole: derives it.
fn finish_late(reader: &BundleReader) -> Result<RunEnd, Failure> {
    let bundle = BundleWriter::resume(reader)?;
    let (result, report) = derive::finish(bundle.dir())?;
    let exit = derive::exit_of(&result);
    Ok(RunEnd { result, report, exit })
}

/// Why the points stop.
enum Stop {
    /// All done.
    Finished,
    /// The user asked.
    Interrupted,
    /// The server failed in the search.
    NoPeak(String),
}

/// A run that goes on.
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
    /// Who makes the load; `None` where this program does it alone.
    fleet: Option<Fleet>,
    /// Of what the journal has so far.
    analysis: Analysis<'a>,
}

impl<'a> Run<'a> {
    fn new(
        request: &'a RunRequest,
        (setup, sources, observers): (RunSetup, Vec<Source>, Observers),
        (bundle, disclosure, analysis): (BundleWriter, Disclosure, Analysis<'a>),
        signals: &'a Signals,
    ) -> Result<Self, Failure> {
        let (dir, cores) = (bundle.dir().join(MONITORS_DIR), &setup.placement.rest_cores);
        let watcher = Watcher::start(&dir, (setup.registration, &setup.targets), sources, cores)?;
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

    /// What sources tell of their hosts goes to the disclosure too.
    fn disclose_sources(&mut self) -> Result<(), Failure> {
        if self.watcher.facts().is_empty() {
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

    /// What set-up has noted of the servers' replies since it was asked last.
    fn record_nonconformities(&mut self) -> Result<(), Failure> {
        let seen = self.setup.dial.nonconformities().take();
        match seen.is_empty() {
            true => Ok(()),
            false => self.record_durably(JournalRecord::SetupNonconformities { seen }),
        }
    }

    /// Runs what is left, then derives result and report, whatever happened.
    fn complete(mut self, live: &mut Live) -> Result<RunEnd, Failure> {
        let stop = match self.points(live) {
            // Ctrl-C while a file set was written.
            Err(failure) if failure.exit() == Exit::Interrupted => Ok(Stop::Interrupted),
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
        let Self { bundle, watcher, setup, fleet, mut observers, analysis, .. } = self;
        drop(fleet);
        let watched = watcher.stop();
        drop(setup);
        let dir = bundle.dir();
        if let Err(failure) = stop {
            // The first failure is the one to tell; what can be derived still is.
            let _ = derive::finish(dir);
            see_off(observers, live);
            return Err(failure.with_bundle(dir));
        }
        recorded.map_err(|failure| failure.with_bundle(dir))?;
        for problem in watched {
            live.clear();
            note(&format!("warning: {problem}"));
        }
        let (result, report) = derive::finish(dir).map_err(|failure| failure.with_bundle(dir))?;
        debug_assert!(result == analysis.finish(), "{} gives another result", dir.display());
        observers.tell(|observer| observer.run_finished(&result, &report));
        see_off(observers, live);
        let exit = match stop {
            Ok(Stop::Interrupted) => Exit::Interrupted,
            _ => derive::exit_of(&result),
        };
        Ok(RunEnd { result, report, exit })
    }

    fn points(&mut self, live: &mut Live) -> Result<Stop, Failure> {
        let loads = match self.setup.ladder.clone() {
            LadderPlan::Fixed(loads) => loads,
            LadderPlan::Capacity => return self.capacity(live),
            LadderPlan::Search { steps, headroom } => match self.search(steps, live)? {
                Found::Peak(peak) => self.plan_ladder(peak * headroom, steps, live)?,
                Found::Nothing { reason } => return Ok(Stop::NoPeak(reason)),
                Found::Interrupted => return Ok(Stop::Interrupted),
            },
        };
        let done = self.finished(|purpose| purpose == Purpose::Ladder).count();
        let left = loads.len().saturating_sub(done) as u64;
        let countdown = Countdown::start(Nanos(left * self.point_ns(Purpose::Ladder)));
        let unit = LoadUnit::of(&self.request.suite, self.profile);
        if let Some(loads) = loads.get(done..).filter(|left| !left.is_empty()) {
            live.opening(&opening_line(loads, unit, &self.phases(Purpose::Ladder)));
        }
        for (index, requested) in loads.iter().enumerate().skip(done) {
            let load = ladder::load_at(&self.request.suite, self.profile, *requested);
            let title = format!("point {}/{}, {}", index + 1, loads.len(), unit.text(*requested));
            let last = index + 1 == loads.len();
            let point = Planned { load, purpose: Purpose::Ladder, title, countdown, last };
            if self.point(&point, live)?.is_none() {
                return Ok(Stop::Interrupted);
            }
        }
        Ok(Stop::Finished)
    }

    /// Runs one load point, and once more where an agent was lost; `None` when the user asked for
    /// the end.
    fn point(&mut self, point: &Planned, live: &mut Live) -> Result<Option<JudgedPoint>, Failure> {
        match self.try_point(point, live)? {
            Tried::Judged(judged) => Ok(Some(*judged)),
            Tried::Interrupted => Ok(None),
            Tried::Lost(failure) => {
                live.clear();
                note(&format!("{failure}; the load point is made again"));
                self.enough_agents(failure)?;
                match self.try_point(point, live)? {
                    Tried::Judged(judged) => Ok(Some(*judged)),
                    Tried::Interrupted => Ok(None),
                    Tried::Lost(failure) => Err(failure),
                }
            }
        }
    }

    /// Those that are left may go on without the one that was lost.
    fn enough_agents(&self, failure: Failure) -> Result<(), Failure> {
        let wanted = self.request.asked.agents.as_ref().and_then(|asked| asked.min).unwrap_or(1);
        let left = self.fleet.as_ref().map_or(0, |fleet| fleet.living().count());
        if left >= wanted as usize { Ok(()) } else { Err(failure) }
    }

    fn try_point(&mut self, point: &Planned, live: &mut Live) -> Result<Tried, Failure> {
        if !self.wait_for_targets(live)? {
            return Ok(Tried::Interrupted);
        }
        let mut assignment = self.assignment(point);
        let Planned { title, countdown, .. } = point;
        let workload = match &mut self.setup.plan.work {
            Work::Fixed(workload) => workload.clone(),
            Work::PerPoint(preparation) => {
                preparation.deal(&deal(&assignment, self.fleet.as_ref()));
                let mut show = setup_shower(title, self.signals, live);
                let ready = preparation.ready(&point.load, &self.setup.dial, &mut show);
                match ready {
                    Err(SetupError::Stopped) => return Ok(Tried::Interrupted),
                    ready => {
                        assignment.files = preparation.files(&point.load);
                        ready?
                    }
                }
            }
        };
        self.record_nonconformities()?;
        conditioning::before_point(&self.request.suite)?;
        let metric = self.request.suite.metric;
        let mut view = LiveView::new(title, metric).of_lengths(&assignment.phases);
        let ops = assignment.phases.ops.map(|ops| format!("{} ops in all", grouped(ops as f64)));
        let observers = &mut self.observers;
        let (point_id, requested) = (assignment.point, assignment.load.requested());
        let beginning = BeginningPoint { title, point: point_id, requested };
        observers.tell(|observer| observer.point_begins(&beginning));
        let mut on_look_up = |second: Option<SecondView>| {
            if let Some(second) = second {
                view.see(&second);
                observers.tell(|observer| observer.second(&second));
            }
            live.passing_lines(|columns, style| {
                let left = ops.clone().unwrap_or_else(|| countdown.text());
                view.lines(&left, columns, style)
            });
        };
        let desk = PointDesk {
            bundle: &mut self.bundle,
            records: &mut self.records,
            analysis: &mut self.analysis,
            signals: self.signals,
            watcher: &mut self.watcher,
            placement: &self.setup.placement,
            on_look_up: &mut on_look_up,
        };
        let makers = match &mut self.fleet {
            None => Makers::Own,
            Some(fleet) => {
                let seats = fleet.living().map(|(id, member)| (id, member.seat.clone()));
                let crews = crews(&assignment, seats);
                let watches = self.request.monitors_agents;
                Makers::Fleet(FleetPoint { fleet, crews, watches })
            }
        };
        match desk.run(&assignment, &*workload, makers)? {
            PointEnd::Interrupted => Ok(Tried::Interrupted),
            PointEnd::Lost(failure) => Ok(Tried::Lost(failure)),
            PointEnd::Finished { record, times } => {
                let judged = self.judge(&record, &times, &workload.op_names());
                let (result, style) = (&judged.result, live.style());
                match (&self.request.capacity, point.purpose) {
                    // The search says what it makes of it.
                    (Some(_), _) => {}
                    (None, Purpose::Ladder) => live.line(&finished_line(title, result, style)),
                    (None, _) => live.line(&search_line(title, result, style)),
                }
                Ok(match self.put_back(point, live)? {
                    true => Tried::Judged(Box::new(judged)),
                    false => Tried::Interrupted,
                })
            }
        }
    }

    /// What the method wants put back on the servers after a point; false when the user asked for
    /// the end.
    fn put_back(&mut self, point: &Planned, live: &mut Live) -> Result<bool, Failure> {
        let Work::PerPoint(preparation) = &mut self.setup.plan.work else { return Ok(true) };
        let mut show = setup_shower(&point.title, self.signals, live);
        match preparation.after(&point.load, point.last, &self.setup.dial, &mut show) {
            Err(SetupError::Stopped) => Ok(false),
            done => Ok(done.map(|()| true)?),
        }
    }

    fn assignment(&self, point: &Planned) -> Assignment {
        let placement = &self.setup.placement;
        let finished = self.finished(|_| true).map(|record| record.point.ordinal).max();
        let ordinal = finished.unwrap_or(0) + 1;
        Assignment {
            point: PointId { ordinal, purpose: point.purpose },
            load: point.load.clone(),
            phases: self.phases(point.purpose),
            seed: self.seed_of(ordinal),
            workers: self.workers().min(point.load.clients().max(1)),
            cores: placement.generator_cores.clone(),
            pacing: placement.pacing,
            own_cores: placement.own_cores,
            priority: self.request.asked.priority,
            op_timeout: self.request.suite.op_timeout,
            endpoints: self.endpoints.clone(),
            sources: self.setup.sources.clone(),
            nonce: unix_ns(),
            reserved_ports: self.setup.plan.reserved_ports,
            on_client_failure: self.request.suite.load.on_client_failure(),
            crew: None,
            files: None,
            counts_clients: self.request.suite.score.is_some() && point.purpose == Purpose::Ladder,
        }
    }

    /// Workers over all agents that are there.
    fn workers(&self) -> u32 {
        match &self.fleet {
            None => self.setup.placement.workers,
            Some(fleet) => fleet.living().map(|(_, member)| member.seat.workers).sum(),
        }
    }

    /// Judges a point that is in the bundle; observers learn of it and of the run so far.
    fn judge(
        &mut self,
        record: &PointRecord,
        times: &PointTimes,
        op_names: &OpNames,
    ) -> JudgedPoint {
        let judged = self.analysis.add_point(record, Some(times)).clone();
        let run = self.analysis.finish();
        let mut points = run.points.iter().chain(&run.probes);
        if let Some(point) = points.find(|point| point.stem == judged.result.stem) {
            let finished = FinishedPoint { record, times, op_names, point, run: &run };
            self.observers.tell(|observer| observer.point_finished(&finished));
        }
        judged
    }

    /// Waits until every target answers; false when the user asked for the end.
    fn wait_for_targets(&mut self, live: &mut Live) -> Result<bool, Failure> {
        let waiting = Stopwatch::start();
        loop {
            if self.signals.is_asked() {
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
                Err(_) => live.passing(|| "a target is away, waiting for it".to_owned()),
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

    fn finished(&self, wanted: impl Fn(Purpose) -> bool) -> impl Iterator<Item = &PointRecord> {
        self.records.iter().filter_map(move |record| match record {
            JournalRecord::PointFinished(point) if wanted(point.point.purpose) => Some(&**point),
            _ => None,
        })
    }

    fn point_ns(&self, purpose: Purpose) -> u64 {
        self.phases(purpose).load_end().0
    }

    fn phases(&self, purpose: Purpose) -> Phases {
        match &self.request.capacity {
            Some(asked) => tries::phases(self.request.profile, self.profile, asked, purpose),
            None => ladder::phases(self.profile, purpose),
        }
    }
}

/// Starts the agents of a run that has any.
fn launch(
    request: &RunRequest,
    signals: &Signals,
    live: &mut Live,
) -> Result<Option<Fleet>, Failure> {
    let asked = request.asked.agents.as_ref();
    asked.map(|asked| Fleet::launch(asked, Some(&request.targets), (signals, live))).transpose()
}

/// What became of a load point.
enum Tried {
    Judged(Box<JudgedPoint>),
    /// The user asked for the end.
    Interrupted,
    /// An agent was lost.
    Lost(Failure),
}

/// Lets those who looked on go, and tells what went wrong with them.
fn see_off(observers: Observers, live: &mut Live) {
    for problem in observers.end() {
        live.clear();
        note(&format!("warning: {problem}"));
    }
}

/// A load point about to be run.
struct Planned {
    load: Load,
    purpose: Purpose,
    title: String,
    countdown: Countdown,
    /// No further point follows.
    last: bool,
}
