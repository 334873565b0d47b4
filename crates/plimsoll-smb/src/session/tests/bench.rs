//! A session driven by hand, with an [`Io`] that records what it requests.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::OnceLock;

use plimsoll_engine::interface::{ClientContext, Io, Link, LinkError, LinkKind, Session, Ticket};
use plimsoll_model::outcome::{ErrorClass, OpKind, OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::server::{Reply, SESSION, Server, TREE};
use crate::logon::{Credentials, Dialect, Established, Identity, Offer};
use crate::op::*;
use crate::seal::Seal;
use crate::session::{Caching, SmbSession, SmbSite};
use crate::wire::frame::{self, Assembler, FrameError};
use crate::wire::header::{Command, Header, UNSOLICITED, flags};
use crate::wire::{Break, chain};
use crate::workspace::ContentTable;

/// What a session requested.
#[derive(Default)]
pub(super) struct Recorder {
    pub links: u64,
    pub sent: Vec<Vec<u8>>,
    pub closed: Vec<Link>,
    pub detail: String,
    pub done: Vec<(Ticket, Outcome)>,
}

impl Io for Recorder {
    fn connect(&mut self, kind: LinkKind) -> Link {
        assert_eq!(kind, LinkKind::Stream);
        self.links += 1;
        Link(self.links)
    }
    fn send(&mut self, link: Link, bytes: &[u8]) {
        assert!(!self.closed.contains(&link), "{link:?} is closed");
        self.sent.push(bytes.to_vec());
    }
    fn discard(&mut self, _link: Link, _n: u64) {
        unreachable!("replies are always read");
    }
    fn close(&mut self, link: Link) {
        assert!(!self.closed.contains(&link), "{link:?} is closed twice");
        self.closed.push(link);
    }
    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        self.detail = detail.to_string();
    }
    fn complete(&mut self, ticket: Ticket, outcome: Outcome) {
        assert!(self.done.iter().all(|(done, _)| *done != ticket), "{ticket:?} ends twice");
        self.done.push((ticket, outcome));
    }
    fn report_trailing_bytes(&mut self, kind: OpKind) {
        panic!("trailing bytes after {kind:?}");
    }
}

/// Time allowed for an op.
pub(super) const OP_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Ops in flight at most.
pub(super) const OUTSTANDING_MAX: u32 = 8;
/// Unexpected statuses that a client may have.
pub(super) const UNEXPECTED_MAX: u32 = 3;

/// The content of all tests, made once.
pub(super) fn content() -> ContentTable {
    static CONTENT: OnceLock<ContentTable> = OnceLock::new();
    CONTENT.get_or_init(|| ContentTable::new(7)).clone()
}

/// How a bench differs from others.
pub(super) struct Setting {
    pub caching: Caching,
    pub prefix: &'static str,
    pub dialect: Dialect,
    pub credits: u32,
    pub bytes_max: u32,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            caching: Caching::None,
            prefix: "",
            dialect: Dialect::V3_1_1,
            credits: 16,
            bytes_max: 1_048_576,
        }
    }
}

/// A session, its recorder and its server.
pub(super) struct Bench {
    pub session: SmbSession,
    pub io: Recorder,
    pub now: Nanos,
    pub server: Server,
    pub link: Link,
    pub issued: BTreeMap<u32, SmbKind>,
}

pub(super) fn site(setting: &Setting) -> Rc<SmbSite> {
    Rc::new(SmbSite {
        credentials: Credentials::guest(),
        offer: Offer::default(),
        unc: "\\\\server\\share".to_owned(),
        prefix: setting.prefix.to_owned(),
        caching: setting.caching,
        content: content(),
        outstanding_max: OUTSTANDING_MAX,
        unexpected_max: UNEXPECTED_MAX,
        buffers: Default::default(),
    })
}

pub(super) fn client_context() -> ClientContext {
    ClientContext { client: 3, endpoint: 0, seed: 1, op_timeout: OP_TIMEOUT, nonce: 9 }
}

impl Bench {
    /// A client that has not connected.
    pub(super) fn fresh() -> Self {
        Self {
            session: SmbSession::new(site(&Setting::default()), client_context()),
            io: Recorder::default(),
            now: Nanos::from_secs(1),
            server: Server::new(4, 16),
            link: Link(1),
            issued: BTreeMap::new(),
        }
    }

