//! Sessions driven by hand against a server in memory: every op, however its replies arrive, ends
//! once and well.

mod bench;
mod caching;
mod lenient;
mod losses;
mod random;
mod server;

use plimsoll_engine::interface::{Session, SessionCounters};
use plimsoll_model::outcome::{ErrorClass, OpStatus};

use self::bench::*;
use self::server::{Reply, encoded};
use crate::logon::Dialect;
use crate::op::*;
use crate::wire::create::options;
use crate::wire::{Command, HEADER_BYTES, ReadResponse, status};

const SUCCESS: Expected = Expected::Success;

/// A bench with a file `f` of 100,000 bytes open as handle 1.
fn with_file(setting: &Setting) -> Bench {
    let mut bench = Bench::new(setting);
    bench.succeed(create("f", 1, Disposition::OpenIf));
    bench.succeed(write(1, 0, 65_536));
    bench.succeed(write(1, 65_536, 34_464));
    bench.server.commands.clear();
    bench
}

/// One of each op, with the commands it takes on a bench [`with_file`].
fn every_op() -> Vec<(SmbOp, Vec<Command>)> {
    use Command as C;
    let handle = HandleNo(1);
    let mut ops = vec![
        (create("new", 2, Disposition::Create), vec![C::Create]),
        (SmbOp::Close { handle: HandleNo(2) }, vec![C::Close]),
        (SmbOp::Flush { handle }, vec![C::Flush]),
        (read(1, 4_096, 61_440), vec![C::Read]),
        (write(1, 65_536, 10_000), vec![C::Write]),
        (SmbOp::Lock { handle, offset: 1, length: 2 }, vec![C::Lock]),
        (SmbOp::Unlock { handle, offset: 1, length: 2 }, vec![C::Lock]),
        (SmbOp::Mkdir { path: text("d") }, vec![C::Create, C::Close]),
        (
            SmbOp::Rename { path: text("new"), to: text("d\\old"), replace: false },
            vec![C::Create, C::SetInfo, C::Close],
        ),
        (
            SmbOp::Create {
                path: text("d"),
                handle: HandleNo(3),
                disposition: Disposition::Open,
                options: options::DIRECTORY_FILE,
            },
            vec![C::Create],
        ),
        (SmbOp::FindNext { handle: HandleNo(3) }, vec![C::QueryDirectory]),
        (SmbOp::Close { handle: HandleNo(3) }, vec![C::Close]),
        (
            SmbOp::Find {
                directory: text("d"),
                pattern: text("o*"),
                level: FindLevel::Both,
                entries_max: 1,
            },
            vec![C::Create, C::QueryDirectory, C::Close],
        ),
        (SmbOp::Unlink { path: text("d\\old") }, vec![C::Create, C::Close]),
        (SmbOp::Rmdir { path: text("d") }, vec![C::Create, C::SetInfo, C::Close]),
        (SmbOp::WriteText { handle, text: b"text"[..].into() }, vec![C::Write]),
        (SmbOp::Echo, vec![C::Echo]),
    ];
    for level in FileLevel::ALL {
        ops.push((SmbOp::QueryFile { handle, level }, vec![C::QueryInfo]));
        let path = text("f");
        ops.push((SmbOp::QueryPath { path, level }, vec![C::Create, C::QueryInfo, C::Close]));
    }
    for level in FsLevel::ALL {
        ops.push((SmbOp::QueryFs { level }, vec![C::Create, C::QueryInfo, C::Close]));
    }
    for set in [
        FileChange::Basic,
        FileChange::EndOfFile(100_000),
        FileChange::Allocation(5),
        FileChange::Disposition(false),
    ] {
        ops.push((SmbOp::SetFile { handle, set }, vec![C::SetInfo]));
    }
    ops
}

#[test]
fn every_op_ends_well_with_the_commands_of_the_published_mapping() {
    for dialect in [Dialect::V2_0_2, Dialect::V2_1, Dialect::V3_1_1] {
        for prefix in ["", "below"] {
            let mut bench =
                with_file(&Setting { dialect, prefix, bytes_max: 65_536, ..Setting::default() });
            bench.session.take_counters();
            for (op, commands) in every_op() {
                let (reads, writes) = match op {
                    SmbOp::Read { length, .. } => (length, 0),
                    SmbOp::Write { length, .. } => (0, length),
                    SmbOp::WriteText { .. } => (0, 4),
                    _ => (0, 0),
                };
                let outcome = bench.succeed(op.clone());
                let moved = (outcome.bytes_read, outcome.bytes_written);
                assert_eq!(moved, (reads.into(), writes.into()));
                assert_eq!(std::mem::take(&mut bench.server.commands), commands, "{op:?}");
            }
            assert_eq!(bench.server.open_files(), 1, "only handle 1 is still open");
            let counted = SessionCounters { verified: 1, ..SessionCounters::default() };
            assert_eq!(bench.session.take_counters(), counted);
            assert_eq!(bench.session.lost(), None);
        }
    }
}

