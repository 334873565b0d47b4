//! Random numbers keyed by what they decide, so that the work depends on the seed alone and not on
//! how many workers or agents share it: streams, and single numbers that depend on their key and on
//! nothing else, so that op n of a client does not depend on what was drawn before it.

use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// What a stream of random numbers decides. Part of the key: two purposes never share a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Inter-arrival times of a schedule.
    Arrivals = 1,
    /// Think times of a client.
    Think = 2,
    /// Start delay of a client.
    StartDelay = 3,
    /// What a script does.
    Script = 4,
    /// File contents and layouts.
    Data = 5,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream of `purpose` for item `key` (a client, a deck) of a run.
    pub fn new(seed: u64, purpose: Stream, key: u64) -> Self {
        let mixed = mix(mix(mix(seed).wrapping_add(purpose as u64)).wrapping_add(key));
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        unit(self.bits())
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

/// A hash of the parts, in their order.
pub fn key(parts: &[u64]) -> u64 {
    parts.iter().fold(0x706c_696d_736f_6c6c, |sum, part| mix(sum ^ *part))
}

/// The key as a number in `0..bound`, evenly to within `bound / 2^64`.
pub fn below(key: u64, bound: u64) -> u64 {
    ((u128::from(key) * u128::from(bound)) >> 64) as u64
}

/// The key as a number in `0..1`.
pub fn unit(key: u64) -> f64 {
    (key >> 11) as f64 / (1u64 << 53) as f64
}

/// A draw from the normal distribution with mean 0 and deviation 1 (Box and Muller).
pub fn normal(key_of_draw: u64) -> f64 {
    let radius = (-2.0 * (1.0 - unit(key(&[key_of_draw, 1]))).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit(key(&[key_of_draw, 2]))).cos()
}

/// Puts `cards` in an order that follows from `key` (Fisher and Yates).
pub fn shuffle<T>(cards: &mut [T], key: u64) {
    let mut stream = SplitMix64::seed_from_u64(key);
    for last in (1..cards.len()).rev() {
        cards.swap(last, below(stream.next_u64(), last as u64 + 1) as usize);
    }
}

/// SplitMix64's output function, a bijection with full avalanche: neighbouring keys give unrelated
/// streams.
fn mix(value: u64) -> u64 {
    SplitMix64::seed_from_u64(value).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_neighbouring_keys_are_unrelated() {
        let first: Vec<u64> =
            (0..64).map(|key| Random::new(1, Stream::Script, key).bits()).collect();
        let mut sorted = first.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), first.len());
    }

    /// Old runs are repeated by their seeds.
    #[test]
    fn the_numbers_drawn_stay_what_they_are() {
        let mut random = Random::new(1876, Stream::Script, 7);
        assert_eq!(random.bits(), 11_752_259_635_292_908_453);
        assert_eq!(random.bits(), 6_050_929_755_555_801_180);
        assert_eq!(key(&[1876, 4, 7]), 17_772_452_577_780_661_686);
        let mut cards: Vec<u32> = (0..12).collect();
        shuffle(&mut cards, 9);
        assert_eq!(cards, [5, 1, 10, 6, 4, 3, 0, 9, 7, 2, 11, 8]);
    }

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

    #[test]
    fn the_exponential_has_mean_one_and_the_right_tail() {
        let mut random = Random::new(7, Stream::Think, 0);
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| random.exponential()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let tail = draws.iter().filter(|x| **x > 3.0).count() as f64 / f64::from(n);
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((tail - (-3.0f64).exp()).abs() < 0.002, "{tail}");
    }
}
