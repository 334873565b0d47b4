//! Listings of directories, in an order that does not depend on the file system.
//!
//! A cookie is a hash of the name, so it stays what it is whatever comes and goes around it, over
//! a restart as well, and fits into the 32 bits of NFSv2, which what the system calls the offset
//! of an entry does not. Names with the same hash take the numbers behind it: a listing may miss
//! one only if its twin is removed while the listing stands just between them.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::Dir;

use super::status::fault;
use crate::server::store::{FileAttributes, Status3, TimeSpec3, now};

/// Entries of all listings that are kept; about 60 bytes each.
const ENTRIES_MAX: usize = 1 << 20;
/// A directory changed so lately may change again without another time: clocks of file systems
/// tick some hundred times a second.
const SETTLED_NS: u64 = 50_000_000;
/// Cookies are below this before names with the same hash are told apart. 1 and 2 are `.` and
/// `..`.
const COOKIES: u64 = (1 << 31) - (1 << 20);

/// A directory as it was at a time.
#[derive(Debug)]
pub(super) struct Listing {
    /// Ascending by cookie.
    entries: Vec<Item>,
    as_of: (TimeSpec3, TimeSpec3),
}

/// A name in a directory.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) cookie: u64,
    pub(super) name: Arc<[u8]>,
    pub(super) file_id: u64,
}

impl Listing {
    fn read(directory: impl AsFd, of: &FileAttributes) -> Result<Self, Status3> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(directory).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                entries.push(Item { cookie: hash(name), name: name.into(), file_id: entry.ino() });
            }
        }
        entries.sort_unstable_by(|a, b| (a.cookie, &a.name).cmp(&(b.cookie, &b.name)));
        let mut free = 3;
        for entry in &mut entries {
            entry.cookie = entry.cookie.max(free);
            free = entry.cookie + 1;
        }
        Ok(Self { entries, as_of: (of.mtime, of.ctime) })
    }

    /// The entries behind `cookie`.
    pub(super) fn after(&self, cookie: u64) -> &[Item] {
        let from = self.entries.partition_point(|entry| entry.cookie <= cookie);
        &self.entries[from..]
    }
}

/// FNV-1a, folded.
fn hash(name: &[u8]) -> u64 {
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 31)) % COOKIES
}

/// Listings that are still true.
#[derive(Debug, Default)]
pub(super) struct Listings(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    by_id: HashMap<u64, Arc<Listing>>,
    entries: usize,
}

impl Listings {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The listing of a directory that has these attributes.
    pub(super) fn of(
        &self,
        directory: impl AsFd,
        attributes: &FileAttributes,
    ) -> Result<Arc<Listing>, Status3> {
        let id = attributes.fileid;
        let as_of = (attributes.mtime, attributes.ctime);
        let kept = self.lock().by_id.get(&id).cloned();
        if let Some(kept) = kept.filter(|kept| kept.as_of == as_of) {
            return Ok(kept);
        }
        let listing = Arc::new(Listing::read(directory, attributes)?);
        if is_settled(attributes.ctime) && is_settled(attributes.mtime) {
            self.lock().keep(id, &listing);
        }
        Ok(listing)
    }

    /// The directory is being changed.
    pub(super) fn forget(&self, id: u64) {
        self.lock().forget(id);
    }
}

impl Kept {
    fn keep(&mut self, id: u64, listing: &Arc<Listing>) {
        self.forget(id);
        if self.entries + listing.entries.len() > ENTRIES_MAX {
            *self = Self::default();
        }
        self.entries += listing.entries.len();
        self.by_id.insert(id, Arc::clone(listing));
    }

    fn forget(&mut self, id: u64) {
        if let Some(old) = self.by_id.remove(&id) {
            self.entries -= old.entries.len();
        }
    }
}

fn is_settled(time: TimeSpec3) -> bool {
    let nanos = |t: TimeSpec3| u64::from(t.seconds) * 1_000_000_000 + u64::from(t.nanoseconds);
    nanos(time).saturating_add(SETTLED_NS) < nanos(now())
}
