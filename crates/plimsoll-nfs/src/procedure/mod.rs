//! The procedures of NFS, the same for both versions: from a call to its bytes, from the bytes of
//! a reply to what it says. The measured session and set-up both go through here.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `results` | what the results of a procedure say |
//! | `reply` | reads them in the version that was called |
//! | `v2`, `v3` | calls and results in the messages of a version |

pub(crate) mod reply;
pub(crate) mod results;
mod v2;
mod v3;

use super::handles::OwnedHandle;
use super::op::Stability;
use super::parameters::NfsVersion;
use super::wire::rpc::{CallWriter, Service};

/// Mode of the files made.
pub const FILE_MODE: u32 = 0o644;
/// Mode of the directories made.
pub const DIRECTORY_MODE: u32 = 0o755;

/// A call: the procedure and its arguments.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// Does nothing.
    Null,
    /// Attributes of anything.
    GetAttr(&'a OwnedHandle),
    /// Sets the mode.
    SetMode(&'a OwnedHandle, u32),
    /// Sets the size of a file.
    SetSize(&'a OwnedHandle, u64),
    /// What a directory has under a name.
    LookUp(&'a OwnedHandle, &'a [u8]),
    /// Which of these accesses are granted (NFSv3).
    Access(&'a OwnedHandle, u32),
    /// Text of a symbolic link.
    ReadLink(&'a OwnedHandle),
    /// Bytes of a file: from where, and how many.
    Read(&'a OwnedHandle, u64, u32),
    /// Writes bytes to a file.
    Write(&'a OwnedHandle, u64, &'a [u8], Stability),
    /// Makes a file if there is none.
    Create(&'a OwnedHandle, &'a [u8]),
    /// Makes a directory.
    MakeDir(&'a OwnedHandle, &'a [u8]),
    /// Makes a symbolic link: directory, name, text.
    MakeLink(&'a OwnedHandle, &'a [u8], &'a [u8]),
    /// Removes anything but a directory.
    Remove(&'a OwnedHandle, &'a [u8]),
    /// Removes an empty directory.
    RemoveDir(&'a OwnedHandle, &'a [u8]),
    /// Gives another name within the directory: from, to.
    Rename(&'a OwnedHandle, &'a [u8], &'a [u8]),
    /// Names in a directory, in so many bytes.
    ReadDir(&'a OwnedHandle, Cookie, u32),
    /// Names in a directory with attributes and handles; in NFSv2 names alone.
    ReadDirPlus(&'a OwnedHandle, Cookie, u32),
    /// Space in the file system.
    FsStat(&'a OwnedHandle),
    /// Limits of the server.
    FsInfo(&'a OwnedHandle),
    /// Makes all unstable writes to a file durable (NFSv3).
    Commit(&'a OwnedHandle),
}

impl Call<'_> {
    /// Appends the message.
    #[inline]
    pub(crate) fn encode(self, version: NfsVersion, to: CallWriter<'_>) {
        match version {
            NfsVersion::V2 => v2::encode(self, to),
            NfsVersion::V3 => v3::encode(self, to),
        }
    }
}

/// Where a listing goes on; by default at the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cookie {
    /// Of the last entry; 0 begins.
    pub number: u64,
    /// The server's word that cookies are still valid (NFSv3).
    pub verifier: [u8; 8],
}

/// The RPC service of a version of NFS.
pub(crate) fn service(version: NfsVersion) -> Service {
    match version {
        NfsVersion::V2 => v2::SERVICE,
        NfsVersion::V3 => v3::SERVICE,
    }
}
