//! Records the running load point: its log, its samples, and whether it continues.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_analysis::PointTimes;
use plimsoll_fleet::message::SecondTotals;
use plimsoll_model::assignment::{Assignment, Phases, PointId};
use plimsoll_model::bundle::{IntervalSlice, PackedSlice, PointLog};
use plimsoll_model::outcome::ErrorSample;
use plimsoll_model::suite::OnClientFailure;
use plimsoll_model::units::Nanos;

use super::watcher::PointUse;
use crate::agent::cannot_keep;
use crate::clock::unix_ns;
use crate::failure::Failure;
use crate::observers::SecondView;

/// Samples kept per error class and point: enough to see a pattern.
const SAMPLES_PER_CLASS_MAX: u32 = 5;
/// Samples kept per point, whatever their class.
const SAMPLES_MAX: u32 = 40;
/// Lost clients that are named individually; the totals count all.
const LOST_NAMED_MAX: u32 = 20;

/// The load point so far, as the coordinator knows it.
pub(super) struct PointRecorder {
    pub assignment: Assignment,
    /// In order of time; one, unless the load changes.
    pub windows: Vec<WindowRecorder>,
    /// The one that runs, for the monitors.
    pub current: usize,
    samples: SampleBudget,
    lost: u32,
    /// Nothing more is expected.
    pub is_finished: bool,
    /// Why the window was cut short, if it was.
    pub ended_early: Option<String>,
    pub started_unix_ns: u64,
    /// Full seconds that have not been shown yet.
    pub views: VecDeque<SecondView>,
}

/// A window, which is a load point in the bundle.
pub(super) struct WindowRecorder {
    pub point: PointId,
    pub phases: Phases,
    pub log: PointLog,
    pub times: PointTimes,
    /// What the monitors observed, if they are past it.
    pub observed: Option<PointUse>,
}

impl WindowRecorder {
    /// Writes a slice of all workers.
    pub(super) fn write(&mut self, slice: IntervalSlice) -> Result<(), Failure> {
        self.log.write(&slice)?;
        let start = to_the_millisecond(slice.start);
        self.times.add(&IntervalSlice { start, ..slice });
        Ok(())
    }
}

impl PointRecorder {
    /// With an interval log for each window.
    pub(super) fn begin(assignment: &Assignment, logs: Vec<PointLog>) -> Self {
        let windows = assignment.points().zip(assignment.windows()).zip(logs);
        let windows = windows.map(|((point, phases), log)| {
            let (times, observed) = (PointTimes::default(), None);
            WindowRecorder { point, phases, log, times, observed }
        });
        Self {
            assignment: assignment.clone(),
            windows: windows.collect(),
            current: 0,
            samples: SampleBudget::default(),
            lost: 0,
            is_finished: false,
            ended_early: None,
            started_unix_ns: unix_ns(),
            views: VecDeque::new(),
        }
    }

    /// Whether this failure goes into the journal.
    pub(super) fn keeps(&mut self, sample: &ErrorSample) -> bool {
        self.samples.keep(sample)
    }

    /// Counts a lost client, which may end the point. Returns whether the loss goes into the
    /// journal.
    pub(super) fn lose(&mut self, client: u32, reason: &str, at: Nanos) -> bool {
        self.lost += 1;
        if let Some(why) = end_by_loss(&self.assignment, self.lost, client, reason) {
            self.is_finished = true;
            // A loss after the window affects no figure.
            if at < self.assignment.phases.window_end() {
                self.ended_early.get_or_insert(why);
            }
        }
        self.lost <= LOST_NAMED_MAX
    }

    /// A second has ended.
    pub(super) fn show(&mut self, second: &SecondTotals) {
        self.views.push_back(SecondView::from_totals(second, self.started_unix_ns));
    }

    /// Writes a complete slice.
    pub(super) fn write_packed(&mut self, packed: &PackedSlice) -> Result<(), Failure> {
        match self.windows.get_mut(packed.window as usize) {
            Some(window) => window.write(packed.unpack().map_err(|e| cannot_keep(&e))?),
            None => Ok(()),
        }
    }

    /// The load point that something belongs to, by its time from the start.
    pub(super) fn point_at(&self, at: Nanos) -> PointId {
        let window = self.windows.iter().find(|window| at < window.phases.window_end());
        window.or(self.windows.last()).map_or(self.assignment.point, |window| window.point)
    }

