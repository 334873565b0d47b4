//! IOCTL. MS-SMB2 2.2.31, 2.2.32

use super::bytes::{FileId, WireError, buffer, fixed, from_header, get, put, structure};
use super::negotiate::Words;

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
