//! The procedures of NFS, the same for all versions: from a call to its bytes, from the bytes of a
//! reply to its results. The measured session and set-up both go through here.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `results` | the results of a procedure |
//! | `v2`, `v3`, `v4` | calls and results in the messages of a version |

pub(crate) mod results;
mod v2;
mod v3;
pub(crate) mod v4;

use std::cell::Cell;

use self::results::*;
pub use self::v4::Context4;
use super::handles::{HandleBytes, OwnedHandle};
use super::op::Stability;
use super::parameters::NfsVersion;
use super::wire::flaws::{Flaw, Flaws};
use super::wire::rpc::{CallWriter, Service};
use super::wire::v2::Status2;
use super::wire::v3::Status3;
use super::wire::v4::Status4;
use super::wire::xdr::Decode;

/// Mode of the files made.
pub const FILE_MODE: u32 = 0o644;
/// Mode of the directories made.
pub const DIRECTORY_MODE: u32 = 0o755;

/// A call: the procedure and its arguments.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// Does nothing.
    Null,
    /// Attributes of anything.
    GetAttr(&'a OwnedHandle),
    /// Sets the mode.
    SetMode(&'a OwnedHandle, u32),
    /// Sets the size of a file.
    SetSize(&'a OwnedHandle, u64),
    /// What a directory has under a name.
    LookUp(&'a OwnedHandle, &'a [u8]),
    /// Which of these accesses are granted (NFSv3).
    Access(&'a OwnedHandle, u32),
    /// Text of a symbolic link.
    ReadLink(&'a OwnedHandle),
    /// Bytes of a file: from where, and how many.
    Read(&'a OwnedHandle, u64, u32),
    /// Writes bytes to a file.
    Write(&'a OwnedHandle, u64, &'a [u8], Stability),
    /// Makes a file if there is none.
    Create(&'a OwnedHandle, &'a [u8]),
    /// Makes a directory.
    MakeDir(&'a OwnedHandle, &'a [u8]),
    /// Makes a symbolic link: directory, name, text.
    MakeLink(&'a OwnedHandle, &'a [u8], &'a [u8]),
    /// Removes anything but a directory.
    Remove(&'a OwnedHandle, &'a [u8]),
    /// Removes an empty directory.
    RemoveDir(&'a OwnedHandle, &'a [u8]),
    /// Gives another name within the directory: from, to.
    Rename(&'a OwnedHandle, &'a [u8], &'a [u8]),
    /// Names in a directory, in at most this many bytes.
    ReadDir(&'a OwnedHandle, Cookie, u32),
    /// Names in a directory with attributes and handles; in NFSv2 names alone.
    ReadDirPlus(&'a OwnedHandle, Cookie, u32),
    /// Space in the file system.
    FsStat(&'a OwnedHandle),
    /// Limits of the server.
    FsInfo(&'a OwnedHandle),
    /// Makes all unstable writes to a file durable (NFSv3).
    Commit(&'a OwnedHandle),
}

impl Call<'_> {
    /// Appends the message.
    #[inline]
    pub(crate) fn encode(self, dialect: Dialect, to: CallWriter<'_>) {
        match dialect.version {
            NfsVersion::V2 => v2::encode(self, to),
            NfsVersion::V3 => v3::encode(self, to),
            NfsVersion::V4_1 => v4::encode(self, dialect.context, to),
        }
    }
}

/// What the form of a call depends on beside its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    pub(crate) version: NfsVersion,
    /// Of NFSv4.1.
    pub(crate) context: Context4,
}

impl Dialect {
    /// Of calls of a client that the server has this name for.
    pub(crate) fn of_client(self, client_id: u64) -> Self {
        Self { context: Context4 { client_id, ..self.context }, ..self }
    }
}

/// Where a listing goes on; by default at the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cookie {
    /// Of the last entry; 0 begins.
    pub number: u64,
    /// The server's verifier that cookies are still valid (NFSv3).
    pub verifier: [u8; 8],
}

/// The RPC service of a version of NFS.
pub(crate) fn service(version: NfsVersion) -> Service {
    match version {
        NfsVersion::V2 => v2::SERVICE,
        NfsVersion::V3 => v3::SERVICE,
        NfsVersion::V4_1 => v4::SERVICE,
    }
}

/// Results of a procedure, after the head of the reply, read by the version that was called. The
/// caller knows their type.
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
                    NfsVersion::V4_1 => v4::$name(self.results),
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

    /// As a type of one's own, to its end.
    pub(crate) fn decode<T: Decode<'m>>(self) -> Result<T, ReplyError> {
        let mut input = self.results.read();
        let value = T::decode(&mut input)?;
        self.results.end(input);
        Ok(value)
    }

    /// Of the procedure that does nothing.
    pub(crate) fn nothing(self) -> Result<(), ReplyError> {
        match self.version {
            NfsVersion::V2 | NfsVersion::V3 => self.decode(),
            NfsVersion::V4_1 => v4::nothing(self.results),
        }
    }

    /// It has a flaw that does not change its meaning.
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
            (code, NfsVersion::V4_1) => Err(v4::status(Status4(code))),
        }
    }

    /// The status, where the call failed.
    #[inline]
    pub(crate) fn failure(self) -> Option<u32> {
        match self.status() {
            Err(ReplyError::Status { code, .. }) => Some(code),
            Ok(()) | Err(ReplyError::Undecodable(_)) => None,
        }
    }

    by_version! {
        /// Of GETATTR.
        fn attributes -> Attributes;
        /// Of SETATTR: attributes of the object.
        fn set_attributes -> Option<Attributes>;
        /// Of LOOKUP.
        fn looked_up -> LookupResult<HandleBytes<'m>>;
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

    /// Of REMOVE, with absence as an answer: false.
    pub(crate) fn was_removed(self) -> Result<bool, ReplyError> {
        match self.removed() {
            Err(ReplyError::Status { code, .. }) if code == Status3::NOENT.0 => Ok(false),
            removed => removed.map(|_| true),
        }
    }

    /// Of READDIRPLUS.
    #[inline]
    pub(crate) fn full_page(self) -> Result<Page<'m>, ReplyError> {
        match self.version {
            NfsVersion::V2 => v2::page(self.results),
            NfsVersion::V3 => v3::full_page(self.results),
            NfsVersion::V4_1 => v4::full_page(self.results),
        }
    }

    /// Of ACCESS, which NFSv2 does not have.
    #[inline]
    pub(crate) fn access(self) -> Result<Granted, ReplyError> {
        match self.version {
            NfsVersion::V4_1 => v4::access(self.results),
            _ => v3::access(self.results),
        }
    }

    /// Of COMMIT, which NFSv2 does not have.
    #[inline]
    pub(crate) fn committed(self) -> Result<Committed, ReplyError> {
        match self.version {
            NfsVersion::V4_1 => v4::committed(self.results),
            _ => v3::committed(self.results),
        }
    }

    /// What they are, for readers of one version.
    pub(crate) fn results(self) -> Results<'m> {
        self.results
    }
}
