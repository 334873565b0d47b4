//! Of files. MS-FSCC 2.4

use super::super::bytes::{FileTime, WireError, fixed, get, pad8, put, since};
use super::super::text::Text;
use super::class;

layout! {
    /// Times and attributes; to set, 0 leaves as it is. MS-FSCC 2.4.7
    BasicInfo "FileBasicInformation": 40 bytes {
        /// When it was made.
        creation_time: FileTime = 0,
        /// Of the last access.
        last_access_time: FileTime = 8,
        /// Of the last write.
        last_write_time: FileTime = 16,
        /// Of the last change, of metadata too.
        change_time: FileTime = 24,
        /// See [`crate::wire::create::attributes`].
        attributes: u32 = 32,
    }
}

layout! {
    /// Sizes and links. MS-FSCC 2.4.47
    StandardInfo "FileStandardInformation": 24 bytes {
        /// Bytes set aside for it.
        allocation_size: u64 = 0,
        /// Its length.
        end_of_file: u64 = 8,
        /// Names that it has.
        links: u32 = 16,
        /// Goes away when it is closed.
        delete_pending: bool = 20,
        /// A directory.
        directory: bool = 21,
    }
}

layout! {
    /// Its number. MS-FSCC 2.4.26
    InternalInfo "FileInternalInformation": 8 bytes {
        /// As the file system numbers it.
        index: u64 = 0,
    }
}

layout! {
    /// Size of extended attributes. MS-FSCC 2.4.13
    EaInfo "FileEaInformation": 4 bytes {
        /// In bytes.
        ea_bytes: u32 = 0,
    }
}

layout! {
    /// Times, sizes, attributes. MS-FSCC 2.4.33
    NetworkOpenInfo "FileNetworkOpenInformation": 56 bytes {
        /// When it was made.
        creation_time: FileTime = 0,
        /// Of the last access.
        last_access_time: FileTime = 8,
        /// Of the last write.
        last_write_time: FileTime = 16,
        /// Of the last change, of metadata too.
        change_time: FileTime = 24,
        /// Bytes set aside for it.
        allocation_size: u64 = 32,
        /// Its length.
        end_of_file: u64 = 40,
        /// See [`crate::wire::create::attributes`].
        attributes: u32 = 48,
    }
}

/// All of them. MS-FSCC 2.4.2
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllInfo<'a> {
    /// Times and attributes.
    pub basic: BasicInfo,
    /// Sizes and links.
    pub standard: StandardInfo,
    /// Its number.
    pub internal: InternalInfo,
    /// Size of extended attributes.
    pub ea: EaInfo,
    /// What this open may do.
    pub access: u32,
    /// Where this open is.
    pub position: u64,
    /// How it was opened.
    pub mode: u32,
    /// What buffers must be aligned to, less one.
    pub alignment: u32,
    /// From the share's root, with a backslash in front.
    pub name: Text<'a>,
}

impl<'a> AllInfo<'a> {
    /// Bytes before its name.
    pub(in crate::wire) const FIXED: usize = 100;

    /// Appends itself.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        self.basic.encode(out);
        self.standard.encode(out);
        self.internal.encode(out);
        self.ea.encode(out);
        out.extend_from_slice(&self.access.to_le_bytes());
        out.extend_from_slice(&self.position.to_le_bytes());
        out.extend_from_slice(&self.mode.to_le_bytes());
        out.extend_from_slice(&self.alignment.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        self.name.encode(out);
        let length = since(out, at + Self::FIXED);
        put(out, at + 96, &length);
    }

    /// Reads itself.
    pub fn decode(data: &'a [u8]) -> Result<Self, WireError> {
        let what = "FileAllInformation";
        let bytes: &[u8; AllInfo::FIXED] = fixed(data, what)?;
        Ok(Self {
            basic: BasicInfo::decode(bytes)?,
            standard: StandardInfo::decode(&bytes[40..])?,
            internal: InternalInfo::decode(&bytes[64..])?,
            ea: EaInfo::decode(&bytes[72..])?,
            access: get(bytes, 76)?,
            position: get(bytes, 80)?,
            mode: get(bytes, 88)?,
            alignment: get(bytes, 92)?,
            name: name(data, Self::FIXED, get(bytes, 96)?, what)?,
        })
    }
}

/// The text of `length` bytes that lies `at`.
pub(super) fn name<'a>(
    data: &'a [u8],
    at: usize,
    length: u32,
    what: &'static str,
) -> Result<Text<'a>, WireError> {
    let bytes = data.get(at..at.saturating_add(length as usize));
    bytes.map(Text::Utf16).ok_or(WireError::Truncated { what, bytes: data.len() })
}

/// A stream of a file. MS-FSCC 2.4.49
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamInfo<'a> {
    /// `::$DATA`, or another.
    pub name: Text<'a>,
    /// Its length.
    pub size: u64,
    /// Bytes set aside for it.
    pub allocation_size: u64,
}

/// Streams as they came; an error is the last item.
#[derive(Clone, Debug)]
pub struct Streams<'a> {
    rest: &'a [u8],
}

const STREAM: &str = "FileStreamInformation";
const STREAM_FIXED: usize = 24;

impl<'a> Streams<'a> {
    /// Of the output of a query.
    pub const fn new(output: &'a [u8]) -> Self {
        Self { rest: output }
    }
}

