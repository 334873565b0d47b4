//! An [`Io`] that records the calls of a session, and a session driven by hand.

use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use plimsoll_engine::interface::{Io, Link, LinkError, LinkKind, Mark, Session, Ticket};
use plimsoll_model::outcome::{ErrorClass, OpKind, Outcome};
use plimsoll_model::units::Nanos;

use super::fileset::{FileId, FileSet};
use super::parameters::{Connections, Statuses};
use super::reader::Plain;
use super::session::HttpSession;
use super::site::{HttpOp, Request, Site, SiteFrame, Version, WorkerSite};
use super::wire::request::{Method, RequestText};

/// The calls of a session.
#[derive(Default)]
pub(crate) struct Recorder {
    pub links: u64,
    pub sent: Vec<(Link, Vec<u8>)>,
    pub discards: Vec<(Link, u64)>,
    pub closed: Vec<Link>,
    pub detail: String,
    pub done: Vec<Outcome>,
    /// Of `done`, in its order.
    pub tickets: Vec<Ticket>,
    pub trailing_bytes: Vec<OpKind>,
    pub marks: Vec<Mark>,
    /// Links whose peer had closed before it was sent to.
    pub refused: Vec<Link>,
}

impl Io for Recorder {
    fn connect(&mut self, _kind: LinkKind) -> Link {
        self.links += 1;
        Link(self.links)
    }
    fn send(&mut self, link: Link, bytes: &[u8]) {
        self.sent.push((link, bytes.to_vec()));
    }
    fn discard(&mut self, link: Link, n: u64) {
        self.discards.push((link, n));
    }
    fn is_refused(&mut self, link: Link) -> bool {
        self.refused.contains(&link)
    }
    fn close(&mut self, link: Link) {
        assert!(!self.closed.contains(&link), "{link:?} is closed twice");
        self.closed.push(link);
    }
    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        self.detail = detail.to_string();
    }
    fn complete(&mut self, ticket: Ticket, outcome: Outcome) {
        self.tickets.push(ticket);
        self.done.push(outcome);
    }
    fn mark(&mut self, _ticket: Ticket, mark: Mark) {
        self.marks.push(mark);
    }
    fn report_trailing_bytes(&mut self, kind: OpKind) {
        self.trailing_bytes.push(kind);
    }
}

/// Time allowed for an op.
pub(crate) const OP_TIMEOUT: Nanos = Nanos::from_secs(10);
/// A file of 1,024 bytes.
pub(crate) const SMALL: FileId = FileId { directory: 1, class: 1, k: 1 };
/// A file of 102,400 bytes.
pub(crate) const LARGE: FileId = FileId { directory: 1, class: 3, k: 1 };

/// The file set of the tests, made once.
pub(crate) fn file_set() -> FileSet {
    static SET: OnceLock<FileSet> = OnceLock::new();
    SET.get_or_init(|| FileSet::new(5, 3)).clone()
}

fn frame(connections: Connections, expect: &[&str]) -> SiteFrame<'static> {
    let expect: Vec<String> = expect.iter().map(|s| (*s).to_owned()).collect();
    SiteFrame {
        base: "http://h".to_owned(),
        host: "h".to_owned(),
        headers: &[],
        connections,
        expected: Statuses::try_from(expect).expect("the tests name real statuses"),
        version: Version::Http1,
    }
}

/// A server with the file set.
pub(crate) fn file_site(connections: Connections) -> Rc<WorkerSite> {
    file_site_of(Version::Http1, connections)
}

/// The same, spoken to in this version of HTTP.
pub(crate) fn file_site_of(version: Version, connections: Connections) -> Rc<WorkerSite> {
    let frame = SiteFrame { version, ..frame(connections, &["200"]) };
    WorkerSite::new(Arc::new(Site::with_files(frame, Method::GET, "/", file_set())))
}

/// A server with one URL.
pub(crate) fn url_site(method: Method) -> Rc<WorkerSite> {
    let frame = frame(Connections::KeepAlive, &["2xx", "3xx"]);
    let text = RequestText::plain(method, "/page");
    WorkerSite::new(Arc::new(Site::with_urls(frame, [(&text, "/page")].into_iter())))
}

/// A server of HTTP/2 whose requests have this body.
pub(crate) fn body_site(text: &RequestText) -> Rc<WorkerSite> {
    let frame = SiteFrame { version: Version::Http2, ..frame(Connections::KeepAlive, &["2xx"]) };
    WorkerSite::new(Arc::new(Site::with_urls(frame, [(text, "/page")].into_iter())))
}

/// Requests a file and verifies it.
pub(crate) fn file_op(id: FileId) -> HttpOp {
    let request = Request::File(id);
    HttpOp { kind: OpKind(id.class), request, method: Method::GET, verify: true, key: 0 }
}

/// Requests the one URL.
pub(crate) fn url_op(method: Method) -> HttpOp {
    HttpOp { kind: OpKind(0), request: Request::Url(0), method, verify: false, key: 0 }
}

/// A session and its recorder.
pub(crate) struct Bench<S> {
    pub session: S,
    pub io: Recorder,
    pub now: Nanos,
}

impl Bench<HttpSession> {
    /// A client of `site`.
    pub(crate) fn new(site: Rc<WorkerSite>) -> Self {
        Self::from_session(HttpSession::new(site, Plain::Unread, OP_TIMEOUT))
    }
}

impl<S: Session<Op = HttpOp>> Bench<S> {
    /// A client with this session.
    pub(crate) fn from_session(session: S) -> Self {
        Self { session, io: Recorder::default(), now: Nanos::ZERO }
    }

    /// Starts an op.
    pub(crate) fn issue(&mut self, op: HttpOp) {
        assert!(self.session.has_room());
        self.session.issue(Ticket(0), op, self.now, &mut self.io);
    }

    /// Starts an op on a new link and opens the link.
    pub(crate) fn issue_and_connect(&mut self, op: HttpOp) -> Link {
        self.issue(op);
        let link = Link(self.io.links);
        self.session.on_connected(link, self.now, &mut self.io);
        link
    }

    /// Bytes arrive.
    pub(crate) fn bytes(&mut self, link: Link, bytes: &[u8]) {
        self.session.on_bytes(link, bytes, self.now, &mut self.io);
    }

    /// The server closes.
    pub(crate) fn eof(&mut self, link: Link) {
        self.session.on_eof(link, self.now, &mut self.io);
    }

    /// The link breaks.
    pub(crate) fn reset(&mut self, link: Link) {
        let error = LinkError { class: ErrorClass::Transport, errno: 104 };
        self.session.on_failed(link, error, self.now, &mut self.io);
    }

    /// The outcome of the op that ended last.
    pub(crate) fn last(&self) -> Outcome {
        *self.io.done.last().expect("an op has ended")
    }
}

/// A reply with `Content-Length`.
pub(crate) fn reply(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}
