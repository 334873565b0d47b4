//! Inputs of the analysis: the times of a load point, and the journal's records of a point and of
//! the run.

use std::collections::BTreeMap;

use plimsoll_model::bundle::IntervalSlice;
use plimsoll_model::event::{
    Bound, JournalRecord, OpTimes, Phase, PointRecord, RunStarted, TimeKind, Times, new_times,
};
use plimsoll_model::finding::Rule;
use plimsoll_model::method::Parameter;
use plimsoll_model::nonconformity::Nonconformities;
use plimsoll_model::outcome::ErrorSample;
use plimsoll_model::server_profile::ServerProfile;
use plimsoll_model::suite::ProfileName;
use plimsoll_model::units::Nanos;

use crate::coarse::Coarse;
use crate::times::{Batch, SecondSummary};

/// The times of one load point, taken in one second at a time: a second's histograms are some
/// hundred KiB, so only their sums and a summary of each second are kept.
#[derive(Clone, Debug, Default)]
pub struct PointTimes {
    /// Over the window and the drain after it: ops due in the window.
    window: Vec<OpTimes>,
    seconds: BTreeMap<(u32, Phase), SecondSummary>,
    /// The response times of the last second.
    open: Option<((u32, Phase), Times)>,
    /// Of the window, by their start.
    slices: BTreeMap<Nanos, Slice>,
    /// Service times of the slices of the warm-up, in order, by op kind.
    warm_up: Vec<Vec<Coarse>>,
}

/// Times within replies and of journeys with a reported scatter.
const OF_STREAMS: [TimeKind; 6] = [
    TimeKind::FirstOutput,
    TimeKind::FirstVisible,
    TimeKind::ChunkGap,
    TimeKind::TokenTime,
    TimeKind::LaterTokenTime,
    TimeKind::Journey,
];

/// A slice of the window, from which the scatter of figures is computed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slice {
    pub(crate) response: Coarse,
    pub(crate) service: Coarse,
    /// How many of each kind came due in it.
    by_op: Vec<u64>,
    /// Times within replies, and those of journeys, by kind.
    streams: BTreeMap<TimeKind, Coarse>,
    /// Times of pages, by op kind.
    pages: BTreeMap<usize, Coarse>,
}

impl Slice {
    /// Times of this kind within replies, if it has any.
    pub(crate) fn stream(&self, kind: TimeKind) -> Option<&Coarse> {
        self.streams.get(&kind)
    }

    /// Times of the page whose op this is, if it has any.
    pub(crate) fn page(&self, op: usize) -> Option<&Coarse> {
        self.pages.get(&op)
    }
}

impl PointTimes {
    /// Takes in one second or a slice of it, merged over workers, in order of time. An interval log
    /// has no second without ended ops.
    pub fn add(&mut self, second: &IntervalSlice) {
        if second.ops.iter().all(OpTimes::is_empty) {
            return;
        }
        if second.phase != Phase::WarmUp {
            if self.window.len() < second.ops.len() {
                self.window.resize_with(second.ops.len(), OpTimes::new);
            }
            for (sum, times) in self.window.iter_mut().zip(&second.ops) {
                sum.add(times);
            }
        }
        if second.phase == Phase::WarmUp {
            self.warm_up
                .push(second.ops.iter().map(|op| Coarse::from_times(&op.service)).collect());
        }
        if second.phase == Phase::Measure {
            let slice = self.slices.entry(second.start).or_default();
            slice.by_op.resize(second.ops.len().max(slice.by_op.len()), 0);
            for (number, (op, count)) in second.ops.iter().zip(&mut slice.by_op).enumerate() {
                slice.response.add(&op.response);
                slice.service.add(&op.service);
                *count += op.response.len();
                if let Some(times) = TimeKind::Page.times_in(op) {
                    slice.pages.entry(number).or_default().add(times);
                }
                for kind in OF_STREAMS {
                    if let Some(times) = kind.times_in(op) {
                        slice.streams.entry(kind).or_default().add(times);
                    }
                }
            }
        }
        let key = (second.second, second.phase);
        if self.open.as_ref().is_none_or(|(open, _)| *open != key) {
            self.open = Some((key, new_times()));
        }
        if let Some((_, response)) = &mut self.open {
            self.seconds.entry(key).or_default().add(&second.ops, response);
        }
    }

