//! Replies that are over before their stream has ended.

use super::*;
use crate::reader::REST_WAIT;

/// Two ops of a connection, whose second reply is over and whose stream is not.
fn completed_peer() -> Peer {
    let mut peer = Peer::from_site(body_site(&RequestText::plain(Method::GET, "/page")), 4);
    let site = body_site(&RequestText::plain(Method::GET, "/page"));
    let reader = Plain::Kept(Vec::new(), |body| body.ends_with(b"!"));
    let settings = H2Settings { streams: 4, windows: WINDOWS };
    peer.session = H2Session::new(site, settings, reader, OP_TIMEOUT);
    peer.issue(0, url_op(Method::GET));
    peer.open(&[]);
    peer.issue(1, url_op(Method::GET));
    peer.now = Nanos::from_millis(40);
    let open = frame(kind::DATA, 0, 3, b"hi!");
    peer.send_frames(&[head(1, 0, OK), head(3, 0, OK), open]);
    peer.sent();
    peer
}

#[test]
fn a_stream_that_stays_open_after_its_reply_is_given_up_and_its_connection_is_not() {
    let mut peer = completed_peer();
    assert_eq!((peer.io.done.len(), peer.io.marks.len()), (0, 1));
    let until = peer.now.saturating_add(REST_WAIT);
    assert_eq!(peer.session.next_deadline(), Some(until));
    peer.now = until;
    peer.session.on_timer(until, &mut peer.io);
    assert_eq!(
        (peer.last().0.status, peer.io.tickets.as_slice()),
        (OpStatus::Ok, &[Ticket(1)][..])
    );
    assert_eq!((peer.sent(), peer.io.closed.len()), (vec![(kind::RST_STREAM, 3)], 0));
    peer.send_frames(&data(1, b"x"));
    assert_eq!((peer.last().0.status, peer.io.done.len()), (OpStatus::Ok, 2));
}

#[test]
fn a_stream_or_connection_that_breaks_after_its_reply_fails_nothing() {
    for end in [data(3, b""), vec![reset(3, 8)], vec![reset(3, 2)], vec![goaway(1)]] {
        let mut peer = completed_peer();
        peer.send_frames(&end);
        peer.eof();
        let statuses: Vec<_> = peer.io.done.iter().map(|outcome| outcome.status).collect();
        let lost = OpStatus::Failed(ErrorClass::Truncated);
        assert!(statuses.contains(&OpStatus::Ok) && statuses.contains(&lost), "{statuses:?}");
    }
}
