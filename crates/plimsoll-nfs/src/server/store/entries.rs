//! Entries of a directory, with cookies that stay what they are.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Object, Status3};

/// Cookies 1 and 2 are `.` and `..`.
const COOKIE_FIRST: u64 = 3;
/// Last cookie that may be given out.
const COOKIE_LAST: u64 = i32::MAX as u64;

/// Entries of a directory. A cookie belongs to its entry until that is removed, and is not given
/// out again: a listing that goes on later misses nothing that was there all the time.
#[derive(Debug)]
pub(super) struct Entries {
    /// The directory above; the root's is itself.
    pub(super) parent: Object,
    by_name: HashMap<Arc<[u8]>, u64>,
    by_cookie: BTreeMap<u64, Entry>,
    next_cookie: u64,
    /// How many entries are directories, whose `..` count as links to this one.
    directories: u32,
}

#[derive(Debug)]
struct Entry {
    name: Arc<[u8]>,
    object: Object,
}

impl Entries {
    pub(super) fn new(parent: Object) -> Self {
        Self {
            parent,
            by_name: HashMap::new(),
            by_cookie: BTreeMap::new(),
            next_cookie: COOKIE_FIRST,
            directories: 0,
        }
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<Object> {
        self.by_name.get(name).map(|cookie| self.by_cookie[cookie].object)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Names of this directory: its own, its `.`, and the `..` of those in it.
    pub(super) fn links(&self) -> u32 {
        2 + self.directories
    }

    pub(super) fn size(&self) -> u64 {
        self.by_name.len() as u64
    }

    /// Adds a name that is not there yet.
    pub(super) fn insert(
        &mut self,
        name: &[u8],
        object: Object,
        is: EntryIs,
    ) -> Result<(), Status3> {
        if self.next_cookie > COOKIE_LAST {
            return Err(Status3::NOSPC);
        }
        let name: Arc<[u8]> = name.into();
        self.by_name.insert(Arc::clone(&name), self.next_cookie);
        self.by_cookie.insert(self.next_cookie, Entry { name, object });
        self.next_cookie += 1;
        self.directories += u32::from(is == EntryIs::Directory);
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &[u8], is: EntryIs) {
        if let Some(cookie) = self.by_name.remove(name) {
            self.by_cookie.remove(&cookie);
            self.directories -= u32::from(is == EntryIs::Directory);
        }
        if self.by_name.is_empty() && self.next_cookie > COOKIE_LAST / 2 {
            self.next_cookie = COOKIE_FIRST;
        }
    }

    /// Up to `count` entries after `cookie`.
    pub(super) fn after(&self, cookie: u64, count: usize) -> Vec<(u64, Arc<[u8]>, Object)> {
        let rest = self.by_cookie.range(cookie.saturating_add(1)..);
        let copied = rest.map(|(cookie, e)| (*cookie, Arc::clone(&e.name), e.object));
        copied.take(count).collect()
    }
}

/// What an entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryIs {
    Directory,
    Other,
}
