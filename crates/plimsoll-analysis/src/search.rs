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

use plimsoll_model::event::Bound;

use self::levels::{Ceiling, Level, Purpose, Standing, levels};
pub use self::outcome::{Holding, ProbeOutcome};

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
/// Loads from here on are whole numbers: nobody asks for fractions of an op.
const WHOLE_FROM_OPS_PER_S: f64 = 100.0;

/// Bounds and steps of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeakSearchConfig {
    /// First open probe as a share of the closed probe's throughput.
    pub first_ratio: f64,
    /// Loads above this share of the closed probe's throughput are tried only when this one was
    /// held: all clients at once got no more.
    pub closed_ceiling_ratio: f64,
    /// Growth while probes are held.
    pub growth_ratio: f64,
    /// The search ends when held and not held are this close.
    pub resolution_ratio: f64,
    /// The same where the generator is what did not hold.
    pub generator_resolution_ratio: f64,
    /// A load is held when no more of its ops than this are late: half of what the suite
    /// tolerates, so that the next point at that load is not left to chance.
    pub spare_ratio: f64,
    /// Different loads of open probes at most.
    pub probes_max: u32,
    /// Repeats of a step that only the generator failed, at most.
    pub generator_repeats_max: u32,
    /// A verification that fails lowers the claim by this share at least.
    pub verify_step_ratio: f64,
    /// Claims verified at most.
    pub verifies_max: u32,
    /// Loads below this are not tried.
    pub load_min_ops_per_s: f64,
    /// Loads above this are not tried.
    pub load_max_ops_per_s: f64,
}

