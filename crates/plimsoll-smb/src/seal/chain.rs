//! The few fields of an SMB2 header that sealing looks at. MS-SMB2 §2.2.1.2

use super::SealError;

/// First bytes of a message in clear.
pub(super) const PLAIN: [u8; 4] = [0xFE, b'S', b'M', b'B'];
/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 64;
/// Where the signature lies in a header.
pub(super) const SIGNATURE_AT: usize = 48;
/// Bytes of it.
pub(super) const SIGNATURE_BYTES: usize = 16;
/// Where the flags lie.
pub(super) const FLAGS_AT: usize = 16;
/// The command carries a signature.
pub(super) const FLAG_SIGNED: u8 = 0x08;

const COMMAND_CANCEL: u16 = 12;
const COMMAND_OPLOCK_BREAK: u16 = 18;
const STATUS_PENDING: u32 = 0x0000_0103;
const MESSAGE_ID_UNSOLICITED: u64 = u64::MAX;

/// One command of a compound.
pub(super) struct Command<'a> {
    start: usize,
    bytes: &'a [u8],
}

impl<'a> Command<'a> {
    /// The command that begins at `start` of the compound.
    pub(super) fn at(compound: &'a [u8], start: usize) -> Result<Self, SealError> {
        let malformed = SealError::Malformed(compound.len());
        let rest = &compound[start..];
        if rest.len() < HEADER_BYTES || !rest.starts_with(&PLAIN) {
            return Err(malformed);
        }
        let next = u32::from_le_bytes(field(rest, 20)) as usize;
        let fits = next >= HEADER_BYTES && next.is_multiple_of(8) && next < rest.len();
        match next {
            0 => Ok(Self { start, bytes: rest }),
            next if fits => Ok(Self { start, bytes: &rest[..next] }),
            _ => Err(malformed),
        }
    }

    /// Where the next command would begin.
    pub(super) fn end(&self) -> usize {
        self.start + self.bytes.len()
    }

    /// All of it, padding before the next one included.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(super) fn status(&self) -> u32 {
        u32::from_le_bytes(field(self.bytes, 8))
    }

    pub(super) fn command(&self) -> u16 {
        u16::from_le_bytes(field(self.bytes, 12))
    }

    pub(super) fn message_id(&self) -> u64 {
        message_id(self.bytes)
    }

    pub(super) fn is_signed(&self) -> bool {
        self.bytes[FLAGS_AT] & FLAG_SIGNED != 0
    }

    /// A break of an oplock or a lease: the one message nobody asked for.
    pub(super) fn is_break(&self) -> bool {
        self.command() == COMMAND_OPLOCK_BREAK && self.message_id() == MESSAGE_ID_UNSOLICITED
    }

    /// MS-SMB2 §3.2.5.1.3
    pub(super) fn needs_no_signature(&self) -> bool {
        self.status() == STATUS_PENDING || self.is_break()
    }
}

/// Number of the message with this header.
pub(super) fn message_id(header: &[u8]) -> u64 {
    u64::from_le_bytes(field(header, 24))
}

/// Whether this header is a CANCEL's.
pub(super) fn is_cancel(header: &[u8]) -> bool {
    u16::from_le_bytes(field(header, 12)) == COMMAND_CANCEL
}

fn field<const N: usize>(header: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&header[at..at + N]);
    bytes
}
