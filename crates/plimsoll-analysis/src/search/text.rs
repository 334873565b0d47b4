//! The search in sentences.

use std::fmt;

use plimsoll_model::units::grouped;

use super::levels::{Ceiling, levels};
use super::{PeakSearch, SearchStep};

/// How `peak` was found, and what bounded it.
pub(super) fn how(
    search: &PeakSearch,
    peak: f64,
    verified: bool,
    lowest: Option<(f64, Ceiling)>,
) -> String {
    let (probes, verifies) = (search.probes.len(), search.verifies.len());
    let held = match (verified, verifies) {
        (true, 1) => "was held twice",
        (true, _) => "was held when it was verified",
        (false, _) => "is what was carried so far, not verified",
    };
    let text = format!(
        "all clients at once reached {} ops/s; {} and {} later, {} ops/s {held}",
        grouped(search.closed()),
        counted(probes, "open probe"),
        counted(verifies, "verification"),
        grouped(peak),
    );
    text + &end(search, lowest)
}

fn end(search: &PeakSearch, lowest: Option<(f64, Ceiling)>) -> String {
    match lowest {
        None => "; no load that could not be held was found, the peak may lie higher".to_owned(),
        Some((missed, Ceiling::Generator)) => format!(
            "; {} ops/s was too much for the generator, not the server: the server's peak may lie \
             higher",
            grouped(missed),
        ),
        Some((missed, Ceiling::Server | Ceiling::Failure)) => {
            let why = why_missed(search, missed);
            // The remedy after the semicolon is for points a user asked for.
            let cause = why.split(';').next().unwrap_or(&why);
            format!("; {} ops/s was not ({cause})", grouped(missed))
        }
    }
}

/// The server failed at every load tried.
pub(super) fn nothing_held(search: &PeakSearch) -> String {
    let tried = search.probes.iter().chain(&search.verifies).map(|(load, _)| *load);
    let lowest = tried.reduce(f64::min).unwrap_or_default();
    format!(
        "the server failed at every load tried, in {} and {}, down to {} ops/s; the last reason: \
         {}; name the ladder with --points or --peak",
        counted(search.probes.len(), "open probe"),
        counted(search.verifies.len(), "verification"),
        grouped(lowest),
        why_missed(search, lowest),
    )
}

fn why_missed(search: &PeakSearch, load: f64) -> String {
    let (verifies, probes) = (levels(&search.verifies), levels(&search.probes));
    let level = verifies.iter().chain(&probes).find(|level| level.load == load);
    let why = level.and_then(|level| level.why_not(&search.config));
    why.unwrap_or_else(|| "no reason given".to_owned())
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

impl fmt::Display for SearchStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Saturate => f.write_str("all clients at once"),
            Self::Probe { load } => write!(f, "probe at {} ops/s", grouped(*load)),
            Self::Verify { load } => write!(f, "verify {} ops/s", grouped(*load)),
            Self::Found(found) => write!(f, "peak {} ops/s", grouped(found.peak)),
            Self::GaveUp { reason } => write!(f, "no peak: {reason}"),
        }
    }
}
