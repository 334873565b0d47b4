//! The search for the peak.

use std::time::Duration;

use plimsoll_analysis::climb::Step;
use plimsoll_analysis::search::{PeakAnswer, PeakSearch, ProbeOutcome, SearchEnd, SearchStep};
use plimsoll_model::assignment::{Load, Purpose};
use plimsoll_model::bundle::MONITORS_DIR;
use plimsoll_model::event::JournalRecord;
use plimsoll_model::method::deviations;
use plimsoll_model::suite::Ladder;
use plimsoll_model::units::{Nanos, grouped};
use plimsoll_protocol::Work;
use plimsoll_protocol::net::Room;
use plimsoll_report::sentences::finding;

use super::super::run_setup::RunSetup;
use super::super::{disclose, ladder};
use super::request::{parameters, planned_loads};
use super::{Planned, Run, Window};
use crate::clock::{Countdown, Stopwatch};
use crate::failure::Failure;
use crate::progress::RunProgress;

/// Expected search steps of a run, for the time left.
const STEPS_GUESSED: u64 = 10;

/// Outcome of a search.
pub(super) enum PeakOutcome {
    Peak(f64),
    Nothing { reason: String },
    Interrupted,
}

impl Run<'_> {
    /// Searches the peak. A resumed run does not repeat what it found out already.
    pub(super) fn search(
        &mut self,
        steps: u32,
        live: &mut dyn RunProgress,
    ) -> Result<PeakOutcome, Failure> {
        let recorded = self.records.iter().find_map(|record| match record {
            JournalRecord::PeakFound { peak, .. } => Some(*peak),
            _ => None,
        });
        if let Some(peak) = recorded {
            return Ok(PeakOutcome::Peak(peak));
        }
        let room = self.room()?;
        let mut search = self.search_so_far(room.as_ref())?;
        let mut time = self.search_time(steps, search.steps());
        loop {
            let step = search.next(time.steps_left());
            let title = format!("search: {step}");
            let load = match &step {
                Step::Answer(answer) => {
                    let how = search.how(answer, finding::cause);
                    return self.record_peak((answer, how), room.as_ref(), live);
                }
                Step::Nothing => {
                    return Ok(PeakOutcome::Nothing { reason: search.why_none(finding::cause) });
                }
                step => ladder::step_load(&self.request.suite, self.profile, step),
            };
            let Some((load, purpose)) = load else { continue };
            self.settle_for(&load, purpose, live)?;
            let countdown = time.countdown;
            let window = Window::Usual(1);
            let point = Planned { load, purpose, window, title, countdown, last: false };
            match self.point(&point, live)? {
                Some(evaluated) => {
                    search.report(&step, ProbeOutcome::from_point(&evaluated.result))
                }
                None => return Ok(PeakOutcome::Interrupted),
            }
            time.steps += 1;
        }
    }

    /// Plans the ladder up to `highest`, on the data that belongs to it, and names the remaining
    /// deviations from the method again.
    pub(super) fn plan_ladder(
        &mut self,
        highest: f64,
        steps: u32,
        live: &mut dyn RunProgress,
    ) -> Result<Vec<f64>, Failure> {
        // A resumed run continues exactly the ladder it began.
        if let Some(loads) = planned_loads(&self.records) {
            return Ok(loads.to_vec());
        }
        // Fractions of an op are noise where there are hundreds.
        let highest = if highest >= 100.0 { highest.floor() } else { highest };
        let loads = Ladder::evenly(highest, steps);
        self.settle(highest, live)?;
        let method = parameters(self.request, &self.setup, self.fleet.as_ref());
        let deviations = deviations(&method);
        let planned =
            JournalRecord::LadderPlanned { loads: loads.clone(), departures: deviations, method };
        self.record_durably(planned)?;
        Ok(loads)
    }

    fn record_peak(
        &mut self,
        (answer, how): (&PeakAnswer, String),
        room: Option<&Room>,
        live: &mut dyn RunProgress,
    ) -> Result<PeakOutcome, Failure> {
        let PeakAnswer { peak, bound, ended_by, .. } = answer;
        live.line(&format!("peak: {how}"));
        let ended_by = match ended_by {
            None => None,
            Some(SearchEnd::LoadMax) => room.map(|room| room_text(*peak, room)),
            Some(SearchEnd::Time) => Some(format!(
                "the time for the search: {} ops/s was carried when it ended; what the server can \
                 do beyond that is unknown; ask for more with --peak N, or take the standard \
                 profile",
                grouped(*peak)
            )),
        };
        if let Some(text) = &ended_by {
            live.line(&format!("limit: {text}"));
        }
        let (peak, bound) = (*peak, *bound);
        self.record_durably(JournalRecord::PeakFound { peak, how, bound, held_back: ended_by })?;
        Ok(PeakOutcome::Peak(peak))
    }

    /// A search with the steps that an earlier part of this run finished.
    fn search_so_far(&self, room: Option<&Room>) -> Result<PeakSearch, Failure> {
        let mut config = ladder::search_config(&self.request.suite, self.request.profile);
        if let Some(room) = room {
            config.climb.max = config.climb.max.min(room.load_max_ops_per_s);
        }
        let mut search = PeakSearch::new(config);
        for (step, outcome) in self.earlier_steps()? {
            search.report(&step, outcome);
        }
        let climbed = self.finished(|purpose| purpose == Purpose::Ladder).next().is_some();
        if !climbed && matches!(search.next(u32::MAX), Step::Nothing) {
            // The user has fixed something and resumed: the earlier outcome no longer counts.
            search = PeakSearch::new(config);
        }
        Ok(search)
    }

    /// Steps of the search that an earlier part of this run finished.
    fn earlier_steps(&self) -> Result<Vec<(SearchStep, ProbeOutcome)>, Failure> {
        let mut finished: Vec<_> = self
            .finished(|purpose| matches!(purpose, Purpose::Probe | Purpose::Verify))
            .map(|record| record.point)
            .collect();
        if finished.is_empty() {
            return Ok(Vec::new());
        }
        finished.sort_by_key(|point| point.ordinal);
        let result = self.analysis.finish();
        let steps = finished.into_iter().filter_map(|point| {
            let stem = point.stem();
            let probe = result.probes.iter().find(|p| p.stem.as_deref() == Some(&stem))?;
            let load = probe.requested;
            let step = match (point.purpose, probe.offered_ops_per_s) {
                (_, None) => Step::Saturate,
                (Purpose::Verify, _) => Step::Verify { load, number: 1 },
                _ => Step::Probe { load },
            };
            Some((step, ProbeOutcome::from_point(probe)))
        });
        Ok(steps.collect())
    }

    /// The highest load that the targets have room for.
    pub(super) fn room(&mut self) -> Result<Option<Room>, Failure> {
        match &mut self.setup.plan.work {
            Work::PerPoint(preparation) => Ok(preparation.room(&self.setup.dial)?),
            Work::Fixed(_) => {
                let room = self.setup.registration.room;
                Ok(room(&self.request.suite, self.profile, &self.setup.targets)?)
            }
        }
    }

    /// Before a step: probes need data of about the size that belongs to their load; a claim is
    /// verified on its own data.
    pub(super) fn settle_for(
        &mut self,
        load: &Load,
        purpose: Purpose,
        live: &mut dyn RunProgress,
    ) -> Result<(), Failure> {
        let Load::Open { rate_ops_per_s, .. } = load else { return Ok(()) };
        let highest = rate_ops_per_s.get();
        let first = self.setup.highest.is_none();
        let needed = match purpose {
            Purpose::Probe | Purpose::Profile | Purpose::Pilot => {
                first && self.needs_other_files(highest)?
            }
            Purpose::Verify | Purpose::Ladder => first || self.needs_other_files(highest)?,
        };
        if needed { self.settle(highest, live) } else { Ok(()) }
    }

    /// Whether the servers would be started with another file set for that load. Sets that are
    /// written through the server follow each load by themselves.
    fn needs_other_files(&self, highest: f64) -> Result<bool, Failure> {
        let suite = &self.request.suite;
        let protocol = self.setup.registration.protocol;
        let of = |highest| protocol.file_set_needed(suite, self.profile, highest);
        Ok(of(Some(highest))? != of(self.setup.highest)?)
    }

    /// Restarts our own servers with the data that belongs to `highest`, unless they have it.
    pub(super) fn settle(
        &mut self,
        highest: f64,
        live: &mut dyn RunProgress,
    ) -> Result<(), Failure> {
        if self.setup.highest == Some(highest) {
            return Ok(());
        }
        // Stopped first: the new servers need the same cores and the space of the old file set.
        self.setup.targets.clear();
        let fleet = self.fleet.as_mut();
        self.setup = RunSetup::prepare(self.request, Some(highest), fleet, (self.signals, live))?;
        self.endpoints = self.setup.endpoints();
        let dir = self.bundle.dir().join(MONITORS_DIR);
        let sent = self.request.headers.put_into(&self.request.suite);
        self.watcher.restart(&dir, self.setup.served(&sent))?;
        self.disclosure = disclose::disclosure(self.request, &self.setup, self.fleet.as_ref());
        self.disclose()?;
        self.disclose_sources()
    }

    fn search_time(&self, ladder_points: u32, earlier: u32) -> SearchTime {
        let (probe, point) = (self.point_ns(Purpose::Probe), self.point_ns(Purpose::Ladder));
        let ladder = u64::from(ladder_points) * point;
        let guess = STEPS_GUESSED * probe + ladder;
        SearchTime {
            whole: ladder::search_time(self.request.profile),
            countdown: Countdown::start(Nanos(guess)),
            watch: Stopwatch::start(),
            earlier: Nanos(u64::from(earlier) * probe),
            step: Nanos(probe),
            steps: 0,
            ladder: Nanos(ladder),
            ladder_points,
        }
    }
}

