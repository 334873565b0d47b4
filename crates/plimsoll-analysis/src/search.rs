//! Which load to try next when the peak is unknown. Pure: the caller runs the points.
//!
//! 1. A closed probe (all clients, no think time) measures X₀, the highest throughput of this
//!    number of clients. More than that cannot be sustained, and much less should be.
//! 2. Open probes start at 0.95 X₀, grow while they are sustained, then halve the interval between
//!    the highest sustained load and the lowest missed one until it is within 3 %. A miss that may
//!    be scatter is tried once more before it is believed; one that only the generator is to blame
//!    for, three times at most.
//! 3. The highest sustained load is verified, where the caller gives the servers the data that
//!    belongs to it. A failure lowers the claim, by 5 % or to the achieved rate, and it is verified
//!    again.
//!
//! Every phase is bounded, and so is the time: when it ends, the peak is the highest load sustained
//! so far. A search ends without a peak only when the server fails. The next step follows from the
//! tries so far and the time left, so that a resumed search continues where it was.

mod outcome;

use std::fmt;

use plimsoll_model::assignment::Purpose;
use plimsoll_model::event::Bound;
use plimsoll_model::finding::Rule;
use plimsoll_model::units::grouped;

use crate::climb::{
    self, Bracket, Ceiling, ClimbConfig, LevelState, Next, Policy, Step, WHOLE_FROM_OPS_PER_S,
    levels,
};
use outcome::Tries;

pub use self::outcome::{Holding, ProbeOutcome};

/// Steps that are kept for the verification while there are few left.
const VERIFY_RESERVE_STEPS: u32 = 1;
/// A claim below one that the generator could not send.
const GENERATOR_HEADROOM_RATIO: f64 = 0.8;
/// The same for a claim whose verification the generator did not manage.
const GENERATOR_VERIFY_STEP_RATIO: f64 = 0.1;
/// An untried open load may request this part of the throughput of all clients: where several
/// replies are read at once, an op of a closed load costs a generator a third of one of an open
/// load.
const UNTRIED_RATIO: f64 = 0.25;
/// Of the throughput under too much load, this part is requested next.
const ACHIEVED_RATIO: f64 = 0.97;
/// The server's limit was reached where the lowest load it did not sustain is this close above the
/// peak.
const EXACT_DISTANCE_RATIO: f64 = 0.15;

/// Bounds and steps of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeakSearchConfig {
    /// Open probes, in ops per second; first and top as shares of the closed probe's throughput.
    pub climb: ClimbConfig,
    /// Its resolution where the generator did not sustain the load.
    pub generator_resolution_ratio: f64,
    /// A load is sustained when no more of its ops than this are late: half of the suite's
    /// tolerance, so that the next point at that load is not left to chance.
    pub spare_ratio: f64,
    /// Repeats of a step that only the generator failed, at most.
    pub generator_repeats_max: u32,
    /// A verification that fails lowers the claim by this share at least.
    pub verify_step_ratio: f64,
}

