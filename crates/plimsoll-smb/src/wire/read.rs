//! READ. MS-SMB2 2.2.19, 2.2.20

use super::bytes::{FileId, WireError, buffer, from_header, get, put, structure};

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
