//! How long the worker waits between two rounds.
//!
//! Pacing `auto` decides at each wait. With a core of its own a worker polls while replies are
//! outstanding or the next op is near: a wakeup costs 38 µs on a virtual machine, which would be in
//! every time measured. If nothing has come for a while it sleeps, and wakes early by as much as
//! its wakeups are late. A program that wakes up on the core of a polling worker keeps the core for
//! milliseconds; a worker that slept gets it back when a reply wakes it. So when pauses between
//! polls show that another program takes the core, an open load sleeps for replies, for longer each
//! time. A closed load keeps polling: waking its worker costs the server work for each reply, and a
//! saturated server would serve less.
//!
//! If the server may run on any core, a worker polls too, and yields its core after each empty
//! poll: while a light load leaves another core free, the kernel puts the server there; otherwise
//! the yield lets the server run. Long yields show that the core is contended. Then polling would
//! take time from the server, and the worker sleeps, for longer each time; as an open load fills
//! the core, it rests between wakeups so that each handles more.

use plimsoll_model::assignment::{Assignment, Load, Pacing};
use plimsoll_model::units::Nanos;

use super::recording::INTERRUPTION_MIN;
use crate::clock::RunDelay;
use crate::driver::Wait;

/// Grid of the coalescing pacer: at 20,000 ops/s a wakeup (38 µs here) is shared by eight ops, and
/// an op waits 0.2 ms on average, well inside the 1 ms that send lag may have.
const COALESCE_GRID: Nanos = Nanos::from_micros(400);
/// With replies outstanding, but none for this long, a wakeup's 38 µs are 2 % of the response time,
/// and measured as receive lag.
const POLL_FOR_REPLIES: Nanos = Nanos::from_millis(2);
/// A worker wakes this much early at least …
const LEAD_MIN: Nanos = Nanos::from_micros(30);
/// … and at most: on a host that wakes later than that, polling for longer would not help much.
const LEAD_MAX: Nanos = Nanos::from_micros(200);
/// A sleep that ended this much too late was interrupted by more than its wakeup.
const PAUSE_MIN: Nanos = Nanos::from_micros(100);
/// Longest rest between wakeups of a worker that shares its core.
const REST_MAX: Nanos = Nanos::from_micros(400);
/// Share of the time at work from which such a worker rests, and at which it rests longest.
const REST_BUSY_RATIO: (f64, f64) = (0.4, 0.8);
/// A server that answers a few requests on a shared core takes less; a preemption of this length
/// means that the core is contended.
const PREEMPTION_MIN: Nanos = Nanos::from_micros(100);
/// Share of the time in such preemptions that makes a worker sleep on a core shared with the server
/// …
const CONTENDED_RATIO: f64 = 0.05;
/// … and on its own core, where the server causes none.
const TAKEN_RATIO: f64 = 0.025;
/// Time over which that is evaluated: one preemption of some milliseconds, by a program that wakes
/// now and then, is acceptable.
const EVALUATION_SPAN: Nanos = Nanos::from_millis(200);
/// A worker whose core is contended sleeps for this long before it polls again, four times as long
/// each time.
const SLEEPS: (Nanos, Nanos) = (Nanos::from_millis(200), Nanos::from_secs(5));
/// The part by which that falls while a core that the server may use is not contended …
const FORGOTTEN: u64 = 64;
/// … and that of the worker alone: there one long preemption a second lengthens no sleep.
const FORGOTTEN_ALONE: u64 = 2;
/// Time over which the share at work is taken.
const REST_SPAN: Nanos = Nanos::from_millis(10);

/// What the worker knows when it decides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlook {
    /// Now.
    pub(super) now: Nanos,
    /// The next timer.
    pub(super) timer: Nanos,
    /// It must look up then at the latest.
    pub(super) look_up: Nanos,
    /// Replies are outstanding.
    pub(super) in_flight: bool,
    /// Work is left: connections to read, or more events than fitted.
    pub(super) more: bool,
    /// Waking on a grid brings several things together.
    pub(super) gains: bool,
}

/// When a worker may poll.
#[derive(Debug)]
enum Polls {
    Never,
    Always,
    /// For replies while no other program takes the core; for the next op always.
    WhileNobodyTakesTheCore(Preemptions),
    /// On a core that the server may use, yielding to others.
    WhileNobodyWantsTheCore(Preemptions),
}

