//! The highest load within limits. Pure: the caller runs the load points.
//!
//! 1. An open load begins with all clients at once, which bounds it from above, and then at half of
//!    what they reached; a closed one begins with a few clients.
//! 2. The load grows by steps until one is not within the limits (or shrinks until one is), then
//!    the interval between them is halved until it is small. Clients grow faster while every figure
//!    is far from its limit. A try whose figure is too near its limit to be decided is repeated,
//!    and the figures are pooled. Points with a faulty measurement are repeated too.
//! 3. The highest load within the limits is claimed and run again until five runs were decided
//!    within the limits. One run beyond a limit may be a bad moment of the machine and is made up
//!    for by another; a second lowers the claim, and the five begin again. A re-run with a limit
//!    inside its figure's interval counts neither way, and the next one is longer. A claim that
//!    stays undecided is replaced by a lower one: the answer then names the load up to which it is
//!    undecided.
//! 4. A claim that passed is compared with loads a tenth above it, unless its upper bound was too
//!    high three times more often than not: an earlier bad moment may have hidden what the server
//!    can do. Where most of these loads are within the limits, the search goes on above.
//!
//! The next step follows from the tries so far and the time left, so that a resumed search
//! continues where it was. The answer follows from the tries alone.

mod answer;
mod evaluation;
mod level;

use plimsoll_model::assignment::Purpose;
use plimsoll_model::capacity::CapacityTry;
use plimsoll_model::event::Bound;
use plimsoll_model::suite::{CLIENTS_MAX, LoadSpec, ProfileName, RATE_OPS_PER_S_MAX, Suite};

pub(crate) use self::answer::{summarise, unsound};
pub(crate) use self::evaluation::Tried;
use self::level::{Tries, Votes};
use crate::climb::{
    self, Bracket, Ceiling, ClimbConfig, LevelState, Next, Policy, WHOLE_FROM_OPS_PER_S, levels,
    lowest_above,
};

/// Re-runs of a claim that must stay within the limits.
pub const RERUNS: u32 = 5;
/// Re-runs beyond a limit that lower a claim: one may be a bad moment of the machine.
const RERUNS_BEYOND: u32 = 2;
/// A claim is compared with loads up to this ratio above it.
const CHALLENGE_RATIO: f64 = 1.1;
/// The upper bound of a claim must have been too high this many times more often than not.
const CHALLENGE_LEAD: u32 = 3;
/// Re-runs of a claim at most: if this many count neither way, the claim is undecided.
const CLAIM_TRIES_MAX: u32 = 12;
/// The excess of an uncertain figure, as a logarithm, lowers the load by this part of it: near its
/// limit a response time grows several times faster than the load.
const EXCESS_PART: f64 = 0.125;
/// A claim is lowered to this part of it at most, however little time is left.
const HURRIED_RATIO: f64 = 0.85;
/// Clients grow by this factor while every figure is far within its limit.
const FAR_GROWTH_RATIO: f64 = 4.0;
/// Tries of a claim's upper bound, at most.
const BOUND_TRIES_MAX: u32 = 5;
/// Tries of a challenge at most.
const CHALLENGE_TRIES_MAX: u32 = 6;
/// Steps that a challenge needs: it and, if it succeeds, a claim.
const CHALLENGE_STEPS: u32 = RERUNS + 3;
/// Steps that are kept for the re-runs: of the first claim, and of some that were too high.
const RERUNS_RESERVE_STEPS: u32 = 3 * RERUNS;

/// Sessions in the window of the first load: enough to tell 99 % of them from all.
const SESSIONS_FIRST: f64 = 600.0;

/// Bounds and steps of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Unit of the loads.
    pub unit: &'static str,
    /// All clients at once come first, and the first loads are shares of what they reached: of a
    /// load in ops per second.
    pub saturates: bool,
    /// Steps. First and top may be shares of what all clients at once reached.
    pub climb: ClimbConfig,
    /// Tries of a load that stays undecided, at most.
    pub probe_tries_max: u32,
    /// This many tries with the same outcome decide the load.
    pub alike_tries_max: u32,
    /// Tries with a faulty measurement of a load, at most.
    pub faults_max: u32,
    /// A claim with this many more undecided re-runs than decided ones is undecided.
    pub undecided_max: u32,
}

