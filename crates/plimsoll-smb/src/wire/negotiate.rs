//! NEGOTIATE, with what dialect 3.1.1 negotiates besides. MS-SMB2 2.2.3, 2.2.4

use super::bytes::{Empty, FileTime, Span, Tail, WireError, fixed, get, pad8, since, write_at};

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
    pub const ENCRYPTION: u32 = 0x40;
}

/// A version of the protocol. MS-SMB2 2.2.3
pub mod dialect {
    /// 3.1.1, the one with contexts.
    pub const SMB_3_1_1: u16 = 0x0311;
}

layout! {
    /// Requests a dialect.
    NegotiateRequest<'a> "a NEGOTIATE request": 36 bytes, size 36 {
        /// See [`security_mode`].
        security_mode: u16 = 4,
        /// See [`capabilities`].
        capabilities: u32 = 8,
        /// Of the client machine.
        client_guid: [u8; 16] = 12,
    } tail {
        /// See [`dialect`], in any order.
        dialects: U16List<'a> = "the list of dialects", Span::behind((2, 2), Empty::Described);
        /// Only with dialect 3.1.1.
        contexts: NegotiateContexts<'a> = "a negotiate context",
            Span::new((28, 4), (32, 2), Empty::Omitted),
            if dialects.iter().any(|dialect| dialect == dialect::SMB_3_1_1);
    }
}

layout! {
    /// The dialect, and what the server can do.
    NegotiateResponse<'a> "a NEGOTIATE response": 64 bytes, size 65 {
        /// See [`security_mode`].
        security_mode: u16 = 2,
        /// See [`dialect`].
        dialect: u16 = 4,
        /// Of the server machine.
        server_guid: [u8; 16] = 8,
        /// See [`capabilities`].
        capabilities: u32 = 24,
        /// Most bytes of one QUERY_INFO, QUERY_DIRECTORY, SET_INFO …
        max_transact: u32 = 28,
        /// Most bytes of one READ.
        max_read: u32 = 32,
        /// Most bytes of one WRITE.
        max_write: u32 = 36,
        /// The server's time.
        system_time: FileTime = 40,
        /// When it started, or 0.
        start_time: FileTime = 48,
    } tail {
        /// Security token: SPNEGO's NegTokenInit2.
        token: &'a [u8] = "the security token", Span::new((56, 2), (58, 2), Empty::Described);
        /// Only with dialect 3.1.1.
        contexts: NegotiateContexts<'a> = "a negotiate context",
            Span::new((60, 4), (6, 2), Empty::Omitted), if dialect == dialect::SMB_3_1_1;
    }
}

const PREAUTH_INTEGRITY: u16 = 1;
const ENCRYPTION: u16 = 2;
const SIGNING: u16 = 8;

const CONTEXT: &str = "a negotiate context";
const CONTEXT_HEADER: usize = 8;

/// Numbers of two bytes, to write or as they came.
#[derive(Clone, Copy, Debug)]
pub enum U16List<'a> {
    /// Ours.
    Values(&'a [u16]),
    /// From the wire, of even length.
    Wire(&'a [u8]),
}

impl<'a> U16List<'a> {
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
    const fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Wire(bytes) => bytes.len() / 2,
        }
    }
}

impl<'a> Tail<'a> for U16List<'a> {
    fn wire_bytes(count: u32, _rest: u32) -> u32 {
        count * 2
    }

    fn from_wire(bytes: &'a [u8], _count: u32) -> Result<Self, WireError> {
        Ok(Self::Wire(bytes))
    }

    fn append(self, out: &mut Vec<u8>) -> u32 {
        out.extend(self.iter().flat_map(u16::to_le_bytes));
        self.len() as u32
    }
}