/// The preemptions by others on the core.
#[derive(Debug)]
struct Preemptions {
    /// Share of the time in preemptions from which the core counts as contended.
    contended_ratio: f64,
    /// By what part of it the next sleep gets shorter.
    forgotten: u64,
    /// Since when preemptions are counted, and how long they were.
    since: Nanos,
    preempted: Nanos,
    /// It was contended: no polls before then.
    sleeps_until: Nanos,
    /// For how long to sleep when it is contended again.
    next_sleep: Nanos,
}

/// What others have of the core of a worker that polls.
#[derive(Debug)]
pub(super) struct Others(RunDelay);

impl Others {
    /// From now on, if the kernel reports how long a ready thread waited for its core.
    pub(super) const fn from_run_delay(delay: RunDelay) -> Self {
        Self(delay)
    }

    /// How much of a round with an empty poll others took. The hypervisor took the rest of a pause.
    #[inline]
    pub(super) fn preempted_time(&mut self, round: Nanos) -> Nanos {
        if round < INTERRUPTION_MIN {
            return Nanos::ZERO;
        }
        self.0.since_last().unwrap_or_default().min(round)
    }

    /// The wait of a wakeup for its core is no preemption.
    pub(super) fn forget(&mut self) {
        self.0.since_last();
    }
}

/// Decides how to wait, by what became of the waits before.
#[derive(Debug)]
pub(super) struct Waiting {
    pacing: Pacing,
    polls: Polls,
    rests: bool,
    /// When something last happened.
    active: Nanos,
    /// How much too late a sleep ends, roughly at worst.
    lead: Nanos,
    /// Start of the span over which the share at work is taken, and the sleep in it.
    span: (Nanos, u64),
    rest: Nanos,
    woke: Nanos,
}

impl Waiting {
    pub(super) fn new(assignment: &Assignment) -> Self {
        let auto = assignment.pacing == Pacing::Auto;
        let open = matches!(assignment.load, Load::Open { .. });
        let is_pinned = assignment.cores.len() >= assignment.own_workers().len();
        let polls = match assignment.own_cores {
            _ if !auto => Polls::Never,
            true if open => Polls::WhileNobodyTakesTheCore(Preemptions::alone()),
            true => Polls::Always,
            false if is_pinned => Polls::WhileNobodyWantsTheCore(Preemptions::shared()),
            false => Polls::Never,
        };
        Self { polls, rests: auto && !assignment.own_cores && open, ..Self::by(assignment.pacing) }
    }

    /// By this pacing, neither polling nor resting of its own accord.
    fn by(pacing: Pacing) -> Self {
        Self {
            pacing,
            polls: Polls::Never,
            rests: false,
            active: Nanos::ZERO,
            lead: LEAD_MIN,
            span: (Nanos::ZERO, 0),
            rest: Nanos::ZERO,
            woke: Nanos::ZERO,
        }
    }

    /// How to wait now.
    pub(super) fn next(&mut self, outlook: &Outlook) -> Wait {
        let Outlook { now, timer, look_up, in_flight, more, gains } = *outlook;
        if more || self.pacing == Pacing::Spin {
            return Wait::Poll;
        }
        let until = timer.min(look_up);
        if let Some((poll, for_replies)) = self.polls.poll(now) {
            let is_fresh = now.saturating_sub(self.active) < POLL_FOR_REPLIES;
            // A thread that polls for long on a contended core loses it.
            let lead = if for_replies { self.lead } else { LEAD_MIN };
            let is_near = timer.saturating_sub(now) <= lead;
            return match is_near || for_replies && in_flight && is_fresh {
                true => poll,
                false => Wait::Until(look_up.min(timer - lead)),
            };
        }
        if self.rests && self.rest > Nanos::ZERO {
            return Wait::SleepUntil((self.woke + self.rest).min(look_up).max(now));
        }
        if self.pacing != Pacing::Coalesce || !gains {
            return Wait::Until(until);
        }
        // Replies in flight are polled on the grid too; without any, the next timer decides.
        let earliest = if in_flight { now } else { until };
        let grid = COALESCE_GRID.0;
        Wait::SleepUntil(Nanos((earliest.0 / grid + 1) * grid).min(look_up))
    }

    /// The wait that began at `before` ended at `now` with this many things ready.
    pub(super) fn waited(&mut self, wait: Wait, before: Nanos, now: Nanos, ready: usize) {
        let took = now.saturating_sub(before);
        match wait {
            Wait::Poll => {}
            Wait::Yield => {
                if self.polls.yielded(took, now) {
                    // Earlier time without sleeps shows nothing of how full the core is.
                    self.span = (now, 0);
                }
            }
            Wait::Until(until) | Wait::SleepUntil(until) => {
                self.woke = now;
                if ready == 0 {
                    self.learn(now.saturating_sub(until));
                }
                self.settle_rest(took, now);
            }
        }
        if ready > 0 {
            self.active = now;
        }
    }

