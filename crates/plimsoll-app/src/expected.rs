//! The checksum over bytes that are always the same, without going over them again.
//!
//! CRC-32 is linear: what a seed becomes over given bytes is `M · seed ⊕ c` over the two-element
//! field. So the answer to work that keeps a server busy for a millisecond, or over a body that
//! nobody looks at, is known in nanoseconds for every seed.

use super::wire::{checksum, work_block};

/// What becomes of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeedMap {
    of_zero: u32,
    /// What each bit of the seed changes.
    bits: [u32; 32],
}

impl SeedMap {
    /// Over `bytes`.
    pub(crate) fn over(bytes: &[u8]) -> Self {
        let of_zero = checksum(0, bytes);
        Self { of_zero, bits: std::array::from_fn(|bit| checksum(1 << bit, bytes) ^ of_zero) }
    }

    /// Over so many units of work.
    pub(crate) fn over_work(units: u32) -> Self {
        let mut unit = Self::over(work_block());
        let mut all = Self::over(&[]);
        let mut left = units;
        while left > 0 {
            if left & 1 == 1 {
                all = all.then(&unit);
            }
            unit = unit.then(&unit);
            left >>= 1;
        }
        all
    }

    /// The checksum that goes on from `seed`.
    pub(crate) fn apply(&self, seed: u32) -> u32 {
        self.linear(seed) ^ self.of_zero
    }

    fn linear(&self, seed: u32) -> u32 {
        let one = |(at, bit): (usize, &u32)| bit & (seed >> at & 1).wrapping_neg();
        self.bits.iter().enumerate().map(one).fold(0, |sum, bit| sum ^ bit)
    }

    /// Over what this goes over, then over what `next` does.
    fn then(&self, next: &Self) -> Self {
        Self { of_zero: next.apply(self.of_zero), bits: self.bits.map(|bit| next.linear(bit)) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::work_checksum;

    proptest! {
        #[test]
        fn every_seed_becomes_what_the_checksum_says(
            seed: u32,
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            prop_assert_eq!(SeedMap::over(&bytes).apply(seed), checksum(seed, &bytes));
        }

        #[test]
        fn work_is_known_without_doing_it(seed: u32, units in 0_u32..40) {
            prop_assert_eq!(SeedMap::over_work(units).apply(seed), work_checksum(seed, units));
        }
    }
}
