//! What a client has open, and the stateids that name it. RFC 8881 §8.2, §9

use std::collections::HashMap;
use std::sync::Arc;

use crate::server::store::Object;
use crate::wire::v4::{StateId, Status4, share};

/// Stateid of what is no longer open. RFC 8881 §8.2.3
pub(super) const INVALID: StateId = StateId { seqid: u32::MAX, other: [0; 12] };
/// As [`StateId::ANONYMOUS`], past all locks. RFC 8881 §8.2.3
const READ_BYPASS: StateId = StateId { seqid: u32::MAX, other: [0xff; 12] };

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
    owner: Arc<[u8]>,
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
    pub(super) fn open(&mut self, object: Object, owner: &[u8], access: u32) -> StateId {
        let owner: Arc<[u8]> = owner.into();
        let key = (object, Arc::clone(&owner));
        let number = *self.by_owner.entry(key).or_insert_with(|| {
            self.last_number = self.last_number.wrapping_add(1);
            self.last_number
        });
        let new = || State { seqid: 0, object, access: 0, owner };
        let state = self.by_number.entry(number).or_insert_with(new);
        state.access |= access;
        state.seqid = state.seqid.checked_add(1).unwrap_or(1);
        let seqid = state.seqid;
        self.stateid(number, seqid)
    }

    /// CLOSE.
    pub(super) fn close(&mut self, object: Object, stateid: StateId) -> Result<(), Status4> {
        let number = self.number_of(object, stateid)?;
        if let Some(state) = self.by_number.remove(&number) {
            self.by_owner.remove(&(state.object, state.owner));
        }
        Ok(())
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
        let number = u32::from_be_bytes([other[8], other[9], other[10], other[11]]);
        let state = self.by_number.get(&number).filter(|state| state.object == object);
        match state.ok_or(Status4::BAD_STATEID)? {
            State { seqid: newest, .. } if seqid == 0 || seqid == *newest => Ok(number),
            State { seqid: newest, .. } if seqid < *newest => Err(Status4::OLD_STATEID),
            _ => Err(Status4::BAD_STATEID),
        }
    }
}
