//! From handles to files: where an inode was seen last, and what is open.
//!
//! The system opens files by name, handles carry inode numbers. For files a bounded cache says
//! where each was seen; a file that it has forgotten is looked for in the directory its handle
//! names, by one pass over it, so handles outlive the cache and the server. Directories are kept
//! all, since the way up from a forgotten one is not in a handle; after a restart one walk over
//! the directories finds them.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::recent::Recent;
use super::status::{self, Status, fault};
use crate::server::store::{FileKind, Object, Status3};

/// Files whose place is remembered; about 100 bytes each.
const FILES_MAX: usize = 1 << 20;
/// Directories that are known at most; about 150 bytes each.
const DIRECTORIES_MAX: usize = 1 << 22;
/// Descriptors kept open at most, when the system allows so many.
const OPEN_MAX: u64 = 16_384;
/// Descriptors left to connections, of which each takes two, and everything else; at most half
/// of what the system allows.
const OPEN_RESERVE: u64 = 1200;
/// Deepest directory.
pub(super) const DEPTH_MAX: usize = 512;

/// An open file or directory.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) file: OwnedFd,
    generation: u64,
    pub(super) is_writable: bool,
}

impl AsFd for Open {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A directory and a name in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) parent: u64,
    pub(super) name: Arc<[u8]>,
}

/// An object found below the root.
#[derive(Debug)]
pub(super) struct Found {
    /// The directory it is in.
    pub(super) directory: Arc<Open>,
    /// Its name there.
    pub(super) name: Arc<[u8]>,
    pub(super) status: Status,
}

/// What a descriptor is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Read,
    Write,
}

/// All that is known of the tree below the root.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) root: Arc<Open>,
    pub(super) root_status: Status,
    files: Recent<Seen>,
    directories: RwLock<HashMap<u64, Seen>>,
    open: Recent<Arc<Open>>,
    /// Whether all directories have been walked over.
    pub(super) walked: Mutex<bool>,
}

impl Places {
    pub(super) fn new(root: OwnedFd) -> Result<Self, Status3> {
        let root_status = status::of_descriptor(&root)?;
        let generation = root_status.generation;
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(OPEN_MAX);
        let open_max = limit.saturating_sub(OPEN_RESERVE).max(limit / 2).clamp(32, OPEN_MAX);
        Ok(Self {
            root: Arc::new(Open { file: root, generation, is_writable: false }),
            root_status,
            files: Recent::new(FILES_MAX),
            directories: RwLock::default(),
            open: Recent::new(open_max as usize),
            walked: Mutex::new(false),
        })
    }

    pub(super) fn root_id(&self) -> u64 {
        self.root_status.id()
    }

    /// Status of an object: by its descriptor where it is open, else by its name.
    pub(super) fn status(&self, object: Object) -> Result<Status, Status3> {
        if let Some(open) = self.opened(object) {
            let found = status::of_descriptor(&open)?;
            if found.attributes.nlink > 0 {
                return Ok(found);
            }
            self.open.remove(object.id);
            return Err(Status3::STALE);
        }
        self.find(object).map(|found| found.status)
    }

    fn opened(&self, object: Object) -> Option<Arc<Open>> {
        if object.id == self.root_id() {
            return (object.generation == self.root.generation).then(|| Arc::clone(&self.root));
        }
        self.open.get(object.id).filter(|open| open.generation == object.generation)
    }

    /// Directory, name and status of an object that is not the root.
    pub(super) fn find(&self, object: Object) -> Result<Found, Status3> {
        if let Some(seen) = self.seen(object.id)
            && let Ok(directory) = self.directory_of_id(seen.parent)
            && let Ok(status) = status::of_name(&directory, &seen.name)
            && (status.id(), status.generation) == (object.id, object.generation)
        {
            return Ok(Found { directory, name: seen.name, status });
        }
        self.search(object)
    }

    fn seen(&self, id: u64) -> Option<Seen> {
        let directories = self.directories.read().unwrap_or_else(PoisonError::into_inner);
        let known = directories.get(&id).cloned();
        drop(directories);
        known.or_else(|| self.files.get(id))
    }

    /// Remembers where an object is.
    pub(super) fn saw(&self, found: &Status, parent: u64, name: Arc<[u8]>) -> Result<(), Status3> {
        let seen = Seen { parent, name };
        if !found.is_directory() {
            self.files.insert(found.id(), seen);
            return Ok(());
        }
        let directories = self.directories.read().unwrap_or_else(PoisonError::into_inner);
        let is_known = directories.get(&found.id()) == Some(&seen);
        drop(directories);
        if is_known {
            return Ok(());
        }
        let mut directories = self.directories.write().unwrap_or_else(PoisonError::into_inner);
        if directories.len() >= DIRECTORIES_MAX && !directories.contains_key(&found.id()) {
            return Err(Status3::NOSPC);
        }
        directories.insert(found.id(), seen);
        Ok(())
    }

