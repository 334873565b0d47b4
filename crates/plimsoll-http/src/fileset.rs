//! The file set of the method: 36 files a directory, in four classes of nine, and content that
//! follows from the seed, so that any reply can be checked without storing a file.
//!
//! Content is a slice of one block of seeded random bytes. Where it starts is a hash of the seed,
//! the directory, the class and the file, so serving is a copy and checking a comparison, and
//! swapped files and shifted bytes show.

use std::fmt;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use plimsoll_engine::rng;
use plimsoll_protocol::marker::Marker;

/// Classes of files.
pub const CLASSES: u8 = 4;
/// Files of a class in one directory.
pub const FILES_PER_CLASS: u8 = 9;
/// Most directories: the path has five digits. Enough for 500 million ops/s.
pub const DIRECTORIES_MAX: u32 = 99_999;
/// Name of the description at the root of a file set, and of its URL.
pub const MARKER: &str = "plimsoll-fileset.json";
/// Version of the description. More than twice the largest file (921,600), so that a file may start
/// at over a million offsets.
const PATTERN_BYTES: usize = 2 * 1024 * 1024;

/// What a file set is made of; directories are 1 to [`DIRECTORIES_MAX`].
pub use plimsoll_protocol::FileSetId;

/// One file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// From 0.
    pub directory: u32,
    /// 0 to 3.
    pub class: u8,
    /// 1 to 9.
    pub k: u8,
}

/// Size of file `k` of `class`: floor(k x 102.4 x 10^class).
pub fn file_bytes(class: u8, k: u8) -> u64 {
    u64::from(k) * 1024 * 10u64.pow(u32::from(class)) / 10
}

/// Size of all files of one directory: 5,119,484 bytes.
pub fn directory_bytes() -> u64 {
    files_of_directory(0).map(|id| id.bytes()).sum()
}

/// The files of one directory, in the order they are written.
pub fn files_of_directory(directory: u32) -> impl Iterator<Item = FileId> {
    (0..CLASSES)
        .flat_map(move |class| (1..=FILES_PER_CLASS).map(move |k| FileId { directory, class, k }))
}

/// The method's count before rounding: 10 x sqrt(ops/s / 5).
pub fn directories_unrounded(ops_per_s: f64) -> f64 {
    10.0 * (ops_per_s.max(0.0) / 5.0).sqrt()
}

/// The load whose method's count is `directories`.
pub fn ops_per_s_for(directories: f64) -> f64 {
    5.0 * (directories / 10.0).powi(2)
}

/// Directories for the highest load requested, times `scale` (1 is the method's), at least one.
pub fn directories_for(ops_per_s: f64, scale: f64) -> u32 {
    (directories_unrounded(ops_per_s) * scale).floor().clamp(1.0, f64::from(DIRECTORIES_MAX)) as u32
}

impl FileId {
    /// Length of the file.
    pub fn bytes(self) -> u64 {
        file_bytes(self.class, self.k)
    }
}

impl fmt::Display for FileId {
    /// Path below the root of the file set: `dir00012/class1_5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dir{:05}/class{}_{}", self.directory, self.class, self.k)
    }
}

/// A file set in memory: two megabytes, whatever its size on disk.
#[derive(Clone)]
pub struct FileSet {
    id: FileSetId,
    pattern: Arc<[u8]>,
}

impl FileSet {
    /// The file set of that seed; `directories` above [`DIRECTORIES_MAX`] are cut off.
    pub fn new(seed: u64, directories: u32) -> Self {
        let mut pattern = vec![0; PATTERN_BYTES];
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut pattern);
        let directories = directories.clamp(1, DIRECTORIES_MAX);
        Self { id: FileSetId { seed, directories }, pattern: pattern.into() }
    }

    /// What it is made of.
    pub fn id(&self) -> FileSetId {
        self.id
    }

    /// Size of all files.
    pub fn bytes(&self) -> u64 {
        u64::from(self.id.directories) * directory_bytes()
    }

    /// The file at `path`, with or without its leading slash.
    pub fn resolve(&self, path: &str) -> Option<FileId> {
        let (directory, file) = path.strip_prefix('/').unwrap_or(path).split_once('/')?;
        let digits = directory.strip_prefix("dir").filter(|d| is_digits(d, 5))?;
        let (class, k) = file.strip_prefix("class")?.split_once('_')?;
        if !is_digits(class, 1) || !is_digits(k, 1) {
            return None;
        }
        let id = FileId {
            directory: digits.parse().ok()?,
            class: class.parse().ok()?,
            k: k.parse().ok()?,
        };
        self.holds(id).then_some(id)
    }

    /// The file is one of this set.
    pub fn holds(&self, id: FileId) -> bool {
        id.directory < self.id.directories
            && id.class < CLASSES
            && (1..=FILES_PER_CLASS).contains(&id.k)
    }

    /// The file's content. `id` is one that [`FileSet::holds`].
    pub fn content(&self, id: FileId) -> &[u8] {
        let length = id.bytes() as usize;
        let parts = [self.id.seed, u64::from(id.directory), u64::from(id.class), u64::from(id.k)];
        let offset_count = (self.pattern.len() - length) as u64 + 1;
        let start = rng::below(rng::key(&parts), offset_count) as usize;
        &self.pattern[start..start + length]
    }

    /// The description that lies at the root of the set.
    pub fn marker(&self) -> FileSetMarker {
        FileSetMarker::new(self.id)
    }
}

