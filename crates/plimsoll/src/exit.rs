//! How the program ends: exit codes, and the failures that lead to them.

use std::path::Path;

use plimsoll_model::bundle::BundleError;
use plimsoll_model::comparison::experiment::HookFailure;
use plimsoll_model::suite::SuiteError;
use plimsoll_model::target::TargetError;
use plimsoll_protocol::host::{HostError, HostErrorKind};
use plimsoll_servers::ServerError;

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

/// Why a verb could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A mistake in a suite, with its place.
    Suite(Box<SuiteError>),
    /// A command that sets a level of an experiment failed.
    Hook(Box<HookFailure>),
    /// Anything else: what, where and the next move, in words.
    Other {
        /// How the program ends.
        exit: Exit,
        /// For a person.
        message: String,
    },
}

impl Failure {
    /// The command is wrong.
    pub(crate) fn wrong(message: impl Into<String>) -> Self {
        Self::Other { exit: Exit::Wrong, message: message.into() }
    }

    /// Target or environment unusable.
    pub(crate) fn unusable(message: impl Into<String>) -> Self {
        Self::Other { exit: Exit::Unusable, message: message.into() }
    }

    /// The user asked for the end.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self::Other { exit: Exit::Interrupted, message: message.into() }
    }

    /// Adds what remains usable of a run that could not go on.
    pub(crate) fn with_bundle(self, dir: &Path) -> Self {
        match self {
            Self::Other { exit, message } => {
                let dir = dir.display();
                let message = format!(
                    "{message}\n{dir} keeps every finished load point; to go on: \
                     plimsoll resume {dir}"
                );
                Self::Other { exit, message }
            }
            other => other,
        }
    }

    /// How the program ends.
    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Self::Suite(_) => Exit::Wrong,
            Self::Hook(_) => Exit::Unusable,
            Self::Other { exit, .. } => *exit,
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
        let exit = match error {
            BundleError::Occupied { .. }
            | BundleError::InUse { .. }
            | BundleError::NotABundle { .. }
            | BundleError::Malformed { .. }
            | BundleError::Format { .. } => Exit::Wrong,
            BundleError::StorageFull { .. } | BundleError::Storage { .. } => Exit::Unusable,
        };
        Self::Other { exit, message: error.to_string() }
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        Self::unusable(error.to_string())
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let exit = match error.kind {
            HostErrorKind::Wrong => Exit::Wrong,
            HostErrorKind::Unusable => Exit::Unusable,
            HostErrorKind::Interrupted => Exit::Interrupted,
        };
        Self::Other { exit, message: error.to_string() }
    }
}

impl From<Failure> for HostError {
    fn from(failure: Failure) -> Self {
        let message = failure.to_string();
        match failure.exit() {
            Exit::Wrong => Self::wrong(message),
            Exit::Interrupted => Self::interrupted(message),
            _ => Self::unusable(message),
        }
    }
}
