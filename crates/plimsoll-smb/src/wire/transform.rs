//! The header before an encrypted message. MS-SMB2 2.2.41

use super::bytes::{WireError, fixed, get, put};
use super::header::PROTOCOL_ID;

/// Bytes of a transform header.
pub const TRANSFORM_BYTES: usize = 52;

/// Begins an encrypted message.
pub const TRANSFORM_ID: [u8; 4] = [0xfd, b'S', b'M', b'B'];

/// Begins a compressed message.
pub const COMPRESSION_ID: [u8; 4] = [0xfc, b'S', b'M', b'B'];

/// Begins a message of SMB 1.
pub const SMB1_ID: [u8; 4] = [0xff, b'S', b'M', b'B'];

/// Where the authenticated part begins; it ends with the header.
pub const AUTHENTICATED_AT: usize = 20;

/// What a message is, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageForm {
    /// SMB2 commands.
    Plain,
    /// A transform header and what it encrypts.
    Encrypted,
    /// Compressed, which nobody asked for.
    Compressed,
    /// Of SMB 1.
    Smb1,
}

/// What `message` is; `None` when it is nothing of SMB.
pub fn form(message: &[u8]) -> Option<MessageForm> {
    match *message.first_chunk()? {
        PROTOCOL_ID => Some(MessageForm::Plain),
        TRANSFORM_ID => Some(MessageForm::Encrypted),
        COMPRESSION_ID => Some(MessageForm::Compressed),
        SMB1_ID => Some(MessageForm::Smb1),
        _ => None,
    }
}

/// The header before an encrypted message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransformHeader {
    /// Tag of the cipher.
    pub signature: [u8; 16],
    /// The first 12 bytes for GCM, 11 for CCM; the rest zero.
    pub nonce: [u8; 16],
    /// Bytes of the message.
    pub message_bytes: u32,
    /// 1: encrypted. In 3.0 the cipher, which is 1 too.
    pub flags: u16,
    /// Whose keys.
    pub session_id: u64,
}

impl TransformHeader {
    /// Appends itself.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
    }

    /// As on the wire.
    #[inline]
    pub fn to_bytes(&self) -> [u8; TRANSFORM_BYTES] {
        let mut bytes = [0; TRANSFORM_BYTES];
        put(&mut bytes, 0, &TRANSFORM_ID);
        put(&mut bytes, 4, &self.signature);
        put(&mut bytes, AUTHENTICATED_AT, &self.nonce);
        put(&mut bytes, 36, &self.message_bytes);
        put(&mut bytes, 42, &self.flags);
        put(&mut bytes, 44, &self.session_id);
        bytes
    }

    /// Reads itself from the front of `message`. Whether [`Self::message_bytes`] follow is for
    /// the caller to see.
    #[inline]
    pub fn decode(message: &[u8]) -> Result<Self, WireError> {
        let bytes: &[u8; TRANSFORM_BYTES] = fixed(message, "a transform header")?;
        let protocol = get::<u32>(bytes, 0)?;
        if protocol.to_le_bytes() != TRANSFORM_ID {
            return Err(WireError::Value { what: "the protocol", value: protocol.into() });
        }
        Ok(Self {
            signature: get(bytes, 4)?,
            nonce: get(bytes, AUTHENTICATED_AT)?,
            message_bytes: get(bytes, 36)?,
            flags: get(bytes, 42)?,
            session_id: get(bytes, 44)?,
        })
    }
}
