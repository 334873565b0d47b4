//! One file or directory; its name, which ignores case, and patterns of names (MS-FSA 2.1.4.4).

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use plimsoll_servers::clock;
use plimsoll_servers::memory::{Budget, Data, Full};
use smb_server::{
    DirEntry, FileInfo, FileTimes, OpenAction, OpenIntent, OpenOptions, SmbError, SmbResult,
};

use super::UNIT_BYTES;

/// Memory charged for an object besides its content: its name twice, and bookkeeping.
const OBJECT_CHARGE: u64 = 768;
/// FILE_ATTRIBUTE_READONLY (MS-FSCC 2.6).
const READ_ONLY: u32 = 0x1;
/// Attributes that change nothing here and are therefore taken and forgotten: ARCHIVE, TEMPORARY,
/// NOT_CONTENT_INDEXED.
const FORGOTTEN: u32 = 0x20 | 0x100 | 0x2000;

/// What is in a directory, by folded name.
pub(super) type Entries = BTreeMap<String, Arc<Node>>;

/// What a new object is to be.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    File,
    Directory,
}

/// A file or directory.
pub(super) struct Node {
    id: u64,
    facts: Mutex<Facts>,
    body: Body,
    charge: u64,
    budget: Arc<Budget>,
}

struct Facts {
    name: String,
    times: Times,
    read_only: bool,
    /// Whether it still has a name.
    linked: bool,
}

/// In FILETIME.
#[derive(Clone, Copy)]
struct Times {
    created: u64,
    accessed: u64,
    written: u64,
    changed: u64,
}

enum Body {
    File(RwLock<Data>),
    /// `None` once it is removed: nothing can be put into it any more.
    Directory(RwLock<Option<Entries>>),
}

impl Node {
    /// The root of a share.
    pub(super) fn root(name: &str, budget: &Arc<Budget>) -> Arc<Self> {
        Arc::new(Self::new(1, name, Kind::Directory, budget))
    }

    /// A new object, paid for.
    pub(super) fn charged(
        id: u64,
        name: &str,
        kind: Kind,
        budget: &Arc<Budget>,
    ) -> SmbResult<Arc<Self>> {
        budget.take(OBJECT_CHARGE).map_err(of_full)?;
        let mut node = Self::new(id, name, kind, budget);
        node.charge = OBJECT_CHARGE;
        Ok(Arc::new(node))
    }

    fn new(id: u64, name: &str, kind: Kind, budget: &Arc<Budget>) -> Self {
        let now = filetime();
        let times = Times { created: now, accessed: now, written: now, changed: now };
        let body = match kind {
            Kind::File => Body::File(RwLock::default()),
            Kind::Directory => Body::Directory(RwLock::new(Some(Entries::new()))),
        };
        let facts = Facts { name: name.to_owned(), times, read_only: false, linked: true };
        Self { id, facts: Mutex::new(facts), body, charge: 0, budget: Arc::clone(budget) }
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its content has changed.
    pub(super) fn touch(&self) {
        let now = filetime();
        let mut facts = self.facts();
        (facts.times.written, facts.times.changed) = (now, now);
    }

    /// Content of a file.
    pub(super) fn data(&self) -> SmbResult<RwLockReadGuard<'_, Data>> {
        match &self.body {
            Body::File(data) => Ok(data.read().unwrap_or_else(PoisonError::into_inner)),
            Body::Directory(_) => Err(SmbError::IsDirectory),
        }
    }

