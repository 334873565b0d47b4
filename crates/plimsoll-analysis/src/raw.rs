//! What analysis reads, and the journal put in order.

use std::collections::BTreeMap;

use plimsoll_model::assignment::Purpose;
use plimsoll_model::capacity::CapacityTry;
use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::Bound;
use plimsoll_model::event::{
    JournalRecord, OpTimes, Phase, PointRecord, RunStarted, Times, new_times,
};
use plimsoll_model::method::Parameter;
use plimsoll_model::nonconformity::Nonconformities;
use plimsoll_model::outcome::ErrorSample;
use plimsoll_model::result::PointResult;
use plimsoll_model::suite::{ProfileName, Suite};
use plimsoll_model::units::Nanos;

use crate::blocks::Coarse;
use crate::times::{Batch, SecondSummary};

/// A parsed bundle.
#[derive(Debug)]
pub struct RawRun<'a> {
    /// The suite as run.
    pub suite: &'a Suite,
    /// The journal's records, in order.
    pub journal: &'a [JournalRecord],
    /// Interval histograms by stem of the point (`point-03`).
    pub histograms: BTreeMap<String, PointTimes>,
    /// `disclosure.json`, when it was written.
    pub disclosure: Option<Disclosure>,
}

/// A load point that was derived while its histograms were at hand.
#[derive(Clone, Debug)]
pub struct KnownPoint {
    /// As the report shows it.
    pub result: PointResult,
    /// Held against the limits, where a capacity is searched.
    pub attempt: Option<CapacityTry>,
}

/// One second of a point or a slice of it, merged over workers.
#[derive(Clone, Debug)]
pub struct SecondTimes {
    /// 0, 1, 2 … from the start of the point.
    pub second: u32,
    /// When the slice of it began, from the start of the point.
    pub start: Nanos,
    /// Phase in which the ops finished.
    pub phase: Phase,
    /// By op kind, in the order of the run's op names.
    pub ops: Vec<OpTimes>,
}

/// The times of one load point, taken in one second at a time: a second's histograms are some
/// hundred KiB, so only their sums and a summary of each second are kept.
#[derive(Clone, Debug, Default)]
pub struct PointTimes {
    /// Over the window and the drain after it: ops due in the window.
    window: Vec<OpTimes>,
    seconds: BTreeMap<(u32, Phase), SecondSummary>,
    /// The response times of the second that was taken in last.
    open: Option<((u32, Phase), Times)>,
    /// Of the window, by their start.
    slices: BTreeMap<Nanos, Slice>,
}

/// A slice of the window: what the scatter of figures is told from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slice {
    pub(crate) response: Coarse,
    pub(crate) service: Coarse,
    /// How many of each kind came due in it.
    by_op: Vec<u64>,
}

impl PointTimes {
    /// All seconds of a point, in any order.
    pub fn from_seconds(seconds: impl IntoIterator<Item = SecondTimes>) -> Self {
        let mut times = Self::default();
        for second in seconds {
            times.add(&second);
        }
        times
    }

    /// Takes in one second or a slice of it, merged over workers, in order of time.
    pub fn add(&mut self, second: &SecondTimes) {
        if second.phase != Phase::WarmUp {
            if self.window.len() < second.ops.len() {
                self.window.resize_with(second.ops.len(), OpTimes::new);
            }
            for (sum, times) in self.window.iter_mut().zip(&second.ops) {
                sum.add(times);
            }
        }
        if second.phase == Phase::Measure {
            let slice = self.slices.entry(second.start).or_default();
            slice.by_op.resize(second.ops.len().max(slice.by_op.len()), 0);
            for (op, count) in second.ops.iter().zip(&mut slice.by_op) {
                slice.response.add(&op.response);
                slice.service.add(&op.service);
                *count += op.response.len();
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
pub(crate) enum Ending<'a> {
    /// With its last line.
    Finished,
    /// Ctrl-C.
    Interrupted,
    /// The run could not go on.
    Aborted(&'a str),
    /// In the middle: killed, or the machine stopped.
    Torn,
}

/// One finished load point with what the journal says of it.
#[derive(Clone, Debug)]
pub(crate) struct PointView<'a> {
    pub record: &'a PointRecord,
    pub samples: Vec<&'a ErrorSample>,
    pub lost: Vec<&'a str>,
    /// From 1, within the ladder or among the probes.
    pub position: u32,
}

/// What the search for the peak came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeakView<'a> {
    pub how: &'a str,
    pub bound: Bound,
    pub held_back: Option<&'a str>,
}

/// The journal in order.
#[derive(Debug)]
pub(crate) struct RunView<'a> {
    pub started: Option<&'a RunStarted>,
    pub ladder: Vec<PointView<'a>>,
    pub probes: Vec<PointView<'a>>,
    pub peak: Option<PeakView<'a>>,
    /// What the search for a capacity came to, once it has ended.
    pub capacity: Option<&'a str>,
    /// Departures and parameters of the ladder, in place of those of the start.
    pub departures: Option<(&'a [String], &'a [Parameter])>,
    pub ending: Ending<'a>,
    pub resumed: u32,
    /// A part of the run was made by a program with debug assertions.
    pub resumed_debug: bool,
    /// Where replies differ from their specification: in set-up and in finished load points.
    pub nonconformities: Nonconformities,
}

/// Profile of that name.
pub(crate) fn profile_named(name: &str) -> Option<ProfileName> {
    ProfileName::named(name)
}

/// What the journal collects about a point before and after it finishes.
#[derive(Default)]
struct Draft<'a> {
    record: Option<&'a PointRecord>,
    samples: Vec<&'a ErrorSample>,
    lost: Vec<&'a str>,
}

