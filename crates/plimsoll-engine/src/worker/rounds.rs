//! The loop itself, round by round: what is due, what is ready, what follows from it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;

use plimsoll_model::assignment::Pacing;
use plimsoll_model::units::Nanos;

use super::Worker;
use crate::clock;
use crate::driver::{Driver, Ready, Wait};
use crate::seam::{Script, Session};

/// A worker looks at its stop flag at least this often.
const STOP_CHECK: Nanos = Nanos::from_millis(20);
/// Grid of the coalescing pacer: at 20,000 ops/s a wakeup (38 µs here) is shared by eight ops, and
/// an op waits 0.2 ms on average, well inside the 1 ms that send lag may have.
const COALESCE_GRID: Nanos = Nanos::from_micros(400);

/// Who wakes when. At most one entry per lane and few per client.
#[derive(Default)]
pub(super) struct Timers {
    pub(super) lanes: BinaryHeap<Reverse<(Nanos, u32)>>,
    pub(super) clients: BinaryHeap<Reverse<(Nanos, u32)>>,
}

impl Timers {
    pub(super) fn next(&self) -> Option<Nanos> {
        let first = |heap: &BinaryHeap<Reverse<(Nanos, u32)>>| heap.peek().map(|e| e.0.0);
        match (first(&self.lanes), first(&self.clients)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// Bookkeeping of the rounds.
#[derive(Default)]
pub(super) struct Round {
    pub(super) ready: Vec<Ready>,
    /// Connections with more to read than their turn allowed.
    pub(super) unread: Vec<Ready>,
    pub(super) interval_cpu: Nanos,
    pub(super) empty_poll_ns: u64,
    pub(super) wakeups: u64,
    pub(super) bytes_received: u64,
    /// Wire bytes and connects when the window began.
    pub(super) at_window_start: (u64, u64, u64),
}

impl<S, C, D> Worker<'_, S, C, D>
where
    S: Session,
    C: Script<Op = S::Op>,
    D: Driver,
{
    /// Runs to the end of the point and reports the totals.
    pub(super) fn run(mut self) {
        self.round.interval_cpu = clock::thread_cpu();
        for lane in 0..self.lanes.len() {
            if let Some(at) = self.lanes[lane].first_wake() {
                self.timers.lanes.push(Reverse((at, lane as u32)));
            }
        }
        loop {
            let now = self.driver.now();
            self.stop_check_at = now + STOP_CHECK;
            self.roll_intervals(now);
            if self.is_over(now) {
                break;
            }
            let acted = self.fire_timers(now);
            let wait = self.next_wait();
            let mut ready = std::mem::take(&mut self.round.ready);
            ready.append(&mut self.round.unread);
            self.driver.wait(wait, &mut ready);
            self.round.wakeups += u64::from(wait != Wait::Poll);
            let idle = ready.is_empty() && !acted;
            for event in ready.drain(..) {
                self.serve(event);
            }
            self.round.ready = ready;
            self.report_broken();
            self.links.end_round();
            if idle && self.spins() {
                self.round.empty_poll_ns += self.driver.now().saturating_sub(now).0;
            }
        }
        self.finish();
    }

    pub(super) fn is_over(&self, now: Nanos) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            return true;
        }
        let window_end = self.assignment.phases.window_end();
        now >= window_end
            && ((self.in_flight == 0 && self.backlog_ops == 0)
                || now >= window_end + self.assignment.phases.drain_ns)
    }

    /// Wakes every lane and client whose time has come. True when there was one.
    pub(super) fn fire_timers(&mut self, now: Nanos) -> bool {
        let mut acted = false;
        while let Some(Reverse((at, lane))) = self.timers.lanes.peek().copied() {
            if at > now {
                break;
            }
            acted = true;
            self.timers.lanes.pop();
            self.wake_lane(lane, at, now);
            self.run_lanes();
        }
        while let Some(Reverse((at, client))) = self.timers.clients.peek().copied() {
            if at > now {
                break;
            }
            acted = true;
            self.timers.clients.pop();
            let state = &mut self.clients[client as usize];
            if state.deadline == at {
                state.deadline = Nanos::MAX;
            }
            if state.session.next_deadline().is_some_and(|deadline| deadline <= now) {
                let stamp = self.driver.now();
                self.call(client, stamp, |session, port| session.on_timer(stamp, port));
            } else {
                self.note_deadline(client);
            }
            self.run_lanes();
        }
        acted
    }

    pub(super) fn next_wait(&mut self) -> Wait {
        if self.spins() || !self.links.broken.is_empty() || !self.round.unread.is_empty() {
            return Wait::Poll;
        }
        let now_cap = self.recorder.boundary().min(self.stop_check_at);
        let timer = self.timers.next().unwrap_or(Nanos::MAX).min(now_cap);
        if self.assignment.pacing != Pacing::Coalesce || self.timers.lanes.is_empty() {
            return Wait::Until(timer);
        }
        // Replies under way are looked at on the grid too; without any, the next timer decides.
        let earliest = if self.in_flight > 0 { self.driver.now() } else { timer };
        let grid = COALESCE_GRID.0;
        Wait::SleepUntil(Nanos((earliest.0 / grid + 1) * grid).min(now_cap))
    }
}
