//! What belongs to one client alone: the files it appends to, and the names it creates and removes.

use std::collections::VecDeque;

use plimsoll_engine::rng;
use plimsoll_model::outcome::OpStatus;
use plimsoll_protocol::draw::{Owner, Sample};

use super::plan::Popularity;
use crate::op::{Accessed, Presence, SlotNo};

/// A file that has grown to this is written from the end of its first content again. Within what
/// every server and version can address.
const GROWN_KIB_MAX: u32 = 1_024 * 1_024;

/// The files a client appends to. Each accessed file is appended to by one client only, which
/// therefore knows where it ends: no two appends overlap, and none needs to ask the server.
#[derive(Clone, Debug)]
pub(super) struct Appends {
    /// In the order of their groups.
    owned: Vec<Accessed>,
    /// Where in `owned` each group begins; the last is the end.
    starts: Vec<u32>,
    /// Size of each as far as this client's appends have gone.
    grown_kib: Vec<u32>,
}

/// One of the files a client appends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnFile(u32);

impl Appends {
    /// Every `clients`th of the `accessed` files.
    pub(super) fn new(owner: Owner, accessed: u32, groups: u32) -> Self {
        let every = (owner.client..accessed).step_by(owner.clients.max(1) as usize);
        let mut owned: Vec<Accessed> = every.map(Accessed).collect();
        owned.sort_by_key(|file| file.group(groups));
        let start = |group| owned.partition_point(|file| file.group(groups) < group) as u32;
        let starts = (0..=groups).map(start).collect();
        let grown_kib = owned.iter().map(|file| first_kib(*file)).collect();
        Self { owned, starts, grown_kib }
    }

    /// A file by the groups' weights. A client that owns none of a group takes one of the next.
    pub(super) fn pick(&self, popularity: &Popularity, sample: Sample) -> Option<OwnFile> {
        let groups = popularity.groups();
        let (first, count) = (groups.index_at(sample.quantile), groups.count());
        let mut ranges = (first..first + count).map(|group| {
            let group = group % count;
            (self.starts[group], self.starts[group + 1])
        });
        let (start, end) = ranges.find(|(start, end)| start < end)?;
        Some(OwnFile(start + rng::below(sample.bits, u64::from(end - start)) as u32))
    }

    /// Some file of the client.
    pub(super) fn any(&self) -> Option<Accessed> {
        self.owned.first().copied()
    }

    /// Takes the next `kib` at the end of a file: which it is, and their offset in bytes.
    pub(super) fn extend(&mut self, own: OwnFile, kib: u32) -> (Accessed, u64) {
        let file = self.owned[own.0 as usize];
        let grown = &mut self.grown_kib[own.0 as usize];
        if *grown + kib > GROWN_KIB_MAX {
            *grown = first_kib(file);
        }
        let offset = u64::from(*grown) * 1_024;
        *grown += kib;
        (file, offset)
    }
}

fn first_kib(file: Accessed) -> u32 {
    (file.bytes() / 1_024) as u32
}

/// The names of one client. One with an op in flight is in none of the lists.
///
/// No name exists when a load point begins. Afterwards the client knows which do, since each name
/// is used by one client and by one op at a time.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    absent: VecDeque<SlotNo>,
    present: VecDeque<SlotNo>,
    /// An op failed, and may have worked nevertheless.
    unknown: VecDeque<SlotNo>,
}

/// What an op does to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotChange {
    /// CREATE.
    Create(SlotNo),
    /// REMOVE.
    Remove(SlotNo, Presence),
}

impl Slots {
    /// Every `clients`th of `slots` names.
    pub(super) fn new(owner: Owner, slots: u32) -> Self {
        let every = (owner.client..slots).step_by(owner.clients.max(1) as usize);
        Self {
            absent: every.map(SlotNo).collect(),
            present: VecDeque::new(),
            unknown: VecDeque::new(),
        }
    }

    /// Takes a name to create: an absent one, else one that may or does exist. `None` while all
    /// have an op in flight.
    pub(super) fn create(&mut self) -> Option<SlotChange> {
        let lists = [&mut self.absent, &mut self.unknown, &mut self.present];
        lists.into_iter().find_map(VecDeque::pop_front).map(SlotChange::Create)
    }

    /// Takes a name to remove: one that exists, else one that does not. A name that may or may not
    /// exist is created instead. `None` while all have an op in flight.
    pub(super) fn remove(&mut self) -> Option<SlotChange> {
        let present = self.present.pop_front().map(|slot| (slot, Presence::Exists));
        let candidate =
            present.or_else(|| self.absent.pop_front().map(|slot| (slot, Presence::Missing)));
        match candidate {
            Some((slot, presence)) => Some(SlotChange::Remove(slot, presence)),
            None => self.unknown.pop_front().map(SlotChange::Create),
        }
    }

    /// The op of `change` has ended.
    pub(super) fn settle(&mut self, change: SlotChange, status: OpStatus) {
        let worked = matches!(status, OpStatus::Ok | OpStatus::ExpectedFailure);
        match (change, worked) {
            (SlotChange::Create(slot), true) => self.present.push_back(slot),
            (SlotChange::Remove(slot, _), true)
            | (SlotChange::Remove(slot, Presence::Missing), _) => {
                self.absent.push_back(slot);
            }
            (SlotChange::Create(slot) | SlotChange::Remove(slot, Presence::Exists), false) => {
                self.unknown.push_back(slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::outcome::ErrorClass;

    fn slots(count: u32) -> Slots {
        Slots::new(Owner { seed: 1, client: 1, clients: 4 }, count)
    }

    #[test]
    fn names_are_created_and_removed_in_turn() {
        let mut slots = slots(10);
        let first = slots.create().unwrap();
        assert_eq!(first, SlotChange::Create(SlotNo(1)));
        slots.settle(first, OpStatus::Ok);
        let second = slots.create().unwrap();
        assert_eq!(second, SlotChange::Create(SlotNo(5)));
        assert_eq!(slots.remove(), Some(SlotChange::Remove(SlotNo(1), Presence::Exists)));
        assert_eq!(slots.remove(), Some(SlotChange::Remove(SlotNo(9), Presence::Missing)));
        assert_eq!((slots.create(), slots.remove()), (None, None));
        slots.settle(SlotChange::Remove(SlotNo(9), Presence::Missing), OpStatus::ExpectedFailure);
        assert_eq!(slots.create(), Some(SlotChange::Create(SlotNo(9))));
    }

    #[test]
    fn a_name_whose_op_failed_is_created_before_it_is_removed() {
        let mut slots = slots(4);
        let only = slots.create().unwrap();
        slots.settle(only, OpStatus::Failed(ErrorClass::Timeout));
        assert_eq!(slots.remove(), Some(only));
        slots.settle(only, OpStatus::Ok);
        assert_eq!(slots.create(), Some(only), "re-created when none is absent");
        slots.settle(only, OpStatus::Ok);
        assert_eq!(slots.remove(), Some(SlotChange::Remove(SlotNo(1), Presence::Exists)));
    }
}
