//! The outcome of a step of the search, and the combined outcome of the tries at a load.

use plimsoll_model::assignment::Purpose;
use plimsoll_model::finding::{Finding, Rule};
use plimsoll_model::result::{NotCounted, PointResult};

use super::PeakSearchConfig;
use crate::climb::{Ceiling, Level, LevelState};

/// Ops that may miss at any rate, under way at the borders of the window; as in the rule `rate`.
const FORGIVEN_OPS: f64 = 2.0;

/// Was the load sustained?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// The server did what was requested, within the suite's limits.
    Sustained,
    /// The server did not keep up with the requests.
    NotSustained,
    /// The generator did not keep up, or cannot show that it did.
    Generator,
    /// The server answered wrongly, refused, or fell silent.
    Failed,
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeOutcome {
    /// Ops per second finished without error.
    pub achieved: f64,
    /// Ops per second that came due; absent for the closed probe.
    pub offered: Option<f64>,
    /// Share of the ops due that were not finished in time; 0 for the closed probe.
    pub short_ratio: f64,
    /// Was the load sustained: rate, errors, unsent ops and the generator within their limits, and
    /// the mean service time below the suite's cap?
    pub holding: Holding,
    /// Why it was not sustained.
    pub why_not: Option<Rule>,
}

impl ProbeOutcome {
    /// The outcome of an analysed point.
    pub fn from_point(point: &PointResult) -> Self {
        let breach = breach(point);
        Self {
            achieved: point.achieved_ops_per_s.unwrap_or_default(),
            offered: point.offered_ops_per_s,
            short_ratio: short_ratio(point),
            holding: breach.map_or(Holding::Sustained, |(holding, _)| holding),
            why_not: breach.map(|(_, finding)| finding.rule.clone()),
        }
    }
}

/// Why the load was not sustained. Wrong answers come first, as they may be why an op came late;
/// then the generator, whose own delay may make the server seem slow.
fn breach(point: &PointResult) -> Option<(Holding, &Finding)> {
    let broke = |kind| point.reasons.iter().find(|reason| kind_of(&reason.rule) == Some(kind));
    let not_counted = |kinds: &[NotCounted]| {
        let is_one = point.not_counted.is_some_and(|kind| kinds.contains(&kind));
        point.not_counted_because.as_ref().filter(|_| is_one)
    };
    let failed = broke(Holding::Failed).or_else(|| not_counted(&[NotCounted::Errors]));
    let generator = || broke(Holding::Generator);
    // A load that the suite would not count cannot be its peak.
    let slow = || {
        broke(Holding::NotSustained)
            .or_else(|| not_counted(&[NotCounted::NotHeld, NotCounted::Cap]))
    };
    failed
        .map(|finding| (Holding::Failed, finding))
        .or_else(|| generator().map(|finding| (Holding::Generator, finding)))
        .or_else(|| slow().map(|finding| (Holding::NotSustained, finding)))
}

/// What a reason shows about the load; `None` where it concerns the quality of the measurement.
const fn kind_of(rule: &Rule) -> Option<Holding> {
    match rule {
        // The server answered wrongly, or no longer at all.
        Rule::Errors { .. }
        | Rule::Corrupt { .. }
        | Rule::ClientsLost { .. }
        | Rule::EndedEarly { .. }
        | Rule::NothingDone { .. }
        | Rule::Panic { .. } => Some(Holding::Failed),
        // Then nothing is known about the server.
        Rule::GeneratorCpu { .. }
        | Rule::GeneratorError { .. }
        | Rule::SendLag { .. }
        | Rule::MissingEvidence { .. } => Some(Holding::Generator),
        Rule::Rate { .. } | Rule::NotSent { .. } | Rule::Unfinished { .. } => {
            Some(Holding::NotSustained)
        }
        _ => None,
    }
}

fn short_ratio(point: &PointResult) -> f64 {
    match (point.offered_ops_per_s, point.achieved_ops_per_s, point.seconds) {
        (Some(offered), Some(achieved), Some(seconds)) if offered * seconds > 0.0 => {
            let missing = (offered - achieved) * seconds - FORGIVEN_OPS;
            (missing / (offered * seconds)).max(0.0)
        }
        _ => 0.0,
    }
}

/// A load under which less than this was finished was missed by far: that may be the server's
/// limit, or something that took the machine for a second.
const DEEP_SHORT_RATIO: f64 = 0.12;
/// The generator sent more than this share of it in the closed probe: it is unlikely to be too much
/// now.
const EXPECTED_RATIO: f64 = 0.8;

/// All tries at a load with one purpose.
pub(super) type Tries<'a> = Level<'a, ProbeOutcome>;

impl Tries<'_> {
    /// `closed` is what all clients at once achieved. A miss by little may be scatter, one by far a
    /// disturbance; a claim that is missed by little is simply too high.
    pub(super) fn state(
        &self,
        purpose: Purpose,
        closed: f64,
        config: &PeakSearchConfig,
    ) -> LevelState {
        let count = |expected| {
            self.tries.iter().filter(|try_| holding_with_spare(try_, config) == expected).count()
        };
        let miss = |believed, ceiling| match believed {
            true => LevelState::Missed(ceiling),
            false => LevelState::Doubtful(ceiling),
        };
        let again = self.tries.len() > 1;
        if count(Holding::Sustained) > 0 {
            return LevelState::Sustained;
        }
        // A few late answers on a disturbed machine are no refusal.
        if count(Holding::Failed) > 0 {
            return miss(again, Ceiling::Failure);
        }
        if count(Holding::NotSustained) > 0 {
            let believed = again || !self.is_doubtful(purpose, closed, config);
            return miss(believed, Ceiling::Server);
        }
        let repeats = match self.load <= EXPECTED_RATIO * closed {
            true => config.generator_repeats_max,
            false => config.generator_repeats_max.min(1),
        };
        miss(self.tries.len() as u32 > repeats, Ceiling::Generator)
    }

    /// Most that was finished under this load.
    pub(super) fn achieved_max(&self) -> f64 {
        self.tries.iter().map(|outcome| outcome.achieved).fold(0.0, f64::max)
    }

    /// Least that was finished under this load.
    pub(super) fn achieved_min(&self) -> f64 {
        self.tries.iter().map(|outcome| outcome.achieved).fold(f64::INFINITY, f64::min)
    }

    /// The last try that was not sustained.
    pub(super) fn failed(&self, config: &PeakSearchConfig) -> Option<&ProbeOutcome> {
        self.tries
            .iter()
            .rev()
            .find(|it| holding_with_spare(it, config) != Holding::Sustained)
            .copied()
    }

    fn is_doubtful(&self, purpose: Purpose, closed: f64, config: &PeakSearchConfig) -> bool {
        let Some(first) = self.tries.first() else { return true };
        let by_far = first.short_ratio >= DEEP_SHORT_RATIO;
        match purpose {
            Purpose::Verify => by_far,
            Purpose::Probe | Purpose::Ladder | Purpose::Profile | Purpose::Pilot => {
                !by_far || self.load <= closed * config.climb.first
            }
        }
    }
}

/// A load sustained without spare is missed by the next point.
fn holding_with_spare(outcome: &ProbeOutcome, config: &PeakSearchConfig) -> Holding {
    match outcome.holding {
        Holding::Sustained if outcome.short_ratio > config.spare_ratio => Holding::NotSustained,
        holding => holding,
    }
}
