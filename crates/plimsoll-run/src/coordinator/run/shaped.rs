//! A load that changes: one load for all phases of its shape, each of which is a load point in the
//! bundle. It is made whole or not at all.

use plimsoll_model::assignment::Purpose;
use plimsoll_model::event::JournalRecord;
use plimsoll_model::load_shape::LoadShape;
use plimsoll_model::method::deviations;
use plimsoll_model::units::Nanos;

use super::super::ladder;
use super::request::parameters;
use super::search::PeakOutcome;
use super::{Planned, Run, Stop, Window};
use crate::clock::Countdown;
use crate::failure::Failure;
use crate::progress::RunProgress;

impl Run<'_> {
    /// The shape of this run's load, after a search if it depends on the peak; `None` where each
    /// load point has one load.
    pub(super) fn shape(
        &mut self,
        live: &mut dyn RunProgress,
    ) -> Result<Option<Result<LoadShape, Stop>>, Failure> {
        if let Some(shape) = &self.request.options.shape {
            return Ok(Some(Ok(shape.clone())));
        }
        let Some(recover) = self.request.options.recover else { return Ok(None) };
        let peak = match self.search(1, live)? {
            PeakOutcome::Peak(peak) => peak,
            PeakOutcome::Nothing { reason } => return Ok(Some(Err(Stop::NoPeak(reason)))),
            PeakOutcome::Interrupted => return Ok(Some(Err(Stop::Interrupted))),
        };
        let shape = recover.shape(Some(peak)).map_err(|error| Failure::wrong(error.to_string()))?;
        self.plan_shape(&shape, live)?;
        Ok(Some(Ok(shape)))
    }

    /// Records the loads of the shape, with the data that the highest of them needs.
    fn plan_shape(&mut self, shape: &LoadShape, live: &mut dyn RunProgress) -> Result<(), Failure> {
        let is_planned =
            |record: &JournalRecord| matches!(record, JournalRecord::LadderPlanned { .. });
        if self.records.iter().any(is_planned) {
            return Ok(());
        }
        self.settle(shape.max(), live)?;
        let method = parameters(self.request, &self.setup, self.fleet.as_ref());
        let deviations = deviations(&method);
        let loads = shape.phases.iter().map(|phase| phase.mean).collect();
        self.record_durably(JournalRecord::LadderPlanned { loads, departures: deviations, method })
    }

    /// Makes the load of the shape.
    pub(super) fn run_shape(
        &mut self,
        shape: &LoadShape,
        live: &mut dyn RunProgress,
    ) -> Result<Stop, Failure> {
        let finished = self.finished(|purpose| purpose == Purpose::Ladder).count();
        if finished >= shape.phases.len() {
            return Ok(Stop::Finished);
        }
        let load = ladder::load_at(&self.request.suite, self.profile, shape.max().ceil());
        let phases = ladder::phases(self.profile, Purpose::Ladder);
        self.check_connections(&[shape.max().ceil()])?;
        let title = format!("shape: {}", shape.text);
        let countdown = Countdown::start(Nanos(phases.warm_up_ns.0 + shape.length().0));
        let (purpose, window) = (Purpose::Ladder, Window::Shape(shape.clone()));
        let point = Planned { load, purpose, window, title, countdown, last: true };
        Ok(match self.point(&point, live)? {
            Some(_) => Stop::Finished,
            None => Stop::Interrupted,
        })
    }
}
