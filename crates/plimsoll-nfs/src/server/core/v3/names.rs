//! Names of directories: those that come, go or move (CREATE to LINK), and listings of them
//! (READDIR, READDIRPLUS).
//!
//! Cookies stay what they are as long as the server knows its handles, so the cookie verifier is
//! the instance that handles carry.

use super::handle3;
use crate::server::core::{Link, NfsCore};
use crate::server::store::{
    Caller, Creation, Detail, Doomed, FileKind, ListEnd, Listed, New, Object,
};
use crate::wire::v3::{
    ATTRIBUTES_BYTES, CreateArgs, CreateHow, CreateOk, CreateRes, Device, Entry, EntryPlus, Handle,
    LinkArgs, LinkRes, LinkWcc, MkDirArgs, MkNodArgs, MkNodData, PostOpAttr, ReadDirArgs,
    ReadDirPlusArgs, ReadDirPlusRes, ReadDirRes, RemoveArgs, RemoveOk, RemoveRes, RenameArgs,
    RenameRes, RenameWcc, RmDirArgs, SetAttributes, Status3, SymlinkArgs, Verifier,
};
use crate::wire::{Encode, Name};

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

/// Longest listing on a stream.
const STREAM_BYTES_MAX: u32 = 256 << 10;
/// Bytes of a listing without entries: attributes behind their flag, verifier, end of the list,
/// end of the directory.
const FRAME_BYTES: usize = 4 + ATTRIBUTES_BYTES + 8 + 4 + 4;
/// Bytes of an entry with the longest name, without attributes.
const NAME_ENTRY_BYTES_MAX: usize = 4 + 8 + 4 + 256 + 8;

pub(super) fn list(core: &NfsCore, link: Link, args: ReadDirArgs<'_>, out: &mut Vec<u8>) {
    let wanted = Page {
        handle: args.dir.bytes(),
        cookie: args.cookie,
        verifier: args.verifier,
        detail: Detail::Names,
    };
    let mut room = Room::new(link, args.count, u32::MAX);
    let mut each = |listed: &Listed<'_>, out: &mut Vec<u8>| {
        let (fileid, name, cookie) = (listed.file_id, Name(listed.name), listed.cookie);
        let entry = Entry { fileid, name, cookie };
        room.takes(entry.bytes(), 0) && put(&entry, out)
    };
    let start = out.len();
    if let Err(status) = append_entries(core, &wanted, &mut each, out) {
        out.truncate(start);
        ReadDirRes::Err(status, core.after_failure(args.dir)).encode(out);
    }
}

pub(super) fn list_plus(core: &NfsCore, link: Link, args: ReadDirPlusArgs<'_>, out: &mut Vec<u8>) {
    let wanted = Page {
        handle: args.dir.bytes(),
        cookie: args.cookie,
        verifier: args.verifier,
        detail: Detail::Attributes,
    };
    let mut room = Room::new(link, args.max_count, args.dir_count);
    let mut each = |listed: &Listed<'_>, out: &mut Vec<u8>| {
        let handle = listed.found.map(|(object, _)| core.handle_of(object));
        let (fileid, name, cookie) = (listed.file_id, Name(listed.name), listed.cookie);
        let attributes = listed.found.map(|(_, found)| found);
        let object = handle.as_ref().map(handle3);
        let entry = EntryPlus { fileid, name, cookie, attributes, object };
        let name_bytes = Entry { fileid, name, cookie }.bytes();
        room.takes(entry.bytes(), name_bytes) && put(&entry, out)
    };
    let start = out.len();
    if let Err(status) = append_entries(core, &wanted, &mut each, out) {
        out.truncate(start);
        ReadDirPlusRes::Err(status, core.after_failure(args.dir)).encode(out);
    }
}

/// What a listing is asked for.
struct Page<'a> {
    handle: &'a [u8],
    cookie: u64,
    verifier: Verifier,
    detail: Detail,
}

/// Appends an entry, if it fits; false: it does not.
type Append<'a> = dyn FnMut(&Listed<'_>, &mut Vec<u8>) -> bool + 'a;

/// A whole successful reply, entry by entry.
fn append_entries(
    core: &NfsCore,
    wanted: &Page<'_>,
    each: &mut Append<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Status3> {
    let object: Object = core.object_of(wanted.handle)?;
    let verifier: Verifier = core.store.instance().to_be_bytes();
    if wanted.cookie != 0 && wanted.verifier != verifier && wanted.verifier != [0; 8] {
        return Err(Status3::BAD_COOKIE);
    }
    let attributes: PostOpAttr = Some(core.store.attributes(object)?);
    Status3::OK.encode(out);
    attributes.encode(out);
    verifier.encode(out);
    let mut entries = 0_u32;
    let end = core.store.list(object, wanted.cookie, wanted.detail, &mut |listed| {
        let fits = each(listed, out);
        entries += u32::from(fits);
        fits
    })?;
    if end == ListEnd::Interrupted && entries == 0 {
        return Err(Status3::TOOSMALL);
    }
    // No further entry; whether there are no more at all.
    false.encode(out);
    (end == ListEnd::Complete).encode(out);
    Ok(())
}

/// Bytes that are left for entries.
struct Room {
    bytes: usize,
    name_bytes: usize,
}

impl Room {
    fn new(link: Link, bytes_max: u32, name_bytes_max: u32) -> Self {
        let most = link.data_bytes_max().min(STREAM_BYTES_MAX);
        let bytes = (bytes_max.min(most) as usize).saturating_sub(FRAME_BYTES);
        // One name always fits: some clients ask with a count that no entry could keep.
        Self { bytes, name_bytes: (name_bytes_max as usize).max(NAME_ENTRY_BYTES_MAX) }
    }

    fn takes(&mut self, bytes: usize, name_bytes: usize) -> bool {
        let fits = bytes <= self.bytes && name_bytes <= self.name_bytes;
        if fits {
            self.bytes -= bytes;
            self.name_bytes -= name_bytes;
        }
        fits
    }
}

/// An entry of a list stands behind a `true`.
fn put(entry: &dyn Encode, out: &mut Vec<u8>) -> bool {
    true.encode(out);
    entry.encode(out);
    true
}
