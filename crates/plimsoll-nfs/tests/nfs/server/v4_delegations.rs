//! Delegations of NFSv4.1: granted, recalled, returned, revoked.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use super::calls::{Server, in_memory};
use super::calls4::Client4;
use plimsoll_nfs::server::store::Store;
use plimsoll_nfs::server::{BackChannel, Nfs4Config, NfsCore};
use plimsoll_nfs::wire::rpc::{Call, encode_reply_success};
use plimsoll_nfs::wire::v4::*;
use plimsoll_nfs::wire::{Decode as _, Encode as _, Name, XdrIn};

fn server(lease_s: u32) -> Server {
    let config = Nfs4Config { delegations: true, lease_s, ..Nfs4Config::default() };
    Server { core: NfsCore::new(Store::new(64 << 20)).with_v4(config), ..in_memory(1) }
}

/// A connection that keeps what the server calls.
fn connection() -> (Arc<BackChannel>, Receiver<Vec<u8>>) {
    let (calls, received) = channel();
    let calls = Mutex::new(calls);
    let back = BackChannel::new(move |message| {
        let _ = calls.lock().unwrap().send(message.to_vec());
    });
    (Arc::new(back), received)
}

fn open(client: &Client4<'_>, root: &[u8], access: u32) -> Result<OpenedFile, Status4> {
    let args = OpenArgs { access, ..client.open_args(OpenClaim::Null(Name::from("file"))) };
    let put: Handle4<'_> = Opaque(root);
    let mut results = client.call(|w| w.op(Operation::PutFh, &put).op(Operation::Open, &args));
    if results.status() != Status4::OK {
        return Err(results.status());
    }
    let () = results.ok(Operation::PutFh);
    let ok: OpenOk<'_> = results.ok(Operation::Open);
    let delegation = match ok.delegation {
        Delegation::None => Ok(None),
        Delegation::Read(read) => Ok(Some((read.state, share::READ))),
        Delegation::Write(write) => Ok(Some((write.state, share::WRITE))),
        Delegation::Refused { why } => Err(why),
    };
    Ok(OpenedFile { state: ok.state, delegation })
}

#[derive(Debug, PartialEq, Eq)]
struct OpenedFile {
    state: StateId,
    /// Stateid and access, or why not.
    delegation: Result<Option<(StateId, u32)>, u32>,
}

/// Number, sequence and delegation of a recall.
fn recalled(message: &[u8], client: &Client4<'_>, file: &[u8]) -> (u32, u32, StateId) {
    let mut input = XdrIn::new(message);
    let call = Call::decode(&mut input).unwrap();
    assert_eq!((call.program, call.version, call.procedure), (CALLBACK_PROGRAM, 1, 1));
    let head = CallbackHead::decode(&mut input).unwrap();
    assert_eq!((head.minor_version, head.operations), (1, 2));
    assert_eq!(input.u32(), Ok(CallbackOperation::Sequence.number()));
    let sequence = CbSequenceArgs::decode(&mut input).unwrap();
    assert_eq!((sequence.session, sequence.slot), (client.session, 0));
    assert_eq!(input.u32(), Ok(CallbackOperation::Recall.number()));
    let recall = CbRecallArgs::decode(&mut input).unwrap();
    assert_eq!(recall.handle.0, file);
    input.finish().unwrap();
    (call.xid, sequence.sequence, recall.state)
}

fn answer(client: &Client4<'_>, xid: u32, status: Status4) {
    let mut reply = Vec::new();
    encode_reply_success(&mut reply, xid);
    [status.0, 0, 0].iter().for_each(|word| word.encode(&mut reply));
    assert_eq!(client.server.raw_on(client.back.as_ref(), &reply), None);
}

fn give_back(client: &Client4<'_>, file: &[u8], state: StateId) -> Status4 {
    let put: Handle4<'_> = Opaque(file);
    client.status(|w| w.op(Operation::PutFh, &put).op(Operation::DelegReturn, &state))
}

#[test]
fn a_delegation_is_recalled_when_another_client_opens_the_file() {
    let server = server(90);
    let (back, calls) = connection();
    let first = server.client4_on("first", Some(back));
    let second = server.client4_on("second", Some(connection().0));
    let root = first.root();
    let (_, file) = first.create(&root, "file");
    let delegation = open(&first, &root, share::READ).unwrap().delegation;
    let (state, access) = delegation.unwrap().unwrap();
    assert_eq!(access, share::READ);
    // Reading goes with reading, but there is a writer: the client that made the file.
    assert_eq!(open(&second, &root, share::READ).unwrap().delegation, Ok(None));
    let why = open(&second, &root, share::READ | share::WANT_ANY).unwrap().delegation;
    assert_eq!(why, Err(1));
    assert!(calls.try_recv().is_err());
    assert_eq!(open(&second, &root, share::BOTH), Err(Status4::DELAY));
    let (xid, sequence, recall) = recalled(&calls.try_recv().unwrap(), &first, &file);
    assert_eq!((sequence, recall), (1, state));
    // It is called once.
    assert_eq!(open(&second, &root, share::BOTH), Err(Status4::DELAY));
    assert!(calls.try_recv().is_err());
    // The client does not know the delegation yet: called again at the next conflict.
    answer(&first, xid, Status4::BAD_STATEID);
    assert_eq!(open(&second, &root, share::BOTH), Err(Status4::DELAY));
    let (xid, sequence, _) = recalled(&calls.try_recv().unwrap(), &first, &file);
    assert_eq!(sequence, 2);
    answer(&first, xid, Status4::OK);
    assert_eq!(open(&second, &root, share::BOTH), Err(Status4::DELAY));
    assert_eq!(give_back(&first, &file, state), Status4::OK);
    assert_eq!(give_back(&first, &file, state), Status4::BAD_STATEID);
    let opened = open(&second, &root, share::BOTH).unwrap();
    assert_eq!(opened.delegation, Ok(None));
    assert!(calls.try_recv().is_err());
}

