//! Objects, their content and the file system: GETATTR to WRITE, FSSTAT to COMMIT.

use plimsoll_servers::memory::FILE_BYTES_MAX;

use super::handle3;
use crate::server::core::{Link, NfsCore};
use crate::server::store::{FileAttributes, FileKind, LINKS_MAX, NAME_BYTES_MAX, Status3};
use crate::wire::v3::{
    AccessArgs, AccessOk, AccessRes, CommitArgs, CommitOk, CommitRes, FsInfoArgs, FsInfoOk,
    FsInfoRes, FsStatArgs, FsStatOk, FsStatRes, GetAttrArgs, GetAttrOk, GetAttrRes, LookupArgs,
    LookupOk, LookupRes, PathConfArgs, PathConfOk, PathConfRes, ReadArgs, ReadLinkArgs, ReadLinkOk,
    ReadLinkRes, ReadOk, ReadRes, SetAttrArgs, SetAttrOk, SetAttrRes, TimeSpec3, WccData,
    WriteArgs, WriteOk, WriteRes, access as bits, properties,
};
use crate::wire::{Encode as _, Path};

/// Best size of a READDIR.
const LISTING_BYTES: u32 = 32 << 10;

pub(super) fn get_attributes(core: &NfsCore, args: GetAttrArgs<'_>, out: &mut Vec<u8>) {
    let object = core.object_of(args.object.bytes());
    match object.and_then(|object| core.store.attributes(object)) {
        Ok(found) => GetAttrRes::Ok(GetAttrOk { attributes: found }).encode(out),
        Err(fault) => GetAttrRes::Err(fault, ()).encode(out),
    }
}

pub(super) fn set_attributes(core: &NfsCore, args: SetAttrArgs<'_>, out: &mut Vec<u8>) {
    let set = core
        .object_of(args.object.bytes())
        .and_then(|object| core.store.set(object, &args.attributes, args.guard));
    match set {
        Ok(change) => SetAttrRes::Ok(SetAttrOk { wcc: change }),
        Err(fault) => SetAttrRes::Err(fault, core.wcc_after_failure(args.object)),
    }
    .encode(out);
}

pub(super) fn lookup(core: &NfsCore, args: LookupArgs<'_>, out: &mut Vec<u8>) {
    let found = core.place3(args.dir, args.name.0).and_then(|place| core.store.lookup(place));
    let dir_attributes = core.after_failure(args.dir);
    match found {
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
    let object = core.object_of(args.object.bytes());
    match object.and_then(|object| core.store.attributes(object)) {
        Ok(found) => AccessRes::Ok(AccessOk {
            attributes: Some(found),
            access: args.access & permitted(&found),
        }),
        Err(fault) => AccessRes::Err(fault, None),
    }
    .encode(out);
}

/// Everybody may do everything that makes sense.
fn permitted(of: &FileAttributes) -> u32 {
    match of.kind {
        FileKind::Directory => {
            bits::READ | bits::LOOKUP | bits::MODIFY | bits::EXTEND | bits::DELETE
        }
        _ if of.mode & 0o111 != 0 => bits::READ | bits::MODIFY | bits::EXTEND | bits::EXECUTE,
        _ => bits::READ | bits::MODIFY | bits::EXTEND,
    }
}

pub(super) fn read_link(core: &NfsCore, args: ReadLinkArgs<'_>, out: &mut Vec<u8>) {
    let mut text = Vec::new();
    let read = core
        .object_of(args.symlink.bytes())
        .and_then(|object| core.store.read_link(object, &mut text));
    let attributes = core.after_failure(args.symlink);
    match read {
        Ok(()) => ReadLinkRes::Ok(ReadLinkOk { attributes, path: Path(&text) }).encode(out),
        Err(fault) => ReadLinkRes::Err(fault, attributes).encode(out),
    }
}

/// Attributes of an object of which only that is asked for.
fn attributes_of(core: &NfsCore, handle: &[u8]) -> Result<FileAttributes, Status3> {
    core.object_of(handle).and_then(|object| core.store.attributes(object))
}

pub(super) fn file_system_state(core: &NfsCore, args: FsStatArgs<'_>, out: &mut Vec<u8>) {
    let space = core.store.space();
    match attributes_of(core, args.root.bytes()) {
        Ok(found) => FsStatRes::Ok(FsStatOk {
            attributes: Some(found),
            total_bytes: space.total_bytes,
            free_bytes: space.free_bytes,
            available_bytes: space.free_bytes,
            total_files: space.total_files,
            free_files: space.free_files,
            available_files: space.free_files,
            invariant_s: 0,
        }),
        Err(fault) => FsStatRes::Err(fault, None),
    }
    .encode(out);
}

pub(super) fn file_system_info(
    core: &NfsCore,
    link: Link,
    args: FsInfoArgs<'_>,
    out: &mut Vec<u8>,
) {
    let data_bytes_max = link.data_bytes_max();
    match attributes_of(core, args.root.bytes()) {
        Ok(found) => FsInfoRes::Ok(FsInfoOk {
            attributes: Some(found),
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
        }),
        Err(fault) => FsInfoRes::Err(fault, None),
    }
    .encode(out);
}

pub(super) fn path_limits(core: &NfsCore, args: PathConfArgs<'_>, out: &mut Vec<u8>) {
    match attributes_of(core, args.object.bytes()) {
        Ok(found) => PathConfRes::Ok(PathConfOk {
            attributes: Some(found),
            link_max: LINKS_MAX,
            name_bytes_max: NAME_BYTES_MAX as u32,
            no_trunc: true,
            chown_restricted: false,
            case_insensitive: false,
            case_preserving: true,
        }),
        Err(fault) => PathConfRes::Err(fault, None),
    }
    .encode(out);
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
    match written {
        Ok(change) => WriteRes::Ok(WriteOk {
            wcc: change,
            count: args.count,
            committed: args.stable,
            verifier: core.store.write_verifier(),
        }),
        Err(fault) => WriteRes::Err(fault, core.wcc_after_failure(args.file)),
    }
    .encode(out);
}

/// Nothing waits to be written: only the verifier is told.
pub(super) fn commit(core: &NfsCore, args: CommitArgs<'_>, out: &mut Vec<u8>) {
    let object = core.object_of(args.file.bytes());
    let committed = object.and_then(|object| core.store.commit(object));
    let wcc = WccData { before: None, after: core.after_failure(args.file) };
    match committed {
        Ok(()) => CommitRes::Ok(CommitOk { wcc, verifier: core.store.write_verifier() }),
        Err(fault) => CommitRes::Err(fault, wcc),
    }
    .encode(out);
}
