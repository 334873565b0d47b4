//! A server whose replies differ from MS-SMB2 and mean the same is measured as any other.

use plimsoll_engine::interface::{Session, SessionCounters};
use plimsoll_model::nonconformity::NonconformityKind as Kind;
use plimsoll_model::outcome::{ErrorClass, OpStatus};

use super::bench::*;
use super::server::{Reply, encoded};
use super::{every_op, with_file};
use crate::op::*;
use crate::wire::open_file::CloseResponse;
use crate::wire::{Command, QueryInfoResponse, status};

/// As impacket answers: the action is the disposition, and a failure has the body of a success.
fn like_impacket(reply: &mut Reply) {
    let has_failed = status::is_failure(reply.header.status);
    match reply.header.command {
        Command::Create if !has_failed => reply.body[4] = 5,
        Command::Close if has_failed => {
            reply.body = encoded(|out| CloseResponse::default().encode(out));
        }
        _ => {}
    }
}

/// Has an op served by a server that changes its replies.
fn run(bench: &mut Bench, op: SmbOp, expected: Expected, change: impl Fn(&mut Reply)) -> OpStatus {
    let ticket = bench.issue(op, expected);
    loop {
        let mut replies = bench.replies();
        if replies.is_empty() {
            return bench.outcome(ticket).unwrap().status;
        }
        replies.iter_mut().for_each(&change);
        bench.bytes(&framed(&replies));
    }
}

/// Command, section, field, kind and count of what was noted since the last call.
fn noted(bench: &mut Bench) -> Vec<(String, String, Option<String>, Kind, u64)> {
    let SessionCounters { nonconformities, .. } = bench.session.take_counters();
    let row = |one: &plimsoll_model::nonconformity::Nonconformity| {
        let field = one.field.as_ref().map(ToString::to_string);
        (one.reply_to.to_string(), one.section.to_string(), field, one.kind, one.count)
    };
    nonconformities.iter().map(row).collect()
}

#[test]
fn a_server_like_impacket_does_every_op_and_its_ways_are_counted() {
    let mut bench = with_file(&Setting::default());
    let mut creates = 0;
    for (op, commands) in every_op() {
        creates += commands.iter().filter(|command| **command == Command::Create).count() as u64;
        let text = format!("{op:?}");
        let status = run(&mut bench, op, Expected::Success, like_impacket);
        assert_eq!(status, OpStatus::Ok, "{text}: {}", bench.io.detail);
    }
    let missing = || SmbOp::QueryPath { path: text("no"), level: FileLevel::Basic };
    let no_such_name = Expected::Failure(status::OBJECT_NAME_NOT_FOUND);
    for _ in 0..2 {
        let status = run(&mut bench, missing(), no_such_name, like_impacket);
        assert_eq!(status, OpStatus::ExpectedFailure);
    }
    assert_eq!(bench.session.lost(), None);
    let row = |command: &str, section: &str, field: &str, kind, count| {
        (command.to_owned(), section.to_owned(), Some(field.to_owned()), kind, count)
    };
    let expected = [
        row("CREATE", "2.2.14", "CreateAction", Kind::UndefinedValue, creates),
        row("CLOSE", "2.2.2", "StructureSize", Kind::WrongSize, 2),
    ];
    assert_eq!(noted(&mut bench), expected);
    bench.succeed(SmbOp::Echo);
    assert_eq!(noted(&mut bench), []);
}

/// impacket's server says NO_SUCH_FILE where others say OBJECT_NAME_NOT_FOUND.
#[test]
fn a_status_that_says_the_same_is_accepted_and_counted_and_another_is_not() {
    let query = || SmbOp::QueryPath { path: text("no"), level: FileLevel::Basic };
    let open = || create("no", 1, Disposition::Open);
    let find = || SmbOp::Find {
        directory: PathText::EMPTY,
        pattern: text("nothing*"),
        level: FindLevel::Names,
        entries_max: 0,
    };
    let (no_name, no_file) = (status::OBJECT_NAME_NOT_FOUND, status::NO_SUCH_FILE);
    let mut bench = with_file(&Setting::default());
    let mut answered = |op, expected, actual| {
        let change = |reply: &mut Reply| {
            if status::is_failure(reply.header.status) && reply.header.status == expected {
                *reply = reply.clone().with_status(actual);
            }
        };
        let ended = run(&mut bench, op, Expected::Failure(expected), change);
        let noted = noted(&mut bench).into_iter().map(|(command, section, ..)| (command, section));
        (ended, noted.collect::<Vec<_>>())
    };
    let created = vec![("CREATE".to_owned(), "3.3.5.9".to_owned())];
    let listed = vec![("QUERY_DIRECTORY".to_owned(), "3.3.5.18".to_owned())];
    assert_eq!(answered(query(), no_name, no_file), (OpStatus::ExpectedFailure, created.clone()));
    assert_eq!(answered(open(), no_name, no_file), (OpStatus::ExpectedFailure, created));
    assert_eq!(answered(find(), no_file, no_name), (OpStatus::ExpectedFailure, listed));
    assert_eq!(answered(query(), no_name, no_name), (OpStatus::ExpectedFailure, vec![]));
    let (expected, actual) = (no_name, status::ACCESS_DENIED);
    assert_eq!(answered(query(), expected, actual).0, OpStatus::Unexpected { expected, actual });
}

#[test]
fn a_reply_whose_command_failed_means_the_same_with_any_body() {
    for body in [vec![], vec![9, 0], vec![0; 3], vec![60, 0, 7, 7, 7, 7, 7, 7, 7], vec![0xff; 300]]
    {
        let mut bench = with_file(&Setting::default());
        let ticket = bench.issue(SmbOp::Flush { handle: HandleNo(1) }, Expected::AnyFailure);
        let mut reply = bench.replies().remove(0).with_status(status::ACCESS_DENIED);
        reply.body = body;
        bench.deliver(&reply);
        assert_eq!(bench.outcome(ticket).unwrap().status, OpStatus::ExpectedFailure);
        assert_eq!(noted(&mut bench).len(), 1);
    }
}

#[test]
fn a_success_with_the_body_of_an_error_is_refused() {
    let mut bench = with_file(&Setting::default());
    let success = |reply: &mut Reply| {
        *reply = reply.clone().with_status(status::ACCESS_DENIED);
        reply.header.status = status::SUCCESS;
    };
    let status = run(&mut bench, read(1, 0, 4_096), Expected::Success, success);
    assert_eq!(status, OpStatus::Failed(ErrorClass::Malformed));
    assert!(bench.session.lost().unwrap().contains("the reply to Read cannot be read"));
}

#[test]
fn an_answer_that_lacks_what_its_level_has_is_a_failure_of_its_op_alone() {
    let mut bench = with_file(&Setting::default());
    let nothing = |reply: &mut Reply| {
        if reply.header.command == Command::QueryInfo {
            reply.body = encoded(|out| QueryInfoResponse { output: &[] }.encode(out));
        }
    };
    let op = SmbOp::QueryFs { level: FsLevel::Size };
    let status = run(&mut bench, op, Expected::Success, nothing);
    assert_eq!(status, OpStatus::Failed(ErrorClass::Malformed));
    assert!(
        bench.io.detail.contains("FileFsSizeInformation ends too early"),
        "{}",
        bench.io.detail
    );
    assert_eq!(bench.session.lost(), None);
    bench.succeed(SmbOp::Echo);
}
