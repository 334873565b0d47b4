//! Clients, and the operations outside of sessions: EXCHANGE_ID, CREATE_SESSION and what ends them.
//! RFC 8881 §18.34 to §18.37, §18.50, §18.51

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_servers::clock::monotonic_ns;

use super::callbacks::CallbackSlot;
use super::state::OpenFiles;
use super::{Nfs4, decode};
use crate::server::core::CallContext;
use crate::server::core::STREAM_DATA_BYTES_MAX;
use crate::wire::v4::{
    BindConnection, ChannelLimits, CreateSessionArgs, CreateSessionOk, ExchangeIdArgs,
    ExchangeIdOk, NoProtection, Opaque, Operation, SessionId, Status4, Verifier, direction,
    exchange_flags, session_flags,
};
use crate::wire::xdr::{Encode as _, XdrIn};

/// Longest call and reply: the most data, and room for the rest.
const MESSAGE_BYTES_MAX: u32 = STREAM_DATA_BYTES_MAX + (64 << 10);
/// Shortest limit of them that is accepted.
const MESSAGE_BYTES_MIN: u32 = 1_024;
/// Longest reply that a slot keeps on request.
const CACHED_BYTES_MAX: u32 = 4_096;
/// Clients at a time, some 1 KB each.
const CLIENTS_MAX: usize = 65_536;
/// Most operations of a compound.
const OPERATIONS_MAX: u32 = 128;
/// What the server calls itself, with its instance.
const SERVER_NAME: &str = "plimsoll";

/// A client as the server knows it.
#[derive(Debug)]
pub(super) struct Client {
    /// The server's restart, and a number.
    pub(super) id: u64,
    owner: Box<[u8]>,
    verifier: Verifier,
    renewed_ns: AtomicU64,
    has_reclaimed: AtomicBool,
    open_files: Mutex<OpenFiles>,
}

impl Client {
    /// Renews the lease, unless it is over.
    pub(super) fn renew(&self, now_ns: u64, lease_ns: u64) -> Result<(), Status4> {
        let idle_ns = now_ns.saturating_sub(self.renewed_ns.load(Ordering::Relaxed));
        if idle_ns > lease_ns {
            return Err(Status4::EXPIRED);
        }
        self.renewed_ns.store(now_ns, Ordering::Relaxed);
        Ok(())
    }

    /// It has reclaimed what was open before the server restarted.
    pub(super) fn has_reclaimed(&self) -> bool {
        self.has_reclaimed.load(Ordering::Relaxed)
    }

    /// RECLAIM_COMPLETE, of one file system or of all.
    pub(super) fn complete_reclaim(&self, is_of_one: bool) -> Result<(), Status4> {
        if !is_of_one && self.has_reclaimed.swap(true, Ordering::Relaxed) {
            return Err(Status4::COMPLETE_ALREADY);
        }
        Ok(())
    }

    pub(super) fn open_files(&self) -> MutexGuard<'_, OpenFiles> {
        self.open_files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All clients. Locked by the operations of this module, and by no other.
#[derive(Debug, Default)]
pub(super) struct Clients(Mutex<ClientTable>);

#[derive(Debug, Default)]
struct ClientTable {
    by_id: HashMap<u64, Record>,
    by_owner: HashMap<Box<[u8]>, OwnerRecord>,
    last_number: u32,
}

#[derive(Debug)]
struct Record {
    client: Arc<Client>,
    /// Of the last CREATE_SESSION, and its results.
    sequence: u32,
    results: Vec<u8>,
}

/// Clients of one owner: the one that has a session or had one, and one that is about to take its
/// part.
#[derive(Debug, Default)]
struct OwnerRecord {
    confirmed: Option<u64>,
    unconfirmed: Option<u64>,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, ClientTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, client_id: u64) -> Option<Arc<Client>> {
        self.lock().by_id.get(&client_id).map(|record| Arc::clone(&record.client))
    }

    pub(super) fn remove(&self, client_id: u64) {
        self.lock().remove(client_id);
    }

    pub(super) fn forget_all(&self) {
        let mut table = self.lock();
        table.by_id.clear();
        table.by_owner.clear();
    }

    pub(super) fn count(&self) -> usize {
        self.lock().by_id.len()
    }

