//! NFS version 4.1 (RFC 8881): compounds in sessions, open files, a pseudo file system above the
//! export.

mod attributes;
mod callbacks;
mod clients;
mod compound;
mod context;
mod delegations;
mod files;
mod names;
mod recalls;
mod slots;
mod state;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_servers::clock::monotonic_ns;

use self::clients::Clients;
use self::delegations::Delegations;
use self::slots::Sessions;
use crate::server::store::{Object, Status3};
use crate::wire::v4::Status4;
use crate::wire::xdr::{Decode, XdrError, XdrIn};

pub use self::callbacks::BackChannel;
pub(super) use self::compound::answer;

/// Slots of a session when nothing else is set: what the Linux client asks for.
const SLOTS_DEFAULT: u32 = 64;
/// Lease when nothing else is set, as Linux has it.
const LEASE_DEFAULT_S: u32 = 90;

/// The root of the pseudo file system, of which the export is the only name. No object of the
/// store has this id.
const PSEUDO_ROOT: Object = Object { id: 0, generation: 0 };

/// How the server behaves in version 4.1.
#[derive(Clone, Copy, Debug)]
pub struct Nfs4Config {
    /// Most slots of a session.
    pub slots_max: u32,
    /// Seconds after which an idle client is forgotten.
    pub lease_s: u32,
    /// Files are delegated to clients that want it.
    pub delegations: bool,
    /// When sessions are to use fewer slots.
    pub fewer_slots: Option<FewerSlots>,
}

impl Default for Nfs4Config {
    fn default() -> Self {
        let (slots_max, lease_s) = (SLOTS_DEFAULT, LEASE_DEFAULT_S);
        Self { slots_max, lease_s, delegations: false, fewer_slots: None }
    }
}

/// In the middle of a session the server asks its client to use fewer slots. RFC 8881 §2.10.6.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FewerSlots {
    /// How many, at least 1.
    pub slots: u32,
    /// From this number of compounds of the session.
    pub after_compounds: u64,
}

/// What was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Compounds, those answered from a slot's cache left out.
    pub compounds: u64,
    /// Their operations, with those that failed.
    pub operations: u64,
}

/// Clients, sessions and open files of version 4.1.
#[derive(Debug)]
pub struct Nfs4 {
    config: Nfs4Config,
    clients: Clients,
    sessions: Sessions,
    /// `None`: files are not delegated.
    delegations: Option<Delegations>,
    /// Goes into every client id and stateid; another one after each restart.
    boot: AtomicU32,
    instance: u64,
    /// Until then only what was open before a restart can be opened.
    grace_ends_ns: AtomicU64,
}

impl Nfs4 {
    pub(super) fn new(instance: u64, config: Nfs4Config) -> Self {
        Self {
            config,
            clients: Clients::default(),
            sessions: Sessions::default(),
            delegations: config.delegations.then(Delegations::default),
            boot: AtomicU32::new(instance as u32 | 1),
            instance,
            grace_ends_ns: AtomicU64::new(0),
        }
    }

    /// Forgets all clients, sessions and open files, as a restarted server has, and keeps the
    /// files. For `grace` only files that were open before can be opened.
    pub fn restart(&self, grace: Duration) {
        let grace_ns = u64::try_from(grace.as_nanos()).unwrap_or(u64::MAX);
        self.grace_ends_ns.store(monotonic_ns().saturating_add(grace_ns), Ordering::Relaxed);
        self.boot.fetch_add(2, Ordering::Relaxed);
        self.clients.forget_all();
        self.sessions.forget_all();
        if let Some(delegations) = &self.delegations {
            delegations.forget(|_| true);
        }
    }

    /// What was executed so far.
    pub fn counts(&self) -> Counts {
        self.sessions.counts()
    }

    /// Calls that were executed although their slot had executed the same sequence before.
    pub fn executed_twice(&self) -> u64 {
        self.sessions.executed_twice()
    }

    /// Clients that are known.
    pub fn clients(&self) -> usize {
        self.clients.count()
    }

    fn is_in_grace(&self) -> bool {
        monotonic_ns() < self.grace_ends_ns.load(Ordering::Relaxed)
    }

    fn lease_ns(&self) -> u64 {
        u64::from(self.config.lease_s) * 1_000_000_000
    }

    /// Ends a client with its sessions and open files.
    fn forget(&self, client_id: u64) {
        self.clients.remove(client_id);
        self.sessions.remove_of(client_id);
        if let Some(delegations) = &self.delegations {
            delegations.forget(|id| id == client_id);
        }
    }

    /// Ends the clients whose lease is over.
    fn forget_idle(&self) {
        for client_id in self.clients.idle_since(monotonic_ns().saturating_sub(self.lease_ns())) {
            self.forget(client_id);
        }
    }
}

/// The two versions number their errors alike.
impl From<Status3> for Status4 {
    fn from(status: Status3) -> Self {
        Self(status.0)
    }
}

/// A name that one entry of a directory can have. RFC 8881 §14.5
fn component(name: &[u8]) -> Result<&[u8], Status4> {
    match name {
        b"" => Err(Status4::INVAL),
        b"." | b".." => Err(Status4::BADNAME),
        _ if name.iter().any(|byte| matches!(byte, b'/' | 0)) => Err(Status4::BADCHAR),
        _ => Ok(name),
    }
}

/// Takes an operation's arguments.
fn decode<'a, T: Decode<'a>>(input: &mut XdrIn<'a>) -> Result<T, Status4> {
    T::decode(input).map_err(|error| match error {
        XdrError::Value { .. } => Status4::INVAL,
        _ => Status4::BADXDR,
    })
}
