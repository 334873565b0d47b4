//! NFS version 2. RFC 1094.
//!
//! Every procedure has a type for its arguments (`…Args`) and one for its result (`…Res`).

mod attributes;
mod directories;
mod files;

use super::xdr::{Decode, Encode, XdrError, XdrIn};

pub use attributes::*;
pub use directories::*;
pub use files::*;

/// Program number, the same as of version 3.
pub const PROGRAM: u32 = 100_003;
/// The version.
pub const VERSION: u32 = 2;
/// Most bytes of a READ or WRITE: `MAXDATA`. RFC 1094 §3.5
pub const DATA_BYTES_MAX: u32 = 8192;

procedures! {
    /// Procedures of NFS version 2. RFC 1094 §2.2
    pub enum Procedure {
        Null = 0 "NULL",
        GetAttr = 1 "GETATTR",
        SetAttr = 2 "SETATTR",
        Root = 3 "ROOT",
        Lookup = 4 "LOOKUP",
        ReadLink = 5 "READLINK",
        Read = 6 "READ",
        WriteCache = 7 "WRITECACHE",
        Write = 8 "WRITE",
        Create = 9 "CREATE",
        Remove = 10 "REMOVE",
        Rename = 11 "RENAME",
        Link = 12 "LINK",
        Symlink = 13 "SYMLINK",
        MkDir = 14 "MKDIR",
        RmDir = 15 "RMDIR",
        ReadDir = 16 "READDIR",
        StatFs = 17 "STATFS",
    }
}

statuses! {
    /// `stat`. RFC 1094 §2.3.1
    pub struct Status2 else "NFSERR" {
        OK = 0 "NFS_OK",
        PERM = 1 "NFSERR_PERM",
        NOENT = 2 "NFSERR_NOENT",
        IO = 5 "NFSERR_IO",
        NXIO = 6 "NFSERR_NXIO",
        ACCES = 13 "NFSERR_ACCES",
        EXIST = 17 "NFSERR_EXIST",
        NODEV = 19 "NFSERR_NODEV",
        NOTDIR = 20 "NFSERR_NOTDIR",
        ISDIR = 21 "NFSERR_ISDIR",
        FBIG = 27 "NFSERR_FBIG",
        NOSPC = 28 "NFSERR_NOSPC",
        ROFS = 30 "NFSERR_ROFS",
        NAMETOOLONG = 63 "NFSERR_NAMETOOLONG",
        NOTEMPTY = 66 "NFSERR_NOTEMPTY",
        DQUOT = 69 "NFSERR_DQUOT",
        STALE = 70 "NFSERR_STALE",
        WFLUSH = 99 "NFSERR_WFLUSH",
    }
}

/// Result of a procedure: the status, and behind `NFS_OK` what it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply2<T> {
    /// `NFS_OK`.
    Ok(T),
    /// Another status.
    Err(Status2),
}

impl<T> Reply2<T> {
    /// The status on the wire.
    #[inline]
    pub fn status(&self) -> Status2 {
        match self {
            Self::Ok(_) => Status2::OK,
            Self::Err(status) => *status,
        }
    }

    /// What came with success, or the status.
    #[inline]
    pub fn ok(self) -> Result<T, Status2> {
        match self {
            Self::Ok(ok) => Ok(ok),
            Self::Err(status) => Err(status),
        }
    }
}

impl<T: Encode> Encode for Reply2<T> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.status().encode(out);
        if let Self::Ok(ok) = self {
            ok.encode(out);
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Reply2<T> {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        match Status2::decode(input)? {
            Status2::OK => T::decode(input).map(Self::Ok),
            status => Ok(Self::Err(status)),
        }
    }
}
