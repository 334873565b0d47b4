//! What is asked and set of files and volumes (MS-FSCC 2.4, 2.5), and entries of directories
//! (2.4.8, 2.4.10, 2.4.17, 2.4.22, 2.4.33).

mod file;

use super::bytes::{FileTime, WireError, fixed, get, put, since};
use super::text::Text;
use crate::op::{FileLevel, FindLevel, FsLevel};
use file::{begin_part, name, next_part};

pub use file::{
    AllInfo, BasicInfo, EaInfo, InternalInfo, NetworkOpenInfo, SetFile, StandardInfo, StreamInfo,
    Streams, encode_streams,
};

/// FileInformationClass. MS-FSCC 2.4
#[expect(missing_docs, reason = "each is the class of its name")]
pub mod class {
    pub const DIRECTORY: u8 = 1;
    pub const FULL_DIRECTORY: u8 = 2;
    pub const BOTH_DIRECTORY: u8 = 3;
    pub const BASIC: u8 = 4;
    pub const STANDARD: u8 = 5;
    pub const INTERNAL: u8 = 6;
    pub const EA: u8 = 7;
    pub const RENAME: u8 = 10;
    pub const NAMES: u8 = 12;
    pub const DISPOSITION: u8 = 13;
    pub const ALL: u8 = 18;
    pub const ALLOCATION: u8 = 19;
    pub const END_OF_FILE: u8 = 20;
    pub const STREAM: u8 = 22;
    pub const NETWORK_OPEN: u8 = 34;
    pub const ID_BOTH_DIRECTORY: u8 = 37;
}

impl FileLevel {
    /// All, in order.
    pub const ALL: [Self; 7] = [
        Self::Basic,
        Self::Standard,
        Self::Internal,
        Self::Ea,
        Self::NetworkOpen,
        Self::Stream,
        Self::All,
    ];

    /// Its number on the wire.
    pub const fn class(self) -> u8 {
        match self {
            Self::Basic => class::BASIC,
            Self::Standard => class::STANDARD,
            Self::Internal => class::INTERNAL,
            Self::Ea => class::EA,
            Self::NetworkOpen => class::NETWORK_OPEN,
            Self::Stream => class::STREAM,
            Self::All => class::ALL,
        }
    }
}

impl FsLevel {
    /// All, in order.
    pub const ALL: [Self; 5] =
        [Self::Volume, Self::Size, Self::Device, Self::Attribute, Self::FullSize];

    /// Its number on the wire. MS-FSCC 2.5
    pub const fn class(self) -> u8 {
        match self {
            Self::Volume => 1,
            Self::Size => 3,
            Self::Device => 4,
            Self::Attribute => 5,
            Self::FullSize => 7,
        }
    }
}

impl FindLevel {
    /// All, in order.
    pub const ALL: [Self; 5] = [Self::Directory, Self::Full, Self::Both, Self::IdBoth, Self::Names];

    /// Its number on the wire.
    pub const fn class(self) -> u8 {
        match self {
            Self::Directory => class::DIRECTORY,
            Self::Full => class::FULL_DIRECTORY,
            Self::Both => class::BOTH_DIRECTORY,
            Self::IdBoth => class::ID_BOTH_DIRECTORY,
            Self::Names => class::NAMES,
        }
    }
}

layout! {
    /// Space. MS-FSCC 2.5.8
    FsSizeInfo "FileFsSizeInformation": 24 bytes {
        /// Of the volume.
        total_units: u64 = 0,
        /// Of them free to the user.
        available_units: u64 = 8,
        /// Of a unit.
        sectors_per_unit: u32 = 16,
        /// Of a sector.
        bytes_per_sector: u32 = 20,
    }
}

layout! {
    /// What it lies on. MS-FSCC 2.5.10
    FsDeviceInfo "FileFsDeviceInformation": 8 bytes {
        /// 7 is a disk.
        device_type: u32 = 0,
        /// Removable, read-only, remote …
        characteristics: u32 = 4,
    }
}

layout! {
    /// Space, with what only the system may use. MS-FSCC 2.5.4
    FsFullSizeInfo "FileFsFullSizeInformation": 32 bytes {
        /// Of the volume.
        total_units: u64 = 0,
        /// Of them free to the user.
        caller_available_units: u64 = 8,
        /// Of them free at all.
        actual_available_units: u64 = 16,
        /// Of a unit.
        sectors_per_unit: u32 = 24,
        /// Of a sector.
        bytes_per_sector: u32 = 28,
    }
}

