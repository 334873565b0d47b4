//! NFS version 2. RFC 1094.
//!
//! Every procedure has a type for its arguments (`…Args`) and one for its result (`…Res`).

mod attributes;

use super::xdr::{Decode, Encode, List, Name, Path, XdrError, XdrIn, opaque_bytes};

pub use self::attributes::*;

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

xdr_struct! {
    /// Arguments of GETATTR. RFC 1094 §2.2.2
    pub struct GetAttrArgs {
        /// The object.
        file: Handle2,
    }

    /// Arguments of SETATTR. RFC 1094 §2.2.3
    pub struct SetAttrArgs {
        /// The object.
        file: Handle2,
        /// What to set.
        attributes: SetAttributes2,
    }

    /// What GETATTR, SETATTR and WRITE answer. RFC 1094 §2.3.9 `attrstat`
    pub struct AttrOk {
        /// Of the object.
        attributes: FileAttributes2,
    }

    /// Arguments of LOOKUP, REMOVE and RMDIR. RFC 1094 §2.3.10 `diropargs`
    pub struct LookupArgs<'a> {
        /// Where.
        dir: Handle2,
        /// What.
        name: Name<'a>,
    }

    /// What LOOKUP, CREATE and MKDIR answer. RFC 1094 §2.3.11 `diropres`
    pub struct DirOpOk {
        /// The object.
        file: Handle2,
        /// Its attributes.
        attributes: FileAttributes2,
    }

    /// Arguments of READLINK. RFC 1094 §2.2.6
    pub struct ReadLinkArgs {
        /// The link.
        file: Handle2,
    }

    /// What READLINK answers. RFC 1094 §2.2.6
    pub struct ReadLinkOk<'a> {
        /// Text of the link.
        path: Path<'a>,
    }

    /// Arguments of READ. RFC 1094 §2.2.7
    pub struct ReadArgs {
        /// The file.
        file: Handle2,
        /// First byte.
        offset: u32,
        /// Most bytes wanted, [`DATA_BYTES_MAX`] at most.
        count: u32,
        /// Not used.
        total_count: u32,
    }

    /// What READ answers. RFC 1094 §2.2.7
    pub struct ReadOk<'a> {
        /// Of the file.
        attributes: FileAttributes2,
        /// What was read.
        data: Data2<'a>,
    }

    /// Arguments of WRITE. RFC 1094 §2.2.9
    pub struct WriteArgs<'a> {
        /// The file.
        file: Handle2,
        /// Not used.
        begin_offset: u32,
        /// First byte.
        offset: u32,
        /// Not used.
        total_count: u32,
        /// What to write.
        data: Data2<'a>,
    }

    /// Arguments of STATFS. RFC 1094 §2.2.18
    pub struct StatFsArgs {
        /// Any object of the file system.
        file: Handle2,
    }

    /// What STATFS answers. RFC 1094 §2.2.18
    pub struct StatFsOk {
        /// Best size of READs and WRITEs in bytes: `tsize`.
        transfer_bytes: u32,
        /// Bytes of a block: `bsize`.
        block_bytes: u32,
        /// Blocks in all.
        blocks: u32,
        /// Free blocks: `bfree`.
        free_blocks: u32,
        /// Blocks free for the caller: `bavail`.
        available_blocks: u32,
    }
}

/// Result of GETATTR.
pub type GetAttrRes = Reply2<AttrOk>;
/// Result of SETATTR.
pub type SetAttrRes = Reply2<AttrOk>;
/// Result of LOOKUP.
pub type LookupRes = Reply2<DirOpOk>;
/// Result of READLINK.
pub type ReadLinkRes<'a> = Reply2<ReadLinkOk<'a>>;
/// Result of READ.
pub type ReadRes<'a> = Reply2<ReadOk<'a>>;
/// Result of WRITE.
pub type WriteRes = Reply2<AttrOk>;
/// Result of STATFS.
pub type StatFsRes = Reply2<StatFsOk>;

xdr_struct! {
    /// Arguments of CREATE and MKDIR. RFC 1094 §2.2.10 `createargs`
    pub struct CreateArgs<'a> {
        /// Where.
        dir: Handle2,
        /// Name of the file.
        name: Name<'a>,
        /// Its attributes.
        attributes: SetAttributes2,
    }

    /// Arguments of RENAME. RFC 1094 §2.2.12
    pub struct RenameArgs<'a> {
        /// Where it is.
        from_dir: Handle2,
        /// Its name.
        from_name: Name<'a>,
        /// Where it goes.
        to_dir: Handle2,
        /// Its new name.
        to_name: Name<'a>,
    }

    /// Arguments of LINK. RFC 1094 §2.2.13
    pub struct LinkArgs<'a> {
        /// What gets another name.
        file: Handle2,
        /// Where.
        dir: Handle2,
        /// The name.
        name: Name<'a>,
    }

    /// Arguments of SYMLINK. RFC 1094 §2.2.14
    pub struct SymlinkArgs<'a> {
        /// Where.
        dir: Handle2,
        /// Name of the link.
        name: Name<'a>,
        /// Its text.
        path: Path<'a>,
        /// Its attributes, which servers may ignore.
        attributes: SetAttributes2,
    }

    /// Arguments of READDIR. RFC 1094 §2.2.17
    pub struct ReadDirArgs {
        /// The directory.
        dir: Handle2,
        /// Of the entry behind which to begin; 0: at the beginning. Opaque to clients.
        cookie: u32,
        /// Most bytes of the result.
        count: u32,
    }

    /// What READDIR answers. RFC 1094 §2.2.17
    pub struct ReadDirOk<'a> {
        /// Some entries.
        entries: List<'a, Entry<'a>>,
        /// There are no more.
        eof: bool,
    }

    /// An entry of a directory. RFC 1094 §2.2.17
    pub struct Entry<'a> {
        /// Number of the object.
        fileid: u32,
        /// Its name.
        name: Name<'a>,
        /// Where to go on behind it.
        cookie: u32,
    }
}

impl Entry<'_> {
    /// Bytes that it takes in a list.
    pub const fn bytes(&self) -> usize {
        4 + 4 + opaque_bytes(self.name.0.len()) + 4
    }
}

/// Arguments of REMOVE. RFC 1094 §2.2.11
pub type RemoveArgs<'a> = LookupArgs<'a>;
/// Arguments of MKDIR. RFC 1094 §2.2.15
pub type MkDirArgs<'a> = CreateArgs<'a>;
/// Arguments of RMDIR. RFC 1094 §2.2.16
pub type RmDirArgs<'a> = LookupArgs<'a>;
/// Result of CREATE.
pub type CreateRes = Reply2<DirOpOk>;
/// Result of REMOVE.
pub type RemoveRes = Reply2<()>;
/// Result of RENAME.
pub type RenameRes = Reply2<()>;
/// Result of LINK.
pub type LinkRes = Reply2<()>;
/// Result of SYMLINK.
pub type SymlinkRes = Reply2<()>;
/// Result of MKDIR.
pub type MkDirRes = Reply2<DirOpOk>;
/// Result of RMDIR.
pub type RmDirRes = Reply2<()>;
/// Result of READDIR.
pub type ReadDirRes<'a> = Reply2<ReadDirOk<'a>>;
