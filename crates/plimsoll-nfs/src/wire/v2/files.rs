//! Attributes and content of files: NULL to WRITE, STATFS. RFC 1094 §2.2.1 to §2.2.9, §2.2.18.

use super::{Data2, FileAttributes2, Handle2, Reply2, SetAttributes2};
use crate::wire::text::{Name, Path};

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
        /// Most bytes wanted, [`super::DATA_BYTES_MAX`] at most.
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
