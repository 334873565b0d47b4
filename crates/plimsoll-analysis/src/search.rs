//! Which load to try next when the peak is unknown. Pure: the caller runs the points.
//!
//! 1. A closed probe (all clients, no think time) tells the highest throughput X₀ that so many
//!    clients get. More than that cannot be held, and much less should be.
//! 2. Open probes start at 0.95 X₀, grow while they are held, then halve the gap between the
//!    highest load held and the lowest not held until it is within 3 %. A miss that may be scatter
//!    is tried once more before it is believed; one that only the generator is to blame for, three
//!    times at most.
//! 3. The load found is verified, where the caller gives the servers the data that belongs to it.
//!    A failure lowers the claim, by 5 % or to what was achieved, and it is verified again.
//!
//! Every stage is bounded, and so is the time: where it ends, the peak is what was held so far. A
//! search ends without a peak only when the server fails. The next step follows from the tries so
//! far and the time left, so that a resumed search goes on where it was.

mod levels;
mod outcome;
mod text;

use plimsoll_model::assignment::Purpose;
use plimsoll_model::event::Bound;

use self::levels::Tries;
pub use self::outcome::{Holding, ProbeOutcome};
use crate::climb::{
    self, Bracket, Ceiling, Course, Next, Policy, Standing, Step, WHOLE_FROM_OPS_PER_S, levels,
};

/// Steps that are kept for the verification while there are few left.
const VERIFY_RESERVE_STEPS: u32 = 1;
/// A claim below one that the generator could not send.
const GENERATOR_HEADROOM_RATIO: f64 = 0.8;
/// The same for a claim whose verification it did not manage.
const GENERATOR_VERIFY_STEP_RATIO: f64 = 0.1;
/// Of what all clients got, an open load that was never tried may ask for this part: where several
/// replies are read at once, an op of a closed load costs a generator a third of one of an open load.
const UNTRIED_RATIO: f64 = 0.25;
/// Of what a server finished while it was asked for too much, this part is asked next.
const ACHIEVED_RATIO: f64 = 0.97;
/// The server's limit was seen where the lowest load it did not hold is this close above the peak.
const SEEN_GAP_RATIO: f64 = 0.15;

/// Bounds and steps of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeakSearchConfig {
    /// Open probes, in ops per second; first and top as shares of the closed probe's throughput.
    pub course: Course,
    /// Its resolution where the generator is what did not hold.
    pub generator_resolution_ratio: f64,
    /// A load is held when no more of its ops than this are late: half of what the suite
    /// tolerates, so that the next point at that load is not left to chance.
    pub spare_ratio: f64,
    /// Repeats of a step that only the generator failed, at most.
    pub generator_repeats_max: u32,
    /// A verification that fails lowers the claim by this share at least.
    pub verify_step_ratio: f64,
}

impl Default for PeakSearchConfig {
    fn default() -> Self {
        Self {
            course: Course {
                first: 0.95,
                growth_ratio: 1.25,
                top: 1.05,
                resolution_ratio: 0.03,
                loads_max: 8,
                claims_max: 6,
                min: 1.0,
                max: plimsoll_model::suite::RATE_OPS_PER_S_MAX,
                whole_from: WHOLE_FROM_OPS_PER_S,
            },
            generator_resolution_ratio: 0.05,
            spare_ratio: 0.025,
            generator_repeats_max: 3,
            verify_step_ratio: 0.05,
        }
    }
}

/// What to do next.
pub type SearchStep = Step<FoundPeak>;

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundPeak {
    /// Ops per second.
    pub peak: f64,
    /// Whether the server's own limit was seen.
    pub bound: Bound,
    /// What was the limit instead, where no step of the search shows it.
    pub held_back: Option<HeldBack>,
    /// It was held when it was verified.
    pub verified: bool,
    /// The lowest load above it that was not held, and what made it fail.
    pub missed: Option<(f64, Ceiling)>,
}

/// What ended a search before the server's limit or the generator's was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBack {
    /// The highest load that may be tried was held.
    LoadMax,
    /// The time, or the number of steps.
    Time,
}

/// The search. Ask [`PeakSearch::next`], run that point, [`PeakSearch::report`], and so on until
/// the answer is [`Step::Found`] or [`Step::Nothing`].
#[derive(Clone, Debug)]
pub struct PeakSearch {
    config: PeakSearchConfig,
    closed: Option<ProbeOutcome>,
    probes: Vec<(f64, ProbeOutcome)>,
    verifies: Vec<(f64, ProbeOutcome)>,
}

impl PeakSearch {
    /// A search that has not begun.
    pub const fn new(config: PeakSearchConfig) -> Self {
        Self { config, closed: None, probes: Vec::new(), verifies: Vec::new() }
    }

    /// The next step, where so many more have time; the same until one is reported.
    pub fn next(&self, steps_left: u32) -> SearchStep {
        let Some(closed) = &self.closed else { return SearchStep::Saturate };
        if !closed.achieved.is_finite() || closed.achieved <= 0.0 {
            return Step::Nothing;
        }
        if let Some(claim) = of(&self.verifies).last() {
            return self.after_verifying(claim, steps_left);
        }
        match climb::next(self, &of(&self.probes), steps_left) {
            Next::Try(load) => Step::Probe { load },
            Next::Known(bracket) => self.claim(&bracket, steps_left),
        }
    }

    /// Takes in what became of a step.
    pub fn report(&mut self, step: &SearchStep, outcome: ProbeOutcome) {
        match step {
            Step::Saturate => self.closed = Some(outcome),
            Step::Probe { load } => self.probes.push((*load, outcome)),
            Step::Verify { load, .. } => self.verifies.push((*load, outcome)),
            Step::Found(_) | Step::Nothing => {}
        }
    }