    /// In order of time.
    pub(crate) fn slices(&self) -> impl Iterator<Item = (Nanos, &Slice)> {
        self.slices.iter().map(|(start, slice)| (*start, slice))
    }

    /// Ops of one kind, and of all, in each slice of the window.
    pub(crate) fn parts_of_op(&self, op: usize) -> Vec<(f64, f64)> {
        let part = |slice: &Slice| {
            let of_op = slice.by_op.get(op).copied().unwrap_or_default();
            (of_op as f64, slice.response.n as f64)
        };
        self.slices.values().map(part).collect()
    }

    /// Service times of one kind of op in the slices of the warm-up that have any, in order.
    pub(crate) fn warm_up_of_op(&self, op: usize) -> impl Iterator<Item = &Coarse> {
        self.warm_up.iter().filter_map(move |ops| ops.get(op)).filter(|times| times.n > 0)
    }

    /// Merged over the window and its drain, by op kind.
    pub fn window(&self) -> &[OpTimes] {
        &self.window
    }

    /// Merged over ops too. Ops that were never sent count with their age.
    pub fn window_total(&self) -> OpTimes {
        let mut total = OpTimes::new();
        for times in &self.window {
            total.add(times);
        }
        total.with_unsent()
    }

    /// Summary of one second.
    pub fn second(&self, second: u32, phase: Phase) -> Option<&SecondSummary> {
        self.seconds.get(&(second, phase))
    }

    /// One batch per second of the window, for the error of a mean.
    pub(crate) fn batches(&self, pick: impl Fn(&SecondSummary) -> Batch) -> Vec<Batch> {
        self.seconds
            .iter()
            .filter(|((_, phase), _)| *phase == Phase::Measure)
            .map(|(_, summary)| pick(summary))
            .collect()
    }
}

/// How the journal ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With its last line.
    Finished,
    /// Interrupted with Ctrl-C.
    Interrupted,
    /// The run could not continue.
    Aborted(String),
    /// The journal ends in the middle: killed, or the machine stopped.
    Torn,
}

/// One finished load point with the journal's records of it.
#[derive(Clone, Debug)]
pub(crate) struct PointView<'a> {
    pub record: &'a PointRecord,
    pub samples: &'a [ErrorSample],
    /// Why clients left.
    pub lost: &'a [String],
}

/// The outcome of the search for the peak.
#[derive(Clone, Debug)]
pub(crate) struct PeakView {
    /// On the ladder's axis.
    pub peak: f64,
    pub how: String,
    pub bound: Bound,
    pub ended_by: Option<String>,
}

/// The journal's records of the run, without its load points.
#[derive(Debug)]
pub(crate) struct RunView {
    /// A load point was finished.
    pub(crate) has_points: bool,
    pub started: RunStarted,
    pub peak: Option<PeakView>,
    /// The outcome of the search for a capacity, once it has ended.
    pub capacity: Option<String>,
    pub ending: Ending,
    pub resumed: u32,
    /// A part of the run was made by a program with debug assertions.
    pub resumed_debug: bool,
    /// Where replies differ from their specification, in set-up.
    pub nonconformities: Nonconformities,
    /// Agents that were lost, each once.
    pub lost_agents: Vec<LostAgent>,
    /// Servers that went away in load points that were made again.
    pub lost_servers: Vec<Rule>,
    /// The server's, where it was made.
    pub profile: Option<ServerProfile>,
}

/// An agent that was lost.
#[derive(Clone, Debug)]
pub(crate) struct LostAgent {
    pub agent: String,
    pub host: String,
    /// Why, the first time.
    pub reason: String,
    /// How many load points were lost with it.
    pub points: u32,
}

