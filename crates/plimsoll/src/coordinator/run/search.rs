//! The search for the peak.

use plimsoll_analysis::search::{PeakSearch, ProbeOutcome, SearchStep};
use plimsoll_model::assignment::Purpose;
use plimsoll_model::bundle::MONITORS_DIR;
use plimsoll_model::event::JournalRecord;
use plimsoll_model::suite::{Ladder, ProfileName};
use plimsoll_model::units::Nanos;

use super::super::outset::Outset;
use super::super::{disclose, ladder};
use super::asked::departures;
use super::{Planned, Run};
use crate::derive;
use crate::exit::Failure;
use crate::terminal::{Countdown, Live};

/// Search steps a run is thought to take, for the time left.
const STEPS_GUESSED: u64 = 8;

/// What a search came to.
pub(super) enum Found {
    Peak(f64),
    Nothing { reason: String, estimate: Option<f64> },
    Interrupted,
}

impl Run<'_> {
    /// Searches the peak. What a resumed run has found out already is not run again.
    pub(super) fn search(&mut self, steps: u32, live: &mut Live) -> Result<Found, Failure> {
        let known = self.records.iter().find_map(|record| match record {
            JournalRecord::PeakFound { peak, .. } => Some(*peak),
            _ => None,
        });
        if let Some(peak) = known {
            return Ok(Found::Peak(peak));
        }
        let mut search = PeakSearch::new(ladder::search_config(self.request.profile));
        let mut estimate = None;
        for outcome in self.earlier_outcomes()? {
            estimate.get_or_insert(outcome.achieved);
            search.report(&outcome);
        }
        let climbed = self.finished(|purpose| purpose == Purpose::Ladder).next().is_some();
        if !climbed && matches!(search.next(), SearchStep::GaveUp { .. }) {
            // The user has mended something and resumed: the earlier answer no longer counts.
            search = PeakSearch::new(ladder::search_config(self.request.profile));
            estimate = None;
        }
        let guess = STEPS_GUESSED * self.point_ns(Purpose::Probe)
            + u64::from(steps) * self.point_ns(Purpose::Ladder);
        let countdown = Countdown::start(Nanos(guess));
        loop {
            let step = search.next();
            match &step {
                SearchStep::Found { peak, how } => {
                    live.line(&format!("peak: {how}"));
                    let (peak, how) = (*peak, how.clone());
                    self.record_durably(JournalRecord::PeakFound { peak, how })?;
                    return Ok(Found::Peak(peak));
                }
                SearchStep::GaveUp { reason } => {
                    return Ok(Found::Nothing { reason: reason.clone(), estimate });
                }
                _ => {}
            }
            let title = format!("search: {step}");
            let Some((load, purpose)) = ladder::step_load(&self.request.suite, self.profile, &step)
            else {
                continue;
            };
            let point = Planned { load, purpose, title, countdown, last: false };
            match self.point(&point, live)? {
                Some(result) => {
                    let outcome = ProbeOutcome::of(&result);
                    estimate.get_or_insert(outcome.achieved);
                    search.report(&outcome);
                }
                None => return Ok(Found::Interrupted),
            }
        }
    }

    /// The ladder up to `highest`, with what depends on it: the file set of our own servers grows
    /// to the method's size for that load, and what still departs is named anew.
    pub(super) fn plan_ladder(
        &mut self,
        highest: f64,
        steps: u32,
        live: &mut Live,
    ) -> Result<Vec<f64>, Failure> {
        // A resumed run climbs the ladder it began, to the last bit.
        if let Some(loads) = planned_loads(&self.records) {
            return Ok(loads.to_vec());
        }
        // Nobody asks for fractions of an op where there are hundreds.
        let highest = if highest >= 100.0 { highest.floor() } else { highest };
        let loads = Ladder::evenly(highest, steps);
        if self.outset.highest == Some(highest) {
            return Ok(loads);
        }
        // Stopped first: the new servers want the same cores and the room of the old file set.
        self.outset.targets.clear();
        self.outset = Outset::prepare(self.request, Some(highest), self.signals, live)?;
        self.endpoints = self.outset.endpoints();
        self.watcher.restart(&self.bundle.dir().join(MONITORS_DIR), &self.outset.targets)?;
        self.disclosure = disclose::disclosure(self.request, &self.outset);
        self.bundle.write_disclosure(&self.disclosure)?;
        let departures = departures(self.request, &self.outset);
        self.record_durably(JournalRecord::LadderPlanned { loads: loads.clone(), departures })?;
        Ok(loads)
    }

    /// A demo shows a ladder even where no load was held, on a busy machine for example.
    pub(super) fn loads_all_the_same(&self, estimate: Option<f64>) -> Option<f64> {
        let demo = self.request.profile == ProfileName::Demo;
        estimate.filter(|achieved| demo && *achieved > 0.0).map(|achieved| achieved / 2.0)
    }

    /// Outcomes of the search steps that an earlier part of this run finished.
    fn earlier_outcomes(&self) -> Result<Vec<ProbeOutcome>, Failure> {
        if self.finished(|purpose| purpose != Purpose::Ladder).next().is_none() {
            return Ok(Vec::new());
        }
        let result = derive::result_of(self.bundle.dir())?;
        Ok(result.probes.iter().map(ProbeOutcome::of).collect())
    }
}

/// The ladder that an earlier part of the run planned.
pub(super) fn planned_loads(records: &[JournalRecord]) -> Option<&[f64]> {
    records.iter().rev().find_map(|record| match record {
        JournalRecord::LadderPlanned { loads, .. } => Some(&loads[..]),
        _ => None,
    })
}
