//! One object and its content: NULL to WRITE, COMMIT. RFC 1813 §3.3.0 to §3.3.7, §3.3.21.

use super::{
    FileAttributes, Handle, PostOpAttr, Reply3, SetAttributes, TimeSpec3, Verifier, WccData,
};
use crate::wire::xdr::{Name, Path};

xdr_struct! {
    /// Arguments of SETATTR. RFC 1813 §3.3.2
    pub struct SetAttrArgs<'a> {
        /// The object.
        object: Handle<'a>,
        /// What to set.
        attributes: SetAttributes,
        /// Set only when this is the object's ctime.
        guard: Option<TimeSpec3>,
    }

    /// Arguments of LOOKUP, REMOVE and RMDIR. RFC 1813 §2.6 `diropargs3`
    pub struct DirOpArgs<'a> {
        /// Where.
        dir: Handle<'a>,
        /// What.
        name: Name<'a>,
    }

    /// What LOOKUP answers. RFC 1813 §3.3.3
    pub struct LookupOk<'a> {
        /// The object.
        object: Handle<'a>,
        /// Its attributes.
        attributes: PostOpAttr,
        /// Of the directory.
        dir_attributes: PostOpAttr,
    }

    /// Arguments of ACCESS. RFC 1813 §3.3.4
    pub struct AccessArgs<'a> {
        /// The object.
        object: Handle<'a>,
        /// What the caller wants to do, of [`access`].
        access: u32,
    }

    /// What ACCESS answers. RFC 1813 §3.3.4
    pub struct AccessOk {
        /// Of the object.
        attributes: PostOpAttr,
        /// Those of the requested rights that the caller has, of [`access`].
        access: u32,
    }

    /// What READLINK answers. RFC 1813 §3.3.5
    pub struct ReadLinkOk<'a> {
        /// Of the link.
        attributes: PostOpAttr,
        /// Its text.
        path: Path<'a>,
    }
}

/// Bits of ACCESS. RFC 1813 §3.3.4
pub mod access {
    /// Read data or a directory.
    pub const READ: u32 = 0x01;
    /// Look a name up in a directory.
    pub const LOOKUP: u32 = 0x02;
    /// Overwrite data or change entries of a directory.
    pub const MODIFY: u32 = 0x04;
    /// Write new data or add entries to a directory.
    pub const EXTEND: u32 = 0x08;
    /// Remove an entry of a directory.
    pub const DELETE: u32 = 0x10;
    /// Execute a file.
    pub const EXECUTE: u32 = 0x20;
}

/// Result of GETATTR. RFC 1813 §3.3.1
pub type GetAttrRes = Reply3<FileAttributes, ()>;
/// Result of SETATTR. RFC 1813 §3.3.2
pub type SetAttrRes = Reply3<WccData, WccData>;
/// Result of LOOKUP; in failure with attributes of the directory.
pub type LookupRes<'a> = Reply3<LookupOk<'a>, PostOpAttr>;
/// Result of ACCESS.
pub type AccessRes = Reply3<AccessOk, PostOpAttr>;
/// Result of READLINK.
pub type ReadLinkRes<'a> = Reply3<ReadLinkOk<'a>, PostOpAttr>;

xdr_enum! {
    /// How durable written data must be, or is. RFC 1813 §3.3.7 `stable_how`
    pub enum StableHow: "stable_how" {
        /// UNSTABLE: not before a COMMIT.
        Unstable = 0,
        /// DATA_SYNC: the data, and what is needed to find it again.
        DataSync = 1,
        /// FILE_SYNC: data and attributes.
        FileSync = 2,
    }
}

xdr_struct! {
    /// Arguments of READ. RFC 1813 §3.3.6
    pub struct ReadArgs<'a> {
        /// The file.
        file: Handle<'a>,
        /// First byte.
        offset: u64,
        /// Requested bytes, at most.
        count: u32,
    }

    /// What READ answers. RFC 1813 §3.3.6
    pub struct ReadOk<'a> {
        /// Of the file.
        attributes: PostOpAttr,
        /// Bytes read; the caller compares this with the length of `data`.
        count: u32,
        /// The file ends behind the data.
        eof: bool,
        /// What was read.
        data: &'a [u8],
    }

    /// Arguments of WRITE. RFC 1813 §3.3.7
    pub struct WriteArgs<'a> {
        /// The file.
        file: Handle<'a>,
        /// First byte.
        offset: u64,
        /// Bytes to write; a server compares it with `data`.
        count: u32,
        /// How durable before the server answers.
        stable: StableHow,
        /// What to write.
        data: &'a [u8],
    }

    /// What WRITE answers. RFC 1813 §3.3.7
    pub struct WriteOk {
        /// Of the file.
        wcc: WccData,
        /// Bytes written.
        count: u32,
        /// How durable they are.
        committed: StableHow,
        /// Of the server's run: another one when it may have lost unstable data.
        verifier: Verifier,
    }

    /// Arguments of COMMIT. RFC 1813 §3.3.21
    pub struct CommitArgs<'a> {
        /// The file.
        file: Handle<'a>,
        /// First byte.
        offset: u64,
        /// Bytes; 0: to the end of the file.
        count: u32,
    }

    /// What COMMIT answers. RFC 1813 §3.3.21
    pub struct CommitOk {
        /// Of the file.
        wcc: WccData,
        /// Of the server's run.
        verifier: Verifier,
    }
}

/// Result of READ.
pub type ReadRes<'a> = Reply3<ReadOk<'a>, PostOpAttr>;
/// Result of WRITE.
pub type WriteRes = Reply3<WriteOk, WccData>;
/// Result of COMMIT.
pub type CommitRes = Reply3<CommitOk, WccData>;
