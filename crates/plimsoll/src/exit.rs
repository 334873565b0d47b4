//! Exit codes of the program.

use plimsoll_model::result::RunResult;
use plimsoll_run::FailureKind;
use plimsoll_run::coordinator::RunEnd;

pub(crate) use plimsoll_run::Failure;

/// The exit codes of the command line's contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Finished and valid.
    Valid = 0,
    /// Finished and invalid.
    Invalid = 1,
    /// The command or the suite file is wrong.
    Wrong = 2,
    /// Target or environment unusable.
    Unusable = 3,
    /// Interrupted; the bundle is usable so far.
    Interrupted = 4,
    /// A bug.
    Bug = 70,
}

impl From<&Failure> for Exit {
    fn from(failure: &Failure) -> Self {
        match failure.kind() {
            FailureKind::Wrong => Self::Wrong,
            FailureKind::Unusable => Self::Unusable,
            FailureKind::Interrupted => Self::Interrupted,
            FailureKind::Bug => Self::Bug,
        }
    }
}

impl From<&RunResult> for Exit {
    fn from(result: &RunResult) -> Self {
        let passes = result.gates.iter().all(|gate| !gate.fails);
        if result.verdict.valid && passes { Self::Valid } else { Self::Invalid }
    }
}

impl From<&RunEnd> for Exit {
    fn from(end: &RunEnd) -> Self {
        if end.is_interrupted { Self::Interrupted } else { Self::from(&end.result) }
    }
}
