//! Entries of directories. MS-FSCC 2.4.10, 2.4.17, 2.4.8, 2.4.22, 2.4.33

use super::super::bytes::{FileTime, WireError, get, put};
use super::super::text::Text;
use super::file::{begin_part, name, next_part};
use crate::op::FindLevel;

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
