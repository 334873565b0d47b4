//! Why a question of set-up failed, and the next move.

use std::fmt;

use crate::logon::LogonError;
use crate::seal::SealError;
use crate::wire::frame::FrameError;
use crate::wire::header::Command;
use crate::wire::{WireError, status};
use plimsoll_protocol::net::{ChannelError, SetupError};

/// Why a question of set-up failed.
#[derive(Debug, thiserror::Error)]
pub enum SmbError {
    /// The connection did not open, or broke.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The server did not let us in.
    #[error(transparent)]
    Logon(#[from] LogonError),
    /// The server answered with an error.
    #[error("the server answered {command:?} with {}", Named(*.status))]
    Status {
        /// Which command.
        command: Command,
        /// NTSTATUS.
        status: u32,
    },
    /// What came is not a message.
    #[error("the server's stream cannot be read: {0}")]
    Frame(FrameError),
    /// What came is not the reply it should be.
    #[error("the server's reply cannot be read: {0}")]
    Garbled(WireError),
    /// What came is not signed or encrypted as it must be.
    #[error(transparent)]
    Unsealed(#[from] SealError),
    /// A reply that does not fit.
    #[error("the server gave {0}")]
    Unfit(&'static str),
    /// A path that is not asked for.
    #[error("that path is longer or deeper than any of ours")]
    Path,
    /// The caller said stop.
    #[error("stopped")]
    Stopped,
}

/// What was tried, for messages: "write plimsoll-files\\nic.dat".
pub type Doing<'a> = &'a str;

impl SmbError {
    /// The server's status, where that is what failed.
    pub fn status(&self) -> Option<u32> {
        match self {
            Self::Status { status, .. } => Some(*status),
            Self::Logon(error) => error.status(),
            _ => None,
        }
    }

    /// Nothing has that name, or the directory it would be in is not there either.
    pub fn is_not_found(&self) -> bool {
        matches!(
            self.status(),
            Some(
                status::OBJECT_NAME_NOT_FOUND
                    | status::OBJECT_PATH_NOT_FOUND
                    | status::NO_SUCH_FILE
            )
        )
    }

    /// For the user: what could not be done, where, why, and the next move.
    pub fn unable_to(self, doing: Doing<'_>, place: impl fmt::Display) -> SetupError {
        let remedy = match &self {
            Self::Stopped => return SetupError::Stopped,
            Self::Logon(error) => return error.at(place),
            Self::Channel(ChannelError::Timeout | ChannelError::Closed) => {
                "see whether the server still runs, and what its log says"
            }
            Self::Channel(ChannelError::Failed(_)) => "see whether the server runs there",
            Self::Frame(_) | Self::Garbled(_) => "see whether an SMB server listens on that port",
            Self::Unsealed(_) => "somebody between here and the server may change messages",
            Self::Status { status, .. } => remedy(*status),
            Self::Unfit(_) => "see what the server's log says",
            Self::Path => "see what lies there, and remove it by hand",
        };
        SetupError::Unusable(format!("{place}: cannot {doing}: {self}; {remedy}"))
    }
}

/// A status by its name, or its number where it has none.
struct Named(u32);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match status::name(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "NTSTATUS 0x{:08X}", self.0),
        }
    }
}

fn remedy(status: u32) -> &'static str {
    match status {
        status::ACCESS_DENIED | status::MEDIA_WRITE_PROTECTED | status::CANNOT_DELETE => {
            "let this user write there, in the share's settings and in the directory's own"
        }
        status::DISK_FULL | status::QUOTA_EXCEEDED => {
            "free some space there, or ask for fewer clients or smaller workspaces"
        }
        status::SHARING_VIOLATION | status::FILE_LOCK_CONFLICT | status::DELETE_PENDING => {
            "another program holds it open: end that one, and start again"
        }
        status::DIRECTORY_NOT_EMPTY => {
            "something puts files there meanwhile: end that, and start again"
        }
        status::OBJECT_PATH_NOT_FOUND => "make the directory it lies in",
        status::USER_SESSION_DELETED | status::NETWORK_NAME_DELETED => {
            "the server ended the session: see its log, and start again"
        }
        _ => "see what the server's log says",
    }
}
