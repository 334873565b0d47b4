//! Makes one load point of a run: its preparation, its load, and its repetition if needed.

use std::sync::Arc;

use plimsoll_analysis::{EvaluatedPoint, PointTimes};
use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::{Assignment, PointId, Purpose};
use plimsoll_model::event::PointRecord;
use plimsoll_model::outcome::OpNames;
use plimsoll_model::units::counted;
use plimsoll_protocol::Work;
use plimsoll_protocol::net::SetupError;
use plimsoll_report::sentences::finding;

use super::super::conditioning;
use super::super::fleet_point::{FleetPoint, crews, distribute_clients};
use super::super::ladder;
use super::super::point::{LoadSource, PointEnd, PointRunner};
use super::super::setup::setup_shower;
use super::{Planned, Run, Window};
use crate::clock::unix_ns;
use crate::failure::Failure;
use crate::observers::{BeginningPoint, FinishedPoint, SecondView};
use crate::progress::RunProgress;

impl Run<'_> {
    /// Runs one load point, and once more if an agent was lost; `None` if the user requested the
    /// end.
    pub(super) fn point(
        &mut self,
        point: &Planned,
        live: &mut dyn RunProgress,
    ) -> Result<Option<EvaluatedPoint>, Failure> {
        let mut tried = self.try_point(point, live)?;
        if let Tried::Lost(failure) = &tried
            && self.has_enough_agents()
        {
            live.note(&format!("{failure}; the load point is made again"));
            tried = self.try_point(point, live)?;
        }
        if let Tried::ServerLost(failure) = &tried {
            match self.wait_for_targets(live) {
                Ok(false) => return Ok(None),
                Err(away) => return Err(Failure::unusable(format!("{failure}; {away}"))),
                Ok(true) => {
                    live.note(&format!("{failure}; it is back, and the load point is made again"));
                    tried = self.try_point(point, live)?;
                }
            }
        }
        match tried {
            Tried::Evaluated(evaluated) => Ok(Some(*evaluated)),
            Tried::Interrupted => Ok(None),
            Tried::Lost(failure) => Err(self.too_few_left(failure)),
            Tried::ServerLost(failure) => Err(failure),
        }
    }

    fn too_few_left(&self, failure: Failure) -> Failure {
        Failure::unusable(format!("{failure}; {} left", counted(self.agents_left(), "agent")))
    }

    /// Whether the run may continue without the lost agent.
    fn has_enough_agents(&self) -> bool {
        let required =
            self.request.options.agents.as_ref().and_then(|options| options.min).unwrap_or(1);
        self.agents_left() >= required as usize
    }

    fn agents_left(&self) -> usize {
        self.fleet.as_ref().map_or(0, |fleet| fleet.living().count())
    }

    /// The workload of the load point, with its data on the servers; `None` if the user requested
    /// the end.
    fn workload(
        &mut self,
        point: &Planned,
        assignment: &mut Assignment,
        live: &mut dyn RunProgress,
    ) -> Result<Option<Arc<dyn Workload>>, Failure> {
        let preparation = match &mut self.setup.plan.work {
            Work::Fixed(workload) => return Ok(Some(workload.clone())),
            Work::PerPoint(preparation) => preparation,
        };
        preparation.distribute(&distribute_clients(assignment, self.fleet.as_ref()));
        let mut show = setup_shower(&point.title, self.signals, live);
        match preparation.ready(&point.load, &self.setup.dial, &mut show) {
            Err(SetupError::Stopped) => Ok(None),
            ready => {
                assignment.files = preparation.files(&point.load);
                Ok(Some(ready?))
            }
        }
    }

    fn try_point(&mut self, point: &Planned, live: &mut dyn RunProgress) -> Result<Tried, Failure> {
        if !self.wait_for_targets(live)? {
            return Ok(Tried::Interrupted);
        }
        let mut assignment = self.assignment(point);
        let Planned { title, countdown, .. } = point;
        let Some(workload) = self.workload(point, &mut assignment, live)? else {
            return Ok(Tried::Interrupted);
        };
        self.record_nonconformities()?;
        conditioning::before_point(&self.request.suite)?;
        live.point_begins(title, self.request.suite.metric, &assignment.phases);
        let observers = &mut self.observers;
        let (point_id, requested) = (assignment.point, assignment.load.requested());
        let beginning = BeginningPoint { title, point: point_id, requested };
        observers.notify(|observer| observer.point_begins(&beginning));
        let mut on_look_up = |second: Option<SecondView>| {
            if let Some(second) = second {
                observers.notify(|observer| observer.second(&second));
            }
            live.point_runs(second.as_ref(), countdown.left());
        };
        let runner = PointRunner {
            bundle: &mut self.bundle,
            records: &mut self.records,
            analysis: &mut self.analysis,
            signals: self.signals,
            watcher: &mut self.watcher,
            placement: &self.setup.placement,
            targets: &mut self.setup.targets,
            on_look_up: &mut on_look_up,
        };
        let load_source = match &mut self.fleet {
            None => LoadSource::Own,
            Some(fleet) => {
                let allocations =
                    fleet.living().map(|(id, member)| (id, member.allocation.clone()));
                let crews = crews(&assignment, allocations);
                let watches = self.request.monitors_agents;
                LoadSource::Fleet(FleetPoint { fleet, crews, watches })
            }
        };
        match runner.run(&assignment, &*workload, load_source)? {
            PointEnd::Interrupted => Ok(Tried::Interrupted),
            PointEnd::Lost(failure) => Ok(Tried::Lost(failure)),
            PointEnd::Finished(windows) => {
                let mut last = None;
                for (record, times) in &windows {
                    let evaluated = self.evaluate(record, times, &workload.op_names());
                    self.show_result(point, &evaluated, live);
                    if let Some(because) = evaluated.result.not_counted_because.as_ref()
                        && record.server_lost.is_some()
                    {
                        let why = format!("{}: {}", point.title, finding::cause(&because.rule));
                        return Ok(Tried::ServerLost(Failure::unusable(why)));
                    }
                    last = Some(evaluated);
                }
                Ok(match (self.put_back(point, live)?, last) {
                    (true, Some(evaluated)) => Tried::Evaluated(Box::new(evaluated)),
                    _ => Tried::Interrupted,
                })
            }
        }
    }

    fn show_result(&self, point: &Planned, evaluated: &EvaluatedPoint, live: &mut dyn RunProgress) {
        // The search for a capacity reports its own conclusion, and pilots what they found.
        if self.request.capacity.is_none() && !point.is_pilot() {
            let title = evaluated.result.phase.as_ref().map_or(&point.title, |phase| &phase.name);
            live.point_finished(title, point.purpose, &evaluated.result);
        }
    }

    /// Restores on the servers what the method requires after a point; false if the user requested
    /// the end.
    fn put_back(&mut self, point: &Planned, live: &mut dyn RunProgress) -> Result<bool, Failure> {
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
        let ordinal = match &point.window {
            // Phases of an interrupted shape are made again.
            Window::Shape(_) => {
                self.finished(|it| it == Purpose::Ladder).map(|it| it.point.ordinal).min()
            }
            _ => None,
        };
        let ordinal = ordinal.unwrap_or(finished.unwrap_or(0) + 1);
        let phases = self.phases_of(point);
        let purpose = if point.is_pilot() { Purpose::Pilot } else { point.purpose };
        Assignment {
            point: PointId { ordinal, purpose },
            load: ladder::out_of_step(point.load.clone(), &self.request.suite, &phases),
            phases,
            seed: self.seed_of(ordinal, purpose),
            workers: self.workers().min(point.load.clients().max(1)),
            cores: placement.generator_cores.clone(),
            pacing: placement.pacing,
            own_cores: placement.own_cores,
            priority: self.request.options.priority,
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
            shape: match &point.window {
                Window::Shape(shape) => Some(shape.clone()),
                _ => None,
            },
        }
    }

    /// Workers over all connected agents.
    fn workers(&self) -> u32 {
        match &self.fleet {
            None => self.setup.placement.workers,
            Some(fleet) => fleet.living().map(|(_, member)| member.allocation.workers).sum(),
        }
    }

    /// Evaluates a point that is in the bundle; observers are notified of it and of the run so far.
    fn evaluate(
        &mut self,
        record: &PointRecord,
        times: &PointTimes,
        op_names: &OpNames,
    ) -> EvaluatedPoint {
        let evaluated = self.analysis.add_point(record, Some(times)).clone();
        let run = self.analysis.finish();
        let mut points = run.points.iter().chain(&run.probes);
        if let Some(point) = points.find(|point| point.stem == evaluated.result.stem) {
            let finished = FinishedPoint { record, times, op_names, point, run: &run };
            self.observers.notify(|observer| observer.point_finished(&finished));
        }
        evaluated
    }
}

/// The outcome of a load point.
enum Tried {
    Evaluated(Box<EvaluatedPoint>),
    /// The user requested the end.
    Interrupted,
    /// An agent was lost.
    Lost(Failure),
    /// The server went away; the point is in the bundle, and does not count.
    ServerLost(Failure),
}
