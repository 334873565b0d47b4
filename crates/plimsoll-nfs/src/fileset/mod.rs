//! What lies on the server: numbering, sizes, names.
//!
//! Everything is below one directory of the export, [`ROOT`], with the marker file [`MARKER`] in
//! it. Files are numbered from 0, and what a number means does not depend on how many there are,
//! so a smaller set is a prefix of a larger one and growing leaves what is there as it is. Sizes
//! follow a pattern of a hundred files with exactly the method's shares. The accessed tenth is the
//! first hundred of every thousand files.

use std::fmt;
use std::ops::Range;

use plimsoll_engine::rng;
use plimsoll_protocol::content::ContentTable;
use plimsoll_protocol::marker::Marker;
use serde::{Deserialize, Serialize};

use super::op::{Accessed, DirNo, LinkNo, SlotNo};

pub use plimsoll_protocol::content::SLICE_BYTES_MAX;
pub use plimsoll_protocol::data_set::{MARKER, ROOT};

/// Most bytes of one READ or WRITE of the workload (NFSv2's limit, used for both versions).
pub const BLOCK_BYTES: u32 = 8_192;
/// Smallest set, 26 MiB: its accessed hundred has every size.
pub const FILES_MIN: u32 = 1_000;
/// Largest set: for a million ops/s, 10 TiB.
pub const FILES_MAX: u32 = 400_000_000;
/// The method has 20 directories, 20 links and 100 names to create and remove for each process.
/// Here they come with every 3,840 files (10 ops/s), so that the set does not depend on the
/// number of processes.
const FILES_PER_DIRECTORY: u32 = 192;
const SLOTS_PER_DIRECTORY: u32 = 5;
/// The sizes repeat after this many files.
const PATTERN_FILES: u32 = 100;
/// The accessed files repeat after this many: the first [`PATTERN_FILES`] of them.
const ACCESS_FILES: u32 = 1_000;
const KIB: u64 = 1_024;

/// Files of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeClass {
    /// Their size.
    pub kib: u32,
    /// Their share of the files, in percent.
    pub percent: u32,
}

/// The method's sizes, rising. Mean: 26.71 KiB.
pub const SIZE_CLASSES: [SizeClass; 10] = [
    SizeClass { kib: 1, percent: 33 },
    SizeClass { kib: 2, percent: 21 },
    SizeClass { kib: 4, percent: 13 },
    SizeClass { kib: 8, percent: 10 },
    SizeClass { kib: 16, percent: 8 },
    SizeClass { kib: 32, percent: 5 },
    SizeClass { kib: 64, percent: 4 },
    SizeClass { kib: 128, percent: 3 },
    SizeClass { kib: 256, percent: 2 },
    SizeClass { kib: 1_024, percent: 1 },
];

/// The smallest size class of at least `kib`.
pub(crate) fn class_of_kib(kib: u32) -> usize {
    SIZE_CLASSES.partition_point(|class| class.kib < kib).min(SIZE_CLASSES.len() - 1)
}

/// The smallest size class of a READ of `blocks` blocks: more than all of them but the last; a single
/// one may be a part of one.
pub(crate) fn class_of_read(blocks: u32) -> usize {
    class_of_kib((blocks - 1) * (BLOCK_BYTES / 1_024) + 1)
}

/// Class of file n, by n modulo a hundred.
const PATTERN: [u8; PATTERN_FILES as usize] = spread_classes();

/// File j of the n of a class goes to position (j + 1/2) / n of the pattern, so that every part of
/// the pattern has about the shares of the whole.
const fn spread_classes() -> [u8; PATTERN_FILES as usize] {
    let mut used = [0u32; SIZE_CLASSES.len()];
    let mut pattern = [0u8; PATTERN_FILES as usize];
    let mut at = 0;
    while at < pattern.len() {
        let mut next = 0;
        let mut next_position = u32::MAX;
        let mut class = 0;
        while class < SIZE_CLASSES.len() {
            let n = SIZE_CLASSES[class].percent;
            let position = (2 * used[class] + 1) * 1_000_000 / (2 * n);
            if used[class] < n && position < next_position {
                next = class;
                next_position = position;
            }
            class += 1;
        }
        pattern[at] = next as u8;
        used[next] += 1;
        at += 1;
    }
    pattern
}

/// A file of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileNo(pub u32);

