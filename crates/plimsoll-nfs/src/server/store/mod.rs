//! The file system behind the server: objects by id, in memory.
//!
//! It knows nothing of RPC. Every client may do everything: owner and mode of objects are kept and
//! not enforced. Set-id bits are never set.
//!
//! Every object has a lock of its own. A thread that holds the locks of more than one object also
//! holds the `namespace` mutex, so threads that lock one object each cannot deadlock.

mod names;
mod nodes;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_servers::memory::Budget;

use self::names::plain_name;
use self::nodes::{Body, Entries, Nodes, State};

// Store and server use the object types of NFSv3.
pub use crate::wire::v3::{
    Device, FileAttributes, FileKind, SetAttributes, SetTime, Status3, TimeSpec3, WccAttributes,
    WccData,
};

/// Longest name of a directory entry, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 255;
/// Longest text of a symbolic link, in bytes.
const LINK_BYTES_MAX: usize = 1024;
/// Names an object may have.
pub(super) const LINKS_MAX: u32 = 32_000;
/// Bits of a mode that can be set: permissions and sticky. A set-id bit that anybody on the network
/// may set would hand out the identity this server runs with.
const MODE_BITS_KEPT: u32 = 0o1777;

/// Memory charged for an object besides its name and content.
const OBJECT_CHARGE: u64 = 512;
/// Entries copied out of a directory at a time while listing it.
const LIST_BATCH: usize = 128;

/// A file system in memory, gone with the server. All methods may be called from many threads at
/// once.
#[derive(Debug)]
pub struct Store {
    nodes: Nodes,
    root: Object,
    budget: Budget,
    namespace: Mutex<()>,
    instance: u64,
}

impl Store {
    /// An empty file system of at most `memory_max` bytes, names and bookkeeping included.
    pub fn new(memory_max: u64) -> Self {
        let budget = Budget::new(memory_max);
        let nodes = Nodes::new();
        let caller = Caller { uid: 0, gid: 0 };
        let root = nodes.add(|root| {
            let mut state = State::new(root.id, Body::Directory(Entries::new(root)), caller);
            // Cannot fail: no size is set.
            let _ = state.set(&mode(0o777), &budget);
            state
        });
        // Keyed with the system's randomness: another number at every start.
        let instance = RandomState::new().hash_one("plimsoll nfs instance");
        Self { nodes, root, budget, namespace: Mutex::new(()), instance }
    }

    fn names(&self) -> MutexGuard<'_, ()> {
        self.namespace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes into every handle; handles with another one are stale.
    pub fn instance(&self) -> u64 {
        self.instance
    }

    /// Changes when unstable writes may have been lost (RFC 1813 §3.3.7). Memory loses nothing
    /// while the server runs, and everything when it ends.
    pub fn write_verifier(&self) -> [u8; 8] {
        self.instance.to_be_bytes()
    }

    /// The exported directory.
    pub fn root(&self) -> Object {
        self.root
    }

    /// GETATTR.
    pub fn attributes(&self, object: Object) -> Result<FileAttributes, Status3> {
        let node = self.nodes.get(object)?;
        let state = node.read();
        state.alive()?;
        Ok(state.attributes())
    }

    /// SETATTR; with `guard` only if that is when the object last changed.
    pub fn set(
        &self,
        object: Object,
        to: &SetAttributes,
        guard: Option<TimeSpec3>,
    ) -> Result<WccData, Status3> {
        let node = self.nodes.get(object)?;
        let mut state = node.write();
        if guard.is_some_and(|guard| guard != state.attributes().ctime) {
            return Err(Status3::NOT_SYNC);
        }
        state.watched(|state| state.set(to, &self.budget))
    }

    /// LOOKUP; knows `.` and `..`, the latter of the root being the root.
    pub fn lookup(&self, path: NodePath<'_>) -> Result<(Object, FileAttributes), Status3> {
        let directory = self.nodes.get(path.directory)?;
        let object = {
            let state = directory.read();
            let entries = state.entries()?;
            match path.name {
                b"." => return Ok((path.directory, state.attributes())),
                b".." => entries.parent,
                name => {
                    plain_name(name)?;
                    entries.find(name).ok_or(Status3::NOENT)?
                }
            }
        };
        let attributes = self.attributes(object);
        // Removed since: then the name is gone as well.
        Ok((object, attributes.map_err(|_| Status3::NOENT)?))
    }

    /// READLINK; appends the text to `into`.
    pub fn read_link(&self, object: Object, into: &mut Vec<u8>) -> Result<(), Status3> {
        let node = self.nodes.get(object)?;
        let state = node.read();
        let Body::Link(text) = &state.body else { return Err(Status3::INVAL) };
        into.extend_from_slice(text);
        Ok(())
    }

    /// READ; appends at most `count` bytes to `into`.
    pub fn read(
        &self,
        object: Object,
        offset: u64,
        count: u32,
        into: &mut Vec<u8>,
    ) -> Result<ReadDone, Status3> {
        let node = self.nodes.get(object)?;
        let state = node.read();
        let data = state.data()?;
        data.read(offset, count, into);
        let at_end = offset.saturating_add(u64::from(count)) >= data.size();
        Ok(ReadDone { at_end, attributes: state.attributes() })
    }

    /// WRITE; all of `data` or nothing.
    pub fn write(&self, object: Object, offset: u64, data: &[u8]) -> Result<WccData, Status3> {
        let node = self.nodes.get(object)?;
        node.write().watched(|state| {
            state.data_mut()?.write(offset, data, &self.budget)?;
            state.touch();
            Ok(())
        })
    }

