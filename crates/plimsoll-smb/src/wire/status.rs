//! NTSTATUS: the outcome of a command that a server reports (MS-ERREF 2.3.1), and what answers a
//! command that failed (MS-SMB2 2.2.2).

use std::fmt;

use super::bytes::{Empty, Span};

macro_rules! statuses {
    ($($name:ident = $number:literal,)*) => {
        $(
            #[doc = concat!("STATUS_", stringify!($name))]
            pub const $name: u32 = $number;
        )*

        /// Each with its number, by name as Samba and dbench write it.
        pub const ALL: &[(u32, &str)] = &[
            $(($number, concat!("NT_STATUS_", stringify!($name))),)*
        ];
    };
}

statuses! {
    SUCCESS = 0x0000_0000,
    PENDING = 0x0000_0103,
    NOTIFY_CLEANUP = 0x0000_010b,
    NOTIFY_ENUM_DIR = 0x0000_010c,
    BUFFER_OVERFLOW = 0x8000_0005,
    NO_MORE_FILES = 0x8000_0006,
    STOPPED_ON_SYMLINK = 0x8000_002d,
    UNSUCCESSFUL = 0xc000_0001,
    NOT_IMPLEMENTED = 0xc000_0002,
    INVALID_INFO_CLASS = 0xc000_0003,
    INFO_LENGTH_MISMATCH = 0xc000_0004,
    INVALID_HANDLE = 0xc000_0008,
    INVALID_PARAMETER = 0xc000_000d,
    NO_SUCH_DEVICE = 0xc000_000e,
    NO_SUCH_FILE = 0xc000_000f,
    INVALID_DEVICE_REQUEST = 0xc000_0010,
    END_OF_FILE = 0xc000_0011,
    MORE_PROCESSING_REQUIRED = 0xc000_0016,
    NO_MEMORY = 0xc000_0017,
    ACCESS_DENIED = 0xc000_0022,
    BUFFER_TOO_SMALL = 0xc000_0023,
    OBJECT_NAME_INVALID = 0xc000_0033,
    OBJECT_NAME_NOT_FOUND = 0xc000_0034,
    OBJECT_NAME_COLLISION = 0xc000_0035,
    OBJECT_PATH_INVALID = 0xc000_0039,
    OBJECT_PATH_NOT_FOUND = 0xc000_003a,
    OBJECT_PATH_SYNTAX_BAD = 0xc000_003b,
    DATA_ERROR = 0xc000_003e,
    CRC_ERROR = 0xc000_003f,
    SHARING_VIOLATION = 0xc000_0043,
    QUOTA_EXCEEDED = 0xc000_0044,
    EAS_NOT_SUPPORTED = 0xc000_004f,
    EA_TOO_LARGE = 0xc000_0050,
    NO_EAS_ON_FILE = 0xc000_0052,
    FILE_LOCK_CONFLICT = 0xc000_0054,
    LOCK_NOT_GRANTED = 0xc000_0055,
    DELETE_PENDING = 0xc000_0056,
    NO_LOGON_SERVERS = 0xc000_005e,
    PRIVILEGE_NOT_HELD = 0xc000_0061,
    NO_SUCH_USER = 0xc000_0064,
    WRONG_PASSWORD = 0xc000_006a,
    LOGON_FAILURE = 0xc000_006d,
    ACCOUNT_RESTRICTION = 0xc000_006e,
    INVALID_LOGON_HOURS = 0xc000_006f,
    INVALID_WORKSTATION = 0xc000_0070,
    PASSWORD_EXPIRED = 0xc000_0071,
    ACCOUNT_DISABLED = 0xc000_0072,
    NONE_MAPPED = 0xc000_0073,
    RANGE_NOT_LOCKED = 0xc000_007e,
    DISK_FULL = 0xc000_007f,
    INSUFFICIENT_RESOURCES = 0xc000_009a,
    MEDIA_WRITE_PROTECTED = 0xc000_00a2,
    DEVICE_NOT_READY = 0xc000_00a3,
    BAD_IMPERSONATION_LEVEL = 0xc000_00a5,
    PIPE_NOT_AVAILABLE = 0xc000_00ac,
    PIPE_BUSY = 0xc000_00ae,
    PIPE_DISCONNECTED = 0xc000_00b0,
    IO_TIMEOUT = 0xc000_00b5,
    FILE_IS_A_DIRECTORY = 0xc000_00ba,
    NOT_SUPPORTED = 0xc000_00bb,
    DUPLICATE_NAME = 0xc000_00bd,
    BAD_NETWORK_PATH = 0xc000_00be,
    NETWORK_BUSY = 0xc000_00bf,
    INVALID_NETWORK_RESPONSE = 0xc000_00c3,
    UNEXPECTED_NETWORK_ERROR = 0xc000_00c4,
    NETWORK_NAME_DELETED = 0xc000_00c9,
    NETWORK_ACCESS_DENIED = 0xc000_00ca,
    BAD_DEVICE_TYPE = 0xc000_00cb,
    BAD_NETWORK_NAME = 0xc000_00cc,
    TOO_MANY_SESSIONS = 0xc000_00ce,
    REQUEST_NOT_ACCEPTED = 0xc000_00d0,
    NOT_SAME_DEVICE = 0xc000_00d4,
    FILE_RENAMED = 0xc000_00d5,
    INVALID_OPLOCK_PROTOCOL = 0xc000_00e3,
    INTERNAL_ERROR = 0xc000_00e5,
    UNEXPECTED_IO_ERROR = 0xc000_00e9,
    DIRECTORY_NOT_EMPTY = 0xc000_0101,
    FILE_CORRUPT_ERROR = 0xc000_0102,
    NOT_A_DIRECTORY = 0xc000_0103,
    NAME_TOO_LONG = 0xc000_0106,
    TOO_MANY_OPENED_FILES = 0xc000_011f,
    CANCELLED = 0xc000_0120,
    CANNOT_DELETE = 0xc000_0121,
    INVALID_COMPUTER_NAME = 0xc000_0122,
    FILE_DELETED = 0xc000_0123,
    FILE_CLOSED = 0xc000_0128,
    INVALID_LEVEL = 0xc000_0148,
    PIPE_BROKEN = 0xc000_014b,
    LOGON_NOT_GRANTED = 0xc000_0155,
    LOGON_TYPE_NOT_GRANTED = 0xc000_015b,
    INVALID_DEVICE_STATE = 0xc000_0184,
    IO_DEVICE_ERROR = 0xc000_0185,
    ACCOUNT_EXPIRED = 0xc000_0193,
    FS_DRIVER_REQUIRED = 0xc000_019c,
    INVALID_LOCK_RANGE = 0xc000_01a1,
    USER_SESSION_DELETED = 0xc000_0203,
    INSUFF_SERVER_RESOURCES = 0xc000_0205,
    INVALID_BUFFER_SIZE = 0xc000_0206,
    INVALID_ADDRESS_COMPONENT = 0xc000_0207,
    CONNECTION_DISCONNECTED = 0xc000_020c,
    CONNECTION_RESET = 0xc000_020d,
    PASSWORD_MUST_CHANGE = 0xc000_0224,
    NOT_FOUND = 0xc000_0225,
    DUPLICATE_OBJECTID = 0xc000_022a,
    RETRY = 0xc000_022d,
    DOMAIN_CONTROLLER_NOT_FOUND = 0xc000_0233,
    ACCOUNT_LOCKED_OUT = 0xc000_0234,
    CONNECTION_REFUSED = 0xc000_0236,
    NETWORK_UNREACHABLE = 0xc000_023c,
    HOST_UNREACHABLE = 0xc000_023d,
    CONNECTION_ABORTED = 0xc000_0241,
    PATH_NOT_COVERED = 0xc000_0257,
    TOO_MANY_LINKS = 0xc000_0265,
    VOLUME_DISMOUNTED = 0xc000_026e,
    NOT_A_REPARSE_POINT = 0xc000_0275,
    IO_REPARSE_TAG_NOT_HANDLED = 0xc000_0279,
    NETWORK_SESSION_EXPIRED = 0xc000_035c,
    FILE_SYSTEM_LIMITATION = 0xc000_0427,
    SERVER_UNAVAILABLE = 0xc000_0466,
    FILE_NOT_AVAILABLE = 0xc000_0467,
    SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP = 0xc05d_0000,
}

