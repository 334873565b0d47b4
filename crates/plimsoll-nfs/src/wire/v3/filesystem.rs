//! File systems: FSSTAT, FSINFO, PATHCONF. RFC 1813 §3.3.18 to §3.3.20.

use super::{Handle, PostOpAttr, Reply3, TimeSpec3};

xdr_struct! {
    /// Arguments of FSSTAT. RFC 1813 §3.3.18
    pub struct FsStatArgs<'a> {
        /// Any object of the file system.
        root: Handle<'a>,
    }

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

    /// Arguments of FSINFO. RFC 1813 §3.3.19
    pub struct FsInfoArgs<'a> {
        /// Root of the file system.
        root: Handle<'a>,
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

    /// Arguments of PATHCONF. RFC 1813 §3.3.20
    pub struct PathConfArgs<'a> {
        /// Any object of the file system.
        object: Handle<'a>,
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