    /// Steps reported so far.
    pub fn steps(&self) -> u32 {
        (usize::from(self.closed.is_some()) + self.probes.len() + self.verifies.len()) as u32
    }

    /// The load to verify, or the answer where there is no time for it.
    fn claim(&self, bracket: &Bracket<'_, ProbeOutcome>, steps_left: u32) -> SearchStep {
        let load = match (bracket.held, bracket.missed) {
            (Some(held), _) => held,
            (None, Some((_, Ceiling::Failure))) if self.failed_always() => return Step::Nothing,
            (None, Some((level, Ceiling::Failure))) => level.load / 2.0,
            (None, Some((level, Ceiling::Server))) => {
                level.achieved_min().min(level.load) * self.config.course.first
            }
            (None, Some((level, Ceiling::Generator))) => level.load * GENERATOR_HEADROOM_RATIO,
            // No time for any open probe: what all clients got.
            (None, None) if steps_left == 0 => self.closed() * UNTRIED_RATIO,
            (None, None) => self.closed() * GENERATOR_HEADROOM_RATIO,
        };
        let load = self.course().bounded(load);
        if steps_left == 0 { self.found(load) } else { Step::Verify { load, number: 1 } }
    }

    fn after_verifying(&self, claim: &Tries<'_>, steps_left: u32) -> SearchStep {
        let load = claim.load;
        let ceiling = match self.standing_of(claim, Purpose::Verify) {
            Standing::Held => return self.found(load),
            Standing::Doubtful(_) if steps_left > 0 => {
                return Step::Verify { load, number: claim.tries.len() as u32 + 1 };
            }
            Standing::Doubtful(ceiling) | Standing::Missed(ceiling) => ceiling,
        };
        let step = load * (1.0 - self.config.verify_step_ratio);
        let lower = match ceiling {
            Ceiling::Server => {
                (claim.achieved_max() * ACHIEVED_RATIO).clamp(load / 2.0, step.max(load / 2.0))
            }
            Ceiling::Generator => step.min(load * (1.0 - GENERATOR_VERIFY_STEP_RATIO)),
            Ceiling::Failure => step.min(load * GENERATOR_HEADROOM_RATIO),
        };
        let lower = self.course().bounded(lower);
        let claims = of(&self.verifies).len() as u32;
        if steps_left > 0 && claims < self.config.course.claims_max && lower < load {
            return Step::Verify { load: lower, number: 1 };
        }
        if self.failed_always() { Step::Nothing } else { self.found(lower) }
    }

    fn found(&self, peak: f64) -> SearchStep {
        let levels = self.levels();
        let standings = levels
            .iter()
            .map(|(purpose, level)| (*purpose, level.load, self.standing_of(level, *purpose)));
        let held = (Purpose::Verify, peak, Standing::Held);
        let verified = standings.clone().any(|it| it == held);
        let ceilings = standings.filter_map(|(_, load, it)| Some((load, it.ceiling()?)));
        let lowest = climb::lowest_above(peak, ceilings);
        let seen = |load: f64| load - peak <= SEEN_GAP_RATIO * load;
        let (bound, held_back) = match lowest {
            Some((_, Ceiling::Generator)) => (Bound::AtLeast, None),
            Some((load, _)) if verified && seen(load) => (Bound::Exact, None),
            None if peak >= self.course().bounded(f64::MAX) => {
                (Bound::AtLeast, Some(HeldBack::LoadMax))
            }
            _ => (Bound::AtLeast, Some(HeldBack::Time)),
        };
        Step::Found(FoundPeak { peak, bound, held_back, verified, missed: lowest })
    }

    /// Claims, then probes.
    fn levels(&self) -> Vec<(Purpose, Tries<'_>)> {
        let claims = of(&self.verifies).into_iter().map(|level| (Purpose::Verify, level));
        claims.chain(of(&self.probes).into_iter().map(|level| (Purpose::Probe, level))).collect()
    }

    fn standing_of(&self, level: &Tries<'_>, purpose: Purpose) -> Standing {
        level.standing(purpose, self.closed(), &self.config)
    }

    /// The server failed under every open load.
    fn failed_always(&self) -> bool {
        let mut all = self.probes.iter().chain(&self.verifies);
        all.all(|(_, outcome)| outcome.holding == Holding::Failed)
    }

    fn closed(&self) -> f64 {
        self.closed.as_ref().map_or(0.0, |outcome| outcome.achieved)
    }
}

fn of(tries: &[(f64, ProbeOutcome)]) -> Vec<Tries<'_>> {
    levels(tries.iter().map(|(load, outcome)| (*load, outcome)))
}

impl Policy for PeakSearch {
    type Try = ProbeOutcome;

    fn course(&self) -> Course {
        self.config.course.of(self.closed())
    }

    fn standing(&self, level: &Tries<'_>) -> Standing {
        self.standing_of(level, Purpose::Probe)
    }

    /// What was achieved under too much load is a hint, half is a bound.
    fn below(&self, missed: &Tries<'_>, ceiling: Ceiling) -> f64 {
        let load = missed.load;
        match ceiling {
            Ceiling::Server => {
                let hint = missed.achieved_max() * self.config.course.first;
                hint.clamp(load / 2.0, load * 0.9)
            }
            Ceiling::Generator => load * GENERATOR_HEADROOM_RATIO,
            Ceiling::Failure => load / 2.0,
        }
    }

    fn resolution_ratio(&self, ceiling: Ceiling) -> f64 {
        match ceiling {
            Ceiling::Generator => self.config.generator_resolution_ratio,
            Ceiling::Server | Ceiling::Failure => self.config.course.resolution_ratio,
        }
    }

    fn reserve(&self) -> u32 {
        VERIFY_RESERVE_STEPS
    }
}

#[cfg(test)]
mod tests;
