//! NFS version 2 (RFC 1094), every procedure.

mod convert;

use crate::wire::rpc::ReplyOutcome;
use crate::wire::v2::{
    ATTRIBUTES2_BYTES, AttrOk, CreateArgs, DATA_BYTES_MAX, Data2, DirOpOk, Entry, GetAttrArgs,
    Handle2, LinkArgs, LookupArgs, MkDirArgs, Procedure, ReadArgs, ReadDirArgs, ReadLinkArgs,
    ReadLinkOk, ReadOk, RemoveArgs, RenameArgs, Reply2, RmDirArgs, SetAttrArgs, StatFsArgs,
    Status2, SymlinkArgs, WriteArgs,
};
use crate::wire::{Encode, Name, Path};

use self::convert::{attributes2, settings, space2};
use super::{NfsCore, Turn};
use crate::server::store::{
    Caller, Creation, Detail, Doomed, FileAttributes, ListEnd, New, Object, Place, Status3,
};

/// Bytes before the data of a successful READ: status, attributes, length.
const READ_HEAD_BYTES: usize = 4 + ATTRIBUTES2_BYTES + 4;
/// Bytes of a listing without entries: status, end of the list, end of the directory.
const FRAME_BYTES: usize = 4 + 4 + 4;

pub(super) fn answer(
    core: &NfsCore,
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ReplyOutcome> {
    let procedure = Procedure::from_number(turn.procedure);
    match procedure.ok_or(ReplyOutcome::ProcedureUnavailable)? {
        // ROOT is obsolete and WRITECACHE was never specified: both answer with nothing.
        Procedure::Null | Procedure::Root | Procedure::WriteCache => turn.arguments::<()>()?,
        Procedure::GetAttr => reply(get_attributes(core, &turn.arguments()?), out),
        Procedure::SetAttr => reply(set_attributes(core, &turn.arguments()?), out),
        Procedure::Lookup => reply(lookup(core, &turn.arguments()?), out),
        Procedure::ReadLink => read_link(core, &turn.arguments()?, out),
        Procedure::Read => read(core, &turn.arguments()?, out),
        Procedure::Write => reply(write(core, &turn.arguments()?), out),
        Procedure::Create => reply(create(core, turn.caller, &turn.arguments()?), out),
        Procedure::Remove => {
            let RemoveArgs { dir, name } = turn.arguments()?;
            reply(remove(core, dir, name, Doomed::File), out);
        }
        Procedure::Rename => reply(rename(core, &turn.arguments()?), out),
        Procedure::Link => reply(link(core, &turn.arguments()?), out),
        Procedure::Symlink => reply(symlink(core, turn.caller, &turn.arguments()?), out),
        Procedure::MkDir => reply(make_directory(core, turn.caller, &turn.arguments()?), out),
        Procedure::RmDir => {
            let RmDirArgs { dir, name } = turn.arguments()?;
            reply(remove(core, dir, name, Doomed::Directory), out);
        }
        Procedure::ReadDir => read_directory(core, &turn.arguments()?, out),
        Procedure::StatFs => {
            let StatFsArgs { file } = turn.arguments()?;
            let found = core.object_of(&file.0).and_then(|object| core.store.attributes(object));
            reply(found.map(|_| space2(&core.store.space())), out);
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

pub(super) fn handle2(bytes: [u8; super::handle::BYTES]) -> Handle2 {
    Handle2(bytes)
}

fn reply<T: Encode>(result: Result<T, Status3>, out: &mut Vec<u8>) {
    match result {
        Ok(ok) => Reply2::Ok(ok).encode(out),
        Err(fault) => Reply2::<()>::Err(fault.into()).encode(out),
    }
}

fn place<'a>(core: &NfsCore, dir: Handle2, name: Name<'a>) -> Result<Place<'a>, Status3> {
    Ok(Place { directory: core.object_of(&dir.0)?, name: name.0 })
}

fn dir_op(core: &NfsCore, (object, found): (Object, FileAttributes)) -> DirOpOk {
    DirOpOk { file: handle2(core.handle_of(object)), attributes: attributes2(&found) }
}

fn get_attributes(core: &NfsCore, args: &GetAttrArgs) -> Result<AttrOk, Status3> {
    let found = core.store.attributes(core.object_of(&args.file.0)?)?;
    Ok(AttrOk { attributes: attributes2(&found) })
}

fn set_attributes(core: &NfsCore, args: &SetAttrArgs) -> Result<AttrOk, Status3> {
    let object = core.object_of(&args.file.0)?;
    let change = core.store.set(object, &settings(&args.attributes), None)?;
    after(core, object, change.after)
}

/// Attributes after a change.
fn after(core: &NfsCore, object: Object, known: Option<FileAttributes>) -> Result<AttrOk, Status3> {
    let found = known.map_or_else(|| core.store.attributes(object), Ok)?;
    Ok(AttrOk { attributes: attributes2(&found) })
}

fn lookup(core: &NfsCore, args: &LookupArgs<'_>) -> Result<DirOpOk, Status3> {
    let found = core.store.lookup(place(core, args.dir, args.name)?)?;
    Ok(dir_op(core, found))
}

fn read_link(core: &NfsCore, args: &ReadLinkArgs, out: &mut Vec<u8>) {
    let mut text = Vec::new();
    let object = core.object_of(&args.file.0);
    let read = object.and_then(|object| core.store.read_link(object, &mut text));
    reply(read.map(|()| ReadLinkOk { path: Path(&text) }), out);
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

fn write(core: &NfsCore, args: &WriteArgs<'_>) -> Result<AttrOk, Status3> {
    let object = core.object_of(&args.file.0)?;
    let offset = args.offset.into();
    let change = core.store.write(object, offset, args.data.0)?;
    after(core, object, change.after)
}

fn create(core: &NfsCore, caller: Caller, args: &CreateArgs<'_>) -> Result<DirOpOk, Status3> {
    let place = place(core, args.dir, args.name)?;
    let new = New::File(Creation::Unchecked);
    let made = core.store.create(place, new, &settings(&args.attributes), caller)?;
    Ok(dir_op(core, (made.object, made.attributes)))
}

fn make_directory(
    core: &NfsCore,
    caller: Caller,
    args: &MkDirArgs<'_>,
) -> Result<DirOpOk, Status3> {
    let place = place(core, args.dir, args.name)?;
    let made = core.store.create(place, New::Directory, &settings(&args.attributes), caller)?;
    Ok(dir_op(core, (made.object, made.attributes)))
}

fn symlink(core: &NfsCore, caller: Caller, args: &SymlinkArgs<'_>) -> Result<(), Status3> {
    let place = place(core, args.dir, args.name)?;
    let new = New::Link(args.path.0);
    core.store.create(place, new, &settings(&args.attributes), caller).map(drop)
}

fn remove(core: &NfsCore, dir: Handle2, name: Name<'_>, doomed: Doomed) -> Result<(), Status3> {
    core.store.remove(place(core, dir, name)?, doomed).map(drop)
}

fn rename(core: &NfsCore, args: &RenameArgs<'_>) -> Result<(), Status3> {
    let from = place(core, args.from_dir, args.from_name)?;
    core.store.rename(from, place(core, args.to_dir, args.to_name)?).map(drop)
}

fn link(core: &NfsCore, args: &LinkArgs<'_>) -> Result<(), Status3> {
    let object = core.object_of(&args.file.0)?;
    core.store.link(object, place(core, args.dir, args.name)?).map(drop)
}

fn read_directory(core: &NfsCore, args: &ReadDirArgs, out: &mut Vec<u8>) {
    let start = out.len();
    let mut room = (args.count.min(DATA_BYTES_MAX) as usize).saturating_sub(FRAME_BYTES);
    let mut entries = 0_u32;
    Status2::OK.encode(out);
    let listed = core.object_of(&args.dir.0).and_then(|object| {
        core.store.list(object, args.cookie.into(), Detail::Names, &mut |listed| {
            let entry = Entry {
                fileid: convert::file_id2(listed.file_id),
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
        // RFC 1094 knows no error for this; a client that got nothing would ask for ever.
        Ok(ListEnd::Interrupted) if entries == 0 => {
            out.truncate(start);
            Reply2::<()>::Err(Status2::IO).encode(out);
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
