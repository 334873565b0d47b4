//! Requests of a replay that were sent late.

use plimsoll_model::late::{LateCause, LateOp};

/// Which it was, how late and why.
pub fn text(op: &LateOp) -> String {
    let cause = match op.cause {
        LateCause::NoClient => "no client was free",
        LateCause::Generator => "the generator",
    };
    format!("line {}: {} late, {cause}", op.line, op.lag_ns)
}

#[cfg(test)]
mod tests {
    use plimsoll_model::units::Nanos;

    use super::*;

    #[test]
    fn a_late_request_is_named_by_its_line() {
        let due_ns = Nanos::from_secs(3);
        let op =
            LateOp { line: 812, due_ns, lag_ns: Nanos(14_200_000), cause: LateCause::NoClient };
        assert_eq!(text(&op), "line 812: 14.2 ms late, no client was free");
        let op = LateOp { cause: LateCause::Generator, ..op };
        assert_eq!(text(&op), "line 812: 14.2 ms late, the generator");
    }
}
