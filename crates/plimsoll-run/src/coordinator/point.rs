//! Runs one load point: gives the assignment to the agents, listens, and writes their reports.

use std::sync::atomic::AtomicBool;
use std::thread;

use plimsoll_analysis::{Analysis, PointTimes};
use plimsoll_engine::agent;
use plimsoll_engine::workload::Workload;
use plimsoll_fleet::controller::Failure as AgentFailure;
use plimsoll_model::assignment::Assignment;
use plimsoll_model::bundle::BundleWriter;
use plimsoll_model::event::{JournalRecord, PointRecord, WorkerTotals};
use plimsoll_model::outcome::ErrorSample;
use plimsoll_model::units::Nanos;
use plimsoll_protocol::host::Target;
use plimsoll_servers::cores;

use super::fleet_point::{Brought, FleetListening, FleetPoint};
use super::parts::{Part, parts_of_window, record_of, write_all};
use super::placement::Placement;
use super::recorder::PointRecorder;
use super::servers::server_lost;
use super::watcher::{PointUse, Watcher};
use crate::agent::{Next, PointEvent, WorkerEvents, make_load};
use crate::clock::unix_ns;
use crate::failure::Failure;
use crate::observers::SecondView;
use crate::signals::Signals;

/// How a load point ended.
pub(super) enum PointEnd {
    /// The record of each window is in the journal; with its histograms.
    Finished(Vec<(PointRecord, PointTimes)>),
    /// The user requested the end; the point was not recorded.
    Interrupted,
    /// An agent was lost; the point was not recorded.
    Lost(Failure),
}

/// The source of a point's load.
pub(super) enum LoadSource<'f> {
    /// This program.
    Own,
    /// Agents.
    Fleet(FleetPoint<'f>),
}