impl<'a> Iterator for Streams<'a> {
    type Item = Result<StreamInfo<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let data = next_part(&mut self.rest, STREAM_FIXED, STREAM)?;
        Some(data.and_then(|data| {
            let bytes: &[u8; STREAM_FIXED] = fixed(data, STREAM)?;
            Ok(StreamInfo {
                name: name(data, STREAM_FIXED, get(bytes, 4)?, STREAM)?,
                size: get(bytes, 8)?,
                allocation_size: get(bytes, 16)?,
            })
        }))
    }
}

/// Appends streams as the output of a query.
pub fn encode_streams(streams: &[StreamInfo<'_>], out: &mut Vec<u8>) {
    let start = out.len();
    let mut previous = None;
    for stream in streams {
        let at = begin_part(out, start, &mut previous);
        let mut bytes = [0; STREAM_FIXED];
        put(&mut bytes, 4, &(stream.name.wire_bytes() as u32));
        put(&mut bytes, 8, &stream.size);
        put(&mut bytes, 16, &stream.allocation_size);
        out.extend_from_slice(&bytes);
        debug_assert_eq!(out.len(), at + STREAM_FIXED);
        stream.name.encode(out);
    }
}

/// Takes the next of parts that each begin with the distance to the one behind, zero in the last.
/// Each has at least `fixed_bytes`, so that they come to an end.
pub(super) fn next_part<'a>(
    rest: &mut &'a [u8],
    fixed_bytes: usize,
    what: &'static str,
) -> Option<Result<&'a [u8], WireError>> {
    let data = std::mem::take(rest);
    if data.is_empty() {
        return None;
    }
    Some(fixed::<4>(data, what).and_then(|next| {
        let next = u32::from_le_bytes(*next) as usize;
        if next == 0 {
            return Ok(data);
        }
        let parts = data.split_at_checked(next).filter(|_| next >= fixed_bytes);
        let range = WireError::Range { what, offset: next as u64, length: fixed_bytes as u64 };
        let (part, after) = parts.ok_or(range)?;
        *rest = after;
        Ok(part)
    }))
}

/// Begins another part, a multiple of 8 bytes behind `start`, and tells the one before.
pub(super) fn begin_part(out: &mut Vec<u8>, start: usize, previous: &mut Option<usize>) -> usize {
    if let Some(previous) = *previous {
        pad8(out, start);
        let distance = since(out, previous);
        put(out, previous, &distance);
    }
    *previous = Some(out.len());
    out.len()
}

/// A change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetFile<'a> {
    /// Times and attributes. MS-FSCC 2.4.7
    Basic(BasicInfo),
    /// Another length. MS-FSCC 2.4.14
    EndOfFile(u64),
    /// Bytes set aside. MS-FSCC 2.4.4
    Allocation(u64),
    /// Removed when it is closed, or not. MS-FSCC 2.4.11
    Disposition(bool),
    /// Another name. MS-FSCC 2.4.43.2
    Rename {
        /// What has that name goes away.
        replace: bool,
        /// From the share's root, without a backslash in front.
        name: Text<'a>,
    },
}

impl<'a> SetFile<'a> {
    const RENAME: &'static str = "FileRenameInformation";
    const RENAME_FIXED: usize = 20;

    /// FileInformationClass.
    pub const fn class(&self) -> u8 {
        match self {
            Self::Basic(_) => class::BASIC,
            Self::EndOfFile(_) => class::END_OF_FILE,
            Self::Allocation(_) => class::ALLOCATION,
            Self::Disposition(_) => class::DISPOSITION,
            Self::Rename { .. } => class::RENAME,
        }
    }

    /// Appends itself.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Basic(basic) => basic.encode(out),
            Self::EndOfFile(bytes) | Self::Allocation(bytes) => {
                out.extend_from_slice(&bytes.to_le_bytes());
            }
            Self::Disposition(delete) => out.push(u8::from(*delete)),
            Self::Rename { replace, name } => {
                let at = out.len();
                let mut bytes = [0; SetFile::RENAME_FIXED];
                put(&mut bytes, 0, replace);
                out.extend_from_slice(&bytes);
                name.encode(out);
                let length = since(out, at + Self::RENAME_FIXED);
                put(out, at + 16, &length);
                // Windows takes no fewer bytes than its structure has with padding.
                out.resize(out.len().max(at + 24), 0);
            }
        }
    }

    /// Reads what a SET_INFO of that class sets; `None` for other classes.
    pub fn decode(class: u8, data: &'a [u8]) -> Result<Option<Self>, WireError> {
        Ok(Some(match class {
            class::BASIC => Self::Basic(BasicInfo::decode(data)?),
            class::END_OF_FILE => {
                Self::EndOfFile(get(fixed::<8>(data, "FileEndOfFileInformation")?, 0)?)
            }
            class::ALLOCATION => {
                Self::Allocation(get(fixed::<8>(data, "FileAllocationInformation")?, 0)?)
            }
            class::DISPOSITION => {
                Self::Disposition(get(fixed::<1>(data, "FileDispositionInformation")?, 0)?)
            }
            class::RENAME => {
                let bytes: &[u8; SetFile::RENAME_FIXED] = fixed(data, Self::RENAME)?;
                let name = name(data, Self::RENAME_FIXED, get(bytes, 16)?, Self::RENAME)?;
                Self::Rename { replace: get(bytes, 0)?, name }
            }
            _ => return Ok(None),
        }))
    }
}
