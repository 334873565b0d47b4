//! One load point: hands the assignment to the agents, listens, and writes what they say.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use plimsoll_analysis::{Analysis, PointTimes};
use plimsoll_engine::agent::{self, Origin};
use plimsoll_engine::workload::Workload;
use plimsoll_fleet::controller::Failure as AgentFailure;
use plimsoll_model::assignment::Assignment;
use plimsoll_model::bundle::BundleWriter;
use plimsoll_model::event::{AgentEvent, JournalRecord, PointRecord, WorkerTotals};
use plimsoll_model::outcome::ErrorSample;
use plimsoll_model::units::Nanos;
use plimsoll_servers::cores;

use super::book::{PointBook, cannot_keep};
use super::fleet_point::{Brought, FleetHeard, FleetPoint};
use super::parts::{Part, record_of, write_all};
use super::placement::Placement;
use super::watcher::{PointUse, Watcher};
use crate::agent::{Heard, Tally};
use crate::clock::unix_ns;
use crate::exit::Failure;
use crate::observers::SecondView;
use crate::signals::Signals;

/// How often the coordinator looks up from listening.
const LOOK_UP: Duration = Duration::from_millis(50);

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
    /// An agent was lost; the point did not happen.
    Lost(Failure),
}

/// Who makes the load of a point.
pub(super) enum Makers<'f> {
    /// This program.
    Own,
    /// Agents.
    Fleet(FleetPoint<'f>),
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
        makers: Makers<'_>,
    ) -> Result<PointEnd, Failure> {
        let at_unix_ns = unix_ns();
        self.record(JournalRecord::PointStarted { assignment: assignment.clone(), at_unix_ns })?;
        let log = self.bundle.begin_point(assignment.point, &workload.op_names())?;
        let mut book = PointBook::begin(assignment, log);
        let driven = match makers {
            Makers::Own => self.drive(&mut book, workload).map(|part| Brought::Parts(vec![part])),
            Makers::Fleet(fleet) => self.drive_fleet(&mut book, fleet),
        };
        if assignment.phases.ops.is_some() {
            self.watcher.window(assignment, book.started_unix_ns, unix_ns());
        }
        let point_use = self.watcher.end_point();
        let brought = driven?;
        // Between load points nobody is in the way, and set-up wants what it can get.
        cores::pin_current_thread(&self.placement.setup_cores)
            .map_err(|e| Failure::unusable(format!("cannot go back to the other cores: {e}")))?;
        if self.signals.is_asked() {
            return Ok(PointEnd::Interrupted);
        }
        let mut parts = match brought {
            Brought::Parts(parts) => parts,
            Brought::Lost { agent, host, why } => {
                let (point, reason) = (assignment.point, why.to_string());
                let failure = Failure::unusable(format!("agent {agent} on {host}: {reason}"));
                // It is still there, and would refuse again.
                if matches!(why, AgentFailure::Refused(_)) {
                    return Err(failure);
                }
                self.record(JournalRecord::AgentLost { point, agent, host, reason })?;
                return Ok(PointEnd::Lost(failure));
            }
        };
        for part in &mut parts {
            name_statuses(&mut part.report.totals, workload);
            part.see(&point_use);
        }
        self.finish(book, parts, (point_use, workload.data_bytes()))
    }

    /// Runs the agent on this thread, which then waits for the workers, and listens on one of
    /// low priority: its children would inherit that, so it may not be the workers' parent.
    fn drive(&mut self, book: &mut PointBook, workload: &dyn Workload) -> Result<Part, Failure> {
        let assignment = &book.assignment.clone();
        let stop = &AtomicBool::new(false);
        let (events, heard) = agent::event_queue(workload.op_names().0.len(), assignment.workers);
        let (out_of_the_way, ready) = channel();
        thread::scope(move |scope| {
            let listener = thread::Builder::new()
                .name("plimsoll-listen".into())
                .spawn_scoped(scope, move || {
                    self.step_aside(assignment, out_of_the_way)?;
                    self.listen(book, &heard, stop)
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

    /// Has the agents of a fleet make the load, and listens to them on a thread of low priority: of
    /// its own, since a lowered priority cannot be raised again without a right to it.
    fn drive_fleet(
        &mut self,
        book: &mut PointBook,
        point: FleetPoint<'_>,
    ) -> Result<Brought, Failure> {
        thread::scope(|scope| {
            let listener = thread::Builder::new()
                .name("plimsoll-listen".into())
                .spawn_scoped(scope, || {
                    let (out_of_the_way, _ready) = channel();
                    self.step_aside(&book.assignment.clone(), out_of_the_way)?;
                    self.listen_to_fleet(book, point)
                })
                .map_err(|e| Failure::unusable(format!("cannot start a thread: {e}")))?;
            listener.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn listen_to_fleet(
        &mut self,
        book: &mut PointBook,
        point: FleetPoint<'_>,
    ) -> Result<Brought, Failure> {
        let mut listening = point.begin();
        let mut first_failure = None;
        loop {
            if self.signals.is_asked() || first_failure.is_some() || book.is_over {
                listening.stop();
            }
            let brought = match listening.next() {
                Some(FleetHeard::End(brought)) => Some(brought),
                Some(heard) => {
                    let heard = self.hear_fleet(book, heard);
                    first_failure = first_failure.or(heard.err());
                    None
                }
                None => None,
            };
            (self.on_look_up)(book.views.pop_front());
            match (brought, first_failure.take()) {
                (Some(_), Some(failure)) => return Err(failure),
                (Some(brought), None) => return Ok(brought),
                (None, failure) => first_failure = failure,
            }
        }
    }

    fn hear_fleet(&mut self, book: &mut PointBook, heard: FleetHeard) -> Result<(), Failure> {
        match heard {
            FleetHeard::Started { at_unix_ns } => self.started(book, at_unix_ns),
            FleetHeard::Second(second) => book.show(&second),
            FleetHeard::Sample(sample) => self.sample(book, sample)?,
            FleetHeard::ClientLost { client, reason, at } => self.lose(book, client, reason, at)?,
            FleetHeard::End(_) => {}
        }
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
        book: &mut PointBook,
        heard: &Receiver<AgentEvent>,
        stop: &AtomicBool,
    ) -> Result<Part, Failure> {
        let mut tally = Tally::new(&book.assignment);
        let mut first_failure = None;
        loop {
            if self.signals.is_asked() || first_failure.is_some() || book.is_over {
                stop.store(true, Ordering::Relaxed);
            }
            match heard.recv_timeout(LOOK_UP) {
                Ok(event) if first_failure.is_none() => {
                    first_failure = self.hear(book, &mut tally, event).err();
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            (self.on_look_up)(book.views.pop_front());
        }
        if let Some(failure) = first_failure {
            return Err(failure);
        }
        tally.end().map_err(|e| cannot_keep(&e))?;
        let (report, slices) = tally.into_report();
        Ok(Part { report, slices, agent: None, targets: Vec::new() })
    }

    fn hear(
        &mut self,
        book: &mut PointBook,
        tally: &mut Tally,
        event: AgentEvent,
    ) -> Result<(), Failure> {
        match tally.hear(event).map_err(|e| cannot_keep(&e))? {
            Heard::Counted => {}
            Heard::Started { at_unix_ns } => self.started(book, at_unix_ns),
            Heard::Sample(sample) => self.sample(book, sample)?,
            Heard::ClientLost { client, reason, at } => self.lose(book, client, reason, at)?,
        }
        while let Some(second) = tally.next_second() {
            book.show(&second);
        }
        while let Some(packed) = tally.take_surplus() {
            book.write_packed(&packed)?;
        }
        Ok(())
    }

    fn started(&mut self, book: &mut PointBook, at_unix_ns: u64) {
        book.started_unix_ns = at_unix_ns;
        self.watcher.window(&book.assignment, at_unix_ns, u64::MAX);
    }

    fn sample(&mut self, book: &mut PointBook, sample: ErrorSample) -> Result<(), Failure> {
        // What was under way at Ctrl-C failed through nobody.
        match !self.signals.is_asked() && book.keeps(&sample) {
            true => {
                self.record(JournalRecord::ErrorSample { point: book.assignment.point, sample })
            }
            false => Ok(()),
        }
    }

    fn lose(
        &mut self,
        book: &mut PointBook,
        client: u32,
        reason: String,
        at: Nanos,
    ) -> Result<(), Failure> {
        let point = book.assignment.point;
        match book.lose(client, &reason, at) {
            true => self.record(JournalRecord::ClientLost { point, client, reason }),
            false => Ok(()),
        }
    }

    fn finish(
        self,
        mut book: PointBook,
        mut parts: Vec<Part>,
        (point_use, data_set_bytes): (PointUse, Option<u64>),
    ) -> Result<PointEnd, Failure> {
        write_all(&mut book, &mut parts)?;
        let record = PointRecord {
            server_core_users: point_use.server_core_users,
            data_set_bytes,
            host_work: point_use.work,
            ..record_of(&book, parts)
        };
        let PointBook { log, times, .. } = book;
        self.bundle.finish_point(log, record.clone())?;
        self.records.push(JournalRecord::PointFinished(Box::new(record.clone())));
        Ok(PointEnd::Finished { record: Box::new(record), times })
    }
}

/// Only the protocol knows what people call its statuses, and only here is it at hand.
fn name_statuses(totals: &mut WorkerTotals, workload: &dyn Workload) {
    for seen in &mut totals.unexpected {
        let name = |status| workload.status_name(status).map(str::to_owned);
        (seen.expected_name, seen.actual_name) = (name(seen.expected), name(seen.actual));
    }
}
