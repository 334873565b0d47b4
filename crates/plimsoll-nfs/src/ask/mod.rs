//! Both versions of NFS behind one set of questions and answers, for set-up. The measured
//! session has no such layer between itself and the wire.

pub(super) mod v2;
pub(super) mod v3;

use super::client::Question;
use super::handles::OwnedHandle;
use super::op::Stability;
use super::parameters::NfsVersion;

/// Mode of the files made.
pub const FILE_MODE: u32 = 0o644;
/// Mode of the directories made.
pub const DIRECTORY_MODE: u32 = 0o755;

/// A question to the server.
#[derive(Clone, Copy, Debug)]
pub enum Ask<'a> {
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
    /// Bytes of a file.
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
    /// Names in a directory.
    ReadDir(&'a OwnedHandle, Bookmark, u32),
    /// Names in a directory with attributes and handles (NFSv3).
    ReadDirPlus(&'a OwnedHandle, Bookmark, u32),
    /// Space in the file system.
    FsStat(&'a OwnedHandle),
    /// Limits of the server (NFSv3).
    FsInfo(&'a OwnedHandle),
    /// Makes all unstable writes to a file durable (NFSv3).
    Commit(&'a OwnedHandle),
}

/// A question in a version.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Version of NFS.
    pub version: NfsVersion,
    /// What is asked.
    pub ask: Ask<'a>,
}

/// Where a listing goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bookmark {
    /// Cookie of the last entry; 0 begins.
    pub cookie: u64,
    /// The server's word that cookies are still valid (NFSv3).
    pub verifier: [u8; 8],
}

impl Question for Query<'_> {
    fn procedure(&self) -> u32 {
        match self.version {
            NfsVersion::V2 => v2::procedure(&self.ask).number(),
            NfsVersion::V3 => v3::procedure(&self.ask).number(),
        }
    }

    fn encode_arguments(&self, out: &mut Vec<u8>) {
        match self.version {
            NfsVersion::V2 => v2::encode(&self.ask, out),
            NfsVersion::V3 => v3::encode(&self.ask, out),
        }
    }
}
