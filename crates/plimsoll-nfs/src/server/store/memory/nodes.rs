//! All objects in memory, by id.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::node::{Node, State};
use crate::server::store::{Object, Status3};

/// Locks over which the objects are spread, so that cores seldom meet at one.
const SHARDS: usize = 64;

/// All objects. A shard's lock is held for a few instructions and never while another is taken.
#[derive(Debug)]
pub(super) struct Nodes {
    shards: Vec<RwLock<Shard>>,
    next_shard: AtomicUsize,
    next_generation: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

#[derive(Debug)]
struct Slot {
    generation: u64,
    node: Option<Arc<Node>>,
}

impl Nodes {
    pub(super) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            next_shard: AtomicUsize::new(0),
            next_generation: AtomicU64::new(1),
        }
    }

    pub(super) fn get(&self, object: Object) -> Result<Arc<Node>, Status3> {
        let (shard, index) = place_of(object.id).ok_or(Status3::STALE)?;
        let shard = self.shards[shard].read().unwrap_or_else(PoisonError::into_inner);
        let slot = shard.slots.get(index).filter(|slot| slot.generation == object.generation);
        slot.and_then(|slot| slot.node.clone()).ok_or(Status3::STALE)
    }

    /// Adds the object that `make` builds from its id.
    pub(super) fn add(&self, make: impl FnOnce(Object) -> State) -> Object {
        let generation = self.next_generation.fetch_add(1, Ordering::Relaxed);
        let shard_index = self.next_shard.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let shard = &self.shards[shard_index];
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        let index = shard.free.pop().unwrap_or(shard.slots.len());
        let object = Object { id: id_of(shard_index, index), generation, parent: 0 };
        let slot = Slot { generation, node: Some(Arc::new(Node::new(make(object)))) };
        if index == shard.slots.len() {
            shard.slots.push(slot);
        } else {
            shard.slots[index] = slot;
        }
        object
    }

    pub(super) fn remove(&self, object: Object) {
        let Some((shard, index)) = place_of(object.id) else { return };
        let mut shard = self.shards[shard].write().unwrap_or_else(PoisonError::into_inner);
        let slot = shard.slots.get_mut(index).filter(|slot| slot.generation == object.generation);
        if slot.is_some_and(|slot| slot.node.take().is_some()) {
            shard.free.push(index);
        }
    }
}

/// Ids begin at 2: some clients take file id 0 for none, and 1 is a bad block list.
fn id_of(shard: usize, index: usize) -> u64 {
    (index * SHARDS + shard) as u64 + 2
}

fn place_of(id: u64) -> Option<(usize, usize)> {
    let number = usize::try_from(id.checked_sub(2)?).ok()?;
    Some((number % SHARDS, number / SHARDS))
}