/// Its name. MS-FSCC 2.5.9
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsVolumeInfo<'a> {
    /// When it was made.
    pub creation_time: FileTime,
    /// Its number.
    pub serial: u32,
    /// Knows objects.
    pub supports_objects: bool,
    /// Its name.
    pub label: Text<'a>,
}

impl<'a> FsVolumeInfo<'a> {
    /// Bytes before its name.
    pub(in crate::wire) const FIXED: usize = 18;

    /// Appends itself.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        let mut bytes = [0; FsVolumeInfo::FIXED];
        put(&mut bytes, 0, &self.creation_time);
        put(&mut bytes, 8, &self.serial);
        put(&mut bytes, 16, &self.supports_objects);
        out.extend_from_slice(&bytes);
        self.label.encode(out);
        let length = since(out, at + Self::FIXED);
        put(out, at + 12, &length);
    }

    /// Reads itself.
    pub fn decode(data: &'a [u8]) -> Result<Self, WireError> {
        let what = "FileFsVolumeInformation";
        let bytes: &[u8; FsVolumeInfo::FIXED] = fixed(data, what)?;
        Ok(Self {
            creation_time: get(bytes, 0)?,
            serial: get(bytes, 8)?,
            supports_objects: get(bytes, 16)?,
            label: name(data, Self::FIXED, get(bytes, 12)?, what)?,
        })
    }
}

/// What it can do. MS-FSCC 2.5.1
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsAttributeInfo<'a> {
    /// Case, links, compression …
    pub attributes: u32,
    /// Longest name of a file in characters.
    pub name_chars_max: u32,
    /// `NTFS`, as it says.
    pub name: Text<'a>,
}

impl<'a> FsAttributeInfo<'a> {
    /// Bytes before its name.
    pub(in crate::wire) const FIXED: usize = 12;

    /// Appends itself.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        let mut bytes = [0; FsAttributeInfo::FIXED];
        put(&mut bytes, 0, &self.attributes);
        put(&mut bytes, 4, &self.name_chars_max);
        out.extend_from_slice(&bytes);
        self.name.encode(out);
        let length = since(out, at + Self::FIXED);
        put(out, at + 8, &length);
    }

    /// Reads itself.
    pub fn decode(data: &'a [u8]) -> Result<Self, WireError> {
        let what = "FileFsAttributeInformation";
        let bytes: &[u8; FsAttributeInfo::FIXED] = fixed(data, what)?;
        Ok(Self {
            attributes: get(bytes, 0)?,
            name_chars_max: get(bytes, 4)?,
            name: name(data, Self::FIXED, get(bytes, 8)?, what)?,
        })
    }
}

const ENTRY: &str = "an entry of a directory";
const FIXED_MAX: usize = 104;
const SHORT_NAME_BYTES: usize = 24;

/// An entry; what its level does not tell is zero or empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Where it is in the directory; most servers say 0.
    pub file_index: u32,
    /// When it was made.
    pub creation_time: FileTime,
    /// Of the last access.
    pub last_access_time: FileTime,
    /// Of the last write.
    pub last_write_time: FileTime,
    /// Of the last change, of metadata too.
    pub change_time: FileTime,
    /// Its length.
    pub end_of_file: u64,
    /// Bytes set aside for it.
    pub allocation_size: u64,
    /// See [`crate::wire::create::attributes`].
    pub attributes: u32,
    /// Size of extended attributes, or a reparse tag.
    pub ea_bytes: u32,
    /// At most 12 characters.
    pub short_name: Text<'a>,
    /// Its number.
    pub file_id: u64,
    /// Its name.
    pub name: Text<'a>,
}

/// Bytes of an entry before its name.
const fn fixed_bytes(level: FindLevel) -> usize {
    match level {
        FindLevel::Directory => 64,
        FindLevel::Full => 68,
        FindLevel::Both => 94,
        FindLevel::IdBoth => 104,
        FindLevel::Names => 12,
    }
}

