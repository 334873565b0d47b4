//! MOUNT versions 1 (for NFSv2, RFC 1094 appendix A) and 3 (for NFSv3, RFC 1813 appendix I).
//!
//! The versions differ only in what MNT answers. The argument of MNT and UMNT is the export's
//! [`Path`].

use super::flaws::Flaw;
use super::reply::Reply;
use super::v2::Handle2;
use super::v3::Handle;
use super::xdr::{Decode, Encode, List, Name, Path, U32List, XdrError, XdrIn};

/// Program number.
pub const PROGRAM: u32 = 100_005;
/// The version for NFSv2.
pub const VERSION_1: u32 = 1;
/// The version for NFSv3.
pub const VERSION_3: u32 = 3;

/// Most flavors of authentication a server may name.
pub const FLAVORS_MAX: u32 = 64;

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
        /// Who may mount it; empty: everybody.
        groups: List<'a, Name<'a>>,
    }
}

/// Flavors of authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flavors<'a>(pub U32List<'a, FLAVORS_MAX>);

impl Encode for Flavors<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl<'a> Decode<'a> for Flavors<'a> {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        match U32List::decode(input) {
            // The handle comes first, and no flavor is chosen here.
            Err(_) if input.tolerates(Flaw::Flavors) => {
                input.skip(usize::MAX);
                Ok(Self(U32List::Values(&[])))
            }
            flavors => flavors.map(Self),
        }
    }
}

/// Result of MNT in version 1, the handle of the export's root: `fhstatus`. RFC 1094 §A.5 MNT
pub type Mount1Res = Reply<MountStatus, Handle2>;
/// Result of MNT in version 3.
pub type Mount3Res<'a> = Reply<MountStatus, Mount3Ok<'a>>;
/// Result of DUMP.
pub type DumpRes<'a> = List<'a, MountEntry<'a>>;
/// Result of EXPORT.
pub type ExportRes<'a> = List<'a, ExportEntry<'a>>;
