//! TLS as a byte filter around a session. The session sees plaintext; its links are connected
//! when the handshake is done. rustls does the cryptography.

mod config;

use std::cell::RefCell;
use std::fmt;
use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plimsoll_engine::interface::{
    Io, Link, LinkError, LinkKind, Mark, Session, SessionCounters, Ticket,
};
use plimsoll_model::outcome::{ErrorClass, OpKind, Outcome};
use plimsoll_model::units::Nanos;
use plimsoll_protocol::blocking::hear;
use plimsoll_protocol::net::Channel;
use rustls::{ClientConfig, ClientConnection};
use rustls_pki_types::ServerName;

use super::spare_links::{LINGERING_LINKS_MAX, SpareLinks};

use config::identified;
pub use config::{
    ALPN_HTTP1, ALPN_HTTP2, ClientIdentity, Identity, TlsError, Trust, client_config, offering,
    resuming, server_name,
};
pub use plimsoll_protocol::files::HostFiles;

/// Plaintext handed on at once: one TLS record.
const PLAIN_BYTES: usize = 16 * 1024;

const NO_HTTP2: &str = "the server does not agree on HTTP/2 (ALPN)";
const CLOSED_IN_HANDSHAKE: &str = "the server closed during the handshake";

/// What the TLS clients of one worker share for one server.
pub struct TlsSite {
    config: RefCell<Arc<ClientConfig>>,
    name: ServerName<'static>,
    plain: RefCell<Vec<u8>>,
    cipher: RefCell<Vec<u8>>,
    /// Room for links that wait for the server's FIN.
    pub(super) spare_links: SpareLinks,
}

impl TlsSite {
    /// Settings for connections to the server of that name.
    pub fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Rc<Self> {
        let plain = RefCell::new(vec![0; PLAIN_BYTES]);
        let spare_links = SpareLinks::default();
        let config = RefCell::new(config);
        Rc::new(Self { config, name, plain, cipher: RefCell::default(), spare_links })
    }

    /// Connections from now on are those of another user: with their certificate, if users have
    /// any; with `resumes` they resume sessions, but none of those before.
    pub(super) fn begin_user(&self, identity: Option<&ClientIdentity>, resumes: bool) {
        let mut config = Arc::clone(&self.config.borrow());
        if let Some(identity) = identity {
            config = Arc::new(identified(&config, identity));
        }
        self.config.replace(if resumes { resuming(&config) } else { config });
    }

    /// Which of these protocols the server at the other end of a fresh channel agrees on (ALPN,
    /// RFC 7301). Its answer must be whole within `time_left`, and is given up when `stop` is
    /// raised.
    pub(super) fn agreed(
        &self,
        names: &[&[u8]],
        channel: &mut dyn Channel,
        stop: &AtomicBool,
        mut time_left: Duration,
    ) -> Option<Vec<u8>> {
        let config = offering(&self.config.borrow(), names);
        let mut connection = ClientConnection::new(config, self.name.clone()).ok()?;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            while connection.wants_write() && connection.write_tls(&mut bytes).is_ok() {}
            if !connection.is_handshaking() || channel.send(&bytes).is_err() {
                break;
            }
            bytes.clear();
            if hear(channel, stop, &mut time_left, &mut bytes).is_err() {
                break;
            }
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let is_taken = connection.read_tls(&mut rest).is_ok_and(|taken| taken > 0);
                if !is_taken || connection.process_new_packets().is_err() {
                    return None;
                }
            }
        }
        connection.alpn_protocol().map(<[u8]>::to_vec)
    }
}

/// A session over TLS.
pub struct Tls<S> {
    session: S,
    links: Links,
}

struct Links {
    site: Rc<TlsSite>,
    open: Vec<TlsLink>,
    /// Ended by a `close_notify` and closed by the session; the server's FIN is to come.
    parting: Vec<Link>,
}

struct TlsLink {
    link: Link,
    /// `None` until the link is connected.
    connection: Option<Box<ClientConnection>>,
    /// The session was notified that the link is connected.
    ready: bool,
    /// The server has sent its `close_notify`, and the session was notified.
    ended: bool,
    /// Plaintext bytes the session does not want.
    discard_bytes: u64,
}

/// The session's access to the driver.
struct TlsIo<'a, I> {
    io: &'a mut I,
    links: &'a mut Links,
    trouble: Option<&'a dyn fmt::Display>,
}

impl<S: Session> Tls<S> {
    /// Wraps `session`.
    pub fn new(session: S, site: Rc<TlsSite>) -> Self {
        Self { session, links: Links { site, open: Vec::new(), parting: Vec::new() } }
    }

    /// The session within.
    pub fn session(&self) -> &S {
        &self.session
    }

    /// The same, to be changed.
    pub fn session_mut(&mut self) -> &mut S {
        &mut self.session
    }

    fn fail(&mut self, link: Link, why: &dyn fmt::Display, now: Nanos, io: &mut impl Io) {
        // An alert may tell the server why.
        self.links.flush(link, io);
        self.give_up(link, (ErrorClass::Tls, why), now, io);
    }

