//! NFS version 2 (RFC 1094), every procedure, and its form of attributes: 32 bits instead of 64,
//! microseconds, types in the mode.

use super::{CallContext, NfsCore};
use crate::server::store::{
    Caller, Creation, Detail, FileAttributes, FileKind, ListEnd, New, NodePath, Object,
    RemovalKind, SetAttributes, SetTime, Space, Status3, TimeSpec3,
};
use crate::wire::rpc::ReplyOutcome;
use crate::wire::v2::{
    ATTRIBUTES2_BYTES, CreateArgs, DATA_BYTES_MAX, Data2, DirOpArgs, DirOpOk, Entry,
    FileAttributes2, FileKind2, Handle2, LinkArgs, Procedure, ReadArgs, ReadDirArgs, ReadOk,
    RenameArgs, Reply2, SetAttrArgs, SetAttributes2, StatFsOk, Status2, SymlinkArgs, TimeVal2,
    WriteArgs,
};
use crate::wire::{Encode, Name, Path};

/// Bytes before the data of a successful READ: status, attributes, length.
const READ_HEAD_BYTES: usize = 4 + ATTRIBUTES2_BYTES + 4;
/// Bytes of a listing without entries: status, end of the list, end of the directory.
const FRAME_BYTES: usize = 4 + 4 + 4;

pub(super) fn answer(
    core: &NfsCore,
    context: &CallContext<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ReplyOutcome> {
    let procedure = Procedure::from_number(context.procedure);
    match procedure.ok_or(ReplyOutcome::ProcedureUnavailable)? {
        // ROOT is obsolete and WRITECACHE was never specified: both answer with nothing.
        Procedure::Null | Procedure::Root | Procedure::WriteCache => context.arguments::<()>()?,
        Procedure::GetAttr => reply(get_attributes(core, context.arguments()?), out),
        Procedure::SetAttr => reply(set_attributes(core, &context.arguments()?), out),
        Procedure::Lookup => reply(lookup(core, &context.arguments()?), out),
        Procedure::ReadLink => read_link(core, context.arguments()?, out),
        Procedure::Read => read(core, &context.arguments()?, out),
        Procedure::Write => reply(write(core, &context.arguments()?), out),
        Procedure::Create => {
            let new = New::File(Creation::Unchecked);
            reply(create(core, context.caller, new, &context.arguments()?), out);
        }
        Procedure::Remove => {
            reply(remove(core, RemovalKind::File, &context.arguments()?), out);
        }
        Procedure::Rename => reply(rename(core, &context.arguments()?), out),
        Procedure::Link => reply(link(core, &context.arguments()?), out),
        Procedure::Symlink => reply(symlink(core, context.caller, &context.arguments()?), out),
        Procedure::MkDir => {
            reply(create(core, context.caller, New::Directory, &context.arguments()?), out);
        }
        Procedure::RmDir => {
            reply(remove(core, RemovalKind::Directory, &context.arguments()?), out);
        }
        Procedure::ReadDir => read_directory(core, &context.arguments()?, out),
        Procedure::StatFs => {
            let attributes = get_attributes(core, context.arguments()?);
            reply(attributes.map(|_| space2(&core.store.space())), out);
        }
    }
    Ok(())
}

pub(super) fn is_remembered(procedure: u32) -> bool {
    use Procedure::{Create, Link, MkDir, Remove, Rename, RmDir, SetAttr, Symlink};
    matches!(
        Procedure::from_number(procedure),
        Some(SetAttr | Create | Remove | Rename | Link | Symlink | MkDir | RmDir)
    )
}

fn reply<T: Encode>(result: Result<T, Status3>, out: &mut Vec<u8>) {
    match result {
        Ok(ok) => Reply2::Ok(ok).encode(out),
        Err(fault) => Reply2::<()>::Err(fault.into(), ()).encode(out),
    }
}

fn node_path<'a>(core: &NfsCore, dir: Handle2, name: Name<'a>) -> Result<NodePath<'a>, Status3> {
    Ok(NodePath { directory: core.object_of(&dir.0)?, name: name.0 })
}

fn dir_op(core: &NfsCore, (object, attributes): (Object, FileAttributes)) -> DirOpOk {
    DirOpOk { file: Handle2(core.handle_of(object)), attributes: attributes2(&attributes) }
}

fn get_attributes(core: &NfsCore, file: Handle2) -> Result<FileAttributes2, Status3> {
    core.store.attributes(core.object_of(&file.0)?).map(|attributes| attributes2(&attributes))
}

fn set_attributes(core: &NfsCore, args: &SetAttrArgs) -> Result<FileAttributes2, Status3> {
    let object = core.object_of(&args.file.0)?;
    let change = core.store.set(object, &settings(&args.attributes), None)?;
    after(core, object, change.after)
}

/// Attributes after a change.
fn after(
    core: &NfsCore,
    object: Object,
    changed: Option<FileAttributes>,
) -> Result<FileAttributes2, Status3> {
    let attributes = changed.map_or_else(|| core.store.attributes(object), Ok)?;
    Ok(attributes2(&attributes))
}

fn lookup(core: &NfsCore, args: &DirOpArgs<'_>) -> Result<DirOpOk, Status3> {
    let entry = core.store.lookup(node_path(core, args.dir, args.name)?)?;
    Ok(dir_op(core, entry))
}

