//! NEGOTIATE. MS-SMB2 2.2.3, 2.2.4

mod contexts;

pub use contexts::{NegotiateContext, NegotiateContexts, Words};

use super::bytes::{
    FileTime, HEADER_BYTES, WireError, buffer, from_header, get, pad8, put, since, structure,
};

/// Bits of a SecurityMode, in NEGOTIATE and SESSION_SETUP.
pub mod security_mode {
    /// Messages can be signed.
    pub const SIGNING_ENABLED: u16 = 1;
    /// Messages must be signed.
    pub const SIGNING_REQUIRED: u16 = 2;
}

/// Bits of Capabilities. MS-SMB2 2.2.3
#[expect(missing_docs, reason = "each is the capability of its name")]
pub mod capabilities {
    pub const DFS: u32 = 0x01;
    pub const LEASING: u32 = 0x02;
    pub const LARGE_MTU: u32 = 0x04;
    pub const MULTI_CHANNEL: u32 = 0x08;
    pub const PERSISTENT_HANDLES: u32 = 0x10;
    pub const DIRECTORY_LEASING: u32 = 0x20;
    pub const ENCRYPTION: u32 = 0x40;
}

/// A version of the protocol. MS-SMB2 2.2.3
pub mod dialect {
    /// 2.0.2
    pub const SMB_2_0_2: u16 = 0x0202;
    /// 2.1
    pub const SMB_2_1: u16 = 0x0210;
    /// 3.0
    pub const SMB_3_0: u16 = 0x0300;
    /// 3.0.2
    pub const SMB_3_0_2: u16 = 0x0302;
    /// 3.1.1, the one with contexts.
    pub const SMB_3_1_1: u16 = 0x0311;
    /// Answer to an SMB 1 NEGOTIATE: ask again.
    pub const WILDCARD: u16 = 0x02ff;
}

const REQUEST: &str = "a NEGOTIATE request";
const RESPONSE: &str = "a NEGOTIATE response";

/// Asks for a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiateRequest<'a> {
    /// See [`security_mode`].
    pub security_mode: u16,
    /// See [`capabilities`].
    pub capabilities: u32,
    /// Of the client machine.
    pub client_guid: [u8; 16],
    /// See [`dialect`], in any order.
    pub dialects: Words<'a>,
    /// Only with dialect 3.1.1.
    pub contexts: NegotiateContexts<'a>,
}

impl<'a> NegotiateRequest<'a> {
    const FIXED: usize = 36;

    /// Appends itself behind its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        let mut bytes = [0; NegotiateRequest::FIXED];
        put(&mut bytes, 0, &36u16);
        put(&mut bytes, 2, &(self.dialects.len() as u16));
        put(&mut bytes, 4, &self.security_mode);
        put(&mut bytes, 8, &self.capabilities);
        put(&mut bytes, 12, &self.client_guid);
        out.extend_from_slice(&bytes);
        self.dialects.encode(out);
        if !self.contexts.is_empty() {
            pad8(out, at);
            let offset = from_header(out.len() - at);
            put(out, at + 28, &offset);
            let count = self.contexts.encode(out);
            put(out, at + 32, &count);
        }
    }

    /// Reads itself from a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes = structure::<{ NegotiateRequest::FIXED }>(body, 36, REQUEST)?;
        let dialects_bytes = u32::from(get::<u16>(bytes, 2)?) * 2;
        let place = (from_header(Self::FIXED), dialects_bytes);
        let dialects = Words::Wire(buffer(body, Self::FIXED, place, "the list of dialects")?);
        let contexts = if dialects.iter().any(|dialect| dialect == dialect::SMB_3_1_1) {
            NegotiateContexts::decode(body, get(bytes, 28)?, get(bytes, 32)?)?
        } else {
            NegotiateContexts::default()
        };
        Ok(Self {
            security_mode: get(bytes, 4)?,
            capabilities: get(bytes, 8)?,
            client_guid: get(bytes, 12)?,
            dialects,
            contexts,
        })
    }
}

/// The dialect, and what the server can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiateResponse<'a> {
    /// See [`security_mode`].
    pub security_mode: u16,
    /// See [`dialect`].
    pub dialect: u16,
    /// Of the server machine.
    pub server_guid: [u8; 16],
    /// See [`capabilities`].
    pub capabilities: u32,
    /// Most bytes of one QUERY_INFO, QUERY_DIRECTORY, SET_INFO …
    pub max_transact: u32,
    /// Most bytes of one READ.
    pub max_read: u32,
    /// Most bytes of one WRITE.
    pub max_write: u32,
    /// The server's time.
    pub system_time: FileTime,
    /// When it started, or 0.
    pub start_time: FileTime,
    /// Security token: SPNEGO's NegTokenInit2.
    pub token: &'a [u8],
    /// Only with dialect 3.1.1.
    pub contexts: NegotiateContexts<'a>,
}

impl<'a> NegotiateResponse<'a> {
    const FIXED: usize = 64;

    /// Appends itself behind its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        let mut bytes = [0; NegotiateResponse::FIXED];
        put(&mut bytes, 0, &65u16);
        put(&mut bytes, 2, &self.security_mode);
        put(&mut bytes, 4, &self.dialect);
        put(&mut bytes, 8, &self.server_guid);
        put(&mut bytes, 24, &self.capabilities);
        put(&mut bytes, 28, &self.max_transact);
        put(&mut bytes, 32, &self.max_read);
        put(&mut bytes, 36, &self.max_write);
        put(&mut bytes, 40, &self.system_time);
        put(&mut bytes, 48, &self.start_time);
        put(&mut bytes, 56, &(from_header(Self::FIXED) as u16));
        put(&mut bytes, 58, &(self.token.len() as u16));
        out.extend_from_slice(&bytes);
        out.extend_from_slice(self.token);
        if !self.contexts.is_empty() {
            pad8(out, at);
            let offset = HEADER_BYTES as u32 + since(out, at);
            put(out, at + 60, &offset);
            let count = self.contexts.encode(out);
            put(out, at + 6, &count);
        }
    }

    /// Reads itself from a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes = structure::<{ NegotiateResponse::FIXED }>(body, 65, RESPONSE)?;
        let dialect = get(bytes, 4)?;
        let token = (get::<u16>(bytes, 56)?.into(), get::<u16>(bytes, 58)?.into());
        let contexts = if dialect == dialect::SMB_3_1_1 {
            NegotiateContexts::decode(body, get(bytes, 60)?, get(bytes, 6)?)?
        } else {
            NegotiateContexts::default()
        };
        Ok(Self {
            security_mode: get(bytes, 2)?,
            dialect,
            server_guid: get(bytes, 8)?,
            capabilities: get(bytes, 24)?,
            max_transact: get(bytes, 28)?,
            max_read: get(bytes, 32)?,
            max_write: get(bytes, 36)?,
            system_time: get(bytes, 40)?,
            start_time: get(bytes, 48)?,
            token: buffer(body, Self::FIXED, token, "the security token")?,
            contexts,
        })
    }
}
