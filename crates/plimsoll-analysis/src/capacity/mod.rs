//! The highest load within limits. Pure: the caller runs the load points.
//!
//! 1. An open load begins with all clients at once, which bounds it from above, and then at half of
//!    what they reached; a closed one begins with a few clients.
//! 2. The load grows by steps until one is not within the limits (or shrinks until one is), then
//!    the gap between them is halved until it is small. A try whose figure is too near its limit to
//!    be decided is repeated, and the figures are taken together. Points at which the measurement
//!    was at fault are repeated too.
//! 3. The highest load within the limits is claimed and run again until five stayed within the
//!    limits. One beyond a limit may be the machine's bad moment and is made up for by another; a
//!    second lowers the claim, and the five begin again. That is a test in itself: were the true
//!    figure above its limit, five of at most six would stay below it seven times in 64 at most.
//! 4. A claim that passed is held against loads a tenth above it, unless what bounds it was too
//!    much three times more often than not: an earlier bad moment may have hidden what the server
//!    can do. Where most of them are within the limits, the search goes on above.
//!
//! The next step follows from the tries so far and the time left, so that a resumed search goes on
//! where it was, and the answer follows from the tries alone.

mod answer;
mod growth;
mod judge;
mod level;
mod text;

use plimsoll_model::assignment::Purpose;
use plimsoll_model::capacity::CapacityTry;
use plimsoll_model::event::Bound;
use plimsoll_model::suite::{CLIENTS_MAX, LoadSpec, ProfileName, RATE_OPS_PER_S_MAX, Suite};

pub(crate) use self::answer::summarise;
pub(crate) use self::judge::Tried;
use self::level::{Tries, Votes};
use crate::climb::{
    self, Bracket, Ceiling, Course, Next, Policy, Standing, WHOLE_FROM_OPS_PER_S, levels,
    lowest_above,
};

/// Re-runs of a claim that must stay within the limits.
pub const RERUNS: u32 = 5;
/// Re-runs beyond a limit that lower a claim: one may be a bad moment of the machine.
const RERUNS_BEYOND: u32 = 2;
/// A claim is held against loads up to this ratio above it.
const CHALLENGE_RATIO: f64 = 1.1;
/// What bounds a claim must have been too much so many times more often than not.
const CHALLENGE_LEAD: u32 = 3;
/// Tries of what bounds a claim, at most.
const BOUND_TRIES_MAX: u32 = 5;
/// Tries of a challenge at most.
const CHALLENGE_TRIES_MAX: u32 = 6;
/// Steps a challenge is not begun without: it and, should it succeed, a claim.
const CHALLENGE_STEPS: u32 = RERUNS + 3;
/// Steps that are kept for the re-runs: of the first claim, and of some that were too high.
const RERUNS_RESERVE_STEPS: u32 = 2 * RERUNS;

/// Bounds and steps of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The load is a number of clients: whole, and without a closed probe before it.
    pub clients: bool,
    /// Steps; of an open load first and top as shares of what all clients at once reached.
    pub course: Course,
    /// Tries of a load that stays undecided, at most.
    pub probe_tries_max: u32,
    /// So many of them that came out alike decide it.
    pub alike_tries_max: u32,
    /// Tries of a load at which the measurement was at fault, at most.
    pub faults_max: u32,
}

impl Config {
    /// Of a suite's load and a profile.
    pub fn of(suite: &Suite, profile: ProfileName) -> Self {
        let clients = matches!(suite.load, LoadSpec::Closed { .. });
        let quick = matches!(profile, ProfileName::Quick | ProfileName::Demo);
        let open = Course {
            first: 0.5,
            growth_ratio: 1.6,
            top: 1.05,
            resolution_ratio: if quick { 0.02 } else { 0.01 },
            loads_max: if quick { 16 } else { 24 },
            claims_max: if quick { 6 } else { 12 },
            min: 1.0,
            max: RATE_OPS_PER_S_MAX,
            whole_from: WHOLE_FROM_OPS_PER_S,
        };
        let max = f64::from(CLIENTS_MAX);
        let closed =
            Course { first: 8.0, growth_ratio: 2.0, top: 0.0, max, whole_from: 0.0, ..open };
        Self {
            clients,
            course: if clients { closed } else { open },
            probe_tries_max: 3,
            alike_tries_max: if quick { 2 } else { 3 },
            faults_max: 3,
        }
    }
}

