//! The search in sentences.

use std::fmt;

use plimsoll_model::finding::Rule;
use plimsoll_model::units::grouped;

use super::{FoundPeak, PeakSearch, SearchStep};
use crate::climb::{Ceiling, Step};

impl PeakSearch {
    /// How the peak was found, and what bounded it.
    pub fn how(&self, found: &FoundPeak) -> String {
        let held = match (found.verified, self.verifies.len()) {
            (true, 1) => "was held twice",
            (true, _) => "was held when it was verified",
            (false, _) => "is what was carried so far, not verified",
        };
        let end = match found.missed {
            None => "no load that could not be held was found, the peak may lie higher".to_owned(),
            Some((missed, Ceiling::Generator)) => format!(
                "{} ops/s was too much for the generator, not the server: the server's peak may \
                 lie higher",
                grouped(missed),
            ),
            Some((missed, Ceiling::Server | Ceiling::Failure)) => {
                format!("{} ops/s was not ({})", grouped(missed), self.why_missed(missed))
            }
        };
        format!(
            "all clients at once reached {} ops/s; {} later, {} ops/s {held}; {end}",
            grouped(self.closed()),
            self.steps_text(),
            grouped(found.peak),
        )
    }

    /// Why there is no peak.
    pub fn why_none(&self) -> String {
        if self.probes.is_empty() && self.verifies.is_empty() {
            let rule = self.closed.as_ref().and_then(|closed| closed.why_not.as_ref());
            let why = rule.map_or("no op finished".to_owned(), Rule::cause);
            return format!("the first probe, all clients at once, came to nothing: {why}");
        }
        let tried = self.probes.iter().chain(&self.verifies).map(|(load, _)| *load);
        let lowest = tried.reduce(f64::min).unwrap_or_default();
        format!(
            "the server failed at every load tried, in {}, down to {} ops/s; the last reason: {}; \
             name the ladder with --points or --peak",
            self.steps_text(),
            grouped(lowest),
            self.why_missed(lowest),
        )
    }

    fn why_missed(&self, load: f64) -> String {
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
                Rule::cause,
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
            Step::Found(found) => write!(f, "peak {} ops/s", grouped(found.peak)),
            Step::Nothing => f.write_str("no peak"),
        }
    }
}
