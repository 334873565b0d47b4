//! A run in which something fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use plimsoll_model::event::JournalRecord;
use plimsoll_monitor::ClockReading;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use xtask::verb::Result;

use super::site::{POINTS, RunProcess, Site};
use super::verdict::{Counted, Fault, PointState, Story, Verdict, attempts, counted};
use crate::process::{self, Running};

/// A run that takes longer does not end.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// Processes of a run that ended may take so long to go: an agent that was cut off before the
/// controller's greeting had reached it waits for that.
const GOING_LIMIT: Duration = Duration::from_secs(25);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What fails, and when.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    pub number: u32,
    pub fault: Fault,
    /// Which agent.
    pub agent: usize,
    /// From the start of the run.
    pub after: Duration,
    /// How long an agent is paused.
    pub pause: Duration,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub verdict: Verdict,
    /// Runs that did not end by themselves.
    pub endless: u32,
    /// Processes that did not end by themselves.
    pub left: u32,
    /// Load points that the result does not have in the end.
    pub missing: u32,
    /// The run had to be resumed.
    pub resumed: bool,
    /// Load points that were counted when it failed.
    pub counted: usize,
    /// Load points that count in the end.
    pub valid: usize,
}

/// The duration of a run without failures.
pub fn undisturbed(site: &Site<'_>, folder: &Path) -> Result<Duration> {
    let bundle = folder.join("undisturbed");
    let log = bundle.with_extension("log");
    let mut run = TrialRun { site, bundle, log, outcome: Outcome::default() };
    let began = process::now();
    run.wait(&mut site.run(&run.bundle, &run.log)?, None)?;
    let took = began.elapsed();
    run.settle()?;
    match run.standings().len() {
        POINTS => Ok(took),
        _ => Err(fs::read_to_string(&run.log).unwrap_or_default()),
    }
}

/// A run in progress.
struct TrialRun<'c> {
    site: &'c Site<'c>,
    bundle: PathBuf,
    log: PathBuf,
    outcome: Outcome,
}

impl Outcome {
    /// Whether no violation occurred.
    pub fn is_good(&self) -> bool {
        let Verdict { lost, wrongly_valid, miscounted, late_requests, .. } = self.verdict;
        let Self { endless, left, missing, .. } = *self;
        lost + wrongly_valid + miscounted + late_requests + endless + left + missing == 0
    }
}

impl Trial {
    /// Makes the run in `folder`, where its bundle and its messages stay.
    pub fn make(&self, site: &Site<'_>, folder: &Path) -> Result<Outcome> {
        let bundle = folder.join(format!("run-{}", self.number));
        let log = bundle.with_extension("log");
        let mut run = TrialRun { site, bundle, log, outcome: Outcome::default() };
        site.target.take();
        let mut controller = Running(site.run(&run.bundle, &run.log)?);
        let start = now_ns();
        while now_ns() < start + self.after.as_nanos() as u64 {
            std::thread::sleep(LOOK_AGAIN);
        }
        let Some(victim) = run.victim(self, &mut controller.0)? else {
            return Err("the run ended before anything failed".to_owned());
        };
        let at_ns = now_ns();
        self.strike(site, victim)?;
        let counted_before = counted(&run.journal());
        run.outcome.counted = counted_before.len();
        let continued_ns = run.wait(&mut controller.0, self.ends_at(at_ns, victim))?;
        run.settle()?;
        if self.fault == Fault::Cut {
            site.remote.namespace.mend()?;
            site.remote.wait()?;
        }
        let resumed_ns = run.resume()?;
        Ok(run.evaluate(self, (at_ns, continued_ns, resumed_ns), counted_before))
    }

    fn strike(&self, site: &Site<'_>, victim: RunProcess) -> Result<()> {
        match self.fault {
            Fault::Kill | Fault::Controller => signal(victim, Signal::KILL),
            Fault::Stop => signal(victim, Signal::STOP),
            Fault::Cut => return site.remote.namespace.cut(),
        }
        Ok(())
    }

    /// When a paused agent is resumed.
    fn ends_at(&self, at_ns: u64, victim: RunProcess) -> Option<Stopped> {
        let until_ns = at_ns + self.pause.as_nanos() as u64;
        (self.fault == Fault::Stop).then_some(Stopped { victim, until_ns })
    }
}

/// An agent that is stopped. Set going again when dropped.
struct Stopped {
    victim: RunProcess,
    until_ns: u64,
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal(self.victim, Signal::CONT);
    }
}

