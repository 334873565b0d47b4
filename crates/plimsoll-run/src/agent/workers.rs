//! The workers of this program: they make the load of a point, and a listener of low priority counts
//! what they report. A local run and an agent both make their load here.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use plimsoll_engine::agent;
use plimsoll_engine::workload::Workload;
use plimsoll_fleet::message::{PointReport, SecondTotals};
use plimsoll_model::assignment::Assignment;
use plimsoll_model::bundle::PackedSlice;
use plimsoll_model::event::{AgentEvent, Phase, WorkerTotals};
use plimsoll_model::outcome::ErrorSample;
use plimsoll_model::units::Nanos;
use plimsoll_servers::cores;

use super::collector::{Collected, SliceCollector};
use crate::failure::Failure;

/// Longest wait for an event, after which a listener checks whether to stop.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What a source of load reports of a running point.
pub(crate) enum PointEvent {
    /// The point's clock has started.
    Started { at_unix_ns: u64 },
    /// A second has ended.
    Second(SecondTotals),
    /// A failure.
    Sample(ErrorSample),
    /// A client gave up.
    ClientLost {
        client: u32,
        reason: String,
        /// From the start of the point.
        at: Nanos,
    },
    /// The oldest slice: the slices exceed their share of memory.
    Excess(PackedSlice),
}

/// What comes next from a source of load.
pub(crate) enum Next<E> {
    Event(PointEvent),
    /// Nothing for a while.
    Quiet,
    /// The load has ended, and nothing more comes.
    End(E),
}

/// Makes the load of a point: workers on this thread, and `listen` on one of low priority. That
/// thread may not be the workers' parent: they would inherit its priority. `listen` first keeps
/// other threads off the workers' cores, then calls its second argument with the start of the
/// point, and listens until the end.
pub(crate) fn make_load<R: Send>(
    assignment: &Assignment,
    workload: &dyn Workload,
    stop: &AtomicBool,
    listen: impl FnOnce(WorkerEvents<'_>, &dyn Fn(Nanos)) -> Result<R, Failure> + Send,
) -> Result<R, Failure> {
    let (events, received) = agent::event_queue(workload.op_names().0.len(), assignment.workers);
    let (begin, begun) = channel();
    thread::scope(|scope| {
        let listener = thread::Builder::new()
            .name("plimsoll-listen".into())
            .spawn_scoped(scope, move || {
                let workers = WorkerEvents { received, tally: Tally::new(assignment), stop };
                listen(workers, &|start| {
                    let _ = begin.send(start);
                    // Without permission it can still use other cores.
                    let _ = cores::lower_priority();
                })
            })
            .map_err(|e| Failure::unusable(format!("cannot start a thread: {e}")))?;
        // An error means that the listener has given up: nobody receives the workers' reports.
        let start = begun.recv().unwrap_or_else(|_| {
            stop.store(true, Ordering::Relaxed);
            agent::soonest(assignment)
        });
        let load_end = agent::run_point(assignment, workload, start, (&events, stop));
        drop(events);
        let outcome = listener.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        load_end.map_err(|e| Failure::unusable(e.to_string()))?;
        outcome
    })
}

/// What the workers report, counted.
pub(crate) struct WorkerEvents<'a> {
    received: Receiver<AgentEvent>,
    tally: Tally,
    stop: &'a AtomicBool,
}

/// The report of the workers without the observations of monitors, and the slices that are left.
pub(crate) type WorkerReport = (PointReport, VecDeque<PackedSlice>);

impl WorkerEvents<'_> {
    /// Ends the load early.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The next event; waits for [`LOOK_UP`] at most.
    pub(crate) fn next(&mut self) -> Result<Next<WorkerReport>, Failure> {
        if let Some(event) = self.tally.next_event() {
            return Ok(Next::Event(event));
        }
        let counted = match self.received.recv_timeout(LOOK_UP) {
            Ok(event) => self.tally.add(event),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                self.tally.end().map_err(|e| cannot_keep(&e))?;
                return Ok(match self.tally.next_event() {
                    Some(event) => Next::Event(event),
                    None => Next::End(std::mem::take(&mut self.tally).into_report()),
                });
            }
        };
        counted.map_err(|e| cannot_keep(&e))?;
        Ok(self.tally.next_event().map_or(Next::Quiet, Next::Event))
    }
}

