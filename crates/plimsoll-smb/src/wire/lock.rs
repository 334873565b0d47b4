//! LOCK, which unlocks too. MS-SMB2 2.2.26, 2.2.27

use super::bytes::{FileId, WireError, get, put, structure};

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
