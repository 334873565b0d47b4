//! The operations of the preparation on a share, over one connection, and the path of our
//! directory. Paths are relative to the target's URL, with backslashes and without a leading one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use plimsoll_protocol::blocking::BlockingError;
use plimsoll_protocol::net::{ChannelError, SetupError};

use super::super::op::Content;
use super::super::wire::status::{self, Named};
use super::super::wire::{Command, WireError};

pub use super::super::session::EntryKind as Kind;

/// One connection to a share.
pub trait Share {
    /// The object of that name; `None`: there is none.
    fn find(&mut self, path: &str) -> Result<Option<EntryStat>, ShareError>;
    /// The entries of a directory; `None`: there is no such directory.
    fn list(&mut self, path: &str) -> Result<Option<Vec<Entry>>, ShareError>;
    /// Makes a directory, unless it exists.
    fn make_dir(&mut self, path: &str) -> Result<(), ShareError>;
    /// Makes a file, or empties the one that is there, and writes all of it. The last bytes are
    /// written when all others are there, so that a file of its whole size has its whole content
    /// wherever the work was cut short.
    fn write(
        &mut self,
        path: &str,
        bytes: u64,
        content: Content,
        written: &AtomicU64,
    ) -> Result<(), ShareError>;
    /// The same with a text of at most 4 KiB.
    fn write_text(&mut self, path: &str, text: &str) -> Result<(), ShareError>;
    /// Cuts a file.
    fn cut(&mut self, path: &str, bytes: u64) -> Result<(), ShareError>;
    /// The bytes at `offset`, fewer at the end of the file.
    fn read(&mut self, path: &str, offset: u64, bytes: u32) -> Result<Vec<u8>, ShareError>;
    /// Renames a file, and replaces a file of the new name.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), ShareError>;
    /// Removes a file or an empty directory, if there is one.
    fn remove(&mut self, path: &str, kind: Kind) -> Result<(), ShareError>;
    /// Lets the server be for so long.
    fn pause(&mut self, time: Duration) -> Result<(), ShareError>;
    /// Space that this user may still fill; `None`: the server does not report it.
    fn free_bytes(&mut self) -> Result<Option<u64>, ShareError>;
}

/// What has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryStat {
    /// File or directory.
    pub kind: Kind,
    /// Size of a file.
    pub bytes: u64,
}

/// One of a directory's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name there.
    pub name: String,
    /// What it is.
    pub stat: EntryStat,
}

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// The connection did not open, broke, or stayed silent.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The server answered with an error.
    #[error("the server answered {command:?} with {}", Named(*.status))]
    Status {
        /// Which command.
        command: Command,
        /// NTSTATUS.
        status: u32,
    },
    /// The session cannot continue, or an answer is wrong; the message says what to do.
    #[error("{0}")]
    Failed(String),
    /// The received bytes are not a valid reply.
    #[error("the server's reply cannot be read: {0}")]
    Garbled(#[from] WireError),
    /// A reply that does not fit.
    #[error("the server gave {0}")]
    Unfit(&'static str),
    /// A path that is never requested.
    #[error("that path is longer or deeper than any of ours")]
    Path,
    /// Under a name of ours there is something else.
    #[error("something else has that name")]
    Foreign,
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
}

impl ShareError {
    /// The server's status, if the call failed by that.
    pub fn status(&self) -> Option<u32> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Nothing has that name, or the directory it would be in is not there either.
    pub(super) fn is_missing(&self) -> bool {
        let missing =
            [status::OBJECT_NAME_NOT_FOUND, status::OBJECT_PATH_NOT_FOUND, status::NO_SUCH_FILE];
        self.status().is_some_and(|status| missing.contains(&status))
    }

    /// For the user: what could not be done, where, why, and the next move.
    pub fn unable_to(self, doing: impl fmt::Display, location: impl fmt::Display) -> SetupError {
        let remedy = match &self {
            Self::Stopped => return SetupError::Stopped,
            Self::Failed(message) => {
                return SetupError::Unusable(format!("{location}: cannot {doing}: {message}"));
            }
            Self::Channel(ChannelError::Timeout | ChannelError::Closed) => {
                "see whether the server still runs, and what its log says"
            }
            Self::Channel(ChannelError::Failed(_)) => "see whether the server runs there",
            Self::Garbled(_) => "see whether an SMB server listens on that port",
            Self::Status { status, .. } => remedy(*status),
            Self::Unfit(_) => "see what the server's log says",
            Self::Path => "see what lies there, and remove it by hand",
            Self::Foreign => "move it away, or plimsoll clean the share",
        };
        SetupError::Unusable(format!("{location}: cannot {doing}: {self}; {remedy}"))
    }
}

impl From<BlockingError> for ShareError {
    fn from(error: BlockingError) -> Self {
        match error {
            BlockingError::Stopped => Self::Stopped,
            BlockingError::Channel(error) => Self::Channel(error),
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
        status::OBJECT_NAME_NOT_FOUND | status::OBJECT_PATH_NOT_FOUND => {
            "make the directory it lies in"
        }
        status::INVALID_HANDLE | status::FILE_CLOSED => {
            "the server may not know related commands in one message (MS-SMB2 3.3.5.2.7.2), which \
             this client sends; see its log"
        }
        _ => "see what the server's log says",
    }
}

/// A share and how to reach it.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    /// As the user named it, for messages.
    pub name: &'a str,
    /// Is set when the user stops everything.
    pub stop: &'a Arc<AtomicBool>,
    /// Opens a connection, which ends what it does soon after the flag is raised.
    pub open: OpenShare<'a>,
}

/// Opens a connection to a share.
pub(super) type OpenShare<'a> =
    &'a (dyn Fn(&Arc<AtomicBool>) -> Result<Box<dyn Share>, SetupError> + Sync);

impl Site<'_> {
    /// A connection that ends when the user stops it.
    pub(super) fn connection(&self) -> Result<Box<dyn Share>, SetupError> {
        (self.open)(self.stop)
    }

    /// Describes what could not be done here.
    pub(super) fn unable_to(
        &self,
        doing: impl fmt::Display,
    ) -> impl FnOnce(ShareError) -> SetupError {
        move |error| error.unable_to(doing, self.name)
    }
}
