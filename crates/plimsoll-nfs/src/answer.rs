//! What servers answer to set-up, the same for both versions of NFS.

use super::ask::{Bookmark, v2, v3};
use super::client::Service;
use super::handles::{HANDLE_BYTES_MAX, OwnedHandle};
use super::parameters::NfsVersion;
use super::refusal::{CallError, NfsStatus};
use super::wire;
use super::wire::xdr::{XdrError, XdrIn};

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

/// Attributes that set-up looks at.
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
pub struct Found {
    /// Its handle.
    pub handle: OwnedHandle,
    /// Its attributes, when the server gave them.
    pub attributes: Option<Attributes>,
}

/// What was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    /// Its handle, when the server gave it.
    pub handle: Option<OwnedHandle>,
}

/// What READ brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadBack {
    /// The bytes.
    pub data: Vec<u8>,
    /// How many the server says there are.
    pub count: u32,
    /// The file ends here (NFSv3).
    pub is_end: Option<bool>,
}

/// What WRITE did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// How much of the data.
    pub bytes: u32,
    /// The server's verifier (NFSv3): another one means a restart, and unstable data lost.
    pub verifier: Option<[u8; 8]>,
}

/// Space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
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

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: Vec<u8>,
    /// Number of the object.
    pub file_id: u64,
    /// Its attributes, when the server gave them.
    pub attributes: Option<Attributes>,
    /// Its handle, when the server gave it.
    pub handle: Option<OwnedHandle>,
}

/// Part of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// In the server's order.
    pub entries: Vec<Entry>,
    /// Where to go on; `None` at the end.
    pub next: Option<Bookmark>,
}

/// The RPC service of a version of NFS.
pub(crate) fn service(version: NfsVersion) -> Service {
    match version {
        NfsVersion::V2 => Service { program: wire::v2::PROGRAM, version: wire::v2::VERSION },
        NfsVersion::V3 => Service { program: wire::v3::PROGRAM, version: wire::v3::VERSION },
    }
}

/// A handle to keep.
pub(crate) fn owned(handle: &[u8]) -> Result<OwnedHandle, CallError> {
    OwnedHandle::new(handle).ok_or_else(|| {
        let bytes = u32::try_from(handle.len()).unwrap_or(u32::MAX);
        CallError::Garbled(XdrError::TooLong { bytes, max: HANDLE_BYTES_MAX as u32 })
    })
}

/// Only whether it was done: the status, which comes first in every reply.
pub(crate) fn done(results: &[u8]) -> Result<(), CallError> {
    match XdrIn::new(results).u32()? {
        0 => Ok(()),
        status => Err(NfsStatus(status).into()),
    }
}

macro_rules! by_version {
    ($($(#[$doc:meta])* fn $name:ident -> $answer:ty;)*) => {
        $(
            $(#[$doc])*
            pub(crate) fn $name(version: NfsVersion, results: &[u8]) -> Result<$answer, CallError> {
                match version {
                    NfsVersion::V2 => v2::$name(results),
                    NfsVersion::V3 => v3::$name(results),
                }
            }
        )*
    };
}

by_version! {
    /// Of GETATTR.
    fn attributes -> Attributes;
    /// Of LOOKUP.
    fn looked_up -> Found;
    /// Of CREATE and MKDIR.
    fn made -> Made;
    /// Of READLINK.
    fn link_text -> Vec<u8>;
    /// Of READ.
    fn read -> ReadBack;
    /// Of FSSTAT or STATFS.
    fn space -> Space;
    /// Of FSINFO, or STATFS.
    fn limits -> Limits;
    /// Of READDIR.
    fn page -> Page;
}

pub(crate) use super::ask::v3::{access, committed, full_page};

/// Of SYMLINK; NFSv2 tells no handle.
pub(crate) fn linked(version: NfsVersion, results: &[u8]) -> Result<Made, CallError> {
    match version {
        NfsVersion::V2 => done(results).map(|()| Made { handle: None }),
        NfsVersion::V3 => v3::made(results),
    }
}

/// Of WRITE of so many bytes; NFSv2 writes all or nothing.
pub(crate) fn written(
    version: NfsVersion,
    results: &[u8],
    asked: usize,
) -> Result<Written, CallError> {
    match version {
        NfsVersion::V2 => {
            let bytes = u32::try_from(asked).unwrap_or(u32::MAX);
            done(results).map(|()| Written { bytes, verifier: None })
        }
        NfsVersion::V3 => v3::written(results),
    }
}
