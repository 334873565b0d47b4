//! HTTP/2 under arbitrary bytes: sessions, and header blocks.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::interface::{Io, Link, LinkKind, Session, Ticket};
use plimsoll_http::h2::hpack::{Decoder, HpackError};
use plimsoll_http::h2::windows::{H2Settings, ReceiveWindows};
use plimsoll_http::h2_session::H2Session;
use plimsoll_http::parameters::{Connections, Statuses};
use plimsoll_http::reader::Plain;
use plimsoll_http::site::{HttpOp, Request, Site, SiteFrame, Version, WorkerSite};
use plimsoll_http::wire::request::{Method, RequestText};
use plimsoll_http::wire::template::Template;
use plimsoll_model::outcome::{OpKind, Outcome};
use plimsoll_model::units::Nanos;

/// Ops of a session before the rest of the input is ignored.
const OPS_MAX: u32 = 64;
const OP_TIMEOUT: Nanos = Nanos::from_secs(1);
/// A frame, a header block, and what a connection writes in answer to one read, for each of several
/// connections that end.
const BUFFERED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A table of 4,096 bytes has at most 128 fields; blocks are kept up to 512 bytes.
const TABLE_BYTES_MAX: usize = 64 * 1024;
/// A server's settings: empty, or a window of 4 bytes and 2 streams at a time.
const SETTINGS: [&[u8]; 2] = [
    &[0, 0, 0, 4, 0, 0, 0, 0, 0],
    &[0, 0, 12, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 4, 0, 3, 0, 0, 0, 2],
];

/// Feeds a session the bytes of a hostile server. The first byte chooses the session and whether
/// the server begins with its settings, the second the length of the parts; the rest is the
/// server's data.
pub fn h2_reply(data: &[u8]) {
    let [choice, part, input @ ..] = data else { return };
    let (mut session, op) = session(*choice);
    let greeting = (choice & 1 == 0).then(|| SETTINGS[usize::from(choice >> 1 & 1)]);
    let mut driver = Driver { greeting, ..Driver::default() };
    driver.advance(&mut session, op);
    for bytes in input.chunks(usize::from(*part) * 8 + 1) {
        session.on_bytes(Link(driver.links), bytes, driver.now, &mut driver);
        driver.advance(&mut session, op);
        let buffered = session.heap_bytes();
        assert!(buffered <= BUFFERED_BYTES_MAX, "{buffered} bytes held");
    }
    session.on_eof(Link(driver.links), driver.now, &mut driver);
    driver.issued_max = driver.issued;
    driver.advance(&mut session, op);
    driver.now = OP_TIMEOUT;
    session.on_timer(driver.now, &mut driver);
    assert_eq!(driver.issued, driver.done, "an op has no outcome");
    assert_eq!(session.next_deadline(), None);
}

/// Decodes header blocks, each preceded by its length in a byte. A decoder with a cache of blocks
/// must agree with one without.
pub fn h2_block(data: &[u8]) {
    let (mut knowing, mut forgetful) = (Decoder::default(), Decoder::default());
    let mut rest = data;
    while let Some((length, after)) = rest.split_first() {
        let (block, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        forgetful.clear_cache();
        let read = knowing.read(block);
        assert_eq!(read, forgetful.read(block), "a known block has another meaning");
        assert!(knowing.heap_bytes() <= TABLE_BYTES_MAX);
        match read {
            Ok(fields) => assert!(fields.reply().is_err() || fields.count() > 0),
            Err(HpackError::Incomplete) if block.is_empty() => panic!("nothing is a whole block"),
            // An error ends the connection.
            Err(_) => return,
        }
    }
}

fn session(choice: u8) -> (H2Session, HttpOp) {
    let method = if choice & 4 == 0 { Method::GET } else { Method::POST };
    let body = if choice & 8 == 0 { Template::default() } else { Template::fixed(&[b'x'; 9]) };
    let frame = SiteFrame {
        base: "http://h".to_owned(),
        host: "h".to_owned(),
        headers: &[],
        connections: Connections::KeepAlive,
        expected: Statuses::try_from(vec!["2xx".to_owned()]).expect("a real class"),
        version: Version::Http2,
    };
    let text = RequestText { body, ..RequestText::plain(method, "/") };
    let site = Site::with_urls(frame, [(&text, "/")].into_iter());
    let site: Rc<WorkerSite> = WorkerSite::new(Arc::new(site));
    let windows = ReceiveWindows { stream_bytes: 65_535, connection_bytes: 65_535 };
    let settings = H2Settings { streams: u32::from(choice >> 4 & 3) + 1, windows };
    let reader = if choice & 64 == 0 { Plain::Unread } else { Plain::Chunks };
    let request = Request::Url(0);
    let op = HttpOp { kind: OpKind(0), request, method, verify: false, key: 0 };
    (H2Session::new(site, settings, reader, OP_TIMEOUT), op)
}

/// A driver without sockets: connections open at once.
struct Driver {
    links: u64,
    unopened: bool,
    /// Sent by the server first on each connection.
    greeting: Option<&'static [u8]>,
    now: Nanos,
    issued: u32,
    issued_max: u32,
    done: u32,
    /// Tickets without an op.
    free: Vec<Ticket>,
}

impl Default for Driver {
    fn default() -> Self {
        Self {
            links: 0,
            unopened: false,
            greeting: None,
            now: Nanos::ZERO,
            issued: 0,
            issued_max: OPS_MAX,
            done: 0,
            free: (0..4).map(Ticket).collect(),
        }
    }
}

impl Driver {
    /// Starts ops, and opens the requested connections.
    fn advance(&mut self, session: &mut H2Session, op: HttpOp) {
        while session.has_room() && self.issued < self.issued_max {
            self.issued += 1;
            let ticket = self.free.pop().expect("a session has room for what it says");
            session.issue(ticket, op, self.now, self);
        }
        if std::mem::take(&mut self.unopened) {
            let link = Link(self.links);
            session.on_connected(link, self.now, self);
            if let Some(greeting) = self.greeting {
                session.on_bytes(link, greeting, self.now, self);
            }
        }
    }
}

impl Io for Driver {
    fn connect(&mut self, _kind: LinkKind) -> Link {
        self.links += 1;
        self.unopened = true;
        Link(self.links)
    }
    fn send(&mut self, _link: Link, bytes: &[u8]) {
        assert!(!bytes.is_empty(), "a call for nothing");
    }
    fn discard(&mut self, _link: Link, _n: u64) {
        panic!("frames are not discarded");
    }
    fn close(&mut self, _link: Link) {}
    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        assert!(detail.to_string().len() < 4096, "an explanation is short");
    }
    fn complete(&mut self, ticket: Ticket, _outcome: Outcome) {
        assert!(!self.free.contains(&ticket), "an op ends twice");
        self.free.push(ticket);
        self.done += 1;
    }
    fn report_trailing_bytes(&mut self, _kind: OpKind) {
        panic!("frames have an end");
    }
}
