//! What every process has: a clock, times at which it is stopped, and what waits for it meanwhile.

use std::collections::VecDeque;

use super::clock::Clock;

pub struct Process<I> {
    pub clock: Clock,
    pub is_alive: bool,
    /// Stopped until then.
    pub stopped_until: u64,
    /// When it last went on after a stop.
    pub resumed_at: u64,
    /// What has come while it was stopped.
    pub inbox: VecDeque<I>,
    /// The earliest instant for which a wake-up was requested.
    pub wakes_at: Option<u64>,
}

impl<I> Process<I> {
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            is_alive: true,
            stopped_until: 0,
            resumed_at: 0,
            inbox: VecDeque::new(),
            wakes_at: None,
        }
    }

    /// Gives the input back if it can be taken in now.
    pub fn takes(&mut self, now: u64, input: I) -> Option<I> {
        if !self.is_alive {
            return None;
        }
        if now < self.stopped_until || !self.inbox.is_empty() {
            self.inbox.push_back(input);
            return None;
        }
        Some(input)
    }

    /// Limits of time begin anew where it was stopped meanwhile.
    pub fn awake_limit(&self, since: u64, limit: u64, after_stop: u64) -> u64 {
        (since + limit).max(match self.resumed_at > since {
            true => self.resumed_at + after_stop,
            false => 0,
        })
    }
}