impl FileNo {
    /// Index in [`SIZE_CLASSES`].
    pub fn class(self) -> usize {
        usize::from(PATTERN[(self.0 % PATTERN_FILES) as usize])
    }

    /// Size it is made with; appends make it longer.
    pub fn bytes(self) -> u64 {
        u64::from(SIZE_CLASSES[self.class()].kib) * KIB
    }

    /// Where it lies.
    pub fn directory(self) -> DirNo {
        DirNo(self.0 / FILES_PER_DIRECTORY)
    }

    /// `file0000012`.
    pub fn name(self) -> EntryName {
        EntryName::numbered("file", self.0, 7)
    }

    /// Its index in the accessed tenth, where it is one of it.
    pub fn accessed(self) -> Option<Accessed> {
        let position = self.0 % ACCESS_FILES;
        let index = self.0 / ACCESS_FILES * PATTERN_FILES + position;
        (position < PATTERN_FILES).then_some(Accessed(index))
    }
}

impl Accessed {
    /// Its number among all files.
    pub fn file(self) -> FileNo {
        FileNo(self.0 / PATTERN_FILES * ACCESS_FILES + self.0 % PATTERN_FILES)
    }

    /// Size it is made with.
    pub fn bytes(self) -> u64 {
        self.file().bytes()
    }

    /// Its access group, from 0. All groups have equal size and the same file sizes.
    pub fn group(self, groups: u32) -> u32 {
        // A Latin square: what recurs every `groups` files of the pattern, and what has the same
        // position in all patterns, goes to all groups in turn.
        let position = self.0 % PATTERN_FILES;
        (position + position / groups + self.0 / PATTERN_FILES) % groups
    }
}

impl DirNo {
    /// `dir00012`.
    pub fn name(self) -> EntryName {
        EntryName::numbered("dir", self.0, 5)
    }
}

impl LinkNo {
    /// Where it lies.
    pub fn directory(self) -> DirNo {
        DirNo(self.0)
    }

    /// `link00012`.
    pub fn name(self) -> EntryName {
        EntryName::numbered("link", self.0, 5)
    }

    /// Its text: the name of the first file of its directory.
    pub fn text(self) -> EntryName {
        FileNo(self.0 * FILES_PER_DIRECTORY).name()
    }
}

impl SlotNo {
    /// Where it lies, when it exists. No slot exists when a load point begins.
    pub fn directory(self) -> DirNo {
        DirNo(self.0 / SLOTS_PER_DIRECTORY)
    }

    /// `slot000012`.
    pub fn name(self) -> EntryName {
        EntryName::numbered("slot", self.0, 6)
    }
}

/// How much of the numbering is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSet {
    files: u32,
}

impl FileSet {
    /// The first `files` files, at most [`FILES_MAX`].
    pub fn new(files: u32) -> Self {
        Self { files: files.min(FILES_MAX) }
    }

    /// The set for a load: `mib` MiB per op/s (the method: 10), times `scale` (the method: 1).
    pub fn for_load(ops_per_s: f64, mib: f64, scale: f64) -> Self {
        let pattern_bytes = pattern_bytes(PATTERN_FILES);
        let file_bytes = pattern_bytes as f64 / f64::from(PATTERN_FILES);
        let files = (ops_per_s * mib * (KIB * KIB) as f64 * scale / file_bytes).ceil();
        // A float becomes the nearest number there is.
        Self { files: (files as u32).clamp(FILES_MIN, FILES_MAX) }
    }

    /// Number of files.
    pub fn files(self) -> u32 {
        self.files
    }

    /// Number of directories.
    pub fn directories(self) -> u32 {
        self.files.div_ceil(FILES_PER_DIRECTORY)
    }

    /// Number of symbolic links, one per directory.
    pub fn links(self) -> u32 {
        self.directories()
    }

    /// Names that are created and removed during a run.
    pub fn slots(self) -> u32 {
        self.directories() * SLOTS_PER_DIRECTORY
    }

    /// Files of the accessed tenth.
    pub fn accessed(self) -> u32 {
        self.files / ACCESS_FILES * PATTERN_FILES + (self.files % ACCESS_FILES).min(PATTERN_FILES)
    }

    /// Size of all files.
    pub fn bytes(self) -> u64 {
        u64::from(self.files / PATTERN_FILES) * pattern_bytes(PATTERN_FILES)
            + pattern_bytes(self.files % PATTERN_FILES)
    }

