use plimsoll_model::event::Phase;
use plimsoll_report::sentences::finding;

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
    finding::text(&point.verdict().warnings[0].rule)
}

#[test]
fn dropped_connections_are_named_as_such_and_first() {
    let point = dropped();
    assert_eq!(point.verdict().warnings[0].rule.name(), "connections_lost");
    let text = sentence(&point);
    let begin = "the server refused or closed the connections of 904 of 30,000,000 ops before \
                 replying; from second 14 on nothing answered";
    assert!(text.starts_with(begin), "{text}");
}

#[test]
fn clients_whose_connections_were_dropped_did_not_stand_still_in_the_generator() {
    let mut point = dropped();
    assert!(!point.reasons().contains(&"closed_loop"), "{:?}", point.reasons());
    // Four are not enough to explain nine hundred that are missing.
    point.record.totals.errors.insert("transport".to_owned(), 4);
    assert!(point.reasons().contains(&"closed_loop"), "{:?}", point.reasons());
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
fn where_the_others_had_finished_or_parts_of_replies_came_the_server_was_not_silent() {
    let mut point = dropped();
    let seconds = point.record.seconds.iter().filter(|second| second.phase == Phase::Measure);
    let ended: u64 = seconds.map(|second| second.done).sum();
    for (left, is_silent) in [(904, false), (999, false), (1_000, true), (50_000, true)] {
        point.record.ops = Some(ended + left);
        assert_eq!(sentence(&point).contains("from second 14 on nothing"), is_silent, "{left}");
    }
    let mut point = dropped();
    for second in point.record.seconds.iter_mut().filter(|second| second.second < 20) {
        second.chunks = 100;
    }
    assert!(sentence(&point).contains("from second 20 on nothing"), "{}", sentence(&point));
}

#[test]
fn a_server_that_fell_silent_without_dropping_connections_is_said_to_be_so() {
    let mut point = dropped();
    let mut errors = std::mem::take(&mut point.record.totals.errors);
    errors.insert("timeout".to_owned(), 90_400);
    errors.remove("transport");
    point.record.totals.errors = errors;
    let left_out = point.not_counted().map(|(_, rule)| finding::text(&rule)).unwrap();
    assert!(left_out.contains("from second 14 on nothing answered"), "{left_out}");
}

#[test]
fn a_point_without_such_errors_says_nothing_of_connections() {
    assert!(PointBuilder::closed(32).build().verdict().warnings.is_empty());
}

/// 564 ops that got their status, and some that did not.
fn answered_early(status: u32, lost: u64, by_sending: u64) -> TestPoint {
    let mut point = PointBuilder::closed(8).build();
    let totals = &mut point.record.totals;
    totals.due = 2_024;
    totals.errors = [(format!("status:{status}"), 564), ("transport".to_owned(), lost)].into();
    totals.errors.retain(|_, count| *count > 0);
    totals.cut_off.answered = vec![(status, 564)];
    totals.cut_off.lost = by_sending;
    point
}

fn lost_text(point: &TestPoint) -> Option<String> {
    let warnings = point.verdict().warnings;
    warnings
        .into_iter()
        .find(|it| it.rule.name() == "connections_lost")
        .map(|it| finding::text(&it.rule))
}

#[test]
fn a_status_that_the_server_sent_explains_the_connections_it_reset_meanwhile() {
    let text = lost_text(&answered_early(413, 1_460, 1_460)).unwrap();
    let expected = "the server answers 413 and closes while the body is still being sent: 564 \
                    of 2,024 ops got the status, 1,460 lost their connection first; raise its \
                    limit for the size of a body, or send a smaller one";
    assert_eq!(text, expected);
    let others = [
        (401, "credentials"),
        (403, "log for the reason"),
        (407, "credentials"),
        (417, "Expect"),
        (500, "log for the reason"),
    ];
    for (status, advice) in others {
        let text = lost_text(&answered_early(status, 1_460, 1_460)).unwrap();
        assert!(text.contains(&format!("answers {status} and closes")), "{text}");
        assert!(text.contains(advice) && !text.contains("limit of connections"), "{text}");
    }
}

#[test]
fn connections_that_were_lost_otherwise_keep_their_own_advice() {
    let text = lost_text(&answered_early(413, 1_460, 60)).unwrap();
    assert!(text.starts_with("the server refused or closed the connections of 1,460"), "{text}");
    assert!(text.contains("60 of them: the server answers 413 and closes while"), "{text}");
    assert!(text.contains("for the others look for a limit of connections"), "{text}");
    let text = lost_text(&answered_early(413, 1_460, 0)).unwrap();
    assert!(!text.contains("answers 413"), "not while sending: {text}");
}

#[test]
fn where_every_op_got_its_status_no_connection_counts_as_lost() {
    let point = answered_early(413, 0, 0);
    assert_eq!(lost_text(&point), None);
    let (_, finding) = point.not_counted().unwrap();
    let expected = "the server answers 413 while the body is still being sent; raise its limit";
    assert!(finding::text(&finding).contains(expected), "{finding:?}");
}

fn warned(change: impl Fn(&mut TestPoint)) -> Vec<&'static str> {
    let mut point = PointBuilder::open(1_000.0).build();
    change(&mut point);
    let verdict = point.verdict();
    assert!(verdict.valid, "{verdict:?}");
    verdict.warnings.into_iter().map(|warning| warning.rule.name()).collect()
}

#[test]
fn one_retransmission_in_a_hundred_ops_is_let_pass() {
    // 30 s at 1,000 ops/s.
    assert!(warned(|p| p.record.totals.retransmissions = 300).is_empty());
    assert_eq!(warned(|p| p.record.totals.retransmissions = 301), ["retransmissions"]);
}

#[test]
fn a_single_ambiguous_op_is_said() {
    assert_eq!(warned(|p| p.record.totals.ambiguous = 1), ["ambiguous"]);
}

#[test]
fn a_session_that_the_server_forgot_is_said() {
    assert_eq!(warned(|p| p.record.totals.sessions_rebuilt = 1), ["sessions_rebuilt"]);
    assert_eq!(warned(|p| p.record.totals.reopened = 1), ["sessions_rebuilt"]);
}

#[test]
fn a_server_that_closes_connections_against_its_word_is_named() {
    assert!(warned(|p| p.record.totals.unkept = 300).is_empty());
    assert_eq!(warned(|p| p.record.totals.unkept = 301), ["unkept"]);
}
