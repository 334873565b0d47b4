//! NFS version 3. RFC 1813.
//!
//! Every procedure has a type for its arguments (`…Args`) and one for its result (`…Res`), which
//! is a [`Reply3`] of what it answers when it succeeds (`…Ok`) and what when it fails.

mod attributes;
mod creating;
mod data;
mod filesystem;
mod listing;
mod objects;
mod removing;

use super::xdr::{Decode, Encode, XdrError, XdrIn};

pub use attributes::*;
pub use creating::*;
pub use data::*;
pub use filesystem::*;
pub use listing::*;
pub use objects::*;
pub use removing::*;

/// Program number, the same as of version 2.
pub const PROGRAM: u32 = 100_003;
/// The version.
pub const VERSION: u32 = 3;

procedures! {
    /// Procedures of NFS version 3. RFC 1813 §3
    pub enum Procedure {
        Null = 0 "NULL",
        GetAttr = 1 "GETATTR",
        SetAttr = 2 "SETATTR",
        Lookup = 3 "LOOKUP",
        Access = 4 "ACCESS",
        ReadLink = 5 "READLINK",
        Read = 6 "READ",
        Write = 7 "WRITE",
        Create = 8 "CREATE",
        MkDir = 9 "MKDIR",
        Symlink = 10 "SYMLINK",
        MkNod = 11 "MKNOD",
        Remove = 12 "REMOVE",
        RmDir = 13 "RMDIR",
        Rename = 14 "RENAME",
        Link = 15 "LINK",
        ReadDir = 16 "READDIR",
        ReadDirPlus = 17 "READDIRPLUS",
        FsStat = 18 "FSSTAT",
        FsInfo = 19 "FSINFO",
        PathConf = 20 "PATHCONF",
        Commit = 21 "COMMIT",
    }
}

statuses! {
    /// `nfsstat3`. RFC 1813 §2.6
    pub struct Status3 else "NFS3ERR" {
        OK = 0 "NFS3_OK",
        PERM = 1 "NFS3ERR_PERM",
        NOENT = 2 "NFS3ERR_NOENT",
        IO = 5 "NFS3ERR_IO",
        NXIO = 6 "NFS3ERR_NXIO",
        ACCES = 13 "NFS3ERR_ACCES",
        EXIST = 17 "NFS3ERR_EXIST",
        XDEV = 18 "NFS3ERR_XDEV",
        NODEV = 19 "NFS3ERR_NODEV",
        NOTDIR = 20 "NFS3ERR_NOTDIR",
        ISDIR = 21 "NFS3ERR_ISDIR",
        INVAL = 22 "NFS3ERR_INVAL",
        FBIG = 27 "NFS3ERR_FBIG",
        NOSPC = 28 "NFS3ERR_NOSPC",
        ROFS = 30 "NFS3ERR_ROFS",
        MLINK = 31 "NFS3ERR_MLINK",
        NAMETOOLONG = 63 "NFS3ERR_NAMETOOLONG",
        NOTEMPTY = 66 "NFS3ERR_NOTEMPTY",
        DQUOT = 69 "NFS3ERR_DQUOT",
        STALE = 70 "NFS3ERR_STALE",
        REMOTE = 71 "NFS3ERR_REMOTE",
        BADHANDLE = 10_001 "NFS3ERR_BADHANDLE",
        NOT_SYNC = 10_002 "NFS3ERR_NOT_SYNC",
        BAD_COOKIE = 10_003 "NFS3ERR_BAD_COOKIE",
        NOTSUPP = 10_004 "NFS3ERR_NOTSUPP",
        TOOSMALL = 10_005 "NFS3ERR_TOOSMALL",
        SERVERFAULT = 10_006 "NFS3ERR_SERVERFAULT",
        BADTYPE = 10_007 "NFS3ERR_BADTYPE",
        JUKEBOX = 10_008 "NFS3ERR_JUKEBOX",
    }
}

/// Result of a procedure: the status, and behind it what the case calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply3<T, E> {
    /// `NFS3_OK`.
    Ok(T),
    /// Another status.
    Err(Status3, E),
}

impl<T, E> Reply3<T, E> {
    /// The status on the wire.
    #[inline]
    pub fn status(&self) -> Status3 {
        match self {
            Self::Ok(_) => Status3::OK,
            Self::Err(status, _) => *status,
        }
    }

    /// What came with success, or the status.
    #[inline]
    pub fn ok(self) -> Result<T, Status3> {
        match self {
            Self::Ok(ok) => Ok(ok),
            Self::Err(status, _) => Err(status),
        }
    }
}

impl<T: Encode, E: Encode> Encode for Reply3<T, E> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.status().encode(out);
        match self {
            Self::Ok(ok) => ok.encode(out),
            Self::Err(_, failure) => failure.encode(out),
        }
    }
}

impl<'a, T: Decode<'a>, E: Decode<'a>> Decode<'a> for Reply3<T, E> {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        match Status3::decode(input)? {
            Status3::OK => T::decode(input).map(Self::Ok),
            status => E::decode(input).map(|failure| Self::Err(status, failure)),
        }
    }
}