/// Time budget of a search.
struct SearchTime {
    /// Including the ladder; `None`: unlimited.
    whole: Option<Nanos>,
    countdown: Countdown,
    watch: Stopwatch,
    /// Duration of an earlier part of the run.
    earlier: Nanos,
    /// Load time of a step.
    step: Nanos,
    /// Steps that finished since the watch was started.
    steps: u32,
    /// Load time of the ladder.
    ladder: Nanos,
    ladder_points: u32,
}

impl SearchTime {
    /// Steps that fit before the ladder must begin. The overhead of a step (data, drain, servers)
    /// is the average of the steps so far.
    fn steps_left(&self) -> u32 {
        self.steps_left_after(self.watch.elapsed())
    }

    fn steps_left_after(&self, spent: Duration) -> u32 {
        let Some(whole) = self.whole else { return u32::MAX };
        let spent = spent.as_secs_f64();
        let step = self.step.as_secs_f64();
        let taken = if self.steps == 0 { step } else { (spent / f64::from(self.steps)).max(step) };
        let ladder = self.ladder.as_secs_f64() + f64::from(self.ladder_points) * (taken - step);
        let left = whole.as_secs_f64() - self.earlier.as_secs_f64() - spent - ladder;
        // The conversion saturates.
        (left / taken).floor() as u32
    }
}

fn room_text(peak: f64, room: &Room) -> String {
    format!(
        "limited by room for files: {} is free on {}, enough for the file set of {} ops/s, which \
         the server held; free some space or give it more memory to see what it can do beyond that",
        room.free,
        room.location,
        grouped(peak)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_has_the_time_that_its_ladder_leaves() {
        let second = Nanos::from_secs;
        let time = |steps, earlier| SearchTime {
            whole: Some(second(105)),
            countdown: Countdown::start(second(100)),
            watch: Stopwatch::start(),
            earlier: second(earlier),
            step: second(4),
            steps,
            ladder: second(40),
            ladder_points: 10,
        };
        let after = |time: SearchTime, seconds| time.steps_left_after(Duration::from_secs(seconds));
        assert_eq!(after(time(0, 0), 0), 16, "65 s of 4 s each");
        // Each took 6 s, and so will the points of the ladder: 105 - 30 - 60 are left.
        assert_eq!(after(time(5, 0), 30), 2);
        assert_eq!(after(time(5, 8), 30), 1, "a resumed run has less");
        assert_eq!(after(time(10, 0), 60), 0);
        assert_eq!(after(SearchTime { whole: None, ..time(10, 0) }, 6_000), u32::MAX);
    }
}
