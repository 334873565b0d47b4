//! One load point: hands the assignment to the agent, listens, and writes what it says.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use plimsoll_analysis::{Analysis, PointTimes};
use plimsoll_engine::agent::{self, Origin};
use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::Assignment;
use plimsoll_model::bundle::{BundleWriter, IntervalSlice, PointLog};
use plimsoll_model::event::{
    AgentEvent, JournalRecord, Phase, PointRecord, SecondRecord, WorkerTotals,
};
use plimsoll_model::outcome::{ErrorSample, OpNames};
use plimsoll_model::suite::OnClientFailure;
use plimsoll_model::units::Nanos;
use plimsoll_servers::cores;

use super::kept::KeptSlices;
use super::merge::{FullSlice, Slices};
use super::placement::Placement;
use super::signals::Signals;
use super::watcher::{PointUse, Watcher};
use crate::clock::unix_ns;
use crate::exit::Failure;
use crate::observers::SecondView;

/// How often the coordinator looks up from listening.
const LOOK_UP: Duration = Duration::from_millis(50);
/// Samples kept per error class and point: enough to see a pattern.
const SAMPLES_PER_CLASS_MAX: u32 = 5;
/// Samples kept per point, whatever their class.
const SAMPLES_MAX: u32 = 40;
/// Lost clients that are named one by one; their number is in the totals.
const LOST_NAMED_MAX: u32 = 20;

/// How a load point ended.
pub(super) enum PointEnd {
    /// Its record is in the journal.
    Finished {
        /// What was recorded.
        record: Box<PointRecord>,
        /// Its histograms.
        times: PointTimes,
    },
    /// The user asked for the end; the point did not happen.
    Interrupted,
}

/// What a load point needs besides its assignment.
pub(super) struct PointDesk<'a, 's> {
    /// Where to write.
    pub bundle: &'a mut BundleWriter,
    /// Records as the journal has them.
    pub records: &'a mut Vec<JournalRecord>,
    /// What has been made of them so far.
    pub analysis: &'a mut Analysis<'s>,
    /// Whether to end.
    pub signals: &'a Signals,
    /// Samples hosts and processes.
    pub watcher: &'a mut Watcher,
    /// Cores of the workers and of everything else.
    pub placement: &'a Placement,
    /// Called about twenty times a second, with a second that has become full.
    pub on_look_up: &'a mut (dyn FnMut(Option<SecondView>) + Send),
}

impl PointDesk<'_, '_> {
    /// Runs a load point and makes it durable.
    pub(super) fn run(
        mut self,
        assignment: &Assignment,
        workload: &dyn Workload,
    ) -> Result<PointEnd, Failure> {
        let at_unix_ns = unix_ns();
        self.record(JournalRecord::PointStarted { assignment: assignment.clone(), at_unix_ns })?;
        let op_names = workload.op_names();
        let mut listening = Listening::begin(&self, assignment, &op_names)?;
        let stop = AtomicBool::new(false);
        let driven = self.drive(&mut listening, workload, &stop);
        if assignment.phases.ops.is_some() {
            self.watcher.window(assignment, listening.started_unix_ns, unix_ns());
        }
        let point_use = self.watcher.end_point();
        driven?;
        // Between load points nobody is in the way, and set-up wants what it can get.
        cores::pin_current_thread(&self.placement.setup_cores)
            .map_err(|e| Failure::unusable(format!("cannot go back to the other cores: {e}")))?;
        if self.signals.is_asked() {
            return Ok(PointEnd::Interrupted);
        }
        listening.write_all()?;
        name_statuses(&mut listening.totals, workload);
        self.finish(assignment, listening, point_use)
    }

    /// Runs the agent on this thread, which then waits for the workers, and listens on one of
    /// low priority: its children would inherit that, so it may not be the workers' parent.
    fn drive(
        &mut self,
        listening: &mut Listening,
        workload: &dyn Workload,
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        let assignment = &listening.assignment.clone();
        let (events, heard) = agent::event_queue(workload.op_names().0.len(), assignment.workers);
        let (out_of_the_way, ready) = channel();
        thread::scope(move |scope| {
            let listener = thread::Builder::new()
                .name("plimsoll-listen".into())
                .spawn_scoped(scope, move || {
                    self.step_aside(assignment, out_of_the_way)?;
                    self.listen(listening, &heard, stop)
                })
                .map_err(|e| Failure::unusable(format!("cannot start a thread: {e}")))?;
            // An error says that the listener has given up; the agent has nobody to talk to.
            if ready.recv().is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            let agent_end = agent::run_point(assignment, workload, Origin::Soon, (&events, stop));
            drop(events);
            let heard = listener.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            agent_end.map_err(|e| Failure::unusable(e.to_string()))?;
            heard
        })
    }

