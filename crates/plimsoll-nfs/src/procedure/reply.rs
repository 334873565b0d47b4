//! What servers reply, read by the version that was called.

use super::results::*;
use super::{v2, v3};
use crate::parameters::NfsVersion;
use std::cell::Cell;

use crate::wire::flaws::{Flaw, Flaws};
use crate::wire::v2::Status2;
use crate::wire::v3::{Handle, Status3};

/// Results of a procedure, behind the head of the reply. Who made the call knows what they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply<'m> {
    version: NfsVersion,
    results: Results<'m>,
}

macro_rules! by_version {
    ($($(#[$doc:meta])* fn $name:ident -> $results:ty;)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub(crate) fn $name(self) -> Result<$results, ReplyError> {
                match self.version {
                    NfsVersion::V2 => v2::$name(self.results),
                    NfsVersion::V3 => v3::$name(self.results),
                }
            }
        )*
    };
}

impl<'m> Reply<'m> {
    #[inline]
    pub(crate) fn new(version: NfsVersion, bytes: &'m [u8], flaws: &'m Cell<Flaws>) -> Self {
        Self { version, results: Results { bytes, flaws } }
    }

    /// Something that decides nothing is wrong with it.
    pub(crate) fn note(self, flaw: Flaw) {
        let mut flaws = self.results.flaws.get();
        flaws.note(flaw);
        self.results.flaws.set(flaws);
    }

    /// Only the status, which comes first in every reply.
    pub(crate) fn status(self) -> Result<(), ReplyError> {
        match (self.results.read().u32()?, self.version) {
            (0, _) => Ok(()),
            (code, NfsVersion::V2) => Err(v2::status(Status2(code))),
            (code, NfsVersion::V3) => Err(v3::status(Status3(code))),
        }
    }

    by_version! {
        /// Of GETATTR.
        fn attributes -> Attributes;
        /// Of SETATTR: attributes of the object.
        fn set_attributes -> Option<Attributes>;
        /// Of LOOKUP.
        fn looked_up -> Found<Handle<'m>>;
        /// Of READLINK.
        fn link_text -> LinkText<'m>;
        /// Of READ.
        fn read -> ReadData<'m>;
        /// Of WRITE.
        fn written -> Written;
        /// Of CREATE and MKDIR.
        fn made -> Made<'m>;
        /// Of SYMLINK.
        fn made_link -> Made<'m>;
        /// Of REMOVE and RMDIR: attributes of the directory.
        fn removed -> Option<Attributes>;
        /// Of RENAME.
        fn renamed -> ();
        /// Of FSSTAT.
        fn space -> Space;
        /// Of FSINFO.
        fn limits -> Limits;
        /// Of READDIR.
        fn page -> Page<'m>;
    }

    /// Of READDIRPLUS.
    #[inline]
    pub(crate) fn full_page(self) -> Result<Page<'m>, ReplyError> {
        match self.version {
            NfsVersion::V2 => v2::page(self.results),
            NfsVersion::V3 => v3::full_page(self.results),
        }
    }

    /// Of ACCESS, which is called in NFSv3 alone.
    #[inline]
    pub(crate) fn access(self) -> Result<Granted, ReplyError> {
        v3::access(self.results)
    }

    /// Of COMMIT, which is called in NFSv3 alone.
    #[inline]
    pub(crate) fn committed(self) -> Result<Committed, ReplyError> {
        v3::committed(self.results)
    }
}