pub(crate) fn cannot_keep(error: &io::Error) -> Failure {
    Failure::unusable(format!("cannot keep the times of a load point in memory: {error}"))
}

/// A load point so far.
#[derive(Default)]
struct Tally {
    first_worker: u32,
    /// In order of time.
    windows: Vec<WindowTally>,
    /// The last window that a worker has begun.
    current: usize,
    /// Not reported yet.
    events: VecDeque<PointEvent>,
    panic: Option<String>,
    started_unix_ns: u64,
}

/// A window so far.
struct WindowTally {
    collector: SliceCollector,
    totals: WorkerTotals,
}

impl Tally {
    fn new(assignment: &Assignment) -> Self {
        let workers = assignment.own_workers();
        let window = |_| WindowTally {
            collector: SliceCollector::new(workers.len()),
            totals: WorkerTotals::default(),
        };
        let windows = assignment.windows().into_iter().map(window).collect();
        Self { first_worker: workers.start, windows, ..Self::default() }
    }

    /// Counts an event of a worker.
    fn add(&mut self, event: AgentEvent) -> io::Result<()> {
        match event {
            AgentEvent::Started { at_unix_ns } => self.started_unix_ns = at_unix_ns,
            AgentEvent::Interval(mut interval) => {
                interval.worker = interval.worker.saturating_sub(self.first_worker);
                let number = interval.window;
                self.current = self.current.max(number);
                let Some(window) = self.windows.get_mut(number) else { return Ok(()) };
                let ended = window.collector.add(*interval)?;
                self.notify_seconds(number, ended);
            }
            AgentEvent::ErrorSample(sample) => self.events.push_back(PointEvent::Sample(sample)),
            AgentEvent::ClientLost { client, reason, at } => {
                self.events.push_back(PointEvent::ClientLost { client, reason, at });
            }
            AgentEvent::WorkerFinished { window, totals } => {
                if let Some(window) = self.windows.get_mut(window) {
                    window.totals.add(*totals);
                }
            }
            AgentEvent::WorkerPanicked { message } => self.panic = Some(message),
        }
        Ok(())
    }

    /// Reports seconds that have ended. What ends late of an earlier window counts in that of the
    /// second in which it ends.
    fn notify_seconds(&mut self, window: usize, ended: Vec<SecondTotals>) {
        let is_last = window + 1 == self.windows.len();
        let live = ended.into_iter().filter(|it| is_last || it.phase != Phase::Drain);
        self.events.extend(live.map(PointEvent::Second));
    }

    /// Every worker has ended, with or without success.
    fn end(&mut self) -> io::Result<()> {
        for number in 0..self.windows.len() {
            let ended = self.windows[number].collector.ended()?;
            self.notify_seconds(number, ended);
        }
        Ok(())
    }

    fn next_event(&mut self) -> Option<PointEvent> {
        let windows = &mut self.windows;
        let excess = || {
            (0..).zip(windows).find_map(|(number, window)| {
                let packed = window.collector.take_excess()?;
                Some(PointEvent::Excess(packed.in_window(number)))
            })
        };
        self.events.pop_front().or_else(excess)
    }

    fn into_report(self) -> WorkerReport {
        let Self { windows, started_unix_ns, panic, .. } = self;
        let mut all = VecDeque::new();
        let mut reports = (0..).zip(windows).map(|(number, WindowTally { collector, totals })| {
            let Collected { slices, seconds, health } = collector.into_collected();
            all.extend(slices.into_iter().map(|packed| packed.in_window(number)));
            let panic = panic.clone();
            let workers = health;
            PointReport {
                started_unix_ns,
                seconds,
                workers,
                totals,
                panic,
                ..PointReport::default()
            }
        });
        let first = reports.next().unwrap_or_default();
        let later = reports.collect();
        (PointReport { later, ..first }, all)
    }
}
