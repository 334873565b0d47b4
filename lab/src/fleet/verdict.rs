//! The effects of a failure, from the journal, the result and the server's list of requests.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use plimsoll_model::event::{JournalRecord, PointRecord};

use super::target::Request;

/// The load ends within this after the end of the stream.
const AFTER_END: Duration = Duration::from_secs(1);
/// The load ends within this after the last sign of life.
const AFTER_SILENCE: Duration = Duration::from_secs(4);

/// What is made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// An agent is killed.
    Kill,
    /// An agent is stopped for a while.
    Stop,
    /// The network between controller and agent is cut.
    Cut,
    /// The controller is killed.
    Controller,
}

/// A load point that was counted: its ordinal and when it started.
pub type Counted = (u32, u64);

/// The record of a run in which something failed. Times are nanoseconds since the epoch.
pub struct Story {
    pub fault: Fault,
    /// Of the agent that failed; `None` where it was the controller.
    pub agent: Option<IpAddr>,
    /// When it failed.
    pub at_ns: u64,
    /// When it was resumed.
    pub continued_ns: Option<u64>,
    /// When the run was resumed.
    pub resumed_ns: Option<u64>,
    /// Load points that were counted when it failed.
    pub counted: Vec<Counted>,
    /// Load points that are counted in the end.
    pub in_the_end: Vec<Counted>,
    pub attempts: Vec<Attempt>,
    /// The state of each load point in the result.
    pub standings: BTreeMap<u32, PointState>,
    pub requests: Vec<Request>,
}

/// The state of a load point in a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointState {
    /// Invalid, or not counted because the load was not sustained.
    Out,
    /// It counts, with a warning.
    Warned,
    /// It counts.
    Clean,
}

/// How often something happened that must not happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The failure hit a load point in progress.
    pub hit: u32,
    /// Repetitions of that load point.
    pub again: u32,
    /// Load points that had been counted and are not in the result exactly once.
    pub lost: u32,
    /// Load points that count though an agent failed in them. A stop that was shorter than a
    /// silence delays ops, which count if the result warns of it.
    pub wrongly_valid: u32,
    /// Load points whose ops are not as many as the server's requests.
    pub miscounted: u32,
    /// Requests after the time at which the load has to have ended.
    pub late_requests: u32,
}

/// An attempt at a load point.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub ordinal: u32,
    pub at_ns: u64,
    /// `None` where it did not happen.
    pub load: Option<CountedLoad>,
}

/// The load of an attempt that was counted.
#[derive(Clone, Debug)]
pub struct CountedLoad {
    pub started_ns: u64,
    /// End of the window.
    pub end_ns: u64,
    pub ops: u64,
    /// Addresses of the agents that made it.
    pub agents: Vec<IpAddr>,
}

/// Load points that a journal counts, in its order.
pub fn counted(journal: &[JournalRecord]) -> Vec<Counted> {
    let of = |record: &JournalRecord| match record {
        JournalRecord::PointFinished(record) => {
            Some((record.point.ordinal, record.started_unix_ns))
        }
        _ => None,
    };
    journal.iter().filter_map(of).collect()
}

/// The attempts of a journal; `agents` are names and addresses.
pub fn attempts(journal: &[JournalRecord], agents: &[(String, IpAddr)]) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for record in journal {
        match record {
            JournalRecord::PointStarted { assignment, at_unix_ns } => {
                let ordinal = assignment.point.ordinal;
                attempts.push(Attempt { ordinal, at_ns: *at_unix_ns, load: None });
            }
            JournalRecord::PointFinished(record) => {
                let its = attempts.iter_mut().rfind(|it| it.ordinal == record.point.ordinal);
                let load = CountedLoad::from_record(record, agents);
                its.into_iter().for_each(|attempt| attempt.load = Some(load.clone()));
            }
            _ => {}
        }
    }
    attempts
}

impl CountedLoad {
    fn from_record(record: &PointRecord, agents: &[(String, IpAddr)]) -> Self {
        let took_part = |name: &str| record.agents.iter().any(|agent| agent.name == name);
        let agents = agents.iter().filter(|(name, _)| took_part(name));
        let started_ns = record.started_unix_ns;
        Self {
            started_ns,
            end_ns: started_ns + record.warm_up_ns.0 + record.measured_ns.0,
            ops: record.seconds.iter().map(|second| second.done).sum(),
            agents: agents.map(|(_, address)| *address).collect(),
        }
    }
}

