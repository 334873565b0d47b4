//! Information levels: SMB1 numbers them (MS-SMB 2.2.6, MS-CIFS 2.2.2.3), SMB2 asks for classes of
//! MS-FSCC. SMB1's pass-through levels are a class's number plus 1000.

use crate::op::{FileChange, FileLevel, FindLevel, FsLevel};

use super::grammar::Verb;

/// What is queried on SMB2 for an SMB1 level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MappedLevel<L> {
    /// The class.
    pub level: L,
    /// It is not the same class: the load file's has no counterpart here.
    pub instead_of: Option<&'static str>,
}

const fn same<L: Copy>(level: L) -> Option<MappedLevel<L>> {
    Some(MappedLevel { level, instead_of: None })
}

const fn nearest<L: Copy>(level: L, requested: &'static str) -> Option<MappedLevel<L>> {
    Some(MappedLevel { level, instead_of: Some(requested) })
}

/// Of a file: QUERY_PATH_INFORMATION and QUERY_FILE_INFORMATION.
pub(crate) const fn file(level: u64) -> Option<MappedLevel<FileLevel>> {
    match level {
        1 => nearest(FileLevel::NetworkOpen, "SMB_INFO_STANDARD"),
        2 => nearest(FileLevel::Ea, "SMB_INFO_QUERY_EA_SIZE"),
        0x101 | 1004 => same(FileLevel::Basic),
        0x102 | 1005 => same(FileLevel::Standard),
        0x103 | 1007 => same(FileLevel::Ea),
        0x104 | 1009 => nearest(FileLevel::All, "the file's name"),
        0x107 | 1018 => same(FileLevel::All),
        0x108 | 1021 => nearest(FileLevel::All, "the file's short name"),
        0x109 | 1022 => same(FileLevel::Stream),
        0x10B | 1028 => nearest(FileLevel::Standard, "the file's compression"),
        1006 => same(FileLevel::Internal),
        1008 => nearest(FileLevel::All, "FileAccessInformation"),
        1014 => nearest(FileLevel::All, "FilePositionInformation"),
        1016 => nearest(FileLevel::All, "FileModeInformation"),
        1017 => nearest(FileLevel::All, "FileAlignmentInformation"),
        1034 => same(FileLevel::NetworkOpen),
        1035 => nearest(FileLevel::Basic, "FileAttributeTagInformation"),
        _ => None,
    }
}

/// What SET_FILE_INFORMATION sets. A load file does not have the new value, so only levels that
/// need none can be replayed.
pub(crate) const fn change(level: u64) -> Option<MappedLevel<FileChange>> {
    match level {
        1 => nearest(FileChange::Basic, "SMB_INFO_STANDARD"),
        0x101 | 1004 => same(FileChange::Basic),
        _ => None,
    }
}

/// Of a volume: QUERY_FS_INFORMATION.
pub(crate) const fn volume(level: u64) -> Option<MappedLevel<FsLevel>> {
    match level {
        1 => nearest(FsLevel::Size, "SMB_INFO_ALLOCATION"),
        2 => nearest(FsLevel::Volume, "SMB_INFO_VOLUME"),
        0x102 | 1001 => same(FsLevel::Volume),
        0x103 | 1003 => same(FsLevel::Size),
        0x104 | 1004 => same(FsLevel::Device),
        0x105 | 1005 => same(FsLevel::Attribute),
        1007 => same(FsLevel::FullSize),
        _ => None,
    }
}

/// Of a directory's entries: FIND_FIRST.
pub(crate) const fn find(level: u64) -> Option<MappedLevel<FindLevel>> {
    match level {
        1 => nearest(FindLevel::Directory, "SMB_INFO_STANDARD"),
        2 => nearest(FindLevel::Full, "SMB_INFO_QUERY_EA_SIZE"),
        0x101 | 1001 => same(FindLevel::Directory),
        0x102 | 1002 => same(FindLevel::Full),
        0x103 | 1012 => same(FindLevel::Names),
        0x104 | 1003 => same(FindLevel::Both),
        0x105 | 1038 => nearest(FindLevel::IdBoth, "FileIdFullDirectoryInformation"),
        0x106 | 1037 => same(FindLevel::IdBoth),
        _ => None,
    }
}

/// The verb's level can be replayed.
pub(crate) fn is_supported(verb: Verb, level: u64) -> bool {
    describe(verb, level).is_some()
}

/// Describes what SMB2 queries for a verb's level and, if that is another class, what it replaces.
/// `None` if the level cannot be replayed.
pub(crate) fn describe(verb: Verb, level: u64) -> Option<(String, Option<&'static str>)> {
    fn text<L: std::fmt::Debug>(mapped: MappedLevel<L>) -> (String, Option<&'static str>) {
        (format!("{:?}", mapped.level), mapped.instead_of)
    }
    match verb {
        Verb::QueryPath | Verb::QueryFile => file(level).map(text),
        Verb::SetFile => change(level).map(text),
        Verb::QueryFs => volume(level).map(text),
        Verb::FindFirst => find(level).map(text),
        _ => None,
    }
}

/// The levels of a verb that can be replayed, for messages.
pub(crate) fn supported(verb: Verb) -> String {
    let all = (0..=2000).filter(|level| is_supported(verb, *level));
    all.map(|level| level.to_string()).collect::<Vec<_>>().join(", ")
}
