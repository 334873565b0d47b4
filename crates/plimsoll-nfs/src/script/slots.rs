//! Names a client creates and removes. None exists when a load point begins; afterwards the
//! client knows which do, as each is used by one client and by one op at a time.

use std::collections::VecDeque;

use plimsoll_model::outcome::OpStatus;

use crate::op::{Presence, SlotNo};
use plimsoll_protocol::draw::Owner;

/// The names of one client. One with an op in flight is in none of the lists.
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

    /// Takes a name to remove: one that exists, else one that does not. One of which that is not
    /// known is created instead. `None` while all have an op in flight.
    pub(super) fn remove(&mut self) -> Option<SlotChange> {
        let present = self.present.pop_front().map(|slot| (slot, Presence::Exists));
        let known =
            present.or_else(|| self.absent.pop_front().map(|slot| (slot, Presence::Missing)));
        match known {
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
