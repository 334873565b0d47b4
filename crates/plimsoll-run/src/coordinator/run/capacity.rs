//! The search for the highest load within limits.

use plimsoll_analysis::capacity::{Config, Search};
use plimsoll_analysis::climb::Step;
use plimsoll_model::assignment::Purpose;
use plimsoll_model::event::JournalRecord;
use plimsoll_model::method::deviations;
use plimsoll_model::result::{NotCounted, PointResult};
use plimsoll_model::suite::{LoadSpec, ProfileName};
use plimsoll_model::units::Nanos;
use plimsoll_protocol::Work;
use plimsoll_report::sentences::capacity::why;

use super::super::ladder;
use super::request::parameters;
use super::{Planned, Run, Stop, Window};
use crate::clock::{Countdown, Stopwatch};
use crate::failure::Failure;
use crate::progress::RunProgress;

/// A quick search, short of its last re-runs: under four minutes in all.
const QUICK_TIME: Nanos = Nanos::from_secs(180);
/// Behind an answer that the data of a load limits, not the server.
const NO_ROOM: &str = "; for the data of a higher load there is no room: free some space on the \
                       server, or scale its data down, to see what it can do beyond that";
/// Expected steps of a search, for the time left.
const STEPS_GUESSED: u64 = 20;

impl Run<'_> {
    /// Searches the capacity. A resumed run does not repeat what it found out already.
    pub(super) fn capacity(&mut self, live: &mut dyn RunProgress) -> Result<Stop, Failure> {
        let ended =
            |record: &JournalRecord| matches!(record, JournalRecord::CapacitySearched { .. });
        if self.records.iter().any(ended) {
            return Ok(Stop::Finished);
        }
        let room = self.room_for_tries()?;
        let mut search = self.tries_so_far(room)?;
        let mut time = self.capacity_time();
        let mut last_text = String::new();
        loop {
            let steps_left = time.steps_left();
            let step = search.next(steps_left);
            let next = search.step_text(&step);
            live.line(&if last_text.is_empty() {
                next.clone()
            } else {
                format!("{last_text}; next: {next}")
            });
            let how = match &step {
                Step::Answer(answer) if answer.value + 1.0 > room => {
                    Some(search.how(answer, why) + NO_ROOM)
                }
                Step::Answer(answer) => Some(search.how(answer, why)),
                Step::Nothing => Some(search.why_none(why)),
                _ => None,
            };
            if let Some(how) = how {
                live.line(&how);
                let method = parameters(self.request, &self.setup, self.fleet.as_ref());
                let deviations = deviations(&method);
                self.record_durably(JournalRecord::CapacitySearched {
                    how,
                    departures: deviations,
                    method,
                })?;
                return Ok(Stop::Finished);
            }
            let load = ladder::step_load(&self.request.suite, self.profile, &step);
            let Some((load, purpose)) = load else { continue };
            self.settle_for(&load, purpose, live)?;
            let countdown = time.countdown;
            let window = Window::Usual(search.windows(&step, steps_left));
            let title = next.clone();
            let point = Planned { load, purpose, window, title, countdown, last: false };
            let usual_ns = self.phases_of(&point).load_end().0;
            // How much the server can do at most is no figure of the answer.
            let evaluated = match step {
                Step::Saturate => self.point(&point, live)?,
                _ => self.measure(point, live)?,
            };
            let Some(evaluated) = evaluated else { return Ok(Stop::Interrupted) };
            time.planned_ns += usual_ns;
            time.steps += 1;
            last_text = match evaluated.attempt {
                Some(attempt) => {
                    let text = format!("{next}: {}: {}", attempt.standing.as_str(), why(&attempt));
                    search.report(attempt);
                    text
                }
                None => {
                    let achieved = evaluated.result.achieved_ops_per_s.unwrap_or_default();
                    search.saturated(achieved);
                    format!("{next}: {} ops/s", plimsoll_model::units::grouped(achieved))
                }
            };
        }
    }

    /// Every try and every pilot has a schedule of its own: a re-run of the same arrivals would
    /// give the same result.
    pub(super) fn seed_of(&self, ordinal: u32, purpose: Purpose) -> u64 {
        match self.request.capacity.is_some() || purpose == Purpose::Pilot {
            true => self.request.seed.wrapping_add(u64::from(ordinal)),
            false => self.request.seed,
        }
    }

    /// The highest load whose data the targets have room for, in the unit of the suite's load.
    fn room_for_tries(&mut self) -> Result<f64, Failure> {
        let room = match (&self.request.suite.load, &mut self.setup.plan.work) {
            (LoadSpec::Open { .. }, _) => self.room()?.map(|room| room.load_max_ops_per_s),
            (LoadSpec::Closed { .. }, Work::PerPoint(preparation)) => {
                preparation.clients_max(&self.setup.dial)?.map(f64::from)
            }
            (LoadSpec::Closed { .. }, Work::Fixed(_)) => None,
        };
        Ok(room.unwrap_or(f64::INFINITY))
    }

    /// A search with the tries of an earlier part of this run.
    fn tries_so_far(&mut self, room: f64) -> Result<Search, Failure> {
        let mut config = Config::from_suite(&self.request.suite, self.request.profile);
        config.climb.max = config.climb.max.min(room);
        let mut search = Search::new(config);
        if self.finished(|_| true).next().is_none() {
            return Ok(search);
        }
        let result = self.analysis.finish();
        let is_usable = |probe: &&PointResult| probe.not_counted != Some(NotCounted::ServerLost);
        let closed = result.probes.iter().find(is_usable);
        if let Some(achieved) = closed.and_then(|probe| probe.achieved_ops_per_s) {
            search.saturated(achieved);
        }
        let earlier = result.summary.capacity_search.map(|search| search.tries);
        earlier.unwrap_or_default().into_iter().for_each(|attempt| search.report(attempt));
        Ok(search)
    }

    fn capacity_time(&self) -> SearchTime {
        let rerun_ns = self.point_ns(Purpose::Verify);
        let guess = Nanos(STEPS_GUESSED * self.point_ns(Purpose::Probe));
        let earlier = self.finished(|_| true).map(|record| self.point_ns(record.point.purpose));
        SearchTime {
            whole: match (self.request.profile, &self.request.options.until) {
                (ProfileName::Quick | ProfileName::Demo, None) => Some(QUICK_TIME),
                _ => None,
            },
            countdown: Countdown::start(guess),
            watch: Stopwatch::start(),
            earlier: Nanos(earlier.sum()),
            rerun: Nanos(rerun_ns),
            planned_ns: 0,
            steps: 0,
        }
    }
}

