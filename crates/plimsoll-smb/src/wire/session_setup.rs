//! SESSION_SETUP and LOGOFF. MS-SMB2 2.2.5 to 2.2.8

use super::bytes::{WireError, buffer, from_header, get, put, structure};

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
