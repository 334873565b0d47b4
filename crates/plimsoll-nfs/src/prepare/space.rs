//! Is there room, before the first byte.

use plimsoll_model::units::Bytes;

use super::super::fileset::{FileNo, FileSet};
use super::super::mounting::Mounted;
use super::super::procedure::results::Space;
use super::super::remote::Remote;
use plimsoll_protocol::net::SetupError;

/// Left free beyond the file set: the file system's own needs, and other users of it.
pub const SPARE_BYTES: u64 = 64 * 1024 * 1024;
/// Blocks that a small file takes anyway.
const BLOCK_BYTES: u64 = 4096;
/// Files of the pattern of sizes.
const PATTERN_FILES: u32 = 100;

/// What a set needs that is not there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    files: u32,
    bytes: u64,
    growth: u64,
}

impl Need {
    /// For the files of `set` beyond those of `held`, and for what the run itself appends.
    pub(super) fn new(set: FileSet, held: FileSet, growth: Bytes) -> Self {
        Self {
            files: set.files().saturating_sub(held.files()),
            bytes: disk_bytes(set).saturating_sub(disk_bytes(held)),
            growth: growth.0,
        }
    }

    /// Is there room?
    pub(super) fn fits(&self, space: &Space) -> bool {
        let files = space.available_files.is_none_or(|free| free >= u64::from(self.files));
        files && space.available_bytes >= self.bytes_with_spare()
    }

    fn bytes_with_spare(&self) -> u64 {
        self.bytes.saturating_add(self.growth).saturating_add(SPARE_BYTES)
    }
}

/// The space of the export.
pub(super) fn of(remote: &mut Remote, mounted: &Mounted) -> Result<Space, SetupError> {
    remote
        .space(&mounted.root)
        .map_err(|e| e.unable_to("see how much space is free", mounted.place()))
}

fn disk_bytes(set: FileSet) -> u64 {
    let of = |files: std::ops::Range<u32>| -> u64 {
        files.map(|n| FileNo(n).bytes().next_multiple_of(BLOCK_BYTES)).sum()
    };
    let (patterns, rest) = (set.files() / PATTERN_FILES, set.files() % PATTERN_FILES);
    let directories = u64::from(set.directories()) * 3 * BLOCK_BYTES;
    u64::from(patterns) * of(0..PATTERN_FILES) + of(0..rest) + directories
}

/// Refuses a set that would not fit.
pub(super) fn check(remote: &mut Remote, mounted: &Mounted, need: &Need) -> Result<(), SetupError> {
    if need.files == 0 && need.growth == 0 {
        return Ok(());
    }
    let space = of(remote, mounted)?;
    let refuse = |what: String| {
        Err(SetupError::Unusable(format!(
            "{}: {what}; nothing was written; free some space, lower the load, or scale the file \
             set down with --profile quick or the profile's workload_scale",
            mounted.place()
        )))
    };
    let needed = need.bytes_with_spare();
    if space.available_bytes < needed {
        let free = Bytes(space.available_bytes);
        let needed = Bytes(needed);
        return refuse(format!(
            "the file set and what the run appends need {needed} more, {free} are free there"
        ));
    }
    match space.available_files {
        Some(free) if free < u64::from(need.files) => {
            refuse(format!("the file set needs {} more files, {free} can be made", need.files))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_are_counted_as_the_blocks_they_take() {
        let (hundred, all) = (FileSet::new(100), FileSet::new(1_000));
        // 67 of a hundred files have less than a block or one; 33 are multiples of it.
        let files = 67 * 4 + 10 * 8 + 8 * 16 + 5 * 32 + 4 * 64 + 3 * 128 + 2 * 256 + 1024;
        let missing = |set, held| Need::new(set, held, Bytes(0)).bytes;
        assert_eq!(missing(hundred, FileSet::new(0)), files * 1024 + 3 * BLOCK_BYTES);
        assert_eq!(missing(all, all), 0);
        assert_eq!(missing(hundred, all), 0);
    }
}
