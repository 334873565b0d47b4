//! One load point of a run: what is prepared before it, who makes it, and what is made again.

use plimsoll_analysis::{JudgedPoint, PointTimes};
use plimsoll_model::assignment::{Assignment, PointId, Purpose};
use plimsoll_model::event::PointRecord;
use plimsoll_model::outcome::OpNames;
use plimsoll_model::units::grouped;
use plimsoll_protocol::Work;
use plimsoll_protocol::net::SetupError;

use super::super::conditioning;
use super::super::fleet_point::{FleetPoint, crews, deal};
use super::super::point::{Makers, PointDesk, PointEnd};
use super::super::setup::setup_shower;
use super::{Planned, Run};
use crate::clock::unix_ns;
use crate::exit::Failure;
use crate::observers::{BeginningPoint, FinishedPoint, SecondView};
use crate::terminal::{Live, LiveView, counted, finished_line, note, search_line};

impl Run<'_> {
    /// Runs one load point, and once more where an agent was lost; `None` when the user asked for
    /// the end.
    pub(super) fn point(
        &mut self,
        point: &Planned,
        live: &mut Live,
    ) -> Result<Option<JudgedPoint>, Failure> {
        let mut tried = self.try_point(point, live)?;
        if let Tried::Lost(failure) = &tried
            && self.has_enough_agents()
        {
            live.clear();
            note(&format!("{failure}; the load point is made again"));
            tried = self.try_point(point, live)?;
        }
        match tried {
            Tried::Judged(judged) => Ok(Some(*judged)),
            Tried::Interrupted => Ok(None),
            Tried::Lost(failure) => Err(self.too_few_left(failure)),
        }
    }

    fn too_few_left(&self, failure: Failure) -> Failure {
        Failure::unusable(format!("{failure}; {} left", counted(self.agents_left(), "agent")))
    }

    /// Those that are left may go on without the one that was lost.
    fn has_enough_agents(&self) -> bool {
        let wanted = self.request.asked.agents.as_ref().and_then(|asked| asked.min).unwrap_or(1);
        self.agents_left() >= wanted as usize
    }

    fn agents_left(&self) -> usize {
        self.fleet.as_ref().map_or(0, |fleet| fleet.living().count())
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
                self.tell(point, &judged, live);
                Ok(match self.put_back(point, live)? {
                    true => Tried::Judged(Box::new(judged)),
                    false => Tried::Interrupted,
                })
            }
        }
    }

    fn tell(&self, point: &Planned, judged: &JudgedPoint, live: &mut Live) {
        let (title, result, style) = (&point.title, &judged.result, live.style());
        match (&self.request.capacity, point.purpose) {
            // The search says what it makes of it.
            (Some(_), _) => {}
            (None, Purpose::Ladder) => live.line(&finished_line(title, result, style)),
            (None, _) => live.line(&search_line(title, result, style)),
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
            phases: self.phases_of(point.purpose, &point.load),
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
            goodput: self.request.suite.goodput,
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
}

/// What became of a load point.
enum Tried {
    Judged(Box<JudgedPoint>),
    /// The user asked for the end.
    Interrupted,
    /// An agent was lost.
    Lost(Failure),
}
