//! A share in memory: names that ignore case and keep it, content charged to a budget.
//!
//! Every directory has a lock of its own. Whoever holds the locks of two holds the `namespace`
//! mutex, so lockers of one can wait for nobody who waits for them.

mod filetime;
mod names;
mod node;
mod open;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use smb_server::{
    BackendCapabilities, Handle, OpenAction, OpenIntent, OpenOptions, ShareBackend, SmbError,
    SmbPath, SmbResult, VolumeInfo,
};

use names::fold;
use node::{Entries, Kind, Node};
use open::Open;
use plimsoll_servers::delay::{DelayLaw, Work};
use plimsoll_servers::memory::Budget;

/// Bytes of what a share calls an allocation unit.
const UNIT_BYTES: u64 = 4096;
/// Deepest path; taking a tree down recurses this deep.
const DEPTH_MAX: usize = 128;

/// A share in memory, gone with the server.
pub(super) struct MemoryShare {
    root: Arc<Node>,
    budget: Arc<Budget>,
    last_id: AtomicU64,
    namespace: Mutex<()>,
    /// Holds what is read.
    delay: Option<Arc<DelayLaw>>,
    /// Done for each read and write.
    work: Work,
}

/// The directory a name is in, and the name.
struct Place<'a> {
    directory: Arc<Node>,
    name: &'a str,
}

impl MemoryShare {
    /// An empty share of at most `bytes_max` bytes, names and bookkeeping included.
    pub(super) fn new(bytes_max: u64) -> Self {
        let budget = Arc::new(Budget::new(bytes_max));
        // The root is not charged, so that it exists however little there is.
        let root = Node::root(super::SHARE, &budget);
        Self {
            root,
            budget,
            last_id: AtomicU64::new(1),
            namespace: Mutex::new(()),
            delay: None,
            work: Work::default(),
        }
    }

    /// The same, with reads that are held by `law`.
    pub(super) fn delayed_by(self, law: Option<Arc<DelayLaw>>) -> Self {
        Self { delay: law, ..self }
    }

    /// The same, with so much work besides for each read and write.
    pub(super) fn with_work(self, work: Work) -> Self {
        Self { work, ..self }
    }

    fn names(&self) -> MutexGuard<'_, ()> {
        self.namespace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where `path` is or could be. The root is in no place: `None`.
    fn place<'a>(&self, path: &'a SmbPath) -> SmbResult<Option<Place<'a>>> {
        let Some((name, above)) = path.components().split_last() else { return Ok(None) };
        if above.len() >= DEPTH_MAX {
            return Err(SmbError::NameInvalid);
        }
        let mut directory = Arc::clone(&self.root);
        for name in above {
            let found = directory.entries().map_err(no_path)?.get(&fold(name)).cloned();
            directory = found.ok_or(SmbError::PathNotFound)?;
        }
        Ok(Some(Place { directory, name }))
    }

    fn make(&self, place: &Place<'_>, options: &OpenOptions) -> SmbResult<Arc<Node>> {
        let kind = if options.directory { Kind::Directory } else { Kind::File };
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        Node::charged(id, place.name, kind, &self.budget)
    }

    /// The object at `place`, made if `options` say so.
    fn find_or_make(
        &self,
        place: &Place<'_>,
        options: &OpenOptions,
    ) -> SmbResult<(Arc<Node>, OpenAction)> {
        let key = fold(place.name);
        let found = place.directory.entries().map_err(no_path)?.get(&key).cloned();
        if let Some(node) = found {
            let action = node.open(options)?;
            return Ok((node, action));
        }
        if matches!(options.intent, OpenIntent::Open | OpenIntent::Truncate) {
            return Err(SmbError::NotFound);
        }
        let mut entries = place.directory.entries_mut().map_err(no_path)?;
        // Another client may have been faster.
        if let Some(node) = entries.get(&key).cloned() {
            drop(entries);
            let action = node.open(options)?;
            return Ok((node, action));
        }
        let node = self.make(place, options)?;
        entries.insert(key, Arc::clone(&node));
        drop(entries);
        place.directory.touch();
        Ok((node, OpenAction::Created))
    }

    fn unlink_at(&self, place: &Place<'_>) -> SmbResult<()> {
        let _alone = self.names();
        let key = fold(place.name);
        let mut entries = place.directory.entries_mut().map_err(no_path)?;
        let node = entries.get(&key).ok_or(SmbError::NotFound)?;
        node.unlink()?;
        entries.remove(&key);
        drop(entries);
        place.directory.touch();
        Ok(())
    }

    fn rename_at(&self, from: &Place<'_>, to: &Place<'_>, replace: Replace) -> SmbResult<()> {
        let _alone = self.names();
        let (old, new) = (fold(from.name), fold(to.name));
        let mut source = from.directory.entries_mut().map_err(no_path)?;
        let node = source.get(&old).cloned().ok_or(SmbError::NotFound)?;
        if Arc::ptr_eq(&from.directory, &to.directory) {
            make_way(&source, &new, &node, replace)?;
            source.remove(&old);
            source.insert(new, Arc::clone(&node));
        } else {
            let mut target = to.directory.entries_mut().map_err(no_path)?;
            make_way(&target, &new, &node, replace)?;
            source.remove(&old);
            target.insert(new, Arc::clone(&node));
        }
        drop(source);
        node.rename(to.name);
        from.directory.touch();
        to.directory.touch();
        Ok(())
    }
}

