//! Content of files, derived from a seed: writing borrows a slice, checking is one comparison, and
//! no file is stored.
//!
//! The byte at an offset of a file is that of one table of seeded random bytes at
//! `(key of the file + offset)` modulo its length. Writing over a file writes what it has there
//! anyway, so what was in the file at the beginning can be checked at any time, whoever wrote
//! last; swapped files, shifted bytes and lost writes show.

use std::fmt;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Largest slice [`ContentTable::bytes`] lends.
pub const SLICE_BYTES_MAX: usize = 128 * 1_024;
/// Content repeats after this many bytes.
const TABLE_BYTES: usize = 1_024 * 1_024;

/// The content of all files of a seed: a megabyte, whatever they take on the server.
#[derive(Clone)]
pub struct ContentTable {
    seed: u64,
    /// [`TABLE_BYTES`] and its first [`SLICE_BYTES_MAX`] again.
    table: Arc<[u8]>,
}

impl ContentTable {
    /// The content that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        let mut table = vec![0; TABLE_BYTES + SLICE_BYTES_MAX];
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut table[..TABLE_BYTES]);
        table.copy_within(..SLICE_BYTES_MAX, TABLE_BYTES);
        Self { seed, table: table.into() }
    }

    /// Its seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The `bytes` at `offset` of the file with that key, whatever the file's size.
    ///
    /// # Panics
    /// When `bytes` is over [`SLICE_BYTES_MAX`].
    pub fn bytes(&self, key: u64, offset: u64, bytes: usize) -> &[u8] {
        let start = (key.wrapping_add(offset) % TABLE_BYTES as u64) as usize;
        &self.table[start..start + bytes]
    }
}

impl fmt::Debug for ContentTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentTable(seed {})", self.seed)
    }
}
