//! How clients are lost, and the messages then.

use plimsoll_engine::interface::{Link, LinkError, Session, Ticket};
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use plimsoll_model::units::Nanos;
use proptest::prelude::*;

use super::bench::*;
use super::server::{Reply, error_body};
use super::{every_op, with_file};
use crate::op::*;
use crate::wire::header::{Header, flags};
use crate::wire::{Command, status};

const SUCCESS: Expected = Expected::Success;
const TRANSPORT: OpStatus = OpStatus::Failed(ErrorClass::Transport);
const MALFORMED: OpStatus = OpStatus::Failed(ErrorClass::Malformed);

/// Two ops are under way; then something happens. The first ends with that status, the second with
/// a transport error, and the client is lost with that reason.
fn loses(first: OpStatus, reason: &str, happens: impl FnOnce(&mut Bench, Vec<Reply>)) {
    let mut bench = with_file(&Setting::default());
    let tickets = [bench.issue(read(1, 0, 4_096), SUCCESS), bench.issue(SmbOp::Echo, SUCCESS)];
    let replies = bench.replies();
    happens(&mut bench, replies);
    let lost = bench.session.lost().expect("the client is lost");
    assert!(lost.contains(reason), "{lost}");
    assert_eq!(bench.outcome(tickets[0]).unwrap().status, first, "{lost}");
    let second = bench.outcome(tickets[1]).unwrap().status;
    assert!(second == TRANSPORT || second == first, "{second:?}");
    assert_eq!(bench.session.next_deadline(), None);
    // It does not come back.
    let outcome = bench.run(SmbOp::Echo, SUCCESS);
    assert_eq!(outcome.status, TRANSPORT);
    assert_eq!(bench.io.links, 1);
}

#[test]
fn a_connection_that_ends_ends_the_client() {
    loses(TRANSPORT, "closed the connection", |bench, _| {
        bench.session.on_eof(bench.link, bench.now, &mut bench.io);
        assert_eq!(bench.io.closed, [bench.link]);
    });
    loses(TRANSPORT, "reset by peer (os error 104); see whether the server", |bench, _| {
        bench.reset();
        assert!(bench.io.closed.is_empty(), "it is closed already");
    });
    loses(TRANSPORT, "closed the connection", |bench, replies| {
        let bytes = framed(&replies[..1]);
        bench.bytes(&bytes[..bytes.len() - 1]);
        bench.session.on_eof(bench.link, bench.now, &mut bench.io);
    });
}

#[test]
fn a_reply_that_does_not_come_ends_the_client() {
    let timeout = OpStatus::Failed(ErrorClass::Timeout);
    loses(timeout, "read of 4096 bytes at 0 (handle 1): no reply within", |bench, _| {
        bench.pass(OP_TIMEOUT);
    });
    loses(timeout, "STATUS_PENDING", |bench, replies| {
        bench.deliver(&replies[0].interim());
        bench.pass(OP_TIMEOUT);
    });
    loses(timeout, "; see whether the server still runs", |bench, _| bench.pass(OP_TIMEOUT));
}

#[test]
fn a_session_or_share_that_is_gone_ends_the_client() {
    for (code, reason) in [
        (status::USER_SESSION_DELETED, "forgotten the session"),
        (status::NETWORK_SESSION_EXPIRED, "expired"),
        (status::NETWORK_NAME_DELETED, "share"),
    ] {
        loses(OpStatus::Failed(ErrorClass::Status(code)), reason, |bench, replies| {
            bench.deliver(&replies[0].clone().with_status(code));
        });
    }
}