    fn give_up(
        &mut self,
        link: Link,
        (class, why): (ErrorClass, &dyn fmt::Display),
        now: Nanos,
        io: &mut impl Io,
    ) {
        self.links.remove(link);
        io.close(link);
        let error = LinkError { class, errno: 0 };
        let mut io = TlsIo { io, links: &mut self.links, trouble: Some(why) };
        self.session.on_failed(link, error, now, &mut io);
    }

    /// The server has sent its `close_notify`. Its FIN may follow late or never.
    fn end(&mut self, link: Link, now: Nanos, io: &mut impl Io) {
        let Some(entry) = self.links.find(link) else { return };
        if !entry.ready {
            return self.fail(link, &CLOSED_IN_HANDSHAKE, now, io);
        }
        if !std::mem::replace(&mut entry.ended, true) {
            let mut io = TlsIo { io, links: &mut self.links, trouble: None };
            self.session.on_eof(link, now, &mut io);
        }
    }

    /// Hands over what has been decrypted.
    fn deliver(&mut self, link: Link, now: Nanos, io: &mut impl Io) {
        let site = self.links.site.clone();
        let mut plain = site.plain.borrow_mut();
        while let Some(entry) = self.links.find(link) {
            let Some(connection) = entry.connection.as_deref_mut() else { return };
            // An error here means "nothing yet", or an end that the TCP link will report.
            let Ok(n @ 1..) = connection.reader().read(&mut plain) else { return };
            let dropped = entry.discard_bytes.min(n as u64);
            entry.discard_bytes -= dropped;
            let mut io = TlsIo { io: &mut *io, links: &mut self.links, trouble: None };
            if dropped > 0 {
                self.session.on_discarded(link, dropped, now, &mut io);
            }
            let rest = &plain[dropped as usize..n];
            if !rest.is_empty() && io.links.find(link).is_some() {
                self.session.on_bytes(link, rest, now, &mut io);
            }
        }
    }
}

impl Links {
    fn find(&mut self, link: Link) -> Option<&mut TlsLink> {
        self.open.iter_mut().find(|l| l.link == link)
    }

    fn remove(&mut self, link: Link) {
        self.open.retain(|l| l.link != link);
    }

    /// The session is done with a link. One that the server has ended is left for the server to
    /// close, so that the waiting for late segments is its own.
    fn close(&mut self, link: Link, io: &mut impl Io) {
        let has_ended = self.find(link).is_some_and(|l| l.ended);
        self.remove(link);
        if !has_ended {
            return io.close(link);
        }
        if self.parting.len() == LINGERING_LINKS_MAX {
            io.close(self.parting.remove(0));
            self.site.spare_links.give_back();
        }
        if self.site.spare_links.take() { self.parting.push(link) } else { io.close(link) }
    }

    /// Forgets a link that waited for the server's FIN; false when it is not one.
    fn part(&mut self, link: Link) -> bool {
        let Some(at) = self.parting.iter().position(|l| *l == link) else { return false };
        self.parting.remove(at);
        self.site.spare_links.give_back();
        true
    }

    /// Sends what rustls has written.
    fn flush(&mut self, link: Link, io: &mut impl Io) {
        let site = self.site.clone();
        let Some(connection) = self.find(link).and_then(|l| l.connection.as_deref_mut()) else {
            return;
        };
        let mut cipher = site.cipher.borrow_mut();
        cipher.clear();
        while connection.wants_write() {
            match connection.write_tls(&mut *cipher) {
                Ok(1..) => {}
                _ => break,
            }
        }
        if !cipher.is_empty() {
            io.send(link, &cipher);
        }
    }
}

/// HTTP/1.1 is spoken without an agreement, too; HTTP/2 is not. RFC 9113 §3.2
fn is_agreed(connection: &ClientConnection, config: &ClientConfig) -> bool {
    let wants_http2 = config.alpn_protocols.iter().any(|name| name == ALPN_HTTP2);
    !wants_http2 || connection.alpn_protocol() == Some(ALPN_HTTP2)
}

impl<S: Session> Session for Tls<S> {
    type Op = S::Op;

    const BATCH_SENDS: bool = S::BATCH_SENDS;

    fn kind(&self, op: &S::Op) -> OpKind {
        self.session.kind(op)
    }

    fn has_room(&self) -> bool {
        self.session.has_room()
    }

    fn lost(&self) -> Option<String> {
        self.session.lost()
    }

    fn issue(&mut self, ticket: Ticket, op: S::Op, now: Nanos, io: &mut impl Io) {
        let mut io = TlsIo { io, links: &mut self.links, trouble: None };
        self.session.issue(ticket, op, now, &mut io);
    }

    fn on_connected(&mut self, link: Link, now: Nanos, io: &mut impl Io) {
        let site = self.links.site.clone();
        let Some(entry) = self.links.find(link) else { return };
        match ClientConnection::new(site.config.borrow().clone(), site.name.clone()) {
            Ok(mut connection) => {
                // A request is small; its size was checked when the suite was read.
                connection.set_buffer_limit(None);
                entry.connection = Some(Box::new(connection));
                self.links.flush(link, io);
            }
            Err(error) => self.fail(link, &error, now, io),
        }
    }

