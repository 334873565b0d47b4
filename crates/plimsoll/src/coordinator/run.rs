//! The run itself: search if need be, climb the ladder, keep the bundle usable at every moment.

mod asked;
mod capacity;
mod making;
mod profile;
mod search;
mod tries;

use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_analysis::Analysis;
use plimsoll_engine::agent;
use plimsoll_model::assignment::{Endpoint, Load, Phases, Purpose};
use plimsoll_model::bundle::{BundleReader, BundleWriter, MONITORS_DIR, Manifest};
use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::{JournalRecord, PointRecord};
use plimsoll_model::result::RunResult;
use plimsoll_model::suite::Profile;
use plimsoll_model::units::Nanos;
use plimsoll_monitor::Source;
use plimsoll_protocol::Work;
use plimsoll_protocol::host::reach;
use plimsoll_protocol::net::Dial as _;

use super::ladder::{self, LadderPlan};
use super::run_setup::{RunRequest, RunSetup};
use super::watcher::Watcher;
use super::{disclose, sources};
use crate::clock::{Stopwatch, unix_ns};
use crate::derive;
use crate::exit::{Exit, Failure};
use crate::fleet::Fleet;
use crate::observers::Observers;
use crate::signals::Signals;
use crate::terminal::{Countdown, Live, LoadUnit, note, opening_line};
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
    profile::check(request, &setup)?;
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
    profile::check(&request, &setup)?;
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
        let points = self.points(live);
        let stop = match points.and_then(|stop| self.profile_server(stop, live)) {
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
        let opening = |load: &f64| self.opening_span(*load as u32).0;
        let opening: u64 = loads.iter().skip(done).map(opening).sum();
        let countdown = Countdown::start(Nanos(left * self.point_ns(Purpose::Ladder) + opening));
        self.check_open_files(loads.get(done..).unwrap_or_default())?;
        let unit = LoadUnit::of(&self.request.suite, self.profile);
        if let Some(loads) = loads.get(done..).filter(|left| !left.is_empty()) {
            live.opening(&opening_line(loads, unit, &self.phases(Purpose::Ladder)));
        }
        for (index, requested) in loads.iter().enumerate().skip(done) {
            let load = ladder::load_at(&self.request.suite, self.profile, *requested);
            let title = format!("point {}/{}, {}", index + 1, loads.len(), unit.text(*requested));
            let last = index + 1 == loads.len() && !self.is_to_be_profiled();
            let point = Planned { load, purpose: Purpose::Ladder, title, countdown, last };
            if self.point(&point, live)?.is_none() {
                return Ok(Stop::Interrupted);
            }
        }
        Ok(Stop::Finished)
    }

    /// The connections of all load points are within the limit of open files of this program, if it
    /// makes the load: that is known before the first point, and not at the last.
    fn check_open_files(&self, loads: &[f64]) -> Result<(), Failure> {
        if self.fleet.is_some() {
            return Ok(());
        }
        let load = |requested: &f64| ladder::load_at(&self.request.suite, self.profile, *requested);
        let clients = loads.iter().map(|requested| load(requested).clients()).max();
        agent::raise_descriptor_limit(clients.unwrap_or_default())
            .map_err(|error| Failure::unusable(error.to_string()))
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

    /// Timings of a point of this load. The warm-up begins when the last client has begun to open
    /// its session.
    fn phases_of(&self, purpose: Purpose, load: &Load) -> Phases {
        let phases = self.phases(purpose);
        Phases { warm_up_ns: phases.warm_up_ns + self.opening_span(load.clients()), ..phases }
    }

    /// How long so many clients take to open the sessions that they keep.
    fn opening_span(&self, clients: u32) -> Nanos {
        self.setup.plan.sessions.as_ref().map_or(Nanos::ZERO, |sessions| sessions.span(clients))
    }

    fn phases(&self, purpose: Purpose) -> Phases {
        let asked = self.request.capacity.as_ref().filter(|_| purpose != Purpose::Profile);
        match asked {
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
