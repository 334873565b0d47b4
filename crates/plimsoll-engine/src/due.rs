//! What came due by the clock or from a reply: counts that the schedules of a worker keep.

use plimsoll_model::assignment::Phases;
use plimsoll_model::event::{OpTimes, Times, WorkerTotals, growing_times};
use plimsoll_model::units::{Nanos, keep_least};

use crate::recorder::in_window;

/// What came due in the window, and which pieces of work ended in it.
pub(crate) struct DueCounts {
    phases: Phases,
    /// Of a worker's totals, those that are counted here.
    counted: WorkerTotals,
    /// When the ops came due that were never sent, from the begin of the window.
    unsent: Option<Box<Times>>,
}

impl DueCounts {
    /// Nothing has come due yet; of ops, `phases` has what falls to this worker.
    pub(crate) fn new(phases: Phases) -> Self {
        Self { phases, counted: WorkerTotals::default(), unsent: None }
    }

    /// An op came due.
    pub(crate) fn came_due(&mut self, due: Nanos) {
        self.counted.due += u64::from(in_window(&self.phases, due));
    }

    /// An op of a schedule goes out.
    pub(crate) fn sent(&mut self, due: Nanos, now: Nanos) {
        if in_window(&self.phases, due) {
            (self.counted.last_due, self.counted.last_sent) = (due, now);
        }
    }

    /// As many ops as the window is to have are due in it.
    pub(crate) fn has_all_ops(&self) -> bool {
        self.phases.ops.is_some_and(|ops| self.counted.due >= ops)
    }

    /// An op that came due will never be sent.
    pub(crate) fn not_sent(&mut self, due: Nanos) {
        if !in_window(&self.phases, due) {
            return;
        }
        self.counted.not_sent += 1;
        let unsent = self.unsent.get_or_insert_with(|| Box::new(growing_times()));
        // It grows with the window; what no histogram holds would be centuries.
        let _ = unsent.record(due.saturating_sub(self.phases.warm_up_ns).0);
    }

    /// Records how old the ops that were never sent are when the drain ends, at `now`. An age is
    /// rounded down, so that a response time cannot be less.
    pub(crate) fn record_ages(&self, times: &mut OpTimes, now: Nanos) {
        let Some(unsent) = &self.unsent else { return };
        let ages = times.unsent_mut();
        for due in unsent.iter_recorded() {
            let age = self.least_age(due.value_iterated_to(), now);
            ages.saturating_record_n(age.0, due.count_at_value());
        }
    }

    /// Of an op that came due so long after the begin of the window.
    fn least_age(&self, due_ns: u64, now: Nanos) -> Nanos {
        now.saturating_sub(self.phases.warm_up_ns).saturating_sub(Nanos(due_ns))
    }

    /// A piece of work of a closed client ended at `now`.
    pub(crate) fn piece_done(&mut self, started: Nanos, think: Nanos, now: Nanos) {
        if in_window(&self.phases, now) {
            self.counted.pieces += 1;
            self.counted.piece_ns_total += (now - started).0;
            self.counted.think_ns_total += think.0;
        }
    }

    /// Adds them to a worker's totals when the drain ends, at `now`.
    pub(crate) fn add_to(&self, totals: &mut WorkerTotals, now: Nanos) {
        if let Some(unsent) = &self.unsent {
            keep_least(&mut totals.response_age_min, self.least_age(unsent.max(), now));
        }
        totals.add(self.counted.clone());
    }
}