fn read_link(core: &NfsCore, link: Handle2, out: &mut Vec<u8>) {
    let mut text = Vec::new();
    let object = core.object_of(&link.0);
    let read = object.and_then(|object| core.store.read_link(object, &mut text));
    reply(read.map(|()| Path(&text)), out);
}

/// Reads straight into the reply, and puts the head in front of the data afterwards.
fn read(core: &NfsCore, args: &ReadArgs, out: &mut Vec<u8>) {
    let start = out.len();
    let data_at = start + READ_HEAD_BYTES;
    out.resize(data_at, 0);
    let count = args.count.min(DATA_BYTES_MAX);
    let done = core
        .object_of(&args.file.0)
        .and_then(|object| core.store.read(object, args.offset.into(), count, out));
    let done = match done {
        Ok(done) => done,
        Err(fault) => {
            out.truncate(start);
            return reply::<()>(Err(fault), out);
        }
    };
    let count = (out.len() - data_at) as u32;
    out.resize(data_at + count.next_multiple_of(4) as usize, 0);
    let end = out.len();
    let attributes = attributes2(&done.attributes);
    Reply2::Ok(ReadOk { attributes, data: Data2(&[]) }).encode(out);
    debug_assert_eq!(out.len() - end, READ_HEAD_BYTES);
    out.copy_within(end.., start);
    out.truncate(end);
    out[data_at - 4..data_at].copy_from_slice(&count.to_be_bytes());
}

fn write(core: &NfsCore, args: &WriteArgs<'_>) -> Result<FileAttributes2, Status3> {
    let object = core.object_of(&args.file.0)?;
    let offset = args.offset.into();
    let change = core.store.write(object, offset, args.data.0)?;
    after(core, object, change.after)
}

fn create(
    core: &NfsCore,
    caller: Caller,
    new: New<'_>,
    args: &CreateArgs<'_>,
) -> Result<DirOpOk, Status3> {
    let path = node_path(core, args.dir, args.name)?;
    let made = core.store.create(path, new, &settings(&args.attributes), caller)?;
    Ok(dir_op(core, (made.object, made.attributes)))
}

fn symlink(core: &NfsCore, caller: Caller, args: &SymlinkArgs<'_>) -> Result<(), Status3> {
    let path = node_path(core, args.dir, args.name)?;
    let new = New::Link(args.path.0);
    core.store.create(path, new, &settings(&args.attributes), caller).map(drop)
}

fn remove(core: &NfsCore, removal: RemovalKind, args: &DirOpArgs<'_>) -> Result<(), Status3> {
    core.store.remove(node_path(core, args.dir, args.name)?, removal).map(drop)
}

fn rename(core: &NfsCore, args: &RenameArgs<'_>) -> Result<(), Status3> {
    let from = node_path(core, args.from_dir, args.from_name)?;
    core.store.rename(from, node_path(core, args.to_dir, args.to_name)?).map(drop)
}

fn link(core: &NfsCore, args: &LinkArgs<'_>) -> Result<(), Status3> {
    let object = core.object_of(&args.file.0)?;
    core.store.link(object, node_path(core, args.dir, args.name)?).map(drop)
}

fn read_directory(core: &NfsCore, args: &ReadDirArgs, out: &mut Vec<u8>) {
    let start = out.len();
    let mut room = (args.count.min(DATA_BYTES_MAX) as usize).saturating_sub(FRAME_BYTES);
    let mut entries = 0_u32;
    Status2::OK.encode(out);
    let listed = core.object_of(&args.dir.0).and_then(|object| {
        core.store.list(object, args.cookie.into(), Detail::Names, &mut |listed| {
            let entry = Entry {
                fileid: file_id2(listed.file_id),
                name: Name(listed.name),
                // Cookies are below 2³¹.
                cookie: listed.cookie as u32,
            };
            let Some(left) = room.checked_sub(entry.bytes()) else { return false };
            room = left;
            entries += 1;
            true.encode(out);
            entry.encode(out);
            true
        })
    });
    match listed {
        // RFC 1094 has no error for this; a client that got nothing would retry for ever.
        Ok(ListEnd::Interrupted) if entries == 0 => {
            out.truncate(start);
            Reply2::<()>::Err(Status2::IO, ()).encode(out);
        }
        Ok(end) => {
            false.encode(out);
            (end == ListEnd::Complete).encode(out);
        }
        Err(fault) => {
            out.truncate(start);
            reply::<()>(Err(fault), out);
        }
    }
}

/// The value with which clients request the server's clock.
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
fn file_id2(file_id: u64) -> u32 {
    (file_id ^ (file_id >> 32)) as u32
}

fn attributes2(of: &FileAttributes) -> FileAttributes2 {
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

fn settings(requested: &SetAttributes2) -> SetAttributes {
    let set_time = |requested_time: Option<TimeVal2>| match requested_time {
        None => SetTime::Keep,
        Some(time) if time.microseconds == SERVER_TIME_MICROSECONDS => SetTime::ServerTime,
        Some(time) => SetTime::To(TimeSpec3 {
            seconds: time.seconds,
            nanoseconds: (time.microseconds % 1_000_000) * 1000,
        }),
    };
    SetAttributes {
        mode: requested.mode.map(|mode| mode & 0o7777),
        uid: requested.uid,
        gid: requested.gid,
        size: requested.size.map(u64::from),
        atime: set_time(requested.atime),
        mtime: set_time(requested.mtime),
    }
}

/// Blocks as large as they must be for 31 bits to count them, which all clients can.
fn space2(space: &Space) -> StatFsOk {
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
