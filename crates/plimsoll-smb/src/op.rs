//! One desktop operation, as script and session see it: a line of a load file.
//!
//! The session turns it into one SMB2 command or several; `docs/smb-operations.md` has the mapping.
//!
//! A query of a name is one related compound (CREATE, the query, CLOSE), as desktops send it. Three
//! round trips would measure something else.

use std::fmt;

use plimsoll_model::outcome::OpKind;

pub use super::wire::create::Disposition;
pub use super::wire::fscc::{FileLevel, FindLevel, FsLevel};

/// A handle that the script chooses; the session keeps the server's id for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandleNo(pub u32);

/// What the client does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmbCall {
    /// The operation.
    pub op: SmbOp,
    /// What the server should answer.
    pub expected: Expected,
}

/// The operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SmbOp {
    /// Opens or makes a file or directory.
    Create {
        /// Below the share's root (or the URL's path), with backslashes, without a leading one.
        path: PathText,
        /// The handle from now on.
        handle: HandleNo,
        /// What to do if it exists, and if not (MS-SMB2 2.2.13).
        disposition: Disposition,
        /// CreateOptions (MS-SMB2 2.2.13): directory, non-directory, delete on close …
        options: u32,
    },
    /// Closes a handle.
    Close {
        /// Which.
        handle: HandleNo,
    },
    /// Brings written data to stable storage.
    Flush {
        /// Of which handle.
        handle: HandleNo,
    },
    /// Reads.
    Read {
        /// From which handle.
        handle: HandleNo,
        /// Where.
        offset: u64,
        /// Requested bytes.
        length: u32,
        /// Bytes that should come; the server gives fewer at the end of the file.
        expected_length: ExpectedLength,
        /// What they should be.
        check: Option<Content>,
    },
    /// Writes.
    Write {
        /// To which handle.
        handle: HandleNo,
        /// Where.
        offset: u64,
        /// Bytes.
        length: u32,
        /// What they are.
        content: Content,
    },
    /// Writes a text of set-up's, at the start of the file. In no mix.
    WriteText {
        /// To which handle.
        handle: HandleNo,
        /// At most 4 KiB.
        text: Box<[u8]>,
    },
    /// Locks a range for this handle alone, at once or not at all.
    Lock {
        /// Of which handle.
        handle: HandleNo,
        /// Start.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// Gives a locked range back.
    Unlock {
        /// Of which handle.
        handle: HandleNo,
        /// Start.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// Gives a file another name.
    Rename {
        /// What is renamed.
        path: PathText,
        /// Its name from now on.
        to: PathText,
        /// Replaces a file of that name; else an existing one is an error.
        replace: bool,
    },
    /// Removes a file.
    Unlink {
        /// Which.
        path: PathText,
    },
    /// Makes a directory.
    Mkdir {
        /// Which.
        path: PathText,
    },
    /// Removes an empty directory.
    Rmdir {
        /// Which.
        path: PathText,
    },
    /// Removes a directory and all below it; a missing one is no error.
    Deltree {
        /// Which.
        path: PathText,
    },
    /// Queries a name.
    QueryPath {
        /// Which.
        path: PathText,
        /// What is queried.
        level: FileLevel,
    },
    /// Queries an open file.
    QueryFile {
        /// Which.
        handle: HandleNo,
        /// What is queried.
        level: FileLevel,
    },
    /// Changes an open file's metadata.
    SetFile {
        /// Which.
        handle: HandleNo,
        /// What is set.
        set: FileChange,
    },
    /// Queries the volume.
    QueryFs {
        /// What is queried.
        level: FsLevel,
    },
    /// First part of a directory's listing.
    Find {
        /// The directory; empty is the root.
        directory: PathText,
        /// Names that match, with `*` and `?`.
        pattern: PathText,
        /// What is queried of each.
        level: FindLevel,
        /// Most entries; 0 leaves it to the buffer.
        entries_max: u32,
    },
    /// The next part of an open directory's listing. Only set-up reads on; in no mix.
    FindNext {
        /// Of which handle.
        handle: HandleNo,
    },
    /// Asks the server to answer.
    Echo,
    /// Logs on over a connection of its own, reaches the share, logs off.
    Logon,
    /// Opens the client's own connection, logs on and reaches the share. The session stays.
    OpenSession,
}

/// Bytes of a read that should come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedLength {
    /// Exactly as many; another number is [`plimsoll_model::outcome::ErrorClass::Length`].
    Exactly(u32),
    /// Whatever comes.
    Any,
}

/// Bytes of a file as the file set's generator makes them: an offset in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// Of the file; byte at `offset` is `table[(key + offset) mod its length]`.
    pub key: u64,
}