impl Config {
    /// From a suite's load and a profile.
    pub fn from_suite(suite: &Suite, profile: ProfileName) -> Self {
        let saturates = matches!(suite.load, LoadSpec::Open { .. }) && !suite.load.is_sessions();
        let quick = matches!(profile, ProfileName::Quick | ProfileName::Demo);
        let open = ClimbConfig {
            first: 0.5,
            growth_ratio: 1.6,
            top: 1.05,
            resolution_ratio: if quick { 0.02 } else { 0.01 },
            loads_max: if quick { 16 } else { 24 },
            claims_max: if quick { 8 } else { 12 },
            min: 1.0,
            max: RATE_OPS_PER_S_MAX,
            whole_from: WHOLE_FROM_OPS_PER_S,
        };
        let max = f64::from(CLIENTS_MAX);
        let closed =
            ClimbConfig { first: 8.0, growth_ratio: 2.0, top: 0.0, max, whole_from: 0.0, ..open };
        let window_s = suite.profiles.get(profile).measure.as_secs_f64().max(f64::MIN_POSITIVE);
        let first = (SESSIONS_FIRST / window_s).ceil();
        let sessions = ClimbConfig { first, growth_ratio: 2.0, top: 0.0, min: 0.01, ..open };
        Self {
            unit: suite.load.unit(suite.metric),
            saturates,
            climb: match suite.load {
                LoadSpec::Closed { .. } => closed,
                LoadSpec::Open { .. } if suite.load.is_sessions() => sessions,
                LoadSpec::Open { .. } => open,
            },
            probe_tries_max: 3,
            alike_tries_max: if quick { 2 } else { 3 },
            faults_max: 4,
            undecided_max: if quick { 2 } else { 3 },
        }
    }
}

/// What to do next.
pub type Step = climb::Step<Answer>;

/// A load that was measured and re-verified.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Ops or sessions per second, or clients.
    pub value: f64,
    /// The lowest load above it that was not within the limits, or at which nothing could be
    /// measured.
    pub high: Option<f64>,
    /// The highest load between the two that stayed undecided.
    pub undecided_to: Option<f64>,
    /// Whether the server's own limit was reached.
    pub bound: Bound,
    /// Re-runs within the limits: five.
    pub passed: u32,
    /// Re-runs: one may have been beyond a limit.
    pub tries: u32,
}

/// The combined outcome of the re-runs of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimState {
    /// More are needed.
    Open,
    /// Five stayed within the limits.
    Passed,
    /// The load was too high.
    Beyond,
    /// A limit stayed inside the intervals of the figures.
    Undecided,
    /// The measurement was at fault.
    NotEvaluated,
}

/// The search. Call [`Search::next`], run that point, [`Search::report`] it, and so on until the
/// answer is [`climb::Step::Answer`] or [`climb::Step::Nothing`].
#[derive(Clone, Debug)]
pub struct Search {
    config: Config,
    closed: Option<f64>,
    tries: Vec<CapacityTry>,
}

impl Search {
    /// A search that has not begun.
    pub const fn new(config: Config) -> Self {
        Self { config, closed: None, tries: Vec::new() }
    }

    /// What all clients at once achieved, in ops per second.
    pub const fn saturated(&mut self, achieved: f64) {
        self.closed = Some(achieved);
    }

    /// Records the outcome of a probe or a re-run.
    pub fn report(&mut self, attempt: CapacityTry) {
        self.tries.push(attempt);
    }

    /// The next step, with time for `steps_left` more; the same until one is reported.
    pub fn next(&self, steps_left: u32) -> Step {
        if self.config.saturates && self.closed.is_none() {
            return Step::Saturate;
        }
        match self.claims().last() {
            Some(claim) => self.after_claiming(claim, steps_left),
            None => self.after_probing(steps_left),
        }
    }

