//! Replies that are over before their body has ended.

use plimsoll_engine::interface::{Link, LinkError, Mark, Session as _};
use plimsoll_model::outcome::{ErrorClass, OpStatus};

use super::*;
use crate::reader::REST_WAIT;
use crate::test_io::{Bench, OP_TIMEOUT, url_op, url_site};
use crate::wire::request::Method;

const BEGUN: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n";
const END_CHUNK: &[u8] = b"1\r\n!\r\n";

/// A client whose reply ends at `!`, which arrived on this connection at 40 ms.
fn completed_bench() -> (Bench<HttpSession>, Link) {
    let is_complete = |body: &[u8]| body.ends_with(b"!");
    let session = HttpSession::capturing(url_site(Method::POST), is_complete, OP_TIMEOUT);
    let mut bench = Bench::from_session(session);
    let link = ask(&mut bench);
    (bench, link)
}

fn ask(bench: &mut Bench<HttpSession>) -> Link {
    let links_before = bench.io.links;
    bench.issue(url_op(Method::POST));
    let link = Link(bench.io.links);
    if bench.io.links > links_before {
        bench.session.on_connected(link, bench.now, &mut bench.io);
    }
    bench.bytes(link, BEGUN);
    bench.now = bench.now.saturating_add(Nanos::from_millis(40));
    bench.bytes(link, END_CHUNK);
    link
}

#[track_caller]
fn is_good(bench: &Bench<HttpSession>, ops: usize) {
    assert_eq!((bench.io.done.len(), bench.last().status), (ops, OpStatus::Ok));
}

#[test]
fn a_body_that_ends_soon_leaves_the_connection_to_the_next_request() {
    let (mut bench, link) = completed_bench();
    assert_eq!((bench.io.marks.as_slice(), bench.io.done.len()), (&[Mark::Complete][..], 0));
    bench.bytes(link, b"0\r\n\r\n");
    is_good(&bench, 1);
    assert_eq!((ask(&mut bench), bench.io.closed.len()), (link, 0));
}

#[test]
fn a_body_that_stays_open_is_given_up_with_its_connection() {
    let (mut bench, link) = completed_bench();
    assert_eq!(bench.session.next_deadline(), Some(bench.now.saturating_add(REST_WAIT)));
    bench.now = bench.now.saturating_add(REST_WAIT);
    bench.session.on_timer(bench.now, &mut bench.io);
    is_good(&bench, 1);
    assert_eq!(bench.io.closed, [link]);
    // The third in a row; from then on nothing is waited for.
    for ops in 2..=3 {
        ask(&mut bench);
        bench.now = bench.now.saturating_add(REST_WAIT);
        bench.session.on_timer(bench.now, &mut bench.io);
        is_good(&bench, ops);
    }
    ask(&mut bench);
    is_good(&bench, 4);
    assert_eq!((bench.io.closed.len(), bench.io.links), (4, 4), "none is left open");
}

#[test]
fn what_becomes_of_the_connection_fails_no_reply_that_is_over() {
    let endings: [fn(&mut Bench<HttpSession>, Link); 4] = [
        |bench, link| bench.eof(link),
        |bench, link| bench.reset(link),
        |bench, link| bench.bytes(link, b"no chunk"),
        |bench, link| {
            let error = LinkError { class: ErrorClass::Tls, errno: 0 };
            bench.session.on_failed(link, error, bench.now, &mut bench.io);
        },
    ];
    for end in endings {
        let (mut bench, link) = completed_bench();
        end(&mut bench, link);
        is_good(&bench, 1);
        assert_ne!(ask(&mut bench), link);
    }
}