/// What is set of a file, MS-FSCC 2.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// FileBasicInformation with nothing to change but the time of last write, kept as it is.
    Basic,
    /// FileEndOfFileInformation.
    EndOfFile(u64),
    /// FileAllocationInformation.
    Allocation(u64),
    /// FileDispositionInformation: remove on close, or not.
    Disposition(bool),
}

/// What the server should answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// STATUS_SUCCESS.
    Success,
    /// That NTSTATUS, which is a failure.
    Failure(u32),
    /// Any failure.
    AnyFailure,
    /// Whatever comes.
    Anything,
}

/// A name or path, stored inline so that an op needs no allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PathText {
    length: u8,
    bytes: [u8; PathText::BYTES_MAX],
}

/// A path that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a path of {bytes} bytes is longer than {max}", max = PathText::BYTES_MAX)]
pub struct PathTooLong {
    /// Its length.
    pub bytes: usize,
}

impl PathText {
    /// Longest path in bytes of UTF-8.
    pub const BYTES_MAX: usize = 191;

    /// The empty path.
    pub const EMPTY: Self = Self { length: 0, bytes: [0; Self::BYTES_MAX] };

    /// Keeps `text`.
    pub fn new(text: &str) -> Result<Self, PathTooLong> {
        let mut path = Self::EMPTY;
        path.push(text)?;
        Ok(path)
    }

    /// Adds `text` at the end.
    pub fn push(&mut self, text: &str) -> Result<(), PathTooLong> {
        let from = usize::from(self.length);
        let to = from + text.len();
        if to > Self::BYTES_MAX {
            return Err(PathTooLong { bytes: to });
        }
        self.bytes[from..to].copy_from_slice(text.as_bytes());
        self.length = to as u8;
        Ok(())
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        let bytes = &self.bytes[..usize::from(self.length)];
        std::str::from_utf8(bytes).expect("only whole strings are put in")
    }

    /// Nothing in it.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl fmt::Write for PathText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text).map_err(|_| fmt::Error)
    }
}

impl fmt::Debug for PathText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl fmt::Display for PathText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

plimsoll_model::named! {
    fn name;
    /// Kinds of ops; the order is that of the names.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    #[expect(missing_docs, reason = "each is the SmbOp of its name")]
    pub enum SmbKind {
        Create = "create",
        Close = "close",
        Flush = "flush",
        Read = "read",
        Write = "write",
        Lock = "lock",
        Unlock = "unlock",
        Rename = "rename",
        Unlink = "unlink",
        Mkdir = "mkdir",
        Rmdir = "rmdir",
        Deltree = "deltree",
        QueryPath = "query_path",
        QueryFile = "query_file",
        SetFile = "set_file",
        QueryFs = "query_fs",
        Find = "find",
        Echo = "echo",
        Logon = "logon",
    }
}

/// Every workload of this protocol has the same list of names, so that a kind needs no table.
impl From<SmbKind> for OpKind {
    fn from(kind: SmbKind) -> Self {
        Self(kind as u8)
    }
}

impl SmbOp {
    /// Its kind.
    pub const fn kind(&self) -> SmbKind {
        match self {
            Self::Create { .. } => SmbKind::Create,
            Self::Close { .. } => SmbKind::Close,
            Self::Flush { .. } => SmbKind::Flush,
            Self::Read { .. } => SmbKind::Read,
            Self::Write { .. } | Self::WriteText { .. } => SmbKind::Write,
            Self::Lock { .. } => SmbKind::Lock,
            Self::Unlock { .. } => SmbKind::Unlock,
            Self::Rename { .. } => SmbKind::Rename,
            Self::Unlink { .. } => SmbKind::Unlink,
            Self::Mkdir { .. } => SmbKind::Mkdir,
            Self::Rmdir { .. } => SmbKind::Rmdir,
            Self::Deltree { .. } => SmbKind::Deltree,
            Self::QueryPath { .. } => SmbKind::QueryPath,
            Self::QueryFile { .. } => SmbKind::QueryFile,
            Self::SetFile { .. } => SmbKind::SetFile,
            Self::QueryFs { .. } => SmbKind::QueryFs,
            Self::Find { .. } | Self::FindNext { .. } => SmbKind::Find,
            Self::Echo => SmbKind::Echo,
            Self::Logon | Self::OpenSession => SmbKind::Logon,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_in_the_order_of_their_names() {
        for (number, kind) in SmbKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
    }

    #[test]
    fn a_path_that_does_not_fit_is_refused_and_leaves_what_was_there() {
        let mut path = PathText::new("client00001\\").unwrap();
        let long = "x".repeat(PathText::BYTES_MAX);
        assert_eq!(path.push(&long), Err(PathTooLong { bytes: 12 + PathText::BYTES_MAX }));
        assert_eq!(path.as_str(), "client00001\\");
    }
}
