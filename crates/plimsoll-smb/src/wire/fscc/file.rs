//! Of files. MS-FSCC 2.4

use super::super::bytes::{Empty, FileTime, Span, WireError, begin_part, fixed, get};
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

layout! {
    /// All of them. MS-FSCC 2.4.2
    #[derive(Default)]
    AllInfo<'a> "FileAllInformation": 100 bytes {
        /// Times and attributes.
        basic: BasicInfo = 0,
        /// Sizes and links.
        standard: StandardInfo = 40,
        /// Its number.
        internal: InternalInfo = 64,
        /// Size of extended attributes.
        ea: EaInfo = 72,
        /// What this open may do.
        access: u32 = 76,
        /// Where this open is.
        position: u64 = 80,
        /// How it was opened.
        mode: u32 = 88,
        /// What buffers must be aligned to, less one.
        alignment: u32 = 92,
    } tail {
        /// From the share's root, with a backslash in front.
        name: Text<'a> = "FileAllInformation", Span::behind((96, 4), Empty::Described);
    }
}

layout! {
    /// A stream of a file. MS-FSCC 2.4.49
    #[derive(Default)]
    StreamInfo<'a> "FileStreamInformation": 24 bytes {
        /// Its length.
        size: u64 = 8,
        /// Bytes set aside for it.
        allocation_size: u64 = 16,
    } tail {
        /// `::$DATA`, or another.
        name: Text<'a> = "FileStreamInformation", Span::behind((4, 4), Empty::Described);
    }
}

/// Streams as they came; an error is the last item.
#[derive(Clone, Debug)]
pub struct Streams<'a> {
    rest: &'a [u8],
}

impl<'a> Streams<'a> {
    /// Of the output of a query.
    pub const fn new(output: &'a [u8]) -> Self {
        Self { rest: output }
    }
}

impl<'a> Iterator for Streams<'a> {
    type Item = Result<StreamInfo<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let data = next_part(&mut self.rest, StreamInfo::FIXED, "FileStreamInformation")?;
        Some(data.and_then(StreamInfo::decode))
    }
}

/// Appends streams as the output of a query.
pub fn encode_streams(streams: &[StreamInfo<'_>], out: &mut Vec<u8>) {
    let start = out.len();
    let mut previous = None;
    for stream in streams {
        begin_part(out, start, &mut previous);
        stream.encode(out);
    }
}

/// Takes the next of parts that each begin with the distance to the next, zero in the last. Each
/// has at least `fixed_bytes`, so that they come to an end.
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

layout! {
    /// Another name. MS-FSCC 2.4.43.2
    Rename<'a> "FileRenameInformation": 20 bytes {
        /// What has that name goes away.
        replace: bool = 0,
    } tail {
        /// From the share's root, without a backslash in front.
        name: Text<'a> = "FileRenameInformation", Span::behind((16, 4), Empty::Described);
    }
}

impl<'a> SetFile<'a> {
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
                Rename { replace: *replace, name: *name }.encode(out);
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
                let Rename { replace, name } = Rename::decode(data)?;
                Self::Rename { replace, name }
            }
            _ => return Ok(None),
        }))
    }
}
