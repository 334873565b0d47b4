//! Why a server cannot be started, greeted or prepared, by what the user can do about it.

use std::fmt;

use plimsoll_servers::ServerError;

/// Why a host cannot do its part, with the next move.
#[derive(Debug)]
pub struct HostError {
    /// Who is to do something about it.
    pub kind: HostErrorKind,
    message: String,
}

/// Who is to do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostErrorKind {
    /// What the user asked for is wrong.
    Wrong,
    /// The target or the environment is unusable.
    Unusable,
    /// The user wanted it to end.
    Interrupted,
}

impl HostError {
    /// What the user asked for is wrong.
    pub fn wrong(message: impl Into<String>) -> Self {
        Self { kind: HostErrorKind::Wrong, message: message.into() }
    }

    /// The target or the environment is unusable.
    pub fn unusable(message: impl Into<String>) -> Self {
        Self { kind: HostErrorKind::Unusable, message: message.into() }
    }

    /// The user wanted it to end.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Self { kind: HostErrorKind::Interrupted, message: message.into() }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for HostError {}

impl From<clap::Error> for HostError {
    fn from(error: clap::Error) -> Self {
        Self::wrong(error.to_string())
    }
}

impl From<ServerError> for HostError {
    fn from(error: ServerError) -> Self {
        Self::unusable(error.to_string())
    }
}
