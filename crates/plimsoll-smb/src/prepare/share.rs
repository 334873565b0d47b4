//! What the preparation asks of a share, over one connection. Paths are those of the share, with
//! backslashes.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::super::client::SmbError;
use super::super::op::Content;
use super::super::wire::status;
use plimsoll_protocol::content::ContentTable;
use plimsoll_protocol::net::SetupError;

/// One connection to a share.
pub(super) trait Share {
    /// What has that name; `None`: nothing has.
    fn find(&mut self, path: &str) -> Result<Option<Found>, ShareError>;
    /// What a directory holds; `None`: there is no such directory.
    fn list(&mut self, path: &str) -> Result<Option<Vec<Entry>>, ShareError>;
    /// Makes a directory; one that is there is as good.
    fn make_dir(&mut self, path: &str) -> Result<(), ShareError>;
    /// Makes a file, or empties the one that is there, and writes all of it. The last bytes are
    /// written when all others are there, so that a file of its whole size has its whole content
    /// wherever the work was cut short.
    fn write(&mut self, path: &str, text: &Text<'_>, written: &AtomicU64)
    -> Result<(), ShareError>;
    /// Cuts a file.
    fn cut(&mut self, path: &str, bytes: u64) -> Result<(), ShareError>;
    /// The bytes at `offset`, fewer at the end of the file.
    fn read(&mut self, path: &str, offset: u64, bytes: u32) -> Result<Vec<u8>, ShareError>;
    /// Gives a file another name, and takes it from what has it.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), ShareError>;
    /// Removes a file or an empty directory; nothing there is as good.
    fn remove(&mut self, path: &str, kind: Kind) -> Result<(), ShareError>;
    /// Lets the server be for so long.
    fn pause(&mut self, time: Duration) -> Result<(), ShareError>;
    /// How much room the share has.
    fn space(&mut self) -> Result<Space, ShareError>;
}

/// What is to be in a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Text<'a> {
    /// Of a table of content.
    Keyed {
        /// Size of the file.
        bytes: u64,
        /// What it holds.
        content: Content,
        /// In which table.
        table: &'a ContentTable,
    },
    /// This.
    Plain(&'a [u8]),
}

impl<'a> Text<'a> {
    /// All of it.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Keyed { bytes, .. } => *bytes,
            Self::Plain(text) => text.len() as u64,
        }
    }

    /// The `bytes` at `offset`, at most [`plimsoll_protocol::content::SLICE_BYTES_MAX`].
    pub(super) fn slice(&self, offset: u64, bytes: usize) -> &'a [u8] {
        match self {
            Self::Keyed { content, table, .. } => table.bytes(content.key, offset, bytes),
            Self::Plain(text) => &text[offset as usize..][..bytes],
        }
    }
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// What has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// File or directory.
    pub kind: Kind,
    /// Size of a file.
    pub bytes: u64,
}

/// One of a directory's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its name there.
    pub name: String,
    /// What it is.
    pub found: Found,
}

/// A share's room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Space {
    /// What this user may still write.
    pub available_bytes: u64,
}

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub(super) enum ShareError {
    /// The server refused, or could not be asked.
    #[error(transparent)]
    Client(#[from] SmbError),
    /// Under a name of ours there is something else.
    #[error("something else has that name")]
    Foreign,
}

/// An NTSTATUS for a message.
pub(super) fn words(number: u32) -> String {
    status::name(number).map_or_else(|| format!("NTSTATUS {number:#010x}"), str::to_owned)
}

impl ShareError {
    /// The server's status, when that is what failed.
    pub(super) fn status(&self) -> Option<u32> {
        match self {
            Self::Client(error) => error.status(),
            Self::Foreign => None,
        }
    }

    /// For the user: what could not be done, where, why, and the next move.
    pub(super) fn unable_to(self, doing: &str, place: impl fmt::Display) -> SetupError {
        match self {
            Self::Client(error) => error.unable_to(doing, place),
            Self::Foreign => SetupError::Unusable(format!(
                "{place}: cannot {doing}: {self}; move it away, or plimsoll clean the share"
            )),
        }
    }
}
