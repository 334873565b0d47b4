//! Extensions of CREATE: leases, and others as bytes. MS-SMB2 2.2.13.2, 2.2.14.2

use super::super::bytes::{WireError, buffer, fixed, from_header, get, pad8, put, since};

const CONTEXT: &str = "a create context";
const CONTEXT_HEADER: usize = 16;
/// Longest name that is taken: names are four letters or a GUID.
const NAME_BYTES_MAX: u16 = 64;
const LEASE_NAME: &[u8] = b"RqLs";
const LEASE_V1_BYTES: usize = 32;
const LEASE_V2_BYTES: usize = 52;
const PARENT_KEY_SET: u32 = 4;

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

/// A lease asked for or granted. MS-SMB2 2.2.13.2.8, 2.2.13.2.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its name.
    pub key: LeaseKey,
    /// See [`lease_state`].
    pub state: u32,
    /// 2: a break is under way. Whether a parent's key is set follows from the version.
    pub flags: u32,
    /// What dialect 3.0 adds.
    pub version: LeaseVersion,
}

/// A lease of dialect 2.1, or 3.0 and later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseVersion {
    /// 2.1
    One,
    /// 3.0
    Two {
        /// Key of the directory's lease.
        parent_key: Option<LeaseKey>,
        /// Counts its changes.
        epoch: u16,
    },
}

impl Lease {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; LEASE_V2_BYTES];
        put(&mut bytes, 0, &self.key);
        put(&mut bytes, 16, &self.state);
        put(&mut bytes, 20, &self.flags);
        match self.version {
            LeaseVersion::One => out.extend_from_slice(&bytes[..LEASE_V1_BYTES]),
            LeaseVersion::Two { parent_key, epoch } => {
                let parent_set = if parent_key.is_some() { PARENT_KEY_SET } else { 0 };
                put(&mut bytes, 20, &(self.flags & !PARENT_KEY_SET | parent_set));
                put(&mut bytes, 32, &parent_key.unwrap_or_default());
                put(&mut bytes, 48, &epoch);
                out.extend_from_slice(&bytes);
            }
        }
    }

    fn decode(data: &[u8]) -> Result<Self, WireError> {
        let bytes: &[u8; LEASE_V1_BYTES] = fixed(data, "a lease")?;
        let flags = get::<u32>(bytes, 20)?;
        let version = match data.first_chunk::<LEASE_V2_BYTES>() {
            None => LeaseVersion::One,
            Some(bytes) => {
                let parent_set = flags & PARENT_KEY_SET != 0;
                let parent_key = if parent_set { Some(get(bytes, 32)?) } else { None };
                LeaseVersion::Two { parent_key, epoch: get(bytes, 48)? }
            }
        };
        let flags = match version {
            LeaseVersion::One => flags,
            LeaseVersion::Two { .. } => flags & !PARENT_KEY_SET,
        };
        Ok(Self { key: get(bytes, 0)?, state: get(bytes, 16)?, flags, version })
    }
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateContext<'a> {
    /// A lease.
    Lease(Lease),
    /// Another.
    Other {
        /// Four letters, or a GUID.
        name: &'a [u8],
        /// Its data.
        data: &'a [u8],
    },
}

