//! Is there room, before the first byte.

use plimsoll_model::units::Bytes;

use super::Tree;
use crate::net::SetupError;

/// Blocks that a small file takes anyway.
const BLOCK_BYTES: u64 = 4096;

/// What is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes.
    pub bytes: u64,
    /// Files that can be made, where that is known.
    pub files: Option<u64>,
}

/// What data needs that is not there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Files.
    pub files: u64,
    /// Their bytes, as blocks.
    pub bytes: u64,
    /// What the run itself will write.
    pub growth: Bytes,
    /// Left free beyond: the file system's own needs, and other users of it.
    pub spare: u64,
}

impl Need {
    /// Is there room?
    pub fn fits(&self, space: &Space) -> bool {
        space.files.is_none_or(|free| free >= self.files) && space.bytes >= self.bytes_with_spare()
    }

    /// Refuses what would not fit.
    pub fn check<T: Tree>(&self, tree: &mut T) -> Result<(), SetupError> {
        if (self.files, self.bytes, self.growth.0) == (0, 0, 0) {
            return Ok(());
        }
        let space = space_of(tree)?;
        if self.fits(&space) {
            return Ok(());
        }
        let (needed, free) = (self.bytes_with_spare(), space.bytes);
        let what = if free < needed {
            let (needed, free) = (Bytes(needed), Bytes(free));
            format!("{} need {needed} more, {free} are free there", T::WORDS.needed)
        } else {
            let free = space.files.unwrap_or_default();
            format!("the file set needs {} more files, {free} can be made", self.files)
        };
        Err(SetupError::Unusable(format!(
            "{}: {what}; nothing was written; free some space, {}",
            tree.place(),
            T::WORDS.less
        )))
    }

    fn bytes_with_spare(&self) -> u64 {
        self.bytes.saturating_add(self.growth.0).saturating_add(self.spare)
    }
}

/// What is free there.
pub fn space_of<T: Tree>(tree: &mut T) -> Result<Space, SetupError> {
    tree.space().map_err(|e| tree.unable_to("see how much space is free", e))
}

/// Blocks that a file takes.
pub fn disk_bytes(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK_BYTES)
}
