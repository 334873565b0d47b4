//! An [`Io`] that records what a session requests, and a session driven by hand.

use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use plimsoll_engine::interface::{ClientContext, Io, Link, LinkError, LinkKind, Session, Ticket};
use plimsoll_model::outcome::{ErrorClass, OpKind, OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::super::fileset::{BLOCK_BYTES, Content, FileSet};
use super::super::handles::{Handles, OwnedHandle};
use super::super::op::*;
use super::super::wire::record;
use super::super::wire::rpc::Credential;
use super::super::wire::v4::Bitmap;
use super::{NfsSession, NfsSite, NfsVersion, SessionRequest, replies};

/// What a session requested.
#[derive(Default)]
pub(super) struct Recorder {
    pub links: Vec<LinkKind>,
    pub sent: Vec<(Link, Vec<u8>)>,
    pub closed: Vec<Link>,
    pub detail: String,
    pub done: Vec<(Ticket, Outcome)>,
    pub trailing_bytes: Vec<OpKind>,
}

impl Io for Recorder {
    fn connect(&mut self, kind: LinkKind) -> Link {
        self.links.push(kind);
        Link(self.links.len() as u64)
    }
    fn send(&mut self, link: Link, bytes: &[u8]) {
        assert_eq!(link, Link(self.links.len() as u64), "only the newest link is in use");
        self.sent.push((link, bytes.to_vec()));
    }
    fn discard(&mut self, _link: Link, _n: u64) {
        unreachable!("NFS replies are always read");
    }
    fn close(&mut self, link: Link) {
        assert!(!self.closed.contains(&link), "{link:?} is closed twice");
        self.closed.push(link);
    }
    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        self.detail = detail.to_string();
    }
    fn complete(&mut self, ticket: Ticket, outcome: Outcome) {
        self.done.push((ticket, outcome));
    }
    fn report_trailing_bytes(&mut self, kind: OpKind) {
        self.trailing_bytes.push(kind);
    }
}

/// Time allowed for an op.
pub(super) const OP_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Calls in flight at most.
pub(super) const OUTSTANDING_MAX: u32 = 8;
/// Kind of every op.
pub(super) const KIND: OpKind = OpKind(5);

/// A file of 64 KiB.
pub(super) fn large_file() -> Accessed {
    let large = (0..100).map(Accessed).find(|file| file.bytes() == 65_536);
    large.expect("every hundred files have one of 64 KiB")
}

/// Two blocks from the second block on.
pub(super) fn two_blocks() -> Span {
    let (offset, bytes) = (u64::from(BLOCK_BYTES), BLOCK_BYTES);
    Span { file: large_file(), offset, bytes, blocks_left: 1 }
}

/// What is in the files of the tests, made once.
fn content() -> Content {
    static CONTENT: OnceLock<Content> = OnceLock::new();
    CONTENT.get_or_init(|| Content::new(7)).clone()
}

/// The server of the tests.
pub(super) fn site(version: NfsVersion, link: LinkKind) -> Rc<NfsSite> {
    let set = FileSet::new(1_000);
    let handle = |class: u8, number: u32| {
        let mut bytes = [class; 32];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        OwnedHandle::new(&bytes).expect("32 bytes are allowed")
    };
    let handles = Handles {
        root: handle(1, 0),
        dirs: (0..set.directories()).map(|n| handle(2, n)).collect(),
        files: (0..set.accessed()).map(|n| handle(3, n)).collect(),
        links: (0..set.links()).map(|n| handle(4, n)).collect(),
    };
    Rc::new(NfsSite {
        version,
        link,
        credential: Credential::none(),
        handles: Arc::new(handles),
        content: content(),
        attributes: Bitmap::default(),
        session: SessionRequest::SET_UP,
    })
}

/// A session and its recorder.
pub(super) struct Bench {
    pub session: NfsSession,
    pub io: Recorder,
    pub now: Nanos,
    pub site: Rc<NfsSite>,
    tickets: u32,
}

