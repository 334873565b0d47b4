//! Connections that the server refused or dropped: what explains much else that a point shows.

use plimsoll_model::event::Phase;
use plimsoll_model::outcome::ErrorClass;
use plimsoll_model::result::Finding;
use plimsoll_model::units::grouped;

use super::early::EarlyAnswers;
use super::{Evidence, finding};

/// Name of the rule.
pub(super) const CONNECTIONS_LOST: &str = "connections_lost";

/// Ops of the window that had no connection, or lost it before the reply began; then those whose
/// reply broke off.
fn lost(e: &Evidence<'_>) -> (u64, u64) {
    let errors = &e.view.record.totals.errors;
    let of = |class: ErrorClass| errors.get(&class.to_string()).copied().unwrap_or(0);
    (of(ErrorClass::Transport), of(ErrorClass::Truncated))
}

/// Connections were refused or dropped, as far as ops show it.
pub(super) fn any_lost(e: &Evidence<'_>) -> bool {
    lost(e) != (0, 0)
}

/// May as many clients be missing from the account of a closed load because their connections
/// were dropped? Such an op holds its client, and ends in no reply.
pub(super) fn explain(e: &Evidence<'_>, missing_clients: f64) -> bool {
    let (before, within) = lost(e);
    missing_clients > 0.0 && missing_clients <= (before + within) as f64
}

/// Connections refused or dropped, whether or not that is more than the suite allows.
pub(super) fn connections_lost(e: &Evidence<'_>) -> Option<Finding> {
    let (before, within) = lost(e);
    if before + within == 0 {
        return None;
    }
    let of = format!("of {} ops", grouped(e.view.record.totals.due as f64));
    let count = |n: u64| grouped(n as f64);
    // Clients that leave take the ops beside the one they left for with them.
    let text = match (before, within, e.view.lost.is_empty()) {
        (_, _, false) => format!(
            "{} {of} lost their connection, those of the clients that left among them",
            count(before + within),
        ),
        (0, _, true) => format!("the server broke off {} replies {of}", count(within)),
        (_, 0, true) => format!(
            "the server refused or closed the connections of {} {of} before replying",
            count(before),
        ),
        (_, _, true) => format!(
            "the server refused or closed the connections of {} {of} before replying, and broke \
             off {} replies",
            count(before),
            count(within),
        ),
    };
    let silence = silence(e).map(|words| format!("; {words}")).unwrap_or_default();
    let text = match EarlyAnswers::of(e).filter(|early| early.lost() > 0) {
        None => format!("{text}{silence}; {LIMIT_ADVICE}"),
        Some(early) if early.lost() < before + within => {
            let some = grouped(early.lost() as f64);
            format!("{text}{silence}; {some} of them: {early}; for the others {LIMIT_ADVICE}")
        }
        Some(early) => format!("{early}: {}; {}", early.counts(), early.advice()),
    };
    finding(CONNECTIONS_LOST, text)
}

/// The next move where nothing else explains what was lost.
const LIMIT_ADVICE: &str = "look for a limit of connections or files in the server's log, or ask \
                            with fewer clients";

/// Classes of errors of ops that the server did not answer.
const UNANSWERED: [&str; 6] =
    ["timeout", "transport", "tls", "truncated", "ports_exhausted", "descriptors_exhausted"];

/// From which second of the window on nothing was answered any more, or nothing well: a server
/// that answers with errors is there.
pub(super) fn silence(e: &Evidence<'_>) -> Option<String> {
    let mut classes = e.view.record.totals.errors.keys();
    let (what, verb) = match classes.all(|class| UNANSWERED.contains(&class.as_str())) {
        true => ("nothing", "answered"),
        false => ("no op", "succeeded"),
    };
    let window = e.view.record.seconds.iter().filter(|s| s.phase == Phase::Measure);
    let answered: Vec<(u32, bool)> =
        window.map(|second| (second.second, second.done > second.errors)).collect();
    match answered.iter().rposition(|(_, answered)| *answered) {
        None => Some(format!("{what} {verb} in the window")),
        Some(last) => {
            let (second, _) = answered.get(last + 1)?;
            Some(format!("from second {second} on {what} {verb}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::event::Phase;

    use crate::testing::{PointBuilder, TestPoint};

    /// A closed load of a thousand clients, 904 of them without a reply from second 14 on.
    fn dropped() -> TestPoint {
        let mut point = PointBuilder::closed(1_000).build();
        let totals = &mut point.record.totals;
        totals.errors.insert("transport".to_owned(), 904);
        totals.piece_ns_total /= 10;
        for second in &mut point.record.seconds {
            if second.phase == Phase::Measure && second.second >= 14 {
                second.done = 0;
            }
        }
        point
    }

    fn sentence(point: &TestPoint) -> String {
        point.verdict().warnings[0].text.clone()
    }

    #[test]
    fn dropped_connections_are_named_as_such_and_first() {
        let point = dropped();
        assert_eq!(point.verdict().warnings[0].rule, super::CONNECTIONS_LOST);
        let text = sentence(&point);
        let begin = "the server refused or closed the connections of 904 of 30,000,000 ops before \
                     replying; from second 14 on nothing answered";
        assert!(text.starts_with(begin), "{text}");
    }

    #[test]
    fn clients_whose_connections_were_dropped_did_not_stand_still_in_the_generator() {
        let mut point = dropped();
        assert!(!point.reasons().contains(&"closed_loop".to_owned()), "{:?}", point.reasons());
        // Four are not enough to explain nine hundred that are missing.
        point.record.totals.errors.insert("transport".to_owned(), 4);
        assert!(point.reasons().contains(&"closed_loop".to_owned()), "{:?}", point.reasons());
    }

    #[test]
    fn replies_that_broke_off_and_clients_that_left_are_told_apart() {
        let mut point = dropped();
        point.record.totals.errors.insert("truncated".to_owned(), 12);
        assert!(sentence(&point).contains("before replying, and broke off 12 replies"));
        point.lost = vec!["signature".to_owned()];
        assert!(sentence(&point).starts_with("916 of 30,000,000 ops lost their connection"));
    }

    #[test]
    fn a_server_that_answered_with_errors_only_is_not_said_to_be_silent() {
        let mut point = dropped();
        point.record.totals.errors.insert("status:503".to_owned(), 12);
        let text = sentence(&point);
        assert!(text.contains("before replying; from second 14 on no op succeeded"), "{text}");
        for second in &mut point.record.seconds {
            second.done = 0;
        }
        let text = sentence(&point);
        assert!(text.contains("before replying; no op succeeded in the window"), "{text}");
    }

    #[test]
    fn a_server_that_fell_silent_without_dropping_connections_is_said_to_be_so() {
        let mut point = dropped();
        let mut errors = std::mem::take(&mut point.record.totals.errors);
        errors.insert("timeout".to_owned(), 90_400);
        errors.remove("transport");
        point.record.totals.errors = errors;
        let left_out = point.not_counted().map(|(_, finding)| finding.text).unwrap();
        assert!(left_out.contains("from second 14 on nothing answered"), "{left_out}");
    }

    #[test]
    fn a_point_without_such_errors_says_nothing_of_connections() {
        assert!(PointBuilder::closed(32).build().verdict().warnings.is_empty());
    }
}