    /// The next window, if it has begun by now: its load point and its end on the wall clock.
    pub(super) fn next_window(&self) -> Option<(PointId, u64)> {
        let next = self.windows.get(self.current + 1)?;
        let wall = |at: Nanos| self.started_unix_ns + at.0;
        (unix_ns() >= wall(next.phases.warm_up_ns))
            .then(|| (next.point, wall(next.phases.window_end())))
    }
}

/// As in an interval log, so that a result derived from the bundle is the same.
fn to_the_millisecond(start: Nanos) -> Nanos {
    Nanos::from_millis((start.0 + 500_000) / 1_000_000)
}

/// Why the point ends now that `lost` clients have left, `client` the last of them.
fn end_by_loss(assignment: &Assignment, lost: u32, client: u32, reason: &str) -> Option<String> {
    match assignment.on_client_failure {
        OnClientFailure::Abort => Some(format!(
            "client {client} could go no further ({reason}), and the suite ends the point at the \
             first that fails"
        )),
        OnClientFailure::Drop if lost >= assignment.load.clients() => {
            Some(format!("no client is left; the last, client {client}, gave up: {reason}"))
        }
        OnClientFailure::Drop => None,
    }
}

/// Which error samples to keep.
#[derive(Debug, Default)]
struct SampleBudget {
    by_class: BTreeMap<String, u32>,
    kept: u32,
}

impl SampleBudget {
    fn keep(&mut self, sample: &ErrorSample) -> bool {
        if self.kept >= SAMPLES_MAX {
            return false;
        }
        let of_class = self.by_class.entry(sample.class.clone()).or_default();
        let keep = *of_class < SAMPLES_PER_CLASS_MAX;
        *of_class += u32::from(keep);
        self.kept += u32::from(keep);
        keep
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::assignment::{Load, Pacing, Priority, Purpose};
    use plimsoll_model::suite::{Think, ThinkDistribution};

    use super::*;

    fn desktops(on_client_failure: OnClientFailure) -> Assignment {
        let think = Think { mean: Nanos::ZERO, distribution: ThinkDistribution::Constant };
        let load = Load::Closed {
            clients: 3,
            think,
            start_delay_ns: Nanos::ZERO,
            starts_thinking: false,
            axis_think_ns: None,
        };
        Assignment {
            point: PointId { ordinal: 1, purpose: Purpose::Ladder },
            load,
            phases: Phases {
                warm_up_ns: Nanos::from_secs(1),
                measure_ns: Nanos::from_secs(3),
                ramp_down_ns: Nanos::from_secs(1),
                drain_ns: Nanos::from_secs(1),
                ops: None,
            },
            seed: 1,
            workers: 1,
            cores: Vec::new(),
            pacing: Pacing::Precise,
            own_cores: false,
            priority: Priority::Normal,
            op_timeout: Nanos::from_secs(1),
            endpoints: Vec::new(),
            sources: Vec::new(),
            reserved_ports: false,
            nonce: 0,
            on_client_failure,
            goodput: None,
            counts_clients: false,
            shape: None,
            crew: None,
            files: None,
        }
    }

    #[test]
    fn a_point_ends_with_its_last_client_or_with_the_first_that_fails() {
        let drop = desktops(OnClientFailure::Drop);
        let end = |assignment: &Assignment, lost| end_by_loss(assignment, lost, 7, "link broken");
        assert_eq!((end(&drop, 1), end(&drop, 2)), (None, None));
        let all = end(&drop, 3).unwrap();
        assert!(all.contains("no client is left") && all.contains("link broken"), "{all}");
        let abort = end(&desktops(OnClientFailure::Abort), 1).unwrap();
        assert!(abort.contains("client 7 could go no further (link broken)"), "{abort}");
    }

    #[test]
    fn samples_are_bounded_by_class_and_in_all() {
        let mut budget = SampleBudget::default();
        let mut kept = 0;
        for class in 0..20 {
            for _ in 0..10 {
                let sample = ErrorSample {
                    op: "get".into(),
                    class: format!("status:{}", 400 + class),
                    detail: String::new(),
                    at_ns: 0,
                };
                kept += u32::from(budget.keep(&sample));
            }
        }
        assert_eq!(kept, SAMPLES_MAX);
    }
}
