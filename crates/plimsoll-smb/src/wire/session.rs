//! Sessions and trees: SESSION_SETUP, LOGOFF, TREE_CONNECT and TREE_DISCONNECT (MS-SMB2 2.2.5 to
//! 2.2.12); and ECHO and CANCEL, which are about no file either (2.2.28 to 2.2.30).

use super::bytes::{WireError, buffer, from_header, get, put, since, structure};
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

/// A step of the logon, by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSetupRequest<'a> {
    /// 1 binds another connection to a session.
    pub flags: u8,
    /// See [`super::negotiate::security_mode`].
    pub security_mode: u8,
    /// See [`super::negotiate::capabilities`].
    pub capabilities: u32,
    /// A session that this one replaces, or 0.
    pub previous_session_id: u64,
    /// SPNEGO.
    pub token: &'a [u8],
}

impl<'a> SessionSetupRequest<'a> {
    const FIXED: usize = 24;

    /// Appends itself behind its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; SessionSetupRequest::FIXED];
        put(&mut bytes, 0, &25u16);
        put(&mut bytes, 2, &self.flags);
        put(&mut bytes, 3, &self.security_mode);
        put(&mut bytes, 4, &self.capabilities);
        put(&mut bytes, 12, &(from_header(Self::FIXED) as u16));
        put(&mut bytes, 14, &(self.token.len() as u16));
        put(&mut bytes, 16, &self.previous_session_id);
        out.extend_from_slice(&bytes);
        out.extend_from_slice(self.token);
    }

    /// Reads itself from a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes =
            structure::<{ SessionSetupRequest::FIXED }>(body, 25, "a SESSION_SETUP request")?;
        let token = (get::<u16>(bytes, 12)?.into(), get::<u16>(bytes, 14)?.into());
        Ok(Self {
            flags: get(bytes, 2)?,
            security_mode: get(bytes, 3)?,
            capabilities: get(bytes, 4)?,
            previous_session_id: get(bytes, 16)?,
            token: buffer(body, Self::FIXED, token, "the security token")?,
        })
    }
}

/// A step of the logon, by the server; with STATUS_MORE_PROCESSING_REQUIRED or at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSetupResponse<'a> {
    /// See [`session_flags`].
    pub flags: u16,
    /// SPNEGO.
    pub token: &'a [u8],
}

impl<'a> SessionSetupResponse<'a> {
    const FIXED: usize = 8;

    /// Appends itself behind its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; SessionSetupResponse::FIXED];
        put(&mut bytes, 0, &9u16);
        put(&mut bytes, 2, &self.flags);
        put(&mut bytes, 4, &(from_header(Self::FIXED) as u16));
        put(&mut bytes, 6, &(self.token.len() as u16));
        out.extend_from_slice(&bytes);
        out.extend_from_slice(self.token);
    }

    /// Reads itself from a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes =
            structure::<{ SessionSetupResponse::FIXED }>(body, 9, "a SESSION_SETUP response")?;
        let token = (get::<u16>(bytes, 4)?.into(), get::<u16>(bytes, 6)?.into());
        Ok(Self {
            flags: get(bytes, 2)?,
            token: buffer(body, Self::FIXED, token, "the security token")?,
        })
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

/// Reaches for a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeConnectRequest<'a> {
    /// 3.1.1: 1 reconnects to a cluster, 2 redirects to the owner.
    pub flags: u16,
    /// `\\host\share`
    pub path: Text<'a>,
}

impl<'a> TreeConnectRequest<'a> {
    const FIXED: usize = 8;

    /// Appends itself behind its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        let mut bytes = [0; TreeConnectRequest::FIXED];
        put(&mut bytes, 0, &9u16);
        put(&mut bytes, 2, &self.flags);
        put(&mut bytes, 4, &(from_header(Self::FIXED) as u16));
        out.extend_from_slice(&bytes);
        self.path.encode(out);
        let length = since(out, at + Self::FIXED) as u16;
        put(out, at + 6, &length);
    }

    /// Reads itself from a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes = structure::<{ TreeConnectRequest::FIXED }>(body, 9, "a TREE_CONNECT request")?;
        let path = (get::<u16>(bytes, 4)?.into(), get::<u16>(bytes, 6)?.into());
        let path = Text::Utf16(buffer(body, Self::FIXED, path, "the share's path")?);
        Ok(Self { flags: get(bytes, 2)?, path })
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
    /// Lets go of the share. MS-SMB2 2.2.11
    TreeDisconnectRequest "a TREE_DISCONNECT request": 4 bytes, size 4 {}
}

layout! {
    /// The share has been let go. MS-SMB2 2.2.12
    TreeDisconnectResponse "a TREE_DISCONNECT response": 4 bytes, size 4 {}
}

layout! {
    /// Asks the server to answer. MS-SMB2 2.2.28
    EchoRequest "an ECHO request": 4 bytes, size 4 {}
}

layout! {
    /// It answers. MS-SMB2 2.2.29
    EchoResponse "an ECHO response": 4 bytes, size 4 {}
}

layout! {
    /// Gives up a request, which its header names; is not answered. MS-SMB2 2.2.30
    CancelRequest "a CANCEL request": 4 bytes, size 4 {}
}
