//! Connections that have ended, or are about to: those that the server will close after its reply,
//! and why one that was to be held is gone.

use plimsoll_engine::seam::{Io, Link};

use super::site::HttpOp;
use super::tls::LINGERING_LINKS_MAX;

/// Why a connection that was to be held is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Gone {
    /// The server closed it, or it broke, while nothing was asked for.
    #[error("the server closed the idle connection")]
    Idle,
    /// A request failed on it.
    #[error("a request on the connection failed")]
    WithRequest,
    /// The server closed it after a reply, as the reply said.
    #[error("the server closed the connection after a reply")]
    AfterReply,
}

/// A link that waits for its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lingering {
    pub(super) link: Link,
    /// The op that the last reply on it answered, if that ended well.
    pub(super) answered: Option<HttpOp>,
    /// The reply announced that the server would keep it.
    pub(super) to_be_kept: bool,
}

/// The links of one client that wait for their end.
#[derive(Debug, Default)]
pub(super) struct LingeringLinks(Vec<Lingering>);

impl LingeringLinks {
    /// Leaves the closing to the server, so that the waiting for late segments is its own.
    pub(super) fn add(&mut self, lingering: Lingering, io: &mut impl Io) {
        if self.0.len() == LINGERING_LINKS_MAX {
            io.close(self.0.remove(0).link);
        }
        self.0.push(lingering);
    }

    /// Forgets a link that waited for its end, if it is one.
    pub(super) fn stop(&mut self, link: Link) -> Option<Lingering> {
        let at = self.0.iter().position(|lingering| lingering.link == link)?;
        Some(self.0.remove(at))
    }

    /// Heap bytes.
    pub(super) const fn held_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Lingering>()
    }
}

#[cfg(test)]
mod tests {
    use crate::session::HttpSession;
    use crate::test_io::{Bench, reply, url_op, url_site};
    use crate::wire::request::Method;
    use plimsoll_engine::seam::{Link, LinkError, Session as _};
    use plimsoll_model::outcome::{ErrorClass, OpStatus};
    use plimsoll_model::units::Nanos;

    /// A client whose POST is under way on a connection that has carried one before.
    fn posted() -> (Bench<HttpSession>, Link) {
        let mut bench = Bench::new(url_site(Method::POST));
        let link = bench.issue_and_connect(url_op(Method::POST));
        bench.bytes(link, &reply(b"x"));
        bench.issue(url_op(Method::POST));
        (bench, link)
    }

    /// The POST is sent again on a new connection and answered: its outcome, and whether it counts
    /// as reconnected.
    fn again(bench: &mut Bench<HttpSession>) -> (bool, u64) {
        assert_eq!(bench.io.links, 2, "it connects again");
        let second = Link(2);
        bench.session.on_connected(second, bench.now, &mut bench.io);
        bench.bytes(second, &reply(b"x"));
        assert_eq!((bench.io.done.len(), bench.last().status), (2, OpStatus::Ok));
        let counted = bench.session.take_counters();
        assert_eq!(counted.unkept, 1);
        (bench.last().ambiguous, counted.reconnected)
    }

    #[test]
    fn a_request_that_met_a_closed_connection_was_not_read_and_is_not_ambiguous() {
        let (mut bench, link) = posted();
        bench.io.refused.push(link);
        bench.eof(link);
        assert_eq!(again(&mut bench), (false, 1));
    }

    #[test]
    fn a_reset_that_follows_the_servers_end_says_the_same() {
        let (mut bench, link) = posted();
        bench.eof(link);
        assert_eq!(bench.io.links, 1, "it waits for the reset");
        bench.io.refused.push(link);
        bench.eof(link);
        assert_eq!(again(&mut bench), (false, 1));
    }

    #[test]
    fn bytes_that_the_socket_did_not_take_were_not_read() {
        let (mut bench, link) = posted();
        let error = LinkError { class: ErrorClass::Transport, errno: 32 };
        bench.session.on_failed(link, error, bench.now, &mut bench.io);
        assert_eq!(again(&mut bench), (false, 1));
    }

    #[test]
    fn a_request_under_way_is_ambiguous_when_the_server_closes_and_no_reset_comes() {
        let (mut bench, link) = posted();
        bench.eof(link);
        assert_eq!(bench.session.next_deadline(), Some(Nanos::from_millis(1)));
        bench.now = Nanos::from_millis(1);
        bench.session.on_timer(bench.now, &mut bench.io);
        assert_eq!(bench.io.closed, [link]);
        assert_eq!(again(&mut bench), (true, 0));
    }

    #[test]
    fn a_reset_alone_may_follow_a_request_that_was_read() {
        let (mut bench, link) = posted();
        bench.reset(link);
        assert_eq!(again(&mut bench), (true, 0));
    }

    /// The newest connection carries a reply and ends under the next request, which goes out again.
    fn ends_under_the_next_request(bench: &mut Bench<HttpSession>) {
        let link = Link(bench.io.links);
        bench.bytes(link, &reply(b"x"));
        bench.issue(url_op(Method::POST));
        bench.reset(link);
        bench.session.on_connected(Link(bench.io.links), bench.now, &mut bench.io);
    }

    /// Another reply, and the next request: whether that takes a new connection.
    fn takes_a_new_connection(bench: &mut Bench<HttpSession>) -> bool {
        let link = Link(bench.io.links);
        bench.bytes(link, &reply(b"x"));
        bench.issue(url_op(Method::POST));
        bench.io.links > link.0
    }

    #[test]
    fn a_server_that_ends_each_connection_against_its_word_gets_one_for_each_request() {
        let mut bench = Bench::new(url_site(Method::POST));
        bench.issue_and_connect(url_op(Method::POST));
        for _ in 0..3 {
            ends_under_the_next_request(&mut bench);
        }
        assert!(takes_a_new_connection(&mut bench));
        bench.eof(Link(4));
        bench.session.on_connected(Link(5), bench.now, &mut bench.io);
        bench.bytes(Link(5), &reply(b"x"));
        assert_eq!((bench.last().status, bench.last().ambiguous), (OpStatus::Ok, false));
        assert_eq!(bench.session.take_counters().unkept, 4);
    }

    #[test]
    fn a_second_reply_on_a_connection_shows_that_the_server_keeps_some() {
        let mut bench = Bench::new(url_site(Method::POST));
        bench.issue_and_connect(url_op(Method::POST));
        for _ in 0..2 {
            ends_under_the_next_request(&mut bench);
        }
        assert!(!takes_a_new_connection(&mut bench));
        for _ in 0..2 {
            ends_under_the_next_request(&mut bench);
        }
        assert!(!takes_a_new_connection(&mut bench));
    }

    #[test]
    fn an_idle_connection_that_the_server_closes_is_counted() {
        let mut bench = Bench::new(url_site(Method::GET));
        let link = bench.issue_and_connect(url_op(Method::GET));
        bench.bytes(link, &reply(b"x"));
        bench.eof(link);
        assert_eq!((bench.io.closed.len(), bench.session.take_counters().unkept), (1, 1));
    }
}
