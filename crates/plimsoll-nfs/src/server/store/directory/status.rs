//! What the system says of files, in the words of the store.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, StatxTimestamp, statx};
use rustix::io::Errno;

use crate::server::store::{Device, FileAttributes, FileKind, Status3, TimeSpec3};

/// What `stat` says of a file, and which of several with the same inode number it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status {
    pub(super) attributes: FileAttributes,
    /// Time of birth in nanoseconds: an inode number used again has another one, if the clock of
    /// the file system has ticked between. 0 where the file system keeps none.
    pub(super) generation: u64,
    mount: Option<u64>,
}

impl Status {
    pub(super) fn id(&self) -> u64 {
        self.attributes.fileid
    }

    pub(super) fn is_directory(&self) -> bool {
        self.attributes.kind == FileKind::Directory
    }

    /// [`Status3::ACCES`] for what is mounted inside of the export: inode numbers there are others.
    pub(super) fn same_mount(self, root: &Self) -> Result<Self, Status3> {
        if self.mount == root.mount { Ok(self) } else { Err(Status3::ACCES) }
    }
}

/// Status of what a descriptor is open on.
pub(super) fn of_descriptor(file: impl AsFd) -> Result<Status, Status3> {
    read(file, b"", AtFlags::EMPTY_PATH)
}

/// Status of a name in a directory, of the link itself where it is one.
pub(super) fn of_name(directory: impl AsFd, name: &[u8]) -> Result<Status, Status3> {
    read(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn read(directory: impl AsFd, name: &[u8], flags: AtFlags) -> Result<Status, Status3> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
    let found = statx(directory, name, flags, wanted).map_err(fault)?;
    let has = |flag: StatxFlags| found.stx_mask & flag.bits() != 0;
    let born = &found.stx_btime;
    let seconds = born.tv_sec.cast_unsigned();
    let born = seconds.wrapping_mul(1_000_000_000).wrapping_add(born.tv_nsec.into());
    Ok(Status {
        attributes: attributes(&found),
        generation: if has(StatxFlags::BTIME) { born } else { 0 },
        mount: has(StatxFlags::MNT_ID).then_some(found.stx_mnt_id),
    })
}

fn attributes(found: &Statx) -> FileAttributes {
    let kind = match FileType::from_raw_mode(found.stx_mode.into()) {
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::BlockDevice => FileKind::BlockDevice,
        FileType::CharacterDevice => FileKind::CharacterDevice,
        FileType::Socket => FileKind::Socket,
        FileType::Fifo => FileKind::Fifo,
        FileType::RegularFile | FileType::Unknown => FileKind::Regular,
    };
    FileAttributes {
        kind,
        mode: u32::from(found.stx_mode) & 0o7777,
        nlink: found.stx_nlink,
        uid: found.stx_uid,
        gid: found.stx_gid,
        size: found.stx_size,
        used: found.stx_blocks.saturating_mul(512),
        device: Device { major: found.stx_rdev_major, minor: found.stx_rdev_minor },
        fsid: (u64::from(found.stx_dev_major) << 32) | u64::from(found.stx_dev_minor),
        fileid: found.stx_ino,
        atime: time(&found.stx_atime),
        mtime: time(&found.stx_mtime),
        ctime: time(&found.stx_ctime),
    }
}

/// Times before 1970 and after 2106 are not for NFSv3.
fn time(stamp: &StatxTimestamp) -> TimeSpec3 {
    let seconds = u32::try_from(stamp.tv_sec.max(0)).unwrap_or(u32::MAX);
    TimeSpec3 { seconds, nanoseconds: stamp.tv_nsec }
}

pub(super) fn fault(error: Errno) -> Status3 {
    match error {
        Errno::PERM => Status3::PERM,
        Errno::NOENT => Status3::NOENT,
        Errno::ACCESS => Status3::ACCES,
        // The system was asked for a name that is a link, or leads elsewhere.
        Errno::LOOP => Status3::INVAL,
        Errno::XDEV => Status3::XDEV,
        Errno::EXIST => Status3::EXIST,
        Errno::NOTDIR => Status3::NOTDIR,
        Errno::ISDIR => Status3::ISDIR,
        Errno::INVAL | Errno::NXIO => Status3::INVAL,
        Errno::FBIG => Status3::FBIG,
        Errno::NOSPC => Status3::NOSPC,
        Errno::ROFS => Status3::ROFS,
        Errno::MLINK => Status3::MLINK,
        Errno::NAMETOOLONG => Status3::NAMETOOLONG,
        Errno::NOTEMPTY => Status3::NOTEMPTY,
        Errno::DQUOT => Status3::DQUOT,
        Errno::STALE => Status3::STALE,
        Errno::OPNOTSUPP | Errno::NOSYS => Status3::NOTSUPP,
        _ => Status3::IO,
    }
}
