//! What is queried of files, directories and volumes, and set: QUERY_INFO, SET_INFO (MS-SMB2 2.2.37
//! to 2.2.40), QUERY_DIRECTORY (2.2.33, 2.2.34) and IOCTL (2.2.31, 2.2.32).

use super::bytes::{Empty, FileId, Span, from_header, since, write_at};
use super::fscc::SetFile;
use super::negotiate::U16List;
use super::text::Text;

/// What is queried or set, in QUERY_INFO and SET_INFO.
pub mod info_type {
    /// A file.
    pub const FILE: u8 = 1;
    /// The volume.
    pub const FILE_SYSTEM: u8 = 2;
    /// Quotas.
    pub const QUOTA: u8 = 4;
}

layout! {
    /// Queries a file or volume.
    #[derive(Default)]
    QueryInfoRequest<'a> "a QUERY_INFO request": 40 bytes, size 41 {
        /// See [`info_type`].
        info_type: u8 = 2,
        /// What is queried; see [`super::fscc`].
        class: u8 = 3,
        /// Most bytes of the answer.
        output_bytes_max: u32 = 4,
        /// For security.
        additional: u32 = 16,
        /// For extended attributes.
        flags: u32 = 20,
        /// Of which open.
        file_id: FileId = 24,
    } tail {
        /// For quotas and extended attributes.
        input: &'a [u8] = "the input", Span::new((8, 2), (12, 4), Empty::Omitted);
    }
}

layout! {
    /// The answer; [`super::fscc`] reads it.
    QueryInfoResponse<'a> "a QUERY_INFO response": 8 bytes, size 9 {} tail {
        /// As the class defines.
        output: &'a [u8] = "the output", Span::new((2, 2), (4, 4), Empty::Described);
    }
}

layout! {
    /// Changes a file or volume.
    #[derive(Default)]
    SetInfoRequest<'a> "a SET_INFO request": 32 bytes, size 33 {
        /// See [`info_type`].
        info_type: u8 = 2,
        /// What is set; see [`super::fscc`].
        class: u8 = 3,
        /// For security.
        additional: u32 = 12,
        /// Of which open.
        file_id: FileId = 16,
    } tail {
        /// To what; [`SetFile::decode`] reads it.
        data: &'a [u8] = "what is set", Span::new((8, 2), (4, 4), Empty::Described);
    }
}

impl SetInfoRequest<'_> {
    /// Appends the request that sets `change` of an open, without a buffer in between.
    pub fn encode_file(file_id: FileId, change: &SetFile<'_>, out: &mut Vec<u8>) {
        let at = out.len();
        let (info_type, class) = (info_type::FILE, change.class());
        SetInfoRequest { info_type, class, file_id, ..Default::default() }.encode(out);
        change.encode(out);
        let length = since(out, at + Self::FIXED);
        write_at(out, at + 4, &length);
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
}

layout! {
    /// Requests the next part of a listing.
    QueryDirectoryRequest<'a> "a QUERY_DIRECTORY request": 32 bytes, size 33 {
        /// What is queried of each entry; see [`super::fscc`].
        class: u8 = 2,
        /// See [`query_directory_flags`].
        flags: u8 = 3,
        /// Where to begin, if the flags say so.
        file_index: u32 = 4,
        /// The directory.
        file_id: FileId = 8,
        /// Most bytes of entries.
        output_bytes_max: u32 = 28,
    } tail {
        /// Names that match, with `*` and `?`.
        pattern: Text<'a> = "the pattern", Span::new((24, 2), (26, 2), Empty::ZeroByte);
    }
}

layout! {
    /// Entries; [`super::fscc::Entries`] reads them.
    QueryDirectoryResponse<'a> "a QUERY_DIRECTORY response": 8 bytes, size 9 {} tail {
        /// As the class defines.
        output: &'a [u8] = "the output", Span::new((2, 2), (4, 4), Empty::Described);
    }
}

/// Requests again, signed, what was negotiated.
pub const FSCTL_VALIDATE_NEGOTIATE_INFO: u32 = 0x0014_0204;

/// Flag of a request: a file system control, as all are.
pub const IOCTL_IS_FSCTL: u32 = 1;

layout! {
    /// A control of the file system or of an open.
    IoctlRequest<'a> "an IOCTL request": 56 bytes, size 57 {
        /// Which.
        code: u32 = 4,
        /// Of which open; [`FileId::RELATED`] where it is of none.
        file_id: FileId = 8,
        /// Most bytes of input that come back.
        max_input: u32 = 32,
        /// Most bytes of output.
        max_output: u32 = 44,
        /// See [`IOCTL_IS_FSCTL`].
        flags: u32 = 48,
    } tail {
        /// Its input.
        input: &'a [u8] = "the input", Span::new((24, 4), (28, 4), Empty::Described);
    }
}

layout! {
    /// What came of it.
    IoctlResponse<'a> "an IOCTL response": 48 bytes, size 49, with (24: from_header(48)) {
        /// Which.
        code: u32 = 4,
        /// Of which open.
        file_id: FileId = 8,
    } tail {
        /// Its output.
        output: &'a [u8] = "the output", Span::new((32, 4), (36, 4), Empty::Described);
    }
}

layout! {
    /// Input of [`FSCTL_VALIDATE_NEGOTIATE_INFO`]: what was in NEGOTIATE. MS-SMB2 2.2.31.4
    ValidateNegotiateRequest<'a> "VALIDATE_NEGOTIATE_INFO": 24 bytes {
        /// The client's.
        capabilities: u32 = 0,
        /// The client's.
        client_guid: [u8; 16] = 4,
        /// The client's.
        security_mode: u16 = 20,
    } tail {
        /// In their order.
        dialects: U16List<'a> = "VALIDATE_NEGOTIATE_INFO", Span::behind((22, 2), Empty::Described);
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
