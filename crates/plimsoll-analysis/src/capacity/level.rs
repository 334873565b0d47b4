//! The combined outcome of the tries of one load.

use plimsoll_model::capacity::{CapacityTry, LimitFigure, TryOutcome};

use super::{BOUND_TRIES_MAX, CHALLENGE_LEAD, Config};
use crate::climb::{Ceiling, Level, LevelState};

/// The server was over the limits.
const BEYOND: LevelState = LevelState::Missed(Ceiling::Server);
/// Once more, before it is decided.
const OPEN: LevelState = LevelState::Doubtful(Ceiling::Server);
/// A load whose figures are below this share of their limits is far from the highest.
const FAR_WITHIN_RATIO: f64 = 0.25;
/// A figure that may be twice its limit is too uncertain to show by how much the load is too high;
/// one whose interval has no upper end may be twice as much.
const EXCESS_MAX: f64 = std::f64::consts::LN_2;
/// How far a figure without an interval may be off, as a logarithm: arbitrarily far.
const UNKNOWN: f64 = 10.0;

/// All tries of a load with one purpose.
pub(super) type Tries<'a> = Level<'a, CapacityTry>;

/// Outcomes of tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Votes {
    pub within: u32,
    pub beyond: u32,
}

impl Votes {
    /// The votes of all these loads.
    pub(super) fn from_levels<'a>(levels: impl Iterator<Item = &'a Tries<'a>>) -> Self {
        levels.map(Tries::votes).fold(Self::default(), |sum, votes| Self {
            within: sum.within + votes.within,
            beyond: sum.beyond + votes.beyond,
        })
    }
}

impl Tries<'_> {
    /// Of a step of the search. Figures of several tries are pooled, so that their intervals
    /// shrink; a load that is undecided after the last try is decided by its figure. Tries that
    /// contradict each other are not averaged, because one bad moment of the machine is many times
    /// its limit: another try is made, and the middle one counts.
    pub(super) fn state(&self, config: &Config) -> LevelState {
        let n = self.evaluated().count() as u32;
        if n == 0 {
            let all = self.faults() >= config.faults_max;
            return if all { LevelState::Missed(Ceiling::Generator) } else { OPEN };
        }
        // Faults beside evaluated tries are no reason to go on for ever.
        let more = n < config.probe_tries_max && self.faults() < config.faults_max;
        let margins = self.margins();
        // A load that was not sustained, or that the server failed under.
        let failed = n as usize - margins.len();
        match failed {
            _ if margins.is_empty() => return BEYOND,
            1.. if more => return OPEN,
            1.. if failed >= margins.len() => return BEYOND,
            _ => {}
        }
        let beyond = margins.iter().filter(|margin| margin.at >= 0.0).count();
        if beyond > 0 && beyond < margins.len() && more {
            return OPEN;
        }
        match Margin::pooled(&margins) {
            Margin { low, .. } if low >= 0.0 => BEYOND,
            Margin { high, .. } if high < 0.0 => LevelState::Sustained,
            // Too few ops for an interval, and far from the limit: a higher load has more ops.
            Margin { at, low, .. } if at < FAR_WITHIN_RATIO.ln() && at - low > UNKNOWN / 2.0 => {
                LevelState::Sustained
            }
            _ if more && n < config.alike_tries_max => OPEN,
            Margin { at, .. } if at < 0.0 => LevelState::Sustained,
            _ => BEYOND,
        }
    }

    /// Tries that show something about the server.
    pub(super) fn evaluated(&self) -> impl Iterator<Item = &CapacityTry> {
        let is_evaluated = |attempt: &&&CapacityTry| attempt.standing != TryOutcome::NotJudged;
        self.tries.iter().filter(is_evaluated).copied()
    }

    fn margins(&self) -> Vec<Margin> {
        self.evaluated().filter_map(Margin::from_attempt).collect()
    }

    /// Tries that show nothing about the server.
    pub(super) fn faults(&self) -> u32 {
        (self.tries.len() - self.evaluated().count()) as u32
    }

    /// Whether one bad moment of the machine may explain every miss: it must not hide what the
    /// server can do.
    pub(super) fn is_hasty(&self, config: &Config) -> bool {
        let votes = self.votes();
        votes.beyond < votes.within + CHALLENGE_LEAD
            && (self.tries.len() as u32) < BOUND_TRIES_MAX
            && self.faults() < config.faults_max
    }

    /// Outcomes of re-runs: undecided ones count neither way.
    pub(super) fn decided(&self) -> Votes {
        let are = |outcome| self.tries.iter().filter(|it| it.standing == outcome).count() as u32;
        Votes { within: are(TryOutcome::Within), beyond: are(TryOutcome::NotWithin) }
    }

    /// Re-runs that stayed undecided.
    pub(super) fn undecided(&self) -> u32 {
        self.tries.iter().filter(|it| it.standing == TryOutcome::Undecided).count() as u32
    }

    /// Tries within the limits although the generator was late.
    pub(super) fn late(&self) -> u32 {
        self.tries.iter().filter(|attempt| attempt.late).count() as u32
    }

    /// By how much the figures of a typical try may be above their limits: the logarithm of a
    /// ratio. A bad moment of the machine, with its wide interval, is not typical.
    pub(super) fn excess(&self) -> f64 {
        let mut highs: Vec<f64> = self.margins().iter().map(|margin| margin.high).collect();
        highs.sort_by(f64::total_cmp);
        highs.len().checked_sub(1).map_or(0.0, |last| highs[last / 2]).clamp(0.0, EXCESS_MAX)
    }

    /// Whether no figure comes near its limit: below a quarter of it, with its interval.
    pub(super) fn is_far_within(&self) -> bool {
        let margins = self.margins();
        !margins.is_empty() && Margin::pooled(&margins).high < FAR_WITHIN_RATIO.ln()
    }

    /// Whether the figures of all tries, taken together, leave open on which side of the limit the
    /// load is.
    pub(super) fn is_undecided(&self) -> bool {
        let margins = self.margins();
        if margins.is_empty() || margins.len() < self.evaluated().count() {
            return false;
        }
        let Margin { low, high, .. } = Margin::pooled(&margins);
        low < 0.0 && high >= 0.0
    }

    /// By the figures as measured: tries within the limits and tries beyond them.
    pub(super) fn votes(&self) -> Votes {
        let within = self.evaluated().filter(|attempt| attempt.passed).count() as u32;
        Votes { within, beyond: self.evaluated().count() as u32 - within }
    }

    /// A try that was not within the limits; if possible, one that shows something about the
    /// server.
    pub(super) fn failed(&self) -> Option<&CapacityTry> {
        let failed = |attempt: &&CapacityTry| !attempt.passed;
        self.evaluated().find(failed).or_else(|| self.tries.last().copied().filter(failed))
    }
}

