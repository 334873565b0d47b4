//! The data of an open file: READ, WRITE, FLUSH and CLOSE (MS-SMB2 2.2.15 to 2.2.22), LOCK, which
//! unlocks too (2.2.26, 2.2.27), and OPLOCK_BREAK, by which the server takes back what may be
//! cached (2.2.23 to 2.2.25).

use super::bytes::{FileId, FileTime, WireError, buffer, fixed, from_header, get, put, structure};
use super::create::{LeaseKey, OplockLevel};

/// Bytes of a response before its data, as we write it.
pub const READ_RESPONSE_FIXED: usize = 16;

/// Asks for bytes of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadRequest {
    /// 1 reads around the server's cache.
    pub flags: u8,
    /// Bytes wanted.
    pub length: u32,
    /// Where.
    pub offset: u64,
    /// Of which open.
    pub file_id: FileId,
    /// Fewer are STATUS_END_OF_FILE.
    pub minimum: u32,
    /// Bytes that later requests will ask for; a hint.
    pub remaining: u32,
}

impl ReadRequest {
    const FIXED: usize = 48;

    /// Appends itself behind its header.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; Self::FIXED + 1]; // The buffer has at least one byte.
        put(&mut bytes, 0, &49u16);
        put(&mut bytes, 2, &(from_header(READ_RESPONSE_FIXED) as u8));
        put(&mut bytes, 3, &self.flags);
        put(&mut bytes, 4, &self.length);
        put(&mut bytes, 8, &self.offset);
        put(&mut bytes, 16, &self.file_id);
        put(&mut bytes, 32, &self.minimum);
        put(&mut bytes, 40, &self.remaining);
        out.extend_from_slice(&bytes);
    }

    /// Reads itself from a body.
    #[inline]
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let bytes = structure::<{ Self::FIXED }>(body, 49, "a READ request")?;
        Ok(Self {
            flags: get(bytes, 3)?,
            length: get(bytes, 4)?,
            offset: get(bytes, 8)?,
            file_id: get(bytes, 16)?,
            minimum: get(bytes, 32)?,
            remaining: get(bytes, 40)?,
        })
    }
}

/// The bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadResponse<'a> {
    /// As many as there are.
    pub data: &'a [u8],
    /// Bytes that went another way.
    pub remaining: u32,
}

impl<'a> ReadResponse<'a> {
    const FIXED: usize = READ_RESPONSE_FIXED;

    /// Appends itself behind its header.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; ReadResponse::FIXED];
        put(&mut bytes, 0, &17u16);
        put(&mut bytes, 2, &(from_header(Self::FIXED) as u8));
        put(&mut bytes, 4, &(self.data.len() as u32));
        put(&mut bytes, 8, &self.remaining);
        out.extend_from_slice(&bytes);
        out.extend_from_slice(self.data);
    }

    /// Reads itself from a body.
    #[inline]
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes = structure::<{ ReadResponse::FIXED }>(body, 17, "a READ response")?;
        let data = (get::<u8>(bytes, 2)?.into(), get(bytes, 4)?);
        Ok(Self {
            data: buffer(body, Self::FIXED, data, "the data read")?,
            remaining: get(bytes, 8)?,
        })
    }
}

/// Puts bytes into a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteRequest<'a> {
    /// Where.
    pub offset: u64,
    /// Of which open.
    pub file_id: FileId,
    /// Bytes that later requests will write; a hint.
    pub remaining: u32,
    /// 1 writes through to stable storage.
    pub flags: u32,
    /// What.
    pub data: &'a [u8],
}

impl<'a> WriteRequest<'a> {
    /// Bytes of a request before its data.
    pub const FIXED: usize = 48;

    /// Appends itself behind its header.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; WriteRequest::FIXED];
        put(&mut bytes, 0, &49u16);
        put(&mut bytes, 2, &(from_header(Self::FIXED) as u16));
        put(&mut bytes, 4, &(self.data.len() as u32));
        put(&mut bytes, 8, &self.offset);
        put(&mut bytes, 16, &self.file_id);
        put(&mut bytes, 36, &self.remaining);
        put(&mut bytes, 44, &self.flags);
        out.extend_from_slice(&bytes);
        out.extend_from_slice(self.data);
    }

    /// Reads itself from a body.
    #[inline]
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes = structure::<{ WriteRequest::FIXED }>(body, 49, "a WRITE request")?;
        let data = (get::<u16>(bytes, 2)?.into(), get(bytes, 4)?);
        Ok(Self {
            offset: get(bytes, 8)?,
            file_id: get(bytes, 16)?,
            remaining: get(bytes, 36)?,
            flags: get(bytes, 44)?,
            data: buffer(body, Self::FIXED, data, "the data to write")?,
        })
    }
}

