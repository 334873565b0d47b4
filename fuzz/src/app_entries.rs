//! The transaction protocol under arbitrary bytes.

use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use plimsoll_app::op::{AppKind, AppOp};
use plimsoll_app::parameters::AppWorkload;
use plimsoll_app::session::{AppSession, AppSite, WorkerSite};
use plimsoll_app::wire::inbox::{Arrived, FRAME_BYTES_MAX, Inbox, Malformed};
use plimsoll_app::wire::{VERSION, WELCOME_BYTES, Welcome, WireError};
use plimsoll_engine::interface::{ClientContext, Io, Link, LinkKind, Session, Ticket};
use plimsoll_model::outcome::{OpKind, Outcome};
use plimsoll_model::units::Nanos;

/// Transactions of a session before the rest of the input is ignored.
const OPS_MAX: u32 = 64;
const OP_TIMEOUT: Nanos = Nanos::from_secs(1);

/// Feeds a session the bytes of a hostile server. The first byte chooses the transactions and
/// whether the greeting is valid, the second the length of the pieces; the rest is the server's
/// data.
pub fn app_reply(data: &[u8]) {
    let [choice, piece, input @ ..] = data else { return };
    let mut driver = Driver { choice: *choice, ..Driver::default() };
    let mut session = AppSession::new(site(), &CLIENT);
    driver.advance(&mut session);
    if choice & 1 == 1 {
        let welcome = greeting(session_bytes());
        session.on_bytes(Link(driver.links), &welcome, Nanos::ZERO, &mut driver);
    }
    for bytes in input.chunks(usize::from(*piece) + 1) {
        let link = Link(driver.links);
        let limit = session.read_limit(link);
        assert!(limit > 0, "the driver would wait for ever");
        for bytes in bytes.chunks(limit) {
            session.on_bytes(Link(driver.links), bytes, driver.now, &mut driver);
            if let Some((link, n)) = driver.discard.take() {
                session.on_discarded(link, n, driver.now, &mut driver);
            }
            driver.advance(&mut session);
        }
    }
    session.on_eof(Link(driver.links), driver.now, &mut driver);
    driver.now = driver.now.saturating_add(OP_TIMEOUT);
    session.on_timer(driver.now, &mut driver);
    assert_eq!(driver.issued, driver.done, "a transaction has no outcome");
    assert_eq!(session.next_deadline(), None);
}

/// Feeds the bytes of a hostile client. The first two bytes set the length of the pieces, and how
/// many times the rest is repeated.
pub fn app_request(data: &[u8]) {
    let [piece, times, input @ ..] = data else { return };
    let input = input.repeat(usize::from(*times % 8) + 1);
    let whole = read(&input, FRAME_BYTES_MAX);
    let pieces = read(&input, usize::from(*piece) * usize::from(*piece) + 1);
    assert_eq!(whole, pieces, "how bytes are cut changes what they mean");
}

/// All messages, encoded again, and the error that ended them.
fn read(input: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<Malformed>) {
    let (mut inbox, mut messages, mut rest, mut buffered_max) =
        (Inbox::new(), Vec::new(), input, 0);
    loop {
        match inbox.next_message() {
            Ok(Some(Arrived::Hello(hello))) => messages.push(hello.encode().to_vec()),
            Ok(Some(Arrived::Request(request))) => {
                assert_eq!(inbox.payload().len(), request.payload_bytes as usize);
                messages.push([&request.encode()[..], inbox.payload()].concat());
                inbox.finish();
            }
            Ok(None) if rest.is_empty() => break,
            Ok(None) => {
                let (now, later) = rest.split_at(piece.min(rest.len()).min(inbox.room()));
                assert!(!now.is_empty(), "an inbox is full and has no message");
                inbox.push(now);
                rest = later;
                buffered_max = buffered_max.max(inbox.memory_bytes());
            }
            // How much of a foreign beginning the error contains depends on the pieces.
            Err(Malformed::Hello(WireError::Magic(_))) => {
                return (messages, Some(Malformed::Hello(WireError::Magic([0; 4]))));
            }
            Err(malformed) => return (messages, Some(malformed)),
        }
        assert!(buffered_max <= FRAME_BYTES_MAX.min(2 * (input.len() - rest.len())));
    }
    let taken: usize = messages.iter().map(Vec::len).sum();
    let encoded = messages.concat();
    // A greeting of another version may have bytes that this version ignores.
    let greeting = encoded.len().min(24);
    assert_eq!(encoded[greeting..], input[greeting..taken], "a message was changed on the way");
    (messages, None)
}

const CLIENT: ClientContext =
    ClientContext { client: 0, endpoint: 0, seed: 1, op_timeout: OP_TIMEOUT, nonce: 0 };

fn shared() -> Arc<AppSite> {
    static SITE: OnceLock<Arc<AppSite>> = OnceLock::new();
    let workload = || AppWorkload { work: 1, ..AppWorkload::default() };
    Arc::clone(SITE.get_or_init(|| Arc::new(AppSite::new(&workload(), 1.0))))
}

fn site() -> Rc<WorkerSite> {
    Rc::new(WorkerSite::new(shared()))
}

fn session_bytes() -> u64 {
    shared().segment_bytes
}

fn greeting(segment_bytes: u64) -> [u8; WELCOME_BYTES] {
    let welcome = Welcome {
        version: VERSION,
        refusal: None,
        service_threads: 1,
        durable: false,
        calibrated: false,
        segment_bytes,
        memory_bytes: 0,
    };
    welcome.encode()
}

/// A driver without sockets: connections open at once.
#[derive(Default)]
struct Driver {
    choice: u8,
    now: Nanos,
    links: u64,
    unopened: bool,
    discard: Option<(Link, u64)>,
    issued: u32,
    done: u32,
    trailing_bytes: u32,
}

impl Driver {
    /// Opens the requested connections, and starts the next transaction.
    fn advance(&mut self, session: &mut AppSession) {
        if session.has_room() && self.issued < OPS_MAX {
            let number = u32::from(self.choice >> 1) + self.issued;
            let kind = AppKind::ALL[number as usize % AppKind::ALL.len()];
            let op = AppOp { kind, seed: number, block: 3, compare: number & 8 == 0 };
            self.issued += 1;
            session.issue(Ticket(0), op, self.now, self);
        }
        // A client without a greeting waits before it connects again.
        if let Some(at) = session.next_deadline().filter(|_| !self.unopened) {
            let soon = at.min(self.now.saturating_add(Nanos::from_millis(200)));
            if soon == at {
                self.now = at;
                session.on_timer(at, self);
            }
        }
        if std::mem::take(&mut self.unopened) {
            session.on_connected(Link(self.links), self.now, self);
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
        assert!(n <= 65_536, "more is discarded than a body has");
        self.discard = Some((link, n));
    }
    fn close(&mut self, _link: Link) {
        self.discard = None;
    }
    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        assert!(detail.to_string().len() < 4_096, "an explanation is short");
    }
    fn complete(&mut self, _ticket: Ticket, _outcome: Outcome) {
        self.done += 1;
    }
    fn report_trailing_bytes(&mut self, _kind: OpKind) {
        self.trailing_bytes += 1;
        assert!(self.trailing_bytes <= self.done, "once per op at most");
    }
}