#[test]
fn a_tree_goes_with_all_that_is_in_it_and_one_that_is_not_there_is_no_error() {
    let mut bench = Bench::new(&Setting { prefix: "below", ..Setting::default() });
    for path in ["t", "t\\a", "t\\a\\b", "o"] {
        bench.succeed(SmbOp::Mkdir { path: text(path) });
    }
    for n in 0..20 {
        let path = format!("t\\{}x{n}", ["", "a\\", "a\\b\\"][n % 3]);
        bench.succeed(create(&path, 1, Disposition::Create));
        bench.succeed(SmbOp::Close { handle: HandleNo(1) });
    }
    bench.succeed(SmbOp::Deltree { path: text("t") });
    let left: Vec<&str> = bench.server.files.keys().map(|path| &**path).collect();
    assert_eq!(left, ["", "below", "below\\o"]);
    bench.succeed(SmbOp::Deltree { path: text("t") });
    assert_eq!(bench.server.open_files(), 0);
}

#[test]
fn a_read_or_write_that_the_server_does_not_take_at_once_is_several() {
    let mut bench = Bench::new(&Setting { bytes_max: 20_000, ..Setting::default() });
    bench.succeed(create("f", 1, Disposition::Create));
    assert_eq!(bench.succeed(write(1, 7, 65_000)).bytes_written, 65_000);
    assert_eq!(bench.succeed(read(1, 7, 65_000)).bytes_read, 65_000);
    // At the end of the file fewer come, and then it is over.
    let op = SmbOp::Read {
        handle: HandleNo(1),
        offset: 45_007,
        length: 65_000,
        expected_length: ExpectedLength::Any,
        check: Some(Content { key: 5 }),
    };
    assert_eq!(bench.succeed(op).bytes_read, 20_000);
    let wide = Setting { bytes_max: 8_388_608, ..Setting::default() };
    let mut bench = Bench::new(&wide);
    bench.succeed(create("f", 1, Disposition::Create));
    assert_eq!(bench.succeed(write(1, 0, 500_000)).bytes_written, 500_000);
    bench.server.commands.clear();
    assert_eq!(bench.succeed(read(1, 0, 500_000)).bytes_read, 500_000);
    assert_eq!(bench.server.commands, [Command::Read], "eight credits buy it");
}

#[test]
fn statuses_are_compared_with_those_expected() {
    let mut bench = Bench::new(&Setting::default());
    let missing = || SmbOp::QueryPath { path: text("no"), level: FileLevel::Basic };
    let no_such_name = status::OBJECT_NAME_NOT_FOUND;
    let cases = [
        (Expected::Failure(no_such_name), OpStatus::ExpectedFailure),
        (Expected::AnyFailure, OpStatus::ExpectedFailure),
        (Expected::Anything, OpStatus::ExpectedFailure),
        (SUCCESS, OpStatus::Unexpected { expected: 0, actual: no_such_name }),
    ];
    for (expected, status) in cases {
        assert_eq!(bench.run(missing(), expected).status, status);
    }
    // Opened although it should not exist: the handle works, and the next open on it closes the
    // file.
    let outcome = bench.run(create("f", 1, Disposition::OpenIf), Expected::Failure(no_such_name));
    assert_eq!(outcome.status, OpStatus::Unexpected { expected: no_such_name, actual: 0 });
    bench.succeed(create("g", 1, Disposition::OpenIf));
    assert_eq!(bench.server.open_files(), 1);
}

#[test]
fn the_first_failed_command_gives_a_compound_its_status() {
    let mut bench = Bench::new(&Setting::default());
    let find = SmbOp::Find {
        directory: PathText::EMPTY,
        pattern: text("nothing*"),
        level: FindLevel::Names,
        entries_max: 0,
    };
    let expected = Expected::Failure(status::NO_SUCH_FILE);
    assert_eq!(bench.run(find, expected).status, OpStatus::ExpectedFailure);
    assert_eq!(bench.server.open_files(), 0, "what was opened is closed all the same");
}

