//! Why the program cannot do what was requested.

use std::path::Path;

use plimsoll_model::bundle::BundleError;
use plimsoll_model::comparison::experiment::HookFailure;
use plimsoll_model::suite::SuiteError;
use plimsoll_model::target::TargetError;
use plimsoll_protocol::host::{HostError, HostErrorKind};
use plimsoll_report::ReportError;
use plimsoll_servers::ServerError;

/// Who is to act on a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The command or the suite file is wrong.
    Wrong,
    /// Target or environment unusable.
    Unusable,
    /// The user requested the end.
    Interrupted,
    /// A bug.
    Bug,
}

/// Why a run, or another command, failed.
#[derive(Debug)]
pub enum Failure {
    /// A mistake in a suite, with its position.
    Suite(Box<SuiteError>),
    /// A command that sets a level of an experiment failed.
    Hook(Box<HookFailure>),
    /// Any other failure: a message with what, where and the next move.
    Other {
        /// Who is to act.
        kind: FailureKind,
        /// For a person.
        message: String,
    },
}

impl Failure {
    /// The command is wrong.
    pub fn wrong(message: impl Into<String>) -> Self {
        Self::Other { kind: FailureKind::Wrong, message: message.into() }
    }

    /// Target or environment unusable.
    pub fn unusable(message: impl Into<String>) -> Self {
        Self::Other { kind: FailureKind::Unusable, message: message.into() }
    }

    /// The user requested the end.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Self::Other { kind: FailureKind::Interrupted, message: message.into() }
    }

    /// The program is wrong.
    pub fn bug(message: impl Into<String>) -> Self {
        Self::Other { kind: FailureKind::Bug, message: message.into() }
    }

    /// Adds to the message what remains usable of a failed run with this many finished points.
    pub(crate) fn with_bundle(self, dir: &Path, points: usize) -> Self {
        let dir = dir.display();
        let kept = match points {
            0 => format!(
                "no load point was finished, so begin the run again, with another directory than \
                 {dir}"
            ),
            _ => format!("{dir} keeps every finished load point; to go on: plimsoll resume {dir}"),
        };
        match self {
            Self::Other { kind, message } => {
                Self::Other { kind, message: format!("{message}\n{kept}") }
            }
            other => other,
        }
    }

    /// Who is to act.
    pub const fn kind(&self) -> FailureKind {
        match self {
            Self::Suite(_) => FailureKind::Wrong,
            Self::Hook(_) => FailureKind::Unusable,
            Self::Other { kind, .. } => *kind,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Suite(error) => error.fmt(f),
            Self::Hook(failure) => failure.fmt(f),
            Self::Other { message, .. } => f.write_str(message),
        }
    }
}

impl From<SuiteError> for Failure {
    fn from(error: SuiteError) -> Self {
        Self::Suite(Box::new(error))
    }
}

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Self {
        Self::wrong(error.to_string())
    }
}

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Self {
        let kind = match error {
            BundleError::Occupied { .. }
            | BundleError::InUse { .. }
            | BundleError::NotABundle { .. }
            | BundleError::Malformed { .. }
            | BundleError::Format { .. } => FailureKind::Wrong,
            BundleError::StorageFull { .. } | BundleError::Storage { .. } => FailureKind::Unusable,
        };
        Self::Other { kind, message: error.to_string() }
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        Self::unusable(error.to_string())
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        Self::bug(format!("cannot render the report: {error}; please report this as a bug"))
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let kind = match error.kind {
            HostErrorKind::Wrong => FailureKind::Wrong,
            HostErrorKind::Unusable => FailureKind::Unusable,
            HostErrorKind::Interrupted => FailureKind::Interrupted,
        };
        Self::Other { kind, message: error.to_string() }
    }
}

impl From<Failure> for HostError {
    fn from(failure: Failure) -> Self {
        let message = failure.to_string();
        match failure.kind() {
            FailureKind::Wrong => Self::wrong(message),
            FailureKind::Interrupted => Self::interrupted(message),
            _ => Self::unusable(message),
        }
    }
}
