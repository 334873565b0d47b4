//! Delegations: a client may use a file without asking, until another one opens or removes it.
//! RFC 8881 §10.4

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_servers::clock::monotonic_ns;

use super::Nfs4;
use super::callbacks::Recall;
use super::context::Compound;
use crate::server::store::{NodePath, Object};
use crate::wire::Name;
use crate::wire::v4::{Ace, Delegation, ReadDelegation, StateId, Status4, WriteDelegation, share};

/// Locks over which the files are spread.
const SHARDS: usize = 16;

/// Who has which file open, and to which client it is delegated. It is kept only if files are
/// delegated. A shard is locked before the state of a client.
#[derive(Debug, Default)]
pub(super) struct Delegations {
    shards: [Mutex<HashMap<Object, FileUse>>; SHARDS],
}

#[derive(Debug, Default)]
struct FileUse {
    opens: Vec<Holder>,
    delegations: Vec<Holder>,
}

/// An open file or a delegation.
#[derive(Debug)]
struct Holder {
    state: StateId,
    /// Of [`share`].
    access: u32,
    /// Of a delegation: since when it is recalled.
    recalled_ns: Option<u64>,
    /// It has been recalled over a connection.
    is_called: bool,
}

impl Holder {
    fn new(state: StateId, access: u32) -> Self {
        Self { state, access, recalled_ns: None, is_called: false }
    }

    fn writes(&self) -> bool {
        self.access & share::WRITE != 0
    }

    /// A client may access the file like this although it is delegated.
    fn allows(&self, client_id: u64, access: u32) -> bool {
        let both_read = access & share::WRITE == 0 && !self.writes();
        both_read || self.state.client_id() == client_id
    }
}

/// What is to be done about delegations before an operation, and whether it has to wait.
#[derive(Default)]
struct Conflict {
    revoked: Vec<StateId>,
    recalls: Vec<StateId>,
    remains: bool,
}

impl FileUse {
    /// Delegations of other clients that do not go with an access of `client_id`.
    fn conflict(
        &mut self,
        client_id: u64,
        access: u32,
        (now_ns, lease_ns): (u64, u64),
    ) -> Conflict {
        let mut conflict = Conflict::default();
        self.delegations.retain_mut(|holder| {
            if holder.allows(client_id, access) {
                return true;
            }
            let recalled_ns = *holder.recalled_ns.get_or_insert(now_ns);
            if now_ns.saturating_sub(recalled_ns) > lease_ns {
                conflict.revoked.push(holder.state);
                return false;
            }
            conflict.remains = true;
            if !std::mem::replace(&mut holder.is_called, true) {
                conflict.recalls.push(holder.state);
            }
            true
        });
        conflict
    }

    /// Whether a client that opens the file can have it delegated.
    fn can_delegate(&self, client_id: u64, access: u32) -> bool {
        let mut others = self.opens.iter().chain(&self.delegations);
        others.all(|holder| holder.allows(client_id, access))
            && self.delegations.iter().all(|own| own.state.client_id() != client_id)
    }

    fn is_unused(&self) -> bool {
        self.opens.is_empty() && self.delegations.is_empty()
    }
}