    /// Takes every thread of this program off the workers' cores, before there are workers.
    fn step_aside(&mut self, assignment: &Assignment, done: Sender<()>) -> Result<(), Failure> {
        // Without the right to it the listener still has other cores.
        let _ = cores::lower_priority();
        let threads = cores::pin_all_threads(&self.placement.rest_cores).map_err(|e| {
            Failure::unusable(format!(
                "cannot keep to cores {}: {e}; were they taken from this program (cpuset)? Run \
                 again",
                cores::list(&self.placement.rest_cores)
            ))
        })?;
        self.watcher.begin_point(assignment, threads);
        let _ = done.send(());
        Ok(())
    }

    fn record(&mut self, record: JournalRecord) -> Result<(), Failure> {
        self.bundle.record(&record)?;
        self.analysis.add_record(&record);
        self.records.push(record);
        Ok(())
    }

    /// Listens until the agent has nothing more to say. A storage failure ends the point.
    fn listen(
        &mut self,
        listening: &mut Listening,
        heard: &Receiver<AgentEvent>,
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        let mut first_failure = None;
        loop {
            if self.signals.is_asked() || first_failure.is_some() || listening.is_over {
                stop.store(true, Ordering::Relaxed);
            }
            match heard.recv_timeout(LOOK_UP) {
                Ok(event) if first_failure.is_none() => {
                    first_failure = self.hear(listening, event).err();
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            (self.on_look_up)(listening.views.pop_front());
        }
        match first_failure {
            Some(failure) => Err(failure),
            None => {
                let full = listening.slices.ended();
                listening.keep(full)
            }
        }
    }

    fn hear(&mut self, listening: &mut Listening, event: AgentEvent) -> Result<(), Failure> {
        let point = listening.assignment.point;
        match event {
            AgentEvent::Started { at_unix_ns } => {
                listening.started_unix_ns = at_unix_ns;
                listening.slices.started(at_unix_ns);
                self.watcher.window(&listening.assignment, at_unix_ns, u64::MAX);
            }
            AgentEvent::Interval(interval) => {
                let full = listening.slices.add(*interval);
                listening.keep(full)?;
            }
            AgentEvent::ErrorSample(sample) => {
                // What was under way at Ctrl-C failed through nobody.
                if !self.signals.is_asked() && listening.samples.keep(&sample) {
                    self.record(JournalRecord::ErrorSample { point, sample })?;
                }
            }
            AgentEvent::ClientLost { client, reason, at } => {
                listening.lose(client, &reason, at);
                if listening.lost <= LOST_NAMED_MAX {
                    self.record(JournalRecord::ClientLost { point, client, reason })?;
                }
            }
            AgentEvent::WorkerFinished(totals) => listening.totals.add(*totals),
            AgentEvent::WorkerPanicked { message } => listening.panic = Some(message),
        }
        Ok(())
    }

    fn finish(
        self,
        assignment: &Assignment,
        listening: Listening,
        point_use: PointUse,
    ) -> Result<PointEnd, Failure> {
        let Listening { log, slices, totals, panic, times, started_unix_ns, .. } = listening;
        let ended_early = listening.ended_early;
        let (seconds, workers) = slices.into_records();
        // A point cut short, or ended by the number of its ops, held each phase for as long as its
        // seconds tell.
        let planned_length = ended_early.is_none() && assignment.phases.ops.is_none();
        let length = |phase: Phase, planned: Nanos| match planned_length {
            true => planned,
            false => planned.min(held(&seconds, phase)),
        };
        let (warm_up_ns, measured_ns) = (
            length(Phase::WarmUp, assignment.phases.warm_up_ns),
            length(Phase::Measure, assignment.phases.measure_ns),
        );
        let record = PointRecord {
            point: assignment.point,
            load: assignment.load.clone(),
            pacing: assignment.pacing,
            started_unix_ns,
            warm_up_ns,
            measured_ns,
            clock_step_ns: point_use.clock_step_ns,
            totals,
            seconds,
            workers,
            process_cpu_ns: point_use.process_cpu_ns,
            monitor_cpu_ns: point_use.monitor_cpu_ns,
            panic,
            ended_early,
            resources: point_use.resources,
            core_users: point_use.core_users,
            server_core_users: point_use.server_core_users,
            agents: Vec::new(),
            ops: assignment.phases.ops,
        };
        self.bundle.finish_point(log, record.clone())?;
        self.records.push(JournalRecord::PointFinished(Box::new(record.clone())));
        Ok(PointEnd::Finished { record: Box::new(record), times })
    }
}

/// What has been heard of a point so far.
struct Listening {
    assignment: Assignment,
    log: PointLog,
    slices: Slices,
    /// Not yet written.
    kept: KeptSlices,
    times: PointTimes,
    totals: WorkerTotals,
    samples: SampleBudget,
    lost: u32,
    /// There is nothing more to wait for.
    is_over: bool,
    /// The window was cut short; why.
    ended_early: Option<String>,
    panic: Option<String>,
    started_unix_ns: u64,
    /// Full seconds that have not been shown yet.
    views: VecDeque<SecondView>,
}

impl Listening {
    fn begin(
        desk: &PointDesk<'_, '_>,
        assignment: &Assignment,
        op_names: &OpNames,
    ) -> Result<Self, Failure> {
        Ok(Self {
            assignment: assignment.clone(),
            log: desk.bundle.begin_point(assignment.point, op_names)?,
            slices: Slices::new(assignment.workers.max(1)),
            kept: KeptSlices::default(),
            times: PointTimes::default(),
            totals: WorkerTotals::default(),
            samples: SampleBudget::default(),
            lost: 0,
            is_over: false,
            ended_early: None,
            panic: None,
            started_unix_ns: unix_ns(),
            views: VecDeque::new(),
        })
    }

    /// A client has left at `at`: does the point go on?
    fn lose(&mut self, client: u32, reason: &str, at: Nanos) {
        self.lost += 1;
        let Some(why) = end_by_loss(&self.assignment, self.lost, client, reason) else { return };
        self.is_over = true;
        // After the window nothing is counted that could be missed.
        if at < self.assignment.phases.window_end() {
            self.ended_early.get_or_insert(why);
        }
    }

    /// Keeps what is full for the end.
    fn keep(&mut self, full: Vec<FullSlice>) -> Result<(), Failure> {
        for FullSlice { slice, view } in full {
            self.views.extend(view);
            self.kept.keep(&slice).map_err(|e| cannot_keep(&e))?;
            while self.kept.are_too_many() && self.write_oldest()? {}
        }
        Ok(())
    }

    fn write_all(&mut self) -> Result<(), Failure> {
        while self.write_oldest()? {}
        Ok(())
    }

    /// Writes one slice; false when there is none.
    fn write_oldest(&mut self) -> Result<bool, Failure> {
        let Some(slice) = self.kept.take_oldest().map_err(|e| cannot_keep(&e))? else {
            return Ok(false);
        };
        self.log.write(&slice)?;
        let start = to_the_millisecond(slice.start);
        self.times.add(&IntervalSlice { start, ..slice });
        Ok(true)
    }
}

/// As an interval log has it: the result is the same when it is derived from the bundle.
fn to_the_millisecond(start: Nanos) -> Nanos {
    Nanos::from_millis((start.0 + 500_000) / 1_000_000)
}

fn cannot_keep(error: &io::Error) -> Failure {
    Failure::unusable(format!("cannot keep the times of a load point in memory: {error}"))
}

/// Why the point ends now that `lost` clients have left, `client` the last of them.
fn end_by_loss(assignment: &Assignment, lost: u32, client: u32, reason: &str) -> Option<String> {
    match assignment.on_client_failure {
        OnClientFailure::Abort => Some(format!(
            "client {client} could go no further ({reason}), and the suite ends the point at the \
             first that fails"
        )),
        OnClientFailure::Drop if lost >= assignment.load.clients() => {
            Some(format!("no client is left; the last, client {client}, gave up: {reason}"))
        }
        OnClientFailure::Drop => None,
    }
}

/// For how long a phase was held.
fn held(seconds: &[SecondRecord], phase: Phase) -> Nanos {
    let lengths = seconds.iter().filter(|record| record.phase == phase);
    Nanos(lengths.map(|record| record.length_ns).sum())
}

/// Only the protocol knows what people call its statuses, and only here is it at hand.
fn name_statuses(totals: &mut WorkerTotals, workload: &dyn Workload) {
    for seen in &mut totals.unexpected {
        let name = |status| workload.status_name(status).map(str::to_owned);
        (seen.expected_name, seen.actual_name) = (name(seen.expected), name(seen.actual));
    }
}

/// Which error samples to keep.
#[derive(Debug, Default)]
struct SampleBudget {
    by_class: BTreeMap<String, u32>,
    kept: u32,
}

impl SampleBudget {
    fn keep(&mut self, sample: &ErrorSample) -> bool {
        if self.kept >= SAMPLES_MAX {
            return false;
        }
        let of_class = self.by_class.entry(sample.class.clone()).or_default();
        let keep = *of_class < SAMPLES_PER_CLASS_MAX;
        *of_class += u32::from(keep);
        self.kept += u32::from(keep);
        keep
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::assignment::{Load, Pacing, Phases, PointId, Priority, Purpose};
    use plimsoll_model::suite::{Think, ThinkDistribution};

    use super::*;

    fn desktops(on_client_failure: OnClientFailure) -> Assignment {
        let think = Think { mean: Nanos::ZERO, distribution: ThinkDistribution::Constant };
        let load =
            Load::Closed { clients: 3, think, start_delay_ns: Nanos::ZERO, axis_think_ns: None };
        Assignment {
            point: PointId { ordinal: 1, purpose: Purpose::Ladder },
            load,
            phases: Phases {
                warm_up_ns: Nanos::from_secs(1),
                measure_ns: Nanos::from_secs(3),
                ramp_down_ns: Nanos::from_secs(1),
                drain_ns: Nanos::from_secs(1),
                ops: None,
            },
            seed: 1,
            workers: 1,
            cores: Vec::new(),
            pacing: Pacing::Precise,
            own_cores: false,
            priority: Priority::Normal,
            op_timeout: Nanos::from_secs(1),
            endpoints: Vec::new(),
            sources: Vec::new(),
            reserved_ports: false,
            nonce: 0,
            on_client_failure,
            counts_clients: false,
            crew: None,
            files: None,
        }
    }

    #[test]
    fn a_point_ends_with_its_last_client_or_with_the_first_that_fails() {
        let drop = desktops(OnClientFailure::Drop);
        let end = |assignment: &Assignment, lost| end_by_loss(assignment, lost, 7, "link broken");
        assert_eq!((end(&drop, 1), end(&drop, 2)), (None, None));
        let all = end(&drop, 3).unwrap();
        assert!(all.contains("no client is left") && all.contains("link broken"), "{all}");
        let abort = end(&desktops(OnClientFailure::Abort), 1).unwrap();
        assert!(abort.contains("client 7 could go no further (link broken)"), "{abort}");
    }

    #[test]
    fn a_phase_was_held_for_as_long_as_its_seconds_tell() {
        let second = |second, phase, length_ns| SecondRecord {
            second,
            phase,
            length_ns,
            done: 0,
            errors: 0,
            bytes_read: 0,
            bytes_written: 0,
        };
        let seconds = [
            second(0, Phase::WarmUp, 1_000),
            second(1, Phase::Measure, 1_000),
            second(2, Phase::Measure, 400),
        ];
        assert_eq!(held(&seconds, Phase::Measure), Nanos(1_400));
        assert_eq!(held(&seconds, Phase::Drain), Nanos::ZERO);
    }

    #[test]
    fn samples_are_bounded_by_class_and_in_all() {
        let mut budget = SampleBudget::default();
        let mut kept = 0;
        for class in 0..20 {
            for _ in 0..10 {
                let sample = ErrorSample {
                    op: "get".into(),
                    class: format!("status:{}", 400 + class),
                    detail: String::new(),
                    at_ns: 0,
                };
                kept += u32::from(budget.keep(&sample));
            }
        }
        assert_eq!(kept, SAMPLES_MAX);
    }
}
