//! What the files hold: it follows from the seed, so that writing borrows a slice and checking is
//! one comparison, and no file is stored.
//!
//! The byte at an offset of a file is that of one table of seeded random bytes at
//! `(key(file) + offset)` modulo its length. Writing over a file writes what it has there anyway,
//! so what was in the file at the beginning can be checked at any time; swapped files, shifted
//! bytes and lost writes show.

use std::fmt;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::FileNo;
use crate::keyed;

/// Largest [`Content::slice`].
pub const SLICE_BYTES_MAX: usize = 128 * 1_024;
/// As large as the largest file.
const TABLE_BYTES: usize = 1_024 * 1_024;

/// The content of all files of a seed: a megabyte, whatever they take on the server.
#[derive(Clone)]
pub struct Content {
    seed: u64,
    /// [`TABLE_BYTES`] and its first [`SLICE_BYTES_MAX`] again.
    table: Arc<[u8]>,
}

impl Content {
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

    /// The `bytes` at `offset` of `file`, also beyond the size the file is made with.
    ///
    /// # Panics
    /// When `bytes` is over [`SLICE_BYTES_MAX`].
    pub fn slice(&self, file: FileNo, offset: u64, bytes: usize) -> &[u8] {
        let key = keyed::key(&[self.seed, u64::from(file.0)]);
        let start = (key.wrapping_add(offset) % TABLE_BYTES as u64) as usize;
        &self.table[start..start + bytes]
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Content(seed {})", self.seed)
    }
}
