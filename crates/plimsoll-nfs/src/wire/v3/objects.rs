//! One object: NULL to READLINK. RFC 1813 §3.3.0 to §3.3.5.

use super::{FileAttributes, Handle, PostOpAttr, Reply3, SetAttributes, TimeSpec3, WccData};
use crate::wire::text::{Name, Path};

xdr_struct! {
    /// Arguments of GETATTR. RFC 1813 §3.3.1
    pub struct GetAttrArgs<'a> {
        /// The object.
        object: Handle<'a>,
    }

    /// What GETATTR answers. RFC 1813 §3.3.1
    pub struct GetAttrOk {
        /// Of the object.
        attributes: FileAttributes,
    }

    /// Arguments of SETATTR. RFC 1813 §3.3.2
    pub struct SetAttrArgs<'a> {
        /// The object.
        object: Handle<'a>,
        /// What to set.
        attributes: SetAttributes,
        /// Set only when this is the object's ctime.
        guard: Option<TimeSpec3>,
    }

    /// What SETATTR answers. RFC 1813 §3.3.2
    pub struct SetAttrOk {
        /// Of the object.
        wcc: WccData,
    }

    /// Arguments of LOOKUP, REMOVE and RMDIR. RFC 1813 §2.6 `diropargs3`
    pub struct LookupArgs<'a> {
        /// Where.
        dir: Handle<'a>,
        /// What.
        name: Name<'a>,
    }

    /// What LOOKUP answers. RFC 1813 §3.3.3
    pub struct LookupOk<'a> {
        /// The object found.
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
        /// What the caller may do of what was asked, of [`access`].
        access: u32,
    }

    /// Arguments of READLINK. RFC 1813 §3.3.5
    pub struct ReadLinkArgs<'a> {
        /// The link.
        symlink: Handle<'a>,
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

/// Result of GETATTR.
pub type GetAttrRes = Reply3<GetAttrOk, ()>;
/// Result of SETATTR.
pub type SetAttrRes = Reply3<SetAttrOk, WccData>;
/// Result of LOOKUP; in failure with attributes of the directory.
pub type LookupRes<'a> = Reply3<LookupOk<'a>, PostOpAttr>;
/// Result of ACCESS.
pub type AccessRes = Reply3<AccessOk, PostOpAttr>;
/// Result of READLINK.
pub type ReadLinkRes<'a> = Reply3<ReadLinkOk<'a>, PostOpAttr>;
