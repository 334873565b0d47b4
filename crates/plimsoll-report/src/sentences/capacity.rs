//! Tries of the search for a capacity.

use plimsoll_model::capacity::{Capacity, CapacityTry, LimitFigure, TryOutcome, TryReason};
use plimsoll_model::condition::Side;
use plimsoll_model::units::{Nanos, grouped, percent};

use super::finding;

/// Why there is no number of users; `None` where there is one, or where loads are in ops/s.
pub fn client(capacity: &Capacity) -> Option<String> {
    let client = capacity.client.as_ref()?;
    Some(format!("The method's clients are no users: {client}. --users-per-client N gives users."))
}

/// What decided a try: of figures the first that is not within its limit, or all.
pub fn why(attempt: &CapacityTry) -> String {
    match &attempt.reason {
        TryReason::Rule { rule } => finding::cause(rule),
        TryReason::NotHeld => "the load was not held".to_owned(),
        TryReason::Growth { from_ops, to_ops } => format!(
            "ops in flight grew from about {} to {} through the window: more came than was done",
            grouped(from_ops.round()),
            grouped(to_ops.round()),
        ),
        TryReason::Figures => {
            let beyond = attempt.figures.iter().find(|figure| {
                attempt.standing != TryOutcome::Within && figure.outcome() == attempt.standing
            });
            let all = || attempt.figures.iter().map(figure_text).collect::<Vec<_>>().join(", ");
            beyond.map_or_else(all, figure_text)
        }
    }
}

/// `p99 61.3 ms ≥ 50.0 ms`.
fn figure_text(figure: &LimitFigure) -> String {
    let text = |value: f64| match figure.unit.as_str() {
        "ns" => Nanos(value.round() as u64).to_string(),
        _ => percent(value),
    };
    let (name, below) = (&figure.name, text(figure.below));
    let Some(value) = figure.value.map(text) else { return format!("{name}: no op was done") };
    if figure.lower_bound {
        return format!(
            "{name} is at least {value}: some ops were not sent or not finished (limit {below})"
        );
    }
    let sign = match (figure.side(), figure.holds()) {
        (Side::Below, true) => "<",
        (Side::Below, false) => "≥",
        (Side::Above, true) => ">",
        (Side::Above, false) => "≤",
    };
    let doubt = match (figure.outcome(), figure.interval) {
        (TryOutcome::Undecided, Some([low, high])) if high.is_infinite() => {
            format!(", not certain (at least {})", text(low))
        }
        (TryOutcome::Undecided, Some([low, high])) => {
            format!(", not certain ({} to {})", text(low), text(high))
        }
        (TryOutcome::Undecided, None) => ", too few ops to be certain".to_owned(),
        _ => String::new(),
    };
    format!("{name} {value} {sign} {below}{doubt}")
}