    fn after_probing(&self, steps_left: u32) -> Step {
        let probed = self.probed();
        let bracket = match climb::next(self, &probed, steps_left) {
            Next::Try(load) => return Step::Probe { load },
            Next::Done(bracket) => bracket,
        };
        match (bracket.sustained, bracket.missed) {
            (Some(_), Some((beyond, _)))
                if beyond.is_hasty(&self.config) && steps_left > self.reserve() =>
            {
                Step::Probe { load: beyond.load }
            }
            (Some(within), _) => Step::Verify { load: within, number: 1 },
            (None, _) => Step::Nothing,
        }
    }

    fn after_claiming(&self, claim: &Tries<'_>, steps_left: u32) -> Step {
        match (self.claim_state(claim), self.answer()) {
            (ClaimState::Passed, Some(answer)) => self.challenge(&answer, steps_left),
            (ClaimState::Open, _) => {
                Step::Verify { load: claim.load, number: claim.evaluated().count() as u32 + 1 }
            }
            _ => self.lower(claim, steps_left),
        }
    }

    /// The combined outcome of the re-runs of a claim.
    fn claim_state(&self, claim: &Tries<'_>) -> ClaimState {
        let Votes { within, beyond } = claim.decided();
        let (late, faults_max) = (claim.late(), self.config.faults_max);
        let undecided = claim.undecided() >= within + self.config.undecided_max;
        if beyond >= RERUNS_BEYOND {
            ClaimState::Beyond
        } else if claim.faults() >= faults_max {
            ClaimState::NotEvaluated
        } else if within - late >= RERUNS || (within >= RERUNS && late >= faults_max) {
            ClaimState::Passed
        } else if undecided || claim.tries.len() as u32 >= CLAIM_TRIES_MAX {
            ClaimState::Undecided
        } else {
            ClaimState::Open
        }
    }

    /// How many times longer than usual this step is: an undecided load is measured longer, where
    /// there is time.
    pub fn windows(&self, step: &Step, steps_left: u32) -> u32 {
        let Step::Verify { load, .. } = step else { return 1 };
        if steps_left < RERUNS {
            return 1;
        }
        let claims = self.claims();
        let claim = claims.iter().find(|claim| claim.load == *load);
        let undecided = claim.map_or(0, Tries::undecided);
        1 << undecided.min(self.config.undecided_max - 1)
    }

    /// Lowers a claim that did not pass: by little where some of its re-runs stayed within the
    /// limits, by more each time where none did; an undecided one by its possible excess, and by
    /// more only where the one before was undecided too.
    fn lower(&self, claim: &Tries<'_>, steps_left: u32) -> Step {
        let load = claim.load;
        let claims = self.claims();
        let state = self.claim_state(claim);
        let alike = |it: &&Tries<'_>| it.decided().within == 0 && self.claim_state(it) == state;
        let clear = claims.iter().rev().take_while(alike).count();
        let hurry = if steps_left < RERUNS { 3.0 } else { 1.0 };
        let step = self.config.climb.resolution_ratio / 2.0 * 2_f64.powi(clear as i32) * hurry;
        let step = match state {
            ClaimState::Undecided => step.max(EXCESS_PART * claim.excess()),
            _ => step,
        };
        let climb = self.climb_config();
        let lower = climb.bounded(load * (1.0 - step.min(0.5)));
        // Whole loads are lowered by one at least.
        let lower = if lower >= load { climb.bounded(load - 1.0) } else { lower };
        // A claim is not lowered far below an already decided load, and with little time left that
        // load is the safer one.
        let hurried = load * HURRIED_RATIO;
        let sure = self.highest_decided(load);
        let lower = sure.map_or(lower, |sure| lower.max(climb.bounded(sure.min(hurried))));
        let sure = sure.filter(|_| steps_left < RERUNS);
        let lower = sure.map_or(lower, |sure| lower.min(climb.bounded(sure.max(hurried))));
        // A claim that passed before this one was challenged from above, and the loads between were
        // claimed already.
        let between = |answer: &Answer| {
            lower > answer.value && !claims.iter().any(|claim| claim.load == lower)
        };
        if let Some(answer) = self.answer().filter(|it| !between(it) || steps_left < RERUNS) {
            return Step::Answer(answer);
        }
        let claims = claims.len() as u32;
        let late = steps_left == 0 && sure.is_none();
        let ended = lower >= load || claims >= self.config.climb.claims_max || late;
        if ended { Step::Nothing } else { Step::Verify { load: lower, number: 1 } }
    }

