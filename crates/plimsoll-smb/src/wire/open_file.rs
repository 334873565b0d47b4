//! The data of an open file: READ, WRITE, FLUSH and CLOSE (MS-SMB2 2.2.15 to 2.2.22), LOCK, which
//! unlocks too (2.2.26, 2.2.27), and OPLOCK_BREAK, by which the server takes back what may be
//! cached (2.2.23 to 2.2.25).

use super::bytes::{Empty, FileId, FileTime, Span, WireError, fixed, from_header, get};
use super::create::{LeaseKey, OplockLevel};

layout! {
    /// Requests bytes of a file.
    ReadRequest "a READ request": 48 bytes and 1, size 49,
        with (2: from_header(ReadResponse::FIXED) as u8)
    {
        /// 1 reads around the server's cache.
        flags: u8 = 3,
        /// Requested bytes.
        length: u32 = 4,
        /// Where.
        offset: u64 = 8,
        /// Of which open.
        file_id: FileId = 16,
        /// Fewer are STATUS_END_OF_FILE.
        minimum: u32 = 32,
        /// Bytes that later requests will read; a hint.
        remaining: u32 = 40,
    }
}

layout! {
    /// The bytes.
    #[derive(Default)]
    ReadResponse<'a> "a READ response": 16 bytes, size 17 {
        /// Bytes sent over another channel.
        remaining: u32 = 8,
    } tail {
        /// As many as there are.
        data: &'a [u8] = "the data read", Span::new((2, 1), (4, 4), Empty::Described);
    }
}

layout! {
    /// Puts bytes into a file.
    #[derive(Default)]
    WriteRequest<'a> "a WRITE request": 48 bytes, size 49 {
        /// Where.
        offset: u64 = 8,
        /// Of which open.
        file_id: FileId = 16,
        /// Bytes that later requests will write; a hint.
        remaining: u32 = 36,
        /// 1 writes through to stable storage.
        flags: u32 = 44,
    } tail {
        /// What.
        data: &'a [u8] = "the data to write", Span::new((2, 2), (4, 4), Empty::Described);
    }
}

layout! {
    /// How many bytes are written. MS-SMB2 2.2.22
    WriteResponse "a WRITE response": 16 bytes, size 17 {
        /// As many.
        count: u32 = 4,
        /// Bytes sent over another channel.
        remaining: u32 = 8,
    }
}

layout! {
    /// Gives an open back. MS-SMB2 2.2.15
    CloseRequest "a CLOSE request": 24 bytes, size 24 {
        /// Bit 0: the response shall have the file's attributes.
        flags: u16 = 2,
        /// Which.
        file_id: FileId = 8,
    }
}

layout! {
    /// The open is gone. MS-SMB2 2.2.16; all but the flags is zero unless requested.
    CloseResponse "a CLOSE response": 60 bytes, size 60 {
        /// Bit 0: it tells about the file.
        flags: u16 = 2,
        /// When it was made.
        creation_time: FileTime = 8,
        /// Of the last access.
        last_access_time: FileTime = 16,
        /// Of the last write.
        last_write_time: FileTime = 24,
        /// Of the last change, of metadata too.
        change_time: FileTime = 32,
        /// Bytes set aside for it.
        allocation_size: u64 = 40,
        /// Its length.
        end_of_file: u64 = 48,
        /// See [`super::create::attributes`].
        attributes: u32 = 56,
    }
}

layout! {
    /// Brings written data to stable storage. MS-SMB2 2.2.17
    FlushRequest "a FLUSH request": 24 bytes, size 24 {
        /// Of which open.
        file_id: FileId = 8,
    }
}

layout! {
    /// It is there. MS-SMB2 2.2.18
    FlushResponse "a FLUSH response": 4 bytes, size 4 {}
}

/// Bits of [`LockRequest::flags`].
pub mod lock_flags {
    /// For this open alone.
    pub const EXCLUSIVE: u32 = 0x02;
    /// Gives it back.
    pub const UNLOCK: u32 = 0x04;
    /// At once or not at all.
    pub const FAIL_IMMEDIATELY: u32 = 0x10;
}

layout! {
    /// Locks or unlocks one range. MS-SMB2 2.2.26
    LockRequest "a LOCK request": 48 bytes, size 48, with (2: 1u16) {
        /// Of which open.
        file_id: FileId = 8,
        /// Start.
        offset: u64 = 24,
        /// Bytes.
        length: u64 = 32,
        /// See [`lock_flags`].
        flags: u32 = 40,
    }
}

layout! {
    /// Done. MS-SMB2 2.2.27
    LockResponse "a LOCK response": 4 bytes, size 4 {}
}

/// Flag of a [`LeaseBreakNotification`]: the server waits for the acknowledgement.
pub const LEASE_BREAK_ACK_REQUIRED: u32 = 1;

layout! {
    /// An oplock is lowered: notification (message id [`super::header::UNSOLICITED`]),
    /// acknowledgement and its answer are alike. MS-SMB2 2.2.23.1, 2.2.24.1, 2.2.25.1
    OplockBreak "an oplock break": 24 bytes, size 24 {
        /// To this.
        level: OplockLevel = 2,
        /// Of which open.
        file_id: FileId = 8,
    }
}

layout! {
    /// A lease is lowered. MS-SMB2 2.2.23.2
    LeaseBreakNotification "a lease break": 44 bytes, size 44 {
        /// Counts the lease's changes; from 3.0 on.
        new_epoch: u16 = 2,
        /// See [`LEASE_BREAK_ACK_REQUIRED`].
        flags: u32 = 4,
        /// Which lease.
        key: LeaseKey = 8,
        /// From this; see [`super::create::lease_state`].
        current_state: u32 = 24,
        /// To this.
        new_state: u32 = 28,
    }
}

layout! {
    /// It is lowered: acknowledgement and its answer are alike. MS-SMB2 2.2.24.2, 2.2.25.2
    LeaseBreakAcknowledgement "a lease break acknowledgement": 36 bytes, size 36 {
        /// Zero.
        flags: u32 = 4,
        /// Which lease.
        key: LeaseKey = 8,
        /// To this; see [`super::create::lease_state`].
        state: u32 = 24,
    }
}

/// A body of command OPLOCK_BREAK, told apart by its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Of an oplock.
    Oplock(OplockBreak),
    /// Of a lease, from the server.
    Lease(LeaseBreakNotification),
    /// Of a lease, acknowledged or its answer.
    LeaseAcknowledgement(LeaseBreakAcknowledgement),
}

impl Break {
    /// Appends itself behind its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Oplock(oplock) => oplock.encode(out),
            Self::Lease(lease) => lease.encode(out),
            Self::LeaseAcknowledgement(lease) => lease.encode(out),
        }
    }

    /// Reads itself from a body.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        match get::<u16>(fixed::<2>(body, "a break")?, 0)? {
            44 => LeaseBreakNotification::decode(body).map(Self::Lease),
            36 => LeaseBreakAcknowledgement::decode(body).map(Self::LeaseAcknowledgement),
            _ => OplockBreak::decode(body).map(Self::Oplock),
        }
    }
}
