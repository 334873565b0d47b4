//! What room a set needs.

use plimsoll_model::units::Bytes;

use super::super::fileset::{FileNo, FileSet};
use plimsoll_protocol::data_set::{self, Need};

/// Left free beyond the file set: the file system's own needs, and other users of it.
pub const SPARE_BYTES: u64 = 64 * 1024 * 1024;
/// Files of the pattern of sizes.
const PATTERN_FILES: u32 = 100;

/// For the files of `set` beyond those of `held`, and for what the run itself appends.
pub(super) fn need(set: FileSet, held: FileSet, growth: Bytes) -> Need {
    Need {
        files: u64::from(set.files().saturating_sub(held.files())),
        bytes: disk_bytes(set).saturating_sub(disk_bytes(held)),
        growth,
        spare: SPARE_BYTES,
    }
}

fn disk_bytes(set: FileSet) -> u64 {
    let of = |files: std::ops::Range<u32>| -> u64 {
        files.map(|n| data_set::disk_bytes(FileNo(n).bytes())).sum()
    };
    let (patterns, rest) = (set.files() / PATTERN_FILES, set.files() % PATTERN_FILES);
    let directories = u64::from(set.directories()) * 3 * data_set::disk_bytes(1);
    u64::from(patterns) * of(0..PATTERN_FILES) + of(0..rest) + directories
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_are_counted_as_the_blocks_they_take() {
        let (hundred, all) = (FileSet::new(100), FileSet::new(1_000));
        // 67 of a hundred files have less than a block or one; 33 are multiples of it.
        let files = 67 * 4 + 10 * 8 + 8 * 16 + 5 * 32 + 4 * 64 + 3 * 128 + 2 * 256 + 1024;
        let missing = |set, held| need(set, held, Bytes(0)).bytes;
        assert_eq!(missing(hundred, FileSet::new(0)), files * 1024 + 3 * 4096);
        assert_eq!(missing(all, all), 0);
        assert_eq!(missing(hundred, all), 0);
    }
}
