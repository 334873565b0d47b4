//! What answers any command that failed. MS-SMB2 2.2.2

use super::bytes::{WireError, get, put, structure};

/// A failure; why is in the header's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorResponse<'a> {
    /// 3.1.1: error contexts in the data.
    pub context_count: u8,
    /// Usually nothing.
    pub data: &'a [u8],
}

impl<'a> ErrorResponse<'a> {
    const FIXED: usize = 8;

    /// Appends itself behind its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; ErrorResponse::FIXED];
        put(&mut bytes, 0, &9u16);
        put(&mut bytes, 2, &self.context_count);
        put(&mut bytes, 4, &(self.data.len() as u32));
        out.extend_from_slice(&bytes);
        out.extend_from_slice(self.data);
        if self.data.is_empty() {
            out.push(0); // The buffer has at least one byte.
        }
    }

    /// Reads itself from a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let what = "an ERROR response";
        let bytes = structure::<{ ErrorResponse::FIXED }>(body, 9, what)?;
        let length = get::<u32>(bytes, 4)? as usize;
        let data = body[Self::FIXED..].get(..length);
        Ok(Self {
            context_count: get(bytes, 2)?,
            data: data.ok_or(WireError::Truncated { what, bytes: body.len() })?,
        })
    }
}