/// What to do next.
pub type Step = climb::Step<Answer>;

/// A load that was measured and re-verified.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Ops per second, or clients.
    pub value: f64,
    /// The lowest load above it that was not within the limits, or at which nothing could be
    /// measured.
    pub high: Option<f64>,
    /// Whether the server's own limit was seen.
    pub bound: Bound,
    /// Re-runs within the limits: five.
    pub passed: u32,
    /// Re-runs: one may have been beyond a limit.
    pub tries: u32,
}

/// The search. Ask [`Search::next`], run that point, [`Search::report`] it, and so on until the
/// answer is [`climb::Step::Found`] or [`climb::Step::Nothing`].
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

    /// What became of a probe or a re-run.
    pub fn report(&mut self, attempt: CapacityTry) {
        self.tries.push(attempt);
    }

    /// The next step, where so many more have time; the same until one is reported.
    pub fn next(&self, steps_left: u32) -> Step {
        if !self.config.clients && self.closed.is_none() {
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
            Next::Known(bracket) => bracket,
        };
        match (bracket.held, bracket.missed) {
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
        if self.fell(claim) {
            return self.lower(claim, steps_left);
        }
        match self.answer() {
            Some(answer) if claim.votes().within >= RERUNS => self.challenge(&answer, steps_left),
            _ => Step::Verify { load: claim.load, number: claim.judged().count() as u32 + 1 },
        }
    }

    /// Whether a claim gives way.
    fn fell(&self, claim: &Tries<'_>) -> bool {
        claim.votes().beyond >= RERUNS_BEYOND || claim.faults() >= self.config.faults_max
    }

    /// A claim that did not pass gives way: by little where some of its re-runs stayed within the
    /// limits, and by more each time where none did.
    fn lower(&self, claim: &Tries<'_>, steps_left: u32) -> Step {
        let load = claim.load;
        let claims = self.claims();
        let clear = claims.iter().rev().take_while(|claim| claim.votes().within == 0).count();
        let hurry = if steps_left < RERUNS { 3.0 } else { 1.0 };
        let step = self.config.course.resolution_ratio / 2.0 * 2_f64.powi(clear as i32) * hurry;
        let course = self.course();
        let lower = course.bounded(load * (1.0 - step.min(0.5)));
        // Whole loads give way by one at least.
        let lower = if lower >= load { course.bounded(load - 1.0) } else { lower };
        // One passed before this was tried above it, and what lies between was claimed already.
        let between = |answer: &Answer| {
            lower > answer.value && !claims.iter().any(|claim| claim.load == lower)
        };
        if let Some(answer) = self.answer().filter(|it| !between(it) || steps_left < RERUNS) {
            return Step::Found(answer);
        }
        let claims = claims.len() as u32;
        let ended = lower >= load || claims >= self.config.course.claims_max || steps_left == 0;
        if ended { Step::Nothing } else { Step::Verify { load: lower, number: 1 } }
    }

    /// Is what passed all there is? What bounds it may have been a bad moment of the machine.
    fn challenge(&self, answer: &Answer, steps_left: u32) -> Step {
        let above = self.course().bounded(answer.value * CHALLENGE_RATIO);
        if above <= answer.value || steps_left < CHALLENGE_STEPS {
            return Step::Found(*answer);
        }
        let levels = self.probed();
        let near = |level: &&Tries<'_>| level.load > answer.value && level.load <= above;
        let votes = Votes::of(levels.iter().filter(near));
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
            true => Step::Found(*answer),
            false => Step::Probe { load: above },
        }
    }

    /// The search goes on above a claim that passed, and ends with it where nothing above passes.
    fn above_claim(&self, answer: &Answer, steps_left: u32) -> Step {
        match self.after_probing(steps_left) {
            Step::Verify { load, .. }
                if load <= answer.value || self.claims().iter().any(|it| it.load == load) =>
            {
                Step::Found(*answer)
            }
            Step::Nothing => Step::Found(*answer),
            step => step,
        }
    }

    /// The highest load whose re-runs stayed within the limits.
    pub fn answer(&self) -> Option<Answer> {
        let claims = self.claims();
        let passed = |claim: &&Tries<'_>| claim.votes().within >= RERUNS && !self.fell(claim);
        let claim = claims.iter().filter(passed).max_by(|a, b| a.load.total_cmp(&b.load))?;
        let beyond = self.lowest_beyond(claim.load);
        let votes = claim.votes();
        Some(Answer {
            value: claim.load,
            high: beyond.map(|(load, _)| load),
            bound: match beyond {
                Some((_, Ceiling::Server)) => Bound::Exact,
                _ => Bound::AtLeast,
            },
            passed: votes.within,
            tries: votes.within + votes.beyond,
        })
    }

    /// The lowest load above this one that was not within the limits, or not measured.
    fn lowest_beyond(&self, load: f64) -> Option<(f64, Ceiling)> {
        let (probed, claims) = (self.probed(), self.claims());
        let counted = probed.iter().filter(|level| !outvoted(level, &probed));
        let probed = counted.filter_map(|level| match self.standing(level) {
            Standing::Missed(ceiling) => Some((level.load, ceiling)),
            Standing::Held | Standing::Doubtful(_) => None,
        });
        let claimed = claims.iter().filter(|claim| self.fell(claim)).map(|claim| {
            match claim.votes().beyond >= RERUNS_BEYOND {
                true => (claim.load, Ceiling::Server),
                false => (claim.load, Ceiling::Generator),
            }
        });
        lowest_above(load, probed.chain(claimed))
    }

    fn probed(&self) -> Vec<Tries<'_>> {
        self.levels(|purpose| purpose != Purpose::Verify)
    }

    fn claims(&self) -> Vec<Tries<'_>> {
        self.levels(|purpose| purpose == Purpose::Verify)
    }

    fn levels(&self, wanted: fn(Purpose) -> bool) -> Vec<Tries<'_>> {
        let tries = self.tries.iter().filter(|attempt| wanted(attempt.purpose));
        levels(tries.map(|attempt| (attempt.load, attempt)))
    }
}

