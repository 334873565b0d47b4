//! A share in memory: names that ignore case and keep it, content charged to a budget.
//!
//! Every directory has a lock of its own. A thread that holds the locks of two also holds the
//! `namespace` mutex, so threads that lock one cannot deadlock.

mod node;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use plimsoll_servers::delay::{DelayLaw, Work, now_ns};
use plimsoll_servers::memory::Budget;
use smb_server::{
    BackendCapabilities, Bytes, DirEntry, FileInfo, FileTimes, Handle, OpenAction, OpenIntent,
    OpenOptions, ShareBackend, SmbError, SmbPath, SmbResult, VolumeInfo,
};

use node::{Entries, Kind, Node, fold};

/// Bytes of an allocation unit of the share.
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
struct NodePath<'a> {
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

    /// The same, with reads delayed by `law`.
    pub(super) fn delayed_by(self, law: Option<Arc<DelayLaw>>) -> Self {
        Self { delay: law, ..self }
    }

    /// The same, with additional work for each read and write.
    pub(super) fn with_work(self, work: Work) -> Self {
        Self { work, ..self }
    }

    fn names(&self) -> MutexGuard<'_, ()> {
        self.namespace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where `path` is or could be; `None` for the root.
    fn node_path<'a>(&self, path: &'a SmbPath) -> SmbResult<Option<NodePath<'a>>> {
        let Some((name, above)) = path.components().split_last() else { return Ok(None) };
        if above.len() >= DEPTH_MAX {
            return Err(SmbError::NameInvalid);
        }
        let mut directory = Arc::clone(&self.root);
        for name in above {
            let existing = directory.entries().map_err(no_path)?.get(&fold(name)).cloned();
            directory = existing.ok_or(SmbError::PathNotFound)?;
        }
        Ok(Some(NodePath { directory, name }))
    }

    fn make(&self, node_path: &NodePath<'_>, options: &OpenOptions) -> SmbResult<Arc<Node>> {
        let kind = if options.directory { Kind::Directory } else { Kind::File };
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        Node::charged(id, node_path.name, kind, &self.budget)
    }

    /// The object at `node_path`, made if `options` allow it.
    fn find_or_make(
        &self,
        node_path: &NodePath<'_>,
        options: &OpenOptions,
    ) -> SmbResult<(Arc<Node>, OpenAction)> {
        let key = fold(node_path.name);
        let existing = node_path.directory.entries().map_err(no_path)?.get(&key).cloned();
        if let Some(node) = existing {
            let action = node.open(options)?;
            return Ok((node, action));
        }
        if matches!(options.intent, OpenIntent::Open | OpenIntent::Truncate) {
            return Err(SmbError::NotFound);
        }
        let mut entries = node_path.directory.entries_mut().map_err(no_path)?;
        // Another client may have been faster.
        if let Some(node) = entries.get(&key).cloned() {
            drop(entries);
            let action = node.open(options)?;
            return Ok((node, action));
        }
        let node = self.make(node_path, options)?;
        entries.insert(key, Arc::clone(&node));
        drop(entries);
        node_path.directory.touch();
        Ok((node, OpenAction::Created))
    }

    fn unlink_at(&self, node_path: &NodePath<'_>) -> SmbResult<()> {
        let _alone = self.names();
        let key = fold(node_path.name);
        let mut entries = node_path.directory.entries_mut().map_err(no_path)?;
        entries.get(&key).ok_or(SmbError::NotFound)?.unlink()?;
        entries.remove(&key);
        drop(entries);
        node_path.directory.touch();
        Ok(())
    }

    fn rename_at(&self, from: &NodePath<'_>, to: &NodePath<'_>, replace: Replace) -> SmbResult<()> {
        let _alone = self.names();
        let (old, new) = (fold(from.name), fold(to.name));
        let mut source = from.directory.entries_mut().map_err(no_path)?;
        let node = source.get(&old).cloned().ok_or(SmbError::NotFound)?;
        if Arc::ptr_eq(&from.directory, &to.directory) {
            free_name(&source, &new, &node, replace)?;
            source.remove(&old);
            source.insert(new, Arc::clone(&node));
        } else {
            let mut target = to.directory.entries_mut().map_err(no_path)?;
            free_name(&target, &new, &node, replace)?;
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
fn free_name(entries: &Entries, key: &str, node: &Arc<Node>, replace: Replace) -> SmbResult<()> {
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
        let (node, action) = match self.node_path(path)? {
            Some(node_path) => self.find_or_make(&node_path, &options)?,
            None => (Arc::clone(&self.root), self.root.open(&options)?),
        };
        Ok((Box::new(Open::new(node, self.delay.clone(), self.work)), action))
    }

    async fn unlink(&self, path: &SmbPath) -> SmbResult<()> {
        self.unlink_at(&self.node_path(path)?.ok_or(SmbError::AccessDenied)?)
    }

    async fn rename(&self, from: &SmbPath, to: &SmbPath, replace_if_exists: bool) -> SmbResult<()> {
        if is_below(to, from) {
            return Err(SmbError::AccessDenied);
        }
        let replace = if replace_if_exists { Replace::Yes } else { Replace::No };
        let from = self.node_path(from)?.ok_or(SmbError::AccessDenied)?;
        let to = self.node_path(to)?.ok_or(SmbError::AccessDenied)?;
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

/// An open. It keeps a removed file until it is closed.
struct Open {
    node: Arc<Node>,
    delay: Option<Arc<DelayLaw>>,
    work: Work,
}

impl Open {
    /// `delay` holds what is read; `work` is done for each read and write.
    fn new(node: Arc<Node>, delay: Option<Arc<DelayLaw>>, work: Work) -> Self {
        Self { node, delay, work }
    }
}

#[async_trait]
impl Handle for Open {
    async fn read(&self, offset: u64, len: u32) -> SmbResult<Bytes> {
        let passage = self.delay.as_ref().map(|law| (law, law.arrive()));
        self.work.spend();
        let mut bytes = Vec::new();
        {
            let data = self.node.data()?;
            let there = data.size().saturating_sub(offset).min(u64::from(len));
            bytes.reserve_exact(usize::try_from(there).unwrap_or(0));
            data.read(offset, len, &mut bytes);
        }
        if let Some((law, passage)) = passage {
            law.hold(passage).await;
            // The crate sends the reply as soon as it has it, unseen from here.
            law.sent(passage, now_ns());
        }
        Ok(bytes.into())
    }

    async fn write(&self, offset: u64, data: &[u8]) -> SmbResult<u32> {
        self.work.spend();
        self.node.write(offset, data)?;
        Ok(u32::try_from(data.len()).unwrap_or(u32::MAX))
    }

    async fn flush(&self) -> SmbResult<()> {
        Ok(())
    }

    async fn stat(&self) -> SmbResult<FileInfo> {
        Ok(self.node.info())
    }

    async fn set_times(&self, times: FileTimes) -> SmbResult<()> {
        self.node.set_times(&times);
        Ok(())
    }

    async fn set_attributes(&self, attributes: u32) -> SmbResult<()> {
        self.node.set_attributes(attributes)
    }

    async fn truncate(&self, len: u64) -> SmbResult<()> {
        self.node.resize(len)
    }

    async fn list_dir(&self, pattern: Option<&str>) -> SmbResult<Vec<DirEntry>> {
        self.node.list(pattern)
    }

    async fn close(self: Box<Self>) -> SmbResult<()> {
        Ok(())
    }

    async fn link_count(&self) -> SmbResult<u32> {
        Ok(self.node.links())
    }

    async fn dir_is_empty(&self) -> SmbResult<bool> {
        self.node.is_empty()
    }
}

#[cfg(test)]
mod tests;
