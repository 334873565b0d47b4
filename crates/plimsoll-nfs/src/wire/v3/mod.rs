//! NFS version 3. RFC 1813.
//!
//! Every procedure has a type for its arguments (`…Args`) and one for its result (`…Res`), which
//! is a [`Reply3`] of what it answers when it succeeds (`…Ok`) and what when it fails. What would
//! have one field is that field: the argument of GETATTR, READLINK, FSSTAT, FSINFO and PATHCONF is
//! a [`Handle`].

mod attributes;
mod directories;
mod objects;

use super::reply::Reply;

pub use self::attributes::*;
pub use self::directories::*;
pub use self::objects::*;

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

/// Result of a procedure.
pub type Reply3<T, E> = Reply<Status3, T, E>;

xdr_struct! {
    /// What FSSTAT answers. RFC 1813 §3.3.18
    pub struct FsStatOk {
        /// Of the object.
        attributes: PostOpAttr,
        /// Size.
        total_bytes: u64,
        /// Free.
        free_bytes: u64,
        /// Free for the caller.
        available_bytes: u64,
        /// Slots for files.
        total_files: u64,
        /// Free ones.
        free_files: u64,
        /// Free for the caller.
        available_files: u64,
        /// Seconds for which this will hold; 0: nobody knows.
        invariant_s: u32,
    }

    /// What FSINFO answers. RFC 1813 §3.3.19
    pub struct FsInfoOk {
        /// Of the object.
        attributes: PostOpAttr,
        /// Most bytes of a READ: `rtmax`.
        read_max: u32,
        /// Best size of a READ: `rtpref`.
        read_preferred: u32,
        /// What sizes of READs should be multiples of: `rtmult`.
        read_multiple: u32,
        /// Most bytes of a WRITE: `wtmax`.
        write_max: u32,
        /// Best size of a WRITE: `wtpref`.
        write_preferred: u32,
        /// What sizes of WRITEs should be multiples of: `wtmult`.
        write_multiple: u32,
        /// Best size of a READDIR: `dtpref`.
        readdir_preferred: u32,
        /// Longest file.
        file_bytes_max: u64,
        /// Steps of times.
        time_delta: TimeSpec3,
        /// Of [`properties`].
        properties: u32,
    }

    /// What PATHCONF answers. RFC 1813 §3.3.20
    pub struct PathConfOk {
        /// Of the object.
        attributes: PostOpAttr,
        /// Most names of a file.
        link_max: u32,
        /// Longest name in bytes.
        name_bytes_max: u32,
        /// Longer names are refused, not cut.
        no_trunc: bool,
        /// Only the superuser gives files away.
        chown_restricted: bool,
        /// Names of different case are the same.
        case_insensitive: bool,
        /// The case of names is kept.
        case_preserving: bool,
    }
}

/// Bits of FSINFO's properties. RFC 1813 §3.3.19
pub mod properties {
    /// Hard links.
    pub const LINK: u32 = 0x01;
    /// Symbolic links.
    pub const SYMLINK: u32 = 0x02;
    /// PATHCONF is the same for every object.
    pub const HOMOGENEOUS: u32 = 0x08;
    /// SETATTR sets times to the client's choice.
    pub const CAN_SET_TIME: u32 = 0x10;
}

/// Result of FSSTAT.
pub type FsStatRes = Reply3<FsStatOk, PostOpAttr>;
/// Result of FSINFO.
pub type FsInfoRes = Reply3<FsInfoOk, PostOpAttr>;
/// Result of PATHCONF.
pub type PathConfRes = Reply3<PathConfOk, PostOpAttr>;
