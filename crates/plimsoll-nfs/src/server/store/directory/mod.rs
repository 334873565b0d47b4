//! A file system below a directory of this host.
//!
//! Nothing leads out of it: names are single components, opened relative to a directory with
//! `openat2` (`RESOLVE_BENEATH`, `NO_SYMLINKS`, `NO_XDEV`) and never followed where they are
//! links; handles carry inode numbers that are looked for below the root only. What is mounted
//! inside is not served. New objects belong to the user the server runs as, whoever asks.

mod changes;
mod listing;
mod places;
mod recent;
mod search;
mod status;

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags, fdatasync, fstatvfs, fsync, open, readlinkat};
use rustix::io::{Errno, pread, pwrite};

use super::{
    Caller, Created, Detail, Doomed, EachEntry, FILE_BYTES_MAX, FileAttributes, FileKind, ListEnd,
    Listed, New, Object, Place, ReadDone, SetAttributes, Space, StableHow, Status3, Store,
    TimeSpec3, WccData, plain_name,
};
use listing::Listings;
use places::{Found, Open, Places, Purpose};
use status::fault;

/// Whether what is answered to be durable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Yes: data, attributes and names are flushed to the disk before the reply.
    AsPromised,
    /// No: a crash of the system loses what was promised.
    Never,
}

/// A file system below a directory.
#[derive(Debug)]
pub struct DirectoryStore {
    places: Places,
    listings: Listings,
    flush: Flush,
    instance: u64,
    write_verifier: AtomicU64,
}

impl DirectoryStore {
    /// Serves what is below `root`, which is resolved once and for all.
    pub fn open(root: &Path, flush: Flush) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = open(root, flags, Mode::empty())?;
        let places = Places::new(descriptor)
            .map_err(|fault| io::Error::other(format!("it has no status: {fault:?}")))?;
        // Refused by old systems and strict sandboxes, where nothing would work later.
        let flags = flags.difference(OFlags::CLOEXEC);
        places
            .open_at(&places.root, b".", flags, Mode::empty())
            .map_err(|fault| io::Error::other(format!("openat2 does not work here ({fault:?})")))?;
        let root = &places.root_status;
        // The same after a restart, so that handles stay good.
        let words = [root.id(), root.generation, root.attributes.fsid];
        let instance = words.into_iter().fold(0x506c_696d_736f_6c6c, |mixed: u64, word| {
            (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        });
        // Another one at every start: unstable writes may have been lost.
        let write_verifier = RandomState::new().hash_one("plimsoll nfs writes");
        let listings = Listings::default();
        Ok(Self { places, listings, flush, instance, write_verifier: write_verifier.into() })
    }

    fn flush_data(&self, file: &Open, durability: StableHow) -> Result<(), Status3> {
        let flushed = match (self.flush, durability) {
            (Flush::Never, _) | (_, StableHow::Unstable) => return Ok(()),
            (_, StableHow::DataSync) => fdatasync(file),
            (_, StableHow::FileSync) => fsync(file),
        };
        self.noted(flushed)
    }

    /// Entries of a directory are durable afterwards.
    fn flush_names(&self, directory: &Open) -> Result<(), Status3> {
        match self.flush {
            Flush::Never => Ok(()),
            Flush::AsPromised => self.noted(fsync(directory)),
        }
    }

    /// After a failed flush nobody knows what was lost: clients must write again.
    fn noted(&self, flushed: Result<(), Errno>) -> Result<(), Status3> {
        flushed.map_err(|error| {
            self.write_verifier.fetch_add(1, Ordering::Relaxed);
            fault(error)
        })
    }
}

/// What is known after a change; the system does not say what was before at the same moment.
fn after(attributes: FileAttributes) -> WccData {
    WccData { before: None, after: Some(attributes) }
}

impl Store for DirectoryStore {
    fn instance(&self) -> u64 {
        self.instance
    }

    fn write_verifier(&self) -> [u8; 8] {
        self.write_verifier.load(Ordering::Relaxed).to_be_bytes()
    }

    fn root(&self) -> Object {
        self.places.object(&self.places.root_status, 0)
    }

    fn attributes(&self, object: Object) -> Result<FileAttributes, Status3> {
        self.places.status(object).map(|found| found.attributes)
    }

    fn set(
        &self,
        object: Object,
        to: &SetAttributes,
        guard: Option<TimeSpec3>,
    ) -> Result<WccData, Status3> {
        if guard.is_some() && guard != Some(self.attributes(object)?.ctime) {
            return Err(Status3::NOT_SYNC);
        }
        self.set_attributes(object, to)?;
        self.attributes(object).map(after)
    }

    fn lookup(&self, place: Place<'_>) -> Result<(Object, FileAttributes), Status3> {
        let directory = self.places.directory(place.directory)?;
        match place.name {
            b"." => Ok((place.directory, status::of_descriptor(&directory)?.attributes)),
            b".." => {
                let id = self.places.parent_of(place.directory)?;
                let found = status::of_descriptor(&self.places.directory_of_id(id)?)?;
                let above = Object { id, generation: found.generation, parent: 0 };
                let parent = self.places.parent_of(above)?;
                Ok((self.places.object(&found, parent), found.attributes))
            }
            name => {
                plain_name(name)?;
                let found = status::of_name(&directory, name)?;
                let found = found.same_mount(&self.places.root_status)?;
                let parent = place.directory.id;
                self.places.saw(&found, parent, name.into())?;
                Ok((self.places.object(&found, parent), found.attributes))
            }
        }
    }

