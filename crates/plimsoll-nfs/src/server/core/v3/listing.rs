//! Entries of directories: READDIR, READDIRPLUS.
//!
//! Cookies stay what they are as long as the server knows its handles, so the cookie verifier is
//! the instance that handles carry.

use crate::wire::v3::{
    ATTRIBUTES_BYTES, Entry, EntryPlus, PostOpAttr, ReadDirArgs, ReadDirPlusArgs, ReadDirPlusRes,
    ReadDirRes, Status3, Verifier,
};
use crate::wire::{Encode, Name};

use super::handle3;
use crate::server::core::{Link, NfsCore};
use crate::server::store::{Detail, ListEnd, Listed, Object};

/// Longest listing on a stream.
const STREAM_BYTES_MAX: u32 = 256 << 10;
/// Bytes of a listing without entries: attributes behind their flag, verifier, end of the list,
/// end of the directory.
const FRAME_BYTES: usize = 4 + ATTRIBUTES_BYTES + 8 + 4 + 4;
/// Bytes of an entry with the longest name, without attributes.
const NAME_ENTRY_BYTES_MAX: usize = 4 + 8 + 4 + 256 + 8;

pub(super) fn read(core: &NfsCore, link: Link, args: ReadDirArgs<'_>, out: &mut Vec<u8>) {
    let wanted = Wanted {
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
    if let Err(status) = list(core, &wanted, &mut each, out) {
        out.truncate(start);
        ReadDirRes::Err(status, core.after_failure(args.dir)).encode(out);
    }
}

pub(super) fn read_plus(core: &NfsCore, link: Link, args: ReadDirPlusArgs<'_>, out: &mut Vec<u8>) {
    let wanted = Wanted {
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
    if let Err(status) = list(core, &wanted, &mut each, out) {
        out.truncate(start);
        ReadDirPlusRes::Err(status, core.after_failure(args.dir)).encode(out);
    }
}

struct Wanted<'a> {
    handle: &'a [u8],
    cookie: u64,
    verifier: Verifier,
    detail: Detail,
}

/// Appends an entry, if it fits; false: it does not.
type Append<'a> = dyn FnMut(&Listed<'_>, &mut Vec<u8>) -> bool + 'a;

/// A whole successful reply, entry by entry.
fn list(
    core: &NfsCore,
    wanted: &Wanted<'_>,
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
