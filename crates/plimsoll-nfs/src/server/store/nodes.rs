//! All objects, by id, and the entries of a directory, with cookies that stay what they are.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use plimsoll_servers::memory::{Budget, Data};

use super::{
    Caller, Device, FileAttributes, FileKind, LINKS_MAX, MODE_BITS_KEPT, Object, SetAttributes,
    SetTime, Status3, TimeSpec3, WccAttributes, WccData, now,
};

/// Locks over which the objects are spread, so that cores seldom contend for one.
const SHARDS: usize = 64;
/// File system number of everything in memory; any number will do.
const FILE_SYSTEM: u64 = 0x506c_696d;
/// Permission bits when the client names none.
const MODE_DEFAULT: u32 = 0o644;

/// All objects. A shard's lock is held for a few instructions and never while another is taken.
#[derive(Debug)]
pub(super) struct Nodes {
    shards: Vec<RwLock<Shard>>,
    next_shard: AtomicUsize,
    next_generation: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

#[derive(Debug)]
struct Slot {
    generation: u64,
    node: Option<Arc<Node>>,
}

impl Nodes {
    pub(super) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            next_shard: AtomicUsize::new(0),
            next_generation: AtomicU64::new(1),
        }
    }

    pub(super) fn get(&self, object: Object) -> Result<Arc<Node>, Status3> {
        let (shard, index) = slot_of(object.id).ok_or(Status3::STALE)?;
        let shard = self.shards[shard].read().unwrap_or_else(PoisonError::into_inner);
        let slot = shard.slots.get(index).filter(|slot| slot.generation == object.generation);
        slot.and_then(|slot| slot.node.clone()).ok_or(Status3::STALE)
    }

    /// Adds the object that `make` builds from its id.
    pub(super) fn add(&self, make: impl FnOnce(Object) -> State) -> Object {
        let generation = self.next_generation.fetch_add(1, Ordering::Relaxed);
        let shard_index = self.next_shard.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let shard = &self.shards[shard_index];
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        let index = shard.free.pop().unwrap_or(shard.slots.len());
        let object = Object { id: id_of(shard_index, index), generation };
        let slot = Slot { generation, node: Some(Arc::new(Node::new(make(object)))) };
        if index == shard.slots.len() {
            shard.slots.push(slot);
        } else {
            shard.slots[index] = slot;
        }
        object
    }

    pub(super) fn remove(&self, object: Object) {
        let Some((shard, index)) = slot_of(object.id) else { return };
        let mut shard = self.shards[shard].write().unwrap_or_else(PoisonError::into_inner);
        let slot = shard.slots.get_mut(index).filter(|slot| slot.generation == object.generation);
        if slot.is_some_and(|slot| slot.node.take().is_some()) {
            shard.free.push(index);
        }
    }
}

/// Ids begin at 2: some clients take file id 0 for none, and 1 is a bad block list.
fn id_of(shard: usize, index: usize) -> u64 {
    (index * SHARDS + shard) as u64 + 2
}

fn slot_of(id: u64) -> Option<(usize, usize)> {
    let number = usize::try_from(id.checked_sub(2)?).ok()?;
    Some((number % SHARDS, number / SHARDS))
}

/// An object behind its lock.
#[derive(Debug)]
pub(super) struct Node(RwLock<State>);

impl Node {
    pub(super) fn new(state: State) -> Self {
        Self(RwLock::new(state))
    }

    /// A panic inside a lock is a bug of ours that has been reported; state stays consistent
    /// enough to answer with, because every change is made after all checks.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Attributes and content of an object.
#[derive(Debug)]
pub(super) struct State {
    pub(super) file_id: u64,
    pub(super) links: u32,
    pub(super) body: Body,
    /// Verifier of the exclusive CREATE that made it.
    pub(super) exclusive: Option<[u8; 8]>,
    mode: u32,
    uid: u32,
    gid: u32,
    atime: TimeSpec3,
    mtime: TimeSpec3,
    ctime: TimeSpec3,
}

#[derive(Debug)]
pub(super) enum Body {
    File(Data),
    Directory(Entries),
    Link(Box<[u8]>),
    Special(FileKind, Device),
}

impl State {
    pub(super) fn new(file_id: u64, body: Body, caller: Caller) -> Self {
        let now = now();
        Self {
            file_id,
            links: 1,
            body,
            exclusive: None,
            mode: MODE_DEFAULT,
            uid: caller.uid,
            gid: caller.gid,
            atime: now,
            mtime: now,
            ctime: now,
        }
    }

