//! What the workers of this program have counted of a load point.

use std::collections::VecDeque;
use std::io;

use plimsoll_fleet::message::{PointReport, SecondTotals};
use plimsoll_model::assignment::Assignment;
use plimsoll_model::bundle::PackedSlice;
use plimsoll_model::event::{AgentEvent, Interval, WorkerTotals};
use plimsoll_model::outcome::ErrorSample;
use plimsoll_model::units::Nanos;

use super::kept::KeptSlices;
use super::merge::{FullSlice, Slices};

/// A load point so far. Histograms are merged over workers and packed.
pub(crate) struct Tally {
    first_worker: u32,
    slices: Slices,
    kept: KeptSlices,
    /// Ended, and not told yet.
    seconds: VecDeque<SecondTotals>,
    totals: WorkerTotals,
    panic: Option<String>,
    started_unix_ns: u64,
}

/// What is to be told of an event at once.
pub(crate) enum Heard {
    /// It was counted.
    Counted,
    /// The point's clock has started.
    Started {
        /// Nanoseconds since the Unix epoch.
        at_unix_ns: u64,
    },
    /// A failure.
    Sample(ErrorSample),
    /// A client gave up.
    ClientLost {
        /// Its number.
        client: u32,
        /// Why.
        reason: String,
        /// When, from the start of the point.
        at: Nanos,
    },
}

impl Tally {
    pub(crate) fn new(assignment: &Assignment) -> Self {
        let workers = assignment.own_workers();
        Self {
            first_worker: workers.start,
            slices: Slices::new(workers.len()),
            kept: KeptSlices::default(),
            seconds: VecDeque::new(),
            totals: WorkerTotals::default(),
            panic: None,
            started_unix_ns: 0,
        }
    }

    /// Counts what a worker says.
    pub(crate) fn hear(&mut self, event: AgentEvent) -> io::Result<Heard> {
        match event {
            AgentEvent::Started { at_unix_ns } => {
                self.started_unix_ns = at_unix_ns;
                return Ok(Heard::Started { at_unix_ns });
            }
            AgentEvent::Interval(mut interval) => {
                interval.worker = interval.worker.saturating_sub(self.first_worker);
                self.add(*interval)?;
            }
            AgentEvent::ErrorSample(sample) => return Ok(Heard::Sample(sample)),
            AgentEvent::ClientLost { client, reason, at } => {
                return Ok(Heard::ClientLost { client, reason, at });
            }
            AgentEvent::WorkerFinished(totals) => self.totals.add(*totals),
            AgentEvent::WorkerPanicked { message } => self.panic = Some(message),
        }
        Ok(Heard::Counted)
    }

    /// Every worker has ended, well or not.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        let full = self.slices.ended();
        self.keep(full)
    }

    /// A second that has ended since the last call.
    pub(crate) fn next_second(&mut self) -> Option<SecondTotals> {
        self.seconds.pop_front()
    }

    /// The oldest slice, where there are more than memory should hold.
    pub(crate) fn take_surplus(&mut self) -> Option<PackedSlice> {
        if self.kept.are_too_many() { self.kept.take_oldest() } else { None }
    }

    /// The report, without what monitors saw, and the slices that are left.
    pub(crate) fn into_report(self) -> (PointReport, KeptSlices) {
        let (seconds, workers) = self.slices.into_records();
        let report = PointReport {
            started_unix_ns: self.started_unix_ns,
            seconds,
            workers,
            totals: self.totals,
            panic: self.panic,
            ..PointReport::default()
        };
        (report, self.kept)
    }

    fn add(&mut self, interval: Interval) -> io::Result<()> {
        let full = self.slices.add(interval);
        self.keep(full)
    }

    fn keep(&mut self, full: Vec<FullSlice>) -> io::Result<()> {
        for FullSlice { slice, second } in full {
            self.seconds.extend(second);
            self.kept.keep(&slice)?;
        }
        Ok(())
    }
}