impl<'a> CreateContext<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        let name = match self {
            Self::Lease(_) => LEASE_NAME,
            Self::Other { name, .. } => name,
        };
        let mut header = [0; CONTEXT_HEADER];
        put(&mut header, 4, &(CONTEXT_HEADER as u16));
        put(&mut header, 6, &(name.len() as u16));
        out.extend_from_slice(&header);
        out.extend_from_slice(name);
        pad8(out, at);
        let data_at = out.len();
        match self {
            Self::Lease(lease) => lease.encode(out),
            Self::Other { data, .. } => out.extend_from_slice(data),
        }
        let data_bytes = since(out, data_at);
        if data_bytes > 0 {
            put(out, at + 10, &((data_at - at) as u16));
            put(out, at + 12, &data_bytes);
        }
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let header: &[u8; CONTEXT_HEADER] = fixed(bytes, CONTEXT)?;
        let part = |offset: u32, length: u32| {
            let range = offset as usize..(offset as usize).saturating_add(length as usize);
            match length {
                0 => Ok(&[][..]),
                _ => bytes.get(range).ok_or(WireError::Range {
                    what: CONTEXT,
                    offset: offset.into(),
                    length: length.into(),
                }),
            }
        };
        let name_bytes = get::<u16>(header, 6)?;
        if name_bytes > NAME_BYTES_MAX {
            let value = name_bytes.into();
            return Err(WireError::Value { what: "a create context's NameLength", value });
        }
        let name = part(get::<u16>(header, 4)?.into(), name_bytes.into())?;
        let data = part(get::<u16>(header, 10)?.into(), get(header, 12)?)?;
        match name {
            LEASE_NAME => Lease::decode(data).map(Self::Lease),
            _ => Ok(Self::Other { name, data }),
        }
    }
}

/// Several, to write or as they came.
#[derive(Clone, Copy, Debug)]
pub enum CreateContexts<'a> {
    /// Ours.
    Values(&'a [CreateContext<'a>]),
    /// From the wire; decoded once, and found right.
    Wire(&'a [u8]),
}

impl<'a> CreateContexts<'a> {
    /// None.
    pub const NONE: Self = Self::Values(&[]);

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = CreateContext<'a>> {
        let (values, bytes): (&[_], &[u8]) = match self {
            Self::Values(values) => (values, &[]),
            Self::Wire(bytes) => (&[], bytes),
        };
        values.iter().copied().chain(WireContexts { rest: bytes }.map_while(Result::ok))
    }

    /// None at all.
    pub const fn is_empty(&self) -> bool {
        match self {
            Self::Values(values) => values.is_empty(),
            Self::Wire(bytes) => bytes.is_empty(),
        }
    }

    /// The lease among them.
    pub fn lease(self) -> Option<Lease> {
        self.iter().find_map(|context| match context {
            CreateContext::Lease(lease) => Some(lease),
            CreateContext::Other { .. } => None,
        })
    }

    /// Appends all to the body that began at `body_at`, and says at `place_at` where they are.
    pub(super) fn encode_at(self, out: &mut Vec<u8>, body_at: usize, place_at: usize) {
        let at = out.len();
        let mut previous = None;
        for context in self.iter() {
            if let Some(previous) = previous {
                pad8(out, at);
                let distance = since(out, previous);
                put(out, previous, &distance);
            }
            previous = Some(out.len());
            context.encode(out);
        }
        let length = since(out, at);
        put(out, place_at, &from_header(at - body_at));
        put(out, place_at + 4, &length);
    }

    pub(super) fn decode(
        body: &'a [u8],
        fixed: usize,
        place: (u32, u32),
    ) -> Result<Self, WireError> {
        let bytes = buffer(body, fixed, place, CONTEXT)?;
        WireContexts { rest: bytes }.try_for_each(|context| context.map(drop))?;
        Ok(Self::Wire(bytes))
    }
}

impl Default for CreateContexts<'_> {
    fn default() -> Self {
        Self::NONE
    }
}

impl PartialEq for CreateContexts<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for CreateContexts<'_> {}

/// Walks the chain. Each has at least a header, so that it ends; an error is the last item.
struct WireContexts<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for WireContexts<'a> {
    type Item = Result<CreateContext<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.rest);
        if bytes.is_empty() {
            return None;
        }
        Some(fixed::<4>(bytes, CONTEXT).and_then(|next| {
            let next = u32::from_le_bytes(*next) as usize;
            if next == 0 {
                return CreateContext::decode(bytes);
            }
            let parts = bytes.split_at_checked(next).filter(|_| next >= CONTEXT_HEADER);
            let (context, rest) = parts.ok_or(WireError::Range {
                what: "the next create context",
                offset: next as u64,
                length: CONTEXT_HEADER as u64,
            })?;
            self.rest = rest;
            CreateContext::decode(context)
        }))
    }
}