    fn read_link(&self, object: Object, into: &mut Vec<u8>) -> Result<(), Status3> {
        if object.id == self.places.root_id() {
            return Err(Status3::INVAL);
        }
        let Found { directory, name, status } = self.places.find(object)?;
        if status.attributes.kind != FileKind::Symlink {
            return Err(Status3::INVAL);
        }
        let text = readlinkat(&directory, &*name, Vec::new()).map_err(fault)?;
        into.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn read(
        &self,
        object: Object,
        offset: u64,
        count: u32,
        into: &mut Vec<u8>,
    ) -> Result<ReadDone, Status3> {
        let file = self.places.file(object, Purpose::Read)?;
        let attributes = status::of_descriptor(&file)?.attributes;
        let start = into.len();
        let wanted = attributes.size.saturating_sub(offset).min(count.into()) as usize;
        into.resize(start + wanted, 0);
        let read = match wanted {
            0 => 0,
            _ => pread(&file, &mut into[start..], offset).map_err(fault)?,
        };
        into.truncate(start + read);
        let at_end = offset.saturating_add(read as u64) >= attributes.size;
        Ok(ReadDone { at_end, attributes })
    }

    fn write(
        &self,
        object: Object,
        offset: u64,
        data: &[u8],
        durability: StableHow,
    ) -> Result<WccData, Status3> {
        let end = offset.checked_add(data.len() as u64);
        if end.is_none_or(|end| end > FILE_BYTES_MAX) {
            return Err(Status3::FBIG);
        }
        let file = self.places.file(object, Purpose::Write)?;
        let mut written = 0;
        while written < data.len() {
            written += pwrite(&file, &data[written..], offset + written as u64).map_err(fault)?;
        }
        self.flush_data(&file, durability)?;
        let attributes = status::of_descriptor(&file)?.attributes;
        if attributes.nlink == 0 {
            self.places.lost(object.id);
            return Err(Status3::STALE);
        }
        Ok(after(attributes))
    }

    fn create(
        &self,
        place: Place<'_>,
        new: New<'_>,
        to: &SetAttributes,
        _caller: Caller,
    ) -> Result<Created, Status3> {
        self.create_at(place, new, to).map_err(|fault| match fault {
            // Of what is to be made only the directory can be missing.
            Status3::NOENT => Status3::STALE,
            other => other,
        })
    }

    fn remove(&self, place: Place<'_>, doomed: Doomed) -> Result<WccData, Status3> {
        self.remove_at(place, doomed)
    }

    fn rename(&self, from: Place<'_>, to: Place<'_>) -> Result<(WccData, WccData), Status3> {
        self.rename_at(from, to)
    }

    fn link(&self, object: Object, place: Place<'_>) -> Result<(FileAttributes, WccData), Status3> {
        self.link_at(object, place)
    }

    fn list(
        &self,
        directory: Object,
        cookie: u64,
        detail: Detail,
        each: &mut EachEntry<'_>,
    ) -> Result<ListEnd, Status3> {
        let open = self.places.directory(directory)?;
        let attributes = status::of_descriptor(&open)?.attributes;
        let listing = self.listings.of(&open, &attributes)?;
        for (at, name) in [(1, b".".as_slice()), (2, b"..".as_slice())] {
            if cookie >= at {
                continue;
            }
            let place = Place { directory, name };
            let (object, attributes) = self.lookup(place)?;
            let found = (detail == Detail::Attributes).then_some((object, attributes));
            if !each(&Listed { cookie: at, name, file_id: object.id, found }) {
                return Ok(ListEnd::Interrupted);
            }
        }
        for item in listing.after(cookie) {
            let found = match detail {
                Detail::Names => None,
                Detail::Attributes => self.seen_in(directory, &open, item),
            };
            let (name, file_id) = (&*item.name, item.file_id);
            if !each(&Listed { cookie: item.cookie, name, file_id, found }) {
                return Ok(ListEnd::Interrupted);
            }
        }
        Ok(ListEnd::Complete)
    }

    fn space(&self) -> Result<Space, Status3> {
        let found = fstatvfs(&self.places.root).map_err(fault)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Space {
            total_bytes: bytes(found.f_blocks),
            free_bytes: bytes(found.f_bfree),
            available_bytes: bytes(found.f_bavail),
            total_files: found.f_files,
            free_files: found.f_ffree,
        })
    }

    fn commit(&self, object: Object) -> Result<(), Status3> {
        let file = self.places.file(object, Purpose::Read)?;
        self.flush_data(&file, StableHow::DataSync)
    }
}

impl DirectoryStore {
    /// What a listing tells of an entry, if it is still there.
    fn seen_in(
        &self,
        directory: Object,
        open: &Arc<Open>,
        item: &listing::Item,
    ) -> Option<(Object, FileAttributes)> {
        let found = status::of_name(open, &item.name).ok()?;
        let found = found.same_mount(&self.places.root_status).ok()?;
        self.places.saw(&found, directory.id, Arc::clone(&item.name)).ok()?;
        Some((self.places.object(&found, directory.id), found.attributes))
    }
}