/// Time budget of a search.
struct SearchTime {
    /// `None`: unlimited.
    whole: Option<Nanos>,
    countdown: Countdown,
    watch: Stopwatch,
    /// Duration of an earlier part of the run.
    earlier: Nanos,
    /// Load time of a re-run.
    rerun: Nanos,
    /// Load time of the steps that finished since the watch was started.
    planned_ns: u64,
    /// Number of these steps.
    steps: u32,
}

impl SearchTime {
    /// Re-runs that fit. The overhead of a step is the average of the steps so far.
    fn steps_left(&self) -> u32 {
        self.steps_left_after(self.watch.elapsed().as_secs_f64())
    }

    fn steps_left_after(&self, spent_s: f64) -> u32 {
        let Some(whole) = self.whole else { return u32::MAX };
        let planned_s = Nanos(self.planned_ns).as_secs_f64();
        let overhead_s = ((spent_s - planned_s) / f64::from(self.steps.max(1))).max(0.0);
        let left_s = whole.as_secs_f64() - self.earlier.as_secs_f64() - spent_s;
        // The conversion saturates.
        (left_s / (self.rerun.as_secs_f64() + overhead_s)).floor() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_search_has_the_time_that_its_re_runs_leave() {
        let time = |steps, earlier| SearchTime {
            whole: Some(Nanos::from_secs(185)),
            countdown: Countdown::start(Nanos::from_secs(100)),
            watch: Stopwatch::start(),
            earlier: Nanos::from_secs(earlier),
            rerun: Nanos::from_secs(7),
            planned_ns: 40_000_000_000,
            steps,
        };
        assert_eq!(time(0, 0).steps_left_after(0.0), 26, "185 s of 7 s each");
        // Ten steps of 4 s took a second more each: 135 s of 8 s.
        assert_eq!(time(10, 0).steps_left_after(50.0), 16);
        assert_eq!(time(10, 40).steps_left_after(50.0), 11, "a resumed one has less");
        assert_eq!(time(10, 0).steps_left_after(500.0), 0);
        assert_eq!(SearchTime { whole: None, ..time(1, 0) }.steps_left_after(1e6), u32::MAX);
    }
}