/// What a rename does to a file of the new name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replace {
    Yes,
    No,
}

/// Makes sure that `node` may take the name `key`.
fn make_way(entries: &Entries, key: &str, node: &Arc<Node>, replace: Replace) -> SmbResult<()> {
    match entries.get(key) {
        None => Ok(()),
        Some(present) if Arc::ptr_eq(present, node) => Ok(()),
        Some(_) if replace == Replace::No => Err(SmbError::Exists),
        Some(present) => present.replaced(),
    }
}

/// A directory on the way that is a file, or is gone.
fn no_path(_: SmbError) -> SmbError {
    SmbError::PathNotFound
}

/// Whether `inner` lies below `outer`.
fn is_below(inner: &SmbPath, outer: &SmbPath) -> bool {
    let (inner, outer) = (inner.components(), outer.components());
    let same = |(a, b): (&String, &String)| fold(a) == fold(b);
    inner.len() > outer.len() && inner.iter().zip(outer).all(same)
}

#[async_trait]
impl ShareBackend for MemoryShare {
    async fn open(
        &self,
        path: &SmbPath,
        options: OpenOptions,
    ) -> SmbResult<(Box<dyn Handle>, OpenAction)> {
        let (node, action) = match self.place(path)? {
            Some(place) => self.find_or_make(&place, &options)?,
            None => (Arc::clone(&self.root), self.root.open(&options)?),
        };
        Ok((Box::new(Open::of(node, self.delay.clone(), self.work)), action))
    }

    async fn unlink(&self, path: &SmbPath) -> SmbResult<()> {
        self.unlink_at(&self.place(path)?.ok_or(SmbError::AccessDenied)?)
    }

    async fn rename(&self, from: &SmbPath, to: &SmbPath, replace_if_exists: bool) -> SmbResult<()> {
        if is_below(to, from) {
            return Err(SmbError::AccessDenied);
        }
        let replace = if replace_if_exists { Replace::Yes } else { Replace::No };
        let from = self.place(from)?.ok_or(SmbError::AccessDenied)?;
        let to = self.place(to)?.ok_or(SmbError::AccessDenied)?;
        self.rename_at(&from, &to, replace)
    }

    fn capabilities(&self) -> BackendCapabilities {
        BackendCapabilities::default()
    }

    async fn volume_info(&self) -> SmbResult<VolumeInfo> {
        let mut info = VolumeInfo::default();
        let free = self.budget.free() / UNIT_BYTES;
        info.total_allocation_units = self.budget.max() / UNIT_BYTES;
        info.caller_available_allocation_units = free;
        info.actual_available_allocation_units = free;
        (info.sectors_per_allocation_unit, info.bytes_per_sector) = (8, 512);
        Ok(info)
    }
}

#[cfg(test)]
mod tests;