/// How far the worst figure lies from its limit: the logarithm of their ratio, below zero within.
#[derive(Clone, Copy, Debug)]
struct Margin {
    at: f64,
    low: f64,
    high: f64,
}

impl Margin {
    /// `None` where the load was not sustained, or where the broken limit is not a time.
    fn from_attempt(attempt: &CapacityTry) -> Option<Self> {
        let times = || attempt.figures.iter().filter(|figure| figure.unit == "ns");
        if attempt.figures.iter().any(|figure| figure.unit != "ns" && !figure.holds()) {
            return None;
        }
        if attempt.figures.is_empty() || times().any(|figure| figure.value.is_none()) {
            return None;
        }
        let certain = Self { at: -1.0, low: -1.0, high: -1.0 };
        Some(times().filter_map(Self::of_figure).reduce(Self::worse).unwrap_or(certain))
    }

    fn of_figure(figure: &LimitFigure) -> Option<Self> {
        let ratio = |value: f64| (value.max(f64::MIN_POSITIVE) / figure.below).ln();
        let at = ratio(figure.value?);
        Some(match figure.interval {
            Some([low, high]) if high.is_infinite() => {
                Self { at, low: ratio(low), high: at + EXCESS_MAX }
            }
            Some([low, high]) => Self { at, low: ratio(low), high: ratio(high) },
            None => Self { at, low: at - UNKNOWN, high: at + UNKNOWN },
        })
    }

    fn worse(self, other: Self) -> Self {
        Self {
            at: self.at.max(other.at),
            low: self.low.max(other.low),
            high: self.high.max(other.high),
        }
    }

    /// Of several tries of equal weight: the middle of their figures.
    fn pooled(margins: &[Self]) -> Self {
        let n = margins.len() as f64;
        let mean = |of: fn(&Self) -> f64| margins.iter().map(of).sum::<f64>() / n;
        let mut sorted: Vec<f64> = margins.iter().map(|margin| margin.at).collect();
        sorted.sort_by(f64::total_cmp);
        let at = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        let below = mean(|margin| margin.at - margin.low) / n.sqrt();
        let above = mean(|margin| margin.high - margin.at) / n.sqrt();
        Self { at, low: at - below, high: at + above }
    }
}
