//! CREATE. MS-SMB2 2.2.13, 2.2.14

mod contexts;

pub use contexts::{CreateContext, CreateContexts, Lease, LeaseKey, LeaseVersion, lease_state};

use super::bytes::{
    Field, FileId, FileTime, WireError, buffer, fixed, from_header, get, pad8, put, since,
    structure,
};
use super::text::Text;
pub use crate::op::Disposition;

const RESPONSE: &str = "a CREATE response";

/// DesiredAccess. MS-SMB2 2.2.13.1
#[expect(missing_docs, reason = "each is the access of its name")]
pub mod access {
    pub const READ_DATA: u32 = 0x0000_0001;
    pub const WRITE_DATA: u32 = 0x0000_0002;
    pub const APPEND_DATA: u32 = 0x0000_0004;
    pub const READ_EA: u32 = 0x0000_0008;
    pub const WRITE_EA: u32 = 0x0000_0010;
    pub const EXECUTE: u32 = 0x0000_0020;
    pub const READ_ATTRIBUTES: u32 = 0x0000_0080;
    pub const WRITE_ATTRIBUTES: u32 = 0x0000_0100;
    pub const DELETE: u32 = 0x0001_0000;
    pub const READ_CONTROL: u32 = 0x0002_0000;
    pub const SYNCHRONIZE: u32 = 0x0010_0000;
    pub const MAXIMUM_ALLOWED: u32 = 0x0200_0000;
    pub const GENERIC_ALL: u32 = 0x1000_0000;
    pub const GENERIC_EXECUTE: u32 = 0x2000_0000;
    pub const GENERIC_WRITE: u32 = 0x4000_0000;
    pub const GENERIC_READ: u32 = 0x8000_0000;
    /// Of a directory: its listing.
    pub const LIST_DIRECTORY: u32 = READ_DATA;
}

/// ShareAccess.
#[expect(missing_docs, reason = "each is the access of its name")]
pub mod share_access {
    pub const NONE: u32 = 0;
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const DELETE: u32 = 4;
    pub const ALL: u32 = READ | WRITE | DELETE;
}

/// CreateOptions.
#[expect(missing_docs, reason = "each is the option of its name")]
pub mod options {
    pub const DIRECTORY_FILE: u32 = 0x0000_0001;
    pub const WRITE_THROUGH: u32 = 0x0000_0002;
    pub const SEQUENTIAL_ONLY: u32 = 0x0000_0004;
    pub const NO_INTERMEDIATE_BUFFERING: u32 = 0x0000_0008;
    pub const SYNCHRONOUS_IO_NONALERT: u32 = 0x0000_0020;
    pub const NON_DIRECTORY_FILE: u32 = 0x0000_0040;
    pub const RANDOM_ACCESS: u32 = 0x0000_0800;
    pub const DELETE_ON_CLOSE: u32 = 0x0000_1000;
    pub const OPEN_REPARSE_POINT: u32 = 0x0020_0000;
}

/// FileAttributes. MS-FSCC 2.6
#[expect(missing_docs, reason = "each is the attribute of its name")]
pub mod attributes {
    pub const READONLY: u32 = 0x0000_0001;
    pub const HIDDEN: u32 = 0x0000_0002;
    pub const SYSTEM: u32 = 0x0000_0004;
    pub const DIRECTORY: u32 = 0x0000_0010;
    pub const ARCHIVE: u32 = 0x0000_0020;
    pub const NORMAL: u32 = 0x0000_0080;
    pub const REPARSE_POINT: u32 = 0x0000_0400;
}

numbers! {
    /// What the client may cache of a file. MS-SMB2 2.2.13
    #[derive(Default)]
    OplockLevel: u8 "OplockLevel" {
        /// Nothing.
        #[default]
        None = 0,
        /// Reads.
        LevelTwo = 1,
        /// Reads and writes.
        Exclusive = 8,
        /// Those, and the open itself.
        Batch = 9,
        /// As the lease in the contexts says.
        Lease = 0xff,
    }
}

numbers! {
    /// What the server may do in the client's name. MS-SMB2 2.2.13
    #[expect(missing_docs, reason = "each is the level of its name")]
    Impersonation: u32 "ImpersonationLevel" {
        Anonymous = 0,
        Identification = 1,
        Impersonation = 2,
        Delegate = 3,
    }
}

numbers! {
    /// What became of the file. MS-SMB2 2.2.14
    #[expect(missing_docs, reason = "each is the action of its name")]
    CreateAction: u32 "CreateAction" {
        Superseded = 0,
        Opened = 1,
        Created = 2,
        Overwritten = 3,
    }
}

impl Field for Disposition {
    const BYTES: usize = 4;

    #[inline]
    fn put(&self, out: &mut [u8]) {
        (*self as u32).put(out);
    }

    #[inline]
    fn get(bytes: &[u8]) -> Result<Self, WireError> {
        match u32::get(bytes)? {
            0 => Ok(Self::Supersede),
            1 => Ok(Self::Open),
            2 => Ok(Self::Create),
            3 => Ok(Self::OpenIf),
            4 => Ok(Self::Overwrite),
            5 => Ok(Self::OverwriteIf),
            value => Err(WireError::Value { what: "CreateDisposition", value: value.into() }),
        }
    }
}

/// Opens or makes a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateRequest<'a> {
    /// What the client wants to cache.
    pub oplock: OplockLevel,
    /// Usually [`Impersonation::Impersonation`].
    pub impersonation: Impersonation,
    /// See [`access`].
    pub desired_access: u32,
    /// See [`attributes`]; of a file that is made.
    pub attributes: u32,
    /// See [`share_access`]: what others may do meanwhile.
    pub share_access: u32,
    /// What to do if it exists, and if not.
    pub disposition: Disposition,
    /// See [`options`].
    pub options: u32,
    /// Below the share, without a leading backslash; empty is the root.
    pub name: Text<'a>,
    /// Extensions.
    pub contexts: CreateContexts<'a>,
}

