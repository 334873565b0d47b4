//! NFS version 4.1. RFC 8881.
//!
//! Every request is a COMPOUND: a list of operations on a *current filehandle*, which is executed
//! until one fails. Every operation has a type for its arguments (`…Args`) and one for what it
//! answers when it succeeds (`…Ok`), unless that is one value.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `attributes` | bitmaps and values of attributes |
//! | `callbacks` | what the server calls: CB_SEQUENCE, CB_RECALL |
//! | `compound` | requests and replies as lists of operations |
//! | `directories` | names and listings |
//! | `files` | OPEN to CLOSE, and the data between |
//! | `sessions` | clients, sessions, slots |

mod attributes;
mod callbacks;
mod compound;
mod directories;
mod files;
mod sessions;

use super::xdr::{Decode, Encode, XdrError, XdrIn, encode_opaque};

pub use self::attributes::*;
pub use self::callbacks::*;
pub use self::compound::*;
pub use self::directories::*;
pub use self::files::*;
pub use self::sessions::*;

/// Program number, the same as of versions 2 and 3.
pub const PROGRAM: u32 = 100_003;
/// The version.
pub const VERSION: u32 = 4;
/// The minor version, in every compound.
pub const MINOR_VERSION: u32 = 1;

/// Longest handle: `NFS4_FHSIZE`. RFC 8881 §3.1
pub const HANDLE_BYTES_MAX: u32 = 128;
/// Longest opaque data of other kinds: `NFS4_OPAQUE_LIMIT`. RFC 8881 §3.1
pub const OPAQUE_BYTES_MAX: u32 = 1_024;

procedures! {
    /// Procedures of NFS version 4. RFC 8881 §16
    pub enum Procedure {
        Null = 0 "NULL",
        Compound = 1 "COMPOUND",
    }
}

procedures! {
    /// Operations of a compound. RFC 8881 §18
    pub enum Operation {
        Access = 3 "ACCESS",
        Close = 4 "CLOSE",
        Commit = 5 "COMMIT",
        Create = 6 "CREATE",
        DelegReturn = 8 "DELEGRETURN",
        GetAttr = 9 "GETATTR",
        GetFh = 10 "GETFH",
        Lookup = 15 "LOOKUP",
        Open = 18 "OPEN",
        PutFh = 22 "PUTFH",
        PutRootFh = 24 "PUTROOTFH",
        Read = 25 "READ",
        ReadDir = 26 "READDIR",
        ReadLink = 27 "READLINK",
        Remove = 28 "REMOVE",
        Rename = 29 "RENAME",
        RestoreFh = 31 "RESTOREFH",
        SaveFh = 32 "SAVEFH",
        SetAttr = 34 "SETATTR",
        Write = 38 "WRITE",
        BindConnToSession = 41 "BIND_CONN_TO_SESSION",
        ExchangeId = 42 "EXCHANGE_ID",
        CreateSession = 43 "CREATE_SESSION",
        DestroySession = 44 "DESTROY_SESSION",
        Sequence = 53 "SEQUENCE",
        DestroyClientId = 57 "DESTROY_CLIENTID",
        ReclaimComplete = 58 "RECLAIM_COMPLETE",
        Illegal = 10_044 "ILLEGAL",
    }
}