const OK: &str = "NT_STATUS_OK";

/// Name of a status, with `NT_STATUS_` in front.
pub fn name(status: u32) -> Option<&'static str> {
    if status == SUCCESS {
        return Some(OK);
    }
    ALL.iter().find(|(number, _)| *number == status).map(|(_, name)| *name)
}

/// A status for a message: by its name, or its number where it has none.
#[derive(Clone, Copy, Debug)]
pub struct Named(pub u32);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match name(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "NTSTATUS 0x{:08X}", self.0),
        }
    }
}

/// The status of that name, which begins with `NT_STATUS_` or `STATUS_`, or of that number, which
/// begins with `0x`.
pub fn parse(text: &str) -> Option<u32> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u32::from_str_radix(digits, 16).ok();
    }
    if text == OK || text == "STATUS_OK" {
        return Some(SUCCESS);
    }
    let suffix = |text: &'static str| text.strip_prefix("NT_").unwrap_or(text);
    let expected = text.strip_prefix("NT_").unwrap_or(text);
    ALL.iter().find(|(_, name)| suffix(name) == expected).map(|(number, _)| *number)
}

/// Whether the command failed: an error, or a warning other than a buffer that was too small for
/// all there is.
pub const fn is_failure(status: u32) -> bool {
    status >> 30 == 3 || (status >> 30 == 2 && status != BUFFER_OVERFLOW)
}

layout! {
    /// A failure; why is in the header's status.
    #[derive(Default)]
    ErrorResponse<'a> "an ERROR response": 8 bytes, size 9 {
        /// 3.1.1: error contexts in the data.
        context_count: u8 = 2,
    } tail {
        /// Usually nothing.
        data: &'a [u8] = "an ERROR response", Span::behind((4, 4), Empty::ZeroByte);
    }
}
