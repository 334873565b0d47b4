//! What is asked and set of files, volumes and directories. MS-FSCC 2.4, 2.5

mod directory;
mod file;
mod volume;

pub use directory::{Entries, Entry, EntryList};
pub use file::{
    AllInfo, BasicInfo, EaInfo, InternalInfo, NetworkOpenInfo, SetFile, StandardInfo, StreamInfo,
    Streams, encode_streams,
};
pub use volume::{FsAttributeInfo, FsDeviceInfo, FsFullSizeInfo, FsSizeInfo, FsVolumeInfo};

use crate::op::{FileLevel, FindLevel, FsLevel};

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
