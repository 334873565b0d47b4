//! Why a question of set-up failed, and the next move.

use std::fmt;

use crate::wire::{Status, WireError};
use plimsoll_protocol::blocking::BlockingError;
use plimsoll_protocol::net::{ChannelError, SetupError};

/// Why a question of set-up failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum AppError {
    /// The connection did not open, broke, or stayed silent.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The server lets us not in.
    #[error("{0}")]
    Refused(String),
    /// What came is no greeting.
    #[error("the server's answer cannot be read: {0}")]
    Garbled(#[from] WireError),
    /// What came is not the answer it should be.
    #[error("the server gave {0}")]
    Unfit(String),
    /// The server answered with an error.
    #[error("the server answered: {}", .0.name())]
    Status(Status),
    /// The caller said stop.
    #[error("stopped")]
    Stopped,
}

impl AppError {
    /// For the user: what could not be done, where, why, and the next move.
    pub(super) fn unable_to(self, doing: &str, place: impl fmt::Display) -> SetupError {
        let remedy = match &self {
            Self::Stopped => return SetupError::Stopped,
            // Its words end with the next move.
            Self::Refused(words) => return SetupError::Unusable(format!("{place}: {words}")),
            Self::Channel(ChannelError::Timeout | ChannelError::Closed) => {
                "see whether the server still runs, and what its log says"
            }
            Self::Channel(ChannelError::Failed(_)) => "see whether the server runs there",
            Self::Garbled(_) => "see whether a transaction server listens on that port",
            Self::Unfit(_) => "see whether the server follows docs/app-protocol.md",
            Self::Status(Status::NoRoom) => "free some room where the server keeps its segments",
            Self::Status(_) => "see what the server's log says",
        };
        SetupError::Unusable(format!("{place}: cannot {doing}: {self}; {remedy}"))
    }
}

impl From<BlockingError> for AppError {
    fn from(error: BlockingError) -> Self {
        match error {
            BlockingError::Stopped => Self::Stopped,
            BlockingError::Channel(error) => Self::Channel(error),
        }
    }
}