impl TrialRun<'_> {
    /// The process that fails, once it exists.
    fn victim(&self, trial: &Trial, controller: &mut Child) -> Result<Option<RunProcess>> {
        let agent = Some(trial.agent);
        loop {
            if !is_running(controller)? {
                return Ok(None);
            }
            let victim = match trial.fault {
                Fault::Controller => Some(RunProcess { id: controller.id(), agent: None }),
                _ => self.site.processes().into_iter().find(|process| process.agent == agent),
            };
            if victim.is_some() {
                return Ok(victim);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Waits for the end of the run, and of the pause of an agent; returns when that was.
    fn wait(
        &mut self,
        controller: &mut Child,
        mut stopped: Option<Stopped>,
    ) -> Result<Option<u64>> {
        let limit_ns = now_ns() + RUN_LIMIT.as_nanos() as u64;
        let mut continued_ns = None;
        loop {
            if stopped.as_ref().is_some_and(|stopped| stopped.until_ns <= now_ns()) {
                stopped = None;
                continued_ns = Some(now_ns());
            }
            let is_running = is_running(controller)?;
            if !is_running && stopped.is_none() {
                return Ok(continued_ns);
            }
            if is_running && limit_ns < now_ns() {
                self.outcome.endless += 1;
                controller.kill().map_err(|e| e.to_string())?;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Waits until every process of the run has gone, and ends those that do not.
    fn settle(&mut self) -> Result<()> {
        let limit_ns = now_ns() + GOING_LIMIT.as_nanos() as u64;
        loop {
            let left = self.site.processes();
            if left.is_empty() {
                return Ok(());
            }
            if limit_ns < now_ns() {
                self.outcome.left += left.len() as u32;
                left.into_iter().for_each(|process| signal(process, Signal::KILL));
                return Ok(());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Resumes a run that began and did not finish; returns when.
    fn resume(&mut self) -> Result<Option<u64>> {
        let journal = self.journal();
        let ended = |record: &JournalRecord| matches!(record, JournalRecord::RunFinished { .. });
        if journal.is_empty() || journal.iter().any(ended) {
            return Ok(None);
        }
        self.outcome.resumed = true;
        let at_ns = now_ns();
        let mut controller = Running(self.site.resume(&self.bundle, &self.log)?);
        self.wait(&mut controller.0, None)?;
        self.settle()?;
        Ok(Some(at_ns))
    }

    /// The last line may be half of one.
    fn journal(&self) -> Vec<JournalRecord> {
        let text = fs::read_to_string(self.bundle.join("journal.jsonl")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn evaluate(
        mut self,
        trial: &Trial,
        (at_ns, continued_ns, resumed_ns): (u64, Option<u64>, Option<u64>),
        counted_before: Vec<Counted>,
    ) -> Outcome {
        let journal = self.journal();
        let failed = (trial.fault != Fault::Controller).then_some(trial.agent);
        let story = Story {
            fault: trial.fault,
            agent: failed.map(|agent| self.site.agents[agent].1),
            at_ns,
            continued_ns,
            resumed_ns,
            counted: counted_before,
            in_the_end: counted(&journal),
            attempts: attempts(&journal, &self.site.agents),
            standings: self.standings(),
            requests: self.site.target.take(),
        };
        self.outcome.verdict = story.evaluate();
        let counts = |state: &&PointState| **state != PointState::Out;
        self.outcome.valid = story.standings.values().filter(counts).count();
        // A run that was refused before its first load point has none, and reported it.
        let planned = if journal.is_empty() { 0 } else { POINTS };
        self.outcome.missing = planned.saturating_sub(story.standings.len()) as u32;
        self.outcome
    }

    /// The state of each load point in the result.
    fn standings(&self) -> BTreeMap<u32, PointState> {
        let text = fs::read_to_string(self.bundle.join("result.json")).unwrap_or_default();
        let result: Value = serde_json::from_str(&text).unwrap_or_default();
        let points = result["points"].as_array().into_iter().flatten();
        points.filter_map(point_state).collect()
    }
}

fn point_state(point: &Value) -> Option<(u32, PointState)> {
    let position = u32::try_from(point["position"].as_u64()?).ok()?;
    let is_out = point["valid"] != true || !point["not_counted"].is_null();
    let is_warned = point["warnings"].as_array().is_some_and(|warnings| !warnings.is_empty());
    Some((
        position,
        match (is_out, is_warned) {
            (true, _) => PointState::Out,
            (false, true) => PointState::Warned,
            (false, false) => PointState::Clean,
        },
    ))
}

/// A process that has ended needs no signal.
fn signal(process: RunProcess, signal: Signal) {
    if let Some(id) = Pid::from_raw(process.id.cast_signed()) {
        let _ = kill_process(id, signal);
    }
}

fn is_running(child: &mut Child) -> Result<bool> {
    child.try_wait().map(|status| status.is_none()).map_err(|e| e.to_string())
}

fn now_ns() -> u64 {
    ClockReading::now().unix_ns
}
