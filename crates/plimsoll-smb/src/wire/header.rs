//! Headers: the one before every command, compounds, and the one before an encrypted message.
//! MS-SMB2 2.2.1, 2.2.41, 3.2.4.1.4

use super::bytes::{HEADER_BYTES, WireError, fixed, get, write_at};

/// Where the signature lies in a header, for 16 bytes.
pub const SIGNATURE_AT: usize = 48;

const NEXT_COMMAND_AT: usize = 20;

/// Begins a command.
pub const PROTOCOL_ID: [u8; 4] = [0xfe, b'S', b'M', b'B'];

/// Message id of unsolicited messages: oplock and lease breaks.
pub const UNSOLICITED: u64 = u64::MAX;

/// Bits of [`Header::flags`].
pub mod flags {
    /// From the server.
    pub const RESPONSE: u32 = 0x1;
    /// With an async id; follows from [`super::Header::async_id`].
    pub const ASYNC: u32 = 0x2;
    /// Goes on with session, tree and open of the command before.
    pub const RELATED: u32 = 0x4;
    /// The signature holds.
    pub const SIGNED: u32 = 0x8;
    /// The path is one of DFS.
    pub const DFS: u32 = 0x1000_0000;
    /// Sent once more.
    pub const REPLAY: u32 = 0x2000_0000;
}

numbers! {
    /// What is requested. MS-SMB2 2.2.1.2
    #[expect(missing_docs, reason = "each is the command of its name")]
    Command: u16 "Command" {
        Negotiate = 0,
        SessionSetup = 1,
        Logoff = 2,
        TreeConnect = 3,
        TreeDisconnect = 4,
        Create = 5,
        Close = 6,
        Flush = 7,
        Read = 8,
        Write = 9,
        Lock = 10,
        Ioctl = 11,
        Cancel = 12,
        Echo = 13,
        QueryDirectory = 14,
        ChangeNotify = 15,
        QueryInfo = 16,
        SetInfo = 17,
        OplockBreak = 18,
    }
}

/// The header of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What is requested or answered.
    pub command: Command,
    /// NTSTATUS of a response; in a request the channel's sequence number.
    pub status: u32,
    /// See [`flags`].
    pub flags: u32,
    /// Bytes from this header to the next in the compound; 0 in the last.
    pub next_command: u32,
    /// Of the request, and of what answers it.
    pub message_id: u64,
    /// Credits that it uses: one per 64 KiB of data; 0 before 2.1.
    pub credit_charge: u16,
    /// Credits requested or granted.
    pub credits: u16,
    /// The share; 0 in the async form.
    pub tree_id: u32,
    /// The async form: the server's id of the request that it works on.
    pub async_id: Option<u64>,
    /// The session.
    pub session_id: u64,
    /// Zero unless signed.
    pub signature: [u8; 16],
}

impl Header {
    /// Of a request or response to `command`, everything else zero.
    #[inline]
    pub const fn new(command: Command) -> Self {
        Self {
            command,
            status: 0,
            flags: 0,
            next_command: 0,
            message_id: 0,
            credit_charge: 0,
            credits: 0,
            tree_id: 0,
            async_id: None,
            session_id: 0,
            signature: [0; 16],
        }
    }

    /// From the server.
    #[inline]
    pub const fn is_response(&self) -> bool {
        self.flags & flags::RESPONSE != 0
    }

    /// Its flags claim a signature.
    #[inline]
    pub const fn is_signed(&self) -> bool {
        self.flags & flags::SIGNED != 0
    }