#[test]
fn a_directory_that_is_not_empty_stays_and_says_so() {
    let mut bench = Bench::new(&Setting::default());
    bench.succeed(SmbOp::Mkdir { path: text("d") });
    bench.succeed(create("d\\f", 1, Disposition::Create));
    let expected = Expected::Failure(status::DIRECTORY_NOT_EMPTY);
    let outcome = bench.run(SmbOp::Rmdir { path: text("d") }, expected);
    assert_eq!(outcome.status, OpStatus::ExpectedFailure);
    assert!(bench.server.files.contains_key("d"));
}

#[test]
fn a_rename_takes_a_name_from_another_file_only_where_it_is_to() {
    let mut bench = Bench::new(&Setting::default());
    for path in ["a", "b"] {
        bench.succeed(create(path, 1, Disposition::Create));
    }
    let rename = |replace| SmbOp::Rename { path: text("a"), to: text("b"), replace };
    let expected = Expected::Failure(status::OBJECT_NAME_COLLISION);
    assert_eq!(bench.run(rename(false), expected).status, OpStatus::ExpectedFailure);
    bench.succeed(rename(true));
    assert!(!bench.server.files.contains_key("a") && bench.server.files.contains_key("b"));
}

#[test]
fn what_replies_say_is_kept_only_where_somebody_takes_it() {
    let mut bench = with_file(&Setting::default());
    bench.succeed(read(1, 0, 10));
    assert!(bench.session.take_answers().is_empty());
    bench.session = bench.session.answering();
    bench.succeed(read(1, 0, 10));
    bench.run(read(1, 200_000, 10), Expected::Failure(status::END_OF_FILE));
    let answers = bench.session.take_answers();
    let answered: Vec<_> = answers.iter().map(|answer| (answer.command, answer.status)).collect();
    let read = Command::Read;
    assert_eq!(answered, [(read, status::SUCCESS), (read, status::END_OF_FILE)]);
    assert_eq!(ReadResponse::decode(&answers[0].body).unwrap().data.len(), 10);
    assert!(bench.session.take_answers().is_empty());
}

#[test]
fn ops_on_a_handle_that_did_not_open_are_not_sent() {
    let mut bench = Bench::new(&Setting::default());
    bench.run(create("no", 1, Disposition::Open), Expected::AnyFailure);
    bench.server.commands.clear();
    let closed = status::FILE_CLOSED;
    let outcome = bench.run(read(1, 0, 10), SUCCESS);
    assert_eq!(outcome.status, OpStatus::Unexpected { expected: 0, actual: closed });
    let outcome = bench.run(SmbOp::Close { handle: HandleNo(1) }, Expected::AnyFailure);
    assert_eq!(outcome.status, OpStatus::ExpectedFailure);
    assert!(bench.server.commands.is_empty());
}

#[test]
fn a_read_at_the_end_of_the_file_brings_nothing_and_is_no_failure_to_an_application() {
    let mut bench = with_file(&Setting::default());
    let read_at = |offset, expected_length| SmbOp::Read {
        handle: HandleNo(1),
        offset,
        length: 10,
        expected_length,
        check: None,
    };
    assert_eq!(bench.succeed(read_at(100_000, ExpectedLength::Any)).bytes_read, 0);
    assert_eq!(bench.succeed(read_at(99_997, ExpectedLength::Any)).bytes_read, 3);
    let outcome = bench.run(read_at(99_997, ExpectedLength::Exactly(10)), SUCCESS);
    assert_eq!(outcome.status, OpStatus::Failed(ErrorClass::Length));
    assert_eq!(outcome.bytes_read, 3, "bytes are credited as moved");
    let expected = Expected::Failure(status::END_OF_FILE);
    let outcome = bench.run(read_at(100_000, ExpectedLength::Any), expected);
    assert_eq!(outcome.status, OpStatus::ExpectedFailure);
}

#[test]
fn a_read_that_brings_nothing_is_not_counted_as_verified() {
    let mut bench = with_file(&Setting::default());
    bench.session.take_counters();
    let check = Some(Content { key: 5 });
    let op = SmbOp::Read {
        handle: HandleNo(1),
        offset: 0,
        length: 10,
        expected_length: ExpectedLength::Any,
        check,
    };
    let ticket = bench.issue(op, SUCCESS);
    let mut reply = bench.replies().remove(0);
    reply.body = encoded(|out| ReadResponse::default().encode(out));
    bench.deliver(&reply);
    assert_eq!(bench.outcome(ticket).unwrap().status, OpStatus::Ok);
    assert_eq!(bench.session.take_counters(), SessionCounters::default());
    bench.succeed(read(1, 0, 10));
    assert_eq!(bench.session.take_counters().verified, 1);
}