impl Default for PeakSearchConfig {
    fn default() -> Self {
        Self {
            first_ratio: 0.95,
            closed_ceiling_ratio: 1.05,
            growth_ratio: 1.25,
            resolution_ratio: 0.03,
            generator_resolution_ratio: 0.05,
            spare_ratio: 0.025,
            probes_max: 8,
            generator_repeats_max: 3,
            verify_step_ratio: 0.05,
            verifies_max: 6,
            load_min_ops_per_s: 1.0,
            load_max_ops_per_s: plimsoll_model::suite::RATE_OPS_PER_S_MAX,
        }
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum SearchStep {
    /// Run every client without think time; report what was achieved.
    Saturate,
    /// Run an open point at this load.
    Probe {
        /// Ops per second.
        load: f64,
    },
    /// Run the claimed load once more, on the data that belongs to it.
    Verify {
        /// Ops per second.
        load: f64,
    },
    /// The peak.
    Found(FoundPeak),
    /// The server failed.
    GaveUp {
        /// Why, for a person.
        reason: String,
    },
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundPeak {
    /// Ops per second.
    pub peak: f64,
    /// Whether the server's own limit was seen.
    pub bound: Bound,
    /// What was the limit instead, where no step of the search shows it.
    pub held_back: Option<HeldBack>,
    /// How it was found and what bounded it, for a person.
    pub how: String,
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
/// the answer is [`SearchStep::Found`] or [`SearchStep::GaveUp`].
#[derive(Clone, Debug)]
pub struct PeakSearch {
    config: PeakSearchConfig,
    closed: Option<ProbeOutcome>,
    probes: Vec<(f64, ProbeOutcome)>,
    verifies: Vec<(f64, ProbeOutcome)>,
}

/// Between which loads the peak lies.
struct Bracket<'a> {
    held: Option<f64>,
    missed: Option<(&'a Level<'a>, Ceiling)>,
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
            let why = closed.why_not.as_deref().unwrap_or("no op finished");
            return SearchStep::GaveUp {
                reason: format!("the first probe, all clients at once, came to nothing: {why}"),
            };
        }
        match levels(&self.verifies).last() {
            Some(claim) => self.after_verifying(claim, steps_left),
            None => self.after_probing(steps_left),
        }
    }

    /// Takes in what became of a step.
    pub fn report(&mut self, step: &SearchStep, outcome: ProbeOutcome) {
        match step {
            SearchStep::Saturate => self.closed = Some(outcome),
            SearchStep::Probe { load } => self.probes.push((*load, outcome)),
            SearchStep::Verify { load } => self.verifies.push((*load, outcome)),
            SearchStep::Found(_) | SearchStep::GaveUp { .. } => {}
        }
    }

    /// Steps reported so far.
    pub fn steps(&self) -> u32 {
        (usize::from(self.closed.is_some()) + self.probes.len() + self.verifies.len()) as u32
    }

    fn after_probing(&self, steps_left: u32) -> SearchStep {
        let levels = levels(&self.probes);
        let hurried = steps_left <= VERIFY_RESERVE_STEPS;
        if let Some(last) = levels.last()
            && matches!(self.standing(last, Purpose::Probe), Standing::Doubtful(_))
            && !hurried
        {
            return SearchStep::Probe { load: last.load };
        }
        let bracket = self.bracket(&levels);
        let exhausted = hurried || levels.len() as u32 >= self.config.probes_max;
        match (&bracket.held, &bracket.missed) {
            _ if exhausted => self.claim(&bracket, steps_left),
            (None, None) => self.probe(self.closed() * self.config.first_ratio),
            (Some(held), None) if *held >= self.load_max() => self.claim(&bracket, steps_left),
            (Some(held), None) => self.probe(self.above(*held)),
            (Some(held), Some((missed, ceiling))) => {
                let resolution = match ceiling {
                    Ceiling::Generator => self.config.generator_resolution_ratio,
                    Ceiling::Server | Ceiling::Failure => self.config.resolution_ratio,
                };
                let middle = self.bounded(f64::midpoint(*held, missed.load));
                let is_new = middle > *held && middle < missed.load;
                match is_new && missed.load - held > resolution * missed.load {
                    true => SearchStep::Probe { load: middle },
                    false => self.claim(&bracket, steps_left),
                }
            }
            (None, Some((missed, _))) if missed.load <= self.config.load_min_ops_per_s => {
                self.claim(&bracket, steps_left)
            }
            (None, Some((missed, ceiling))) => self.probe(self.below(missed, *ceiling)),
        }
    }

    /// Nothing was missed yet: up to what all clients got, then beyond.
    fn above(&self, held: f64) -> f64 {
        let top = self.closed() * self.config.closed_ceiling_ratio;
        let grown = held * self.config.growth_ratio;
        if held < 0.99 * top { grown.min(top) } else { grown }
    }

    /// Nothing was held yet: what was achieved under too much load is a hint, half is a bound.
    fn below(&self, missed: &Level<'_>, ceiling: Ceiling) -> f64 {
        let load = missed.load;
        match ceiling {
            Ceiling::Server => {
                let hint = missed.achieved_max() * self.config.first_ratio;
                hint.clamp(load / 2.0, load * 0.9)
            }
            Ceiling::Generator => load * GENERATOR_HEADROOM_RATIO,
            Ceiling::Failure => load / 2.0,
        }
    }

    /// The load to verify, or the answer where there is no time for it.
    fn claim(&self, bracket: &Bracket<'_>, steps_left: u32) -> SearchStep {
        let load = match (bracket.held, &bracket.missed) {
            (Some(held), _) => held,
            (None, Some((_, Ceiling::Failure))) if self.failed_always() => return self.gave_up(),
            (None, Some((missed, Ceiling::Failure))) => missed.load / 2.0,
            (None, Some((missed, Ceiling::Server))) => {
                missed.achieved_min().min(missed.load) * self.config.first_ratio
            }
            (None, Some((missed, Ceiling::Generator))) => missed.load * GENERATOR_HEADROOM_RATIO,
            // No time for any open probe: what all clients got.
            (None, None) if steps_left == 0 => self.closed() * UNTRIED_RATIO,
            (None, None) => self.closed() * GENERATOR_HEADROOM_RATIO,
        };
        let load = self.bounded(load);
        if steps_left == 0 { self.found(load) } else { SearchStep::Verify { load } }
    }

    fn after_verifying(&self, claim: &Level<'_>, steps_left: u32) -> SearchStep {
        let load = claim.load;
        let ceiling = match self.standing(claim, Purpose::Verify) {
            Standing::Held => return self.found(load),
            Standing::Doubtful(_) if steps_left > 0 => return SearchStep::Verify { load },
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
        let lower = self.bounded(lower);
        let claims = levels(&self.verifies).len() as u32;
        if steps_left > 0 && claims < self.config.verifies_max && lower < load {
            return SearchStep::Verify { load: lower };
        }
        if self.failed_always() { self.gave_up() } else { self.found(lower) }
    }

    fn found(&self, peak: f64) -> SearchStep {
        let (verifies, probes) = (levels(&self.verifies), levels(&self.probes));
        let of = |levels: &[Level<'_>], purpose| -> Vec<(f64, Standing)> {
            levels.iter().map(|level| (level.load, self.standing(level, purpose))).collect()
        };
        let verified = of(&verifies, Purpose::Verify).contains(&(peak, Standing::Held));
        let all = [of(&verifies, Purpose::Verify), of(&probes, Purpose::Probe)].concat();
        let lowest = all
            .into_iter()
            .filter_map(|(load, standing)| match standing {
                Standing::Missed(ceiling) | Standing::Doubtful(ceiling) => Some((load, ceiling)),
                Standing::Held => None,
            })
            .filter(|(load, _)| *load > peak)
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let seen = |load: f64| load - peak <= SEEN_GAP_RATIO * load;
        let (bound, held_back) = match lowest {
            Some((_, Ceiling::Generator)) => (Bound::AtLeast, None),
            Some((load, _)) if verified && seen(load) => (Bound::Exact, None),
            None if peak >= self.load_max() => (Bound::AtLeast, Some(HeldBack::LoadMax)),
            _ => (Bound::AtLeast, Some(HeldBack::Time)),
        };
        let how = text::how(self, peak, verified, lowest);
        SearchStep::Found(FoundPeak { peak, bound, held_back, how })
    }

    fn gave_up(&self) -> SearchStep {
        SearchStep::GaveUp { reason: text::nothing_held(self) }
    }

    /// Highest load held below the lowest that was not.
    fn bracket<'l>(&self, levels: &'l [Level<'l>]) -> Bracket<'l> {
        let standings = levels.iter().map(|level| (level, self.standing(level, Purpose::Probe)));
        let missed = standings
            .clone()
            .filter_map(|(level, standing)| match standing {
                Standing::Missed(ceiling) | Standing::Doubtful(ceiling) => Some((level, ceiling)),
                Standing::Held => None,
            })
            .min_by(|a, b| a.0.load.total_cmp(&b.0.load));
        let below = missed.map_or(f64::INFINITY, |(level, _)| level.load);
        let held = standings
            .filter(|(level, standing)| *standing == Standing::Held && level.load < below)
            .map(|(level, _)| level.load)
            .reduce(f64::max);
        Bracket { held, missed }
    }

    fn standing(&self, level: &Level<'_>, purpose: Purpose) -> Standing {
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

    fn probe(&self, load: f64) -> SearchStep {
        SearchStep::Probe { load: self.bounded(load) }
    }

    fn load_max(&self) -> f64 {
        self.bounded(f64::MAX)
    }

    fn bounded(&self, load: f64) -> f64 {
        let max = self.config.load_max_ops_per_s.max(self.config.load_min_ops_per_s);
        let load = load.clamp(self.config.load_min_ops_per_s, max);
        if load >= WHOLE_FROM_OPS_PER_S { load.floor() } else { load }
    }
}

#[cfg(test)]
mod tests;