    /// Is a higher load possible than the one that passed? Its upper bound may have been a bad
    /// moment of the machine, or turned out to be one.
    fn challenge(&self, answer: &Answer, steps_left: u32) -> Step {
        let (levels, claims) = (self.probed(), self.claims());
        let is_unclaimed = |level: &Tries<'_>| {
            claims.iter().all(|claim| claim.load < level.load)
                && answer.high.is_none_or(|high| level.load < high)
                && self.level_state(level) == LevelState::Sustained
        };
        let goes_on = answer.high.is_none() || levels.iter().any(is_unclaimed);
        if goes_on && steps_left >= RERUNS {
            return self.above_claim(answer, steps_left);
        }
        let above = self.climb_config().bounded(answer.value * CHALLENGE_RATIO);
        if above <= answer.value || steps_left < CHALLENGE_STEPS {
            return Step::Answer(*answer);
        }
        let near = |level: &&Tries<'_>| level.load > answer.value && level.load <= above;
        let votes = Votes::from_levels(levels.iter().filter(near));
        let tried = levels.iter().find(|level| level.load == above);
        let enough = |level: &Tries<'_>| {
            level.tries.len() as u32 >= CHALLENGE_TRIES_MAX
                || level.faults() >= self.config.faults_max
        };
        if votes.within > votes.beyond {
            return self.above_claim(answer, steps_left);
        }
        let settled = votes.beyond >= votes.within + CHALLENGE_LEAD || tried.is_some_and(enough);
        match settled || answer.bound != Bound::Exact {
            true => Step::Answer(*answer),
            false => Step::Probe { load: above },
        }
    }

    /// The search goes on above a claim that passed, and ends with it where nothing above passes.
    fn above_claim(&self, answer: &Answer, steps_left: u32) -> Step {
        match self.after_probing(steps_left) {
            Step::Verify { load, .. }
                if load <= answer.value || self.claims().iter().any(|it| it.load == load) =>
            {
                Step::Answer(*answer)
            }
            Step::Nothing => Step::Answer(*answer),
            step => step,
        }
    }

    /// The highest load whose re-runs stayed within the limits.
    pub fn answer(&self) -> Option<Answer> {
        let claims = self.claims();
        let passed = |claim: &&Tries<'_>| self.claim_state(claim) == ClaimState::Passed;
        let claim = claims.iter().filter(passed).max_by(|a, b| a.load.total_cmp(&b.load))?;
        let beyond = self.lowest_beyond(claim.load);
        let votes = claim.decided();
        Some(Answer {
            value: claim.load,
            high: beyond.map(|(load, _)| load),
            undecided_to: self.undecided_to(claim.load, beyond.map(|(load, _)| load)),
            bound: match beyond {
                Some((_, Ceiling::Server)) if claim.late() == 0 => Bound::Exact,
                _ => Bound::AtLeast,
            },
            passed: votes.within,
            tries: votes.within + votes.beyond,
        })
    }

    /// The lowest load above this one that was not within the limits, or not measured.
    fn lowest_beyond(&self, load: f64) -> Option<(f64, Ceiling)> {
        let (probed, claims) = (self.probed(), self.claims());
        let counted = probed.iter().filter(|it| !outvoted(it, &probed) && !it.is_undecided());
        let probed = counted.filter_map(|level| match self.level_state(level) {
            LevelState::Missed(ceiling) => Some((level.load, ceiling)),
            LevelState::Sustained | LevelState::Doubtful(_) => None,
        });
        let claimed = claims.iter().filter_map(|claim| match self.claim_state(claim) {
            ClaimState::Beyond => Some((claim.load, Ceiling::Server)),
            ClaimState::NotEvaluated => Some((claim.load, Ceiling::Generator)),
            ClaimState::Open | ClaimState::Passed | ClaimState::Undecided => None,
        });
        lowest_above(load, probed.chain(claimed))
    }

    /// The highest load tried, up to this one, that was decided within the limits.
    fn highest_decided(&self, to: f64) -> Option<f64> {
        let probed = self.probed();
        let claims = self.claims();
        let sustained = probed.iter().filter(|level| {
            level.load <= to
                && !level.is_undecided()
                && self.level_state(level) == LevelState::Sustained
                && !claims.iter().any(|claim| claim.load == level.load)
        });
        sustained.map(|level| level.load).reduce(f64::max)
    }

    /// The highest undecided load between these two.
    fn undecided_to(&self, value: f64, high: Option<f64>) -> Option<f64> {
        let (probed, claims) = (self.probed(), self.claims());
        let probed = probed.iter().filter(|level| level.is_undecided());
        let claims = claims.iter().filter(|it| self.claim_state(it) == ClaimState::Undecided);
        let between = |load: &f64| *load > value && high.is_none_or(|high| *load < high);
        probed.chain(claims).map(|level| level.load).filter(between).reduce(f64::max)
    }

    fn probed(&self) -> Vec<Tries<'_>> {
        self.levels(|purpose| purpose != Purpose::Verify)
    }

    fn claims(&self) -> Vec<Tries<'_>> {
        self.levels(|purpose| purpose == Purpose::Verify)
    }

    fn levels(&self, includes: fn(Purpose) -> bool) -> Vec<Tries<'_>> {
        let tries = self.tries.iter().filter(|attempt| includes(attempt.purpose));
        levels(tries.map(|attempt| (attempt.load, attempt)))
    }
}

