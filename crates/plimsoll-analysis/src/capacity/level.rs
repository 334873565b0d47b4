//! What the tries of one load come to, taken together.

use plimsoll_model::capacity::{CapacityTry, LimitFigure, TryStanding};

use super::{BOUND_TRIES_MAX, CHALLENGE_LEAD, Config};
use crate::climb::{Ceiling, Level, Standing};

/// The server was over the limits.
const BEYOND: Standing = Standing::Missed(Ceiling::Server);
/// Once more, before it is decided.
const OPEN: Standing = Standing::Doubtful(Ceiling::Server);
/// How far a figure without an interval may lie off, as a logarithm: anywhere.
const UNKNOWN: f64 = 10.0;

/// All tries of a load with one purpose.
pub(super) type Tries<'a> = Level<'a, CapacityTry>;

/// How tries came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Votes {
    pub within: u32,
    pub beyond: u32,
}

impl Votes {
    /// Of all these loads.
    pub(super) fn of<'a>(levels: impl Iterator<Item = &'a Tries<'a>>) -> Self {
        levels.map(Tries::votes).fold(Self::default(), |sum, votes| Self {
            within: sum.within + votes.within,
            beyond: sum.beyond + votes.beyond,
        })
    }
}

impl Tries<'_> {
    /// Of a step of the search: figures of several tries are taken together, so that their
    /// intervals shrink; what is still undecided after the last is decided by its figure. Tries
    /// that contradict each other are no average: one bad moment of the machine is many times its
    /// limit. Another is made, and the middle one counts.
    pub(super) fn standing(&self, config: &Config) -> Standing {
        let judged: Vec<&CapacityTry> = self.judged().collect();
        let n = judged.len() as u32;
        if n == 0 {
            let all = self.faults() >= config.faults_max;
            return if all { Standing::Missed(Ceiling::Generator) } else { OPEN };
        }
        // Faults beside tries that were judged are no reason to go on for ever.
        let more = n < config.probe_tries_max && self.faults() < config.faults_max;
        let margins: Vec<Margin> = judged.iter().filter_map(|it| Margin::of(it)).collect();
        // A load that was not held, or that the server failed under.
        let failed = judged.len() - margins.len();
        match (failed, margins.is_empty()) {
            (_, true) => return BEYOND,
            (0, false) => {}
            (_, false) if more => return OPEN,
            (_, false) if 2 * failed >= judged.len() => return BEYOND,
            (_, false) => {}
        }
        let beyond = margins.iter().filter(|margin| margin.at >= 0.0).count();
        if beyond > 0 && beyond < margins.len() && more {
            return OPEN;
        }
        match Margin::pooled(&margins) {
            Margin { low, .. } if low >= 0.0 => BEYOND,
            Margin { high, .. } if high < 0.0 => Standing::Held,
            _ if more && n < config.alike_tries_max => OPEN,
            Margin { at, .. } if at < 0.0 => Standing::Held,
            _ => BEYOND,
        }
    }

    /// Tries that say something of the server.
    pub(super) fn judged(&self) -> impl Iterator<Item = &CapacityTry> {
        let said = |attempt: &&&CapacityTry| attempt.standing != TryStanding::NotJudged;
        self.tries.iter().filter(said).copied()
    }

    /// Tries that do not.
    pub(super) fn faults(&self) -> u32 {
        (self.tries.len() - self.judged().count()) as u32
    }

    /// Whether a bad moment of the machine may still have been all: it must not hide what the
    /// server can do.
    pub(super) fn is_hasty(&self, config: &Config) -> bool {
        let votes = self.votes();
        votes.beyond < votes.within + CHALLENGE_LEAD
            && (self.tries.len() as u32) < BOUND_TRIES_MAX
            && self.faults() < config.faults_max
    }

    /// Tries within the limits and tries beyond them.
    pub(super) fn votes(&self) -> Votes {
        let within = self.judged().filter(|attempt| attempt.passed).count() as u32;
        Votes { within, beyond: self.judged().count() as u32 - within }
    }

    /// A try that was not within the limits; if it can be, one that says something of the server.
    pub(super) fn failed(&self) -> Option<&CapacityTry> {
        let failed = |attempt: &&CapacityTry| !attempt.passed;
        self.judged().find(failed).or_else(|| self.tries.last().copied().filter(failed))
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
    /// `None` where the load was not held or a limit was broken that is no time.
    fn of(attempt: &CapacityTry) -> Option<Self> {
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

    /// Of several tries, each as good as the other: the middle of their figures.
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
