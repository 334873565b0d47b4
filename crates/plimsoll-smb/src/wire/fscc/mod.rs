//! What is queried and set of files and volumes (MS-FSCC 2.4, 2.5), and entries of directories
//! (2.4.8, 2.4.10, 2.4.17, 2.4.22, 2.4.33).

mod file;

use super::bytes::{Empty, FileTime, Span, WireError, begin_part, get, write_at};
use super::text::Text;
use file::next_part;

pub use file::{
    AllInfo, BasicInfo, EaInfo, InternalInfo, NetworkOpenInfo, Rename, SetFile, StandardInfo,
    StreamInfo, Streams, encode_streams,
};

/// FileInformationClass of what is set. MS-FSCC 2.4
#[expect(missing_docs, reason = "each is the class of its name")]
pub mod class {
    pub const BASIC: u8 = 4;
    pub const RENAME: u8 = 10;
    pub const DISPOSITION: u8 = 13;
    pub const ALLOCATION: u8 = 19;
    pub const END_OF_FILE: u8 = 20;
}

numbers! {
    /// What is queried of a file, MS-FSCC 2.4.
    FileLevel: u8 "FileInformationClass" {
        /// FileBasicInformation: times and attributes.
        Basic = 4,
        /// FileStandardInformation: sizes and links.
        Standard = 5,
        /// FileInternalInformation: its number.
        Internal = 6,
        /// FileEaInformation: size of extended attributes.
        Ea = 7,
        /// FileNetworkOpenInformation: times, sizes, attributes.
        NetworkOpen = 34,
        /// FileStreamInformation: alternate streams.
        Stream = 22,
        /// FileAllInformation.
        All = 18,
    }
}

numbers! {
    /// What is queried of a volume, MS-FSCC 2.5.
    FsLevel: u8 "FsInformationClass" {
        /// FileFsVolumeInformation.
        Volume = 1,
        /// FileFsSizeInformation.
        Size = 3,
        /// FileFsDeviceInformation.
        Device = 4,
        /// FileFsAttributeInformation.
        Attribute = 5,
        /// FileFsFullSizeInformation.
        FullSize = 7,
    }
}

numbers! {
    /// What is queried of each entry of a directory, MS-FSCC 2.4.
    FindLevel: u8 "FileInformationClass" {
        /// FileDirectoryInformation.
        Directory = 1,
        /// FileFullDirectoryInformation.
        Full = 2,
        /// FileBothDirectoryInformation: with the short name.
        Both = 3,
        /// FileIdBothDirectoryInformation: with the file's number too.
        IdBoth = 37,
        /// FileNamesInformation.
        Names = 12,
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

layout! {
    /// Its name. MS-FSCC 2.5.9
    #[derive(Default)]
    FsVolumeInfo<'a> "FileFsVolumeInformation": 18 bytes {
        /// When it was made.
        creation_time: FileTime = 0,
        /// Its number.
        serial: u32 = 8,
        /// Knows objects.
        supports_objects: bool = 16,
    } tail {
        /// Its name.
        label: Text<'a> = "FileFsVolumeInformation", Span::behind((12, 4), Empty::Described);
    }
}

layout! {
    /// What it can do. MS-FSCC 2.5.1
    #[derive(Default)]
    FsAttributeInfo<'a> "FileFsAttributeInformation": 12 bytes {
        /// Case, links, compression …
        attributes: u32 = 0,
        /// Longest name of a file in characters.
        name_chars_max: u32 = 4,
    } tail {
        /// `NTFS`, as it reports.
        name: Text<'a> = "FileFsAttributeInformation", Span::behind((8, 4), Empty::Described);
    }
}

const ENTRY: &str = "an entry of a directory";
const FIXED_MAX: usize = 104;
const SHORT_NAME_AT: usize = 70;
const SHORT_NAME_BYTES: usize = 24;
const SHORT_NAME_END: usize = SHORT_NAME_AT + SHORT_NAME_BYTES;
const SHORT_NAME: Span = Span::behind((68, 1), Empty::Described);

/// An entry; fields that its level lacks are zero or empty.
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

const fn has_short_name(level: FindLevel) -> bool {
    matches!(level, FindLevel::Both | FindLevel::IdBoth)
}

/// Where the length of its name is.
const fn name_span(level: FindLevel) -> Span {
    Span::behind((if let FindLevel::Names = level { 8 } else { 60 }, 4), Empty::Described)
}

impl<'a> Entry<'a> {
    fn encode(&self, level: FindLevel, out: &mut Vec<u8>) {
        let at = out.len();
        let mut bytes = [0; FIXED_MAX];
        write_at(&mut bytes, 4, &self.file_index);
        if level != FindLevel::Names {
            write_at(&mut bytes, 8, &self.creation_time);
            write_at(&mut bytes, 16, &self.last_access_time);
            write_at(&mut bytes, 24, &self.last_write_time);
            write_at(&mut bytes, 32, &self.change_time);
            write_at(&mut bytes, 40, &self.end_of_file);
            write_at(&mut bytes, 48, &self.allocation_size);
            write_at(&mut bytes, 56, &self.attributes);
        }
        write_at(&mut bytes, 64, &self.ea_bytes);
        if has_short_name(level) {
            let units = self.short_name.units().take(SHORT_NAME_BYTES / 2);
            let mut short_bytes = 0u8;
            for unit in units {
                write_at(&mut bytes, 70 + usize::from(short_bytes), &unit);
                short_bytes += 2;
            }
            write_at(&mut bytes, 68, &short_bytes);
        }
        write_at(&mut bytes, 96, &self.file_id);
        // A level without the last fields ends before them.
        out.extend_from_slice(&bytes[..fixed_bytes(level)]);
        name_span(level).append(self.name, out, at);
    }

    fn decode(level: FindLevel, data: &'a [u8]) -> Result<Self, WireError> {
        let fixed = fixed_bytes(level);
        let truncated = WireError::Truncated { what: ENTRY, bytes: data.len() };
        let mut bytes = [0; FIXED_MAX];
        bytes[..fixed].copy_from_slice(data.get(..fixed).ok_or(truncated)?);
        let (file_index, name) = (get(&bytes, 4)?, name_span(level).read(data, fixed, ENTRY)?);
        if level == FindLevel::Names {
            return Ok(Self { file_index, name, ..Self::default() });
        }
        // Nobody uses it: a wrong one counts as none.
        let short_name = match has_short_name(level) {
            true => SHORT_NAME.read(&data[..SHORT_NAME_END], SHORT_NAME_AT, ENTRY).ok(),
            false => None,
        };
        Ok(Self {
            file_index,
            creation_time: get(&bytes, 8)?,
            last_access_time: get(&bytes, 16)?,
            last_write_time: get(&bytes, 24)?,
            change_time: get(&bytes, 32)?,
            end_of_file: get(&bytes, 40)?,
            allocation_size: get(&bytes, 48)?,
            attributes: get(&bytes, 56)?,
            ea_bytes: get(&bytes, 64)?,
            short_name: short_name.unwrap_or_default(),
            file_id: get(&bytes, 96)?,
            name,
        })
    }
}

/// Entries as they came, `.` and `..` among them; an error is the last item.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    level: FindLevel,
    rest: &'a [u8],
    /// Of those so far, with a short name that is longer than its field.
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
        let entry = data.and_then(|data| {
            let wrong = has_short_name(self.level)
                && data.get(68).is_some_and(|n| usize::from(*n) > SHORT_NAME_BYTES);
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
