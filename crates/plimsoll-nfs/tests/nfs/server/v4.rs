//! NFSv4.1 over the server's core without sockets: clients, sessions, slots.

use super::calls::{NFS, Server, in_memory, roomy};
use super::calls4::{LIMITS, results_of};
use plimsoll_nfs::server::store::Store;
use plimsoll_nfs::server::{FewerSlots, Nfs4Config, NfsCore};
use plimsoll_nfs::wire::rpc::ReplyOutcome;
use plimsoll_nfs::wire::v4::*;
use plimsoll_nfs::wire::{Name, v3};

fn server_with(config: Nfs4Config) -> Server {
    Server { core: NfsCore::new(Store::new(64 << 20)).with_v4(config), ..in_memory(1) }
}

fn handle(bytes: &[u8]) -> Handle4<'_> {
    Opaque(bytes)
}

#[test]
fn a_client_is_confirmed_by_its_first_session() {
    let server = roomy();
    let (first, sequence, flags) = server.exchange_id("a", [1; 8]);
    assert_eq!(flags & exchange_flags::CONFIRMED, 0);
    // Not confirmed yet: replaced.
    let (second, ..) = server.exchange_id("a", [1; 8]);
    assert_ne!(second, first);
    let status = server.create_session(first, sequence, LIMITS).status();
    assert_eq!(status, Status4::STALE_CLIENTID);
    assert_eq!(server.create_session(second, 2, LIMITS).status(), Status4::SEQ_MISORDERED);
    let mut created = server.create_session(second, 1, LIMITS);
    let created: CreateSessionOk = created.ok(Operation::CreateSession);
    let mut again = server.create_session(second, 1, LIMITS);
    assert_eq!(again.ok::<CreateSessionOk>(Operation::CreateSession), created);
    let (third, sequence, flags) = server.exchange_id("a", [1; 8]);
    assert_eq!((third, sequence), (second, 2));
    assert_ne!(flags & exchange_flags::CONFIRMED, 0);
    assert_ne!(server.exchange_id("b", [1; 8]).0, second);
}

#[test]
fn a_restarted_client_loses_its_state_once_it_is_confirmed() {
    let server = roomy();
    let client = server.client4("a");
    client.create(&client.root(), "file");
    let (id, sequence, _) = server.exchange_id("a", [8; 8]);
    assert_eq!(client.status(|w| w), Status4::OK);
    assert_eq!(server.create_session(id, sequence, LIMITS).status(), Status4::OK);
    assert_eq!(client.call_as(client.next(), |w| w).status(), Status4::BADSESSION);
}

#[test]
fn limits_are_those_of_the_smaller_side() {
    let server = server_with(Nfs4Config { slots_max: 5, ..Nfs4Config::default() });
    let (id, ..) = server.exchange_id("a", [1; 8]);
    let none = ChannelLimits { slots: 0, ..LIMITS };
    assert_eq!(server.create_session(id, 1, none).status(), Status4::TOOSMALL);
    let mut created = server.create_session(id, 1, LIMITS);
    let ok: CreateSessionOk = created.ok(Operation::CreateSession);
    assert_eq!((ok.fore.slots, ok.fore.operations_max), (5, 16));
    assert!(ok.fore.call_bytes_max > 1 << 20 && ok.fore.call_bytes_max < 1 << 21);
}

