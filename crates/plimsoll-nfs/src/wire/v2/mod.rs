//! NFS version 2. RFC 1094.
//!
//! Every procedure has a type for its arguments (`…Args`), and one for what it answers (`…Ok`) in a
//! [`Reply2`]. What would have one field is that field: the argument of GETATTR, READLINK and STATFS
//! is a [`Handle2`]; GETATTR, SETATTR and WRITE answer [`FileAttributes2`], READLINK a [`Path`].

mod attributes;

use super::reply::Reply;
use super::xdr::{List, Name, Path, opaque_bytes};

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

/// Result of a procedure; nothing comes with a failure.
pub type Reply2<T> = Reply<Status2, T>;

xdr_struct! {
    /// Arguments of SETATTR. RFC 1094 §2.2.3
    pub struct SetAttrArgs {
        /// The object.
        file: Handle2,
        /// What to set.
        attributes: SetAttributes2,
    }

    /// Arguments of LOOKUP, REMOVE and RMDIR. RFC 1094 §2.3.10 `diropargs`
    pub struct DirOpArgs<'a> {
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

    /// Arguments of READ. RFC 1094 §2.2.7
    pub struct ReadArgs {
        /// The file.
        file: Handle2,
        /// First byte.
        offset: u32,
        /// Requested bytes, [`DATA_BYTES_MAX`] at most.
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
