//! The search in sentences.

use std::fmt;

use plimsoll_model::units::grouped;

use super::{FoundPeak, Miss, NoPeak, SearchStep};
use crate::climb::{Ceiling, Step};

/// How the peak was found, and what bounded it.
impl fmt::Display for FoundPeak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = match (self.verified, self.verifies) {
            (true, 1) => "was held twice",
            (true, _) => "was held when it was verified",
            (false, _) => "is what was carried so far, not verified",
        };
        write!(
            f,
            "all clients at once reached {} ops/s; {} later, {} ops/s {held}; ",
            grouped(self.closed),
            steps(self.probes, self.verifies),
            grouped(self.peak),
        )?;
        match &self.missed {
            None => {
                f.write_str("no load that could not be held was found, the peak may lie higher")
            }
            Some((missed, Ceiling::Generator, _)) => write!(
                f,
                "{} ops/s was too much for the generator, not the server: the server's peak may \
                 lie higher",
                grouped(*missed),
            ),
            Some((missed, Ceiling::Server | Ceiling::Failure, why)) => {
                write!(f, "{} ops/s was not ({})", grouped(*missed), reason(why.as_ref()))
            }
        }
    }
}

impl fmt::Display for NoPeak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingDone(rule) => {
                let why = rule.as_ref().map_or("no op finished".to_owned(), |rule| rule.cause());
                write!(f, "the first probe, all clients at once, came to nothing: {why}")
            }
            Self::Failed { probes, verifies, lowest, why } => write!(
                f,
                "the server failed at every load tried, in {}, down to {} ops/s; the last reason: \
                 {}; name the ladder with --points or --peak",
                steps(*probes, *verifies),
                grouped(*lowest),
                reason(why.as_ref()),
            ),
        }
    }
}

fn reason(why: Option<&Miss>) -> String {
    match why {
        None => "no reason given".to_owned(),
        Some(Miss::Rule(rule)) => rule.cause(),
        Some(Miss::NoSpare(through_ratio)) => {
            format!("{:.1} % of it came through in time", 100.0 * through_ratio)
        }
    }
}

fn steps(probes: u32, verifies: u32) -> String {
    let counted = |n: u32, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    format!("{} and {}", counted(probes, "open probe"), counted(verifies, "verification"))
}

impl fmt::Display for SearchStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Saturate => f.write_str("all clients at once"),
            Step::Probe { load } => write!(f, "probe at {} ops/s", grouped(*load)),
            Step::Verify { load, .. } => write!(f, "verify {} ops/s", grouped(*load)),
            Step::Found(found) => write!(f, "peak {} ops/s", grouped(found.peak)),
            Step::Nothing(why) => write!(f, "no peak: {why}"),
        }
    }
}
