//! WRITE. MS-SMB2 2.2.21, 2.2.22

use super::bytes::{FileId, WireError, buffer, from_header, get, put, structure};

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
