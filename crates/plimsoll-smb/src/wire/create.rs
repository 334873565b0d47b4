//! CREATE, with leases. MS-SMB2 2.2.13, 2.2.14

use super::bytes::{Empty, FileId, FileTime, Span, Tail, WireError, fixed, get, write_at};
use super::text::Text;

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
    pub const NON_DIRECTORY_FILE: u32 = 0x0000_0040;
    pub const DELETE_ON_CLOSE: u32 = 0x0000_1000;
    pub const OPEN_REPARSE_POINT: u32 = 0x0020_0000;
}

/// FileAttributes. MS-FSCC 2.6
#[expect(missing_docs, reason = "each is the attribute of its name")]
pub mod attributes {
    pub const SYSTEM: u32 = 0x0000_0004;
    pub const DIRECTORY: u32 = 0x0000_0010;
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
    /// What became of the file. MS-SMB2 2.2.14
    #[expect(missing_docs, reason = "each is the action of its name")]
    CreateAction: u32 "CreateAction" {
        Superseded = 0,
        Opened = 1,
        Created = 2,
        Overwritten = 3,
    }
}

numbers! {
    /// CreateDisposition, MS-SMB2 2.2.13.
    Disposition: u32 "CreateDisposition" {
        /// Replace what exists, else make.
        Supersede = 0,
        /// Open what exists, else fail.
        Open = 1,
        /// Make, fail if it exists.
        Create = 2,
        /// Open what exists, else make.
        OpenIf = 3,
        /// Truncate what exists, else fail.
        Overwrite = 4,
        /// Truncate what exists, else make.
        OverwriteIf = 5,
    }
}

/// ImpersonationLevel: the server acts as the user. MS-SMB2 2.2.13
const IMPERSONATION: u32 = 2;

layout! {
    /// Opens or makes a file or directory.
    CreateRequest<'a> "a CREATE request": 56 bytes, size 57, with (4: IMPERSONATION) {
        /// What the client wants to cache.
        oplock: OplockLevel = 3,
        /// See [`access`].
        desired_access: u32 = 24,
        /// See [`attributes`]; of a file that is made.
        attributes: u32 = 28,
        /// See [`share_access`]: what others may do meanwhile.
        share_access: u32 = 32,
        /// What to do if it exists, and if not.
        disposition: Disposition = 36,
        /// See [`options`].
        options: u32 = 40,
    } tail {
        /// Below the share, without a leading backslash; empty is the root.
        name: Text<'a> = "the file's name", Span::new((44, 2), (46, 2), Empty::ZeroByte);
        /// The one extension that is used.
        lease: Option<Lease> = CONTEXT, Span::new((48, 4), (52, 4), Empty::Omitted);
    }
}

impl<'a> CreateRequest<'a> {
    /// Opens `name` and nothing more: no oplock, no contexts, everything shared.
    pub const fn new(name: Text<'a>, disposition: Disposition, desired_access: u32) -> Self {
        Self {
            oplock: OplockLevel::None,
            desired_access,
            attributes: 0,
            share_access: share_access::ALL,
            disposition,
            options: 0,
            name,
            lease: None,
        }
    }
}

const CONTEXTS: Span = Span::new((80, 4), (84, 4), Empty::Omitted);

layout! {
    /// An open, and what is reported of the file.
    CreateResponse "a CREATE response": 88 bytes, size 89 {
        /// What the client may cache.
        oplock: OplockLevel = 2,
        /// What became of the file.
        action: CreateAction = 4,
        /// When it was made.
        creation_time: FileTime = 8,
        /// Of the last access.
        last_access_time: FileTime = 16,
        /// Of the last write.
        last_write_time: FileTime = 24,
        /// Of the last change, of metadata too.
        change_time: FileTime = 32,
        /// Bytes set aside for it.
        allocation_size: u64 = 40,
        /// Its length.
        end_of_file: u64 = 48,
        /// See [`attributes`].
        attributes: u32 = 56,
        /// The open.
        file_id: FileId = 64,
    } tail {
        /// The one extension that is used.
        lease: Option<Lease> = CONTEXT, CONTEXTS;
    }
}

impl CreateResponse {
    /// Its contexts lie in the body, and can be read.
    pub(super) fn has_readable_contexts(body: &[u8]) -> bool {
        CONTEXTS.read::<Option<Lease>>(body, Self::FIXED, CONTEXT).is_ok()
    }
}

