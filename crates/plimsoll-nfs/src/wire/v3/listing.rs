//! Entries of directories: READDIR, READDIRPLUS. RFC 1813 §3.3.16, §3.3.17.

use super::{ATTRIBUTES_BYTES, Handle, PostOpAttr, PostOpHandle, Reply3, Verifier};
use crate::wire::text::Name;
use crate::wire::xdr::{List, opaque_bytes};

xdr_struct! {
    /// Arguments of READDIR. RFC 1813 §3.3.16
    pub struct ReadDirArgs<'a> {
        /// The directory.
        dir: Handle<'a>,
        /// Of the entry behind which to begin; 0: at the beginning.
        cookie: u64,
        /// As the server gave it with the cookie; 0 at the beginning.
        verifier: Verifier,
        /// Most bytes of the result.
        count: u32,
    }

    /// What READDIR answers. RFC 1813 §3.3.16
    pub struct ReadDirOk<'a> {
        /// Of the directory.
        dir_attributes: PostOpAttr,
        /// To be given with the cookies.
        verifier: Verifier,
        /// Some entries.
        entries: List<'a, Entry<'a>>,
        /// There are no more.
        eof: bool,
    }

    /// An entry of a directory. RFC 1813 §3.3.16 `entry3`
    pub struct Entry<'a> {
        /// Number of the object.
        fileid: u64,
        /// Its name.
        name: Name<'a>,
        /// Where to go on behind it.
        cookie: u64,
    }

    /// Arguments of READDIRPLUS. RFC 1813 §3.3.17
    pub struct ReadDirPlusArgs<'a> {
        /// The directory.
        dir: Handle<'a>,
        /// Of the entry behind which to begin; 0: at the beginning.
        cookie: u64,
        /// As the server gave it with the cookie; 0 at the beginning.
        verifier: Verifier,
        /// Most bytes of names, numbers and cookies.
        dir_count: u32,
        /// Most bytes of the result.
        max_count: u32,
    }

    /// What READDIRPLUS answers. RFC 1813 §3.3.17
    pub struct ReadDirPlusOk<'a> {
        /// Of the directory.
        dir_attributes: PostOpAttr,
        /// To be given with the cookies.
        verifier: Verifier,
        /// Some entries.
        entries: List<'a, EntryPlus<'a>>,
        /// There are no more.
        eof: bool,
    }

    /// An entry of a directory, with what LOOKUP would answer. RFC 1813 §3.3.17 `entryplus3`
    pub struct EntryPlus<'a> {
        /// Number of the object.
        fileid: u64,
        /// Its name.
        name: Name<'a>,
        /// Where to go on behind it.
        cookie: u64,
        /// Its attributes.
        attributes: PostOpAttr,
        /// Its handle.
        object: PostOpHandle<'a>,
    }
}

impl Entry<'_> {
    /// Bytes that it takes in a list.
    pub const fn bytes(&self) -> usize {
        4 + 8 + opaque_bytes(self.name.0.len()) + 8
    }
}

impl EntryPlus<'_> {
    /// Bytes that it takes in a list.
    pub const fn bytes(&self) -> usize {
        let attributes = if self.attributes.is_some() { ATTRIBUTES_BYTES } else { 0 };
        let object = match self.object {
            Some(object) => opaque_bytes(object.bytes().len()),
            None => 0,
        };
        4 + 8 + opaque_bytes(self.name.0.len()) + 8 + 4 + attributes + 4 + object
    }
}

/// Result of READDIR.
pub type ReadDirRes<'a> = Reply3<ReadDirOk<'a>, PostOpAttr>;
/// Result of READDIRPLUS.
pub type ReadDirPlusRes<'a> = Reply3<ReadDirPlusOk<'a>, PostOpAttr>;