#[test]
fn a_slot_executes_each_call_once() {
    let server = roomy();
    let client = server.client4("a");
    let root = client.root();
    client.create(&root, "file");
    let remove = client.bytes(client.next(), |w| {
        w.op(Operation::PutFh, &handle(&root)).op(Operation::Remove, &Name::from("file"))
    });
    let counts = server.core.v4().counts();
    let first = server.raw(&remove).unwrap();
    let mut on_another_connection = remove.clone();
    on_another_connection[..4].copy_from_slice(&[9; 4]);
    let again = server.raw(&on_another_connection).unwrap();
    assert_eq!(again[..4], [9; 4]);
    assert_eq!(results_of(&again), results_of(&first));
    let executed = server.core.v4().counts();
    assert_eq!(executed.compounds, counts.compounds + 1);
    assert_eq!(executed.operations, counts.operations + 3);
    assert_eq!(server.core.v4().executed_twice(), 0);
    let last = client.next().sequence;
    for wrong in [last - 2, last + 1] {
        let status = client.call_as(client.sequence(0, wrong), |w| w).status();
        assert_eq!(status, Status4::SEQ_MISORDERED);
    }
    assert_eq!(client.call_as(client.sequence(0, last), |w| w).status(), Status4::OK);
    assert_eq!(client.call_as(client.sequence(64, 1), |w| w).status(), Status4::BADSLOT);
    assert_eq!(client.call_as(client.sequence(63, 1), |w| w).status(), Status4::OK);
}

#[test]
fn a_long_reply_is_kept_only_on_request() {
    let server = roomy();
    let client = server.client4("a");
    let (state, file) = client.create(&client.root(), "file");
    let data = vec![7; 100_000];
    let write = WriteArgs4 { state, offset: 0, stable: v3::StableHow::Unstable, data: &data };
    let put = handle(&file);
    let written = client.status(|w| w.op(Operation::PutFh, &put).op(Operation::Write, &write));
    assert_eq!(written, Status4::OK);
    let read = |count, cache| {
        let args = ReadArgs4 { state: state.newest(), offset: 0, count };
        let sequence = SequenceArgs { cache, ..client.next() };
        let call =
            client.bytes(sequence, |w| w.op(Operation::PutFh, &put).op(Operation::Read, &args));
        (server.raw(&call).unwrap(), server.raw(&call).unwrap())
    };
    let status = |reply: &[u8]| u32::from_be_bytes(*reply[24..].first_chunk().unwrap());
    let (first, again) = read(50_000, false);
    assert_eq!(status(&first), 0);
    assert_eq!(status(&again), Status4::RETRY_UNCACHED_REP.0);
    let (first, again) = read(3_000, true);
    assert_eq!((status(&first), first.len() > 3_000), (0, true));
    assert_eq!(first, again);
    let (first, again) = read(50_000, true);
    assert_eq!(status(&first), Status4::REP_TOO_BIG_TO_CACHE.0);
    assert_eq!(first, again);
}

#[test]
fn calls_and_replies_beyond_the_limits_of_the_session_are_refused() {
    let server = roomy();
    let limits = ChannelLimits {
        operations_max: 4,
        call_bytes_max: 1_024,
        reply_bytes_max: 1_024,
        ..LIMITS
    };
    let client = server.new_client4("a", limits);
    assert_eq!(client.status(|w| w.op(Operation::ReclaimComplete, &false)), Status4::OK);
    let root = client.root();
    let put = handle(&root);
    let many = client.call_as(client.sequence(1, 1), |w| {
        let w = w.op(Operation::PutFh, &put).op(Operation::GetFh, &());
        w.op(Operation::GetFh, &()).op(Operation::GetFh, &())
    });
    assert_eq!(many.status(), Status4::TOO_MANY_OPS);
    let (state, file) = client.create(&root, "file");
    let data = [7; 1_100];
    let write = |offset, data| WriteArgs4 { state, offset, stable: v3::StableHow::Unstable, data };
    let args = write(0, &data[..]);
    let long = client.call_as(client.sequence(1, 1), |w| w.op(Operation::Write, &args));
    assert_eq!(long.status(), Status4::REQ_TOO_BIG);
    for offset in [0, 600] {
        let args = write(offset, &data[..600]);
        let put = handle(&file);
        let written = client.status(|w| w.op(Operation::PutFh, &put).op(Operation::Write, &args));
        assert_eq!(written, Status4::OK);
    }
    let args = ReadArgs4 { state, offset: 0, count: 1_100 };
    let put = handle(&file);
    let mut read = client.call(|w| w.op(Operation::PutFh, &put).op(Operation::Read, &args));
    let () = read.ok(Operation::PutFh);
    assert_eq!(read.status(), Status4::REP_TOO_BIG);
}

