//! Names of directories: those that come, go or move (CREATE to LINK), and listings of them
//! (READDIR, READDIRPLUS).
//!
//! Cookies stay what they are as long as the server knows its handles, so the cookie verifier is
//! the instance that handles carry.

use super::{handle3, reply};
use crate::server::core::{Link, NfsCore};
use crate::server::store::{
    Caller, Creation, Detail, FileKind, ListEnd, Listed, New, Object, RemovalKind,
};
use crate::wire::v3::{
    ATTRIBUTES_BYTES, CreateArgs, CreateHow, CreateOk, CreateRes, Device, DirOpArgs, Entry,
    EntryPlus, Handle, LinkArgs, LinkWcc, MkDirArgs, MkNodArgs, MkNodData, PostOpAttr, ReadDirArgs,
    ReadDirPlusArgs, ReadDirRes, RenameArgs, RenameWcc, SetAttributes, Status3, SymlinkArgs,
    Verifier,
};
use crate::wire::{Encode, Name};

pub(super) fn create(core: &NfsCore, caller: Caller, args: CreateArgs<'_>, out: &mut Vec<u8>) {
    let (how, attributes) = match args.how {
        CreateHow::Unchecked(attributes) => (Creation::Unchecked, attributes),
        CreateHow::Guarded(attributes) => (Creation::Guarded, attributes),
        CreateHow::Exclusive(verifier) => (Creation::Exclusive(verifier), SetAttributes::default()),
    };
    let at = DirOpArgs { dir: args.dir, name: args.name };
    make(core, caller, at, New::File(how), &attributes, out);
}

pub(super) fn make_directory(
    core: &NfsCore,
    caller: Caller,
    args: MkDirArgs<'_>,
    out: &mut Vec<u8>,
) {
    let at = DirOpArgs { dir: args.dir, name: args.name };
    make(core, caller, at, New::Directory, &args.attributes, out);
}

pub(super) fn symlink(core: &NfsCore, caller: Caller, args: SymlinkArgs<'_>, out: &mut Vec<u8>) {
    let at = DirOpArgs { dir: args.dir, name: args.name };
    make(core, caller, at, New::Link(args.path.0), &args.attributes, out);
}

pub(super) fn make_node(core: &NfsCore, caller: Caller, args: MkNodArgs<'_>, out: &mut Vec<u8>) {
    let none = Device { major: 0, minor: 0 };
    let (kind, device, settings): (FileKind, Device, SetAttributes) = match args.what {
        MkNodData::CharacterDevice(attributes, d) => (FileKind::CharacterDevice, d, attributes),
        MkNodData::BlockDevice(attributes, d) => (FileKind::BlockDevice, d, attributes),
        MkNodData::Socket(attributes) => (FileKind::Socket, none, attributes),
        MkNodData::Fifo(attributes) => (FileKind::Fifo, none, attributes),
        MkNodData::Other(_) => {
            let failure = core.wcc_after_failure(args.dir);
            return CreateRes::Err(Status3::BADTYPE, failure).encode(out);
        }
    };
    let at = DirOpArgs { dir: args.dir, name: args.name };
    make(core, caller, at, New::Special(kind, device), &settings, out);
}

fn make(
    core: &NfsCore,
    caller: Caller,
    at: DirOpArgs<'_>,
    new: New<'_>,
    settings: &SetAttributes,
    out: &mut Vec<u8>,
) {
    let made = core
        .place3(at.dir, at.name.0)
        .and_then(|path| core.store.create(path, new, settings, caller));
    match made {
        Ok(made) => CreateRes::Ok(CreateOk {
            object: Some(handle3(&core.handle_of(made.object))),
            attributes: Some(made.attributes),
            dir_wcc: made.directory,
        })
        .encode(out),
        Err(fault) => {
            CreateRes::Err(fault, core.wcc_after_failure(at.dir)).encode(out);
        }
    }
}

pub(super) fn remove(core: &NfsCore, removal: RemovalKind, args: DirOpArgs<'_>, out: &mut Vec<u8>) {
    let path = core.place3(args.dir, args.name.0);
    let removed = path.and_then(|path| core.store.remove(path, removal));
    reply(removed, || core.wcc_after_failure(args.dir), out);
}

pub(super) fn rename(core: &NfsCore, args: RenameArgs<'_>, out: &mut Vec<u8>) {
    let renamed = core.place3(args.from_dir, args.from_name.0).and_then(|from| {
        let to = core.place3(args.to_dir, args.to_name.0)?;
        core.store.rename(from, to)
    });
    let renamed = renamed.map(|(from, to)| RenameWcc { from_dir_wcc: from, to_dir_wcc: to });
    let failure = || RenameWcc {
        from_dir_wcc: core.wcc_after_failure(args.from_dir),
        to_dir_wcc: core.wcc_after_failure(args.to_dir),
    };
    reply(renamed, failure, out);
}

