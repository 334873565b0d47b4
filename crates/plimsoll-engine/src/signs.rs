//! What replies looked like beside their times: how they came in parts, on new connections or kept
//! ones, and when no reply came at all. A few counters per op, no memory.

use std::f64::consts::TAU;

use hdrhistogram::Histogram;
use plimsoll_model::event::{
    CoarseTimes, PAUSE_MIN, PartWaits, Pause, Signs, TICK_GRID, WorkerTotals, new_coarse_histogram,
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
    asked_at: Nanos,
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
    pub(crate) asked_at: Nanos,
}

impl Parts {
    /// Something is sent, or can be, since `now`: what comes next answers it.
    pub(crate) const fn asked(&mut self, now: Nanos) {
        (self.last, self.long_waits, self.asked_at) = (None, 0, now);
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
        let (arrived, asked_at) = (self.last, self.asked_at);
        self.asked(asked_at);
        ReplyShape { is_first, part_wait, arrived, asked_at }
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
    /// Of so many targets.
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
        let place = (wait.arrived.0 % TICK_GRID.0) as f64 / TICK_GRID.0 as f64 * TAU;
        self.part_waits.saturating_record(wait.length.0);
        self.cos_sum += place.cos();
        self.sin_sum += place.sin();
    }

    /// A reply in the window, whenever its op was due.
    pub(crate) fn note_time(&mut self, op: &Replied) {
        self.pauses.add(op);
    }

    /// Hands all of it over.
    pub(crate) fn add_to(self, totals: &mut WorkerTotals) {
        for (target, service) in totals.per_target.iter_mut().zip(&self.per_target) {
            target.service = CoarseTimes::of(service);
        }
        totals.signs = Signs {
            workers: 1,
            new_connections: CoarseTimes::of(&self.new_connections),
            kept_connections: CoarseTimes::of(&self.kept_connections),
            part_waits: PartWaits {
                waits: CoarseTimes::of(&self.part_waits),
                cos_sum: self.cos_sum,
                sin_sum: self.sin_sum,
            },
            pauses: self.pauses.found,
        };
    }
}

/// Times without a reply. One is a pause if an op was in flight through it: else not replies were
/// missing, but requests.
struct Pauses {
    last: Option<Nanos>,
    /// The last time without a reply, while ops that were in flight at its end may still end.
    candidate: Option<(Pause, u32)>,
    found: Vec<Pause>,
}

impl Pauses {
    fn new() -> Self {
        Self { last: None, candidate: None, found: Vec::with_capacity(PAUSES_MAX) }
    }

    fn add(&mut self, op: &Replied) {
        let Some(arrived) = op.shape.arrived else { return };
        let start = self.last.unwrap_or(arrived);
        self.last = Some(start.max(arrived));
        let length = arrived.saturating_sub(start);
        if length >= PAUSE_MIN {
            let in_flight = u32::try_from(op.in_flight).unwrap_or(u32::MAX);
            self.candidate = Some((Pause { start, length, in_flight }, in_flight));
        }
        if let Some((pause, left)) = self.candidate {
            self.judge(pause, left, op, arrived);
        }
    }

    fn judge(&mut self, pause: Pause, left: u32, op: &Replied, arrived: Nanos) {
        let early = pause.length.0 as f64 * SENT_WITHIN_RATIO;
        let sent_before = op.sent <= pause.start + Nanos(early as u64);
        if sent_before && arrived >= pause.start + pause.length {
            if self.found.len() < PAUSES_MAX {
                self.found.push(pause);
            }
            self.candidate = None;
        } else {
            self.candidate = (left > 1).then_some((pause, left - 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    fn replied(sent_ms: u64, arrived_ms: u64) -> Replied {
        let (sent, done) = (MS(sent_ms), MS(arrived_ms));
        let shape =
            ReplyShape { is_first: false, part_wait: None, arrived: Some(done), asked_at: sent };
        Replied { endpoint: 0, sent, done, in_flight: 3, shape }
    }

    #[test]
    fn a_pause_is_one_only_if_an_op_was_in_flight_through_it() {
        let mut pauses = Pauses::new();
        // The first reply after the pause may be that of a later op.
        for (sent, arrived) in [(0, 1), (50, 62), (2, 63), (60, 64)] {
            pauses.add(&replied(sent, arrived));
        }
        // The generator stood still; a reply that lay unread until then had arrived before.
        for (sent, arrived) in [(122, 123), (64, 65), (123, 124), (124, 125), (20, 126)] {
            pauses.add(&replied(sent, arrived));
        }
        let found = Pause { start: MS(1), length: MS(61), in_flight: 3 };
        assert_eq!(pauses.found, [found]);
    }

    #[test]
    fn a_reply_of_two_parts_has_a_wait_and_the_next_begins_anew() {
        let mut parts = Parts::default();
        let arrivals = |parts: &mut Parts, at: &[u64]| {
            parts.asked(Nanos::ZERO);
            at.iter().for_each(|at| parts.came(Some(MS(*at))));
            parts.ended()
        };
        let first = arrivals(&mut parts, &[1, 45]);
        let wait = PartWait { length: MS(44), arrived: MS(45) };
        assert_eq!((first.is_first, first.part_wait), (true, Some(wait)));
        let second = arrivals(&mut parts, &[100]);
        assert_eq!(
            (second.is_first, second.part_wait, second.arrived),
            (false, None, Some(MS(100)))
        );
        let stream = arrivals(&mut parts, &[200, 240, 280]);
        assert_eq!(stream.part_wait, None, "a stream of parts");
    }

    #[test]
    fn parts_that_arrive_at_ticks_keep_to_the_grid_and_others_do_not() {
        let concentration = |step_us: u64| {
            let mut counts = SignCounts::new(1);
            for n in 0..200 {
                let arrived = Nanos::from_micros(700 + n * step_us);
                counts.count_wait(PartWait { length: MS(41), arrived });
            }
            let mut totals = WorkerTotals::default();
            counts.add_to(&mut totals);
            totals.signs.part_waits.tick_concentration().unwrap()
        };
        assert!(concentration(44_000) > 0.99);
        assert!(concentration(41_230) < 0.1);
    }
}
