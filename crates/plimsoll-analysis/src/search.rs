//! Which load to try next when the peak is unknown. Pure: the caller runs the points.
//!
//! 1. A closed probe (all clients, no think time) estimates the highest throughput X₀.
//! 2. Open probes start at 0.95 X₀, grow while they are held, then halve the gap between the
//!    highest load held and the lowest not held until it is within 3 %.
//! 3. The load found is run once more; a failure lowers it by 5 % and it is run again.
//!
//! Every stage is bounded; a search always ends.

use std::fmt;

use plimsoll_model::result::PointResult;
use plimsoll_model::units::grouped;

use crate::limit::generator_limited;

/// Rules that decide whether a load was held. The others judge how well it was measured.
const HELD_RULES: [&str; 10] = [
    "rate",
    "errors",
    "corrupt",
    "not_sent",
    "send_lag",
    "generator_cpu",
    "clients_lost",
    "ended_early",
    "nothing_done",
    "panic",
];

/// Bounds and steps of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeakSearchConfig {
    /// First open probe as a share of the closed probe's throughput.
    pub first_ratio: f64,
    /// Growth while probes are held.
    pub growth_ratio: f64,
    /// The search ends when held and not held are this close.
    pub resolution_ratio: f64,
    /// Open probes at most.
    pub probes_max: u32,
    /// A verification that fails lowers the claim by this share.
    pub verify_step_ratio: f64,
    /// Verifications at most.
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
            growth_ratio: 1.25,
            resolution_ratio: 0.03,
            probes_max: 8,
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
    /// Run the claimed load once more.
    Verify {
        /// Ops per second.
        load: f64,
    },
    /// The re-verified peak.
    Found {
        /// Ops per second.
        peak: f64,
        /// How it was found and what bounded it, for a person.
        how: String,
    },
    /// No load was held.
    GaveUp {
        /// Why, for a person.
        reason: String,
    },
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeOutcome {
    /// Ops per second asked for (clients, for the closed probe).
    pub requested: f64,
    /// Ops per second finished without error.
    pub achieved: f64,
    /// Ops per second that came due; absent for the closed probe.
    pub offered: Option<f64>,
    /// The load was held: rate, errors, unsent ops, send lag and generator within their limits, and
    /// the mean service time below the suite's cap.
    pub held: bool,
    /// The generator, not the server, is why it was not held.
    pub generator_limited: bool,
    /// Why it was not held, for a person.
    pub why_not: Option<String>,
}

impl ProbeOutcome {
    /// The outcome of an analysed point.
    pub fn of(point: &PointResult) -> Self {
        let breach = point.reasons.iter().find(|r| HELD_RULES.contains(&r.rule.as_str()));
        // A load that the suite would not count cannot be its peak.
        let breach = breach.or(point.not_counted_because.as_ref());
        Self {
            requested: point.requested,
            achieved: point.achieved_ops_per_s.unwrap_or_default(),
            offered: point.offered_ops_per_s,
            held: breach.is_none(),
            generator_limited: generator_limited(point),
            why_not: breach.map(|finding| finding.text.clone()),
        }
    }
}

/// Was the load held, as far as the search is concerned?
pub fn held(point: &PointResult) -> bool {
    ProbeOutcome::of(point).held
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    Saturate,
    Probe { load: f64 },
    Verify { load: f64 },
    Found { peak: f64 },
    GaveUp { reason: String },
}

/// The search. Ask [`PeakSearch::next`], run that point, [`PeakSearch::report`], and so on until
/// the answer is [`SearchStep::Found`] or [`SearchStep::GaveUp`].
#[derive(Clone, Debug)]
pub struct PeakSearch {
    config: PeakSearchConfig,
    stage: Stage,
    estimate: f64,
    held_max: Option<f64>,
    missed_min: Option<f64>,
    probes: u32,
    verifies: u32,
    generator_limited: bool,
    why_missed: Option<String>,
}

impl PeakSearch {
    /// A search that has not begun.
    pub const fn new(config: PeakSearchConfig) -> Self {
        Self {
            config,
            stage: Stage::Saturate,
            estimate: 0.0,
            held_max: None,
            missed_min: None,
            probes: 0,
            verifies: 0,
            generator_limited: false,
            why_missed: None,
        }
    }

    /// The next step; the same until it is reported.
    pub fn next(&self) -> SearchStep {
        match &self.stage {
            Stage::Saturate => SearchStep::Saturate,
            Stage::Probe { load } => SearchStep::Probe { load: *load },
            Stage::Verify { load } => SearchStep::Verify { load: *load },
            Stage::Found { peak } => SearchStep::Found { peak: *peak, how: self.how(*peak) },
            Stage::GaveUp { reason } => SearchStep::GaveUp { reason: reason.clone() },
        }
    }

    /// Takes in what became of the step that [`PeakSearch::next`] named.
    pub fn report(&mut self, outcome: &ProbeOutcome) {
        self.stage = match self.stage.clone() {
            Stage::Saturate => self.after_saturating(outcome),
            Stage::Probe { load } => self.after_probe(load, outcome),
            Stage::Verify { load } => self.after_verify(load, outcome),
            ended @ (Stage::Found { .. } | Stage::GaveUp { .. }) => ended,
        };
    }