    /// Whether pauses between polls decide how to wait.
    pub(super) const fn watches_interruptions(&self) -> bool {
        matches!(self.polls, Polls::WhileNobodyTakesTheCore(_))
    }

    /// A poll was empty, and others had the core for `preempted` before the next.
    #[inline]
    pub(super) fn polled_empty(&mut self, preempted: Nanos, now: Nanos) {
        if let Polls::WhileNobodyTakesTheCore(preemptions) = &mut self.polls {
            preemptions.passed(preempted, now);
        }
    }

    /// An op went out: its reply is near.
    pub(super) fn acted(&mut self, now: Nanos) {
        self.active = now;
    }

    /// Rises at once, falls slowly; what one pause of the host made of a sleep is left out.
    fn learn(&mut self, overslept: Nanos) {
        let required = Nanos(overslept.0 + overslept.0 / 4).clamp(LEAD_MIN, LEAD_MAX);
        if overslept < PAUSE_MIN && required > self.lead {
            self.lead = required;
        } else {
            self.lead = Nanos(self.lead.0 - (self.lead.0 - LEAD_MIN.0) / 64);
        }
    }

    fn settle_rest(&mut self, slept: Nanos, now: Nanos) {
        let (start, before) = self.span;
        self.span.1 = before + slept.0;
        let span = now.saturating_sub(start);
        if !self.rests || span < REST_SPAN {
            return;
        }
        let busy = 1.0 - self.span.1 as f64 / span.0 as f64;
        let (from, to) = REST_BUSY_RATIO;
        let share = ((busy - from) / (to - from)).clamp(0.0, 1.0);
        self.rest = Nanos((REST_MAX.0 as f64 * share) as u64);
        self.span = (now, 0);
    }
}

impl Polls {
    /// How to poll now, if at all, and whether for replies too.
    fn poll(&self, now: Nanos) -> Option<(Wait, bool)> {
        match self {
            Self::Never => None,
            Self::Always => Some((Wait::Poll, true)),
            Self::WhileNobodyTakesTheCore(preemptions) => {
                Some((Wait::Poll, preemptions.leave_the_core(now)))
            }
            Self::WhileNobodyWantsTheCore(preemptions) => {
                preemptions.leave_the_core(now).then_some((Wait::Yield, true))
            }
        }
    }

    /// Yielded to others, for `took`; true if that shows that the core is contended.
    fn yielded(&mut self, took: Nanos, now: Nanos) -> bool {
        match self {
            Self::WhileNobodyWantsTheCore(preemptions) => preemptions.passed(took, now),
            Self::Never | Self::Always | Self::WhileNobodyTakesTheCore(_) => false,
        }
    }
}

impl Preemptions {
    const fn alone() -> Self {
        Self { contended_ratio: TAKEN_RATIO, forgotten: FORGOTTEN_ALONE, ..Self::shared() }
    }

    const fn shared() -> Self {
        Self {
            contended_ratio: CONTENDED_RATIO,
            forgotten: FORGOTTEN,
            since: Nanos::ZERO,
            preempted: Nanos::ZERO,
            sleeps_until: Nanos::ZERO,
            next_sleep: SLEEPS.0,
        }
    }

    /// As far as is known.
    fn leave_the_core(&self, now: Nanos) -> bool {
        now >= self.sleeps_until
    }

    /// Yielded to others, for `took`; true if that makes the core count as contended.
    fn passed(&mut self, took: Nanos, now: Nanos) -> bool {
        if now < self.since {
            return false;
        }
        if took >= PREEMPTION_MIN {
            self.preempted += took;
        }
        let elapsed = now.saturating_sub(self.since);
        if elapsed < EVALUATION_SPAN {
            return false;
        }
        let is_contended = self.preempted.0 as f64 > elapsed.0 as f64 * self.contended_ratio;
        (self.since, self.preempted) = (now, Nanos::ZERO);
        if is_contended {
            self.sleeps_until = now + self.next_sleep;
            self.since = self.sleeps_until;
            self.next_sleep = Nanos(self.next_sleep.0 * 4).min(SLEEPS.1);
        } else {
            let shorter = self.next_sleep.0 - self.next_sleep.0 / self.forgotten;
            self.next_sleep = Nanos(shorter).max(SLEEPS.0);
        }
        is_contended
    }
}

#[cfg(test)]
mod tests;
