//! Servers that answer before they have read a request, and close: the status that some clients
//! got explains the connections that the others lost.

use std::fmt;

use plimsoll_model::event::CutOff;
use plimsoll_model::units::grouped;

use super::Evidence;

/// Ops whose requests the server refused before it had read them.
pub(super) struct EarlyAnswers<'a> {
    cut_off: &'a CutOff,
    due: u64,
}

impl<'a> EarlyAnswers<'a> {
    /// Those of the window; `None` where no op got a status that explains the others.
    pub(super) fn of(e: &'a Evidence<'_>) -> Option<Self> {
        let totals = &e.view.record.totals;
        let early = Self { cut_off: &totals.cut_off, due: totals.due };
        (early.answered() > 0).then_some(early)
    }

    /// Ops that got the status.
    fn answered(&self) -> u64 {
        self.cut_off.answered.iter().map(|(_, count)| count).sum()
    }

    /// Ops that lost their connection instead.
    pub(super) const fn lost(&self) -> u64 {
        self.cut_off.lost
    }

    /// All of them.
    pub(super) fn ops(&self) -> u64 {
        self.answered() + self.lost()
    }

    /// How many got the status, and how many no more than the end of the connection.
    pub(super) fn counts(&self) -> String {
        let [answered, lost, due] =
            [self.answered(), self.lost(), self.due].map(|n| grouped(n as f64));
        format!("{answered} of {due} ops got the status, {lost} lost their connection first")
    }

    /// The next move, by the most frequent status.
    pub(super) fn advice(&self) -> &'static str {
        match self.cut_off.answered.iter().max_by_key(|(_, count)| *count) {
            Some((413, _)) => "raise its limit for the size of a body, or send a smaller one",
            Some((401 | 407, _)) => "send the credentials that it wants",
            Some((417, _)) => "send the request without Expect",
            _ => "the server's log says why",
        }
    }
}

/// `the server answers 413 and closes while the body is still being sent`.
impl fmt::Display for EarlyAnswers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut statuses: Vec<u32> =
            self.cut_off.answered.iter().map(|(status, _)| *status).collect();
        statuses.sort_unstable();
        let statuses: Vec<String> = statuses.iter().map(u32::to_string).collect();
        // That it closes is known from the connections that broke.
        let closes = if self.lost() > 0 { " and closes" } else { "" };
        let statuses = statuses.join(" or ");
        write!(f, "the server answers {statuses}{closes} while the body is still being sent")
    }
}

#[cfg(test)]
mod tests {
    use super::super::connections::CONNECTIONS_LOST;
    use crate::testing::{PointBuilder, TestPoint};

    /// 564 ops that got their status, and some that did not.
    fn point(status: u32, lost: u64, by_sending: u64) -> TestPoint {
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
        warnings.into_iter().find(|it| it.rule == CONNECTIONS_LOST).map(|it| it.text)
    }

    #[test]
    fn a_status_that_the_server_sent_explains_the_connections_it_reset_meanwhile() {
        let text = lost_text(&point(413, 1_460, 1_460)).unwrap();
        let expected = "the server answers 413 and closes while the body is still being sent: 564 \
                        of 2,024 ops got the status, 1,460 lost their connection first; raise its \
                        limit for the size of a body, or send a smaller one";
        assert_eq!(text, expected);
        let others = [
            (401, "credentials"),
            (403, "log says why"),
            (407, "credentials"),
            (417, "Expect"),
            (500, "log says why"),
        ];
        for (status, advice) in others {
            let text = lost_text(&point(status, 1_460, 1_460)).unwrap();
            assert!(text.contains(&format!("answers {status} and closes")), "{text}");
            assert!(text.contains(advice) && !text.contains("limit of connections"), "{text}");
        }
    }

    #[test]
    fn connections_that_were_lost_otherwise_keep_their_own_advice() {
        let text = lost_text(&point(413, 1_460, 60)).unwrap();
        assert!(
            text.starts_with("the server refused or closed the connections of 1,460"),
            "{text}"
        );
        assert!(text.contains("60 of them: the server answers 413 and closes while"), "{text}");
        assert!(text.contains("for the others look for a limit of connections"), "{text}");
        let text = lost_text(&point(413, 1_460, 0)).unwrap();
        assert!(!text.contains("answers 413"), "not while sending: {text}");
    }

    #[test]
    fn where_every_op_got_its_status_no_connection_counts_as_lost() {
        let point = point(413, 0, 0);
        assert_eq!(lost_text(&point), None);
        let (_, finding) = point.not_counted().unwrap();
        let said = "the server answers 413 while the body is still being sent; raise its limit";
        assert!(finding.text.contains(said), "{}", finding.text);
    }
}
