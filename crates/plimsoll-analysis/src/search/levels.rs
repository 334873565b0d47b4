//! What the tries at a load come to, taken together.

use plimsoll_model::assignment::Purpose;

use super::PeakSearchConfig;
use super::outcome::{Holding, ProbeOutcome};
use crate::climb::{Ceiling, Level, Standing};

/// A load under which less than this was finished was missed by far: that may be the server's
/// limit, or something that took the machine for a second.
const DEEP_SHORT_RATIO: f64 = 0.12;
/// The generator sent more than this share of it in the closed probe: it is surprising that it
/// should be too much now.
const EXPECTED_RATIO: f64 = 0.8;

/// All tries at a load with one purpose.
pub(super) type Tries<'a> = Level<'a, ProbeOutcome>;

impl Tries<'_> {
    /// `closed` is what all clients at once achieved. A miss by little may be scatter, one by far a
    /// disturbance; a claim that is missed by little is simply too high.
    pub(super) fn standing(
        &self,
        purpose: Purpose,
        closed: f64,
        config: &PeakSearchConfig,
    ) -> Standing {
        let count = |wanted| self.tries.iter().filter(|try_| held(try_, config) == wanted).count();
        let miss = |believed, ceiling| match believed {
            true => Standing::Missed(ceiling),
            false => Standing::Doubtful(ceiling),
        };
        let again = self.tries.len() > 1;
        if count(Holding::Held) > 0 {
            return Standing::Held;
        }
        // A few late answers on a disturbed machine are no refusal.
        if count(Holding::Failed) > 0 {
            return miss(again, Ceiling::Failure);
        }
        if count(Holding::NotHeld) > 0 {
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

    /// The last try that was not held.
    pub(super) fn failed(&self, config: &PeakSearchConfig) -> Option<&ProbeOutcome> {
        self.tries.iter().rev().find(|it| held(it, config) != Holding::Held).copied()
    }

    fn is_doubtful(&self, purpose: Purpose, closed: f64, config: &PeakSearchConfig) -> bool {
        let Some(first) = self.tries.first() else { return true };
        let by_far = first.short_ratio >= DEEP_SHORT_RATIO;
        match purpose {
            Purpose::Verify => by_far,
            Purpose::Probe | Purpose::Ladder | Purpose::Profile => {
                !by_far || self.load <= closed * config.course.first
            }
        }
    }
}

/// A load held without room to spare is one that the next point will miss.
fn held(outcome: &ProbeOutcome, config: &PeakSearchConfig) -> Holding {
    match outcome.holding {
        Holding::Held if outcome.short_ratio > config.spare_ratio => Holding::NotHeld,
        holding => holding,
    }
}