impl Bench {
    /// A new client.
    pub(super) fn new(version: NfsVersion, link: LinkKind) -> Self {
        let site = site(version, link);
        let nonce = 1_790_000_000;
        let client =
            ClientContext { client: 3, endpoint: 0, seed: 1, op_timeout: OP_TIMEOUT, nonce };
        let session = NfsSession::new(site.clone(), client, OUTSTANDING_MAX);
        Self { session, io: Recorder::default(), now: Nanos::from_secs(1), site, tickets: 0 }
    }

    /// A client whose link is open and has carried a reply.
    pub(super) fn connected(version: NfsVersion, link: LinkKind) -> Self {
        let mut bench = Self::new(version, link);
        bench.issue(NfsCall::FsStat);
        bench.connect();
        bench.answer(0, NfsCall::FsStat);
        assert_eq!(bench.last().status, OpStatus::Ok, "{}", bench.io.detail);
        bench.io.sent.clear();
        bench.io.done.clear();
        bench
    }

    /// Starts a call.
    pub(super) fn issue(&mut self, call: NfsCall) -> Ticket {
        assert!(self.session.has_room());
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        let op = NfsOp::first(KIND, call);
        self.session.issue(ticket, op, self.now, &mut self.io);
        ticket
    }

    /// The newest link.
    pub(super) fn link(&self) -> Link {
        Link(self.io.links.len() as u64)
    }

    /// The newest link opens.
    pub(super) fn connect(&mut self) {
        self.session.on_connected(self.link(), self.now, &mut self.io);
    }

    /// Bytes arrive on the newest link.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.session.on_bytes(self.link(), bytes, self.now, &mut self.io);
    }

    /// A whole message arrives.
    pub(super) fn message(&mut self, message: &[u8]) {
        let bytes = framed(self.site.link, message);
        self.bytes(&bytes);
    }

    /// The server carries out `call`, which was sent as number `sent`.
    pub(super) fn answer(&mut self, sent: usize, call: NfsCall) {
        let reply = replies::good(&self.site, call, self.xid(sent));
        self.message(&reply);
    }

    /// The newest link breaks.
    pub(super) fn reset(&mut self) {
        let error = LinkError { class: ErrorClass::Transport, errno: 104 };
        self.session.on_failed(self.link(), error, self.now, &mut self.io);
    }

    /// Time goes on; the timer is called whenever it wants to be.
    pub(super) fn pass(&mut self, span: Nanos) {
        let end = self.now + span;
        for _ in 0..1_000 {
            match self.session.next_deadline().filter(|at| *at <= end) {
                Some(at) => {
                    self.now = self.now.max(at);
                    self.session.on_timer(self.now, &mut self.io);
                }
                None => {
                    self.now = end;
                    return;
                }
            }
        }
        panic!("the timer never rests");
    }

    /// The message sent as number `sent`, without its record mark.
    pub(super) fn sent(&self, sent: usize) -> &[u8] {
        let bytes = &self.io.sent[sent].1;
        match self.site.link {
            LinkKind::Datagram => bytes,
            LinkKind::Stream => {
                let mark = u32::from_be_bytes(*bytes.first_chunk().expect("a mark has 4 bytes"));
                assert_eq!(mark, 1 << 31 | (bytes.len() as u32 - 4));
                &bytes[4..]
            }
        }
    }

    /// Its xid.
    pub(super) fn xid(&self, sent: usize) -> u32 {
        u32::from_be_bytes(*self.sent(sent).first_chunk().expect("a call has an xid"))
    }

    /// The outcome of the op that ended last.
    pub(super) fn last(&self) -> Outcome {
        self.io.done.last().expect("an op has ended").1
    }
}

/// A message as it comes over a link.
pub(super) fn framed(link: LinkKind, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match link {
        LinkKind::Datagram => bytes.extend_from_slice(message),
        LinkKind::Stream => {
            let at = record::begin(&mut bytes);
            bytes.extend_from_slice(message);
            record::finish(&mut bytes, at);
        }
    }
    bytes
}