    /// A client that has logged on.
    pub(super) fn new(setting: &Setting) -> Self {
        let mut bench = Self::fresh();
        bench.session = SmbSession::new(site(setting), client_context());
        bench.link = bench.io.connect(LinkKind::Stream);
        bench.server = Server::new(4, setting.credits);
        if !setting.prefix.is_empty() {
            bench.server.files.insert(setting.prefix.to_owned(), None);
        }
        let established = Established {
            dialect: setting.dialect,
            session_id: SESSION,
            tree_id: TREE,
            seal: Seal::none(),
            next_message_id: 4,
            credits: setting.credits,
            max_read: setting.bytes_max,
            max_write: setting.bytes_max,
            large_mtu: setting.dialect > Dialect::V2_0_2,
            leasing: setting.dialect > Dialect::V2_0_2,
            identity: Identity::Guest,
            guest: true,
            signing: None,
            cipher: None,
            nonconformities: Default::default(),
        };
        bench.session.logged_on(bench.link, established);
        bench
    }

    /// Starts an op.
    pub(super) fn issue(&mut self, op: SmbOp, expected: Expected) -> Ticket {
        let ticket = Ticket(self.issued.len() as u32);
        self.issued.insert(ticket.0, op.kind());
        self.session.issue(ticket, SmbCall { op, expected }, self.now, &mut self.io);
        ticket
    }

    /// The replies to all that was sent.
    pub(super) fn replies(&mut self) -> Vec<Reply> {
        let mut replies = Vec::new();
        for bytes in std::mem::take(&mut self.io.sent) {
            Assembler::new()
                .push::<FrameError>(&bytes, |message| {
                    replies.extend(self.server.take(message));
                    Ok(())
                })
                .unwrap();
        }
        replies
    }

    /// Bytes arrive.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if !self.io.closed.contains(&self.link) {
            self.session.on_bytes(self.link, bytes, self.now, &mut self.io);
        }
    }

    /// A reply arrives as a message of its own.
    pub(super) fn deliver(&mut self, reply: &Reply) {
        let bytes = framed(std::slice::from_ref(reply));
        self.bytes(&bytes);
    }

    /// The server answers until nothing more is sent.
    pub(super) fn serve(&mut self) {
        for _ in 0..100_000 {
            let replies = self.replies();
            if replies.is_empty() {
                return;
            }
            self.bytes(&framed(&replies));
        }
        panic!("the client never rests");
    }

    /// Issues an op, has it served, and returns how it ended.
    pub(super) fn run(&mut self, op: SmbOp, expected: Expected) -> Outcome {
        let ticket = self.issue(op, expected);
        self.serve();
        self.outcome(ticket).unwrap_or_else(|| panic!("{ticket:?} has not ended"))
    }

    /// The same of an op that does what it should.
    pub(super) fn succeed(&mut self, op: SmbOp) -> Outcome {
        let text = format!("{op:?}");
        let outcome = self.run(op, Expected::Success);
        assert_eq!(outcome.status, OpStatus::Ok, "{text}: {}", self.io.detail);
        outcome
    }

    pub(super) fn outcome(&self, ticket: Ticket) -> Option<Outcome> {
        self.io.done.iter().find(|(done, _)| *done == ticket).map(|(_, outcome)| *outcome)
    }

    /// The server sends it unsolicited.
    pub(super) fn breaks(&mut self, body: Break) {
        let header = Header {
            flags: flags::RESPONSE,
            message_id: UNSOLICITED,
            ..Header::new(Command::OplockBreak)
        };
        let mut bytes = Vec::new();
        body.encode(&mut bytes);
        self.deliver(&Reply { header, body: bytes });
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

    /// The link breaks.
    pub(super) fn reset(&mut self) {
        let error = LinkError { class: ErrorClass::Transport, errno: 104 };
        self.session.on_failed(self.link, error, self.now, &mut self.io);
    }
}

/// Replies as one message.
pub(super) fn framed(replies: &[Reply]) -> Vec<u8> {
    let mut out = Vec::new();
    let at = frame::begin(&mut out);
    let mut previous = None;
    for reply in replies {
        if let Some(previous) = previous {
            chain(&mut out, previous);
        }
        previous = Some(out.len());
        out.extend_from_slice(&reply.bytes());
    }
    frame::finish(&mut out, at);
    out
}

pub(super) fn text(text: &str) -> PathText {
    PathText::new(text).unwrap()
}

/// Opens or makes a file.
pub(super) fn create(path: &str, handle: u32, disposition: Disposition) -> SmbOp {
    SmbOp::Create { path: text(path), handle: HandleNo(handle), disposition, options: 0 }
}

pub(super) fn read(handle: u32, offset: u64, length: u32) -> SmbOp {
    let (handle, check) = (HandleNo(handle), Some(Content { key: 5 }));
    SmbOp::Read { handle, offset, length, expected_length: ExpectedLength::Exactly(length), check }
}

pub(super) fn write(handle: u32, offset: u64, length: u32) -> SmbOp {
    SmbOp::Write { handle: HandleNo(handle), offset, length, content: Content { key: 5 } }
}
