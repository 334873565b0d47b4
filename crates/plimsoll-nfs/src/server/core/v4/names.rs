//! Names: LOOKUP, CREATE, REMOVE, RENAME, READLINK, READDIR.
//! RFC 8881 §18.4, §18.13, §18.23 to §18.26

use super::attributes::{change, current, encode, settings};
use super::context::Compound;
use super::delegations::settle_name;
use super::{PSEUDO_ROOT, component};
use crate::server::core::{EXPORT, NfsCore};
use crate::server::store::{
    Detail, FileKind, ListEnd, New, NodePath, Object, RemovalKind, Status3, WccData,
};
use crate::wire::v4::{
    ChangeInfo, CreateArgs4, CreateKind, CreateOk4, ReadDirArgs4, RenameArgs4, RenameOk4, Status4,
    Verifier,
};
use crate::wire::xdr::opaque_bytes;
use crate::wire::{Encode, Name, Path};

pub(super) fn lookup(compound: &mut Compound<'_>, name: Name<'_>) -> Result<(), Status4> {
    let (core, directory) = (compound.core, compound.object()?);
    let name = component(name.0)?;
    if directory == PSEUDO_ROOT {
        if name != export_name() {
            return Err(Status4::NOENT);
        }
        compound.set_object(core.store.root());
        return Ok(());
    }
    let looked_up = core.store.lookup(NodePath { directory, name });
    let (object, _) = looked_up.map_err(|status| no_directory(core, directory, status))?;
    compound.set_object(object);
    Ok(())
}

/// The name of the export in the pseudo file system.
fn export_name() -> &'static [u8] {
    EXPORT.trim_start_matches('/').as_bytes()
}

/// A symbolic link on a path has a status of its own, as clients follow it. RFC 8881 §18.13.4
fn no_directory(core: &NfsCore, directory: Object, status: Status3) -> Status4 {
    let kind = || core.store.attributes(directory).map(|current| current.kind);
    match status {
        Status3::NOTDIR if kind() == Ok(FileKind::Symlink) => Status4::SYMLINK,
        status => status.into(),
    }
}

/// A directory's `change` around something that `wcc` describes, or that changed nothing.
pub(super) fn change_info(
    core: &NfsCore,
    directory: Object,
    wcc: WccData,
) -> Result<ChangeInfo, Status4> {
    let after = match wcc.after {
        Some(after) => change(&after),
        None => change(&current(core, directory)?),
    };
    let before = wcc.before.map_or(after, |before| before.ctime.ns());
    Ok(ChangeInfo { atomic: true, before, after })
}