#[test]
fn what_belongs_into_a_session_is_refused_outside_and_the_reverse() {
    let server = roomy();
    let client = server.client4("a");
    assert_eq!(server.compound(|w| w).status(), Status4::OK);
    let outside = server.compound(|w| w.op(Operation::PutRootFh, &()));
    assert_eq!(outside.status(), Status4::OP_NOT_IN_SESSION);
    let two = server.compound(|w| {
        w.op(Operation::DestroyClientId, &7_u64).op(Operation::DestroyClientId, &7_u64)
    });
    assert_eq!(two.status(), Status4::NOT_ONLY_OP);
    let args = client.sequence(1, 1);
    assert_eq!(client.status(|w| w.op(Operation::Sequence, &args)), Status4::SEQUENCE_POS);
    let bind =
        BindConnection { session: client.session, direction: direction::FORE_OR_BOTH, rdma: false };
    assert_eq!(client.status(|w| w.op(Operation::BindConnToSession, &bind)), Status4::NOT_ONLY_OP);
    let mut bound = server.compound(|w| w.op(Operation::BindConnToSession, &bind));
    let bound: BindConnection = bound.ok(Operation::BindConnToSession);
    assert_eq!((bound.session, bound.direction), (client.session, direction::FORE));
    assert_eq!(client.status(|w| w.op(Operation::Illegal, &())), Status4::OP_ILLEGAL);
    assert_eq!(client.status(|w| w.op(Operation::GetFh, &())), Status4::NOFILEHANDLE);
    assert_eq!(client.status(|w| w.op(Operation::RestoreFh, &())), Status4::RESTOREFH);
}

#[test]
fn other_minor_versions_are_refused_and_datagrams_have_none() {
    let server = roomy();
    let compound = CompoundHead { tag: b"tag", minor_version: 2, operations: 0 };
    let results = server.results((NFS, 4), 1, &compound);
    // The tag, and no results.
    let expected = [Status4::MINOR_VERS_MISMATCH.0, 3, u32::from_be_bytes(*b"tag\0"), 0];
    assert_eq!(results, expected.map(u32::to_be_bytes).concat());
    assert!(server.results((NFS, 4), 0, &()).is_empty());
    let link = plimsoll_nfs::server::Link::Datagram;
    let datagrams = Server { link, ..roomy() };
    let mismatch = ReplyOutcome::ProgramMismatch { low: 2, high: 3 };
    assert_eq!(datagrams.call((NFS, 4), 0, &()).0, mismatch);
    let core = NfsCore::new(Store::new(1 << 20)).with_version(Some(4));
    let only = Server { core, ..in_memory(1) };
    let mismatch = ReplyOutcome::ProgramMismatch { low: 4, high: 4 };
    assert_eq!(only.call((NFS, 3), 0, &()).0, mismatch);
    assert_eq!(only.call((NFS, 4), 0, &()).0, ReplyOutcome::Success);
}

#[test]
fn clients_and_sessions_end_in_that_order_reversed() {
    let server = roomy();
    let client = server.client4("a");
    let destroy = |operation, id: u64| server.compound(|w| w.op(operation, &id)).status();
    assert_eq!(destroy(Operation::DestroyClientId, client.id), Status4::CLIENTID_BUSY);
    let session = client.session;
    let early =
        client.status(|w| w.op(Operation::DestroySession, &session).op(Operation::PutRootFh, &()));
    assert_eq!(early, Status4::NOT_ONLY_OP);
    assert_eq!(client.status(|w| w.op(Operation::DestroySession, &session)), Status4::OK);
    assert_eq!(client.call_as(client.next(), |w| w).status(), Status4::BADSESSION);
    assert_eq!(destroy(Operation::DestroyClientId, client.id), Status4::OK);
    assert_eq!(destroy(Operation::DestroyClientId, client.id), Status4::STALE_CLIENTID);
}

