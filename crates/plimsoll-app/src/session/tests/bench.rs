//! A session driven by hand, with an [`Io`] that records its calls, and a server.

use std::sync::{Arc, OnceLock};

use super::super::*;
use crate::parameters::AppWorkload;
use crate::peer::{Peer, PeerLine};

/// Time allowed for a transaction.
pub(super) const OP_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Data segments of 256 KiB.
pub(super) const SCALE: f64 = 1.0 / 64.0;

/// The calls of a session.
#[derive(Default)]
pub(super) struct Recorder {
    pub links: u64,
    pub sent: Vec<(Link, Vec<u8>)>,
    pub discards: Vec<(Link, u64)>,
    pub closed: Vec<Link>,
    pub detail: String,
    pub done: Vec<Outcome>,
    pub trailing_bytes: Vec<OpKind>,
}

impl Io for Recorder {
    fn connect(&mut self, _kind: LinkKind) -> Link {
        self.links += 1;
        Link(self.links)
    }
    fn send(&mut self, link: Link, bytes: &[u8]) {
        assert!(!self.closed.contains(&link), "{link:?} is closed");
        self.sent.push((link, bytes.to_vec()));
    }
    fn discard(&mut self, link: Link, n: u64) {
        self.discards.push((link, n));
    }
    fn close(&mut self, link: Link) {
        assert!(!self.closed.contains(&link), "{link:?} is closed twice");
        self.closed.push(link);
    }
    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        self.detail = detail.to_string();
    }
    fn complete(&mut self, _ticket: Ticket, outcome: Outcome) {
        self.done.push(outcome);
    }
    fn report_trailing_bytes(&mut self, kind: OpKind) {
        self.trailing_bytes.push(kind);
    }
}

/// A session, its calls, and a server to answer.
pub(super) struct Bench {
    pub session: AppSession,
    pub io: Recorder,
    pub now: Nanos,
    pub peer: Peer,
    pub line: PeerLine,
    pub seed: u32,
}

impl Bench {
    pub(super) fn new() -> Self {
        static SITE: OnceLock<Arc<AppSite>> = OnceLock::new();
        // Less work: a server in a test does it.
        let workload = AppWorkload { work: 2, ..AppWorkload::default() };
        let site = SITE.get_or_init(|| Arc::new(AppSite::new(&workload, SCALE)));
        Self::from_site(Arc::clone(site))
    }

    pub(super) fn from_site(site: Arc<AppSite>) -> Self {
        let worker = Rc::new(WorkerSite::new(site));
        let context =
            ClientContext { client: 3, endpoint: 0, seed: 1, op_timeout: OP_TIMEOUT, nonce: 0 };
        Self {
            session: AppSession::new(worker, &context),
            io: Recorder::default(),
            now: Nanos::from_secs(1),
            peer: Peer::default(),
            line: PeerLine::default(),
            seed: 99,
        }
    }

    /// A client that has been greeted, and whose segment has the right content.
    pub(super) fn ready() -> Self {
        let mut bench = Self::new();
        bench.issue(AppKind::ClientServer);
        bench.connect();
        bench.answer();
        bench.answer();
        assert_eq!(bench.last().status, OpStatus::Ok, "{}", bench.io.detail);
        let site = Arc::clone(&bench.session.worker.site);
        let content = site.content.bytes(bench.session.key, 0, 128 * 1_024);
        bench.peer.segments.get_mut(&3).unwrap()[..content.len()].copy_from_slice(content);
        bench
    }

    pub(super) fn op(&mut self, kind: AppKind) -> AppOp {
        self.seed += 1;
        AppOp { kind, seed: self.seed, block: 5, compare: true }
    }

    pub(super) fn issue(&mut self, kind: AppKind) {
        let op = self.op(kind);
        self.issue_op(op);
    }

    pub(super) fn issue_op(&mut self, op: AppOp) {
        assert!(self.session.has_room());
        self.session.issue(Ticket(0), op, self.now, &mut self.io);
    }

    pub(super) fn link(&self) -> Link {
        Link(self.io.links)
    }

    pub(super) fn connect(&mut self) {
        self.line = PeerLine::default();
        self.session.on_connected(self.link(), self.now, &mut self.io);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.session.on_bytes(self.link(), bytes, self.now, &mut self.io);
    }

    /// The server's reply to what was sent last.
    pub(super) fn reply(&mut self) -> Vec<u8> {
        let (_, bytes) = self.io.sent.last().unwrap();
        self.line.take(&mut self.peer, bytes)
    }

    pub(super) fn answer(&mut self) {
        let reply = self.reply();
        self.bytes(&reply);
    }

    pub(super) fn eof(&mut self) {
        self.session.on_eof(self.link(), self.now, &mut self.io);
    }

    pub(super) fn reset(&mut self) {
        let error = LinkError { class: ErrorClass::Transport, errno: 104 };
        self.session.on_failed(self.link(), error, self.now, &mut self.io);
    }

    pub(super) fn last(&self) -> Outcome {
        *self.io.done.last().expect("an op has ended")
    }

    #[track_caller]
    pub(super) fn check_failed(&self, class: ErrorClass, expected: &str) {
        assert_eq!(self.last().status, OpStatus::Failed(class), "{}", self.io.detail);
        assert!(self.io.detail.contains(expected), "{expected:?} is not in {:?}", self.io.detail);
    }
}
