//! NFSv4.1 on real sockets: callbacks over the connections of clients, many connections of one
//! session, a server that forgets its clients.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::calls::{NFS, encoded};
use super::calls4::{LIMITS, Operations, Results, compound, create_session, exchange_id};
use plimsoll_nfs::server::{Nfs4, Nfs4Config, NfsConfig, NfsServer};
use plimsoll_nfs::wire::rpc::{Call, encode_reply_success};
use plimsoll_nfs::wire::v4::*;
use plimsoll_nfs::wire::{Encode, Name, XdrIn, record};
use plimsoll_testkit::program::ServerThread;

/// A server, its sessions, and what stops it when dropped.
fn running(config: Nfs4Config) -> (SocketAddr, Arc<Nfs4>, ServerThread) {
    let listen = "127.0.0.1:0".parse().unwrap();
    let memory_bytes_max = 64 << 20;
    let server = NfsConfig { listen, memory_bytes_max, portmapper: None, cores: Vec::new() };
    let server = NfsServer::bind(&server).unwrap().with_v4(config).with_version(Some(4));
    let address = server.address();
    assert_eq!(server.url(), format!("nfs://{address}/export?version=4.1"));
    let v4 = server.v4();
    (address, v4, ServerThread::new(move |stop| server.serve_until(stop)))
}

/// A client with a session and a connection.
pub struct Client {
    stream: TcpStream,
    records: record::Assembler,
    received: Vec<u8>,
    pub id: u64,
    pub session: SessionId,
    pub slots: u32,
    sequence: u32,
    slot: u32,
}

impl Client {
    /// With these flags of its session.
    pub fn new(server: SocketAddr, owner: &str, flags: u32) -> Self {
        let mut client = Self::connected(server);
        let mut results = client.compound(|w| w.op(Operation::ExchangeId, &exchange_id(owner)));
        let ok: ExchangeIdOk<'_> = results.ok(Operation::ExchangeId);
        client.id = ok.client_id;
        let args = CreateSessionArgs { flags, ..create_session(ok.client_id, ok.sequence) };
        let mut results = client.compound(|w| w.op(Operation::CreateSession, &args));
        let ok: CreateSessionOk = results.ok(Operation::CreateSession);
        (client.session, client.slots) = (ok.session, ok.fore.slots);
        assert_eq!(client.call(|w| w.op(Operation::ReclaimComplete, &false)).status(), Status4::OK);
        client
    }

    fn connected(server: SocketAddr) -> Self {
        let stream = TcpStream::connect(server).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let (records, received) = (record::Assembler::new(), Vec::new());
        let (id, session, slots, sequence, slot) = (0, [0; 16], 0, 0, 0);
        Self { stream, records, received, id, session, slots, sequence, slot }
    }

    /// Another connection of the same session, with a slot of its own.
    fn another(&self, server: SocketAddr, slot: u32) -> Self {
        Self { session: self.session, slot, ..Self::connected(server) }
    }

    fn send(&mut self, message: &[u8]) {
        let mut sent = Vec::new();
        let at = record::begin(&mut sent);
        sent.extend_from_slice(message);
        record::finish(&mut sent, at);
        self.stream.write_all(&sent).unwrap();
    }

    /// The next message of the server.
    fn receive(&mut self) -> Vec<u8> {
        loop {
            let mut rest = &self.received[..];
            let record = self.records.take(&mut rest).unwrap().map(<[u8]>::to_vec);
            self.received = rest.to_vec();
            if let Some(record) = record {
                return record;
            }
            let mut bytes = [0; 4096];
            let read = self.stream.read(&mut bytes).unwrap();
            assert_ne!(read, 0, "the server hangs up");
            self.received = bytes[..read].to_vec();
        }
    }

    fn compound(&mut self, operations: impl Operations) -> Results {
        self.send(&encoded(1, (NFS, 4), 1, &compound(operations)));
        Results::new(&self.receive())
    }