#[test]
fn replies_that_make_no_sense_end_the_client() {
    loses(MALFORMED, "another command; see what the server is", |bench, mut replies| {
        replies[0].header.command = Command::Write;
        bench.deliver(&replies[0]);
    });
    loses(MALFORMED, "request", |bench, mut replies| {
        replies[0].header.flags &= !flags::RESPONSE;
        bench.deliver(&replies[0]);
    });
    loses(MALFORMED, "pending", |bench, replies| {
        bench.deliver(&replies[0].clone().with_status(status::PENDING));
    });
    for offset in [0, 79, 81, 255] {
        loses(MALFORMED, "cannot be read", |bench, mut replies| {
            replies[0].body[2] = offset;
            bench.deliver(&replies[0]);
        });
    }
    loses(MALFORMED, "cannot be read", |bench, mut replies| {
        replies[0].body[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        bench.deliver(&replies[0]);
    });
    loses(MALFORMED, "message of", |bench, _| bench.bytes(&[0, 0xff, 0xff, 0xff]));
    loses(MALFORMED, "see whether an SMB server listens", |bench, _| bench.bytes(b"HTTP/1.1 400 "));
    loses(MALFORMED, "does not speak SMB", |bench, _| bench.bytes(b"HTTP/1.1 400 "));
    loses(MALFORMED, "which is not SMB2", |bench, _| bench.bytes(b"\0\0\0\x05hello"));
}

#[test]
fn more_bytes_than_asked_for_are_not_credited() {
    let mut bench = with_file(&Setting::default());
    let ticket = bench.issue(read(1, 0, 4_096), SUCCESS);
    let mut reply = bench.replies().remove(0);
    reply.body[4..8].copy_from_slice(&4_097u32.to_le_bytes());
    reply.body.push(0);
    bench.deliver(&reply);
    let outcome = bench.outcome(ticket).unwrap();
    assert_eq!(outcome.status, OpStatus::Failed(ErrorClass::Length));
    assert_eq!(outcome.bytes_read, 4_096);
}

#[test]
fn fewer_bytes_written_than_sent_are_an_error() {
    let mut bench = with_file(&Setting::default());
    let ticket = bench.issue(write(1, 0, 4_096), SUCCESS);
    let mut reply = bench.replies().remove(0);
    reply.body[4..8].copy_from_slice(&4_000u32.to_le_bytes());
    bench.deliver(&reply);
    let outcome = bench.outcome(ticket).unwrap();
    assert_eq!(outcome.status, OpStatus::Failed(ErrorClass::Length));
    assert_eq!(outcome.bytes_written, 4_000);
}

#[test]
fn second_replies_and_those_to_nobody_change_nothing() {
    let mut bench = with_file(&Setting::default());
    let ticket = bench.issue(SmbOp::Echo, SUCCESS);
    let reply = bench.replies().remove(0);
    for message_id in [0, 3, reply.header.message_id + 1, u64::MAX - 1] {
        let mut stranger = reply.clone();
        stranger.header.message_id = message_id;
        bench.deliver(&stranger);
    }
    assert_eq!(bench.outcome(ticket), None);
    for _ in 0..3 {
        bench.deliver(&reply);
    }
    assert!(bench.outcome(ticket).is_some());
    bench.succeed(SmbOp::Echo);
}

#[test]
fn too_many_unexpected_statuses_end_the_client_and_a_few_do_not() {
    let mut bench = Bench::new(&Setting::default());
    let missing = || SmbOp::Unlink { path: text("no") };
    for _ in 0..UNEXPECTED_MAX {
        bench.run(missing(), SUCCESS);
        assert_eq!(bench.session.lost(), None);
    }
    let waiting = bench.issue(SmbOp::Echo, SUCCESS);
    let last = bench.issue(missing(), SUCCESS);
    let replies = bench.replies();
    bench.bytes(&framed(&replies[1..]));
    assert!(matches!(bench.outcome(last).unwrap().status, OpStatus::Unexpected { .. }));
    assert_eq!(bench.outcome(waiting).unwrap().status, TRANSPORT);
    let lost = bench.session.lost().unwrap();
    assert!(lost.starts_with("4 ops ended with another status than expected (allowed: 3)"));
    assert!(
        lost.ends_with(
            "unlink no: expected NT_STATUS_OK, the server answered \
         NT_STATUS_OBJECT_NAME_NOT_FOUND"
        ),
        "{lost}"
    );
}

#[test]
fn a_server_that_wants_other_files_removed_is_not_obeyed() {
    let mut bench = Bench::new(&Setting::default());
    bench.server.files.insert("t".to_owned(), None);
    bench.server.files.insert("t\\..".to_owned(), Some(Vec::new()));
    bench.server.files.insert("t\\a/b".to_owned(), Some(Vec::new()));
    let ticket = bench.issue(SmbOp::Deltree { path: text("t") }, SUCCESS);
    bench.serve();
    assert_eq!(bench.outcome(ticket).unwrap().status, MALFORMED);
    assert!(bench.session.lost().unwrap().contains("a name that no file can have"));
}

#[test]
fn ops_wait_for_connection_and_logon_and_end_with_them() {
    let mut bench = Bench::fresh();
    let tickets: Vec<Ticket> =
        (0..OUTSTANDING_MAX).map(|_| bench.issue(SmbOp::Echo, SUCCESS)).collect();
    assert!(!bench.session.has_room());
    assert!(bench.io.sent.is_empty() && bench.io.links == 1);
    bench.session.on_connected(Link(1), bench.now, &mut bench.io);
    assert_eq!(bench.io.sent.len(), 1, "only NEGOTIATE goes out");
    bench.bytes(b"\0\0\0\x05hello");
    for ticket in tickets {
        assert_eq!(bench.outcome(ticket).unwrap().status, MALFORMED);
    }
    assert!(bench.session.lost().unwrap().contains("NEGOTIATE"));
}

#[test]
fn a_server_that_cannot_be_reached_in_time_or_at_all_is_told() {
    let mut bench = Bench::fresh();
    let ticket = bench.issue(SmbOp::Echo, SUCCESS);
    bench.pass(OP_TIMEOUT);
    let status = bench.outcome(ticket).unwrap().status;
    assert_eq!(status, OpStatus::Failed(ErrorClass::Timeout));
    assert!(bench.session.lost().unwrap().contains("no connection within"));

    let mut bench = Bench::fresh();
    let ticket = bench.issue(SmbOp::Echo, SUCCESS);
    let error = LinkError { class: ErrorClass::PortsExhausted, errno: 99 };
    bench.session.on_failed(Link(1), error, bench.now, &mut bench.io);
    let status = bench.outcome(ticket).unwrap().status;
    assert_eq!(status, OpStatus::Failed(ErrorClass::PortsExhausted));
}

#[test]
fn a_logon_of_its_own_that_fails_ends_and_leaves_the_client_in_the_mix() {
    let mut bench = Bench::fresh();
    let logon = |bench: &mut Bench| bench.issue(SmbOp::Logon, SUCCESS);
    let tickets = [logon(&mut bench), logon(&mut bench), logon(&mut bench), logon(&mut bench)];
    assert_eq!(bench.io.links, 4);
    let error = LinkError { class: ErrorClass::Transport, errno: 111 };
    bench.session.on_failed(Link(1), error, bench.now, &mut bench.io);
    for link in [2, 3, 4] {
        bench.session.on_connected(Link(link), bench.now, &mut bench.io);
    }
    assert_eq!(bench.io.sent.len(), 3);
    bench.session.on_eof(Link(2), bench.now, &mut bench.io);
    bench.session.on_bytes(Link(3), b"\0\0\0\x05hello", bench.now, &mut bench.io);
    bench.pass(OP_TIMEOUT + Nanos(1));
    let statuses = tickets.map(|ticket| bench.outcome(ticket).unwrap().status);
    let timeout = OpStatus::Failed(ErrorClass::Timeout);
    assert_eq!(statuses, [TRANSPORT, TRANSPORT, MALFORMED, timeout]);
    assert_eq!(bench.io.closed, [Link(2), Link(3), Link(4)]);
    assert_eq!((bench.session.lost(), bench.session.next_deadline()), (None, None));
}

#[test]
fn refused_logons_are_told_with_the_next_move_and_never_end_the_client() {
    let mut bench = Bench::fresh();
    let header = Header {
        status: status::NOT_SUPPORTED,
        flags: flags::RESPONSE,
        ..Header::new(Command::Negotiate)
    };
    let refusal = framed(&[Reply { header, body: error_body() }]);
    for nth in 1..=u64::from(UNEXPECTED_MAX) + 2 {
        let ticket = bench.issue(SmbOp::Logon, SUCCESS);
        bench.session.on_connected(Link(nth), bench.now, &mut bench.io);
        bench.session.on_bytes(Link(nth), &refusal, bench.now, &mut bench.io);
        let unexpected = OpStatus::Unexpected { expected: 0, actual: status::NOT_SUPPORTED };
        assert_eq!(bench.outcome(ticket).unwrap().status, unexpected);
        let message = &bench.io.detail;
        assert!(
            message.starts_with("logon: ") && message.ends_with("raise dialect_max"),
            "{message}"
        );
        assert_eq!(bench.session.lost(), None);
    }
}

#[test]
fn a_connection_that_ends_between_two_ops_leaves_no_room_so_that_the_loss_is_heard_of() {
    let mut bench = with_file(&Setting::default());
    assert!(bench.session.has_room());
    bench.session.on_eof(bench.link, bench.now, &mut bench.io);
    assert!(!bench.session.has_room());
    assert!(bench.session.lost().unwrap().contains("closed the connection"));
}

proptest! {
    #[test]
    fn bytes_of_any_kind_never_panic(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..6),
        framed in any::<bool>(),
    ) {
        let mut bench = with_file(&Setting::default());
        bench.issue(read(1, 0, 4_096), SUCCESS);
        for part in parts {
            if framed {
                bench.bytes(&(part.len() as u32).to_be_bytes());
            }
            bench.bytes(&part);
        }
    }

    #[test]
    fn a_reply_with_any_byte_changed_or_missing_ends_its_op_once_or_not_at_all(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let ops = every_op();
        let (op, _) = ops[which.index(ops.len())].clone();
        let mut bench = with_file(&Setting::default());
        bench.issue(op, Expected::Anything);
        let replies = bench.replies();
        let mut bytes = framed(&replies);
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] = value;
        }
        bench.bytes(&bytes);
        bench.pass(OP_TIMEOUT);
        prop_assert_eq!(bench.io.done.len(), bench.issued.len());
    }
}
