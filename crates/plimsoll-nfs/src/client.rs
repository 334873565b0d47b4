//! A client of any version: its session is one of many calls, or one of NFSv4.1.

use std::rc::Rc;

use plimsoll_engine::interface::{
    ClientContext, Io, Link, LinkError, Session, SessionCounters, Ticket,
};
use plimsoll_model::outcome::OpKind;
use plimsoll_model::units::Nanos;

use super::op::NfsOp;
use super::parameters::NfsVersion;
use super::session::{Granted, NfsSession, NfsSite, Session4};

/// A client of one server.
#[derive(Debug)]
pub enum NfsClient {
    /// Of NFSv2 and NFSv3.
    Calls(Box<NfsSession>),
    /// Of NFSv4.1.
    Session(Box<Session4>),
}

/// Calls a method of the session within.
macro_rules! within {
    ($self:ident, $session:ident => $call:expr) => {
        match $self {
            Self::Calls($session) => $call,
            Self::Session($session) => $call,
        }
    };
}

impl NfsClient {
    /// A client of `site` with at most `outstanding_max` ops under way.
    pub fn new(site: Rc<NfsSite>, client: ClientContext, outstanding_max: u32) -> Self {
        match site.version {
            NfsVersion::V2 | NfsVersion::V3 => {
                Self::Calls(Box::new(NfsSession::new(site, client, outstanding_max)))
            }
            NfsVersion::V4_1 => {
                Self::Session(Box::new(Session4::new(site, client, outstanding_max)))
            }
        }
    }

    /// The same; its first xid is this one, where that is not its own matter.
    pub(crate) fn numbered_from(self, first_xid: u32) -> Self {
        match self {
            Self::Calls(session) => Self::Calls(Box::new(session.numbered_from(first_xid))),
            session @ Self::Session(_) => session,
        }
    }

    /// Takes the message, without record mark and with any xid, of the next call of set-up.
    pub(crate) fn composed(&mut self) -> &mut Vec<u8> {
        within!(self, session => session.composed())
    }

    /// The reply to the call of set-up that ended next, if it ended well.
    pub(crate) fn take_answer(&mut self) -> Option<Vec<u8>> {
        within!(self, session => session.take_answer())
    }

    /// Every datagram in flight is due again.
    pub(crate) fn retry_all(&mut self) {
        if let Self::Calls(session) = self {
            session.retry_all();
        }
    }

    /// Waits for no reply any more.
    pub(crate) fn forget_calls(&mut self) {
        within!(self, session => session.forget_calls());
    }

    /// What the server granted to a session of NFSv4.1.
    pub(crate) fn granted(&self) -> Granted {
        match self {
            Self::Calls(_) => Granted::default(),
            Self::Session(session) => session.granted(),
        }
    }
}

impl Session for NfsClient {
    type Op = NfsOp;

    const BATCH_SENDS: bool = true;

    fn kind(&self, op: &NfsOp) -> OpKind {
        op.kind
    }

    fn has_room(&self) -> bool {
        within!(self, session => session.has_room())
    }

    fn issue(&mut self, ticket: Ticket, op: NfsOp, now: Nanos, io: &mut impl Io) {
        within!(self, session => session.issue(ticket, op, now, io));
    }

    fn on_connected(&mut self, link: Link, now: Nanos, io: &mut impl Io) {
        within!(self, session => session.on_connected(link, now, io));
    }

    fn on_bytes(&mut self, link: Link, bytes: &[u8], now: Nanos, io: &mut impl Io) {
        within!(self, session => session.on_bytes(link, bytes, now, io));
    }

    fn at_boundary(&self, link: Link) -> bool {
        within!(self, session => session.at_boundary(link))
    }

    fn on_discarded(&mut self, link: Link, n: u64, now: Nanos, io: &mut impl Io) {
        within!(self, session => session.on_discarded(link, n, now, io));
    }

    fn on_eof(&mut self, link: Link, now: Nanos, io: &mut impl Io) {
        within!(self, session => session.on_eof(link, now, io));
    }

    fn on_failed(&mut self, link: Link, error: LinkError, now: Nanos, io: &mut impl Io) {
        within!(self, session => session.on_failed(link, error, now, io));
    }

    fn next_deadline(&self) -> Option<Nanos> {
        within!(self, session => session.next_deadline())
    }

    fn on_timer(&mut self, now: Nanos, io: &mut impl Io) {
        within!(self, session => session.on_timer(now, io));
    }

    fn take_follow_on(&mut self, ended: Ticket) -> Option<NfsOp> {
        within!(self, session => session.take_follow_on(ended))
    }

    fn lost(&self) -> Option<String> {
        within!(self, session => session.lost())
    }

    fn log_off(&mut self, now: Nanos, io: &mut impl Io) {
        within!(self, session => session.log_off(now, io));
    }

    fn has_logged_off(&self) -> bool {
        within!(self, session => session.has_logged_off())
    }

    fn take_counters(&mut self) -> SessionCounters {
        within!(self, session => session.take_counters())
    }
}