    /// Results of a compound in the session, that of SEQUENCE first.
    pub fn call(&mut self, operations: impl Operations) -> Results {
        self.sequence += 1;
        let (session, sequence, slot) = (self.session, self.sequence, self.slot);
        let args = SequenceArgs { session, sequence, slot, highest_slot: slot, cache: true };
        self.compound(|w| operations(w.op(Operation::Sequence, &args)))
    }

    fn open(&mut self, access: u32) -> Results {
        let args = OpenArgs {
            seqid: 0,
            access,
            deny: 0,
            client_id: self.id,
            owner: Opaque(b"owner"),
            how: OpenHow::Unchecked(Attributes4::default()),
            claim: OpenClaim::Null(Name::from("file")),
        };
        self.call(|w| {
            let w = w.op(Operation::PutRootFh, &()).op(Operation::Lookup, &Name::from("export"));
            w.op(Operation::Open, &args)
        })
    }
}

#[test]
fn a_recall_and_its_reply_go_over_the_connection_of_the_client() {
    let config = Nfs4Config { delegations: true, ..Nfs4Config::default() };
    let (address, v4, _serving) = running(config);
    let mut first = Client::new(address, "first", session_flags::BACK_CHANNEL);
    let mut second = Client::new(address, "second", 0);
    let mut opened = first.open(share::BOTH | share::WANT_ANY);
    opened.ok::<SequenceOk>(Operation::Sequence);
    let () = opened.ok(Operation::PutRootFh);
    let () = opened.ok(Operation::Lookup);
    let opened: OpenOk<'_> = opened.ok(Operation::Open);
    let Delegation::Write(delegation) = opened.delegation else { panic!("{opened:?}") };
    assert_eq!(second.open(share::READ).status(), Status4::DELAY);
    let recall = first.receive();
    let mut input = XdrIn::new(&recall);
    let call = Call::decode(&mut input).unwrap();
    assert_eq!(call.program, CALLBACK_PROGRAM);
    let mut reply = Vec::new();
    encode_reply_success(&mut reply, call.xid);
    [0_u32; 3].iter().for_each(|word| word.encode(&mut reply));
    first.send(&reply);
    assert_eq!(second.open(share::READ).status(), Status4::DELAY);
    let returned = first.call(|w| {
        let w = w.op(Operation::PutRootFh, &()).op(Operation::Lookup, &Name::from("export"));
        let w = w.op(Operation::Lookup, &Name::from("file"));
        w.op(Operation::DelegReturn, &delegation.state)
    });
    assert_eq!(returned.status(), Status4::OK);
    assert_eq!(second.open(share::READ).status(), Status4::OK);
    v4.restart(Duration::ZERO);
    assert_eq!(second.open(share::READ).status(), Status4::BADSESSION);
}

#[test]
fn connections_share_a_session_and_each_call_is_executed_once() {
    const CALLS: u64 = 200;
    let (address, v4, _serving) = running(Nfs4Config::default());
    let client = Client::new(address, "a", 0);
    let before = v4.counts();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            // Two connections for each slot: both send each call, and get the same reply.
            let slot = 1 + thread / 2;
            let mut connection = client.another(address, slot);
            scope.spawn(move || {
                for call in 0..CALLS {
                    let name = format!("{slot}-{call}");
                    let args = CreateArgs4 {
                        kind: CreateKind::Directory,
                        name: Name::from(&name[..]),
                        attributes: Attributes4::default(),
                    };
                    let created = connection.call(|w| {
                        let w = w.op(Operation::PutRootFh, &());
                        let w = w.op(Operation::Lookup, &Name::from("export"));
                        w.op(Operation::Create, &args)
                    });
                    // The other connection can be further.
                    let expected = [Status4::OK, Status4::SEQ_MISORDERED];
                    assert!(expected.contains(&created.status()), "{}", created.status());
                }
            });
        }
    });
    assert!(client.slots >= LIMITS.slots);
    let executed = v4.counts();
    assert_eq!(executed.compounds, before.compounds + 4 * CALLS);
    assert_eq!(executed.operations, before.operations + 4 * CALLS * 4);
    assert_eq!(v4.executed_twice(), 0);
}
