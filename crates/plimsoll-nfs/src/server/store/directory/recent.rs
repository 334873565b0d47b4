//! A bounded map that keeps what was used last.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

const SHARDS: usize = 16;

/// Values by id. Two generations per shard: what is used moves to the young one; when that is
/// full it becomes the old one, and what was old is forgotten. So at least the last half of the
/// bound is always there, at the cost of one or two look-ups.
#[derive(Debug)]
pub(super) struct Recent<V> {
    shards: Vec<Mutex<Generations<V>>>,
    young_max: usize,
}

#[derive(Debug)]
struct Generations<V> {
    young: HashMap<u64, V>,
    old: HashMap<u64, V>,
}

impl<V: Clone> Recent<V> {
    /// At most `max` values, rounded up.
    pub(super) fn new(max: usize) -> Self {
        let empty = || Mutex::new(Generations { young: HashMap::new(), old: HashMap::new() });
        let young_max = max.div_ceil(2 * SHARDS).max(1);
        Self { shards: (0..SHARDS).map(|_| empty()).collect(), young_max }
    }

    fn shard(&self, id: u64) -> MutexGuard<'_, Generations<V>> {
        // Inode numbers of neighbours differ in their low bits.
        let shard = &self.shards[id as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, id: u64) -> Option<V> {
        let mut shard = self.shard(id);
        if let Some(value) = shard.young.get(&id) {
            return Some(value.clone());
        }
        let value = shard.old.remove(&id)?;
        shard.put(id, value.clone(), self.young_max);
        Some(value)
    }

    pub(super) fn insert(&self, id: u64, value: V) {
        let mut shard = self.shard(id);
        shard.old.remove(&id);
        shard.put(id, value, self.young_max);
    }

    pub(super) fn remove(&self, id: u64) {
        let mut shard = self.shard(id);
        shard.young.remove(&id);
        shard.old.remove(&id);
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.young.clear();
            shard.old.clear();
        }
    }
}

impl<V> Generations<V> {
    fn put(&mut self, id: u64, value: V, young_max: usize) {
        if self.young.len() >= young_max && !self.young.contains_key(&id) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_keeps_what_is_used() {
        let recent = Recent::new(320);
        for id in 0..10_000 {
            recent.insert(id, id);
            assert_eq!(recent.get(0), Some(0), "after {id}");
        }
        let kept = (0..10_000).filter(|id| recent.get(*id).is_some()).count();
        assert!((160..=320).contains(&kept), "{kept}");
        recent.remove(0);
        assert_eq!(recent.get(0), None);
    }
}
