//! Names that go or move: REMOVE, RMDIR, RENAME, LINK. RFC 1813 §3.3.12 to §3.3.15.

use super::{Handle, LookupArgs, PostOpAttr, Reply3, WccData};
use crate::wire::text::Name;

xdr_struct! {
    /// What REMOVE and RMDIR answer. RFC 1813 §3.3.12
    pub struct RemoveOk {
        /// Of the directory.
        dir_wcc: WccData,
    }

    /// Arguments of RENAME. RFC 1813 §3.3.14
    pub struct RenameArgs<'a> {
        /// Where it is.
        from_dir: Handle<'a>,
        /// Its name.
        from_name: Name<'a>,
        /// Where it goes.
        to_dir: Handle<'a>,
        /// Its new name.
        to_name: Name<'a>,
    }

    /// What RENAME answers, in failure too. RFC 1813 §3.3.14
    pub struct RenameWcc {
        /// Of the directory it was in.
        from_dir_wcc: WccData,
        /// Of the directory it is in.
        to_dir_wcc: WccData,
    }

    /// Arguments of LINK. RFC 1813 §3.3.15
    pub struct LinkArgs<'a> {
        /// What gets another name.
        file: Handle<'a>,
        /// Where.
        dir: Handle<'a>,
        /// The name.
        name: Name<'a>,
    }

    /// What LINK answers, in failure too. RFC 1813 §3.3.15
    pub struct LinkWcc {
        /// Of the file.
        attributes: PostOpAttr,
        /// Of the directory.
        dir_wcc: WccData,
    }
}

/// Arguments of REMOVE. RFC 1813 §3.3.12
pub type RemoveArgs<'a> = LookupArgs<'a>;
/// Arguments of RMDIR. RFC 1813 §3.3.13
pub type RmDirArgs<'a> = LookupArgs<'a>;
/// Result of REMOVE and RMDIR.
pub type RemoveRes = Reply3<RemoveOk, WccData>;
/// Result of RENAME.
pub type RenameRes = Reply3<RenameWcc, RenameWcc>;
/// Result of LINK.
pub type LinkRes = Reply3<LinkWcc, LinkWcc>;