    pub(super) fn kind(&self) -> FileKind {
        match &self.body {
            Body::File(_) => FileKind::Regular,
            Body::Directory(_) => FileKind::Directory,
            Body::Link(_) => FileKind::Symlink,
            Body::Special(kind, _) => *kind,
        }
    }

    pub(super) fn entry_is(&self) -> EntryIs {
        match &self.body {
            Body::Directory(_) => EntryIs::Directory,
            _ => EntryIs::Other,
        }
    }

    pub(super) fn attributes(&self) -> FileAttributes {
        let (size, used) = match &self.body {
            Body::File(data) => (data.size(), data.charged()),
            Body::Directory(entries) => (entries.size(), 0),
            Body::Link(text) => (text.len() as u64, text.len() as u64),
            Body::Special(..) => (0, 0),
        };
        FileAttributes {
            kind: self.kind(),
            mode: self.mode,
            nlink: match &self.body {
                Body::Directory(entries) if self.links > 0 => entries.links(),
                _ => self.links,
            },
            uid: self.uid,
            gid: self.gid,
            size,
            used,
            device: match self.body {
                Body::Special(_, device) => device,
                _ => Device { major: 0, minor: 0 },
            },
            fsid: FILE_SYSTEM,
            fileid: self.file_id,
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
        }
    }

    /// [`Status3::STALE`] once the last name is gone, even for those who found it before.
    pub(super) fn alive(&self) -> Result<(), Status3> {
        if self.links == 0 { Err(Status3::STALE) } else { Ok(()) }
    }

    pub(super) fn entries(&self) -> Result<&Entries, Status3> {
        self.alive()?;
        match &self.body {
            Body::Directory(entries) => Ok(entries),
            _ => Err(Status3::NOTDIR),
        }
    }

    pub(super) fn entries_mut(&mut self) -> Result<&mut Entries, Status3> {
        self.alive()?;
        match &mut self.body {
            Body::Directory(entries) => Ok(entries),
            _ => Err(Status3::NOTDIR),
        }
    }

    pub(super) fn data(&self) -> Result<&Data, Status3> {
        self.alive()?;
        match &self.body {
            Body::File(data) => Ok(data),
            Body::Directory(_) => Err(Status3::ISDIR),
            _ => Err(Status3::INVAL),
        }
    }

    pub(super) fn data_mut(&mut self) -> Result<&mut Data, Status3> {
        self.alive()?;
        match &mut self.body {
            Body::File(data) => Ok(data),
            Body::Directory(_) => Err(Status3::ISDIR),
            _ => Err(Status3::INVAL),
        }
    }

    /// Runs `change` and returns what it did to the attributes.
    pub(super) fn watched(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<(), Status3>,
    ) -> Result<WccData, Status3> {
        self.alive()?;
        let before = self.attributes();
        change(self)?;
        let FileAttributes { size, mtime, ctime, .. } = before;
        let before = Some(WccAttributes { size, mtime, ctime });
        Ok(WccData { before, after: Some(self.attributes()) })
    }

    pub(super) fn set(&mut self, to: &SetAttributes, budget: &Budget) -> Result<(), Status3> {
        let now = now();
        if let Some(size) = to.size {
            self.data_mut()?.resize(size, budget)?;
            self.mtime = now;
        }
        self.mode = to.mode.map_or(self.mode, |mode| mode & MODE_BITS_KEPT);
        self.uid = to.uid.unwrap_or(self.uid);
        self.gid = to.gid.unwrap_or(self.gid);
        for (time, setting) in [(&mut self.atime, to.atime), (&mut self.mtime, to.mtime)] {
            match setting {
                SetTime::Keep => {}
                SetTime::ServerTime => *time = now,
                SetTime::To(instant) => *time = instant,
            }
        }
        self.change_at(now);
        Ok(())
    }

    /// The time of the last change is another after each change, so that it counts them.
    fn change_at(&mut self, now: TimeSpec3) {
        self.ctime = TimeSpec3::from_ns(now.ns().max(self.ctime.ns() + 1));
    }

    /// One name more or less.
    pub(super) fn add_link(&mut self) -> Result<(), Status3> {
        if self.links >= LINKS_MAX {
            return Err(Status3::MLINK);
        }
        self.links += 1;
        self.change_at(now());
        Ok(())
    }

    pub(super) fn drop_link(&mut self) {
        self.links -= 1;
        self.change_at(now());
    }

    /// Content was changed now.
    pub(super) fn touch(&mut self) {
        self.mtime = now();
        self.change_at(self.mtime);
    }
}

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
        rest.map(|(cookie, e)| (*cookie, Arc::clone(&e.name), e.object)).take(count).collect()
    }
}

/// What an entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryIs {
    Directory,
    Other,
}
