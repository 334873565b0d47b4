//! Features of ops other than response times. A few counters per op: whether replies came in parts,
//! on new or kept connections, when no reply came at all, and the ops sent and done in each
//! twentieth of a second, since what changes within a second shows there. And the slices of the
//! window, from which the scatter of rates is computed.
//!
//! Times within ops whose replies come in streams are kept until the ops have ended: figures cover
//! only answers that did not fail, which is known only at the end.

use std::f64::consts::TAU;

use hdrhistogram::Histogram;
use plimsoll_model::assignment::{Phases, WINDOW_SLICES};
use plimsoll_model::event::{
    CoarseTimes, OpTimes, PAUSE_MIN, PartWaits, Pause, Signs, SliceCounts, TICK, TICK_GRID,
    TICKS_MAX, TimeKind, WorkerTotals, new_coarse_histogram,
};
use plimsoll_model::units::Nanos;

/// A part of a reply that came so long after the part before it was waited for. A delayed
/// acknowledgement takes twice as long; a server that makes its reply as it sends it is faster.
const PART_WAIT_MIN: Nanos = Nanos::from_millis(20);
/// Pauses that are kept: those of a minute with ten a second.
const PAUSES_MAX: usize = 600;
/// An op was in flight through a pause if it was sent within this part of it, or before.
const SENT_WITHIN_RATIO: f64 = 0.2;

/// The parts of the reply that is read on a link, by their stamps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts {
    last: Option<Nanos>,
    long_waits: u32,
    wait: PartWait,
    /// When something was sent last, or the connection was made.
    sent_at: Nanos,
    /// The link has carried a whole reply.
    answered: bool,
}

/// A part that was waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartWait {
    length: Nanos,
    arrived: Nanos,
}

/// How a reply came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyShape {
    /// It is the first on its connection.
    pub(crate) is_first: bool,
    /// The one part that was waited for.
    pub(crate) part_wait: Option<PartWait>,
    /// The kernel's stamp of its last bytes.
    pub(crate) arrived: Option<Nanos>,
    /// When the last of its request was sent, after what it took to make the connection.
    pub(crate) sent_at: Nanos,
}

impl Parts {
    /// Something is sent, or can be, since `now`: what comes next answers it.
    pub(crate) const fn note_sent(&mut self, now: Nanos) {
        (self.last, self.long_waits, self.sent_at) = (None, 0, now);
    }

    /// Bytes arrived.
    pub(crate) fn came(&mut self, stamp: Option<Nanos>) {
        if let (Some(last), Some(arrived)) = (self.last, stamp) {
            let length = arrived.saturating_sub(last);
            if length >= PART_WAIT_MIN {
                self.long_waits += 1;
                self.wait = PartWait { length, arrived };
            }
        }
        self.last = stamp;
    }

    /// The reply is complete.
    pub(crate) fn ended(&mut self) -> ReplyShape {
        let part_wait = (self.long_waits == 1).then_some(self.wait);
        let is_first = !std::mem::replace(&mut self.answered, true);
        let (arrived, sent_at) = (self.last, self.sent_at);
        self.note_sent(sent_at);
        ReplyShape { is_first, part_wait, arrived, sent_at }
    }
}

/// An op that went well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replied {
    pub(crate) endpoint: usize,
    pub(crate) sent: Nanos,
    pub(crate) done: Nanos,
    /// Ops in flight, this one included.
    pub(crate) in_flight: u64,
    pub(crate) shape: ReplyShape,
}

/// What one worker counts of it.
pub(crate) struct SignCounts {
    per_target: Vec<Histogram<u32>>,
    new_connections: Histogram<u32>,
    kept_connections: Histogram<u32>,
    part_waits: Histogram<u32>,
    /// Sums of cosines and sines, see [`PartWaits`].
    cos_sum: f64,
    sin_sum: f64,
    pauses: Pauses,
}

impl SignCounts {
    /// For this many targets.
    pub(crate) fn new(targets: usize) -> Self {
        Self {
            per_target: vec![new_coarse_histogram(); targets],
            new_connections: new_coarse_histogram(),
            kept_connections: new_coarse_histogram(),
            part_waits: new_coarse_histogram(),
            cos_sum: 0.0,
            sin_sum: 0.0,
            pauses: Pauses::new(),
        }
    }