    /// Clients whose lease was last renewed before `ns`.
    pub(super) fn idle_since(&self, ns: u64) -> Vec<u64> {
        let table = self.lock();
        let is_idle = |client: &Client| client.renewed_ns.load(Ordering::Relaxed) < ns;
        let clients = table.by_id.values().map(|record| &record.client);
        clients.filter(|client| is_idle(client)).map(|client| client.id).collect()
    }
}

impl ClientTable {
    fn add(&mut self, boot: u32, args: &ExchangeIdArgs<'_>) -> u64 {
        self.last_number += 1;
        let id = u64::from(boot) << 32 | u64::from(self.last_number);
        let owner: Box<[u8]> = args.owner.0.into();
        let client = Arc::new(Client {
            id,
            owner: owner.clone(),
            verifier: args.verifier,
            renewed_ns: AtomicU64::new(monotonic_ns()),
            has_reclaimed: AtomicBool::new(false),
            open_files: Mutex::new(OpenFiles::new(id)),
        });
        self.by_id.insert(id, Record { client, sequence: 0, results: Vec::new() });
        self.by_owner.entry(owner).or_default().unconfirmed = Some(id);
        id
    }

    fn remove(&mut self, client_id: u64) {
        let Some(record) = self.by_id.remove(&client_id) else { return };
        let owner = &record.client.owner;
        if let Some(of_owner) = self.by_owner.get_mut(owner) {
            of_owner.confirmed = of_owner.confirmed.filter(|id| *id != client_id);
            of_owner.unconfirmed = of_owner.unconfirmed.filter(|id| *id != client_id);
            if of_owner.confirmed.or(of_owner.unconfirmed).is_none() {
                self.by_owner.remove(owner);
            }
        }
    }

    /// The client takes the part of the one of its owner before it, which is returned.
    fn confirm(&mut self, client: &Client) -> Option<u64> {
        let of_owner = self.by_owner.get_mut(&client.owner)?;
        of_owner.unconfirmed.take_if(|id| *id == client.id)?;
        of_owner.confirmed.replace(client.id)
    }
}

/// Operations that may be alone in a compound without SEQUENCE.
pub(super) fn is_outside_of_sessions(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::ExchangeId
            | Operation::CreateSession
            | Operation::BindConnToSession
            | Operation::DestroySession
            | Operation::DestroyClientId
    )
}