statuses! {
    /// `nfsstat4`. RFC 8881 §15.1
    pub struct Status4 else "NFS4ERR" {
        OK = 0 "NFS4_OK",
        PERM = 1 "NFS4ERR_PERM",
        NOENT = 2 "NFS4ERR_NOENT",
        IO = 5 "NFS4ERR_IO",
        NXIO = 6 "NFS4ERR_NXIO",
        ACCESS = 13 "NFS4ERR_ACCESS",
        EXIST = 17 "NFS4ERR_EXIST",
        XDEV = 18 "NFS4ERR_XDEV",
        NOTDIR = 20 "NFS4ERR_NOTDIR",
        ISDIR = 21 "NFS4ERR_ISDIR",
        INVAL = 22 "NFS4ERR_INVAL",
        FBIG = 27 "NFS4ERR_FBIG",
        NOSPC = 28 "NFS4ERR_NOSPC",
        ROFS = 30 "NFS4ERR_ROFS",
        MLINK = 31 "NFS4ERR_MLINK",
        NAMETOOLONG = 63 "NFS4ERR_NAMETOOLONG",
        NOTEMPTY = 66 "NFS4ERR_NOTEMPTY",
        DQUOT = 69 "NFS4ERR_DQUOT",
        STALE = 70 "NFS4ERR_STALE",
        BADHANDLE = 10_001 "NFS4ERR_BADHANDLE",
        BAD_COOKIE = 10_003 "NFS4ERR_BAD_COOKIE",
        NOTSUPP = 10_004 "NFS4ERR_NOTSUPP",
        TOOSMALL = 10_005 "NFS4ERR_TOOSMALL",
        SERVERFAULT = 10_006 "NFS4ERR_SERVERFAULT",
        BADTYPE = 10_007 "NFS4ERR_BADTYPE",
        DELAY = 10_008 "NFS4ERR_DELAY",
        SAME = 10_009 "NFS4ERR_SAME",
        DENIED = 10_010 "NFS4ERR_DENIED",
        EXPIRED = 10_011 "NFS4ERR_EXPIRED",
        LOCKED = 10_012 "NFS4ERR_LOCKED",
        GRACE = 10_013 "NFS4ERR_GRACE",
        FHEXPIRED = 10_014 "NFS4ERR_FHEXPIRED",
        SHARE_DENIED = 10_015 "NFS4ERR_SHARE_DENIED",
        WRONGSEC = 10_016 "NFS4ERR_WRONGSEC",
        CLID_INUSE = 10_017 "NFS4ERR_CLID_INUSE",
        RESOURCE = 10_018 "NFS4ERR_RESOURCE",
        MOVED = 10_019 "NFS4ERR_MOVED",
        NOFILEHANDLE = 10_020 "NFS4ERR_NOFILEHANDLE",
        MINOR_VERS_MISMATCH = 10_021 "NFS4ERR_MINOR_VERS_MISMATCH",
        STALE_CLIENTID = 10_022 "NFS4ERR_STALE_CLIENTID",
        STALE_STATEID = 10_023 "NFS4ERR_STALE_STATEID",
        OLD_STATEID = 10_024 "NFS4ERR_OLD_STATEID",
        BAD_STATEID = 10_025 "NFS4ERR_BAD_STATEID",
        BAD_SEQID = 10_026 "NFS4ERR_BAD_SEQID",
        NOT_SAME = 10_027 "NFS4ERR_NOT_SAME",
        SYMLINK = 10_029 "NFS4ERR_SYMLINK",
        RESTOREFH = 10_030 "NFS4ERR_RESTOREFH",
        ATTRNOTSUPP = 10_032 "NFS4ERR_ATTRNOTSUPP",
        NO_GRACE = 10_033 "NFS4ERR_NO_GRACE",
        RECLAIM_BAD = 10_034 "NFS4ERR_RECLAIM_BAD",
        RECLAIM_CONFLICT = 10_035 "NFS4ERR_RECLAIM_CONFLICT",
        BADXDR = 10_036 "NFS4ERR_BADXDR",
        OPENMODE = 10_038 "NFS4ERR_OPENMODE",
        BADOWNER = 10_039 "NFS4ERR_BADOWNER",
        BADCHAR = 10_040 "NFS4ERR_BADCHAR",
        BADNAME = 10_041 "NFS4ERR_BADNAME",
        OP_ILLEGAL = 10_044 "NFS4ERR_OP_ILLEGAL",
        FILE_OPEN = 10_046 "NFS4ERR_FILE_OPEN",
        ADMIN_REVOKED = 10_047 "NFS4ERR_ADMIN_REVOKED",
        CB_PATH_DOWN = 10_048 "NFS4ERR_CB_PATH_DOWN",
        BADSESSION = 10_052 "NFS4ERR_BADSESSION",
        BADSLOT = 10_053 "NFS4ERR_BADSLOT",
        COMPLETE_ALREADY = 10_054 "NFS4ERR_COMPLETE_ALREADY",
        CONN_NOT_BOUND_TO_SESSION = 10_055 "NFS4ERR_CONN_NOT_BOUND_TO_SESSION",
        BACK_CHAN_BUSY = 10_057 "NFS4ERR_BACK_CHAN_BUSY",
        SEQ_MISORDERED = 10_063 "NFS4ERR_SEQ_MISORDERED",
        SEQUENCE_POS = 10_064 "NFS4ERR_SEQUENCE_POS",
        REQ_TOO_BIG = 10_065 "NFS4ERR_REQ_TOO_BIG",
        REP_TOO_BIG = 10_066 "NFS4ERR_REP_TOO_BIG",
        REP_TOO_BIG_TO_CACHE = 10_067 "NFS4ERR_REP_TOO_BIG_TO_CACHE",
        RETRY_UNCACHED_REP = 10_068 "NFS4ERR_RETRY_UNCACHED_REP",
        UNSAFE_COMPOUND = 10_069 "NFS4ERR_UNSAFE_COMPOUND",
        TOO_MANY_OPS = 10_070 "NFS4ERR_TOO_MANY_OPS",
        OP_NOT_IN_SESSION = 10_071 "NFS4ERR_OP_NOT_IN_SESSION",
        CLIENTID_BUSY = 10_074 "NFS4ERR_CLIENTID_BUSY",
        SEQ_FALSE_RETRY = 10_076 "NFS4ERR_SEQ_FALSE_RETRY",
        BAD_HIGH_SLOT = 10_077 "NFS4ERR_BAD_HIGH_SLOT",
        DEADSESSION = 10_078 "NFS4ERR_DEADSESSION",
        NOT_ONLY_OP = 10_081 "NFS4ERR_NOT_ONLY_OP",
        WRONG_CRED = 10_082 "NFS4ERR_WRONG_CRED",
        WRONG_TYPE = 10_083 "NFS4ERR_WRONG_TYPE",
        DELEG_REVOKED = 10_087 "NFS4ERR_DELEG_REVOKED",
    }
}

