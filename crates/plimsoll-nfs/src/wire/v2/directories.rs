//! Names and directories: CREATE to READDIR. RFC 1094 §2.2.10 to §2.2.17.

use super::{DirOpOk, Handle2, LookupArgs, Reply2, SetAttributes2};
use crate::wire::text::{Name, Path};
use crate::wire::xdr::{List, opaque_bytes};

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