#[test]
fn a_wrong_byte_is_found_and_told() {
    let mut bench = with_file(&Setting::default());
    bench.server.files.get_mut("f").unwrap().as_mut().unwrap()[70_000] ^= 1;
    let outcome = bench.run(read(1, 65_536, 10_000), SUCCESS);
    assert_eq!(outcome.status, OpStatus::Failed(ErrorClass::Corrupt));
    assert!(bench.io.detail.contains("offset 70000"), "{}", bench.io.detail);
    assert_eq!(bench.session.lost(), None);
}

#[test]
fn replies_may_come_byte_by_byte_split_and_in_any_order() {
    for order in 0..6 {
        let mut bench = with_file(&Setting::default());
        let tickets = [
            bench.issue(read(1, 0, 3_000), SUCCESS),
            bench.issue(SmbOp::QueryPath { path: text("f"), level: FileLevel::All }, SUCCESS),
            bench.issue(SmbOp::Echo, SUCCESS),
        ];
        let mut replies = bench.replies();
        assert_eq!(replies.len(), 5);
        // Each reply on its own, compounds too, backwards.
        replies.rotate_left(order % 5);
        if order > 2 {
            replies.reverse();
        }
        let bytes: Vec<u8> =
            replies.iter().flat_map(|reply| framed(std::slice::from_ref(reply))).collect();
        bytes.iter().for_each(|byte| bench.bytes(&[*byte]));
        for ticket in tickets {
            let outcome = bench.outcome(ticket).expect("it has ended");
            assert_eq!(outcome.status, OpStatus::Ok, "{}", bench.io.detail);
        }
    }
}

#[test]
fn a_server_that_takes_its_time_is_waited_for() {
    let mut bench = with_file(&Setting::default());
    let ticket = bench.issue(SmbOp::Unlink { path: text("f") }, Expected::Anything);
    let replies = bench.replies();
    let interim = replies[0].interim();
    bench.deliver(&interim);
    bench.deliver(&replies[1]);
    assert_eq!(bench.outcome(ticket), None);
    bench.pass(OP_TIMEOUT.saturating_sub(plimsoll_model::units::Nanos(1)));
    let mut last: Reply = replies[0].clone();
    last.header.async_id = interim.header.async_id;
    last.header.credits = 0;
    bench.deliver(&last);
    assert!(bench.outcome(ticket).is_some());
}

#[test]
fn nothing_is_sent_without_credits_and_all_is_sent_when_they_come() {
    for grants_max in [1, 2, 3, 64] {
        let mut bench = Bench::new(&Setting { credits: 1, ..Setting::default() });
        bench.server.grants_max = grants_max;
        bench.succeed(create("f", 1, Disposition::Create));
        bench.server.grants_max = 64;
        for _ in 0..OUTSTANDING_MAX {
            bench.issue(SmbOp::QueryPath { path: text("f"), level: FileLevel::Basic }, SUCCESS);
        }
        assert!(!bench.session.has_room());
        bench.serve();
        assert_eq!(bench.io.done.len(), 1 + OUTSTANDING_MAX as usize);
        assert!(bench.io.done.iter().all(|(_, outcome)| outcome.status == OpStatus::Ok));
    }
}

#[test]
fn without_enough_credits_an_op_ends_with_its_timeout_and_the_server_is_not_asked_for_ever() {
    let mut bench = Bench::new(&Setting { credits: 1, ..Setting::default() });
    bench.server.grants_max = 1;
    let ticket =
        bench.issue(SmbOp::QueryPath { path: text("f"), level: FileLevel::Basic }, SUCCESS);
    bench.serve();
    assert!(bench.server.commands.len() < 50, "{}", bench.server.commands.len());
    assert_eq!(bench.outcome(ticket), None);
    bench.pass(OP_TIMEOUT);
    let status = bench.outcome(ticket).unwrap().status;
    assert_eq!(status, OpStatus::Failed(ErrorClass::Timeout));
    assert!(bench.session.lost().unwrap().contains("credits"));
}

#[test]
fn a_compound_is_one_message_and_leaves_in_one_piece() {
    let mut bench = Bench::new(&Setting::default());
    bench.issue(SmbOp::QueryFs { level: FsLevel::Size }, SUCCESS);
    assert_eq!(bench.io.sent.len(), 1);
    let length = u32::from_be_bytes(*bench.io.sent[0].first_chunk().unwrap());
    assert_eq!(length as usize + 4, bench.io.sent[0].len());
    assert!(length as usize > 3 * HEADER_BYTES);
}
