//! Sessions and trees: SESSION_SETUP, LOGOFF, TREE_CONNECT and TREE_DISCONNECT (MS-SMB2 2.2.5 to
//! 2.2.12); and ECHO and CANCEL, which are about no file either (2.2.28 to 2.2.30).

use super::bytes::{Empty, Span};
use super::text::Text;

/// Bits of [`SessionSetupResponse::flags`].
pub mod session_flags {
    /// As guest: nothing is signed.
    pub const GUEST: u16 = 1;
    /// Anonymously.
    pub const NULL: u16 = 2;
    /// The server wants encryption.
    pub const ENCRYPT_DATA: u16 = 4;
}

layout! {
    /// A step of the logon, by the client.
    SessionSetupRequest<'a> "a SESSION_SETUP request": 24 bytes, size 25 {
        /// 1 binds another connection to a session.
        flags: u8 = 2,
        /// See [`super::negotiate::security_mode`].
        security_mode: u8 = 3,
        /// See [`super::negotiate::capabilities`].
        capabilities: u32 = 4,
        /// A session that this one replaces, or 0.
        previous_session_id: u64 = 16,
    } tail {
        /// SPNEGO.
        token: &'a [u8] = "the security token", Span::new((12, 2), (14, 2), Empty::Described);
    }
}

layout! {
    /// A step of the logon, by the server; with STATUS_MORE_PROCESSING_REQUIRED or at its end.
    SessionSetupResponse<'a> "a SESSION_SETUP response": 8 bytes, size 9 {
        /// See [`session_flags`].
        flags: u16 = 2,
    } tail {
        /// SPNEGO.
        token: &'a [u8] = "the security token", Span::new((4, 2), (6, 2), Empty::Described);
    }
}

layout! {
    /// Ends the session. MS-SMB2 2.2.7
    LogoffRequest "a LOGOFF request": 4 bytes, size 4 {}
}

layout! {
    /// The session has ended. MS-SMB2 2.2.8
    LogoffResponse "a LOGOFF response": 4 bytes, size 4 {}
}

/// Values of [`TreeConnectResponse::share_type`].
pub mod share_type {
    /// Files.
    pub const DISK: u8 = 1;
    /// Named pipes: IPC$.
    pub const PIPE: u8 = 2;
    /// A printer.
    pub const PRINT: u8 = 3;
}

/// Bit of [`TreeConnectResponse::share_flags`]: the server wants encryption.
pub const SHARE_ENCRYPT_DATA: u32 = 0x8000;

layout! {
    /// Reaches for a share.
    TreeConnectRequest<'a> "a TREE_CONNECT request": 8 bytes, size 9 {
        /// 3.1.1: 1 reconnects to a cluster, 2 redirects to the owner.
        flags: u16 = 2,
    } tail {
        /// `\\host\share`
        path: Text<'a> = "the share's path", Span::new((4, 2), (6, 2), Empty::Described);
    }
}

layout! {
    /// The share; its number is in the header. MS-SMB2 2.2.10
    TreeConnectResponse "a TREE_CONNECT response": 16 bytes, size 16 {
        /// See [`share_type`].
        share_type: u8 = 2,
        /// See [`SHARE_ENCRYPT_DATA`].
        share_flags: u32 = 4,
        /// SHARE_CAP bits.
        capabilities: u32 = 8,
        /// What the user may do at most.
        maximal_access: u32 = 12,
    }
}

layout! {
    /// Asks the server to answer. MS-SMB2 2.2.28
    EchoRequest "an ECHO request": 4 bytes, size 4 {}
}

layout! {
    /// It answers. MS-SMB2 2.2.29
    EchoResponse "an ECHO response": 4 bytes, size 4 {}
}