    /// READDIR and READDIRPLUS: the entries after `cookie` (0: from the beginning).
    pub fn list(
        &self,
        directory: Object,
        cookie: u64,
        detail: Detail,
        each: &mut EachEntry<'_>,
    ) -> Result<ListEnd, Status3> {
        let node = self.nodes.get(directory)?;
        let parent = node.read().entries()?.parent;
        let mut show = |cookie: u64, name: &[u8], object: Object| {
            let attributes = match detail {
                Detail::Names => None,
                Detail::Attributes => self.attributes(object).ok(),
            };
            let resolved = attributes.map(|attributes| (object, attributes));
            each(&Listed { cookie, name, file_id: object.id, resolved })
        };
        let dots: [(u64, &[u8], Object); 2] = [(1, b".", directory), (2, b"..", parent)];
        for (at, name, object) in dots {
            if cookie < at && !show(at, name, object) {
                return Ok(ListEnd::Interrupted);
            }
        }
        let mut from = cookie.max(2);
        loop {
            // Copied, so that no lock is held while the entries' own are taken.
            let batch = node.read().entries()?.after(from, LIST_BATCH);
            for (at, name, object) in &batch {
                if !show(*at, name, *object) {
                    return Ok(ListEnd::Interrupted);
                }
                from = *at;
            }
            if batch.len() < LIST_BATCH {
                return Ok(ListEnd::Complete);
            }
        }
    }

    /// FSSTAT.
    pub fn space(&self) -> Space {
        let (total_bytes, free_bytes) = (self.budget.max(), self.budget.free());
        Space {
            total_bytes,
            free_bytes,
            total_files: total_bytes / OBJECT_CHARGE,
            free_files: free_bytes / OBJECT_CHARGE,
        }
    }

    /// COMMIT.
    pub fn commit(&self, object: Object) -> Result<(), Status3> {
        let node = self.nodes.get(object)?;
        node.read().data().map(drop)
    }
}

/// Settings that set only the mode.
fn mode(mode: u32) -> SetAttributes {
    SetAttributes { mode: Some(mode), ..SetAttributes::default() }
}

/// An object, as handles carry it. Ids are used again after a removal, with another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// What the store calls it; also its file id.
    pub id: u64,
    /// Tells objects apart that had the same id one after the other.
    pub generation: u64,
}

/// A name in a directory.
#[derive(Clone, Copy, Debug)]
pub struct NodePath<'a> {
    /// The directory.
    pub directory: Object,
    /// The name, as received.
    pub name: &'a [u8],
}

/// The caller, who owns new objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// What to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum New<'a> {
    /// A regular file.
    File(Creation),
    /// A directory.
    Directory,
    /// A symbolic link with this text.
    Link(&'a [u8]),
    /// A named pipe, socket or device with its major and minor number.
    Special(FileKind, Device),
}

/// What CREATE does with a name that exists (RFC 1813 §3.3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// Takes the file as it is; a size that is set cuts it.
    Unchecked,
    /// Fails.
    Guarded,
    /// Fails unless the file was made with the same verifier.
    Exclusive([u8; 8]),
}

/// What a removal is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalKind {
    /// Anything but a directory.
    File,
    /// An empty directory.
    Directory,
}

/// Answer to a creation.
#[derive(Clone, Copy, Debug)]
pub struct Created {
    /// The object.
    pub object: Object,
    /// Its attributes.
    pub attributes: FileAttributes,
    /// What became of the directory.
    pub directory: WccData,
}

/// Answer to a READ; the bytes were appended to the caller's buffer.
#[derive(Clone, Copy, Debug)]
pub struct ReadDone {
    /// Whether the last byte read is the last of the file, or lies behind it.
    pub at_end: bool,
    /// Attributes, read with the data.
    pub attributes: FileAttributes,
}

/// How much a listing reports of each entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Name and file id.
    Names,
    /// Attributes as well.
    Attributes,
}

/// One entry of a listing.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    /// Goes on after this entry. Below 2³¹, so that NFSv2 can carry it.
    pub cookie: u64,
    /// Its name.
    pub name: &'a [u8],
    /// Its file id.
    pub file_id: u64,
    /// With [`Detail::Attributes`], unless it was removed since.
    pub resolved: Option<(Object, FileAttributes)>,
}

/// Whether a listing is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListEnd {
    /// The last entry was delivered.
    Complete,
    /// The receiver stopped the listing.
    Interrupted,
}

/// Gets one entry after the other; false: no room for this one.
pub type EachEntry<'a> = dyn FnMut(&Listed<'_>) -> bool + 'a;

/// Space of the store, in bytes and objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes in all.
    pub total_bytes: u64,
    /// Bytes free.
    pub free_bytes: u64,
    /// Objects in all.
    pub total_files: u64,
    /// Objects that can still be made.
    pub free_files: u64,
}

impl From<plimsoll_servers::memory::Full> for Status3 {
    fn from(full: plimsoll_servers::memory::Full) -> Self {
        match full {
            plimsoll_servers::memory::Full::TooBig => Self::FBIG,
            plimsoll_servers::memory::Full::NoSpace => Self::NOSPC,
        }
    }
}

pub(crate) fn now() -> TimeSpec3 {
    let since = plimsoll_servers::clock::since_1970();
    let seconds = u32::try_from(since.as_secs()).unwrap_or(u32::MAX);
    TimeSpec3 { seconds, nanoseconds: since.subsec_nanos() }
}

const NS_PER_S: u64 = 1_000_000_000;

impl TimeSpec3 {
    /// Since 1970, in nanoseconds.
    pub(super) fn ns(self) -> u64 {
        u64::from(self.seconds) * NS_PER_S + u64::from(self.nanoseconds)
    }

    fn from_ns(ns: u64) -> Self {
        let seconds = u32::try_from(ns / NS_PER_S).unwrap_or(u32::MAX);
        Self { seconds, nanoseconds: (ns % NS_PER_S) as u32 }
    }
}
