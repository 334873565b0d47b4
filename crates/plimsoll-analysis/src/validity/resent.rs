//! Ops that were sent more than once: what a lossy network or a lost connection costs.

use plimsoll_model::result::Finding;
use plimsoll_model::units::grouped;

use super::{Evidence, finding, percent};

/// Retransmissions per op before a reader is told: each costs its op a second or more, so that one
/// in a hundred shows in the mean and makes up p99.
const RETRANSMISSIONS_MAX_RATIO: f64 = 0.01;

/// Datagrams were lost, or replies took longer than the wait for them.
pub(super) fn retransmissions(e: &Evidence<'_>) -> Option<Finding> {
    let totals = &e.view.record.totals;
    let ratio = totals.retransmissions as f64 / totals.due.max(1) as f64;
    if ratio <= RETRANSMISSIONS_MAX_RATIO {
        return None;
    }
    finding(
        "retransmissions",
        format!(
            "{} requests were sent again for {} ops, {} (limit {}); datagrams are lost or replies \
             very late: enlarge the socket buffers on both sides, or compare with TCP",
            grouped(totals.retransmissions as f64),
            grouped(totals.due as f64),
            percent(ratio),
            percent(RETRANSMISSIONS_MAX_RATIO),
        ),
    )
}

/// An op whose first try may have worked: what its repeat answers does not tell.
pub(super) fn ambiguous(e: &Evidence<'_>) -> Option<Finding> {
    let ambiguous = e.view.record.totals.ambiguous;
    if ambiguous == 0 {
        return None;
    }
    finding(
        "ambiguous",
        format!(
            "{} ops that change something were sent again although the first try may have worked; \
             an answer that this explains (a name already gone) is not counted as an error",
            grouped(ambiguous as f64),
        ),
    )
}

#[cfg(test)]
mod tests {
    use crate::testing::{PointBuilder, TestPoint};

    fn warned(change: impl Fn(&mut TestPoint)) -> Vec<String> {
        let mut point = PointBuilder::open(1_000.0).build();
        change(&mut point);
        let verdict = point.verdict();
        assert!(verdict.valid, "{verdict:?}");
        verdict.warnings.into_iter().map(|warning| warning.rule).collect()
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
