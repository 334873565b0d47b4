//! Objects, their content and the file system: GETATTR to WRITE, FSSTAT to COMMIT.

use plimsoll_servers::memory::FILE_BYTES_MAX;

use super::{handle3, reply};
use crate::server::core::{Link, NfsCore};
use crate::server::store::{FileAttributes, FileKind, LINKS_MAX, NAME_BYTES_MAX, Status3};
use crate::wire::v3::{
    AccessArgs, AccessOk, CommitArgs, CommitOk, DirOpArgs, FsInfoOk, FsStatOk, Handle, LookupOk,
    LookupRes, PathConfOk, PostOpAttr, ReadArgs, ReadLinkOk, ReadOk, ReadRes, SetAttrArgs,
    TimeSpec3, WriteArgs, WriteOk, access as bits, properties,
};
use crate::wire::{Encode as _, Path};

/// Best size of a READDIR.
const LISTING_BYTES: u32 = 32 << 10;

pub(super) fn get_attributes(core: &NfsCore, of: Handle<'_>, out: &mut Vec<u8>) {
    reply(core.attributes3(of), || (), out);
}

pub(super) fn set_attributes(core: &NfsCore, args: SetAttrArgs<'_>, out: &mut Vec<u8>) {
    let set = core
        .object_of(args.object.bytes())
        .and_then(|object| core.store.set(object, &args.attributes, args.guard));
    reply(set, || core.wcc_after_failure(args.object), out);
}

pub(super) fn lookup(core: &NfsCore, args: DirOpArgs<'_>, out: &mut Vec<u8>) {
    let looked_up = core.place3(args.dir, args.name.0).and_then(|path| core.store.lookup(path));
    let dir_attributes = core.after_failure(args.dir);
    match looked_up {
        Ok((object, attributes)) => LookupRes::Ok(LookupOk {
            object: handle3(&core.handle_of(object)),
            attributes: Some(attributes),
            dir_attributes,
        })
        .encode(out),
        Err(fault) => LookupRes::Err(fault, dir_attributes).encode(out),
    }
}

pub(super) fn access(core: &NfsCore, args: AccessArgs<'_>, out: &mut Vec<u8>) {
    let granted = core.attributes3(args.object).map(|current| AccessOk {
        attributes: Some(current),
        access: args.access & permitted(&current),
    });
    reply(granted, no_attributes, out);
}

/// Every caller may do everything that makes sense.
pub(in super::super) fn permitted(of: &FileAttributes) -> u32 {
    match of.kind {
        FileKind::Directory => {
            bits::READ | bits::LOOKUP | bits::MODIFY | bits::EXTEND | bits::DELETE
        }
        _ if of.mode & 0o111 != 0 => bits::READ | bits::MODIFY | bits::EXTEND | bits::EXECUTE,
        _ => bits::READ | bits::MODIFY | bits::EXTEND,
    }
}

pub(super) fn read_link(core: &NfsCore, link: Handle<'_>, out: &mut Vec<u8>) {
    let mut text = Vec::new();
    let object = core.object_of(link.bytes());
    let read = object.and_then(|object| core.store.read_link(object, &mut text));
    let attributes = core.after_failure(link);
    let read = read.map(|()| ReadLinkOk { attributes, path: Path(&text) });
    reply(read, || attributes, out);
}

/// Where no attributes can be had.
fn no_attributes() -> PostOpAttr {
    None
}

pub(super) fn file_system_state(core: &NfsCore, root: Handle<'_>, out: &mut Vec<u8>) {
    let space = core.store.space();
    let state = core.attributes3(root).map(|current| FsStatOk {
        attributes: Some(current),
        total_bytes: space.total_bytes,
        free_bytes: space.free_bytes,
        available_bytes: space.free_bytes,
        total_files: space.total_files,
        free_files: space.free_files,
        available_files: space.free_files,
        invariant_s: 0,
    });
    reply(state, no_attributes, out);
}

pub(super) fn file_system_info(core: &NfsCore, link: Link, root: Handle<'_>, out: &mut Vec<u8>) {
    let data_bytes_max = link.data_bytes_max();
    let info = core.attributes3(root).map(|current| FsInfoOk {
        attributes: Some(current),
        read_max: data_bytes_max,
        read_preferred: data_bytes_max,
        read_multiple: 4096,
        write_max: data_bytes_max,
        write_preferred: data_bytes_max,
        write_multiple: 4096,
        readdir_preferred: LISTING_BYTES,
        file_bytes_max: FILE_BYTES_MAX,
        time_delta: TimeSpec3 { seconds: 0, nanoseconds: 1 },
        properties: properties::LINK
            | properties::SYMLINK
            | properties::HOMOGENEOUS
            | properties::CAN_SET_TIME,
    });
    reply(info, no_attributes, out);
}

pub(super) fn path_limits(core: &NfsCore, object: Handle<'_>, out: &mut Vec<u8>) {
    let limits = core.attributes3(object).map(|current| PathConfOk {
        attributes: Some(current),
        link_max: LINKS_MAX,
        name_bytes_max: NAME_BYTES_MAX as u32,
        no_trunc: true,
        chown_restricted: false,
        case_insensitive: false,
        case_preserving: true,
    });
    reply(limits, no_attributes, out);
}

/// Bytes before the data of a successful READ: status, attributes behind their flag, count, end
/// of file, length of the data.
const READ_HEAD_BYTES: usize = 4 + 4 + 84 + 4 + 4 + 4;

/// Reads straight into the reply, and puts the head in front of the data afterwards.
pub(super) fn read(core: &NfsCore, link: Link, args: ReadArgs<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    let data_at = start + READ_HEAD_BYTES;
    out.resize(data_at, 0);
    let count = args.count.min(link.data_bytes_max());
    let done = core
        .object_of(args.file.bytes())
        .and_then(|object| core.store.read(object, args.offset, count, out));
    let done = match done {
        Ok(done) => done,
        Err(fault) => {
            out.truncate(start);
            return ReadRes::Err(fault, core.after_failure(args.file)).encode(out);
        }
    };
    let count = (out.len() - data_at) as u32;
    out.resize(data_at + count.next_multiple_of(4) as usize, 0);
    let end = out.len();
    let attributes = Some(done.attributes);
    ReadRes::Ok(ReadOk { attributes, count, eof: done.at_end, data: &[] }).encode(out);
    debug_assert_eq!(out.len() - end, READ_HEAD_BYTES);
    out.copy_within(end.., start);
    out.truncate(end);
    out[data_at - 4..data_at].copy_from_slice(&count.to_be_bytes());
}

pub(super) fn write(core: &NfsCore, args: WriteArgs<'_>, out: &mut Vec<u8>) {
    let written = core.object_of(args.file.bytes()).and_then(|object| {
        let data = args.data.get(..args.count as usize).ok_or(Status3::INVAL)?;
        core.store.write(object, args.offset, data)
    });
    let written = written.map(|change| WriteOk {
        wcc: change,
        count: args.count,
        committed: args.stable,
        verifier: core.store.write_verifier(),
    });
    reply(written, || core.wcc_after_failure(args.file), out);
}

/// Nothing waits to be written: returns only the verifier.
pub(super) fn commit(core: &NfsCore, args: CommitArgs<'_>, out: &mut Vec<u8>) {
    let object = core.object_of(args.file.bytes());
    let committed = object.and_then(|object| core.store.commit(object));
    let wcc = core.wcc_after_failure(args.file);
    let verifier = core.store.write_verifier();
    reply(committed.map(|()| CommitOk { wcc, verifier }), || wcc, out);
}
