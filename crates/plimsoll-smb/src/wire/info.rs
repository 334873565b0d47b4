//! What is asked of files, directories and volumes, and set: QUERY_INFO, SET_INFO (MS-SMB2 2.2.37
//! to 2.2.40), QUERY_DIRECTORY (2.2.33, 2.2.34) and IOCTL (2.2.31, 2.2.32).

use super::bytes::{FileId, WireError, buffer, fixed, from_header, get, put, since, structure};
use super::fscc::SetFile;
use super::negotiate::Words;
use super::text::Text;

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

/// Asks again, signed, what was negotiated.
pub const FSCTL_VALIDATE_NEGOTIATE_INFO: u32 = 0x0014_0204;

/// Flag of a request: a file system control, as all are.
pub const IOCTL_IS_FSCTL: u32 = 1;

/// A control of the file system or of an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoctlRequest<'a> {
    /// Which.
    pub code: u32,
    /// Of which open; [`FileId::RELATED`] where it is of none.
    pub file_id: FileId,
    /// Its input.
    pub input: &'a [u8],
    /// Most bytes of input that come back.
    pub max_input: u32,
    /// Most bytes of output.
    pub max_output: u32,
    /// See [`IOCTL_IS_FSCTL`].
    pub flags: u32,
}

impl<'a> IoctlRequest<'a> {
    const FIXED: usize = 56;

    /// Appends itself behind its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; IoctlRequest::FIXED];
        put(&mut bytes, 0, &57u16);
        put(&mut bytes, 4, &self.code);
        put(&mut bytes, 8, &self.file_id);
        put(&mut bytes, 24, &from_header(Self::FIXED));
        put(&mut bytes, 28, &(self.input.len() as u32));
        put(&mut bytes, 32, &self.max_input);
        put(&mut bytes, 44, &self.max_output);
        put(&mut bytes, 48, &self.flags);
        out.extend_from_slice(&bytes);
        out.extend_from_slice(self.input);
    }

    /// Reads itself from a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes = structure::<{ IoctlRequest::FIXED }>(body, 57, "an IOCTL request")?;
        let input = (get(bytes, 24)?, get(bytes, 28)?);
        Ok(Self {
            code: get(bytes, 4)?,
            file_id: get(bytes, 8)?,
            input: buffer(body, Self::FIXED, input, "the input")?,
            max_input: get(bytes, 32)?,
            max_output: get(bytes, 44)?,
            flags: get(bytes, 48)?,
        })
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoctlResponse<'a> {
    /// Which.
    pub code: u32,
    /// Of which open.
    pub file_id: FileId,
    /// Its output.
    pub output: &'a [u8],
}

impl<'a> IoctlResponse<'a> {
    const FIXED: usize = 48;

    /// Appends itself behind its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; IoctlResponse::FIXED];
        put(&mut bytes, 0, &49u16);
        put(&mut bytes, 4, &self.code);
        put(&mut bytes, 8, &self.file_id);
        put(&mut bytes, 24, &from_header(Self::FIXED));
        put(&mut bytes, 32, &from_header(Self::FIXED));
        put(&mut bytes, 36, &(self.output.len() as u32));
        out.extend_from_slice(&bytes);
        out.extend_from_slice(self.output);
    }

    /// Reads itself from a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes = structure::<{ IoctlResponse::FIXED }>(body, 49, "an IOCTL response")?;
        let output = (get(bytes, 32)?, get(bytes, 36)?);
        Ok(Self {
            code: get(bytes, 4)?,
            file_id: get(bytes, 8)?,
            output: buffer(body, Self::FIXED, output, "the output")?,
        })
    }
}

/// Input of [`FSCTL_VALIDATE_NEGOTIATE_INFO`]: what was in NEGOTIATE. MS-SMB2 2.2.31.4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidateNegotiateRequest<'a> {
    /// The client's.
    pub capabilities: u32,
    /// The client's.
    pub client_guid: [u8; 16],
    /// The client's.
    pub security_mode: u16,
    /// In their order.
    pub dialects: Words<'a>,
}

impl<'a> ValidateNegotiateRequest<'a> {
    const FIXED: usize = 24;

    /// Appends itself.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; ValidateNegotiateRequest::FIXED];
        put(&mut bytes, 0, &self.capabilities);
        put(&mut bytes, 4, &self.client_guid);
        put(&mut bytes, 20, &self.security_mode);
        put(&mut bytes, 22, &(self.dialects.len() as u16));
        out.extend_from_slice(&bytes);
        self.dialects.encode(out);
    }

    /// Reads itself from an input.
    pub fn decode(input: &'a [u8]) -> Result<Self, WireError> {
        let what = "VALIDATE_NEGOTIATE_INFO";
        let bytes = fixed::<{ ValidateNegotiateRequest::FIXED }>(input, what)?;
        let dialects_bytes = usize::from(get::<u16>(bytes, 22)?) * 2;
        let dialects = input[Self::FIXED..].get(..dialects_bytes);
        Ok(Self {
            capabilities: get(bytes, 0)?,
            client_guid: get(bytes, 4)?,
            security_mode: get(bytes, 20)?,
            dialects: Words::Wire(
                dialects.ok_or(WireError::Truncated { what, bytes: input.len() })?,
            ),
        })
    }
}

layout! {
    /// Output of [`FSCTL_VALIDATE_NEGOTIATE_INFO`]. MS-SMB2 2.2.32.6
    ValidateNegotiateResponse "VALIDATE_NEGOTIATE_INFO's answer": 24 bytes {
        /// The server's.
        capabilities: u32 = 0,
        /// The server's.
        server_guid: [u8; 16] = 4,
        /// The server's.
        security_mode: u16 = 20,
        /// The one chosen.
        dialect: u16 = 22,
    }
}