    fn on_bytes(&mut self, link: Link, bytes: &[u8], now: Nanos, io: &mut impl Io) {
        let mut rest = bytes;
        let site = self.links.site.clone();
        while !rest.is_empty() {
            let Some(entry) = self.links.find(link) else { return };
            let Some(connection) = entry.connection.as_deref_mut() else { return };
            match connection.read_tls(&mut rest) {
                Ok(1..) => {}
                // After the server's close_notify nothing more is read.
                Ok(0) => return,
                Err(error) => return self.fail(link, &error, now, io),
            }
            let has_ended = match connection.process_new_packets() {
                Ok(state) => state.peer_has_closed(),
                Err(error) => return self.fail(link, &error, now, io),
            };
            let becomes_ready = !entry.ready && !connection.is_handshaking();
            if becomes_ready && !is_agreed(connection, &site.config.borrow()) {
                return self.fail(link, &NO_HTTP2, now, io);
            }
            entry.ready |= becomes_ready;
            self.links.flush(link, io);
            if becomes_ready {
                let mut io = TlsIo { io: &mut *io, links: &mut self.links, trouble: None };
                self.session.on_connected(link, now, &mut io);
            }
            self.deliver(link, now, io);
            if has_ended {
                return self.end(link, now, io);
            }
        }
    }

    fn on_discarded(&mut self, _link: Link, _n: u64, _now: Nanos, _io: &mut impl Io) {
        // Ciphertext is never discarded unread.
    }

    /// A FIN without `close_notify` may be forged: what it ends may be truncated (RFC 8446 §6.1). A
    /// reply with a length was complete before.
    fn on_eof(&mut self, link: Link, now: Nanos, io: &mut impl Io) {
        if self.links.part(link) {
            return io.close(link);
        }
        match self.links.find(link) {
            None => {}
            Some(TlsLink { ready: false, .. }) => self.fail(link, &CLOSED_IN_HANDSHAKE, now, io),
            Some(TlsLink { ended: true, .. }) => {}
            Some(_) => {
                let why: &dyn fmt::Display = &"it did so without a TLS close_notify";
                self.give_up(link, (ErrorClass::Transport, why), now, io);
            }
        }
    }

    fn on_failed(&mut self, link: Link, error: LinkError, now: Nanos, io: &mut impl Io) {
        if self.links.part(link) {
            return;
        }
        let Some(entry) = self.links.find(link) else { return };
        let in_handshake = entry.connection.is_some() && !entry.ready;
        self.links.remove(link);
        let why = format_args!("{error} during the handshake");
        let (error, trouble): (_, Option<&dyn fmt::Display>) = match in_handshake {
            true => (LinkError { class: ErrorClass::Tls, errno: 0 }, Some(&why)),
            false => (error, None),
        };
        let mut io = TlsIo { io, links: &mut self.links, trouble };
        self.session.on_failed(link, error, now, &mut io);
    }

    fn next_deadline(&self) -> Option<Nanos> {
        self.session.next_deadline()
    }

    fn on_timer(&mut self, now: Nanos, io: &mut impl Io) {
        let mut io = TlsIo { io, links: &mut self.links, trouble: None };
        self.session.on_timer(now, &mut io);
    }

    fn take_follow_on(&mut self, ended: Ticket) -> Option<Self::Op> {
        self.session.take_follow_on(ended)
    }

    fn take_counters(&mut self) -> SessionCounters {
        self.session.take_counters()
    }
}

impl<I: Io> Io for TlsIo<'_, I> {
    fn connect(&mut self, kind: LinkKind) -> Link {
        let link = self.io.connect(kind);
        let fresh =
            TlsLink { link, connection: None, ready: false, ended: false, discard_bytes: 0 };
        self.links.open.push(fresh);
        link
    }

    fn send(&mut self, link: Link, bytes: &[u8]) {
        let entry = self.links.find(link).and_then(|l| l.connection.as_deref_mut());
        if let Some(connection) = entry {
            // Without a buffer limit rustls takes everything.
            let taken = connection.writer().write_all(bytes);
            debug_assert!(taken.is_ok(), "rustls refused plaintext");
            self.links.flush(link, self.io);
        }
    }

    fn discard(&mut self, link: Link, n: u64) {
        if let Some(entry) = self.links.find(link) {
            entry.discard_bytes += n;
        }
    }

    /// Without a `close_notify`: the server has closed first, or the link is given up.
    fn close(&mut self, link: Link) {
        self.links.close(link, self.io);
    }

    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        match self.trouble {
            Some(why) => self.io.explain(format_args!("{detail}: {why}")),
            None => self.io.explain(detail),
        }
    }

    fn complete(&mut self, ticket: Ticket, outcome: Outcome) {
        self.io.complete(ticket, outcome);
    }

    fn arrived(&self) -> Option<Nanos> {
        self.io.arrived()
    }

    fn mark(&mut self, ticket: Ticket, mark: Mark) {
        self.io.mark(ticket, mark);
    }

    fn report_trailing_bytes(&mut self, kind: OpKind) {
        self.io.report_trailing_bytes(kind);
    }
}
