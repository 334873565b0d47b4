//! What dialect 3.1.1 negotiates besides. MS-SMB2 2.2.3.1, 2.2.4.1

use super::super::bytes::{HEADER_BYTES, WireError, buffer, fixed, get, pad8, put, since};
use super::super::text::Text;

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

    pub(in super::super) fn encode(self, out: &mut Vec<u8>) {
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
    pub(super) fn encode(self, out: &mut Vec<u8>) -> u16 {
        let at = out.len();
        let mut count = 0;
        for context in self.iter() {
            pad8(out, at);
            context.encode(out);
            count += 1;
        }
        count
    }

    pub(super) fn decode(body: &'a [u8], offset: u32, count: u16) -> Result<Self, WireError> {
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
