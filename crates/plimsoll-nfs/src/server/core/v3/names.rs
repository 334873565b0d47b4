//! Names that come, go or move: CREATE to LINK.

use crate::wire::Encode as _;
use crate::wire::v3::{
    CreateArgs, CreateHow, CreateOk, CreateRes, Device, Handle, LinkArgs, LinkRes, LinkWcc,
    MkDirArgs, MkNodArgs, MkNodData, RemoveArgs, RemoveOk, RemoveRes, RenameArgs, RenameRes,
    RenameWcc, RmDirArgs, SetAttributes, Status3, SymlinkArgs,
};

use super::handle3;
use crate::server::core::NfsCore;
use crate::server::store::{Caller, Creation, Doomed, FileKind, New};

pub(super) fn create(core: &NfsCore, caller: Caller, args: CreateArgs<'_>, out: &mut Vec<u8>) {
    let (how, wanted) = match args.how {
        CreateHow::Unchecked(wanted) => (Creation::Unchecked, wanted),
        CreateHow::Guarded(wanted) => (Creation::Guarded, wanted),
        CreateHow::Exclusive(verifier) => (Creation::Exclusive(verifier), SetAttributes::default()),
    };
    let new = Wanted { dir: args.dir, name: args.name.0, new: New::File(how), settings: wanted };
    make(core, caller, &new, out);
}

pub(super) fn make_directory(
    core: &NfsCore,
    caller: Caller,
    args: MkDirArgs<'_>,
    out: &mut Vec<u8>,
) {
    let settings = args.attributes;
    let new = Wanted { dir: args.dir, name: args.name.0, new: New::Directory, settings };
    make(core, caller, &new, out);
}

pub(super) fn symlink(core: &NfsCore, caller: Caller, args: SymlinkArgs<'_>, out: &mut Vec<u8>) {
    let settings = args.attributes;
    let link = New::Link(args.path.0);
    make(core, caller, &Wanted { dir: args.dir, name: args.name.0, new: link, settings }, out);
}

pub(super) fn make_node(core: &NfsCore, caller: Caller, args: MkNodArgs<'_>, out: &mut Vec<u8>) {
    let none = Device { major: 0, minor: 0 };
    let (kind, device, settings): (FileKind, Device, SetAttributes) = match args.what {
        MkNodData::CharacterDevice(wanted, d) => (FileKind::CharacterDevice, d, wanted),
        MkNodData::BlockDevice(wanted, d) => (FileKind::BlockDevice, d, wanted),
        MkNodData::Socket(wanted) => (FileKind::Socket, none, wanted),
        MkNodData::Fifo(wanted) => (FileKind::Fifo, none, wanted),
        MkNodData::Other(_) => {
            let failure = core.wcc_after_failure(args.dir);
            return CreateRes::Err(Status3::BADTYPE, failure).encode(out);
        }
    };
    let new = New::Special(kind, device);
    make(core, caller, &Wanted { dir: args.dir, name: args.name.0, new, settings }, out);
}

/// A creation, whatever of.
struct Wanted<'a> {
    dir: Handle<'a>,
    name: &'a [u8],
    new: New<'a>,
    settings: SetAttributes,
}

fn make(core: &NfsCore, caller: Caller, wanted: &Wanted<'_>, out: &mut Vec<u8>) {
    let made = core
        .place3(wanted.dir, wanted.name)
        .and_then(|place| core.store.create(place, wanted.new, &wanted.settings, caller));
    match made {
        Ok(made) => CreateRes::Ok(CreateOk {
            object: Some(handle3(&core.handle_of(made.object))),
            attributes: Some(made.attributes),
            dir_wcc: made.directory,
        })
        .encode(out),
        Err(fault) => {
            CreateRes::Err(fault, core.wcc_after_failure(wanted.dir)).encode(out);
        }
    }
}

pub(super) fn remove(core: &NfsCore, args: RemoveArgs<'_>, out: &mut Vec<u8>) {
    take_away(core, args.dir, args.name.0, Doomed::File, out);
}

pub(super) fn remove_directory(core: &NfsCore, args: RmDirArgs<'_>, out: &mut Vec<u8>) {
    take_away(core, args.dir, args.name.0, Doomed::Directory, out);
}

fn take_away(core: &NfsCore, dir: Handle<'_>, name: &[u8], doomed: Doomed, out: &mut Vec<u8>) {
    let place = core.place3(dir, name);
    match place.and_then(|place| core.store.remove(place, doomed)) {
        Ok(change) => RemoveRes::Ok(RemoveOk { dir_wcc: change }),
        Err(fault) => RemoveRes::Err(fault, core.wcc_after_failure(dir)),
    }
    .encode(out);
}

pub(super) fn rename(core: &NfsCore, args: RenameArgs<'_>, out: &mut Vec<u8>) {
    let renamed = core.place3(args.from_dir, args.from_name.0).and_then(|from| {
        let to = core.place3(args.to_dir, args.to_name.0)?;
        core.store.rename(from, to)
    });
    match renamed {
        Ok((from, to)) => RenameRes::Ok(RenameWcc { from_dir_wcc: from, to_dir_wcc: to }),
        Err(fault) => {
            let from_dir_wcc = core.wcc_after_failure(args.from_dir);
            let to_dir_wcc = core.wcc_after_failure(args.to_dir);
            RenameRes::Err(fault, RenameWcc { from_dir_wcc, to_dir_wcc })
        }
    }
    .encode(out);
}

pub(super) fn link(core: &NfsCore, args: LinkArgs<'_>, out: &mut Vec<u8>) {
    let linked = core.object_of(args.file.bytes()).and_then(|object| {
        let place = core.place3(args.dir, args.name.0)?;
        core.store.link(object, place)
    });
    match linked {
        Ok((attributes, change)) => {
            LinkRes::Ok(LinkWcc { attributes: Some(attributes), dir_wcc: change })
        }
        Err(fault) => {
            let attributes = core.after_failure(args.file);
            let dir_wcc = core.wcc_after_failure(args.dir);
            LinkRes::Err(fault, LinkWcc { attributes, dir_wcc })
        }
    }
    .encode(out);
}
