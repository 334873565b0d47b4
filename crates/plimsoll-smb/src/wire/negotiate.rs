//! NEGOTIATE, with what dialect 3.1.1 negotiates besides. MS-SMB2 2.2.3, 2.2.4

use super::bytes::{
    FileTime, HEADER_BYTES, WireError, buffer, fixed, from_header, get, pad8, put, since, structure,
};
use super::text::Text;

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

const PREAUTH_INTEGRITY: u16 = 1;
const ENCRYPTION: u16 = 2;
const NET_NAME: u16 = 5;
const SIGNING: u16 = 8;

const CONTEXT: &str = "a negotiate context";
const CONTEXT_HEADER: usize = 8;

/// Numbers of two bytes, to write or as they came.
#[derive(Clone, Copy, Debug)]
pub enum Words<'a> {
    /// Ours.
    Values(&'a [u16]),
    /// From the wire, of even length.
    Wire(&'a [u8]),
}

impl<'a> Words<'a> {
    /// The numbers.
    pub fn iter(self) -> impl Iterator<Item = u16> + 'a {
        let (values, wire): (&[u16], &[u8]) = match self {
            Self::Values(values) => (values, &[]),
            Self::Wire(bytes) => (&[], bytes),
        };
        let (pairs, _) = wire.as_chunks::<2>();
        values.iter().copied().chain(pairs.iter().map(|pair| u16::from_le_bytes(*pair)))
    }

    /// How many.
    pub const fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Wire(bytes) => bytes.len() / 2,
        }
    }

    /// None.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        out.extend(self.iter().flat_map(u16::to_le_bytes));
    }
}

impl PartialEq for Words<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Words<'_> {}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NegotiateContext<'a> {
    /// How the messages before the keys are hashed.
    PreauthIntegrity {
        /// 1 is SHA-512, and all there is.
        algorithms: Words<'a>,
        /// Random.
        salt: &'a [u8],
    },
    /// Ciphers, the client's in its order, the server's one.
    Encryption {
        /// 1 AES-128-CCM, 2 AES-128-GCM, 3 AES-256-CCM, 4 AES-256-GCM.
        ciphers: Words<'a>,
    },
    /// Signing, the client's in its order, the server's one.
    Signing {
        /// 0 HMAC-SHA256, 1 AES-CMAC, 2 AES-GMAC.
        algorithms: Words<'a>,
    },
    /// The server's name, as the client knows it.
    NetName(Text<'a>),
    /// Another.
    Other {
        /// ContextType.
        kind: u16,
        /// Its data.
        data: &'a [u8],
    },
}

impl<'a> NegotiateContext<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        let kind = match self {
            Self::PreauthIntegrity { .. } => PREAUTH_INTEGRITY,
            Self::Encryption { .. } => ENCRYPTION,
            Self::Signing { .. } => SIGNING,
            Self::NetName(_) => NET_NAME,
            Self::Other { kind, .. } => *kind,
        };
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&[0; CONTEXT_HEADER - 2]);
        match self {
            Self::PreauthIntegrity { algorithms, salt } => {
                out.extend_from_slice(&(algorithms.len() as u16).to_le_bytes());
                out.extend_from_slice(&(salt.len() as u16).to_le_bytes());
                algorithms.encode(out);
                out.extend_from_slice(salt);
            }
            Self::Encryption { ciphers: words } | Self::Signing { algorithms: words } => {
                out.extend_from_slice(&(words.len() as u16).to_le_bytes());
                words.encode(out);
            }
            Self::NetName(name) => name.encode(out),
            Self::Other { data, .. } => out.extend_from_slice(data),
        }
        let length = since(out, at + CONTEXT_HEADER) as u16;
        put(out, at + 2, &length);
    }

    fn decode(kind: u16, data: &'a [u8]) -> Result<Self, WireError> {
        let words = |from: usize| {
            let count = usize::from(get::<u16>(fixed::<2>(data, CONTEXT)?, 0)?);
            let rest = data.get(from..from + count * 2);
            let words = rest.ok_or(WireError::Truncated { what: CONTEXT, bytes: data.len() })?;
            Ok((Words::Wire(words), from + count * 2))
        };
        match kind {
            PREAUTH_INTEGRITY => {
                let salt = usize::from(get::<u16>(fixed::<4>(data, CONTEXT)?, 2)?);
                let (algorithms, at) = words(4)?;
                let salt = data
                    .get(at..at + salt)
                    .ok_or(WireError::Truncated { what: CONTEXT, bytes: data.len() })?;
                Ok(Self::PreauthIntegrity { algorithms, salt })
            }
            ENCRYPTION => Ok(Self::Encryption { ciphers: words(2)?.0 }),
            SIGNING => Ok(Self::Signing { algorithms: words(2)?.0 }),
            NET_NAME => Ok(Self::NetName(Text::Utf16(data))),
            _ => Ok(Self::Other { kind, data }),
        }
    }
}

/// Several, to write or as they came.
#[derive(Clone, Copy, Debug)]
pub enum NegotiateContexts<'a> {
    /// Ours.
    Values(&'a [NegotiateContext<'a>]),
    /// From the wire; decoded once, and found right.
    Wire {
        /// From the first to the end of the message.
        bytes: &'a [u8],
        /// How many.
        count: u16,
    },
}

impl Default for NegotiateContexts<'_> {
    fn default() -> Self {
        Self::Values(&[])
    }
}

impl<'a> NegotiateContexts<'a> {
    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = NegotiateContext<'a>> {
        let (values, mut bytes, count): (&[_], &[u8], u16) = match self {
            Self::Values(values) => (values, &[], 0),
            Self::Wire { bytes, count } => (&[], bytes, count),
        };
        let wire = (0..count).map_while(move |_| next(&mut bytes).ok());
        values.iter().copied().chain(wire)
    }

    /// None.
    pub const fn is_empty(&self) -> bool {
        match self {
            Self::Values(values) => values.is_empty(),
            Self::Wire { count, .. } => *count == 0,
        }
    }

    /// Appends all, from a multiple of 8 on; answers with how many.
    fn encode(self, out: &mut Vec<u8>) -> u16 {
        let at = out.len();
        let mut count = 0;
        for context in self.iter() {
            pad8(out, at);
            context.encode(out);
            count += 1;
        }
        count
    }

    fn decode(body: &'a [u8], offset: u32, count: u16) -> Result<Self, WireError> {
        let end = (HEADER_BYTES + body.len()) as u32;
        let length = if count == 0 { 0 } else { end.saturating_sub(offset).max(1) };
        let bytes = buffer(body, 2, (offset, length), CONTEXT)?;
        let mut rest = bytes;
        (0..count).try_for_each(|_| next(&mut rest).map(drop))?;
        Ok(Self::Wire { bytes, count })
    }
}

/// Takes a context and the padding behind it.
fn next<'a>(bytes: &mut &'a [u8]) -> Result<NegotiateContext<'a>, WireError> {
    let header: &[u8; CONTEXT_HEADER] = fixed(bytes, CONTEXT)?;
    let length = usize::from(get::<u16>(header, 2)?);
    let end = CONTEXT_HEADER + length;
    let data = bytes
        .get(CONTEXT_HEADER..end)
        .ok_or(WireError::Truncated { what: CONTEXT, bytes: bytes.len() })?;
    *bytes = &bytes[end.next_multiple_of(8).min(bytes.len())..];
    NegotiateContext::decode(get(header, 0)?, data)
}

impl PartialEq for NegotiateContexts<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for NegotiateContexts<'_> {}
