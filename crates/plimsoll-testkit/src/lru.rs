//! A cache that replaces the least recently used item.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

const PAGE_BYTES: u64 = 4096;

/// Items in whole pages of memory, up to a size. Counts the second half of the reads, when the
/// cache has long been full.
#[derive(Debug)]
pub struct LruCache<K> {
    room_bytes: u64,
    used_bytes: u64,
    reads: u64,
    reads_before: u64,
    last_reads: HashMap<K, (u64, u64)>,
    by_age: BTreeMap<u64, K>,
    /// Reads, and those of them that hit.
    counted: [u64; 2],
    /// The same in bytes.
    counted_bytes: [u64; 2],
}

impl<K: Copy + Eq + Hash> LruCache<K> {
    /// An empty cache of that size, which counts after `reads_before` reads.
    pub fn new(room_bytes: u64, reads_before: u64) -> Self {
        Self {
            room_bytes,
            used_bytes: 0,
            reads: 0,
            reads_before,
            last_reads: HashMap::new(),
            by_age: BTreeMap::new(),
            counted: [0; 2],
            counted_bytes: [0; 2],
        }
    }

    /// Reads an item of that many bytes.
    pub fn read(&mut self, item: K, bytes: u64) {
        self.reads += 1;
        let bytes = bytes.next_multiple_of(PAGE_BYTES);
        let before = self.last_reads.insert(item, (self.reads, bytes));
        match before {
            Some((age, _)) => drop(self.by_age.remove(&age)),
            None => self.used_bytes += bytes,
        }
        self.by_age.insert(self.reads, item);
        while self.used_bytes > self.room_bytes {
            let Some((_, oldest)) = self.by_age.pop_first() else { break };
            self.used_bytes -= self.last_reads.remove(&oldest).map_or(0, |(_, bytes)| bytes);
        }
        if self.reads > self.reads_before {
            let hits = u64::from(before.is_some());
            self.counted = [self.counted[0] + 1, self.counted[1] + hits];
            self.counted_bytes =
                [self.counted_bytes[0] + bytes, self.counted_bytes[1] + hits * bytes];
        }
    }

    /// Share of the reads, and share of the bytes of pages, that were hits.
    pub fn hit_ratios(&self) -> [f64; 2] {
        [self.counted, self.counted_bytes].map(|[all, hits]| hits as f64 / all as f64)
    }
}