/// Profile of that name.
pub(crate) fn profile_named(name: &str) -> Option<ProfileName> {
    ProfileName::named(name)
}

impl RunView {
    pub(crate) fn new(started: RunStarted) -> Self {
        Self {
            started,
            peak: None,
            capacity: None,
            ending: Ending::Torn,
            resumed: 0,
            resumed_debug: false,
            nonconformities: Nonconformities::default(),
            lost_agents: Vec::new(),
            lost_servers: Vec::new(),
            profile: None,
            has_points: false,
        }
    }

    fn lose(&mut self, agent: &str, host: &str, reason: &str) {
        match self.lost_agents.iter_mut().find(|lost| lost.agent == agent) {
            Some(lost) => lost.points += 1,
            None => self.lost_agents.push(LostAgent {
                agent: agent.to_owned(),
                host: host.to_owned(),
                reason: reason.to_owned(),
                points: 1,
            }),
        }
    }

    /// Takes in the next record. Records of a load point only show that the journal goes on.
    pub(crate) fn add(&mut self, record: &JournalRecord) {
        self.ending = Ending::Torn;
        match record {
            JournalRecord::RunStarted(_)
            | JournalRecord::PointStarted { .. }
            | JournalRecord::ErrorSample { .. }
            | JournalRecord::ClientLost { .. }
            | JournalRecord::PointFinished(_) => {}
            JournalRecord::Resumed { debug_build, .. } => {
                self.resumed += 1;
                self.resumed_debug |= *debug_build;
            }
            JournalRecord::AgentLost { agent, host, reason, .. } => self.lose(agent, host, reason),
            JournalRecord::SetupNonconformities { seen: observed } => {
                self.nonconformities.add(observed)
            }
            JournalRecord::PeakFound { peak, how, bound, held_back: ended_by } => {
                let (how, ended_by) = (how.clone(), ended_by.clone());
                self.peak = Some(PeakView { peak: *peak, how, bound: *bound, ended_by });
            }
            JournalRecord::CapacitySearched { how, departures: deviations, method } => {
                self.capacity = Some(how.clone());
                self.settle(deviations, method);
            }
            JournalRecord::LadderPlanned { departures: deviations, method, .. } => {
                self.settle(deviations, method);
            }
            JournalRecord::ServerProfiled(profile) => self.profile = Some((**profile).clone()),
            JournalRecord::Interrupted { .. } => self.ending = Ending::Interrupted,
            JournalRecord::Aborted { reason, .. } => self.ending = Ending::Aborted(reason.clone()),
            JournalRecord::RunFinished { .. } => self.ending = Ending::Finished,
        }
    }

    /// Deviations and parameters of the ladder replace those of the start.
    fn settle(&mut self, deviations: &[String], method: &[Parameter]) {
        (self.started.departures, self.started.method) = (deviations.to_vec(), method.to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: u32, phase: Phase, response_ns: u64) -> IntervalSlice {
        let mut times = OpTimes::new();
        times.response.record(response_ns).unwrap();
        let start = Nanos::from_secs(u64::from(second));
        let length = Nanos::from_secs(1);
        IntervalSlice { second, start, length, phase, ops: vec![OpTimes::new(), times] }
    }

    #[test]
    fn the_window_holds_measure_and_drain_and_not_the_warm_up() {
        let times = PointTimes::from_seconds([
            second(0, Phase::WarmUp, 9_000),
            second(0, Phase::Measure, 1_000),
            second(1, Phase::Drain, 2_000),
        ]);
        let total = times.window_total();
        assert_eq!((total.response.len(), total.response.max()), (2, 2_000));
        assert!(times.window()[0].response.is_empty());
        assert_eq!(times.second(0, Phase::Measure).unwrap().response_max_ns, Some(1_000));
        assert_eq!(times.second(0, Phase::WarmUp).unwrap().response.n, 1);
        assert_eq!(times.batches(|s| s.response).len(), 1);
    }
}