impl Default for PeakSearchConfig {
    fn default() -> Self {
        Self {
            climb: ClimbConfig {
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
pub type SearchStep = Step<PeakAnswer>;

/// The outcome of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeakAnswer {
    /// Ops per second.
    pub peak: f64,
    /// Whether the server's own limit was reached.
    pub bound: Bound,
    /// The limit instead, where no step of the search shows it.
    pub ended_by: Option<SearchEnd>,
    /// It was sustained when it was verified.
    pub verified: bool,
    /// The lowest load above it that was not sustained, and who set that ceiling.
    pub missed: Option<(f64, Ceiling)>,
}

/// What ended a search before the limit of the server or the generator was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchEnd {
    /// The highest allowed load was sustained.
    LoadMax,
    /// The time, or the number of steps.
    Time,
}

/// The search. Call [`PeakSearch::next`], run that point, [`PeakSearch::report`], and so on until
/// the answer is [`Step::Answer`] or [`Step::Nothing`].
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

    /// The next step, with time for `steps_left` more; the same until one is reported.
    pub fn next(&self, steps_left: u32) -> SearchStep {
        let Some(closed) = &self.closed else { return SearchStep::Saturate };
        if !closed.achieved.is_finite() || closed.achieved <= 0.0 {
            return Step::Nothing;
        }
        if let Some(claim) = tries_by_load(&self.verifies).last() {
            return self.after_verifying(claim, steps_left);
        }
        match climb::next(self, &tries_by_load(&self.probes), steps_left) {
            Next::Try(load) => Step::Probe { load },
            Next::Done(bracket) => self.claim(&bracket, steps_left),
        }
    }

    /// Takes in the outcome of a step.
    pub fn report(&mut self, step: &SearchStep, outcome: ProbeOutcome) {
        match step {
            Step::Saturate => self.closed = Some(outcome),
            Step::Probe { load } => self.probes.push((*load, outcome)),
            Step::Verify { load, .. } => self.verifies.push((*load, outcome)),
            Step::Answer(_) | Step::Nothing => {}
        }
    }

    /// Steps reported so far.
    pub fn steps(&self) -> u32 {
        (usize::from(self.closed.is_some()) + self.probes.len() + self.verifies.len()) as u32
    }

    /// The load to verify, or the answer where there is no time for it.
    fn claim(&self, bracket: &Bracket<'_, ProbeOutcome>, steps_left: u32) -> SearchStep {
        let load = match (bracket.sustained, bracket.missed) {
            (Some(sustained), _) => sustained,
            (None, Some((_, Ceiling::Failure))) if self.failed_always() => return Step::Nothing,
            (None, Some((level, Ceiling::Failure))) => level.load / 2.0,
            (None, Some((level, Ceiling::Server))) => {
                level.achieved_min().min(level.load) * self.config.climb.first
            }
            (None, Some((level, Ceiling::Generator))) => level.load * GENERATOR_HEADROOM_RATIO,
            // No time for any open probe: the throughput of all clients.
            (None, None) if steps_left == 0 => self.closed() * UNTRIED_RATIO,
            (None, None) => self.closed() * GENERATOR_HEADROOM_RATIO,
        };
        let load = self.climb_config().bounded(load);
        if steps_left == 0 { self.answer(load) } else { Step::Verify { load, number: 1 } }
    }

    fn after_verifying(&self, claim: &Tries<'_>, steps_left: u32) -> SearchStep {
        let load = claim.load;
        let ceiling = match self.state_for(claim, Purpose::Verify) {
            LevelState::Sustained => return self.answer(load),
            LevelState::Doubtful(_) if steps_left > 0 => {
                return Step::Verify { load, number: claim.tries.len() as u32 + 1 };
            }
            LevelState::Doubtful(ceiling) | LevelState::Missed(ceiling) => ceiling,
        };
        let step = load * (1.0 - self.config.verify_step_ratio);
        let lower = match ceiling {
            Ceiling::Server => {
                (claim.achieved_max() * ACHIEVED_RATIO).clamp(load / 2.0, step.max(load / 2.0))
            }
            Ceiling::Generator => step.min(load * (1.0 - GENERATOR_VERIFY_STEP_RATIO)),
            Ceiling::Failure => step.min(load * GENERATOR_HEADROOM_RATIO),
        };
        let lower = self.climb_config().bounded(lower);
        let claims = tries_by_load(&self.verifies).len() as u32;
        if steps_left > 0 && claims < self.config.climb.claims_max && lower < load {
            return Step::Verify { load: lower, number: 1 };
        }
        if self.failed_always() { Step::Nothing } else { self.answer(lower) }
    }

    fn answer(&self, peak: f64) -> SearchStep {
        let levels = self.levels();
        let standings = levels
            .iter()
            .map(|(purpose, level)| (*purpose, level.load, self.state_for(level, *purpose)));
        let sustained = (Purpose::Verify, peak, LevelState::Sustained);
        let verified = standings.clone().any(|it| it == sustained);
        let ceilings = standings.filter_map(|(_, load, it)| Some((load, it.ceiling()?)));
        let lowest = climb::lowest_above(peak, ceilings);
        let is_close = |load: f64| load - peak <= EXACT_DISTANCE_RATIO * load;
        let (bound, ended_by) = match lowest {
            Some((_, Ceiling::Generator)) => (Bound::AtLeast, None),
            Some((load, _)) if verified && is_close(load) => (Bound::Exact, None),
            None if peak >= self.climb_config().bounded(f64::MAX) => {
                (Bound::AtLeast, Some(SearchEnd::LoadMax))
            }
            _ => (Bound::AtLeast, Some(SearchEnd::Time)),
        };
        Step::Answer(PeakAnswer { peak, bound, ended_by, verified, missed: lowest })
    }

    /// Claims, then probes.
    fn levels(&self) -> Vec<(Purpose, Tries<'_>)> {
        let claims =
            tries_by_load(&self.verifies).into_iter().map(|level| (Purpose::Verify, level));
        claims
            .chain(tries_by_load(&self.probes).into_iter().map(|level| (Purpose::Probe, level)))
            .collect()
    }

    fn state_for(&self, level: &Tries<'_>, purpose: Purpose) -> LevelState {
        level.state(purpose, self.closed(), &self.config)
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

fn tries_by_load(tries: &[(f64, ProbeOutcome)]) -> Vec<Tries<'_>> {
    levels(tries.iter().map(|(load, outcome)| (*load, outcome)))
}

impl Policy for PeakSearch {
    type Try = ProbeOutcome;

    fn climb_config(&self) -> ClimbConfig {
        self.config.climb.scaled_to(self.closed())
    }

    fn level_state(&self, level: &Tries<'_>) -> LevelState {
        self.state_for(level, Purpose::Probe)
    }

    /// The throughput under too much load is a hint, half the load is a bound.
    fn below(&self, missed: &Tries<'_>, ceiling: Ceiling) -> f64 {
        let load = missed.load;
        match ceiling {
            Ceiling::Server => {
                let hint = missed.achieved_max() * self.config.climb.first;
                hint.clamp(load / 2.0, load * 0.9)
            }
            Ceiling::Generator => load * GENERATOR_HEADROOM_RATIO,
            Ceiling::Failure => load / 2.0,
        }
    }

    fn resolution_ratio(&self, ceiling: Ceiling) -> f64 {
        match ceiling {
            Ceiling::Generator => self.config.generator_resolution_ratio,
            Ceiling::Server | Ceiling::Failure => self.config.climb.resolution_ratio,
        }
    }

    fn reserve(&self) -> u32 {
        VERIFY_RESERVE_STEPS
    }
}

impl PeakSearch {
    /// How the peak was found, and what bounded it; `cause` says what broke a rule.
    pub fn how(&self, answer: &PeakAnswer, cause: fn(&Rule) -> String) -> String {
        let verification = match (answer.verified, self.verifies.len()) {
            (true, 1) => "was held twice",
            (true, _) => "was held when it was verified",
            (false, _) => "is an estimate, not verified",
        };
        let end = match answer.missed {
            None => "no load that could not be held was found, the peak may lie higher".to_owned(),
            Some((missed, Ceiling::Generator)) => format!(
                "{} ops/s was too much for the generator, not the server: the server's peak may \
                 lie higher",
                grouped(missed),
            ),
            Some((missed, Ceiling::Server | Ceiling::Failure)) => {
                format!("{} ops/s was not ({})", grouped(missed), self.why_missed(missed, cause))
            }
        };
        format!(
            "all clients at once reached {} ops/s; {} later, {} ops/s {verification}; {end}",
            grouped(self.closed()),
            self.steps_text(),
            grouped(answer.peak),
        )
    }

    /// Why there is no peak; `cause` says what broke a rule.
    pub fn why_none(&self, cause: fn(&Rule) -> String) -> String {
        if self.probes.is_empty() && self.verifies.is_empty() {
            let rule = self.closed.as_ref().and_then(|closed| closed.why_not.as_ref());
            let why = rule.map_or("no op finished".to_owned(), cause);
            return format!("the first probe, all clients at once, came to nothing: {why}");
        }
        let tried = self.probes.iter().chain(&self.verifies).map(|(load, _)| *load);
        let lowest = tried.reduce(f64::min).unwrap_or_default();
        format!(
            "the server failed at every load tried, in {}, down to {} ops/s; the last reason: {}; \
             name the ladder with --points or --peak",
            self.steps_text(),
            grouped(lowest),
            self.why_missed(lowest, cause),
        )
    }

    fn why_missed(&self, load: f64, cause: fn(&Rule) -> String) -> String {
        let levels = self.levels();
        let level = levels.iter().find(|(_, level)| level.load == load);
        match level.and_then(|(_, level)| level.failed(&self.config)) {
            None => "no reason given".to_owned(),
            Some(outcome) => outcome.why_not.as_ref().map_or_else(
                || {
                    format!(
                        "{:.1} % of it came through in time",
                        100.0 * (1.0 - outcome.short_ratio)
                    )
                },
                cause,
            ),
        }
    }

    fn steps_text(&self) -> String {
        let counted = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let probes = counted(self.probes.len(), "open probe");
        format!("{probes} and {}", counted(self.verifies.len(), "verification"))
    }
}

impl fmt::Display for SearchStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Saturate => f.write_str("all clients at once"),
            Step::Probe { load } => write!(f, "probe at {} ops/s", grouped(*load)),
            Step::Verify { load, .. } => write!(f, "verify {} ops/s", grouped(*load)),
            Step::Answer(answer) => write!(f, "peak {} ops/s", grouped(answer.peak)),
            Step::Nothing => f.write_str("no peak"),
        }
    }
}

#[cfg(test)]
mod tests;
