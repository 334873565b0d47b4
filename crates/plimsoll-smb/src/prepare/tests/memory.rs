//! A share in memory, with limited room and faults on demand.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::SEED;
use crate::op::Content;
use crate::prepare::share::{Entry, EntryStat, Kind, Share, ShareError};
use crate::wire::header::Command;
use crate::wire::status;
use plimsoll_protocol::content::ContentTable;
use plimsoll_protocol::net::SetupError;

/// Bytes of one write.
const CHUNK: u64 = 64 * 1024;

/// What the share holds; the root is not in it.
#[derive(Debug, Default)]
struct Tree {
    nodes: BTreeMap<String, Option<Vec<u8>>>,
    /// Free space that the server reports, whatever it really has.
    reported_free: Option<u64>,
    /// Size of each file that it reports.
    reported_bytes: Option<u64>,
    room: u64,
}

/// A share in memory.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    tree: Arc<Mutex<Tree>>,
    pub is_read_only: bool,
    /// Every write fails after this many bytes.
    pub fail_after: Option<Arc<AtomicU64>>,
    stop: Arc<AtomicBool>,
    table: ContentTable,
}

impl Memory {
    pub(super) fn new(room: u64) -> Self {
        let tree = Tree { room, ..Tree::default() };
        Self {
            tree: Arc::new(Mutex::new(tree)),
            is_read_only: false,
            fail_after: None,
            stop: Arc::default(),
            table: ContentTable::new(SEED),
        }
    }

    /// What a site opens.
    pub(super) fn open(&self, stop: &Arc<AtomicBool>) -> Result<Box<dyn Share>, SetupError> {
        Ok(Box::new(Self { stop: Arc::clone(stop), ..self.clone() }))
    }

    pub(super) fn report_free(&self, bytes: u64) {
        self.tree.lock().unwrap().reported_free = Some(bytes);
    }

    pub(super) fn report_bytes(&self, bytes: u64) {
        self.tree.lock().unwrap().reported_bytes = Some(bytes);
    }

    /// All paths.
    pub(super) fn paths(&self) -> Vec<String> {
        self.tree.lock().unwrap().nodes.keys().cloned().collect()
    }

    pub(super) fn content(&self, path: &str) -> Option<Vec<u8>> {
        self.tree.lock().unwrap().nodes.get(path).cloned().flatten()
    }

    /// Puts a file there, or a directory.
    pub(super) fn insert(&self, path: &str, content: Option<&[u8]>) {
        let content = content.map(<[u8]>::to_vec);
        self.tree.lock().unwrap().nodes.insert(path.to_owned(), content);
    }

    fn check(&self, changes: bool) -> Result<(), ShareError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ShareError::Stopped);
        }
        match changes && self.is_read_only {
            true => Err(refused(status::ACCESS_DENIED)),
            false => Ok(()),
        }
    }
}

fn refused(status: u32) -> ShareError {
    ShareError::Status { command: Command::Create, status }
}

impl Tree {
    fn used(&self) -> u64 {
        self.nodes.values().flatten().map(|content| content.len() as u64).sum()
    }

    fn has_parent(&self, path: &str) -> bool {
        path.rsplit_once('\\').is_none_or(|(dir, _)| matches!(self.nodes.get(dir), Some(None)))
    }

    fn stat(&self, path: &str) -> Option<EntryStat> {
        self.nodes.get(path).map(|node| match node {
            None => EntryStat { kind: Kind::Directory, bytes: 0 },
            Some(content) => {
                let bytes = self.reported_bytes.unwrap_or(content.len() as u64);
                EntryStat { kind: Kind::File, bytes }
            }
        })
    }

    fn children(&self, path: &str) -> Vec<Entry> {
        let head = format!("{path}\\");
        let names = self.nodes.keys().filter_map(|key| key.strip_prefix(&head));
        names
            .filter(|name| !name.contains('\\'))
            .map(|name| Entry {
                name: name.to_owned(),
                stat: self.stat(&format!("{head}{name}")).unwrap(),
            })
            .collect()
    }
}

impl Share for Memory {
    fn pause(&mut self, _: Duration) -> Result<(), ShareError> {
        Ok(())
    }