    /// Size of the accessed files.
    pub fn accessed_bytes(self) -> u64 {
        let accessed = self.accessed();
        u64::from(accessed / PATTERN_FILES) * pattern_bytes(PATTERN_FILES)
            + pattern_bytes(accessed % PATTERN_FILES)
    }

    /// Files of each size class.
    pub fn class_counts(self) -> [u32; SIZE_CLASSES.len()] {
        let mut counts = SIZE_CLASSES.map(|class| class.percent * (self.files / PATTERN_FILES));
        for number in 0..self.files % PATTERN_FILES {
            counts[FileNo(number).class()] += 1;
        }
        counts
    }

    /// Numbers of the files that lie in `directory`.
    pub fn files_of(self, directory: DirNo) -> Range<u32> {
        let first = directory.0.saturating_mul(FILES_PER_DIRECTORY).min(self.files);
        first..(first + FILES_PER_DIRECTORY).min(self.files)
    }

    /// Numbers of the slots that lie in `directory`.
    pub fn slots_of(self, directory: DirNo) -> Range<u32> {
        let first = directory.0.saturating_mul(SLOTS_PER_DIRECTORY).min(self.slots());
        first..(first + SLOTS_PER_DIRECTORY).min(self.slots())
    }
}

/// Size of the first `files` files of a pattern.
fn pattern_bytes(files: u32) -> u64 {
    (0..files).map(|number| FileNo(number).bytes()).sum()
}

/// "slot" and the ten digits of the largest number.
const NAME_BYTES_MAX: usize = 14;
const DIGITS_MAX: usize = 10;

/// The name of a directory entry, without an allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EntryName {
    bytes: [u8; NAME_BYTES_MAX],
    length: u8,
}

impl EntryName {
    /// `prefix` (four letters at most) and `number` with at least `digits` digits.
    fn numbered(prefix: &str, number: u32, digits: usize) -> Self {
        let mut reversed = [b'0'; DIGITS_MAX];
        let mut rest = number;
        let mut used = 0;
        while rest > 0 {
            reversed[used] = b'0' + (rest % 10) as u8;
            rest /= 10;
            used += 1;
        }
        let used = used.max(digits.min(DIGITS_MAX));
        let mut bytes = [0; NAME_BYTES_MAX];
        bytes[..prefix.len()].copy_from_slice(prefix.as_bytes());
        let slots = bytes[prefix.len()..].iter_mut();
        for (slot, digit) in slots.zip(reversed[..used].iter().rev()) {
            *slot = *digit;
        }
        Self { bytes, length: (prefix.len() + used) as u8 }
    }

    /// As it goes over the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("letters and digits are always UTF-8")
    }
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl AsRef<[u8]> for EntryName {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// The content of all files of a seed: a megabyte, whatever they take on the server.
#[derive(Clone, Debug)]
pub struct Content {
    table: ContentTable,
}

impl Content {
    /// The content that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self { table: ContentTable::new(seed) }
    }

    /// Its seed.
    pub fn seed(&self) -> u64 {
        self.table.seed()
    }

    /// The `bytes` at `offset` of `file`, also beyond the size the file is made with.
    ///
    /// # Panics
    /// When `bytes` is over [`SLICE_BYTES_MAX`].
    pub fn slice(&self, file: FileNo, offset: u64, bytes: usize) -> &[u8] {
        let key = rng::key(&[self.seed(), u64::from(file.0)]);
        self.table.bytes(key, offset, bytes)
    }
}

/// Content of [`MARKER`], the file that marks a directory as ours and describes the set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSetMarker {
    /// Seed of the content.
    seed: u64,
    /// Files that are complete; 0 while the first are being made.
    files: u32,
}

impl FileSetMarker {
    /// The marker of a set whose files are complete.
    pub fn new(seed: u64, set: FileSet) -> Self {
        Self { seed, files: set.files() }
    }

    /// Seed of the content.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What is complete; no files while the first are being made.
    pub fn set(&self) -> FileSet {
        FileSet::new(self.files)
    }
}

impl Marker for FileSetMarker {
    const TITLE: &'static str = "the file set's marker";
    const REMEDY: &'static str = "remove the file set and prepare it again";

    fn excess(&self) -> Option<String> {
        let Self { files, .. } = self;
        (*files > FILES_MAX).then(|| format!("{files} files, at most {FILES_MAX} can be"))
    }
}

#[cfg(test)]
mod tests;
