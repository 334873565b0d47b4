//! Of volumes. MS-FSCC 2.5

use super::super::bytes::{FileTime, WireError, fixed, get, put, since};
use super::super::text::Text;
use super::file::name;

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
