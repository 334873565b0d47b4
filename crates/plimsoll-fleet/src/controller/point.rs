//! The current load point.

use plimsoll_model::assignment::{Assignment, Phases};
use plimsoll_model::bundle::PackedSlice;
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};

use super::news::{AgentId, AgentReport, Failure, Loss, News};
use crate::clock::{Reading, start_skews};
use crate::message::{FromAgent, PointReport};

/// Samples of one agent that are passed on: a few of each class and op are sent.
const SAMPLES_MAX: u32 = 1_024;
/// A second that holds a border of phases has a total for each side, and the last is not full.
const SECONDS_SPARE: u64 = 8;
/// Histograms of one agent: twenty times those of ten minutes with twenty ops at 10,000 ops/s.
const SLICES_BYTES_MAX: usize = 2 * 1_024 * 1_024 * 1_024;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Agents get ready.
    Attaching,
    /// All are; their clocks are measured.
    Timing,
    /// The order to start was given.
    Running,
}

#[derive(Debug)]
pub(super) struct Point {
    pub(super) ordinal: u32,
    pub(super) phases: Phases,
    pub(super) progress: Progress,
    pub(super) parts: Vec<Part>,
    /// Why it does not count; none of its results are kept.
    pub(super) loss: Option<(AgentId, Failure)>,
    /// Its agents were stopped.
    pub(super) stopped: bool,
}

/// An agent's part.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) agent: AgentId,
    pub(super) before: Option<Reading>,
    pub(super) after: Option<Reading>,
    pub(super) report: Option<PointReport>,
    slices: Vec<PackedSlice>,
    slices_bytes: usize,
    /// What may still be passed on.
    seconds_left: u64,
    samples_left: u32,
    clients_left: u32,
    dropped: u64,
}

impl Point {
    /// `None` without a part.
    pub(super) fn new(assignments: &[(AgentId, Assignment)]) -> Option<Self> {
        let (_, first) = assignments.first()?;
        let part = |(agent, assignment): &(AgentId, Assignment)| Part::new(*agent, assignment);
        Some(Self {
            ordinal: first.point.ordinal,
            phases: first.phases,
            progress: Progress::Attaching,
            parts: assignments.iter().map(part).collect(),
            loss: None,
            stopped: false,
        })
    }

    pub(super) fn agents(&self) -> Vec<AgentId> {
        self.parts.iter().map(|part| part.agent).collect()
    }

    pub(super) fn part_mut(&mut self, agent: AgentId) -> Option<&mut Part> {
        self.parts.iter_mut().find(|part| part.agent == agent)
    }

    /// It does not count, because of this agent. The first reason stays.
    pub(super) fn spoil(&mut self, agent: AgentId, why: Failure) {
        self.loss.get_or_insert((agent, why));
        self.parts.iter_mut().for_each(|part| part.slices = Vec::new());
    }

    /// The reports, if all are there.
    pub(super) fn reports(&mut self) -> Option<Vec<AgentReport>> {
        if self.parts.iter().any(|part| part.report.is_none() || part.after.is_none()) {
            return None;
        }
        let mut reports: Vec<AgentReport> = self.parts.drain(..).filter_map(Part::end).collect();
        let starts: Vec<(u64, i64)> =
            reports.iter().map(|of| (of.report.started_ns, of.clock.offset_ns)).collect();
        for (report, skew) in reports.iter_mut().zip(start_skews(&starts)) {
            report.start_skew = skew;
        }
        Some(reports)
    }
}

impl Part {
    fn new(agent: AgentId, assignment: &Assignment) -> Self {
        let phases = assignment.phases;
        let length = phases.load_end().saturating_add(phases.drain_ns);
        Self {
            agent,
            before: None,
            after: None,
            report: None,
            slices: Vec::new(),
            slices_bytes: 0,
            seconds_left: length.0 / NANOS_PER_SECOND
                + SECONDS_SPARE
                + assignment.windows().len() as u64,
            samples_left: SAMPLES_MAX,
            clients_left: assignment.own_clients(),
            dropped: 0,
        }
    }

    /// Handles a message that its agent sends while it runs: the resulting news, or why the message
    /// is excessive.
    pub(super) fn take(&mut self, message: FromAgent) -> Result<Option<News>, Loss> {
        let agent = self.agent;
        let news = match message {
            FromAgent::Second(totals) if spend(&mut self.seconds_left) => {
                News::Second(agent, totals)
            }
            FromAgent::Sample(sample) if spend(&mut self.samples_left) => {
                News::Sample(agent, sample)
            }
            FromAgent::ClientLost { client, reason, at } if spend(&mut self.clients_left) => {
                News::ClientLost { agent, client, reason, at }
            }
            FromAgent::Slices(slices) => return self.keep(slices).map(|()| None),
            _ => {
                self.dropped += 1;
                return Ok(None);
            }
        };
        Ok(Some(news))
    }

    fn keep(&mut self, slices: Vec<PackedSlice>) -> Result<(), Loss> {
        self.slices_bytes += slices.iter().map(PackedSlice::memory_bytes).sum::<usize>();
        if self.slices_bytes > SLICES_BYTES_MAX {
            return Err(Loss::TooMuch(SLICES_BYTES_MAX));
        }
        self.slices.extend(slices);
        Ok(())
    }

    fn end(self) -> Option<AgentReport> {
        Some(AgentReport {
            agent: self.agent,
            report: self.report?,
            slices: self.slices,
            clock: self.before?.until(&self.after?),
            start_skew: Nanos::ZERO,
            dropped: self.dropped,
        })
    }
}

/// Takes one of what is left, if any is.
fn spend<N: Copy + PartialOrd + From<u8> + std::ops::SubAssign>(left: &mut N) -> bool {
    let any = *left > N::from(0);
    if any {
        *left -= N::from(1);
    }
    any
}
