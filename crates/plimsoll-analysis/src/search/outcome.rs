//! What became of a step of the search.

use plimsoll_model::finding::{Finding, Rule};
use plimsoll_model::result::{NotCounted, PointResult};

/// Ops that may miss at any rate, under way at the borders of the window; as in the rule `rate`.
const FORGIVEN_OPS: f64 = 2.0;

/// Was the load held?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// The server did what was asked, within the suite's limits.
    Held,
    /// The server was asked, and did not keep up.
    NotHeld,
    /// The generator did not keep up, or cannot show that it did.
    Generator,
    /// The server answered wrongly, refused, or fell silent.
    Failed,
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeOutcome {
    /// Ops per second finished without error.
    pub achieved: f64,
    /// Ops per second that came due; absent for the closed probe.
    pub offered: Option<f64>,
    /// Share of the ops due that were not finished in time; 0 for the closed probe.
    pub short_ratio: f64,
    /// Was the load held: rate, errors, unsent ops and the generator within their limits, and the
    /// mean service time below the suite's cap.
    pub holding: Holding,
    /// Why it was not held.
    pub why_not: Option<Rule>,
}

impl ProbeOutcome {
    /// The outcome of an analysed point.
    pub fn of(point: &PointResult) -> Self {
        let breach = breach(point);
        Self {
            achieved: point.achieved_ops_per_s.unwrap_or_default(),
            offered: point.offered_ops_per_s,
            short_ratio: short_ratio(point),
            holding: breach.map_or(Holding::Held, |(holding, _)| holding),
            why_not: breach.map(|(_, finding)| finding.rule.clone()),
        }
    }
}

/// Why the load was not held. Wrong answers come first, as they may be why an op came late; then
/// the generator, whose own delay may be why the server seems to be slow.
fn breach(point: &PointResult) -> Option<(Holding, &Finding)> {
    let broke = |kind| point.reasons.iter().find(|reason| kind_of(&reason.rule) == Some(kind));
    let not_counted = |kinds: &[NotCounted]| {
        let is_one = point.not_counted.is_some_and(|kind| kinds.contains(&kind));
        point.not_counted_because.as_ref().filter(|_| is_one)
    };
    let failed = broke(Holding::Failed).or_else(|| not_counted(&[NotCounted::Errors]));
    let generator = || broke(Holding::Generator);
    // A load that the suite would not count cannot be its peak.
    let slow =
        || broke(Holding::NotHeld).or_else(|| not_counted(&[NotCounted::NotHeld, NotCounted::Cap]));
    failed
        .map(|finding| (Holding::Failed, finding))
        .or_else(|| generator().map(|finding| (Holding::Generator, finding)))
        .or_else(|| slow().map(|finding| (Holding::NotHeld, finding)))
}

/// What a reason says of the load; `None` where it says how well the load was measured.
const fn kind_of(rule: &Rule) -> Option<Holding> {
    match rule {
        // The server answered wrongly, or no longer at all.
        Rule::Errors { .. }
        | Rule::Corrupt { .. }
        | Rule::ClientsLost { .. }
        | Rule::EndedEarly { .. }
        | Rule::NothingDone { .. }
        | Rule::Panic { .. } => Some(Holding::Failed),
        // Nothing is known of the server then.
        Rule::GeneratorCpu { .. }
        | Rule::GeneratorError { .. }
        | Rule::SendLag { .. }
        | Rule::MissingEvidence { .. } => Some(Holding::Generator),
        Rule::Rate { .. } | Rule::NotSent { .. } | Rule::Unfinished { .. } => {
            Some(Holding::NotHeld)
        }
        _ => None,
    }
}

fn short_ratio(point: &PointResult) -> f64 {
    match (point.offered_ops_per_s, point.achieved_ops_per_s, point.seconds) {
        (Some(offered), Some(achieved), Some(seconds)) if offered * seconds > 0.0 => {
            let missing = (offered - achieved) * seconds - FORGIVEN_OPS;
            (missing / (offered * seconds)).max(0.0)
        }
        _ => 0.0,
    }
}
