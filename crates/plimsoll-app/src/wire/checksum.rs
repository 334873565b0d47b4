//! The checksum of a reply, and the work of a processor request, which is made of checksums.

use std::sync::LazyLock;

use crc32fast::Hasher;

/// Length of the block a unit of work goes over: more than a first-level cache holds.
pub const WORK_BLOCK_BYTES: usize = 64 * 1_024;

/// CRC-32 (IEEE 802.3, as in zlib) of `bytes`, going on from `seed`: zlib's `crc32(seed, bytes)`.
pub fn checksum(seed: u32, bytes: &[u8]) -> u32 {
    let mut hasher = Hasher::new_with_initial(seed);
    hasher.update(bytes);
    hasher.finalize()
}

/// The block a unit of work goes over: byte `i` is `(131 · i + ⌊i / 256⌋) mod 256`.
pub fn work_block() -> &'static [u8; WORK_BLOCK_BYTES] {
    static BLOCK: LazyLock<Box<[u8; WORK_BLOCK_BYTES]>> =
        LazyLock::new(|| Box::new(std::array::from_fn(|i| (131 * i + i / 256) as u8)));
    &BLOCK
}

/// The answer to `work` units: as many checksums of [`work_block`], each going on from the last,
/// the first from `seed`.
pub fn work_checksum(seed: u32, work: u32) -> u32 {
    (0..work).fold(seed, |sum, _| checksum(sum, work_block()))
}