impl Story {
    /// What came of it.
    pub fn evaluate(&self) -> Verdict {
        let (before, after): (Vec<_>, Vec<_>) =
            self.attempts.iter().partition(|attempt| attempt.at_ns <= self.at_ns);
        let had_ended =
            |it: &Attempt| it.load.as_ref().is_some_and(|load| load.end_ns < self.at_ns);
        let hit = before.last().filter(|attempt| !had_ended(attempt));
        let next = after.first();
        let again = hit.is_some_and(|hit| next.is_some_and(|next| next.ordinal == hit.ordinal));
        // A load point that an agent's short stop did not end goes on, and so does its load.
        let goes_on = hit.is_none_or(|hit| hit.load.is_some());
        Verdict {
            hit: u32::from(hit.is_some()),
            again: u32::from(again),
            lost: self.lost(),
            wrongly_valid: u32::from(hit.is_some_and(|hit| self.is_wrongly_valid(hit))),
            miscounted: self.miscounted(),
            late_requests: self.late_requests(goes_on, next.map(|next| next.at_ns)),
        }
    }

    /// Each load point that was counted is in the journal once, as it was, and in the result.
    fn lost(&self) -> u32 {
        let is_lost = |before: &&Counted| {
            let same: Vec<_> = self.in_the_end.iter().filter(|now| now.0 == before.0).collect();
            same != [*before] || !self.standings.contains_key(&before.0)
        };
        self.counted.iter().filter(is_lost).count() as u32
    }

    fn is_wrongly_valid(&self, hit: &Attempt) -> bool {
        let started = hit.load.as_ref().is_some_and(|load| load.started_ns <= self.at_ns);
        match self.standings.get(&hit.ordinal) {
            Some(PointState::Clean) => started,
            Some(PointState::Warned) => started && self.fault != Fault::Stop,
            Some(PointState::Out) | None => false,
        }
    }

    fn counts(&self, attempt: &Attempt) -> bool {
        let state = self.standings.get(&attempt.ordinal);
        matches!(state, Some(PointState::Clean | PointState::Warned))
    }

    /// Every op of a load point that counts is a request of its agents, and vice versa.
    fn miscounted(&self) -> u32 {
        let ends = self.attempts.iter().skip(1).map(|next| next.at_ns).chain([u64::MAX]);
        let is_wrong = |(attempt, end_ns): &(&Attempt, u64)| {
            let Some(load) = &attempt.load else { return false };
            let its = self.requests.iter().filter(|request| {
                let is_its_time = (load.started_ns..*end_ns).contains(&request.at_ns);
                is_its_time && load.agents.contains(&request.from)
            });
            self.counts(attempt) && its.count() as u64 != load.ops
        };
        self.attempts.iter().zip(ends).filter(is_wrong).count() as u32
    }

    /// Requests of any agent between the time that the load may take to end and the next load
    /// point, and of the one that failed in all the time until the run is resumed.
    fn late_requests(&self, goes_on: bool, next_ns: Option<u64>) -> u32 {
        let grace = match self.fault {
            Fault::Kill | Fault::Controller => AFTER_END,
            Fault::Stop | Fault::Cut => AFTER_SILENCE,
        };
        let after = |at_ns: u64, grace: Duration| at_ns + grace.as_nanos() as u64;
        let from_ns = after(self.at_ns, grace);
        let until_ns = [self.resumed_ns, next_ns].into_iter().flatten().min().unwrap_or(u64::MAX);
        // Stopped for so short a time that it was not missed, an agent goes on.
        let own_from_ns = match (self.fault, self.continued_ns) {
            _ if goes_on && self.fault == Fault::Stop => u64::MAX,
            (Fault::Stop, Some(continued_ns)) => after(continued_ns, AFTER_END),
            _ => from_ns,
        };
        let is_late = |request: &&Request| {
            let own_until_ns = self.resumed_ns.unwrap_or(u64::MAX);
            let is_own = Some(request.from) == self.agent;
            let is_own_late = is_own && (own_from_ns..own_until_ns).contains(&request.at_ns);
            is_own_late || !goes_on && (from_ns..until_ns).contains(&request.at_ns)
        };
        self.requests.iter().filter(is_late).count() as u32
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