impl<'a> RunView<'a> {
    /// Sorts the journal's records. A point that was started twice counts as it finished last.
    pub(crate) fn new(journal: &'a [JournalRecord]) -> Self {
        let mut view = Self {
            started: None,
            ladder: Vec::new(),
            probes: Vec::new(),
            peak: None,
            capacity: None,
            departures: None,
            ending: Ending::Torn,
            resumed: 0,
            resumed_debug: false,
            nonconformities: Nonconformities::default(),
        };
        let mut drafts: BTreeMap<u32, Draft<'a>> = BTreeMap::new();
        for record in journal {
            view.ending = Ending::Torn;
            match record {
                JournalRecord::RunStarted(started) => view.started = Some(started),
                JournalRecord::Resumed { debug_build, .. } => {
                    view.resumed += 1;
                    view.resumed_debug |= *debug_build;
                }
                JournalRecord::SetupNonconformities { seen } => view.nonconformities.add(seen),
                JournalRecord::PointStarted { assignment, .. } => {
                    drafts.insert(assignment.point.ordinal, Draft::default());
                }
                JournalRecord::ErrorSample { point, sample } => {
                    drafts.entry(point.ordinal).or_default().samples.push(sample);
                }
                JournalRecord::ClientLost { point, reason, .. } => {
                    drafts.entry(point.ordinal).or_default().lost.push(reason);
                }
                JournalRecord::PointFinished(record) => {
                    drafts.entry(record.point.ordinal).or_default().record = Some(record);
                }
                JournalRecord::PeakFound { how, bound, held_back, .. } => {
                    let held_back = held_back.as_deref();
                    view.peak = Some(PeakView { how, bound: *bound, held_back });
                }
                JournalRecord::CapacitySearched { how, departures, method } => {
                    view.capacity = Some(how);
                    view.departures = Some((departures, method));
                }
                JournalRecord::LadderPlanned { departures, method, .. } => {
                    view.departures = Some((departures, method));
                }
                JournalRecord::Interrupted { .. } => view.ending = Ending::Interrupted,
                JournalRecord::Aborted { reason, .. } => view.ending = Ending::Aborted(reason),
                JournalRecord::RunFinished { .. } => view.ending = Ending::Finished,
            }
        }
        for draft in drafts.into_values() {
            view.place(draft);
        }
        view
    }

    fn place(&mut self, draft: Draft<'a>) {
        let Some(record) = draft.record else { return };
        self.nonconformities.add(&record.totals.nonconformities);
        let list = match record.point.purpose {
            Purpose::Ladder => &mut self.ladder,
            Purpose::Probe | Purpose::Verify => &mut self.probes,
        };
        let position = list.len() as u32 + 1;
        list.push(PointView { record, samples: draft.samples, lost: draft.lost, position });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: u32, phase: Phase, response_ns: u64) -> SecondTimes {
        let mut times = OpTimes::new();
        times.response.record(response_ns).unwrap();
        let start = Nanos::from_secs(u64::from(second));
        SecondTimes { second, start, phase, ops: vec![OpTimes::new(), times] }
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