impl PartialEq for U16List<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for U16List<'_> {}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NegotiateContext<'a> {
    /// How the messages before the keys are hashed.
    PreauthIntegrity {
        /// 1 is SHA-512, and all there is.
        algorithms: U16List<'a>,
        /// Random.
        salt: &'a [u8],
    },
    /// Ciphers, the client's in its order, the server's one.
    Encryption {
        /// 1 AES-128-CCM, 2 AES-128-GCM, 3 AES-256-CCM, 4 AES-256-GCM.
        ciphers: U16List<'a>,
    },
    /// Signing, the client's in its order, the server's one.
    Signing {
        /// 0 HMAC-SHA256, 1 AES-CMAC, 2 AES-GMAC.
        algorithms: U16List<'a>,
    },
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
            Self::Other { kind, .. } => *kind,
        };
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&[0; CONTEXT_HEADER - 2]);
        match self {
            Self::PreauthIntegrity { algorithms, salt } => {
                out.extend_from_slice(&(algorithms.len() as u16).to_le_bytes());
                out.extend_from_slice(&(salt.len() as u16).to_le_bytes());
                algorithms.append(out);
                out.extend_from_slice(salt);
            }
            Self::Encryption { ciphers: numbers } | Self::Signing { algorithms: numbers } => {
                out.extend_from_slice(&(numbers.len() as u16).to_le_bytes());
                numbers.append(out);
            }
            Self::Other { data, .. } => out.extend_from_slice(data),
        }
        let length = since(out, at + CONTEXT_HEADER) as u16;
        write_at(out, at + 2, &length);
    }

    fn decode(kind: u16, data: &'a [u8]) -> Result<Self, WireError> {
        let numbers = |from: usize| {
            let count = usize::from(get::<u16>(fixed::<2>(data, CONTEXT)?, 0)?);
            let rest = data.get(from..from + count * 2);
            let numbers = rest.ok_or(WireError::Truncated { what: CONTEXT, bytes: data.len() })?;
            Ok((U16List::Wire(numbers), from + count * 2))
        };
        match kind {
            PREAUTH_INTEGRITY => {
                let salt = usize::from(get::<u16>(fixed::<4>(data, CONTEXT)?, 2)?);
                let (algorithms, at) = numbers(4)?;
                let salt = data
                    .get(at..at + salt)
                    .ok_or(WireError::Truncated { what: CONTEXT, bytes: data.len() })?;
                Ok(Self::PreauthIntegrity { algorithms, salt })
            }
            ENCRYPTION => Ok(Self::Encryption { ciphers: numbers(2)?.0 }),
            SIGNING => Ok(Self::Signing { algorithms: numbers(2)?.0 }),
            _ => Ok(Self::Other { kind, data }),
        }
    }
}

/// What dialect 3.1.1 negotiates besides, to write or as it came. MS-SMB2 2.2.3.1, 2.2.4.1
#[derive(Clone, Copy, Debug)]
pub enum NegotiateContexts<'a> {
    /// Ours.
    Values(&'a [NegotiateContext<'a>]),
    /// From the wire; decoded once, and valid.
    Wire {
        /// From the first to the end of the message.
        bytes: &'a [u8],
        /// How many.
        count: u32,
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
        let (values, mut bytes, count): (&[_], &[u8], u32) = match self {
            Self::Values(values) => (values, &[], 0),
            Self::Wire { bytes, count } => (&[], bytes, count),
        };
        let wire = (0..count).map_while(move |_| next(&mut bytes).ok());
        values.iter().copied().chain(wire)
    }
}

impl<'a> Tail<'a> for NegotiateContexts<'a> {
    fn wire_bytes(count: u32, rest: u32) -> u32 {
        if count == 0 { 0 } else { rest.max(1) }
    }

    fn from_wire(bytes: &'a [u8], count: u32) -> Result<Self, WireError> {
        let mut rest = bytes;
        (0..count).try_for_each(|_| next(&mut rest).map(drop))?;
        Ok(Self::Wire { bytes, count })
    }

    /// From a multiple of 8 on.
    fn append(self, out: &mut Vec<u8>) -> u32 {
        let at = out.len();
        let append = |context: NegotiateContext<'_>| {
            pad8(out, at);
            context.encode(out);
        };
        self.iter().map(append).count() as u32
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
