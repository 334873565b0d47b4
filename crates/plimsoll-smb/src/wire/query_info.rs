//! QUERY_INFO. MS-SMB2 2.2.37, 2.2.38

use super::bytes::{FileId, WireError, buffer, from_header, get, put, structure};

/// What is asked about or set, in QUERY_INFO and SET_INFO.
pub mod info_type {
    /// A file.
    pub const FILE: u8 = 1;
    /// The volume.
    pub const FILE_SYSTEM: u8 = 2;
    /// Who may do what.
    pub const SECURITY: u8 = 3;
    /// Quotas.
    pub const QUOTA: u8 = 4;
}

/// Asks about a file or volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryInfoRequest<'a> {
    /// See [`info_type`].
    pub info_type: u8,
    /// What is asked; see [`super::fscc`].
    pub class: u8,
    /// Most bytes of the answer.
    pub output_bytes_max: u32,
    /// For quotas and extended attributes.
    pub input: &'a [u8],
    /// For security.
    pub additional: u32,
    /// For extended attributes.
    pub flags: u32,
    /// Of which open.
    pub file_id: FileId,
}

impl<'a> QueryInfoRequest<'a> {
    const FIXED: usize = 40;

    /// Appends itself behind its header.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; QueryInfoRequest::FIXED];
        put(&mut bytes, 0, &41u16);
        put(&mut bytes, 2, &self.info_type);
        put(&mut bytes, 3, &self.class);
        put(&mut bytes, 4, &self.output_bytes_max);
        if !self.input.is_empty() {
            put(&mut bytes, 8, &(from_header(Self::FIXED) as u16));
        }
        put(&mut bytes, 12, &(self.input.len() as u32));
        put(&mut bytes, 16, &self.additional);
        put(&mut bytes, 20, &self.flags);
        put(&mut bytes, 24, &self.file_id);
        out.extend_from_slice(&bytes);
        out.extend_from_slice(self.input);
    }

    /// Reads itself from a body.
    #[inline]
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes = structure::<{ QueryInfoRequest::FIXED }>(body, 41, "a QUERY_INFO request")?;
        let input = (get::<u16>(bytes, 8)?.into(), get(bytes, 12)?);
        Ok(Self {
            info_type: get(bytes, 2)?,
            class: get(bytes, 3)?,
            output_bytes_max: get(bytes, 4)?,
            input: buffer(body, Self::FIXED, input, "the input")?,
            additional: get(bytes, 16)?,
            flags: get(bytes, 20)?,
            file_id: get(bytes, 24)?,
        })
    }
}

output_response! {
    /// The answer; [`super::fscc`] reads it.
    QueryInfoResponse "a QUERY_INFO response"
}
