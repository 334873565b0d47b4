//! What the files hold, by their numbers.

use super::FileNo;
use plimsoll_engine::rng;
use plimsoll_protocol::content::ContentTable;
pub use plimsoll_protocol::content::SLICE_BYTES_MAX;

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