impl Policy for Search {
    type Try = CapacityTry;

    fn course(&self) -> Course {
        let course = self.config.course;
        self.closed.filter(|_| !self.config.clients).map_or(course, |closed| course.of(closed))
    }

    fn standing(&self, level: &Tries<'_>) -> Standing {
        level.standing(&self.config)
    }

    fn is_ignored(&self, level: &Tries<'_>, all: &[Tries<'_>]) -> bool {
        outvoted(level, all)
    }

    fn reserve(&self) -> u32 {
        if self.claims().is_empty() { RERUNS_RESERVE_STEPS } else { RERUNS }
    }

    /// Until a load is within the limits it is looked for as long as there is time to run it again.
    fn is_over(&self, loads: u32, so_far: &Bracket<'_, CapacityTry>, steps_left: u32) -> bool {
        match (so_far.held, so_far.missed) {
            (None, None) => false,
            (None, Some(_)) => steps_left <= RERUNS,
            (Some(_), _) => steps_left <= self.reserve() || loads >= self.config.course.loads_max,
        }
    }
}

/// Whether loads above this one stayed within the limits more often than it and they did not: more
/// load cannot help a server, so that a bad moment was at fault.
fn outvoted(level: &Tries<'_>, levels: &[Tries<'_>]) -> bool {
    let tops = levels.iter().map(|top| top.load).filter(|top| *top > level.load);
    tops.into_iter().any(|top| {
        let between = levels.iter().filter(|it| it.load >= level.load && it.load <= top);
        let votes = Votes::of(between);
        votes.within > votes.beyond
    })
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
