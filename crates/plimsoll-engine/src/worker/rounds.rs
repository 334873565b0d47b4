//! The loop itself, round by round: what is due, what is ready, what follows from it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;

use plimsoll_model::units::Nanos;

use super::Worker;
use super::waiting::Outlook;
use crate::clock::{self, RunDelay};
use crate::driver::{Driver, Ready, Wait};
use crate::seam::{Link, Script, Session};

/// A worker looks at its stop flag at least this often.
const STOP_CHECK: Nanos = Nanos::from_millis(20);
/// Connections served before due ops are looked for again: 16 exchanges are some 60 µs.
const EVENTS_BETWEEN_TIMERS: usize = 16;
/// Connections in one wait from which more are looked for without sleeping.
const CROWD: usize = 256;

/// Who wakes when. At most one entry per schedule and few per client.
#[derive(Default)]
pub(super) struct Timers {
    pub(super) schedules: BinaryHeap<Reverse<(Nanos, u32)>>,
    pub(super) clients: BinaryHeap<Reverse<(Nanos, u32)>>,
}

impl Timers {
    pub(super) fn next(&self) -> Option<Nanos> {
        let first = |heap: &BinaryHeap<Reverse<(Nanos, u32)>>| heap.peek().map(|e| e.0.0);
        match (first(&self.schedules), first(&self.clients)) {
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
    pub(super) unread: Vec<(Link, Ready)>,
    /// The last wait found so many connections that more may be waiting behind them.
    pub(super) crowded: bool,
    pub(super) interval_cpu: Nanos,
    run_delay: RunDelay,
    /// At the start of the interval.
    run_delay_before: Option<Nanos>,
    pub(super) bytes_received: u64,
    /// The last reading of the clock.
    now: Nanos,
    /// Every connection that had something to read then was told of, in the wait before the last:
    /// what the last one told of came later.
    pub(super) looked: Nanos,
    /// The same of the last wait.
    looking: Nanos,
    /// Something was ready in the last round.
    served: bool,
    /// The last round found nothing to do, and began then.
    idle_since: Option<Nanos>,
    /// Wire bytes and connects when the window began.
    pub(super) at_window_start: (u64, u64, u64),
}

impl Round {
    /// In the interval that ends here.
    pub(super) fn run_delay_since_last(&mut self) -> Option<u64> {
        let now = self.run_delay.read();
        let before = std::mem::replace(&mut self.run_delay_before, now);
        Some(now?.saturating_sub(before?).0)
    }
}

impl<S, C, D> Worker<'_, S, C, D>
where
    S: Session,
    C: Script<Op = S::Op>,
    D: Driver,
{
    /// Runs to the end of the point and reports the totals.
    pub(super) fn run(mut self) {
        self.driver.begin();
        self.round.interval_cpu = clock::thread_cpu();
        self.round.run_delay = RunDelay::of_this_thread();
        self.round.run_delay_before = self.round.run_delay.read();
        for schedule in 0..self.schedules.len() {
            if let Some(at) = self.schedules[schedule].first_wake() {
                self.timers.schedules.push(Reverse((at, schedule as u32)));
            }
        }
        loop {
            let now = self.begin_round();
            self.stop_check_at = now + STOP_CHECK;
            self.roll_intervals(now);
            // Before the end is looked at: what came due until now is counted, sent or not.
            let acted = self.fire_timers(now);
            if self.is_over(now) {
                break;
            }
            if acted {
                self.waiting.acted(now);
            }
            let wait = self.next_wait(now);
            let mut ready = std::mem::take(&mut self.round.ready);
            self.take_unread(&mut ready);
            self.wait(wait, acted, &mut ready);
            self.round.served = !ready.is_empty();
            let idle = !self.round.served && !acted && wait == Wait::Poll;
            self.round.idle_since = idle.then_some(now);
            for (served, event) in ready.drain(..).enumerate() {
                self.serve(event);
                if served % EVENTS_BETWEEN_TIMERS == EVENTS_BETWEEN_TIMERS - 1
                    && !self.timers.schedules.is_empty()
                {
                    let now = self.now();
                    self.fire_timers(now);
                }
            }
            self.round.ready = ready;
            self.report_broken();
            self.links.end_round();
        }
        self.finish();
    }

    /// The time now. A reading costs up to a third of a microsecond on a virtual machine, so what
    /// was read last is kept.
    pub(super) fn now(&mut self) -> Nanos {
        self.round.now = self.driver.now();
        self.round.now
    }

    /// The round's time. Where no op is due by the clock, that of the last thing done will do.
    fn begin_round(&mut self) -> Nanos {
        if self.round.served && self.timers.schedules.is_empty() {
            return self.round.now;
        }
        let now = self.now();
        if let Some(since) = self.round.idle_since.take() {
            self.waiting.polled_empty(now.saturating_sub(since));
        }
        now
    }

    /// Connections left over from the last round that still exist.
    fn take_unread(&mut self, ready: &mut Vec<Ready>) {
        for (link, event) in self.round.unread.drain(..) {
            if self.links.get(link).is_some() {
                // What the event said of writing has been dealt with.
                ready.push(Ready { writable: false, ..event });
            }
        }
    }

    pub(super) fn is_over(&self, now: Nanos) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            return true;
        }
        let load_end = self.assignment.phases.load_end();
        now >= load_end
            && ((self.in_flight == 0 && self.backlog_ops == 0)
                || now >= load_end + self.assignment.phases.drain_ns)
    }

