//! The results of a procedure, in both versions. Data, names and handles lie in the message still.

use std::cell::Cell;
use std::fmt;

use super::Cookie;
use crate::handles::{HandleBytes, OwnedHandle};
use crate::wire::Path;
use crate::wire::flaws::Flaws;
use crate::wire::v3::StableHow;
use crate::wire::xdr::{ListIter, XdrError, XdrIn};
use crate::wire::{v2 as wire2, v3 as wire3, v4 as wire4};

/// Results of a procedure as they came, and the flaws noted while they are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Results<'m> {
    pub(crate) bytes: &'m [u8],
    pub(crate) flaws: &'m Cell<Flaws>,
}

impl<'m> Results<'m> {
    /// From their start.
    #[inline]
    pub(crate) fn read(self) -> XdrIn<'m> {
        XdrIn::tolerant(self.bytes)
    }

    /// Everything that is needed of them has been read.
    #[inline]
    pub(crate) fn end(self, input: XdrIn<'m>) {
        self.flaws.set(self.flaws.get().and(input.into_flaws()));
    }
}

/// Why a reply has no results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyError {
    /// The procedure failed with this status.
    Status { code: u32, name: Option<&'static str> },
    /// The bytes are no such results.
    Undecodable(XdrError),
}

impl From<XdrError> for ReplyError {
    fn from(error: XdrError) -> Self {
        Self::Undecodable(error)
    }
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, socket or pipe.
    Other,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "regular file",
            Self::Directory => "directory",
            Self::Link => "symbolic link",
            Self::Other => "special file",
        })
    }
}

/// Attributes that somebody looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// What it is.
    pub kind: Kind,
    /// Permissions.
    pub mode: u32,
    /// Size in bytes.
    pub size: u64,
    /// Its number in the file system.
    pub file_id: u64,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupResult<H = OwnedHandle> {
    /// Its handle.
    pub handle: H,
    /// Its attributes, when the server gave them.
    pub attributes: Option<Attributes>,
    pub(crate) dir_attributes: Option<Attributes>,
}

impl LookupResult<HandleBytes<'_>> {
    /// To be kept.
    pub(crate) fn owned(self) -> LookupResult {
        let Self { handle, attributes, dir_attributes } = self;
        LookupResult { handle: handle.into(), attributes, dir_attributes }
    }
}

/// What may be done with an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    pub(crate) attributes: Option<Attributes>,
    /// Bits of the requested accesses that are granted.
    pub(crate) access: u32,
}

/// The text of a symbolic link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkText<'m> {
    pub(crate) attributes: Option<Attributes>,
    pub(crate) text: Path<'m>,
}

/// What READ brought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadData<'m> {
    pub(crate) attributes: Option<Attributes>,
    pub(crate) data: &'m [u8],
    /// The number of bytes that the server reports.
    pub(crate) count: u32,
    /// The file ends here (NFSv3).
    pub(crate) is_end: Option<bool>,
}

/// What WRITE did.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub(crate) attributes: Option<Attributes>,
    /// How much of the data; NFSv2 writes all or nothing.
    pub(crate) count: Option<u32>,
    /// How durable it is.
    pub(crate) committed: StableHow,
    /// The server's verifier (NFSv3): another one means a restart, and unstable data lost.
    pub(crate) verifier: Option<[u8; 8]>,
}

impl Written {
    /// How much of the `bytes` that were sent.
    pub(crate) fn bytes_of(&self, bytes: usize) -> u32 {
        self.count.unwrap_or_else(|| u32::try_from(bytes).unwrap_or(u32::MAX))
    }
}

/// Unstable data is durable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Committed {
    pub(crate) attributes: Option<Attributes>,
    pub(crate) verifier: [u8; 8],
}

/// What was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made<'m> {
    /// When the server gave it.
    pub(crate) handle: Option<HandleBytes<'m>>,
    pub(crate) attributes: Option<Attributes>,
    pub(crate) dir_attributes: Option<Attributes>,
}

/// Space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub(crate) attributes: Option<Attributes>,
    /// In all.
    pub total_bytes: u64,
    /// Free.
    pub free_bytes: u64,
    /// Free for us.
    pub available_bytes: u64,
    /// Files that can still be made, where they are counted.
    pub available_files: Option<u64>,
}

/// What a server can transfer at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// By a READ.
    pub read_bytes_max: u32,
    /// By a WRITE.
    pub write_bytes_max: u32,
}

/// Part of a listing.
#[derive(Clone, Copy)]
pub(crate) struct Page<'m> {
    pub(crate) dir_attributes: Option<Attributes>,
    pub(crate) verifier: [u8; 8],
    /// In the server's order.
    pub(crate) entries: Entries<'m>,
    pub(crate) is_end: bool,
}

impl Page<'_> {
    /// Where to go on; `None` at the end.
    pub(crate) fn next(&self) -> Option<Cookie> {
        let last = self.entries.last().filter(|_| !self.is_end);
        last.map(|last| Cookie { number: last.cookie, verifier: self.verifier })
    }
}

/// A name in a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'m> {
    pub(crate) name: &'m [u8],
    pub(crate) cookie: u64,
    /// When the server gave them.
    pub(crate) attributes: Option<Attributes>,
    /// When the server gave it.
    pub(crate) handle: Option<HandleBytes<'m>>,
}

/// Decoded on demand.
#[derive(Clone, Copy)]
pub(crate) enum Entries<'m> {
    V2(ListIter<'m, wire2::Entry<'m>>),
    V3(ListIter<'m, wire3::Entry<'m>>),
    V3Plus(ListIter<'m, wire3::EntryPlus<'m>>),
    V4(ListIter<'m, wire4::Entry4<'m>>),
}

impl Entries<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::V2(entries) => entries.is_empty(),
            Self::V3(entries) => entries.is_empty(),
            Self::V3Plus(entries) => entries.is_empty(),
            Self::V4(entries) => entries.is_empty(),
        }
    }
}

impl<'m> Iterator for Entries<'m> {
    type Item = Entry<'m>;

    fn next(&mut self) -> Option<Entry<'m>> {
        match self {
            Self::V2(entries) => entries.next().map(Entry::from),
            Self::V3(entries) => entries.next().map(Entry::from),
            Self::V3Plus(entries) => entries.next().map(Entry::from),
            Self::V4(entries) => entries.next().map(Entry::from),
        }
    }
}
