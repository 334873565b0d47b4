//! Attributes: GETATTR, SETATTR, ACCESS. RFC 8881 §5, §18.1, §18.7, §18.30

use std::io::Write as _;

use super::PSEUDO_ROOT;
use super::context::Compound;
use crate::server::core::v3::permitted;
use crate::server::core::{HANDLE_BYTES, NfsCore, STREAM_DATA_BYTES_MAX};
use crate::server::store::{FileAttributes, FileKind, Object, SetAttributes};
use crate::wire::v4::{
    AccessOk4, Attributes4, Bitmap, FileKind4, FsId4, Opaque, Pair32, SetAttrArgs4, Status4,
    attribute, share,
};
use crate::wire::{Encode as _, Name};

/// Attributes that the server has.
const SUPPORTED: Bitmap = attribute::OF_FILES.or(attribute::OF_SPACE).or(attribute::OF_EXPORT).or(
    Bitmap::from_numbers(&[
        attribute::LINK_SUPPORT,
        attribute::SYMLINK_SUPPORT,
        attribute::NAMED_ATTRIBUTES,
        attribute::UNIQUE_HANDLES,
        attribute::RDATTR_ERROR,
        attribute::FILEHANDLE,
    ]),
);
/// Those that can be set.
const SETTABLE: Bitmap = Bitmap::from_numbers(&[
    attribute::SIZE,
    attribute::MODE,
    attribute::OWNER,
    attribute::OWNER_GROUP,
]);
/// Accesses that the server evaluates: all of NFSv3.
const ACCESS_SUPPORTED: u32 = 0x3f;

pub(super) fn get(
    compound: &Compound<'_>,
    requested: Bitmap,
    out: &mut Vec<u8>,
) -> Result<(), Status4> {
    let object = compound.object()?;
    let current = current(compound.core, object)?;
    encode(compound.core, (object, &current), requested, out);
    Ok(())
}

pub(super) fn set(
    compound: &Compound<'_>,
    args: &SetAttrArgs4<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Status4> {
    let object = compound.changeable()?;
    let settings = settings(&args.attributes)?;
    compound.v4().settle(object, compound.session.client.id, share::WRITE)?;
    if settings.size.is_some() {
        let state = compound.resolve(args.state)?;
        compound.session.client.open_files().check(object, state, share::WRITE)?;
    }
    compound.core.store.set(object, &settings, None)?;
    args.attributes.mask().encode(out);
    Ok(())
}

pub(super) fn access(
    compound: &Compound<'_>,
    requested: u32,
    out: &mut Vec<u8>,
) -> Result<(), Status4> {
    let current = current(compound.core, compound.object()?)?;
    let supported = requested & ACCESS_SUPPORTED;
    AccessOk4 { supported, granted: supported & permitted(&current) }.encode(out);
    Ok(())
}

/// Attributes of an object, or of the root of the pseudo file system.
pub(super) fn current(core: &NfsCore, object: Object) -> Result<FileAttributes, Status4> {
    if object != PSEUDO_ROOT {
        return Ok(core.store.attributes(object)?);
    }
    let root = core.store.attributes(core.store.root())?;
    Ok(FileAttributes { fileid: 1, fsid: 0, mode: 0o555, nlink: 3, size: 1, ..root })
}

/// What SETATTR, CREATE or OPEN sets.
pub(super) fn settings(attributes: &Attributes4<'_>) -> Result<SetAttributes, Status4> {
    let mask = attributes.mask();
    if mask.and(SETTABLE) != mask {
        return Err(Status4::INVAL);
    }
    let number = |name: Name<'_>| {
        let text = std::str::from_utf8(name.0).ok();
        text.and_then(|text| text.parse().ok()).ok_or(Status4::BADOWNER)
    };
    Ok(SetAttributes {
        mode: attributes.mode,
        uid: attributes.owner.map(number).transpose()?,
        gid: attributes.owner_group.map(number).transpose()?,
        size: attributes.size,
        ..SetAttributes::default()
    })
}

/// The count of the changes of an object: the time of the last one, of which each has another.
pub(super) fn change(current: &FileAttributes) -> u64 {
    current.ctime.ns()
}

/// Appends the requested attributes of an object.
pub(super) fn encode(
    core: &NfsCore,
    (object, current): (Object, &FileAttributes),
    requested: Bitmap,
    out: &mut Vec<u8>,
) {
    let handle: [u8; HANDLE_BYTES] = core.handle_of(object);
    let (owner, group) = (Decimal::new(current.uid), Decimal::new(current.gid));
    let space = core.store.space();
    Attributes4 {
        supported: Some(SUPPORTED),
        kind: Some(kind4(current.kind)),
        fh_expire_type: Some(0),
        change: Some(change(current)),
        size: Some(current.size),
        // There is no LINK here.
        link_support: Some(false),
        symlink_support: Some(true),
        named_attributes: Some(false),
        fsid: Some(FsId4 { major: current.fsid, minor: 0 }),
        unique_handles: Some(true),
        lease_time_s: Some(core.v4().config.lease_s),
        error: Some(Status4::OK),
        handle: Some(Opaque(&handle)),
        file_id: Some(current.fileid),
        files_available: Some(space.free_files),
        files_free: Some(space.free_files),
        files_total: Some(space.total_files),
        read_bytes_max: Some(STREAM_DATA_BYTES_MAX.into()),
        write_bytes_max: Some(STREAM_DATA_BYTES_MAX.into()),
        mode: Some(current.mode),
        links: Some(current.nlink),
        owner: Some(Name(owner.text())),
        owner_group: Some(Name(group.text())),
        raw_device: Some(Pair32 { major: current.device.major, minor: current.device.minor }),
        space_available: Some(space.free_bytes),
        space_free: Some(space.free_bytes),
        space_total: Some(space.total_bytes),
        space_used: Some(current.used),
        time_access: Some(current.atime.into()),
        time_metadata: Some(current.ctime.into()),
        time_modify: Some(current.mtime.into()),
        mounted_on_file_id: Some(current.fileid),
    }
    .only(requested)
    .encode(out);
}

fn kind4(kind: FileKind) -> FileKind4 {
    match kind {
        FileKind::Regular => FileKind4::Regular,
        FileKind::Directory => FileKind4::Directory,
        FileKind::BlockDevice => FileKind4::BlockDevice,
        FileKind::CharacterDevice => FileKind4::CharacterDevice,
        FileKind::Symlink => FileKind4::Symlink,
        FileKind::Socket => FileKind4::Socket,
        FileKind::Fifo => FileKind4::Fifo,
    }
}

/// The number of a user or group, as text. RFC 8881 §5.9
struct Decimal {
    digits: [u8; 10],
    length: usize,
}

impl Decimal {
    fn new(number: u32) -> Self {
        let mut digits = [0; 10];
        let mut rest = &mut digits[..];
        // No number has more than ten digits.
        let _ = write!(rest, "{number}");
        let length = 10 - rest.len();
        Self { digits, length }
    }

    fn text(&self) -> &[u8] {
        &self.digits[..self.length]
    }
}
