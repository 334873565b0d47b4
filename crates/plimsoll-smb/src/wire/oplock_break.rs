//! OPLOCK_BREAK: the server takes back what may be cached. MS-SMB2 2.2.23 to 2.2.25

use super::bytes::{FileId, WireError, fixed, get};
use super::create::{LeaseKey, OplockLevel};

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