impl Delegations {
    fn lock(&self, object: Object) -> MutexGuard<'_, HashMap<Object, FileUse>> {
        let shard = &self.shards[object.id as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file or delegation was given up.
    pub(super) fn end(&self, object: Object, state: StateId) {
        let mut files = self.lock(object);
        let Some(file) = files.get_mut(&object) else { return };
        file.opens.retain(|holder| holder.state.other != state.other);
        file.delegations.retain(|holder| holder.state.other != state.other);
        if file.is_unused() {
            files.remove(&object);
        }
    }

    /// What the clients have that `ends` selects is given up.
    pub(super) fn forget(&self, ends: impl Fn(u64) -> bool) {
        for shard in &self.shards {
            let mut files = shard.lock().unwrap_or_else(PoisonError::into_inner);
            files.retain(|_, file| {
                file.opens.retain(|holder| !ends(holder.state.client_id()));
                file.delegations.retain(|holder| !ends(holder.state.client_id()));
                !file.is_unused()
            });
        }
    }
}

/// `why_no_delegation4`. RFC 8881 §18.16
mod why {
    /// WND4_CONTENTION
    pub(super) const CONTENTION: u32 = 1;
    /// WND4_RESOURCE: there is no connection to recall it over.
    pub(super) const RESOURCE: u32 = 2;
    /// WND4_NOT_SUPP_FTYPE
    pub(super) const NOT_SUPPORTED: u32 = 3;
}

/// Opens a file; with the stateid what is delegated.
pub(super) fn open(
    compound: &Compound<'_>,
    object: Object,
    owner: &[u8],
    requested: u32,
) -> Result<(StateId, Delegation<'static>), Status4> {
    let client = &compound.session.client;
    let access = requested & share::ACCESS_MASK;
    let wants = requested & share::WANT_MASK;
    let refused = |why| match wants {
        0 | share::WANT_NONE.. => Delegation::None,
        _ => Delegation::Refused { why },
    };
    let Some(delegations) = &compound.v4().delegations else {
        let state = client.open_files().open(object, owner, access)?;
        return Ok((state, refused(why::NOT_SUPPORTED)));
    };
    compound.v4().settle(object, client.id, access)?;
    let mut files = delegations.lock(object);
    let file = files.entry(object).or_default();
    // One that another client got since.
    if !file.delegations.iter().all(|holder| holder.allows(client.id, access)) {
        return Err(Status4::DELAY);
    }
    let state = client.open_files().open(object, owner, access)?;
    match file.opens.iter_mut().find(|holder| holder.state.other == state.other) {
        Some(holder) => holder.access |= access,
        None => file.opens.push(Holder::new(state, access)),
    }
    let delegation = if wants >= share::WANT_NONE {
        Delegation::None
    } else if !compound.session.can_call_back() {
        refused(why::RESOURCE)
    } else if !file.can_delegate(client.id, access) {
        refused(why::CONTENTION)
    } else {
        let state = client.open_files().delegate(object, access);
        file.delegations.push(Holder::new(state, access));
        granted(state, access)
    };
    Ok((state, delegation))
}

/// Nobody may open the file without asking the server for access.
fn granted(state: StateId, access: u32) -> Delegation<'static> {
    let permissions = Ace { kind: 0, flags: 0, mask: 0, who: Name(b"") };
    if access & share::WRITE == 0 {
        return Delegation::Read(ReadDelegation { state, recall: false, permissions });
    }
    // NFS_LIMIT_SIZE, and as many bytes as there can be.
    let mut space_limit = [0xff; 12];
    space_limit[..4].copy_from_slice(&1_u32.to_be_bytes());
    Delegation::Write(WriteDelegation { state, recall: false, space_limit, permissions })
}

/// As [`Nfs4::settle`], before the file of a name is cut, or gets another name or none.
pub(super) fn settle_name(compound: &Compound<'_>, path: NodePath<'_>) -> Result<(), Status4> {
    let v4 = compound.v4();
    if v4.delegations.is_some()
        && let Ok((object, _)) = compound.core.store.lookup(path)
    {
        v4.settle(object, compound.session.client.id, share::WRITE)?;
    }
    Ok(())
}

impl Nfs4 {
    /// Recalls what other clients have of a file that does not go with this access, or DELAY until
    /// they have returned it.
    pub(super) fn settle(
        &self,
        object: Object,
        client_id: u64,
        access: u32,
    ) -> Result<(), Status4> {
        let Some(delegations) = &self.delegations else { return Ok(()) };
        let times = (monotonic_ns(), self.lease_ns());
        let mut files = delegations.lock(object);
        let Some(file) = files.get_mut(&object) else { return Ok(()) };
        let conflict = file.conflict(client_id, access, times);
        if file.is_unused() {
            files.remove(&object);
        }
        drop(files);
        for state in conflict.revoked {
            if let Some(client) = self.clients.get(state.client_id()) {
                client.open_files().revoke(state);
            }
        }
        for state in conflict.recalls {
            self.recall(state.client_id(), Recall { object, state });
        }
        if conflict.remains { Err(Status4::DELAY) } else { Ok(()) }
    }

    /// The client refused a recall, as one that does not have the delegation yet: the next
    /// conflict recalls it again.
    pub(super) fn recall_failed(&self, recall: &Recall) {
        let Some(delegations) = &self.delegations else { return };
        let mut files = delegations.lock(recall.object);
        let Some(file) = files.get_mut(&recall.object) else { return };
        for holder in &mut file.delegations {
            holder.is_called &= holder.state.other != recall.state.other;
        }
    }
}
