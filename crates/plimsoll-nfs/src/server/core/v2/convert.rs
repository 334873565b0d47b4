//! What NFSv2 makes of attributes: 32 bits where there are 64, microseconds, types in the mode.

use crate::wire::v2::{
    DATA_BYTES_MAX, FileAttributes2, FileKind2, SetAttributes2, StatFsOk, Status2, TimeVal2,
};

use crate::server::store::{
    FileAttributes, FileKind, SetAttributes, SetTime, Space, Status3, TimeSpec3,
};

/// What clients set to mean the server's clock.
const SERVER_TIME_MICROSECONDS: u32 = 1_000_000;

impl From<Status3> for Status2 {
    /// Both versions share the numbers, and NFSv2 has fewer of them.
    fn from(status: Status3) -> Self {
        match status {
            Status3::INVAL | Status3::MLINK => Self::ACCES,
            Status3::BADHANDLE => Self::STALE,
            Status3(number) if Self(number).name().is_some() => Self(number),
            _ => Self::IO,
        }
    }
}

/// Both halves, so that numbers that differ mostly stay different.
pub(super) fn file_id2(file_id: u64) -> u32 {
    (file_id ^ (file_id >> 32)) as u32
}

pub(super) fn attributes2(of: &FileAttributes) -> FileAttributes2 {
    // Type bits as UNIX has them: clients look at them instead of the kind.
    let (kind, type_bits) = match of.kind {
        FileKind::Regular => (FileKind2::Regular, 0o100_000),
        FileKind::Directory => (FileKind2::Directory, 0o040_000),
        FileKind::Symlink => (FileKind2::Symlink, 0o120_000),
        FileKind::BlockDevice => (FileKind2::BlockDevice, 0o060_000),
        FileKind::CharacterDevice => (FileKind2::CharacterDevice, 0o020_000),
        FileKind::Socket => (FileKind2::Socket, 0o140_000),
        FileKind::Fifo => (FileKind2::Fifo, 0o010_000),
    };
    FileAttributes2 {
        kind,
        mode: of.mode | type_bits,
        nlink: of.nlink,
        uid: of.uid,
        gid: of.gid,
        size: clamp(of.size),
        block_bytes: DATA_BYTES_MAX,
        device: (of.device.major << 8) | (of.device.minor & 0xff),
        blocks: clamp(of.used.div_ceil(512)),
        fsid: file_id2(of.fsid),
        fileid: file_id2(of.fileid),
        atime: time2(of.atime),
        mtime: time2(of.mtime),
        ctime: time2(of.ctime),
    }
}

fn clamp(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn time2(time: TimeSpec3) -> TimeVal2 {
    TimeVal2 { seconds: time.seconds, microseconds: time.nanoseconds / 1000 }
}

pub(super) fn settings(wanted: &SetAttributes2) -> SetAttributes {
    let set_time = |wish: Option<TimeVal2>| match wish {
        None => SetTime::Keep,
        Some(time) if time.microseconds == SERVER_TIME_MICROSECONDS => SetTime::ServerTime,
        Some(time) => SetTime::To(TimeSpec3 {
            seconds: time.seconds,
            nanoseconds: (time.microseconds % 1_000_000) * 1000,
        }),
    };
    SetAttributes {
        mode: wanted.mode.map(|mode| mode & 0o7777),
        uid: wanted.uid,
        gid: wanted.gid,
        size: wanted.size.map(u64::from),
        atime: set_time(wanted.atime),
        mtime: set_time(wanted.mtime),
    }
}

/// Blocks as large as they must be for 31 bits to count them, which all clients can.
pub(super) fn space2(space: &Space) -> StatFsOk {
    let mut block_bytes = 4096_u32;
    while space.total_bytes / u64::from(block_bytes) > i32::MAX as u64 && block_bytes < 1 << 30 {
        block_bytes *= 2;
    }
    let blocks = |bytes: u64| clamp(bytes / u64::from(block_bytes));
    StatFsOk {
        transfer_bytes: DATA_BYTES_MAX,
        block_bytes,
        blocks: blocks(space.total_bytes),
        free_blocks: blocks(space.free_bytes),
        available_blocks: blocks(space.free_bytes),
    }
}
