//! Ops that were sent more than once: what a lossy network or a lost connection costs.

use plimsoll_model::finding::Rule;

use super::Evidence;

/// Retransmissions per op before a reader is told: each costs its op a second or more, so that one
/// in a hundred shows in the mean and makes up p99.
const RETRANSMISSIONS_MAX_RATIO: f64 = 0.01;

/// Datagrams were lost, or replies took longer than the wait for them.
pub(super) fn retransmissions(e: &Evidence<'_>) -> Option<Rule> {
    let totals = &e.view.record.totals;
    let ratio = totals.retransmissions as f64 / totals.due.max(1) as f64;
    (ratio > RETRANSMISSIONS_MAX_RATIO).then_some(Rule::Retransmissions {
        requests: totals.retransmissions,
        due_ops: totals.due,
        limit_ratio: RETRANSMISSIONS_MAX_RATIO,
    })
}

/// An op whose first try may have worked: the reply to the second try does not say.
pub(super) fn ambiguous(e: &Evidence<'_>) -> Option<Rule> {
    let ops = e.view.record.totals.ambiguous;
    (ops > 0).then_some(Rule::Ambiguous { ops })
}

#[cfg(test)]
mod tests {
    use crate::testing::{PointBuilder, TestPoint};

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
}
