//! SET_INFO. MS-SMB2 2.2.39, 2.2.40

use super::bytes::{FileId, WireError, buffer, from_header, get, put, since, structure};
use super::fscc::SetFile;
use super::query_info::info_type;

/// Changes a file or volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetInfoRequest<'a> {
    /// See [`info_type`].
    pub info_type: u8,
    /// What is set; see [`super::fscc`].
    pub class: u8,
    /// For security.
    pub additional: u32,
    /// Of which open.
    pub file_id: FileId,
    /// To what; [`SetFile::decode`] reads it.
    pub data: &'a [u8],
}

impl<'a> SetInfoRequest<'a> {
    const FIXED: usize = 32;

    /// Appends itself behind its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let length = self.data.len() as u32;
        out.extend_from_slice(&self.fixed(length));
        out.extend_from_slice(self.data);
    }

    /// Appends the request that sets `change` of an open, without a buffer in between.
    pub fn encode_file(file_id: FileId, change: &SetFile<'_>, out: &mut Vec<u8>) {
        let at = out.len();
        let (info_type, class) = (info_type::FILE, change.class());
        let request = SetInfoRequest { info_type, class, file_id, ..Default::default() };
        out.extend_from_slice(&request.fixed(0));
        change.encode(out);
        let length = since(out, at + Self::FIXED);
        put(out, at + 4, &length);
    }

    fn fixed(&self, data_bytes: u32) -> [u8; SetInfoRequest::FIXED] {
        let mut bytes = [0; SetInfoRequest::FIXED];
        put(&mut bytes, 0, &33u16);
        put(&mut bytes, 2, &self.info_type);
        put(&mut bytes, 3, &self.class);
        put(&mut bytes, 4, &data_bytes);
        put(&mut bytes, 8, &(from_header(Self::FIXED) as u16));
        put(&mut bytes, 12, &self.additional);
        put(&mut bytes, 16, &self.file_id);
        bytes
    }

    /// Reads itself from a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes = structure::<{ SetInfoRequest::FIXED }>(body, 33, "a SET_INFO request")?;
        let data = (get::<u16>(bytes, 8)?.into(), get(bytes, 4)?);
        Ok(Self {
            info_type: get(bytes, 2)?,
            class: get(bytes, 3)?,
            additional: get(bytes, 12)?,
            file_id: get(bytes, 16)?,
            data: buffer(body, Self::FIXED, data, "what is set")?,
        })
    }
}

layout! {
    /// Done. MS-SMB2 2.2.40
    SetInfoResponse "a SET_INFO response": 2 bytes, size 2 {}
}