    /// Forgets an object that is gone.
    pub(super) fn lost(&self, id: u64) {
        self.open.remove(id);
        self.files.remove(id);
        self.directories.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// Forgets that an object had this name; all of it, if that was the last.
    pub(super) fn lost_name(&self, found: &Status, parent: u64, name: &[u8]) {
        if found.is_directory() || found.attributes.nlink < 2 {
            return self.lost(found.id());
        }
        let seen = self.files.get(found.id());
        if seen.is_some_and(|seen| seen.parent == parent && *seen.name == *name) {
            self.files.remove(found.id());
        }
    }

    /// A handle for what was found in a directory.
    pub(super) fn object(&self, found: &Status, parent: u64) -> Object {
        let parent = if found.id() == self.root_id() { 0 } else { parent };
        Object { id: found.id(), generation: found.generation, parent }
    }

    /// The directory above another; the root's is itself.
    pub(super) fn parent_of(&self, directory: Object) -> Result<u64, Status3> {
        if directory.id == self.root_id() {
            return Ok(self.root_id());
        }
        let seen = self.seen(directory.id).ok_or(Status3::STALE)?;
        Ok(seen.parent)
    }

    /// A directory for a handle.
    pub(super) fn directory(&self, object: Object) -> Result<Arc<Open>, Status3> {
        if let Some(open) = self.opened(object) {
            return Ok(open);
        }
        let Found { directory, name, status } = self.find(object)?;
        if !status.is_directory() {
            return Err(Status3::NOTDIR);
        }
        self.open_directory(&directory, &name, object.id)
    }

    /// A directory by its number, on the way to something in it.
    pub(super) fn directory_of_id(&self, id: u64) -> Result<Arc<Open>, Status3> {
        match self.way_to(id) {
            Err(Status3::STALE) if self.walk()? => self.way_to(id),
            found => found,
        }
    }

    /// Opens what is missing on the way from the root down.
    pub(super) fn way_to(&self, id: u64) -> Result<Arc<Open>, Status3> {
        let mut missing = Vec::new();
        let mut at = id;
        let mut open = loop {
            if at == self.root_id() {
                break Arc::clone(&self.root);
            }
            if let Some(open) = self.open.get(at) {
                break open;
            }
            let seen = self.seen(at).ok_or(Status3::STALE)?;
            missing.push((at, seen.name));
            at = seen.parent;
            if missing.len() > DEPTH_MAX {
                return Err(Status3::STALE);
            }
        };
        for (id, name) in missing.into_iter().rev() {
            open = self.open_directory(&open, &name, id)?;
        }
        Ok(open)
    }

    fn open_directory(&self, parent: &Open, name: &[u8], id: u64) -> Result<Arc<Open>, Status3> {
        let file = self.open_at(parent, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let found = status::of_descriptor(&file)?;
        if found.id() != id {
            return Err(Status3::STALE);
        }
        Ok(self.keep(file, &found, Purpose::Read))
    }

    /// Opens one name in a directory; never follows a link, never leaves the mount.
    pub(super) fn open_at(
        &self,
        directory: &Open,
        name: &[u8],
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, Status3> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_XDEV;
        let open = || openat2(directory, name, flags, mode, resolve);
        let opened = match open() {
            Err(Errno::MFILE | Errno::NFILE) => {
                self.open.clear();
                open()
            }
            opened => opened,
        };
        opened.map_err(fault)
    }

    /// Remembers a descriptor.
    pub(super) fn keep(&self, file: OwnedFd, found: &Status, purpose: Purpose) -> Arc<Open> {
        let is_writable = purpose == Purpose::Write;
        let open = Arc::new(Open { file, generation: found.generation, is_writable });
        self.open.insert(found.id(), Arc::clone(&open));
        open
    }

    /// A regular file, open for `purpose`.
    pub(super) fn file(&self, object: Object, purpose: Purpose) -> Result<Arc<Open>, Status3> {
        if object.id == self.root_id() {
            return Err(Status3::ISDIR);
        }
        if let Some(open) = self.opened(object)
            && (open.is_writable || purpose == Purpose::Read && self.is_no_directory(object.id))
        {
            return Ok(open);
        }
        let Found { directory, name, status } = self.find(object)?;
        regular(&status)?;
        let (file, purpose) = match self.open_at(&directory, &name, OFlags::RDWR, Mode::empty()) {
            Err(Status3::ACCES | Status3::PERM | Status3::ROFS | Status3::IO)
                if purpose == Purpose::Read =>
            {
                let file = self.open_at(&directory, &name, OFlags::RDONLY, Mode::empty())?;
                (file, Purpose::Read)
            }
            opened => (opened?, Purpose::Write),
        };
        // Somebody may have put something else there meanwhile.
        let found = status::of_descriptor(&file)?;
        regular(&found)?;
        if (found.id(), found.generation) != (object.id, object.generation) {
            return Err(Status3::STALE);
        }
        Ok(self.keep(file, &found, purpose))
    }

    fn is_no_directory(&self, id: u64) -> bool {
        let directories = self.directories.read().unwrap_or_else(PoisonError::into_inner);
        !directories.contains_key(&id)
    }
}

fn regular(found: &Status) -> Result<(), Status3> {
    match found.attributes.kind {
        FileKind::Regular => Ok(()),
        FileKind::Directory => Err(Status3::ISDIR),
        _ => Err(Status3::INVAL),
    }
}