    /// An op went well that was due in the window.
    pub(crate) fn count(&mut self, op: &Replied) {
        let service_ns = op.done.saturating_sub(op.sent).0;
        if let Some(target) = self.per_target.get_mut(op.endpoint) {
            target.saturating_record(service_ns);
        }
        if op.shape.is_first {
            self.new_connections.saturating_record(service_ns);
        } else {
            self.kept_connections.saturating_record(service_ns);
            op.shape.part_wait.into_iter().for_each(|wait| self.count_wait(wait));
        }
    }

    fn count_wait(&mut self, wait: PartWait) {
        let angle = (wait.arrived.0 % TICK_GRID.0) as f64 / TICK_GRID.0 as f64 * TAU;
        self.part_waits.saturating_record(wait.length.0);
        self.cos_sum += angle.cos();
        self.sin_sum += angle.sin();
    }

    /// Bytes of a reply arrived in the window while `in_flight` ops were in flight.
    #[inline]
    pub(crate) fn bytes_came(&mut self, arrived: Nanos, in_flight: u64) {
        self.pauses.bytes_came(arrived, in_flight);
    }

    /// A reply in the window, whenever its op was due.
    pub(crate) fn note_time(&mut self, op: &Replied) {
        self.pauses.add(op);
    }

    /// Hands all of it over.
    pub(crate) fn add_to(self, totals: &mut WorkerTotals) {
        for (target, service) in totals.per_target.iter_mut().zip(&self.per_target) {
            target.service = CoarseTimes::from_histogram(service);
        }
        totals.signs = Signs {
            workers: 1,
            new_connections: CoarseTimes::from_histogram(&self.new_connections),
            kept_connections: CoarseTimes::from_histogram(&self.kept_connections),
            part_waits: PartWaits {
                waits: CoarseTimes::from_histogram(&self.part_waits),
                cos_sum: self.cos_sum,
                sin_sum: self.sin_sum,
            },
            pauses: self.pauses.confirmed,
        };
    }
}

/// Times without a byte of any reply. One is a pause if an op was in flight through it: else not
/// replies were missing, but requests.
struct Pauses {
    last: Option<Nanos>,
    /// The last time without a byte, while ops that were in flight at its end may still end.
    candidate: Option<(Pause, u32)>,
    confirmed: Vec<Pause>,
}

impl Pauses {
    fn new() -> Self {
        Self { last: None, candidate: None, confirmed: Vec::with_capacity(PAUSES_MAX) }
    }

    fn bytes_came(&mut self, arrived: Nanos, in_flight: u64) {
        let start = self.last.unwrap_or(arrived);
        self.last = Some(start.max(arrived));
        let length = arrived.saturating_sub(start);
        // Streams pause after each chunk; the longest pause is the one to prove.
        let is_longest = self.candidate.is_none_or(|(pause, _)| length >= pause.length);
        if length >= PAUSE_MIN && is_longest {
            let in_flight = u32::try_from(in_flight).unwrap_or(u32::MAX);
            self.candidate = Some((Pause { start, length, in_flight }, in_flight));
        }
    }

    fn add(&mut self, op: &Replied) {
        let Some(arrived) = op.shape.arrived else { return };
        self.bytes_came(arrived, op.in_flight);
        if let Some((pause, left)) = self.candidate {
            self.check_candidate(pause, left, op, arrived);
        }
    }

    fn check_candidate(&mut self, pause: Pause, left: u32, op: &Replied, arrived: Nanos) {
        let early = pause.length.0 as f64 * SENT_WITHIN_RATIO;
        let sent_before = op.sent <= pause.start + Nanos(early as u64);
        if sent_before && arrived >= pause.start + pause.length {
            if self.confirmed.len() < PAUSES_MAX {
                self.confirmed.push(pause);
            }
            self.candidate = None;
        } else {
            // Bytes may come while no op is in flight.
            self.candidate = (left > 1).then(|| (pause, left - 1));
        }
    }
}

/// Counts of the window's first minute.
pub(crate) struct Ticks {
    start: Nanos,
    done: Vec<u32>,
    sent: Vec<u32>,
}