const CONTEXT: &str = "a create context";
const CONTEXT_HEADER: usize = 16;
/// Longest name that is taken: names are four letters or a GUID.
const NAME_BYTES_MAX: u16 = 64;
const LEASE_NAME: [u8; 4] = *b"RqLs";
/// Where the data of a lease's context begins, 8 bytes of name and padding behind its header.
const LEASE_AT: usize = CONTEXT_HEADER + 8;

/// The client's name for a lease.
pub type LeaseKey = [u8; 16];

/// Bits of [`Lease::state`].
pub mod lease_state {
    /// Reads may be cached.
    pub const READ: u32 = 1;
    /// Opens may be.
    pub const HANDLE: u32 = 2;
    /// Writes may be.
    pub const WRITE: u32 = 4;
}

/// A lease requested or granted. MS-SMB2 2.2.13.2.8, 2.2.13.2.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its name.
    pub key: LeaseKey,
    /// See [`lease_state`].
    pub state: u32,
    /// Its form.
    pub version: LeaseVersion,
}

/// The form of a lease, as many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseVersion {
    /// Of dialect 2.1.
    One = 32,
    /// Of 3.0 and later, with a directory's lease and a count of changes, which stay zero here.
    Two = 52,
}

impl Lease {
    /// Reads a context; `None` where it is another.
    fn from_context(bytes: &[u8]) -> Result<Option<Self>, WireError> {
        let header: &[u8; CONTEXT_HEADER] = fixed(bytes, CONTEXT)?;
        let part = |offset: u16, length: u32| {
            let (from, bytes_max) = (usize::from(offset), length as usize);
            let range = from..from.saturating_add(bytes_max);
            let outside =
                WireError::Range { what: CONTEXT, offset: from as u64, length: length.into() };
            if length == 0 { Ok(&[][..]) } else { bytes.get(range).ok_or(outside) }
        };
        let name_bytes = get::<u16>(header, 6)?;
        if name_bytes > NAME_BYTES_MAX {
            let value = name_bytes.into();
            return Err(WireError::Value { what: "a create context's NameLength", value });
        }
        let name = part(get(header, 4)?, name_bytes.into())?;
        let data = part(get(header, 10)?, get(header, 12)?)?;
        if name != LEASE_NAME {
            return Ok(None);
        }
        let lease: &[u8; LeaseVersion::One as usize] = fixed(data, "a lease")?;
        let is_long = data.len() >= LeaseVersion::Two as usize;
        let version = if is_long { LeaseVersion::Two } else { LeaseVersion::One };
        Ok(Some(Self { key: get(lease, 0)?, state: get(lease, 16)?, version }))
    }
}

/// The first lease of a chain of contexts; the others are checked and left out.
impl<'a> Tail<'a> for Option<Lease> {
    fn from_wire(mut bytes: &'a [u8], _count: u32) -> Result<Self, WireError> {
        let mut lease = None;
        // Each has at least a header, so that this ends.
        while !bytes.is_empty() {
            let next = u32::from_le_bytes(*fixed(bytes, CONTEXT)?) as usize;
            let context;
            (context, bytes) = match next {
                0 => (bytes, &[][..]),
                _ => bytes.split_at_checked(next).filter(|_| next >= CONTEXT_HEADER).ok_or(
                    WireError::Range {
                        what: "the next create context",
                        offset: next as u64,
                        length: CONTEXT_HEADER as u64,
                    },
                )?,
            };
            lease = lease.or(Lease::from_context(context)?);
        }
        Ok(lease)
    }

    fn append(self, out: &mut Vec<u8>) -> u32 {
        let Some(Lease { key, state, version }) = self else { return 0 };
        let mut bytes = [0; LEASE_AT + LeaseVersion::Two as usize];
        write_at(&mut bytes, 4, &(CONTEXT_HEADER as u16));
        write_at(&mut bytes, 6, &(LEASE_NAME.len() as u16));
        write_at(&mut bytes, 10, &(LEASE_AT as u16));
        write_at(&mut bytes, 12, &(version as u32));
        write_at(&mut bytes, CONTEXT_HEADER, &LEASE_NAME);
        write_at(&mut bytes, LEASE_AT, &key);
        write_at(&mut bytes, LEASE_AT + 16, &state);
        (&bytes[..LEASE_AT + version as usize]).append(out)
    }
}