    fn after_saturating(&mut self, outcome: &ProbeOutcome) -> Stage {
        if !outcome.achieved.is_finite() || outcome.achieved <= 0.0 {
            let why = outcome.why_not.as_deref().unwrap_or("no op finished");
            return Stage::GaveUp {
                reason: format!("the first probe, all clients at once, came to nothing: {why}"),
            };
        }
        self.estimate = outcome.achieved;
        Stage::Probe { load: self.bounded(outcome.achieved * self.config.first_ratio) }
    }

    fn after_probe(&mut self, load: f64, outcome: &ProbeOutcome) -> Stage {
        self.probes += 1;
        if outcome.held {
            self.held_max = Some(self.held_max.map_or(load, |held| held.max(load)));
        } else {
            self.miss(load, outcome);
        }
        let exhausted = self.probes >= self.config.probes_max;
        match (self.held_max, self.missed_min) {
            (Some(held), _) if exhausted || held >= self.config.load_max_ops_per_s => {
                Stage::Verify { load: held }
            }
            (Some(held), None) => {
                Stage::Probe { load: self.bounded(held * self.config.growth_ratio) }
            }
            (Some(held), Some(missed)) => self.between(held, missed),
            (None, Some(missed)) if exhausted || missed <= self.config.load_min_ops_per_s => {
                self.nothing_held()
            }
            // Nothing held yet: what was achieved under too much load is a hint, half is a bound.
            (None, _) => {
                let hint = outcome.achieved * self.config.first_ratio;
                Stage::Probe { load: self.bounded(hint.clamp(load / 2.0, load * 0.9)) }
            }
        }
    }

    fn between(&self, held: f64, missed: f64) -> Stage {
        match missed - held <= self.config.resolution_ratio * missed {
            true => Stage::Verify { load: held },
            false => Stage::Probe { load: f64::midpoint(held, missed) },
        }
    }

    fn after_verify(&mut self, load: f64, outcome: &ProbeOutcome) -> Stage {
        self.verifies += 1;
        if outcome.held {
            return Stage::Found { peak: load };
        }
        self.miss(load, outcome);
        let lower = load * (1.0 - self.config.verify_step_ratio);
        let exhausted = self.verifies >= self.config.verifies_max;
        if exhausted || lower < self.config.load_min_ops_per_s {
            return self.nothing_held();
        }
        Stage::Verify { load: lower }
    }

    fn miss(&mut self, load: f64, outcome: &ProbeOutcome) {
        // Noise may miss a load below one that was held: the lower one counts.
        self.held_max = self.held_max.filter(|held| *held < load);
        if self.missed_min.is_none_or(|missed| load <= missed) {
            self.missed_min = Some(load);
            self.generator_limited = outcome.generator_limited;
            self.why_missed = outcome.why_not.clone();
        }
    }

    fn nothing_held(&self) -> Stage {
        let why = self.why_missed.as_deref().unwrap_or("no reason given");
        Stage::GaveUp {
            reason: format!(
                "no load was held in {} probes and {} verifications, down to {} ops/s; the last \
                 reason: {why}; name the ladder with --points or --peak",
                self.probes,
                self.verifies,
                grouped(self.missed_min.unwrap_or_default()),
            ),
        }
    }

    fn bounded(&self, load: f64) -> f64 {
        load.clamp(self.config.load_min_ops_per_s, self.config.load_max_ops_per_s)
    }

    fn how(&self, peak: f64) -> String {
        let mut text = format!(
            "all clients at once reached {} ops/s; {} open probes and {} {} later, {} ops/s was \
             held twice",
            grouped(self.estimate),
            self.probes,
            self.verifies,
            if self.verifies == 1 { "verification" } else { "verifications" },
            grouped(peak),
        );
        if self.verifies > 1 {
            text = text.replace("held twice", "held when it was verified");
        }
        let end = match (self.missed_min, self.generator_limited) {
            (None, _) => {
                "; no load that could not be held was found, the peak may lie higher".to_owned()
            }
            (Some(missed), true) => format!(
                "; {} ops/s was too much for the generator, not the server: the server's peak may \
                 lie higher",
                grouped(missed),
            ),
            (Some(missed), false) => {
                let why = self.why_missed.as_deref().unwrap_or("load not held");
                // The remedy after the semicolon is for points a user asked for.
                let cause = why.split(';').next().unwrap_or(why);
                format!("; {} ops/s was not ({cause})", grouped(missed))
            }
        };
        text + &end
    }
}

impl fmt::Display for SearchStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Saturate => f.write_str("all clients at once"),
            Self::Probe { load } => write!(f, "probe at {} ops/s", grouped(*load)),
            Self::Verify { load } => write!(f, "verify {} ops/s", grouped(*load)),
            Self::Found { peak, .. } => write!(f, "peak {} ops/s", grouped(*peak)),
            Self::GaveUp { reason } => write!(f, "no peak: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests;
