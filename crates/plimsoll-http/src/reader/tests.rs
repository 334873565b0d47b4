use plimsoll_engine::interface::{Link, LinkError, Session as _};
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use plimsoll_model::units::Nanos;

use crate::parameters::Connections::PerRequest;
use crate::session::HttpSession;
use crate::spare_links::LINGERING_LINKS_MAX;
use crate::test_io::{Bench, SMALL, file_op, file_set, file_site, reply, url_op, url_site};
use crate::wire::request::Method;

/// A client whose POST is in flight on a connection that has carried one before.
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

/// A client after `ops` replies that each announce the end of their connection; `ended` selects
/// the connections that the server does close.
fn left_open(spare: u32, ended: impl Fn(u64) -> bool, ops: u64) -> Bench<HttpSession> {
    let site = url_site(Method::GET);
    site.spare_links.limit(spare);
    let mut bench = Bench::new(site);
    for _ in 0..ops {
        let link = bench.issue_and_connect(url_op(Method::GET));
        bench.bytes(link, b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        if ended(link.0) {
            bench.eof(link);
        }
    }
    assert_eq!(bench.io.done.len() as u64, ops);
    bench
}

/// wrk #47, k6 #2006.
#[test]
fn a_server_that_leaves_the_closing_to_the_client_gets_its_connections_closed() {
    let open = |bench: &Bench<HttpSession>| bench.io.links - bench.io.closed.len() as u64;
    for ops in 1..=10 {
        let bench = left_open(1_000, |_| false, ops);
        assert_eq!(open(&bench), ops.min(8), "{:?}", bench.io.closed);
    }
    assert_eq!(open(&left_open(1_000, |_| false, 11)), 0);
    assert_eq!(open(&left_open(1_000, |_| false, 40)), 0);
    // One that closes some of them is waited for.
    assert_eq!(open(&left_open(1_000, |link| link % 2 == 0, 41)), 8);
}

#[test]
fn links_wait_for_their_end_only_where_open_files_are_left_for_them() {
    let open = |bench: &Bench<HttpSession>| bench.io.links - bench.io.closed.len() as u64;
    assert_eq!(open(&left_open(0, |_| false, 5)), 0);
    assert_eq!(open(&left_open(3, |_| false, 5)), 3);
    let bench = left_open(1, |_| true, 5);
    assert!(bench.io.closed.iter().map(|link| link.0).eq(1..=5), "{:?}", bench.io.closed);
}

#[test]
fn an_idle_connection_that_the_server_closes_is_counted() {
    let mut bench = Bench::new(url_site(Method::GET));
    let link = bench.issue_and_connect(url_op(Method::GET));
    bench.bytes(link, &reply(b"x"));
    bench.eof(link);
    assert_eq!((bench.io.closed.len(), bench.session.take_counters().unkept), (1, 1));
}

#[test]
fn links_that_the_server_never_closes_are_bounded() {
    let mut bench = Bench::new(file_site(PerRequest));
    let body = reply(file_set().content(SMALL));
    for _ in 0..LINGERING_LINKS_MAX + 3 {
        let link = bench.issue_and_connect(file_op(SMALL));
        bench.bytes(link, &body);
    }
    // After three in a row that were left open, the server is not waited for.
    assert_eq!(bench.io.closed.len(), LINGERING_LINKS_MAX + 3);
}
