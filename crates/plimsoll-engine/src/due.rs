//! What came due by the clock or from a reply: counts that the schedules of a worker keep.

use plimsoll_model::assignment::Phases;
use plimsoll_model::event::WorkerTotals;
use plimsoll_model::units::Nanos;

use crate::recorder::in_window;

/// What came due in the window, and which pieces of work ended in it.
pub struct DueCounts {
    phases: Phases,
    due: u64,
    not_sent: u64,
    pieces: u64,
    piece_ns_total: u64,
    think_ns_total: u64,
    last_due: Nanos,
    last_sent: Nanos,
}

impl DueCounts {
    /// Nothing has come due yet; of ops, `phases` has what falls to this worker.
    pub fn new(phases: Phases) -> Self {
        Self {
            phases,
            due: 0,
            not_sent: 0,
            pieces: 0,
            piece_ns_total: 0,
            think_ns_total: 0,
            last_due: Nanos::ZERO,
            last_sent: Nanos::ZERO,
        }
    }

    /// An op came due.
    pub fn came_due(&mut self, due: Nanos) {
        self.due += u64::from(in_window(&self.phases, due));
    }

    /// An op of a schedule goes out.
    pub fn sent(&mut self, due: Nanos, now: Nanos) {
        if in_window(&self.phases, due) {
            (self.last_due, self.last_sent) = (due, now);
        }
    }

    /// As many ops as the window is to have are due in it.
    pub fn has_all_ops(&self) -> bool {
        self.phases.ops.is_some_and(|ops| self.due >= ops)
    }

    /// An op that came due will never be sent.
    pub fn not_sent(&mut self, due: Nanos) {
        self.not_sent += u64::from(in_window(&self.phases, due));
    }

    /// A piece of work of a closed client ended at `now`.
    pub fn piece_done(&mut self, started: Nanos, think: Nanos, now: Nanos) {
        if in_window(&self.phases, now) {
            self.pieces += 1;
            self.piece_ns_total += (now - started).0;
            self.think_ns_total += think.0;
        }
    }

    /// Adds them to a worker's totals.
    pub fn add_to(&self, totals: &mut WorkerTotals) {
        totals.due += self.due;
        totals.not_sent += self.not_sent;
        totals.pieces += self.pieces;
        totals.piece_ns_total += self.piece_ns_total;
        totals.think_ns_total += self.think_ns_total;
        totals.last_due = totals.last_due.max(self.last_due);
        totals.last_sent = totals.last_sent.max(self.last_sent);
    }
}