    fn data_mut(&self) -> SmbResult<RwLockWriteGuard<'_, Data>> {
        match &self.body {
            Body::File(data) => Ok(data.write().unwrap_or_else(PoisonError::into_inner)),
            Body::Directory(_) => Err(SmbError::IsDirectory),
        }
    }

    /// Entries of a directory that is still there.
    pub(super) fn entries(&self) -> SmbResult<impl Deref<Target = Entries>> {
        let Body::Directory(entries) = &self.body else { return Err(SmbError::NotADirectory) };
        let guard = entries.read().unwrap_or_else(PoisonError::into_inner);
        if guard.is_none() { Err(SmbError::NotFound) } else { Ok(Present(guard)) }
    }

    /// The same, to change them.
    pub(super) fn entries_mut(&self) -> SmbResult<impl DerefMut<Target = Entries>> {
        let Body::Directory(entries) = &self.body else { return Err(SmbError::NotADirectory) };
        let guard = entries.write().unwrap_or_else(PoisonError::into_inner);
        if guard.is_none() { Err(SmbError::NotFound) } else { Ok(Present(guard)) }
    }

    /// What opening does to an object that exists.
    pub(super) fn open(&self, options: &OpenOptions) -> SmbResult<OpenAction> {
        let empties =
            matches!(options.intent, OpenIntent::Truncate | OpenIntent::OverwriteOrCreate);
        match &self.body {
            _ if options.intent == OpenIntent::Create => Err(SmbError::Exists),
            Body::Directory(_) if options.non_directory || empties => Err(SmbError::IsDirectory),
            Body::Directory(_) => Ok(OpenAction::Opened),
            Body::File(_) if options.directory => Err(SmbError::NotADirectory),
            Body::File(_) if (options.write || empties) && self.facts().read_only => {
                Err(SmbError::AccessDenied)
            }
            Body::File(_) if empties => self.resize(0).map(|()| OpenAction::Overwritten),
            Body::File(_) => Ok(OpenAction::Opened),
        }
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> SmbResult<()> {
        self.data_mut()?.write(offset, bytes, &self.budget).map_err(of_full)?;
        self.touch();
        Ok(())
    }

    pub(super) fn resize(&self, size: u64) -> SmbResult<()> {
        self.data_mut()?.resize(size, &self.budget).map_err(of_full)?;
        self.touch();
        Ok(())
    }

    /// Takes its name; an empty directory takes no more entries.
    pub(super) fn unlink(&self) -> SmbResult<()> {
        if let Body::Directory(entries) = &self.body {
            let mut entries = entries.write().unwrap_or_else(PoisonError::into_inner);
            if entries.as_ref().is_some_and(|entries| !entries.is_empty()) {
                return Err(SmbError::NotEmpty);
            }
            *entries = None;
        }
        self.facts().linked = false;
        Ok(())
    }

    /// Another file takes its name; directories and read-only files keep theirs.
    pub(super) fn replaced(&self) -> SmbResult<()> {
        let mut facts = self.facts();
        if matches!(self.body, Body::Directory(_)) || facts.read_only {
            return Err(SmbError::AccessDenied);
        }
        facts.linked = false;
        Ok(())
    }

    pub(super) fn rename(&self, name: &str) {
        let mut facts = self.facts();
        name.clone_into(&mut facts.name);
        facts.times.changed = filetime();
    }

    pub(super) fn links(&self) -> u32 {
        u32::from(self.facts().linked)
    }

    pub(super) fn set_times(&self, to: &FileTimes) {
        let times = &mut self.facts().times;
        for (time, to) in [
            (&mut times.created, to.creation_time),
            (&mut times.accessed, to.last_access_time),
            (&mut times.written, to.last_write_time),
            (&mut times.changed, to.change_time),
        ] {
            *time = to.unwrap_or(*time);
        }
    }

    pub(super) fn set_attributes(&self, attributes: u32) -> SmbResult<()> {
        if attributes & !(READ_ONLY | FORGOTTEN) != 0 {
            return Err(SmbError::NotSupported);
        }
        let mut facts = self.facts();
        facts.read_only = attributes & READ_ONLY != 0;
        facts.times.changed = filetime();
        Ok(())
    }

    pub(super) fn info(&self) -> FileInfo {
        let size = self.data().map_or(0, |data| data.size());
        let facts = self.facts();
        let mut info = FileInfo::new(facts.name.clone());
        info.end_of_file = size;
        info.allocation_size = size.next_multiple_of(UNIT_BYTES);
        info.creation_time = facts.times.created;
        info.last_access_time = facts.times.accessed;
        info.last_write_time = facts.times.written;
        info.change_time = facts.times.changed;
        info.is_directory = matches!(self.body, Body::Directory(_));
        info.read_only = facts.read_only;
        info.file_index = self.id;
        info
    }

    /// Entries whose names match; without a pattern all.
    pub(super) fn list(&self, pattern: Option<&str>) -> SmbResult<Vec<DirEntry>> {
        let entries = self.entries()?;
        let entry = |node: &Arc<Self>| DirEntry { info: node.info() };
        Ok(match Pattern::parse(pattern) {
            Pattern::All => entries.values().map(entry).collect(),
            Pattern::One(key) => entries.get(&key).map(entry).into_iter().collect(),
            Pattern::Some(wildcards) => {
                let matching = entries.iter().filter(|(key, _)| wildcards.matches(key));
                matching.map(|(_, node)| entry(node)).collect()
            }
        })
    }

    pub(super) fn is_empty(&self) -> SmbResult<bool> {
        Ok(self.entries()?.is_empty())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let content = self.data().map_or(0, |data| data.charged());
        self.budget.give_back(self.charge + content);
    }
}

/// A lock held on entries that are there.
struct Present<G>(G);

impl<G: Deref<Target = Option<Entries>>> Deref for Present<G> {
    type Target = Entries;

    fn deref(&self) -> &Entries {
        self.0.as_ref().expect("looked at under the same lock")
    }
}

