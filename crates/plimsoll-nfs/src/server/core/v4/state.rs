//! What a client has open, and the stateids that name it. RFC 8881 §8.2, §9

use std::collections::HashMap;
use std::sync::Arc;

use crate::server::store::Object;
use crate::wire::v4::{StateId, Status4, share};

/// Stateid of what is no longer open. RFC 8881 §8.2.3
pub(super) const INVALID: StateId = StateId { seqid: u32::MAX, other: [0; 12] };
/// As [`StateId::ANONYMOUS`], past all locks. RFC 8881 §8.2.3
const READ_BYPASS: StateId = StateId { seqid: u32::MAX, other: [0xff; 12] };

/// Files that a client may have open, some 200 bytes each.
const OPEN_FILES_MAX: usize = 1 << 20;

/// Open files of one client.
#[derive(Debug)]
pub(super) struct OpenFiles {
    client_id: u64,
    last_number: u32,
    by_owner: HashMap<(Object, Arc<[u8]>), u32>,
    by_number: HashMap<u32, State>,
}

#[derive(Debug)]
struct State {
    seqid: u32,
    object: Object,
    /// Of [`share`].
    access: u32,
    /// Who opened it; `None`: it is a delegation.
    owner: Option<Arc<[u8]>>,
}

impl OpenFiles {
    pub(super) fn new(client_id: u64) -> Self {
        let (by_owner, by_number) = (HashMap::new(), HashMap::new());
        Self { client_id, last_number: 0, by_owner, by_number }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// OPEN; a file that the owner has open already gets a newer stateid.
    pub(super) fn open(
        &mut self,
        object: Object,
        owner: &[u8],
        access: u32,
    ) -> Result<StateId, Status4> {
        if self.by_number.len() >= OPEN_FILES_MAX {
            return Err(Status4::NOSPC);
        }
        let owner: Arc<[u8]> = owner.into();
        let key = (object, Arc::clone(&owner));
        let new_number = || next_number(&mut self.last_number);
        let number = *self.by_owner.entry(key).or_insert_with(new_number);
        let new = || State { seqid: 0, object, access: 0, owner: Some(owner) };
        let state = self.by_number.entry(number).or_insert_with(new);
        state.access |= access;
        state.seqid = state.seqid.checked_add(1).unwrap_or(1);
        let seqid = state.seqid;
        Ok(self.stateid(number, seqid))
    }

    /// CLOSE.
    pub(super) fn close(&mut self, object: Object, stateid: StateId) -> Result<(), Status4> {
        let number = self.number_of(object, stateid)?;
        let owner = self.by_number[&number].owner.clone().ok_or(Status4::BAD_STATEID)?;
        self.by_number.remove(&number);
        self.by_owner.remove(&(object, owner));
        Ok(())
    }

    /// A delegation.
    pub(super) fn delegate(&mut self, object: Object, access: u32) -> StateId {
        let number = next_number(&mut self.last_number);
        self.by_number.insert(number, State { seqid: 1, object, access, owner: None });
        self.stateid(number, 1)
    }

    /// DELEGRETURN.
    pub(super) fn return_delegation(
        &mut self,
        object: Object,
        stateid: StateId,
    ) -> Result<(), Status4> {
        let number = self.number_of(object, stateid)?;
        if self.by_number[&number].owner.is_some() {
            return Err(Status4::BAD_STATEID);
        }
        self.by_number.remove(&number);
        Ok(())
    }

    /// Ends a delegation that was not returned.
    pub(super) fn revoke(&mut self, stateid: StateId) {
        self.by_number.remove(&stateid.number());
    }

    /// A READ, WRITE or SETATTR may use the stateid.
    pub(super) fn check(
        &self,
        object: Object,
        stateid: StateId,
        access: u32,
    ) -> Result<(), Status4> {
        if stateid == StateId::ANONYMOUS || stateid == READ_BYPASS {
            return Ok(());
        }
        let number = self.number_of(object, stateid)?;
        // Whoever may write may read as well: some clients read what they write only in part.
        // RFC 8881 §18.22.4
        let allowed = self.by_number[&number].access;
        let is_allowed = allowed & access != 0 || allowed & share::WRITE != 0;
        if is_allowed { Ok(()) } else { Err(Status4::OPENMODE) }
    }

    fn stateid(&self, number: u32, seqid: u32) -> StateId {
        let mut other = [0; 12];
        other[..8].copy_from_slice(&self.client_id.to_be_bytes());
        other[8..].copy_from_slice(&number.to_be_bytes());
        StateId { seqid, other }
    }

    fn number_of(&self, object: Object, stateid: StateId) -> Result<u32, Status4> {
        let StateId { seqid, other } = stateid;
        let of_client = self.stateid(0, 0).other;
        if other[..4] != of_client[..4] && other != [0; 12] {
            // Of the time before a restart.
            return Err(Status4::STALE_STATEID);
        }
        if other[..8] != of_client[..8] {
            return Err(Status4::BAD_STATEID);
        }
        let number = stateid.number();
        let state = self.by_number.get(&number).filter(|state| state.object == object);
        match state.ok_or(Status4::BAD_STATEID)? {
            State { seqid: newest, .. } if seqid == 0 || seqid == *newest => Ok(number),
            State { seqid: newest, .. } if seqid < *newest => Err(Status4::OLD_STATEID),
            _ => Err(Status4::BAD_STATEID),
        }
    }
}

fn next_number(last: &mut u32) -> u32 {
    *last = last.wrapping_add(1);
    *last
}

/// Stateids of this server: the client's id, and a number.
impl StateId {
    pub(super) fn client_id(self) -> u64 {
        u64::from(self.part(0)) << 32 | u64::from(self.part(1))
    }

    fn number(self) -> u32 {
        self.part(2)
    }

    fn part(self, index: usize) -> u32 {
        u32::from_be_bytes(self.other.as_chunks::<4>().0[index])
    }
}