impl<'a> CreateRequest<'a> {
    const FIXED: usize = 56;

    /// Opens `name` and nothing more: no oplock, no contexts, everything shared.
    pub const fn new(name: Text<'a>, disposition: Disposition, desired_access: u32) -> Self {
        Self {
            oplock: OplockLevel::None,
            impersonation: Impersonation::Impersonation,
            desired_access,
            attributes: 0,
            share_access: share_access::ALL,
            disposition,
            options: 0,
            name,
            contexts: CreateContexts::NONE,
        }
    }

    /// Appends itself behind its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        let mut bytes = [0; CreateRequest::FIXED];
        put(&mut bytes, 0, &57u16);
        put(&mut bytes, 3, &self.oplock);
        put(&mut bytes, 4, &self.impersonation);
        put(&mut bytes, 24, &self.desired_access);
        put(&mut bytes, 28, &self.attributes);
        put(&mut bytes, 32, &self.share_access);
        put(&mut bytes, 36, &self.disposition);
        put(&mut bytes, 40, &self.options);
        put(&mut bytes, 44, &(from_header(Self::FIXED) as u16));
        out.extend_from_slice(&bytes);
        self.name.encode(out);
        // A name that is too long stays one: the odd length is none that a server takes.
        let name_bytes = u16::try_from(since(out, at + Self::FIXED)).unwrap_or(u16::MAX);
        put(out, at + 46, &name_bytes);
        if name_bytes == 0 {
            out.push(0); // The buffer has at least one byte.
        }
        if !self.contexts.is_empty() {
            pad8(out, at);
            self.contexts.encode_at(out, at, at + 48);
        }
    }

    /// Reads itself from a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes = structure::<{ CreateRequest::FIXED }>(body, 57, "a CREATE request")?;
        let name = (get::<u16>(bytes, 44)?.into(), get::<u16>(bytes, 46)?.into());
        let contexts = (get(bytes, 48)?, get(bytes, 52)?);
        Ok(Self {
            oplock: get(bytes, 3)?,
            impersonation: get(bytes, 4)?,
            desired_access: get(bytes, 24)?,
            attributes: get(bytes, 28)?,
            share_access: get(bytes, 32)?,
            disposition: get(bytes, 36)?,
            options: get(bytes, 40)?,
            name: Text::Utf16(buffer(body, Self::FIXED, name, "the file's name")?),
            contexts: CreateContexts::decode(body, Self::FIXED, contexts)?,
        })
    }
}

/// An open, and what is known of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateResponse<'a> {
    /// What the client may cache.
    pub oplock: OplockLevel,
    /// What became of the file.
    pub action: CreateAction,
    /// When it was made.
    pub creation_time: FileTime,
    /// Of the last access.
    pub last_access_time: FileTime,
    /// Of the last write.
    pub last_write_time: FileTime,
    /// Of the last change, of metadata too.
    pub change_time: FileTime,
    /// Bytes set aside for it.
    pub allocation_size: u64,
    /// Its length.
    pub end_of_file: u64,
    /// See [`attributes`].
    pub attributes: u32,
    /// The open.
    pub file_id: FileId,
    /// Extensions.
    pub contexts: CreateContexts<'a>,
}

impl<'a> CreateResponse<'a> {
    const FIXED: usize = 88;

    /// Appends itself behind its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        let mut bytes = [0; CreateResponse::FIXED];
        put(&mut bytes, 0, &89u16);
        put(&mut bytes, 2, &self.oplock);
        put(&mut bytes, 4, &self.action);
        put(&mut bytes, 8, &self.creation_time);
        put(&mut bytes, 16, &self.last_access_time);
        put(&mut bytes, 24, &self.last_write_time);
        put(&mut bytes, 32, &self.change_time);
        put(&mut bytes, 40, &self.allocation_size);
        put(&mut bytes, 48, &self.end_of_file);
        put(&mut bytes, 56, &self.attributes);
        put(&mut bytes, 64, &self.file_id);
        out.extend_from_slice(&bytes);
        if !self.contexts.is_empty() {
            self.contexts.encode_at(out, at, at + 80);
        }
    }

    /// Its contexts lie in the body, and can be read.
    pub(super) fn has_readable_contexts(body: &[u8]) -> bool {
        let place = |bytes: &[u8; CreateResponse::FIXED]| Ok((get(bytes, 80)?, get(bytes, 84)?));
        let decoded = fixed(body, RESPONSE)
            .and_then(place)
            .and_then(|place| CreateContexts::decode(body, Self::FIXED, place));
        decoded.is_ok()
    }

    /// Reads itself from a body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let bytes = structure::<{ CreateResponse::FIXED }>(body, 89, RESPONSE)?;
        let contexts = (get(bytes, 80)?, get(bytes, 84)?);
        Ok(Self {
            oplock: get(bytes, 2)?,
            action: get(bytes, 4)?,
            creation_time: get(bytes, 8)?,
            last_access_time: get(bytes, 16)?,
            last_write_time: get(bytes, 24)?,
            change_time: get(bytes, 32)?,
            allocation_size: get(bytes, 40)?,
            end_of_file: get(bytes, 48)?,
            attributes: get(bytes, 56)?,
            file_id: get(bytes, 64)?,
            contexts: CreateContexts::decode(body, Self::FIXED, contexts)?,
        })
    }
}