#[test]
fn a_client_whose_lease_is_over_is_forgotten() {
    let server = server_with(Nfs4Config { lease_s: 0, ..Nfs4Config::default() });
    let (id, ..) = server.exchange_id("a", [1; 8]);
    assert_eq!(server.create_session(id, 1, LIMITS).status(), Status4::STALE_CLIENTID);
}

#[test]
fn a_restarted_server_knows_no_client_and_lets_old_files_be_reclaimed() {
    let server = roomy();
    let client = server.client4("a");
    let (state, file) = client.create(&client.root(), "file");
    server.core.v4().restart(std::time::Duration::from_secs(3600));
    assert_eq!(client.call_as(client.next(), |w| w).status(), Status4::BADSESSION);
    assert_eq!(server.create_session(client.id, 2, LIMITS).status(), Status4::STALE_CLIENTID);
    let client = server.new_client4("a", LIMITS);
    let mut lone = client.call_as(client.next(), |w| w);
    let flags = lone.ok::<SequenceOk>(Operation::Sequence).status_flags;
    assert_eq!(flags, sequence_flags::RESTART_RECLAIM_NEEDED);
    let put = handle(&file);
    let read = |state| {
        let args = ReadArgs4 { state, offset: 0, count: 9 };
        client.status(|w| w.op(Operation::PutFh, &put).op(Operation::Read, &args))
    };
    assert_eq!(read(state), Status4::STALE_STATEID);
    let open = |claim| {
        let args = client.open_args(claim);
        client.status(|w| w.op(Operation::PutFh, &put).op(Operation::Open, &args))
    };
    assert_eq!(open(OpenClaim::Handle), Status4::GRACE);
    assert_eq!(open(OpenClaim::Previous { delegation: 0 }), Status4::OK);
    assert_eq!(client.status(|w| w.op(Operation::ReclaimComplete, &false)), Status4::OK);
    assert_eq!(open(OpenClaim::Previous { delegation: 0 }), Status4::NO_GRACE);
    assert_eq!(open(OpenClaim::Handle), Status4::GRACE);
    server.core.v4().restart(std::time::Duration::ZERO);
    let client = server.client4("a");
    let args = client.open_args(OpenClaim::Handle);
    let opened = client.status(|w| w.op(Operation::PutFh, &put).op(Operation::Open, &args));
    assert_eq!(opened, Status4::OK);
}

#[test]
fn reclaiming_is_completed_once_and_before_the_first_open() {
    let server = roomy();
    let client = server.new_client4("a", LIMITS);
    let root = client.root();
    let how = OpenHow::Guarded(Attributes4::default());
    assert_eq!(client.open(&root, "file", share::BOTH, how), Err(Status4::GRACE));
    let complete = || client.status(|w| w.op(Operation::ReclaimComplete, &false));
    assert_eq!((complete(), complete()), (Status4::OK, Status4::COMPLETE_ALREADY));
    assert!(client.open(&root, "file", share::BOTH, how).is_ok());
}

#[test]
fn the_server_asks_for_fewer_slots_in_the_middle_of_a_session() {
    let fewer_slots = Some(FewerSlots { slots: 2, after_compounds: 3 });
    let server = server_with(Nfs4Config { fewer_slots, ..Nfs4Config::default() });
    let client = server.new_client4("a", LIMITS);
    let targets: Vec<u32> = (0..5)
        .map(|_| {
            let mut lone = client.call_as(client.next(), |w| w);
            let ok: SequenceOk = lone.ok(Operation::Sequence);
            assert_eq!(ok.highest_slot, 63);
            ok.target_highest_slot
        })
        .collect();
    assert_eq!(targets, [63, 63, 63, 1, 1]);
}
