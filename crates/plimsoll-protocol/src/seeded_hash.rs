//! Numbers that depend on a key and on nothing else, so that op n of a client is the same
//! whatever was dealt before it and whoever deals it; and weights to draw by.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A hash of the parts, in their order.
pub fn key(parts: &[u64]) -> u64 {
    parts.iter().fold(0x706c_696d_736f_6c6c, |sum, part| {
        // SplitMix64's output function is a bijection with full avalanche.
        SplitMix64::seed_from_u64(sum ^ *part).next_u64()
    })
}

/// The key as a number in `0..bound`, evenly to within `bound / 2^64`.
pub fn below(key: u64, bound: u64) -> u64 {
    ((u128::from(key) * u128::from(bound)) >> 64) as u64
}

/// The key as a number in `0..1`.
pub fn unit(key: u64) -> f64 {
    (key >> 11) as f64 / (1u64 << 53) as f64
}

/// Puts `cards` in an order that follows from `key` (Fisher and Yates).
pub fn shuffle<T>(cards: &mut [T], key: u64) {
    let mut stream = SplitMix64::seed_from_u64(key);
    for last in (1..cards.len()).rev() {
        cards.swap(last, below(stream.next_u64(), last as u64 + 1) as usize);
    }
}

/// Poisson(`mean`) truncated to 1, 2, … for as many as there are `weights`, and renormalised.
pub fn poisson(mean: f64, weights: &mut [f64]) {
    // Weights relative to k = 1; the factor exp(-mean) * mean cancels.
    let mut weight = 1.0;
    for (i, place) in weights.iter_mut().enumerate() {
        *place = weight;
        weight *= mean / (i as f64 + 2.0);
    }
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_depend_on_every_part_and_its_place() {
        assert_ne!(key(&[1, 2]), key(&[2, 1]));
        assert_ne!(key(&[0]), key(&[0, 0]));
        assert_eq!(key(&[1, 2, 3]), key(&[1, 2, 3]));
        assert!((0.0..1.0).contains(&unit(u64::MAX)));
        assert_eq!(below(u64::MAX, 10), 9);
    }

    #[test]
    fn a_shuffle_keeps_every_card() {
        let mut cards: Vec<u32> = (0..100).collect();
        shuffle(&mut cards, 7);
        assert_ne!(cards, (0..100).collect::<Vec<_>>());
        cards.sort_unstable();
        assert_eq!(cards, (0..100).collect::<Vec<_>>());
    }
}