impl<'a> Entry<'a> {
    fn encode(&self, level: FindLevel, out: &mut Vec<u8>) {
        let mut bytes = [0; FIXED_MAX];
        let name_bytes = self.name.wire_bytes() as u32;
        put(&mut bytes, 4, &self.file_index);
        if level == FindLevel::Names {
            put(&mut bytes, 8, &name_bytes);
        } else {
            put(&mut bytes, 8, &self.creation_time);
            put(&mut bytes, 16, &self.last_access_time);
            put(&mut bytes, 24, &self.last_write_time);
            put(&mut bytes, 32, &self.change_time);
            put(&mut bytes, 40, &self.end_of_file);
            put(&mut bytes, 48, &self.allocation_size);
            put(&mut bytes, 56, &self.attributes);
            put(&mut bytes, 60, &name_bytes);
        }
        if matches!(level, FindLevel::Full | FindLevel::Both | FindLevel::IdBoth) {
            put(&mut bytes, 64, &self.ea_bytes);
        }
        if matches!(level, FindLevel::Both | FindLevel::IdBoth) {
            let units = self.short_name.units().take(SHORT_NAME_BYTES / 2);
            let mut short_bytes = 0u8;
            for unit in units {
                put(&mut bytes, 70 + usize::from(short_bytes), &unit);
                short_bytes += 2;
            }
            put(&mut bytes, 68, &short_bytes);
        }
        if level == FindLevel::IdBoth {
            put(&mut bytes, 96, &self.file_id);
        }
        out.extend_from_slice(&bytes[..fixed_bytes(level)]);
        self.name.encode(out);
    }

    fn decode(level: FindLevel, data: &'a [u8]) -> Result<Self, WireError> {
        let fixed = fixed_bytes(level);
        let truncated = WireError::Truncated { what: ENTRY, bytes: data.len() };
        let bytes = data.get(..fixed).ok_or(truncated)?;
        let file_index = get(bytes, 4)?;
        if level == FindLevel::Names {
            let name = name(data, fixed, get(bytes, 8)?, ENTRY)?;
            return Ok(Self { file_index, name, ..Self::default() });
        }
        let mut entry = Self {
            file_index,
            creation_time: get(bytes, 8)?,
            last_access_time: get(bytes, 16)?,
            last_write_time: get(bytes, 24)?,
            change_time: get(bytes, 32)?,
            end_of_file: get(bytes, 40)?,
            allocation_size: get(bytes, 48)?,
            attributes: get(bytes, 56)?,
            name: name(data, fixed, get(bytes, 60)?, ENTRY)?,
            ..Self::default()
        };
        if matches!(level, FindLevel::Full | FindLevel::Both | FindLevel::IdBoth) {
            entry.ea_bytes = get(bytes, 64)?;
        }
        if matches!(level, FindLevel::Both | FindLevel::IdBoth) {
            // Nobody asks for it: a wrong one is none.
            let length = get::<u8>(bytes, 68)?;
            entry.short_name = name(&bytes[..94], 70, length.into(), ENTRY).unwrap_or_default();
        }
        if level == FindLevel::IdBoth {
            entry.file_id = get(bytes, 96)?;
        }
        Ok(entry)
    }
}

/// Entries as they came, `.` and `..` among them; an error is the last item.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    level: FindLevel,
    rest: &'a [u8],
    /// Of those so far, with a short name that is longer than its place.
    pub wrong_short_names: u32,
}

impl<'a> Entries<'a> {
    /// Of the output of a QUERY_DIRECTORY of that level.
    pub const fn new(level: FindLevel, output: &'a [u8]) -> Self {
        Self { level, rest: output, wrong_short_names: 0 }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let data = next_part(&mut self.rest, fixed_bytes(self.level), ENTRY)?;
        let has_short_name = matches!(self.level, FindLevel::Both | FindLevel::IdBoth);
        let entry = data.and_then(|data| {
            let wrong =
                has_short_name && data.get(68).is_some_and(|n| usize::from(*n) > SHORT_NAME_BYTES);
            self.wrong_short_names += u32::from(wrong);
            Entry::decode(self.level, data)
        });
        if entry.is_err() {
            self.rest = &[];
        }
        Some(entry)
    }
}

/// Writes entries as the output of a QUERY_DIRECTORY.
#[derive(Clone, Debug)]
pub struct EntryList {
    level: FindLevel,
    start: usize,
    previous: Option<usize>,
}

impl EntryList {
    /// Begins at the end of `out`.
    pub const fn new(level: FindLevel, out: &[u8]) -> Self {
        Self { level, start: out.len(), previous: None }
    }

    /// Appends an entry.
    pub fn push(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        begin_part(out, self.start, &mut self.previous);
        entry.encode(self.level, out);
    }
}
