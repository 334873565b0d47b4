//! What came due in each window of a load point, and which pieces of work ended in it.

use plimsoll_model::assignment::Phases;
use plimsoll_model::event::{OpTimes, Times, WorkerTotals, growing_times};
use plimsoll_model::late::{LateCause, LateOp};
use plimsoll_model::units::{Nanos, keep_least};

use crate::recorder::in_window;
use crate::signs::{slice_at, slices_of_window};

/// The counts of each window, in order of time; mostly there is one.
pub(crate) struct WindowCounts(Vec<DueCounts>);

impl WindowCounts {
    /// Nothing has come due yet.
    pub(crate) fn new(windows: impl Iterator<Item = Phases>) -> Self {
        Self(windows.map(DueCounts::new).collect())
    }

    /// The same; late ops of a recording are named by the lines of its file, whose first op is on
    /// this one.
    pub(crate) fn naming_late_ops(mut self, first_line: Option<u64>) -> Self {
        self.0.iter_mut().for_each(|counts| counts.first_line = first_line);
        self
    }

    /// Those of the window that contains `at`, or of the nearest.
    fn window_at(&mut self, at: Nanos) -> &mut DueCounts {
        let last = self.0.len() - 1;
        let index = self.0[..last].partition_point(|counts| counts.phases.window_end() <= at);
        &mut self.0[index]
    }

    /// Of each window.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &DueCounts> {
        self.0.iter()
    }

    /// An op came due.
    pub(crate) fn came_due(&mut self, due: Nanos) {
        self.window_at(due).came_due(due);
    }

    /// The op of this index in a schedule goes out; its client is free since then.
    pub(crate) fn sent(&mut self, (index, due): (u64, Nanos), now: Nanos, free: Nanos) {
        self.window_at(due).sent((index, due), now, free);
    }

    /// The requested number of ops in the window has come due.
    pub(crate) fn has_all_ops(&self) -> bool {
        self.0[0].has_all_ops()
    }

    /// An op that came due will never be sent.
    pub(crate) fn not_sent(&mut self, due: Nanos) {
        self.window_at(due).not_sent(due);
    }

    /// A piece of work of a closed client ended at `now`.
    pub(crate) fn piece_done(&mut self, started: Nanos, think: Nanos, now: Nanos) {
        self.0.iter_mut().for_each(|counts| counts.piece_done(started, think, now));
    }

    /// A piece of work goes on after the last window.
    pub(crate) fn piece_outlasted(&mut self, started: Nanos, think: Nanos) {
        self.0.iter_mut().for_each(|counts| counts.piece_outlasted(started, think));
    }
}

/// What came due in the window, and which pieces of work ended in it.
pub(crate) struct DueCounts {
    phases: Phases,
    /// The part of a worker's totals that is counted here.
    counted: WorkerTotals,
    /// When the ops came due that were never sent, from the begin of the window.
    unsent: Option<Box<Times>>,
    /// Line of its file that has the first op of a recording, whose late ops are named.
    first_line: Option<u64>,
}

impl DueCounts {
    /// Nothing has come due yet; `phases` has this worker's share of the ops.
    pub(crate) fn new(phases: Phases) -> Self {
        let slices = slices_of_window(&phases);
        let counted = WorkerTotals { slices, ..WorkerTotals::default() };
        Self { phases, counted, unsent: None, first_line: None }
    }

    /// An op came due.
    pub(crate) fn came_due(&mut self, due: Nanos) {
        self.counted.due += u64::from(in_window(&self.phases, due));
    }

    /// The op of this index in a schedule goes out; its client is free since then.
    fn sent(&mut self, (index, due): (u64, Nanos), now: Nanos, free: Nanos) {
        if !in_window(&self.phases, due) {
            return;
        }
        (self.counted.last_due, self.counted.last_sent) = (due, now);
        if let Some(first_line) = self.first_line {
            let lag_ns = now.saturating_sub(due);
            let waited = free.saturating_sub(due);
            let cause =
                if waited.0 > lag_ns.0 / 2 { LateCause::NoClient } else { LateCause::Generator };
            self.counted.late.note(LateOp { line: first_line + index, due_ns: due, lag_ns, cause });
        }
    }

    /// The requested number of ops in the window has come due.
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

    /// An op that came due was never sent.
    pub(crate) const fn has_unsent(&self) -> bool {
        self.unsent.is_some()
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

    /// Of an op that came due this long after the begin of the window.
    fn least_age(&self, due_ns: u64, now: Nanos) -> Nanos {
        now.saturating_sub(self.phases.warm_up_ns).saturating_sub(Nanos(due_ns))
    }

    /// A piece of work of a closed client ended at `now`.
    pub(crate) fn piece_done(&mut self, started: Nanos, think: Nanos, now: Nanos) {
        if in_window(&self.phases, now) {
            self.counted.pieces += 1;
            self.counted.piece_ns_total += (now - started).0;
            self.counted.think_ns_total += think.0;
            self.counted.cycle_ns_squares += ((now - started + think).0 as f64).powi(2);
        }
        if let Some(slice) = slice_at(&self.phases, &mut self.counted.slices, now) {
            slice.pieces += 1;
            slice.cycle_ns_total += (now - started + think).0;
        } else if now >= self.phases.window_end() {
            self.piece_outlasted(started, think);
        }
    }

    /// A piece of work goes on after the window. If it began before, its client ended none in it:
    /// the wait is time that this client took all the same.
    pub(crate) fn piece_outlasted(&mut self, started: Nanos, think: Nanos) {
        if let Some(last) = self.counted.slices.last_mut()
            && started < self.phases.warm_up_ns
        {
            last.cycle_ns_total += (self.phases.window_end() - started + think).0;
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
