//! The texts of another host, as a source received them last.

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Path below the root, without a leading slash, and the text of that file.
pub(crate) type Texts = BTreeMap<String, String>;

/// One set of texts, all of one instant, shared between the source that replaces it and the
/// samplers that read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame(Arc<Mutex<Texts>>);

impl Frame {
    /// Takes a whole new set; what it does not hold is gone.
    pub(crate) fn replace(&self, texts: Texts) {
        let texts = texts.into_iter().map(|(path, text)| (key(path), text)).collect();
        *self.texts() = texts;
    }

    /// The text of a file.
    pub(crate) fn text(&self, file: impl AsRef<Path>) -> Option<String> {
        self.texts().get(&key(file)).cloned()
    }

    /// Copies the text of a file to the front of `buffer`, which grows if need be; its length.
    pub(crate) fn copy(&self, file: &str, buffer: &mut Vec<u8>) -> Option<usize> {
        let texts = self.texts();
        let text = texts.get(file)?.as_bytes();
        if buffer.len() < text.len() {
            buffer.resize(text.len(), 0);
        }
        buffer[..text.len()].copy_from_slice(text);
        Some(text.len())
    }

    /// Names in a directory, sorted.
    pub(crate) fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
        let prefix = match key(directory) {
            root if root.is_empty() => root,
            directory => format!("{directory}/"),
        };
        let texts = self.texts();
        let below = texts.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
        let name = |path: &str| path[prefix.len()..].split('/').next().unwrap_or("").to_owned();
        let mut names: Vec<String> = below.map(|(path, _)| name(path)).collect();
        // Paths are sorted by bytes, and `a-b` comes before `a/b`.
        names.sort();
        names.dedup();
        names
    }

    /// Is there such a file or directory.
    pub(crate) fn has(&self, file: impl AsRef<Path>) -> bool {
        let file = key(file);
        if self.texts().contains_key(&file) {
            return true;
        }
        let prefix = format!("{file}/");
        let texts = self.texts();
        texts.range(prefix.clone()..).next().is_some_and(|(path, _)| path.starts_with(&prefix))
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        // A whole set is put in at once: it is good even if a reader has panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A path as the map has it.
pub(crate) fn key(path: impl AsRef<Path>) -> String {
    let parts = path.as_ref().components().filter_map(|part| match part {
        Component::Normal(part) => Some(part.to_string_lossy()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("/")
}