#[test]
fn a_file_that_one_client_alone_has_open_is_delegated_to_write() {
    let server = server(90);
    let (back, calls) = connection();
    let first = server.client4_on("first", Some(back));
    let root = first.root();
    let (state, file) = first.create(&root, "file");
    assert_eq!(open(&first, &root, share::BOTH | share::WANT_NONE).unwrap().delegation, Ok(None));
    let delegation = open(&first, &root, share::BOTH).unwrap().delegation;
    let (delegated, access) = delegation.unwrap().unwrap();
    assert_eq!(access, share::WRITE);
    // No second one of the same file, and none that is closed.
    assert_eq!(open(&first, &root, share::BOTH).unwrap().delegation, Ok(None));
    assert_eq!(first.close(&file, delegated), Status4::BAD_STATEID);
    assert_eq!(give_back(&first, &file, state.newest()), Status4::BAD_STATEID);
    let write = WriteArgs4 {
        state: delegated,
        offset: 0,
        stable: plimsoll_nfs::wire::v3::StableHow::Unstable,
        data: b"data",
    };
    let put: Handle4<'_> = Opaque(&file);
    let written = first.status(|w| w.op(Operation::PutFh, &put).op(Operation::Write, &write));
    assert_eq!(written, Status4::OK);
    let second = server.client4("second");
    let remove = || {
        let put: Handle4<'_> = Opaque(&root);
        let name = Name::from("file");
        second.status(|w| w.op(Operation::PutFh, &put).op(Operation::Remove, &name))
    };
    assert_eq!(remove(), Status4::DELAY);
    let (_, _, recall) = recalled(&calls.try_recv().unwrap(), &first, &file);
    assert_eq!(recall, delegated);
    assert_eq!(give_back(&first, &file, delegated), Status4::OK);
    assert_eq!(remove(), Status4::OK);
}

#[test]
fn without_a_connection_for_callbacks_nothing_is_delegated() {
    let server = server(90);
    let client = server.client4("a");
    let root = client.root();
    client.create(&root, "file");
    assert_eq!(open(&client, &root, share::READ).unwrap().delegation, Ok(None));
    let why = open(&client, &root, share::READ | share::WANT_ANY).unwrap().delegation;
    assert_eq!(why, Err(2));
}

#[test]
fn a_lost_callback_is_sent_again_over_the_next_connection() {
    let server = server(90);
    let (back, calls) = connection();
    let mut first = server.client4_on("first", Some(back));
    let second = server.client4("second");
    let root = first.root();
    let (state, file) = first.create(&root, "file");
    assert_eq!(first.close(&file, state), Status4::OK);
    let delegation = open(&first, &root, share::BOTH).unwrap().delegation;
    let (state, _) = delegation.unwrap().unwrap();
    assert_eq!(open(&second, &root, share::READ), Err(Status4::DELAY));
    let lost = calls.try_recv().unwrap();
    first.back = None;
    let mut lone = first.call_as(first.next(), |w| w);
    let flags = lone.ok::<SequenceOk>(Operation::Sequence).status_flags;
    assert_eq!(flags, sequence_flags::CB_PATH_DOWN);
    let (back, calls) = connection();
    first.back = Some(back);
    let (session, direction) = (first.session, direction::FORE_OR_BOTH);
    let bind = BindConnection { session, direction, rdma: false };
    let back = first.back.as_ref();
    let mut bound = server.compound_on(back, |w| w.op(Operation::BindConnToSession, &bind));
    let bound: BindConnection = bound.ok(Operation::BindConnToSession);
    assert_eq!(bound.direction, direction::BOTH);
    assert_eq!(calls.try_recv().unwrap(), lost);
    assert_eq!(recalled(&lost, &first, &file).2, state);
}

#[test]
fn a_delegation_that_is_not_returned_is_revoked() {
    // Clients that call more often than this keep their sessions.
    let server = server(2);
    let (back, calls) = connection();
    let first = server.client4_on("first", Some(back));
    let second = server.client4("second");
    let root = first.root();
    let (_, file) = first.create(&root, "file");
    let delegation = open(&first, &root, share::READ).unwrap().delegation;
    let (state, _) = delegation.unwrap().unwrap();
    assert_eq!(open(&second, &root, share::BOTH), Err(Status4::DELAY));
    assert!(calls.try_recv().is_ok());
    while open(&second, &root, share::BOTH).is_err() {
        assert_eq!(first.status(|w| w), Status4::OK);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(give_back(&first, &file, state), Status4::BAD_STATEID);
}