layout! {
    /// How many bytes are written. MS-SMB2 2.2.22
    WriteResponse "a WRITE response": 16 bytes, size 17 {
        /// As many.
        count: u32 = 4,
        /// Bytes that went another way.
        remaining: u32 = 8,
    }
}

/// Bit of the flags of both: the response shall tell, or tells, about the file.
pub const CLOSE_QUERY_ATTRIBUTES: u16 = 1;

layout! {
    /// Gives an open back. MS-SMB2 2.2.15
    CloseRequest "a CLOSE request": 24 bytes, size 24 {
        /// See [`CLOSE_QUERY_ATTRIBUTES`].
        flags: u16 = 2,
        /// Which.
        file_id: FileId = 8,
    }
}

layout! {
    /// The open is gone. MS-SMB2 2.2.16; all but the flags is zero unless asked for.
    CloseResponse "a CLOSE response": 60 bytes, size 60 {
        /// See [`CLOSE_QUERY_ATTRIBUTES`].
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

/// Bits of [`LockElement::flags`].
pub mod lock_flags {
    /// For reading, with others.
    pub const SHARED: u32 = 0x01;
    /// For this open alone.
    pub const EXCLUSIVE: u32 = 0x02;
    /// Gives it back.
    pub const UNLOCK: u32 = 0x04;
    /// At once or not at all.
    pub const FAIL_IMMEDIATELY: u32 = 0x10;
}

const ELEMENT: usize = 24;

layout! {
    /// A range to lock or unlock. MS-SMB2 2.2.26.1
    LockElement "a lock": 24 bytes {
        /// Start.
        offset: u64 = 0,
        /// Bytes.
        length: u64 = 8,
        /// See [`lock_flags`].
        flags: u32 = 16,
    }
}

/// Ranges, to write or as they came.
#[derive(Clone, Copy, Debug)]
pub enum LockElements<'a> {
    /// Ours; at least one.
    Values(&'a [LockElement]),
    /// From the wire.
    Wire(&'a [[u8; ELEMENT]]),
}

impl<'a> LockElements<'a> {
    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = LockElement> + 'a {
        let (values, wire): (&[_], &[_]) = match self {
            Self::Values(values) => (values, &[]),
            Self::Wire(wire) => (&[], wire),
        };
        let wire = wire.iter().map_while(|bytes| LockElement::decode(bytes).ok());
        values.iter().copied().chain(wire)
    }

    /// How many.
    pub const fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Wire(wire) => wire.len(),
        }
    }

    /// None; a server refuses that.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl PartialEq for LockElements<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for LockElements<'_> {}

/// Locks or unlocks ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRequest<'a> {
    /// For replays; 0 where unused.
    pub sequence: u32,
    /// Of which open.
    pub file_id: FileId,
    /// Which ranges.
    pub locks: LockElements<'a>,
}

impl<'a> LockRequest<'a> {
    /// With one range, the structure has the size that it names.
    const FIXED: usize = 24;

    /// Appends itself behind its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; LockRequest::FIXED];
        put(&mut bytes, 0, &48u16);
        put(&mut bytes, 2, &(self.locks.len() as u16));
        put(&mut bytes, 4, &self.sequence);
        put(&mut bytes, 8, &self.file_id);
        out.extend_from_slice(&bytes);
        self.locks.iter().for_each(|lock| lock.encode(out));
    }

    /// Reads itself from a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes = structure::<{ LockRequest::FIXED }>(body, 48, "a LOCK request")?;
        let count = usize::from(get::<u16>(bytes, 2)?);
        let (locks, _) = body[Self::FIXED..].as_chunks();
        let locks = locks
            .get(..count)
            .ok_or(WireError::Truncated { what: "a LOCK request", bytes: body.len() })?;
        Ok(Self {
            sequence: get(bytes, 4)?,
            file_id: get(bytes, 8)?,
            locks: LockElements::Wire(locks),
        })
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