/// A running load point, as its source reports it.
enum Listening<'w, 'f> {
    Workers(Box<WorkerEvents<'w>>),
    Fleet(FleetListening<'f>),
}

impl Listening<'_, '_> {
    /// Ends the load early.
    fn stop(&mut self) {
        match self {
            Self::Workers(workers) => workers.stop(),
            Self::Fleet(fleet) => fleet.stop(),
        }
    }

    fn next(&mut self) -> Result<Next<Brought>, Failure> {
        Ok(match self {
            Self::Workers(workers) => match workers.next()? {
                Next::Event(event) => Next::Event(event),
                Next::Quiet => Next::Quiet,
                Next::End((report, slices)) => {
                    let targets = Vec::new();
                    Next::End(Brought::Parts(vec![Part { report, slices, agent: None, targets }]))
                }
            },
            Self::Fleet(fleet) => fleet.next(),
        })
    }
}

/// What a load point needs besides its assignment.
pub(super) struct PointRunner<'a, 's> {
    /// Where to write.
    pub bundle: &'a mut BundleWriter,
    /// Records as they are in the journal.
    pub records: &'a mut Vec<JournalRecord>,
    /// Their analysis so far.
    pub analysis: &'a mut Analysis<'s>,
    /// Whether the user requested the end.
    pub signals: &'a Signals,
    /// Samples hosts and processes.
    pub watcher: &'a mut Watcher,
    /// Cores of the workers and of everything else.
    pub placement: &'a Placement,
    /// The servers, in the order of the endpoints.
    pub targets: &'a mut [Target],
    /// Called about twenty times a second, with any second that has become full.
    pub on_look_up: &'a mut (dyn FnMut(Option<SecondView>) + Send),
}

impl PointRunner<'_, '_> {
    /// Runs a load point and writes it durably.
    pub(super) fn run(
        mut self,
        assignment: &Assignment,
        workload: &dyn Workload,
        load_source: LoadSource<'_>,
    ) -> Result<PointEnd, Failure> {
        let at_unix_ns = unix_ns();
        let mut logs = Vec::new();
        for point in assignment.points() {
            let assignment = Assignment { point, ..assignment.clone() };
            self.record(JournalRecord::PointStarted { assignment, at_unix_ns })?;
            logs.push(self.bundle.begin_point(point, &workload.op_names())?);
        }
        let mut recorder = PointRecorder::begin(assignment, logs);
        let driven = match load_source {
            LoadSource::Own => self.drive(&mut recorder, workload),
            LoadSource::Fleet(fleet) => self.drive_fleet(&mut recorder, fleet),
        };
        if assignment.phases.ops.is_some() {
            self.watcher.window(assignment, recorder.started_unix_ns, unix_ns());
        }
        let point_use = self.watcher.end_point();
        let brought = driven?;
        // Between load points set-up may use every core it can get.
        cores::pin_current_thread(&self.placement.setup_cores)
            .map_err(|e| Failure::unusable(format!("cannot go back to the other cores: {e}")))?;
        if self.signals.is_stop_requested() {
            return Ok(PointEnd::Interrupted);
        }
        let mut parts = match brought {
            Brought::Parts(parts) => parts,
            Brought::Lost { agent, host, why } => {
                let (point, reason) = (assignment.point, why.to_string());
                let failure = Failure::unusable(format!("agent {agent} on {host}: {reason}"));
                // The agent is still connected, and would refuse again.
                if matches!(why, AgentFailure::Refused(_)) {
                    return Err(failure);
                }
                self.record(JournalRecord::AgentLost { point, agent, host, reason })?;
                return Ok(PointEnd::Lost(failure));
            }
        };
        for part in &mut parts {
            name_statuses(&mut part.report.totals, workload);
            let later = part.report.later.iter_mut();
            later.for_each(|report| name_statuses(&mut report.totals, workload));
        }
        self.finish(recorder, parts, point_use, workload)
    }

    /// Has the workers of this program make the load.
    fn drive(
        &mut self,
        recorder: &mut PointRecorder,
        workload: &dyn Workload,
    ) -> Result<Brought, Failure> {
        let assignment = &recorder.assignment.clone();
        make_load(assignment, workload, &AtomicBool::new(false), move |workers, begin| {
            self.step_aside(assignment)?;
            // Observers are notified before the load starts, which may leave this thread no CPU
            // time until it has ended.
            let start = agent::soonest(assignment);
            self.started(recorder, agent::on_wall_clock(start));
            begin(start);
            self.listen(recorder, Listening::Workers(Box::new(workers)))
        })
    }

    /// Takes every thread of this program off the workers' cores, before there are workers.
    fn step_aside(&mut self, assignment: &Assignment) -> Result<(), Failure> {
        let threads = cores::pin_all_threads(&self.placement.rest_cores).map_err(|e| {
            Failure::unusable(format!(
                "cannot keep to cores {}: {e}; were they taken from this program (cpuset)? Run \
                 again",
                cores::list(&self.placement.rest_cores)
            ))
        })?;
        self.watcher.begin_point(assignment, threads);
        Ok(())
    }

    /// Has the agents of a fleet make the load, and listens to them on a separate thread of low
    /// priority: raising a lowered priority again needs a privilege.
    fn drive_fleet(
        &mut self,
        recorder: &mut PointRecorder,
        point: FleetPoint<'_>,
    ) -> Result<Brought, Failure> {
        thread::scope(|scope| {
            let listener = thread::Builder::new()
                .name("plimsoll-listen".into())
                .spawn_scoped(scope, || {
                    self.step_aside(&recorder.assignment.clone())?;
                    let _ = cores::lower_priority();
                    self.listen(recorder, Listening::Fleet(point.begin()))
                })
                .map_err(|e| Failure::unusable(format!("cannot start a thread: {e}")))?;
            listener.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Listens until the load has ended. A storage failure ends the point.
    fn listen(
        &mut self,
        recorder: &mut PointRecorder,
        mut listening: Listening<'_, '_>,
    ) -> Result<Brought, Failure> {
        let mut first_failure = None;
        loop {
            if self.signals.is_stop_requested() || first_failure.is_some() || recorder.is_finished {
                listening.stop();
            }
            match listening.next() {
                Ok(Next::Event(event)) if first_failure.is_none() => {
                    first_failure = self.handle(recorder, event).err();
                }
                Ok(Next::Event(_) | Next::Quiet) => {}
                Ok(Next::End(brought)) => return first_failure.map_or(Ok(brought), Err),
                Err(failure) => first_failure = first_failure.or(Some(failure)),
            }
            if let Some((point, end_unix_ns)) = recorder.next_window() {
                let observed = self.watcher.begin_phase(&point.stem(), end_unix_ns);
                recorder.windows[recorder.current].observed = Some(observed);
                recorder.current += 1;
            }
            (self.on_look_up)(recorder.views.pop_front());
        }
    }

    fn handle(&mut self, recorder: &mut PointRecorder, event: PointEvent) -> Result<(), Failure> {
        match event {
            PointEvent::Started { at_unix_ns } => self.started(recorder, at_unix_ns),
            PointEvent::Second(second) => recorder.show(&second),
            PointEvent::Sample(sample) => self.sample(recorder, sample)?,
            PointEvent::ClientLost { client, reason, at } => {
                self.lose(recorder, client, reason, at)?;
            }
            PointEvent::Excess(packed) => recorder.write_packed(&packed)?,
        }
        Ok(())
    }

    fn record(&mut self, record: JournalRecord) -> Result<(), Failure> {
        self.bundle.record(&record)?;
        self.analysis.add_record(&record);
        self.records.push(record);
        Ok(())
    }

    fn started(&mut self, recorder: &mut PointRecorder, at_unix_ns: u64) {
        recorder.started_unix_ns = at_unix_ns;
        self.watcher.window(&recorder.assignment, at_unix_ns, u64::MAX);
    }

    fn sample(&mut self, recorder: &mut PointRecorder, sample: ErrorSample) -> Result<(), Failure> {
        // Ops that were in flight at Ctrl-C did not fail by themselves.
        match !self.signals.is_stop_requested() && recorder.keeps(&sample) {
            true => {
                let point = recorder.point_at(Nanos(sample.at_ns));
                self.record(JournalRecord::ErrorSample { point, sample })
            }
            false => Ok(()),
        }
    }

    fn lose(
        &mut self,
        recorder: &mut PointRecorder,
        client: u32,
        reason: String,
        at: Nanos,
    ) -> Result<(), Failure> {
        let point = recorder.point_at(at);
        match recorder.lose(client, &reason, at) {
            true => self.record(JournalRecord::ClientLost { point, client, reason }),
            false => Ok(()),
        }
    }

    fn finish(
        self,
        mut recorder: PointRecorder,
        mut parts: Vec<Part>,
        observed: PointUse,
        workload: &dyn Workload,
    ) -> Result<PointEnd, Failure> {
        let mut windows = std::mem::take(&mut recorder.windows);
        if let Some(window) = windows.get_mut(recorder.current) {
            window.observed = Some(observed);
        }
        let (count, mut finished) = (windows.len(), Vec::new());
        for (number, mut window) in windows.into_iter().enumerate() {
            let mut parts = parts_of_window(&mut parts, number);
            write_all(&mut window, &mut parts)?;
            let mut record = PointRecord {
                data_set_bytes: workload.data_bytes(),
                access_pattern: workload.access_pattern(),
                ..record_of(&recorder, (number, &mut window), parts)
            };
            if number + 1 == count {
                record.server_lost = server_lost(&record, self.targets);
            }
            finished.push((window, record));
        }
        let mut points = Vec::new();
        for (window, record) in finished {
            self.bundle.finish_point(window.log, record.clone())?;
            self.records.push(JournalRecord::PointFinished(Box::new(record.clone())));
            points.push((record, window.times));
        }
        Ok(PointEnd::Finished(points))
    }
}

/// Only the protocol knows the names of its statuses, and only here is it available.
fn name_statuses(totals: &mut WorkerTotals, workload: &dyn Workload) {
    for entry in &mut totals.unexpected {
        let name = |status| workload.status_name(status).map(str::to_owned);
        (entry.expected_name, entry.actual_name) = (name(entry.expected), name(entry.actual));
    }
}