impl<G: DerefMut<Target = Option<Entries>>> DerefMut for Present<G> {
    fn deref_mut(&mut self) -> &mut Entries {
        self.0.as_mut().expect("looked at under the same lock")
    }
}

/// Only the budget and the largest size can fail.
fn of_full(_: Full) -> SmbError {
    SmbError::DiskFull
}

/// The form in which names are compared.
pub(super) fn fold(name: &str) -> String {
    if name.is_ascii() { name.to_ascii_lowercase() } else { name.to_lowercase() }
}

/// What a client looks for.
pub(super) enum Pattern {
    /// Everything.
    All,
    /// The entry of this folded name.
    One(String),
    /// Whatever matches.
    Some(Wildcards),
}

impl Pattern {
    pub(super) fn parse(text: Option<&str>) -> Self {
        match text {
            None | Some("" | "*" | "*.*") => Self::All,
            Some(text) if text.contains(['*', '?', '<', '>', '"']) => {
                Self::Some(Wildcards(fold(text).chars().collect()))
            }
            Some(text) => Self::One(fold(text)),
        }
    }
}

/// A folded pattern with wildcards: `*` and `?`, and the DOS forms `<` (anything up to the last
/// dot), `>` (one character, or none at a dot or the end) and `"` (a dot, or the end).
pub(super) struct Wildcards(Vec<char>);

impl Wildcards {
    /// Follows all positions in the pattern that a name can have reached: their number bounds the
    /// work, whatever the pattern.
    pub(super) fn matches(&self, folded: &str) -> bool {
        let last_dot = folded.char_indices().rev().find(|(_, c)| *c == '.').map(|(at, _)| at);
        let mut reached = vec![false; self.0.len() + 1];
        reached[0] = true;
        for (at, c) in folded.char_indices() {
            self.skip(&mut reached, Some(c));
            reached = self.step(&reached, c, last_dot == Some(at));
        }
        self.skip(&mut reached, None);
        reached[self.0.len()]
    }

    /// Passes over what may match nothing before `next`.
    fn skip(&self, reached: &mut [bool], next: Option<char>) {
        for (at, symbol) in self.0.iter().enumerate() {
            let nothing = match symbol {
                '*' | '<' => true,
                '>' => matches!(next, None | Some('.')),
                '"' => next.is_none(),
                _ => false,
            };
            reached[at + 1] |= reached[at] && nothing;
        }
    }

    /// Passes over one character of the name.
    fn step(&self, reached: &[bool], c: char, is_last_dot: bool) -> Vec<bool> {
        let mut after = vec![false; reached.len()];
        for (at, symbol) in self.0.iter().enumerate().filter(|(at, _)| reached[*at]) {
            let (stays, passes) = match symbol {
                '*' => (true, false),
                '<' => (!is_last_dot, false),
                '?' => (false, true),
                '>' => (false, c != '.'),
                '"' => (false, c == '.'),
                literal => (false, *literal == c),
            };
            after[at] |= stays;
            after[at + 1] |= passes;
        }
        after
    }
}

/// Now in FILETIME: 100 ns since 1601 (MS-DTYP 2.3.3).
pub(super) fn filetime() -> u64 {
    const BEFORE_1970_S: u64 = 11_644_473_600;
    let since = clock::since_1970();
    (since.as_secs() + BEFORE_1970_S) * 10_000_000 + u64::from(since.subsec_nanos()) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        match Pattern::parse(Some(pattern)) {
            Pattern::All => true,
            Pattern::One(key) => key == fold(name),
            Pattern::Some(wildcards) => wildcards.matches(&fold(name)),
        }
    }

    #[test]
    fn patterns_find_what_dos_found() {
        let cases = [
            ("*", "a", true),
            ("*.*", "no-dot", true),
            ("readme", "README", true),
            ("a*", "Abc", true),
            ("a*c", "abcb", false),
            ("a?c", "abc", true),
            ("a?", "a", false),
            ("*.txt", "a.b.TXT", true),
            ("*.txt", "a.txt.bak", false),
            // `<` stops at the last dot, `"` is it.
            ("<\"doc", "a.b.doc", true),
            ("<", "a.b", false),
            ("<.b", "a.b", true),
            // `a>>>` finds a name of up to four characters.
            ("a>>>", "a", true),
            ("a>>>", "abcd", true),
            ("a>>>", "abcde", false),
            ("a>>.c", "ab.c", true),
            ("a\"", "a", true),
            ("a\"", "ab", false),
            ("Ä*", "ärger", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_is_no_work_without_end() {
        let pattern = "*a".repeat(100) + "b";
        assert!(!matches(&pattern, &"a".repeat(255)));
    }
}