pub(super) fn create(
    compound: &mut Compound<'_>,
    args: &CreateArgs4<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Status4> {
    let (core, directory) = (compound.core, compound.changeable()?);
    let name = component(args.name.0)?;
    let new = match args.kind {
        CreateKind::Directory => New::Directory,
        CreateKind::Link(text) => New::Link(text.0),
        CreateKind::Other(_) => return Err(Status4::BADTYPE),
    };
    let settings = settings(&args.attributes)?;
    let path = NodePath { directory, name };
    let made = core.store.create(path, new, &settings, compound.context.caller)?;
    let change = change_info(core, directory, made.directory)?;
    compound.set_object(made.object);
    CreateOk4 { change, set: args.attributes.mask() }.encode(out);
    Ok(())
}

pub(super) fn remove(
    compound: &Compound<'_>,
    name: Name<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Status4> {
    let (core, directory) = (compound.core, compound.changeable()?);
    let path = NodePath { directory, name: component(name.0)? };
    settle_name(compound, path)?;
    let removed = match core.store.remove(path, RemovalKind::File) {
        Err(Status3::ISDIR) => core.store.remove(path, RemovalKind::Directory),
        removed => removed,
    };
    change_info(core, directory, removed?)?.encode(out);
    Ok(())
}

pub(super) fn rename(
    compound: &Compound<'_>,
    args: &RenameArgs4<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Status4> {
    let core = compound.core;
    let from = NodePath { directory: compound.saved()?, name: component(args.from.0)? };
    let to = NodePath { directory: compound.changeable()?, name: component(args.to.0)? };
    settle_name(compound, from)?;
    settle_name(compound, to)?;
    let (out_of, into) = core.store.rename(from, to)?;
    RenameOk4 {
        from: change_info(core, from.directory, out_of)?,
        to: change_info(core, to.directory, into)?,
    }
    .encode(out);
    Ok(())
}

pub(super) fn read_link(compound: &Compound<'_>, out: &mut Vec<u8>) -> Result<(), Status4> {
    let mut text = Vec::new();
    compound.core.store.read_link(compound.object()?, &mut text)?;
    Path(&text).encode(out);
    Ok(())
}

/// Longest listing.
const LISTING_BYTES_MAX: u32 = 256 << 10;
/// Bytes of a listing without entries: verifier, end of the list, end of the directory.
const FRAME_BYTES: usize = 8 + 4 + 4;
/// Cookies of `.` and `..`, which no listing has, and of the export.
const COOKIES_RESERVED: [u64; 2] = [1, 2];
const EXPORT_COOKIE: u64 = 3;

pub(super) fn list(
    compound: &Compound<'_>,
    args: &ReadDirArgs4,
    out: &mut Vec<u8>,
) -> Result<(), Status4> {
    let (core, directory) = (compound.core, compound.object()?);
    let verifier: Verifier = core.store.instance().to_be_bytes();
    if COOKIES_RESERVED.contains(&args.cookie) {
        return Err(Status4::BAD_COOKIE);
    }
    if args.cookie != 0 && args.verifier != verifier {
        return Err(Status4::NOT_SAME);
    }
    verifier.encode(out);
    let mut listing = Listing {
        core,
        args,
        bytes: (args.bytes_max.min(LISTING_BYTES_MAX) as usize).saturating_sub(FRAME_BYTES),
        dir_bytes: if args.dir_bytes == 0 { usize::MAX } else { args.dir_bytes as usize },
        entries: 0,
    };
    let end = listing.append_entries(directory, out)?;
    if end == ListEnd::Interrupted && listing.entries == 0 {
        return Err(Status4::TOOSMALL);
    }
    // No further entry; whether there are no more at all.
    false.encode(out);
    (end == ListEnd::Complete).encode(out);
    Ok(())
}

/// A listing with what is left for its entries.
struct Listing<'a> {
    core: &'a NfsCore,
    args: &'a ReadDirArgs4,
    bytes: usize,
    /// A hint: the first entry may exceed it.
    dir_bytes: usize,
    entries: u32,
}

impl Listing<'_> {
    fn append_entries(&mut self, directory: Object, out: &mut Vec<u8>) -> Result<ListEnd, Status4> {
        let store = &self.core.store;
        if directory == PSEUDO_ROOT {
            let (root, name) = (store.root(), export_name());
            let fits = self.args.cookie >= EXPORT_COOKIE
                || self.append((EXPORT_COOKIE, name, root), &current(self.core, root)?, out);
            return Ok(if fits { ListEnd::Complete } else { ListEnd::Interrupted });
        }
        let from = self.args.cookie.max(COOKIES_RESERVED[1]);
        Ok(store.list(directory, from, Detail::Attributes, &mut |listed| {
            // What was removed since has no entry.
            listed.resolved.is_none_or(|(object, current)| {
                self.append((listed.cookie, listed.name, object), &current, out)
            })
        })?)
    }

    /// Appends an entry, if it fits.
    fn append(
        &mut self,
        (cookie, name, object): (u64, &[u8], Object),
        current: &crate::server::store::FileAttributes,
        out: &mut Vec<u8>,
    ) -> bool {
        let start = out.len();
        // An entry follows.
        true.encode(out);
        cookie.encode(out);
        Name(name).encode(out);
        encode(self.core, (object, current), self.args.attributes, out);
        let (bytes, dir_bytes) = (out.len() - start, 8 + opaque_bytes(name.len()));
        if bytes > self.bytes || (dir_bytes > self.dir_bytes && self.entries > 0) {
            out.truncate(start);
            return false;
        }
        self.bytes -= bytes;
        self.dir_bytes = self.dir_bytes.saturating_sub(dir_bytes);
        self.entries += 1;
        true
    }
}
