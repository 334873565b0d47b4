//! MOUNT versions 1 (for NFSv2, RFC 1094 appendix A) and 3 (for NFSv3, RFC 1813 appendix I).
//!
//! The versions differ only in what MNT answers.

use super::flaws::Flaw;
use super::v2::Handle2;
use super::v3::Handle;
use super::xdr::{Decode, Encode, List, Name, Path, Words, XdrError, XdrIn};

/// Program number.
pub const PROGRAM: u32 = 100_005;
/// The version for NFSv2.
pub const VERSION_1: u32 = 1;
/// The version for NFSv3.
pub const VERSION_3: u32 = 3;

/// Most flavors of authentication a server may name.
const FLAVORS_MAX: u32 = 64;

procedures! {
    /// Procedures of both versions. RFC 1813 §5.2
    pub enum Procedure {
        Null = 0 "MOUNTPROC3_NULL",
        Mount = 1 "MOUNTPROC3_MNT",
        Dump = 2 "MOUNTPROC3_DUMP",
        Unmount = 3 "MOUNTPROC3_UMNT",
        UnmountAll = 4 "MOUNTPROC3_UMNTALL",
        Export = 5 "MOUNTPROC3_EXPORT",
    }
}

statuses! {
    /// Status of MNT: `mountstat3`, which has the numbers of the error codes of UNIX that
    /// version 1 answers with. RFC 1813 §5.1.5
    pub struct MountStatus else "MNT3ERR" {
        OK = 0 "MNT3_OK",
        PERM = 1 "MNT3ERR_PERM",
        NOENT = 2 "MNT3ERR_NOENT",
        IO = 5 "MNT3ERR_IO",
        ACCES = 13 "MNT3ERR_ACCES",
        NOTDIR = 20 "MNT3ERR_NOTDIR",
        INVAL = 22 "MNT3ERR_INVAL",
        NAMETOOLONG = 63 "MNT3ERR_NAMETOOLONG",
        NOTSUPP = 10_004 "MNT3ERR_NOTSUPP",
        SERVERFAULT = 10_006 "MNT3ERR_SERVERFAULT",
    }
}

xdr_struct! {
    /// Arguments of MNT. RFC 1813 §5.2.1
    pub struct MountArgs<'a> {
        /// The export.
        path: Path<'a>,
    }

    /// Arguments of UMNT. RFC 1813 §5.2.3
    pub struct UnmountArgs<'a> {
        /// The export.
        path: Path<'a>,
    }

    /// What version 1 answers: `fhstatus`. RFC 1094 §A.5 MNT
    pub struct Mount1Ok {
        /// Of the export's root.
        handle: Handle2,
    }

    /// What version 3 answers: `mountres3_ok`. RFC 1813 §5.2.1
    pub struct Mount3Ok<'a> {
        /// Of the export's root.
        handle: Handle<'a>,
        /// What callers may authenticate with.
        flavors: Flavors<'a>,
    }

    /// Who mounted what. RFC 1813 §5.2.2
    pub struct MountEntry<'a> {
        /// Name of the client.
        host: Name<'a>,
        /// The export.
        directory: Path<'a>,
    }

    /// An export. RFC 1813 §5.2.5
    pub struct ExportEntry<'a> {
        /// The export.
        directory: Path<'a>,
        /// Who may mount it; nobody named: everybody.
        groups: List<'a, Name<'a>>,
    }
}

/// Flavors of authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flavors<'a>(pub Words<'a>);

impl Encode for Flavors<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl<'a> Decode<'a> for Flavors<'a> {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        match Words::decode(input, FLAVORS_MAX) {
            // The handle came before, and nobody here chooses among flavors.
            Err(_) if input.tolerates(Flaw::Flavors) => {
                input.skip(usize::MAX);
                Ok(Self(Words::new(&[])))
            }
            words => words.map(Self),
        }
    }
}

/// Result of MNT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountReply<T> {
    /// Mounted.
    Ok(T),
    /// Refused.
    Err(MountStatus),
}

impl<T> MountReply<T> {
    pub(crate) fn map<U>(self, with: impl FnOnce(T) -> U) -> MountReply<U> {
        match self {
            Self::Ok(ok) => MountReply::Ok(with(ok)),
            Self::Err(status) => MountReply::Err(status),
        }
    }

    /// The status on the wire.
    pub fn status(&self) -> MountStatus {
        match self {
            Self::Ok(_) => MountStatus::OK,
            Self::Err(status) => *status,
        }
    }
}

impl<T: Encode> Encode for MountReply<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.status().encode(out);
        if let Self::Ok(ok) = self {
            ok.encode(out);
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for MountReply<T> {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        match MountStatus::decode(input)? {
            MountStatus::OK => T::decode(input).map(Self::Ok),
            status => Ok(Self::Err(status)),
        }
    }
}

/// Result of MNT in version 1.
pub type Mount1Res = MountReply<Mount1Ok>;
/// Result of MNT in version 3.
pub type Mount3Res<'a> = MountReply<Mount3Ok<'a>>;
/// Result of DUMP.
pub type DumpRes<'a> = List<'a, MountEntry<'a>>;
/// Result of EXPORT.
pub type ExportRes<'a> = List<'a, ExportEntry<'a>>;
