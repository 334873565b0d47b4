//! Random numbers keyed by what they decide, so that the work depends on the seed alone and not on
//! how many workers or agents share it.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// What a stream of random numbers decides. Part of the key: two purposes never share a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Gaps of an arrival schedule.
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
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// Uniform in `0..n`; `n` above zero. Bias below 2⁻³² for any `n` that fits in 32 bits.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Puts the items in random order (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }
}

/// SplitMix64's finaliser: neighbouring keys give unrelated streams.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
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