impl Policy for Search {
    type Try = CapacityTry;

    fn climb_config(&self) -> ClimbConfig {
        let climb = self.config.climb;
        self.closed
            .filter(|_| self.config.saturates)
            .map_or(climb, |closed| climb.scaled_to(closed))
    }

    fn level_state(&self, level: &Tries<'_>) -> LevelState {
        // A fault this far above the loads within the limits is not worth a second try: loads
        // between show more.
        let is_unjudged = level.faults() > 0 && level.evaluated().next().is_none();
        let is_leap = |below: &Tries<'_>| {
            below.load * FAR_GROWTH_RATIO == level.load && below.is_far_within()
        };
        match is_unjudged && !self.config.saturates && self.probed().iter().any(is_leap) {
            true => LevelState::Missed(Ceiling::Generator),
            false => level.state(&self.config),
        }
    }

    fn above(&self, sustained: f64) -> f64 {
        let probed = self.probed();
        let far = probed.iter().any(|level| level.load == sustained && level.is_far_within());
        match !self.config.saturates && far {
            true => sustained * FAR_GROWTH_RATIO,
            false => self.climb_config().above(sustained),
        }
    }

    /// Loads that are far apart have their ratio halved, not their distance.
    fn between(&self, sustained: f64, missed: f64) -> f64 {
        if missed > 2.0 * sustained {
            (sustained * missed).sqrt()
        } else {
            f64::midpoint(sustained, missed)
        }
    }

    fn is_ignored(&self, level: &Tries<'_>, all: &[Tries<'_>]) -> bool {
        outvoted(level, all)
    }

    fn reserve(&self) -> u32 {
        if self.claims().is_empty() { RERUNS_RESERVE_STEPS } else { RERUNS }
    }

    /// Until a load is within the limits, the search continues as long as there is time to run one
    /// again.
    fn is_finished(&self, loads: u32, so_far: &Bracket<'_, CapacityTry>, steps_left: u32) -> bool {
        match (so_far.sustained, so_far.missed) {
            (None, None) => false,
            (None, Some(_)) => steps_left <= RERUNS,
            (Some(_), _) => steps_left <= self.reserve() || loads >= self.config.climb.loads_max,
        }
    }
}

/// Whether loads above this one stayed within the limits more often than it and they did not. More
/// load cannot help a server, so a bad moment was at fault.
fn outvoted(level: &Tries<'_>, levels: &[Tries<'_>]) -> bool {
    let tops = levels.iter().map(|top| top.load).filter(|top| *top > level.load);
    tops.into_iter().any(|top| {
        let between = levels.iter().filter(|it| it.load >= level.load && it.load <= top);
        let votes = Votes::from_levels(between);
        votes.within > votes.beyond
    })
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
