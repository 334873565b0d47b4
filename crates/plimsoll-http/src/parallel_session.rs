//! A client of HTTP/1.1 with several connections at a time, an op in flight on each, as browsers have
//! them. RFC 9112 §9.4

use std::rc::Rc;

use plimsoll_engine::interface::{Io, Link, LinkError, Session, SessionCounters, Ticket};
use plimsoll_model::outcome::OpKind;
use plimsoll_model::units::Nanos;

use super::reader::Reader;
use super::session::HttpSession;
use super::site::{HttpOp, WorkerSite};

/// One client, whose replies are read by an `R` for each connection.
#[derive(Debug)]
pub(crate) struct ParallelSession<R: Reader> {
    sessions: Vec<HttpSession<R>>,
}

impl<R: Reader> ParallelSession<R> {
    /// A client of `site` with as many connections as there are readers.
    pub(crate) fn new(
        site: &Rc<WorkerSite>,
        readers: impl Iterator<Item = R>,
        op_timeout: Nanos,
    ) -> Self {
        let session = |reader| HttpSession::new(Rc::clone(site), reader, op_timeout);
        Self { sessions: readers.map(session).collect() }
    }

    fn session_of(&self, link: Link) -> Option<&HttpSession<R>> {
        self.sessions.iter().find(|session| session.has_link(link))
    }

    fn session_of_mut(&mut self, link: Link) -> Option<&mut HttpSession<R>> {
        self.sessions.iter_mut().find(|session| session.has_link(link))
    }
}

impl<R: Reader> Session for ParallelSession<R> {
    type Op = HttpOp;

    fn kind(&self, op: &HttpOp) -> OpKind {
        op.kind
    }

    fn has_room(&self) -> bool {
        self.sessions.iter().any(Session::has_room)
    }

    fn issue(&mut self, ticket: Ticket, op: HttpOp, now: Nanos, io: &mut impl Io) {
        if self.sessions.first().is_some_and(|session| session.begins_user(&op)) {
            self.sessions.iter_mut().for_each(|session| session.leave_connection(io));
        }
        // One that has a connection first.
        let is_connected =
            |session: &HttpSession<R>| session.has_room() && session.has_connection();
        let index = self.sessions.iter().position(is_connected);
        let index = index.or_else(|| self.sessions.iter().position(Session::has_room));
        if let Some(index) = index {
            self.sessions[index].issue(ticket, op, now, io);
        }
    }

    fn on_connected(&mut self, link: Link, now: Nanos, io: &mut impl Io) {
        if let Some(session) = self.session_of_mut(link) {
            session.on_connected(link, now, io);
        }
    }

    fn on_bytes(&mut self, link: Link, bytes: &[u8], now: Nanos, io: &mut impl Io) {
        if let Some(session) = self.session_of_mut(link) {
            session.on_bytes(link, bytes, now, io);
        }
    }

    fn on_discarded(&mut self, link: Link, n: u64, now: Nanos, io: &mut impl Io) {
        if let Some(session) = self.session_of_mut(link) {
            session.on_discarded(link, n, now, io);
        }
    }

    fn on_eof(&mut self, link: Link, now: Nanos, io: &mut impl Io) {
        if let Some(session) = self.session_of_mut(link) {
            session.on_eof(link, now, io);
        }
    }

    fn on_failed(&mut self, link: Link, error: LinkError, now: Nanos, io: &mut impl Io) {
        if let Some(session) = self.session_of_mut(link) {
            session.on_failed(link, error, now, io);
        }
    }

    fn next_deadline(&self) -> Option<Nanos> {
        self.sessions.iter().filter_map(Session::next_deadline).min()
    }

    fn on_timer(&mut self, now: Nanos, io: &mut impl Io) {
        for session in &mut self.sessions {
            if session.next_deadline().is_some_and(|deadline| deadline <= now) {
                session.on_timer(now, io);
            }
        }
    }

    fn read_limit(&self, link: Link) -> usize {
        self.session_of(link).map_or(usize::MAX, |session| session.read_limit(link))
    }

    fn lost(&self) -> Option<String> {
        self.sessions.iter().find_map(Session::lost)
    }

    fn take_counters(&mut self) -> SessionCounters {
        let mut sum = SessionCounters::default();
        self.sessions.iter_mut().for_each(|session| sum.add(session.take_counters()));
        sum
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::outcome::{ErrorClass, OpStatus};

    use super::*;
    use crate::reader::Plain;
    use crate::test_io::{Bench, OP_TIMEOUT, reply, url_op, url_site};
    use crate::wire::request::Method;

    /// A client with two connections and an op in flight on each.
    fn busy() -> (Bench<ParallelSession<Plain>>, [Link; 2]) {
        let readers = [Plain::Unread, Plain::Unread].into_iter();
        let site = url_site(Method::GET);
        let mut bench = Bench::from_session(ParallelSession::new(&site, readers, OP_TIMEOUT));
        let op = url_op(Method::GET);
        bench.session.issue(Ticket(1), op, bench.now, &mut bench.io);
        bench.session.issue(Ticket(2), op, bench.now, &mut bench.io);
        assert!(!bench.session.has_room());
        let links = [Link(1), Link(2)];
        for link in links {
            bench.session.on_connected(link, bench.now, &mut bench.io);
        }
        (bench, links)
    }

    #[test]
    fn replies_come_in_any_order_and_connections_are_kept() {
        let (mut bench, [first, second]) = busy();
        bench.bytes(second, &reply(b"b"));
        assert_eq!(bench.io.tickets, [Ticket(2)]);
        bench.session.issue(Ticket(3), url_op(Method::GET), bench.now, &mut bench.io);
        bench.bytes(first, &reply(b"a"));
        bench.bytes(second, &reply(b"c"));
        assert_eq!(bench.io.tickets, [Ticket(2), Ticket(1), Ticket(3)]);
        assert_eq!((bench.io.links, bench.io.closed.len()), (2, 0));
        assert!(bench.io.done.iter().all(|outcome| outcome.status == OpStatus::Ok));
    }

    #[test]
    fn a_connection_that_breaks_costs_no_other() {
        let (mut bench, [first, second]) = busy();
        bench.bytes(first, b"HTTP/1.1 2");
        bench.reset(first);
        assert_eq!(bench.last().status, OpStatus::Failed(ErrorClass::Truncated));
        assert!(bench.session.session_of(first).is_none());
        bench.bytes(second, &reply(b"b"));
        assert_eq!((bench.io.tickets.len(), bench.last().status), (2, OpStatus::Ok));
        // The one that is left goes on.
        bench.session.issue(Ticket(4), url_op(Method::GET), bench.now, &mut bench.io);
        assert_eq!((bench.io.links, bench.io.sent.last().unwrap().0), (2, second));
    }

    #[test]
    fn each_op_has_its_timeout() {
        let (mut bench, [_, second]) = busy();
        bench.bytes(second, &reply(b"b"));
        let deadline = bench.session.next_deadline();
        assert_eq!(deadline, Some(bench.now.saturating_add(OP_TIMEOUT)));
        bench.session.on_timer(deadline.unwrap(), &mut bench.io);
        assert_eq!(bench.io.tickets, [Ticket(2), Ticket(1)]);
        assert_eq!(bench.last().status, OpStatus::Failed(ErrorClass::Timeout));
        assert_eq!(bench.session.next_deadline(), None);
    }
}
