//! Ops of a recorded schedule that were sent late, by the lines of their file.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// An op of a recording that is sent later than this is named: loads are made from logs, whose
/// stamps are no finer than a millisecond.
pub const LATE_MIN: Nanos = Nanos::from_millis(2);
/// Ops that are named; the others are counted.
pub const LATE_NAMED_MAX: usize = 20;

/// Ops that were sent late.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateOps {
    /// How many.
    pub count: u64,
    /// Of those, the ones that the generator sent late although a client was free.
    pub by_generator: u64,
    /// The first, in the order of their lines.
    pub first: Vec<LateOp>,
}

/// An op that was sent late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateOp {
    /// In the recording's file, from 1.
    pub line: u64,
    /// When it was due, from the start of the load point.
    pub due_ns: Nanos,
    /// How much later it was sent.
    pub lag_ns: Nanos,
    /// Why.
    pub cause: LateCause,
}

/// Why an op was sent late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LateCause {
    /// For most of that time every client waited for a reply.
    NoClient,
    /// The generator was busy, or off its core.
    Generator,
}

impl LateOps {
    /// Every op was sent in time.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Counts an op if it was sent late. Ops come in the order of their lines.
    pub fn note(&mut self, op: LateOp) {
        if op.lag_ns <= LATE_MIN {
            return;
        }
        self.count += 1;
        self.by_generator += u64::from(op.cause == LateCause::Generator);
        if self.first.len() < LATE_NAMED_MAX {
            self.first.push(op);
        }
    }
}

/// Adds those of another worker.
pub(crate) fn sum_of_late(sum: &mut LateOps, part: LateOps) {
    sum.count += part.count;
    sum.by_generator += part.by_generator;
    sum.first.extend(part.first);
    sum.first.sort_by_key(|op| op.line);
    sum.first.truncate(LATE_NAMED_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(lines: impl Iterator<Item = u64>, lag_ns: Nanos, cause: LateCause) -> LateOps {
        let mut all = LateOps::default();
        lines.for_each(|line| all.note(LateOp { line, due_ns: Nanos(line), lag_ns, cause }));
        all
    }

    #[test]
    fn the_first_late_ops_of_all_workers_are_named_and_the_others_counted() {
        let mut all = late((2..60).step_by(2), LATE_MIN + Nanos(1), LateCause::NoClient);
        sum_of_late(&mut all, late((3..9).step_by(2), Nanos(LATE_MIN.0 * 9), LateCause::Generator));
        assert_eq!((all.count, all.by_generator, all.first.len()), (32, 3, LATE_NAMED_MAX));
        let lines: Vec<u64> = all.first.iter().map(|op| op.line).take(6).collect();
        assert_eq!(lines, [2, 3, 4, 5, 6, 7]);
        assert!(late(2..9, LATE_MIN, LateCause::NoClient).is_empty());
    }
}
