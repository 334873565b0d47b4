//! QUERY_DIRECTORY. MS-SMB2 2.2.33, 2.2.34

use super::bytes::{FileId, WireError, buffer, from_header, get, put, since, structure};
use super::text::Text;

/// Bits of [`QueryDirectoryRequest::flags`].
pub mod query_directory_flags {
    /// From the start.
    pub const RESTART_SCANS: u8 = 0x01;
    /// One entry only.
    pub const RETURN_SINGLE_ENTRY: u8 = 0x02;
    /// From `file_index` on.
    pub const INDEX_SPECIFIED: u8 = 0x04;
    /// From the start, with another pattern.
    pub const REOPEN: u8 = 0x10;
}

/// Asks for the next part of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryDirectoryRequest<'a> {
    /// What is asked of each entry; see [`super::fscc`].
    pub class: u8,
    /// See [`query_directory_flags`].
    pub flags: u8,
    /// Where to begin, if the flags say so.
    pub file_index: u32,
    /// The directory.
    pub file_id: FileId,
    /// Names that match, with `*` and `?`.
    pub pattern: Text<'a>,
    /// Most bytes of entries.
    pub output_bytes_max: u32,
}

impl<'a> QueryDirectoryRequest<'a> {
    const FIXED: usize = 32;

    /// Appends itself behind its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        let mut bytes = [0; QueryDirectoryRequest::FIXED];
        put(&mut bytes, 0, &33u16);
        put(&mut bytes, 2, &self.class);
        put(&mut bytes, 3, &self.flags);
        put(&mut bytes, 4, &self.file_index);
        put(&mut bytes, 8, &self.file_id);
        put(&mut bytes, 24, &(from_header(Self::FIXED) as u16));
        put(&mut bytes, 28, &self.output_bytes_max);
        out.extend_from_slice(&bytes);
        self.pattern.encode(out);
        let pattern_bytes = since(out, at + Self::FIXED) as u16;
        put(out, at + 26, &pattern_bytes);
        if pattern_bytes == 0 {
            out.push(0); // The buffer has at least one byte.
        }
    }

    /// Reads itself from a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes =
            structure::<{ QueryDirectoryRequest::FIXED }>(body, 33, "a QUERY_DIRECTORY request")?;
        let pattern = (get::<u16>(bytes, 24)?.into(), get::<u16>(bytes, 26)?.into());
        Ok(Self {
            class: get(bytes, 2)?,
            flags: get(bytes, 3)?,
            file_index: get(bytes, 4)?,
            file_id: get(bytes, 8)?,
            pattern: Text::Utf16(buffer(body, Self::FIXED, pattern, "the pattern")?),
            output_bytes_max: get(bytes, 28)?,
        })
    }
}

output_response! {
    /// Entries; [`super::fscc::Entries`] reads them.
    QueryDirectoryResponse "a QUERY_DIRECTORY response"
}