    /// Appends itself.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; HEADER_BYTES];
        write_at(&mut bytes, 0, &PROTOCOL_ID);
        write_at(&mut bytes, 4, &(HEADER_BYTES as u16));
        write_at(&mut bytes, 6, &self.credit_charge);
        write_at(&mut bytes, 8, &self.status);
        write_at(&mut bytes, 12, &self.command);
        write_at(&mut bytes, 14, &self.credits);
        write_at(&mut bytes, NEXT_COMMAND_AT, &self.next_command);
        write_at(&mut bytes, 24, &self.message_id);
        match self.async_id {
            Some(async_id) => {
                write_at(&mut bytes, 16, &(self.flags | flags::ASYNC));
                write_at(&mut bytes, 32, &async_id);
            }
            None => {
                write_at(&mut bytes, 16, &(self.flags & !flags::ASYNC));
                write_at(&mut bytes, 36, &self.tree_id);
            }
        }
        write_at(&mut bytes, 40, &self.session_id);
        write_at(&mut bytes, SIGNATURE_AT, &self.signature);
        out.extend_from_slice(&bytes);
    }

    /// Reads itself from the front of `bytes`.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let what = "an SMB2 header";
        let bytes: &[u8; HEADER_BYTES] = fixed(bytes, what)?;
        let protocol = get::<u32>(bytes, 0)?;
        if protocol.to_le_bytes() != PROTOCOL_ID {
            return Err(WireError::Value { what: "the protocol", value: protocol.into() });
        }
        let (size, expected) = (get::<u16>(bytes, 4)?, HEADER_BYTES as u16);
        if size != expected {
            return Err(WireError::Structure { what, size, expected });
        }
        let flags = get(bytes, 16)?;
        let is_async = flags & flags::ASYNC != 0;
        Ok(Self {
            command: get(bytes, 12)?,
            status: get(bytes, 8)?,
            flags,
            next_command: get(bytes, NEXT_COMMAND_AT)?,
            message_id: get(bytes, 24)?,
            credit_charge: get(bytes, 6)?,
            credits: get(bytes, 14)?,
            tree_id: if is_async { 0 } else { get(bytes, 36)? },
            async_id: if is_async { Some(get(bytes, 32)?) } else { None },
            session_id: get(bytes, 40)?,
            signature: get(bytes, SIGNATURE_AT)?,
        })
    }
}

/// Begins another command of a compound behind the one whose header lies at `previous`: pads
/// that one to a multiple of 8 bytes and names the distance in its header. Answers with where
/// the new header goes, which is the end of `out`.
#[inline]
pub fn chain(out: &mut Vec<u8>, previous: usize) -> usize {
    super::bytes::pad8(out, previous);
    let distance = super::bytes::since(out, previous);
    write_at(out, previous + NEXT_COMMAND_AT, &distance);
    out.len()
}

/// A command in a message that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Its header.
    pub header: Header,
    /// What follows the header, with padding.
    pub body: &'a [u8],
    /// Header and body as they came, with padding: what is signed.
    pub bytes: &'a [u8],
}

/// The commands of a message, in order. Each has at least a header, so that they come to an end;
/// an error is the last item.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Parts<'a> {
    /// Of a plain message, without the four bytes before it. An empty one yields an error.
    #[inline]
    pub const fn new(message: &'a [u8]) -> Self {
        Self { rest: Some(message) }
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<Part<'a>, WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let message = self.rest.take()?;
        Some(Header::decode(message).and_then(|header| {
            let length = match header.next_command as usize {
                0 => message.len(),
                next => {
                    let in_range = next >= HEADER_BYTES && next.is_multiple_of(8);
                    let rest = message.get(next..).filter(|_| in_range);
                    self.rest = Some(rest.ok_or(WireError::Range {
                        what: "the next command of a compound",
                        offset: next as u64,
                        length: HEADER_BYTES as u64,
                    })?);
                    next
                }
            };
            let bytes = &message[..length];
            Ok(Part { header, body: &bytes[HEADER_BYTES..], bytes })
        }))
    }
}

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
    /// Compressed, which nobody requested.
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

layout! {
    /// The header before an encrypted message.
    TransformHeader "a transform header": 52 bytes, with (0: TRANSFORM_ID) {
        /// Tag of the cipher.
        signature: [u8; 16] = 4,
        /// The first 12 bytes for GCM, 11 for CCM; the rest zero.
        nonce: [u8; 16] = 20,
        /// Bytes of the message.
        message_bytes: u32 = 36,
        /// 1: encrypted. In 3.0 the cipher, which is 1 too.
        flags: u16 = 42,
        /// Whose keys.
        session_id: u64 = 44,
    }
}
