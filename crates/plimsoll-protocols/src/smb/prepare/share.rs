//! What the preparation asks of a share, over one connection. Paths are those of the share, with
//! backslashes.

use std::fmt;
use std::sync::atomic::AtomicU64;

use super::super::op::Content;
use super::super::wire::status;
use crate::content::ContentTable;
use crate::net::ErrandError;

/// One connection to a share.
pub trait Share {
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
    /// How much room the share has.
    fn space(&mut self) -> Result<Space, ShareError>;
}

/// What is to be in a file.
#[derive(Clone, Copy, Debug)]
pub enum Text<'a> {
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
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Keyed { bytes, .. } => *bytes,
            Self::Plain(text) => text.len() as u64,
        }
    }

    /// The `bytes` at `offset`, at most [`crate::content::SLICE_BYTES_MAX`].
    pub fn slice(&self, offset: u64, bytes: usize) -> &'a [u8] {
        match self {
            Self::Keyed { content, table, .. } => table.bytes(content.key, offset, bytes),
            Self::Plain(text) => &text[offset as usize..][..bytes],
        }
    }
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// What has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
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
    pub found: Found,
}

/// A share's room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// What this user may still write.
    pub available_bytes: u64,
}

/// Why something could not be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// The server refused.
    #[error("the server answered {}", words(*.0))]
    Status(u32),
    /// The connection, or what came over it, in words.
    #[error("{0}")]
    Broken(String),
    /// Under a name of ours there is something else.
    #[error("something else has that name")]
    Foreign,
    /// A WRITE was answered with success and nothing was written.
    #[error("the server took no byte")]
    Nothing,
    /// The caller said stop.
    #[error("stopped")]
    Stopped,
}

/// An NTSTATUS for a message.
pub fn words(number: u32) -> String {
    status::name(number).map_or_else(|| format!("NTSTATUS {number:#010x}"), str::to_owned)
}

impl ShareError {
    /// The server's status, when that is what failed.
    pub fn status(&self) -> Option<u32> {
        match self {
            Self::Status(status) => Some(*status),
            _ => None,
        }
    }

    /// For the user: what could not be done, where, why, and the next move.
    pub fn unable_to(&self, doing: &str, place: impl fmt::Display) -> ErrandError {
        match self {
            Self::Stopped => ErrandError::Stopped,
            _ => {
                ErrandError::Unusable(format!("{place}: cannot {doing}: {self}; {}", self.remedy()))
            }
        }
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::Status(status::ACCESS_DENIED | status::CANNOT_DELETE | status::MEDIA_WRITE_PROTECTED) => {
                "let this user write there: the share must not be read-only, and its directory's \
                 own permissions count too"
            }
            Self::Status(status::DISK_FULL | status::QUOTA_EXCEEDED) => {
                "free some space there or raise the user's quota, or ask for fewer clients or \
                 smaller workspaces (workload.workspace_mib, --profile quick)"
            }
            Self::Status(status::SHARING_VIOLATION | status::FILE_LOCK_CONFLICT | status::DELETE_PENDING) => {
                "another program holds it open: end that one, and start again"
            }
            Self::Status(status::OBJECT_PATH_NOT_FOUND) => {
                "make the directory that the URL names after the share, or leave it out"
            }
            Self::Broken(_) => "see whether the server still runs, and what its log says",
            Self::Foreign => "move it away, or plimsoll clean the share",
            Self::Status(_) | Self::Nothing | Self::Stopped => "see what the server's log says",
        }
    }
}