    fn find(&mut self, path: &str) -> Result<Option<EntryStat>, ShareError> {
        self.check(false)?;
        Ok(self.tree.lock().unwrap().stat(path))
    }

    fn list(&mut self, path: &str) -> Result<Option<Vec<Entry>>, ShareError> {
        self.check(false)?;
        let tree = self.tree.lock().unwrap();
        match tree.nodes.get(path) {
            None => Ok(None),
            Some(Some(_)) => Err(refused(status::NOT_A_DIRECTORY)),
            Some(None) => Ok(Some(tree.children(path))),
        }
    }

    fn make_dir(&mut self, path: &str) -> Result<(), ShareError> {
        self.check(true)?;
        let mut tree = self.tree.lock().unwrap();
        if !tree.has_parent(path) {
            return Err(refused(status::OBJECT_PATH_NOT_FOUND));
        }
        tree.nodes.entry(path.to_owned()).or_insert(None);
        Ok(())
    }

    fn write(
        &mut self,
        path: &str,
        bytes: u64,
        content: Content,
        written: &AtomicU64,
    ) -> Result<(), ShareError> {
        self.check(true)?;
        if !self.tree.lock().unwrap().has_parent(path) {
            return Err(refused(status::OBJECT_PATH_NOT_FOUND));
        }
        self.insert(path, Some(b""));
        let mut at = 0;
        while at < bytes {
            self.check(true)?;
            let chunk = CHUNK.min(bytes - at);
            let mut tree = self.tree.lock().unwrap();
            let is_due = |left: &Arc<AtomicU64>| left.load(Ordering::Relaxed) < chunk;
            if tree.used() + chunk > tree.room || self.fail_after.as_ref().is_some_and(is_due) {
                return Err(refused(status::DISK_FULL));
            }
            if let Some(left) = &self.fail_after {
                left.fetch_sub(chunk, Ordering::Relaxed);
            }
            let slice = self.table.bytes(content.key, at, chunk as usize);
            let Some(Some(file)) = tree.nodes.get_mut(path) else {
                return Err(refused(status::FILE_IS_A_DIRECTORY));
            };
            file.extend_from_slice(slice);
            written.fetch_add(chunk, Ordering::Relaxed);
            at += chunk;
        }
        Ok(())
    }

    fn write_text(&mut self, path: &str, text: &str) -> Result<(), ShareError> {
        self.check(true)?;
        self.insert(path, Some(text.as_bytes()));
        Ok(())
    }

    fn cut(&mut self, path: &str, bytes: u64) -> Result<(), ShareError> {
        self.check(true)?;
        match self.tree.lock().unwrap().nodes.get_mut(path) {
            Some(Some(content)) => {
                content.truncate(bytes as usize);
                Ok(())
            }
            _ => Err(refused(status::OBJECT_NAME_NOT_FOUND)),
        }
    }

    fn read(&mut self, path: &str, offset: u64, bytes: u32) -> Result<Vec<u8>, ShareError> {
        self.check(false)?;
        match self.tree.lock().unwrap().nodes.get(path) {
            Some(Some(content)) => {
                let from = content.len().min(offset as usize);
                let to = content.len().min(from + bytes as usize);
                Ok(content[from..to].to_vec())
            }
            _ => Err(refused(status::OBJECT_NAME_NOT_FOUND)),
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), ShareError> {
        self.check(true)?;
        let mut tree = self.tree.lock().unwrap();
        let node = tree.nodes.remove(from).ok_or(refused(status::OBJECT_NAME_NOT_FOUND))?;
        tree.nodes.insert(to.to_owned(), node);
        Ok(())
    }

    fn remove(&mut self, path: &str, kind: Kind) -> Result<(), ShareError> {
        self.check(true)?;
        let mut tree = self.tree.lock().unwrap();
        if kind == Kind::Directory && !tree.children(path).is_empty() {
            return Err(refused(status::DIRECTORY_NOT_EMPTY));
        }
        tree.nodes.remove(path);
        Ok(())
    }

    fn free_bytes(&mut self) -> Result<Option<u64>, ShareError> {
        self.check(false)?;
        let tree = self.tree.lock().unwrap();
        Ok(Some(tree.reported_free.unwrap_or(tree.room - tree.used().min(tree.room))))
    }
}