    /// Wakes every schedule and client whose time has come. True when there was one.
    pub(super) fn fire_timers(&mut self, now: Nanos) -> bool {
        let mut acted = false;
        while let Some(Reverse((at, schedule))) = self.timers.schedules.peek().copied() {
            if at > now {
                break;
            }
            acted = true;
            self.timers.schedules.pop();
            self.wake_schedule(schedule, at, now);
            self.run_schedules();
        }
        while let Some(Reverse((at, client))) = self.timers.clients.peek().copied() {
            if at > now {
                break;
            }
            acted = true;
            self.timers.clients.pop();
            let state = &mut self.clients[client as usize];
            if state.gone {
                continue;
            }
            if state.deadline == at {
                state.deadline = Nanos::MAX;
            }
            if state.session.next_deadline().is_some_and(|deadline| deadline <= now) {
                let stamp = self.now();
                self.call(client, stamp, |session, port| session.on_timer(stamp, port));
            } else {
                self.note_deadline(client);
            }
            self.run_schedules();
        }
        acted
    }

    fn next_wait(&mut self, now: Nanos) -> Wait {
        let more =
            !self.links.broken.is_empty() || !self.round.unread.is_empty() || self.round.crowded;
        self.waiting.next(&Outlook {
            now,
            timer: self.timers.next().unwrap_or(Nanos::MAX),
            look_up: self.recorder.boundary().min(self.stop_check_at),
            in_flight: self.in_flight > 0,
            more,
            // A closed load of one op per client would be held down to the grid; one whose clients
            // keep many ops in flight has the next ones under way meanwhile.
            gains: !self.timers.schedules.is_empty() || (S::BATCH_SENDS && self.in_flight > 0),
        })
    }

    fn wait(&mut self, wait: Wait, acted: bool, ready: &mut Vec<Ready>) {
        let sleeps = wait != Wait::Poll;
        let before = if sleeps && acted { self.now() } else { self.round.now };
        self.driver.wait(wait, ready);
        let after = if sleeps { self.now() } else { before };
        self.waiting.waited(wait, before, after, ready.len());
        self.round.crowded = ready.len() >= CROWD;
        self.round.looked = self.round.looking;
        if !self.round.crowded {
            // A wait that slept looks once more when it ends, a poll when it begins.
            self.round.looking = after;
        }
    }
}