pub(super) fn link(core: &NfsCore, args: LinkArgs<'_>, out: &mut Vec<u8>) {
    let linked = core.object_of(args.file.bytes()).and_then(|object| {
        let path = core.place3(args.dir, args.name.0)?;
        core.store.link(object, path)
    });
    let linked = linked
        .map(|(attributes, change)| LinkWcc { attributes: Some(attributes), dir_wcc: change });
    let failure = || LinkWcc {
        attributes: core.after_failure(args.file),
        dir_wcc: core.wcc_after_failure(args.dir),
    };
    reply(linked, failure, out);
}

/// Longest listing on a stream.
const STREAM_BYTES_MAX: u32 = 256 << 10;
/// Bytes of a listing without entries: attributes behind their flag, verifier, end of the list,
/// end of the directory.
const FRAME_BYTES: usize = 4 + ATTRIBUTES_BYTES + 8 + 4 + 4;
/// Bytes of an entry with the longest name, without attributes.
const NAME_ENTRY_BYTES_MAX: usize = 4 + 8 + 4 + 256 + 8;

pub(super) fn list(core: &NfsCore, link: Link, args: ReadDirArgs<'_>, out: &mut Vec<u8>) {
    let page =
        Page { dir: args.dir, cookie: args.cookie, verifier: args.verifier, detail: Detail::Names };
    let mut room = Room::new(link, args.count, u32::MAX);
    let mut each = |listed: &Listed<'_>, out: &mut Vec<u8>| {
        let (fileid, name, cookie) = (listed.file_id, Name(listed.name), listed.cookie);
        let entry = Entry { fileid, name, cookie };
        room.takes(entry.bytes(), 0) && write_entry(&entry, out)
    };
    answer_page(core, &page, &mut each, out);
}

pub(super) fn list_plus(core: &NfsCore, link: Link, args: ReadDirPlusArgs<'_>, out: &mut Vec<u8>) {
    let page = Page {
        dir: args.dir,
        cookie: args.cookie,
        verifier: args.verifier,
        detail: Detail::Attributes,
    };
    let mut room = Room::new(link, args.max_count, args.dir_count);
    let mut each = |listed: &Listed<'_>, out: &mut Vec<u8>| {
        let handle = listed.resolved.map(|(object, _)| core.handle_of(object));
        let (fileid, name, cookie) = (listed.file_id, Name(listed.name), listed.cookie);
        let attributes = listed.resolved.map(|(_, current)| current);
        let object = handle.as_ref().map(handle3);
        let entry = EntryPlus { fileid, name, cookie, attributes, object };
        let name_bytes = Entry { fileid, name, cookie }.bytes();
        room.takes(entry.bytes(), name_bytes) && write_entry(&entry, out)
    };
    answer_page(core, &page, &mut each, out);
}

/// What is requested of a listing.
struct Page<'a> {
    dir: Handle<'a>,
    cookie: u64,
    verifier: Verifier,
    detail: Detail,
}

/// Appends an entry, if it fits; false: it does not.
type Append<'a> = dyn FnMut(&Listed<'_>, &mut Vec<u8>) -> bool + 'a;

fn answer_page(core: &NfsCore, page: &Page<'_>, each: &mut Append<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    if let Err(status) = append_entries(core, page, each, out) {
        out.truncate(start);
        ReadDirRes::Err(status, core.after_failure(page.dir)).encode(out);
    }
}

/// A whole successful reply, entry by entry.
fn append_entries(
    core: &NfsCore,
    page: &Page<'_>,
    each: &mut Append<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Status3> {
    let object: Object = core.object_of(page.dir.bytes())?;
    let verifier: Verifier = core.store.instance().to_be_bytes();
    if page.cookie != 0 && page.verifier != verifier && page.verifier != [0; 8] {
        return Err(Status3::BAD_COOKIE);
    }
    let attributes: PostOpAttr = Some(core.store.attributes(object)?);
    Status3::OK.encode(out);
    attributes.encode(out);
    verifier.encode(out);
    let mut entries = 0_u32;
    let end = core.store.list(object, page.cookie, page.detail, &mut |listed| {
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
        // One name always fits: some clients send a count that is too small for any entry.
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
fn write_entry(entry: &dyn Encode, out: &mut Vec<u8>) -> bool {
    true.encode(out);
    entry.encode(out);
    true
}
