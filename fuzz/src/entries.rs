//! Sessions of HTTP and suites under arbitrary bytes.

use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use plimsoll_engine::interface::{Io, Link, LinkKind, Session, Ticket};
use plimsoll_http::fileset::{FileId, FileSet};
use plimsoll_http::parameters::{Connections, Statuses};
use plimsoll_http::reader::{CAPTURE_BYTES_MAX, Plain};
use plimsoll_http::session::HttpSession;
use plimsoll_http::site::{HttpOp, Request, Site, SiteFrame, Version, WorkerSite};
use plimsoll_http::wire::head::HEAD_BYTES_MAX;
use plimsoll_http::wire::request::{Method, RequestText};
use plimsoll_model::outcome::{OpKind, Outcome};
use plimsoll_model::units::Nanos;
use plimsoll_protocol::Protocol;

/// Ops of a session before the rest of the input is ignored.
const OPS_MAX: u32 = 64;

/// Feeds a session the bytes of a hostile server. The first byte chooses the kind of session, the
/// second the length of the pieces; the rest is the server's data.
pub fn reply(data: &[u8]) {
    let [choice, piece, input @ ..] = data else { return };
    let mut driver = Driver::default();
    let (mut session, op) = session(*choice);
    driver.advance(&mut session, op);
    for bytes in input.chunks(usize::from(*piece) * 8 + 1) {
        let link = Link(driver.links);
        session.on_bytes(link, bytes, Nanos::ZERO, &mut driver);
        let buffered = session.heap_bytes();
        assert!(
            buffered <= 2 * (HEAD_BYTES_MAX + 1) + 2 * CAPTURE_BYTES_MAX,
            "{buffered} bytes held"
        );
        if let Some((link, n)) = driver.discard.take() {
            session.on_discarded(link, n, Nanos::ZERO, &mut driver);
        }
        driver.advance(&mut session, op);
    }
    session.on_eof(Link(driver.links), Nanos::ZERO, &mut driver);
    // An op on a kept connection may be on its second try.
    session.on_eof(Link(driver.links), Nanos::ZERO, &mut driver);
    assert_eq!(driver.issued, driver.done, "an op has no outcome");
}

/// All protocols.
pub const PROTOCOLS: [&Protocol; 4] = [
    &plimsoll_http::PROTOCOL,
    &plimsoll_nfs::PROTOCOL,
    &plimsoll_smb::PROTOCOL,
    &plimsoll_app::PROTOCOL,
];

fn parse(text: &str) -> Result<plimsoll_model::suite::Suite, plimsoll_model::suite::SuiteError> {
    plimsoll_protocol::parse_suite(&PROTOCOLS, "fuzz.toml", text, &[])
}

/// Parses text as a suite. An accepted suite must round-trip.
pub fn suite(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(suite) = parse(text) {
        let again = parse(&suite.to_toml());
        assert_eq!(again.as_ref(), Ok(&suite));
    }
}

fn session(choice: u8) -> (HttpSession, HttpOp) {
    let connections =
        if choice & 1 == 0 { Connections::KeepAlive } else { Connections::PerRequest };
    let method = if choice & 2 == 0 { Method::GET } else { Method::HEAD };
    let frame = SiteFrame {
        base: "http://h".to_owned(),
        host: "h".to_owned(),
        headers: &[],
        connections,
        expected: Statuses::try_from(vec!["2xx".to_owned()]).expect("a real class"),
        version: Version::Http1,
    };
    let with_files = choice & 4 == 0;
    let (site, request) = if with_files {
        static SET: OnceLock<FileSet> = OnceLock::new();
        let set = SET.get_or_init(|| FileSet::new(1, 1)).clone();
        let id = FileId { directory: 0, class: 0, k: 1 };
        (Site::with_files(frame, method, "/", set), Request::File(id))
    } else {
        (
            Site::with_urls(frame, [(&RequestText::plain(method, "/"), "/")].into_iter()),
            Request::Url(0),
        )
    };
    let site: Rc<WorkerSite> = WorkerSite::new(Arc::new(site));
    let timeout = Nanos::from_secs(1);
    let reader = match choice >> 5 {
        0 | 1 => Plain::Kept(Vec::new(), |body| body.ends_with(b"!")),
        2 | 3 => Plain::Chunks,
        _ => Plain::Unread,
    };
    let session = HttpSession::new(site, reader, timeout);
    let verify = choice & 16 != 0;
    (session, HttpOp { kind: OpKind(0), request, method, verify, key: 0 })
}

/// A driver without sockets: connections open at once.
#[derive(Default)]
struct Driver {
    links: u64,
    unopened: bool,
    discard: Option<(Link, u64)>,
    issued: u32,
    done: u32,
    trailing_bytes: u32,
}

impl Driver {
    /// Opens the requested connections, and starts the next op.
    fn advance(&mut self, session: &mut HttpSession, op: HttpOp) {
        if session.has_room() && self.issued < OPS_MAX {
            self.issued += 1;
            session.issue(Ticket(0), op, Nanos::ZERO, self);
        }
        if std::mem::take(&mut self.unopened) {
            session.on_connected(Link(self.links), Nanos::ZERO, self);
        }
    }
}

impl Io for Driver {
    fn connect(&mut self, _kind: LinkKind) -> Link {
        self.links += 1;
        self.unopened = true;
        Link(self.links)
    }
    fn send(&mut self, _link: Link, _bytes: &[u8]) {}
    fn discard(&mut self, link: Link, n: u64) {
        self.discard = Some((link, n));
    }
    fn close(&mut self, _link: Link) {
        self.discard = None;
    }
    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        assert!(detail.to_string().len() < 4096, "an explanation is short");
    }
    fn complete(&mut self, _ticket: Ticket, _outcome: Outcome) {
        self.done += 1;
    }
    fn report_trailing_bytes(&mut self, _kind: OpKind) {
        self.trailing_bytes += 1;
        assert!(self.trailing_bytes <= self.done, "once per op at most");
    }
}