impl Ticks {
    /// Of the window of these phases.
    pub(crate) fn new(phases: &Phases) -> Self {
        let window = phases.window_end().saturating_sub(phases.warm_up_ns);
        let ticks = usize::try_from(window.0 / TICK.0).map_or(TICKS_MAX, |n| n.min(TICKS_MAX));
        Self { start: phases.warm_up_ns, done: vec![0; ticks], sent: vec![0; ticks] }
    }

    /// An op that ended, whenever that was.
    pub(crate) fn count(&mut self, sent: Nanos, done: Nanos) {
        for (counts, at) in [(&mut self.done, done), (&mut self.sent, sent)] {
            let tick = at.0.checked_sub(self.start.0).map(|since| since / TICK.0);
            if let Some(count) = tick.and_then(|tick| counts.get_mut(tick as usize)) {
                *count += 1;
            }
        }
    }

    /// Ops done and sent in each tick that ended before `now`.
    pub(crate) fn into_counts(mut self, now: Nanos) -> (Vec<u32>, Vec<u32>) {
        let ended = (now.saturating_sub(self.start).0 / TICK.0) as usize;
        self.done.truncate(ended);
        self.sent.truncate(ended);
        (self.done, self.sent)
    }
}

/// A slice for each part of the window, or none where that is a number of ops.
pub(crate) fn slices_of_window(phases: &Phases) -> Vec<SliceCounts> {
    vec![SliceCounts::default(); if phases.ops.is_none() { WINDOW_SLICES } else { 0 }]
}

/// The slice that contains `at`.
pub(crate) fn slice_at<'s>(
    phases: &Phases,
    slices: &'s mut [SliceCounts],
    at: Nanos,
) -> Option<&'s mut SliceCounts> {
    slices.get_mut(phases.slice_of_window(at)?)
}

/// Times kept of one op: more than the chunks of the longest answers today, in 1 MiB. Those beyond
/// are left out.
const TIMES_MAX: usize = 1 << 16;
/// A list is used again by other ops up to this length, in 64 KiB; a thousand streams of 2,000
/// chunks keep 32 MB.
const REUSED_MAX: usize = 1 << 12;

/// When the reply of an op reached this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// At this instant, as the kernel stamped it.
    Stamped(Nanos),
    /// Not before this instant.
    Bounded(Nanos),
    /// It ended without a reply.
    Never,
}

/// The progress of the reply of an op in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamState {
    /// When the first output came.
    pub first_output: Option<Nanos>,
    /// Time per output token, once known.
    pub token_time: Option<Nanos>,
    /// When the reply was complete, and when it had reached this host, if its client could not
    /// continue then.
    pub completed: Option<(Nanos, Arrived)>,
    /// Chunks of output that came in the window.
    pub chunks: u64,
    /// Characters of output in them.
    pub characters: u64,
    /// Where its response time begins, if something preceded it; else zero.
    pub(crate) response_from: Nanos,
    /// Where its service time begins, if something preceded it or it waited in its session; else
    /// zero.
    pub(crate) service_from: Nanos,
    /// Its list in [`KeptTimes`].
    list: Option<u32>,
}

/// The lists of the ops of one worker. Used again, so that ops allocate nothing in the long run: a
/// chunk costs one push here and one record when its op has ended.
#[derive(Default)]
pub(crate) struct KeptTimes {
    lists: Vec<Vec<(TimeKind, u64)>>,
    free: Vec<u32>,
}

impl KeptTimes {
    /// Keeps a time of an op.
    pub(crate) fn keep(&mut self, op: &mut StreamState, kind: TimeKind, value: u64) {
        let at = *op.list.get_or_insert_with(|| {
            self.free.pop().unwrap_or_else(|| {
                self.lists.push(Vec::new());
                self.lists.len() as u32 - 1
            })
        });
        let list = &mut self.lists[at as usize];
        if list.len() < TIMES_MAX {
            list.push((kind, value));
        }
    }

    /// The op has ended: its times are recorded, where they count.
    pub(crate) fn release(&mut self, op: StreamState, counting: Option<&mut OpTimes>) {
        let Some(at) = op.list else { return };
        let list = &mut self.lists[at as usize];
        if let Some(times) = counting {
            for (kind, value) in list.iter() {
                kind.of_mut(times).saturating_record(*value);
            }
        }
        list.clear();
        list.shrink_to(REUSED_MAX);
        self.free.push(at);
    }
}

#[cfg(test)]
mod tests;