impl fmt::Debug for FileSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileSet({:?})", self.id)
    }
}

fn is_digits(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|b| b.is_ascii_digit())
}

/// `plimsoll-fileset.json`: marks a directory as ours and describes its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSetMarker {
    /// Seed of the content.
    seed: u64,
    /// Directories that are complete.
    directories: u32,
}

impl FileSetMarker {
    /// The description of a set.
    pub fn new(id: FileSetId) -> Self {
        Self { seed: id.seed, directories: id.directories }
    }

    /// What the set is made of; no directories when its preparation has just begun.
    pub fn id(&self) -> FileSetId {
        FileSetId { seed: self.seed, directories: self.directories }
    }
}

impl Marker for FileSetMarker {
    const TITLE: &'static str = "the file set's description";
    const REMEDY: &'static str = "run plimsoll prepare again";

    fn excess(&self) -> Option<String> {
        let Self { directories, .. } = self;
        (*directories > DIRECTORIES_MAX)
            .then(|| format!("{directories} directories, at most {DIRECTORIES_MAX} can be"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_protocol::marker::MarkerError;

    #[test]
    fn directory_counts_are_those_of_the_report() {
        let golden = [
            (1.0, 4),
            (2.0, 6),
            (5.0, 10),
            (10.0, 14),
            (20.0, 20),
            (50.0, 31),
            (100.0, 44),
            (200.0, 63),
            (500.0, 100),
            (1000.0, 141),
        ];
        for (ops, directories) in golden {
            assert_eq!(directories_for(ops, 1.0), directories, "{ops} ops/s");
        }
        assert_eq!(directories_for(1000.0, 0.1), 14);
        assert_eq!(directories_for(0.001, 0.1), 1);
        assert_eq!(directories_for(f64::MAX, 1.0), DIRECTORIES_MAX);
    }

    #[test]
    fn sizes_of_the_report_come_from_the_unrounded_count() {
        let mib = directory_bytes() as f64 / (1024.0 * 1024.0);
        let column = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
            .map(|ops| (directories_unrounded(ops) * mib).round());
        assert_eq!(column, [22.0, 31.0, 49.0, 69.0, 98.0, 154.0, 218.0, 309.0, 488.0, 690.0]);
    }

    #[test]
    fn file_sizes_are_those_of_the_method() {
        let class_0: Vec<u64> = (1..=9).map(|k| file_bytes(0, k)).collect();
        assert_eq!(class_0, [102, 204, 307, 409, 512, 614, 716, 819, 921]);
        assert_eq!((file_bytes(1, 1), file_bytes(1, 9)), (1_024, 9_216));
        assert_eq!((file_bytes(2, 1), file_bytes(2, 9)), (10_240, 92_160));
        assert_eq!((file_bytes(3, 1), file_bytes(3, 9)), (102_400, 921_600));
        assert_eq!(directory_bytes(), 5_119_484);
    }

    #[test]
    fn paths_name_files_and_nothing_else() {
        let set = FileSet::new(1, 13);
        let id = FileId { directory: 12, class: 1, k: 5 };
        assert_eq!(id.to_string(), "dir00012/class1_5");
        assert_eq!(set.resolve("/dir00012/class1_5"), Some(id));
        for bad in [
            "/",
            "/dir00013/class1_5",
            "/dir12/class1_5",
            "/dir00012/class4_5",
            "/dir00012/class1_0",
            "/dir00012/class1_10",
            "/dir00012/../class1_5",
            "/dir+0012/class1_5",
            "/dir00012/class1_5/",
        ] {
            assert_eq!(set.resolve(bad), None, "{bad}");
        }
    }

    #[test]
    fn files_differ_from_each_other_and_between_seeds() {
        let set = FileSet::new(1, 2);
        let file = |directory, k| set.content(FileId { directory, class: 1, k });
        assert_eq!(file(0, 1).len(), 1_024);
        assert_ne!(file(0, 1), file(1, 1));
        assert_ne!(file(0, 1), &file(0, 2)[..1_024]);
        let other = FileSet::new(2, 2);
        assert_ne!(file(0, 1), other.content(FileId { directory: 0, class: 1, k: 1 }));
        assert_eq!(file(0, 1), FileSet::new(1, 9).content(FileId { directory: 0, class: 1, k: 1 }));
    }

    #[test]
    fn a_marker_reads_back_and_a_foreign_one_is_refused() {
        let marker = FileSet::new(u64::MAX, 44).marker();
        assert_eq!(FileSetMarker::parse(marker.to_json().as_bytes()), Ok(marker.clone()));
        let other = marker.to_json().replace("\"format\": 1", "\"format\": 2");
        let other = FileSetMarker::parse(other.as_bytes());
        assert!(matches!(other, Err(MarkerError::Format { format: 2, .. })));
        let empty = FileSetMarker::parse(b"{}");
        assert!(matches!(empty, Err(MarkerError::Invalid { .. })));
    }
}