/// Executes one of these.
pub(super) fn execute(
    v4: &Nfs4,
    context: &CallContext<'_>,
    operation: Operation,
    input: &mut XdrIn<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Status4> {
    match operation {
        Operation::ExchangeId => exchange_id(v4, &decode(input)?, out),
        Operation::CreateSession => create_session(v4, context, &decode(input)?, out),
        Operation::BindConnToSession => bind_connection(v4, context, &decode(input)?, out),
        Operation::DestroySession => v4.sessions.remove(decode::<SessionId>(input)?),
        Operation::DestroyClientId => destroy_client(v4, decode(input)?),
        _ => Err(Status4::OP_NOT_IN_SESSION),
    }
}

/// RFC 8881 §18.35.4
fn exchange_id(v4: &Nfs4, args: &ExchangeIdArgs<'_>, out: &mut Vec<u8>) -> Result<(), Status4> {
    v4.forget_idle();
    let mut table = v4.clients.lock();
    let of_owner = table.by_owner.get(args.owner.0);
    let unconfirmed = of_owner.and_then(|of_owner| of_owner.unconfirmed);
    let confirmed = of_owner
        .and_then(|of_owner| of_owner.confirmed)
        .and_then(|id| table.by_id.get(&id))
        .map(|record| (record.client.verifier, record.client.id, record.sequence));
    let mut flags = exchange_flags::NON_PNFS;
    let (client_id, sequence) = match confirmed {
        Some((verifier, id, sequence)) if verifier == args.verifier => {
            flags |= exchange_flags::CONFIRMED;
            (id, sequence.wrapping_add(1))
        }
        Some(_) if args.flags & exchange_flags::UPDATE != 0 => return Err(Status4::NOT_SAME),
        None if args.flags & exchange_flags::UPDATE != 0 => return Err(Status4::NOENT),
        _ => {
            if let Some(id) = unconfirmed {
                table.remove(id);
            }
            if table.by_id.len() >= CLIENTS_MAX {
                return Err(Status4::SERVERFAULT);
            }
            (table.add(v4.boot.load(Ordering::Relaxed), args), 1)
        }
    };
    drop(table);
    let name = format!("{SERVER_NAME} {:016x}", v4.instance);
    ExchangeIdOk {
        client_id,
        sequence,
        flags,
        protection: NoProtection,
        minor_id: 0,
        major_id: Opaque(name.as_bytes()),
        scope: Opaque(name.as_bytes()),
        implementation: None,
    }
    .encode(out);
    Ok(())
}

/// RFC 8881 §18.36.4
fn create_session(
    v4: &Nfs4,
    context: &CallContext<'_>,
    args: &CreateSessionArgs<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Status4> {
    v4.forget_idle();
    let mut table = v4.clients.lock();
    let record = table.by_id.get_mut(&args.client_id).ok_or(Status4::STALE_CLIENTID)?;
    if args.sequence == record.sequence && !record.results.is_empty() {
        out.extend_from_slice(&record.results);
        return Ok(());
    }
    if args.sequence != record.sequence.wrapping_add(1) {
        return Err(Status4::SEQ_MISORDERED);
    }
    let fore = accepted(&args.fore, v4.config.slots_max)?;
    let client = Arc::clone(&record.client);
    client.renewed_ns.store(monotonic_ns(), Ordering::Relaxed);
    let callbacks = context
        .back
        .filter(|_| args.flags & session_flags::BACK_CHANNEL != 0)
        .map(|channel| CallbackSlot::new(args, channel));
    let flags = if callbacks.is_some() { session_flags::BACK_CHANNEL } else { 0 };
    let session = v4.sessions.add(Arc::clone(&client), fore, callbacks)?;
    let back = ChannelLimits { slots: 1, ..args.back };
    let (session, sequence) = (session.id, args.sequence);
    let ok = CreateSessionOk { session, sequence, flags, fore, back };
    record.sequence = args.sequence;
    record.results.clear();
    ok.encode(&mut record.results);
    ok.encode(out);
    let before = table.confirm(&client);
    drop(table);
    if let Some(before) = before {
        v4.forget(before);
    }
    Ok(())
}

/// Limits of a channel, at most what the client asks for.
fn accepted(offer: &ChannelLimits, slots_max: u32) -> Result<ChannelLimits, Status4> {
    let is_too_small = offer.call_bytes_max.min(offer.reply_bytes_max) < MESSAGE_BYTES_MIN;
    if is_too_small || offer.slots == 0 || offer.operations_max == 0 {
        return Err(Status4::TOOSMALL);
    }
    Ok(ChannelLimits {
        header_padding: 0,
        call_bytes_max: offer.call_bytes_max.min(MESSAGE_BYTES_MAX),
        reply_bytes_max: offer.reply_bytes_max.min(MESSAGE_BYTES_MAX),
        cached_bytes_max: offer.cached_bytes_max.min(CACHED_BYTES_MAX),
        operations_max: offer.operations_max.min(OPERATIONS_MAX),
        slots: offer.slots.min(slots_max.max(1)),
        rdma_reads: None,
    })
}

/// RFC 8881 §18.34
fn bind_connection(
    v4: &Nfs4,
    context: &CallContext<'_>,
    args: &BindConnection,
    out: &mut Vec<u8>,
) -> Result<(), Status4> {
    let session = v4.sessions.get(args.session)?;
    // Every connection carries calls.
    let is_bound = args.direction != direction::FORE
        && context.back.is_some_and(|channel| v4.bind(&session, channel));
    let direction = if is_bound { direction::BOTH } else { direction::FORE };
    BindConnection { session: session.id, direction, rdma: false }.encode(out);
    Ok(())
}

/// RFC 8881 §18.50
fn destroy_client(v4: &Nfs4, client_id: u64) -> Result<(), Status4> {
    let table = v4.clients.lock();
    let record = table.by_id.get(&client_id).ok_or(Status4::STALE_CLIENTID)?;
    let client = Arc::clone(&record.client);
    drop(table);
    let has_session = v4.sessions.find(|session| session.client.id == client_id).is_some();
    if has_session || !client.open_files().is_empty() {
        return Err(Status4::CLIENTID_BUSY);
    }
    v4.forget(client_id);
    Ok(())
}