/// Opaque data of at most `MAX` bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Opaque<'a, const MAX: u32>(pub &'a [u8]);

impl<const MAX: u32> Encode for Opaque<'_, MAX> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        encode_opaque(self.0, out);
    }
}

impl<'a, const MAX: u32> Decode<'a> for Opaque<'a, MAX> {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        input.opaque(MAX).map(Self)
    }
}

/// Name of an object at its server. RFC 8881 §4
pub type Handle4<'a> = Opaque<'a, HANDLE_BYTES_MAX>;

/// Name of a session. RFC 8881 §3.2 `sessionid4`
pub type SessionId = [u8; 16];

/// Changes with each run of a server, or of a client. RFC 8881 §3.2 `verifier4`
pub type Verifier = [u8; 8];

xdr_struct! {
    /// Names an open file or a delegation, and its state. RFC 8881 §8.2
    pub struct StateId {
        /// Counts the changes of the state; 0 means the newest.
        seqid: u32,
        /// Which state.
        other: [u8; 12],
    }
}

/// [`StateId::ANONYMOUS`].
impl Default for StateId {
    fn default() -> Self {
        Self::ANONYMOUS
    }
}

impl StateId {
    /// No open file; every READ and WRITE may use it. RFC 8881 §8.2.3
    pub const ANONYMOUS: Self = Self { seqid: 0, other: [0; 12] };
    /// The one that the operation before in the same compound answered. RFC 8881 §16.2.3.1.2
    pub const CURRENT: Self = Self { seqid: 1, other: [0; 12] };

    /// The newest state of the same file.
    #[must_use]
    pub const fn newest(self) -> Self {
        Self { seqid: 0, ..self }
    }
}
