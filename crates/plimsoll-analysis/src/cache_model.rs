//! The hit ratio of a cache that replaces the least recently used page, for a known access pattern.
//!
//! Che's approximation (H. Che, Y. Tung, Z. Wang: Hierarchical Web Caching Systems: Modeling,
//! Design and Experimental Results, IEEE Journal on Selected Areas in Communications 20 (7), 2002):
//! an item stays in a cache of size C for a *characteristic time* T after its last read, the same
//! for all items. With independent reads, item i at rate λᵢ is hit with probability
//! 1 − exp(−λᵢ T), and T solves Σ sᵢ (1 − exp(−λᵢ T)) = C, with sᵢ the room of item i.
//! Time is counted in reads.

use plimsoll_model::page_cache::{AccessClass, AccessPattern};

/// The kernel keeps files in pages of this size, and reads disks in them.
const PAGE_BYTES: u64 = 4096;
/// Halvings of an interval of time: more than a float has digits.
const HALVINGS: u32 = 64;
/// Doublings of a time, after which a cache has all that it will ever have.
const DOUBLINGS_MAX: i32 = 200;

/// What a hit ratio counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitsBy {
    /// Each read as one.
    Reads,
    /// Each read by the bytes of its pages.
    Bytes,
}

/// A cache of files for one access pattern.
#[derive(Clone, Debug)]
pub struct CacheModel {
    classes: Vec<Class>,
    /// Mean bytes that a read transfers.
    bytes_per_read: f64,
}

#[derive(Clone, Copy, Debug)]
struct Class {
    items: f64,
    /// Room of one in memory, in whole pages.
    room_bytes: f64,
    /// Part of all reads that go to one item.
    rate: f64,
}

impl CacheModel {
    /// `None` where nothing is read.
    pub fn from_pattern(pattern: &AccessPattern) -> Option<Self> {
        let is_read = pattern.classes.iter().filter(|it| it.items > 0 && it.share > 0.0);
        let whole: f64 = is_read.clone().map(|it| it.share).sum();
        let bytes: f64 = is_read.clone().map(|it| it.share * it.bytes as f64).sum();
        let class = |it: &AccessClass| Class {
            items: it.items as f64,
            room_bytes: it.bytes.div_ceil(PAGE_BYTES) as f64 * PAGE_BYTES as f64,
            rate: it.share / whole / it.items as f64,
        };
        let model = Self { classes: is_read.map(class).collect(), bytes_per_read: bytes / whole };
        (bytes > 0.0).then_some(model)
    }

    /// Memory in which all that is read has room.
    pub fn full_bytes(&self) -> f64 {
        self.room_bytes(f64::INFINITY)
    }

    /// Share of the reads that are hits in a cache of this size.
    pub fn hit_ratio(&self, cache_bytes: f64, by: HitsBy) -> f64 {
        self.hits(self.time_of(cache_bytes), by)
    }

    /// The size of a cache with this hit ratio.
    pub fn cache_bytes(&self, hit_ratio: f64, by: HitsBy) -> f64 {
        if hit_ratio >= 1.0 {
            return self.full_bytes();
        }
        self.room_bytes(solve(hit_ratio, |time| self.hits(time, by)))
    }

    /// Bytes read from disks per byte that is sent, with a cache of this size. More than 1 if files
    /// are smaller than their pages.
    pub fn miss_ratio(&self, cache_bytes: f64) -> f64 {
        self.cold_miss_ratio() * (1.0 - self.hit_ratio(cache_bytes, HitsBy::Bytes))
    }

    /// The same without a cache.
    pub fn cold_miss_ratio(&self) -> f64 {
        self.pages_per_read() / self.bytes_per_read
    }

    /// Mean bytes of the pages of a read.
    fn pages_per_read(&self) -> f64 {
        self.classes.iter().map(|it| it.items * it.rate * it.room_bytes).sum()
    }

    /// The characteristic time, in reads.
    fn time_of(&self, cache_bytes: f64) -> f64 {
        if cache_bytes >= self.full_bytes() {
            return f64::INFINITY;
        }
        solve(cache_bytes, |time| self.room_bytes(time))
    }

    /// Room of the items that were read within `time`.
    fn room_bytes(&self, time: f64) -> f64 {
        self.classes.iter().map(|it| it.items * it.room_bytes * it.is_read_within(time)).sum()
    }

    fn hits(&self, time: f64, by: HitsBy) -> f64 {
        let weight = |it: &Class| match by {
            HitsBy::Reads => 1.0,
            HitsBy::Bytes => it.room_bytes / self.pages_per_read(),
        };
        let hits = |it: &Class| it.items * it.rate * weight(it) * it.is_read_within(time);
        self.classes.iter().map(hits).sum::<f64>().min(1.0)
    }
}

impl Class {
    /// Probability that an item is read within `time`.
    fn is_read_within(&self, time: f64) -> f64 {
        -(-self.rate * time).exp_m1()
    }
}

/// The time at which a rising function reaches `target`; infinite where it does not.
fn solve(target: f64, value: impl Fn(f64) -> f64) -> f64 {
    if target <= 0.0 {
        return 0.0;
    }
    let reaches = |time: &f64| value(*time) >= target;
    let mut doubled = (0..DOUBLINGS_MAX).map(|n| 2f64.powi(n));
    let Some(mut high_time) = doubled.find(reaches) else { return f64::INFINITY };
    let mut low_time = 0.0;
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low_time, high_time);
        match reaches(&middle) {
            true => high_time = middle,
            false => low_time = middle,
        }
    }
    high_time
}

#[cfg(test)]
mod tests;
