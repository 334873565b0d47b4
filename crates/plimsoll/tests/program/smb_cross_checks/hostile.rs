//! A server that misbehaves: whatever it does, the run ends in time, without a panic, and reports
//! what happened to its clients.

use plimsoll_testkit::hostile_smb::{HostileSmb, Recipe, Trick, command};

use plimsoll_testkit::program::{Served, wait_for};
use plimsoll_testkit::shared_files::{Finished, disk_mix, run, through};

/// Clients of each point.
const CLIENTS: u64 = 3;
/// MS-ERREF 2.3.1
const SHARING_VIOLATION: u32 = 0xc000_0043;
const NETWORK_NAME_DELETED: u32 = 0xc000_00c9;
const USER_SESSION_DELETED: u32 = 0xc000_0203;
const NETWORK_SESSION_EXPIRED: u32 = 0xc000_035c;

/// For servers that do not reply; elsewhere a busy machine is given time.
const IMPATIENT: [&str; 2] = ["--set", "op_timeout=600ms"];
/// Time for clients that fail late: a point ends with the last of them.
const TIME_TO_FAIL: [&str; 2] = ["--set", "profiles.quick.measure=10s"];
/// For points that last as long as they may.
const NOBODY_LEAVES: [&str; 2] = ["--set", "profiles.quick.measure=4s"];

/// A point against a server that follows `recipe` from its beginning.
#[track_caller]
fn against(recipe: Recipe, more: &[&str]) -> Finished {
    let server = Served::with("smb", &[]);
    let hostile = HostileSmb::before(server.address(), recipe);
    let url = through(&server, hostile.address());
    let points = [&["--points", "3"][..], &TIME_TO_FAIL, more].concat();
    let finished = run(&url, &points, || hostile.arm());
    assert!(hostile.played() > 0, "nothing happened");
    assert!(!finished.ended.err.contains("panicked"), "{:?}", finished.ended);
    finished
}

/// All clients leave, and the point has `message` as the reason and counts errors of `class`.
#[track_caller]
fn all_leave(finished: &Finished, class: &str, message: &str) {
    let point = finished.point();
    finished.ended.check(1, &["invalid"]);
    assert_eq!(finished.stayed(), 0, "{point}");
    assert!(finished.errors(class) >= CLIENTS, "{class}: {finished:?}");
    let all = finished.result.to_string();
    assert!(all.contains(message), "{message:?} is not in {point}");
}

/// The point was ended before its time for a reason with `message` in it.
#[track_caller]
fn ended_early(finished: &Finished, message: &str) {
    let reasons = finished.point()["reasons"].as_array().unwrap();
    let early = reasons.iter().find(|reason| reason["rule"] == "ended_early");
    let text = early.and_then(|reason| reason["text"].as_str());
    assert!(text.is_some_and(|text| text.contains(message)), "{message:?}: {reasons:?}");
}

const ECHO: [&str; 2] = ["--set", "workload.pattern=echo"];

/// As [`all_leave`], for clients that only send echo requests. A fault of the first one would be in
/// the millisecond of warm-up, not in the window.
#[track_caller]
fn echoes_end(trick: Trick, class: &str, message: &str) {
    let recipe = Recipe::always(trick).every(100);
    if class == "timeout" {
        let finished = against(recipe, &[&ECHO[..], &IMPATIENT].concat());
        all_leave(&finished, class, message);
        // Within the op timeout: well before the window's end.
        ended_early(&finished, "no client is left");
    } else {
        all_leave(&against(recipe, &ECHO), class, message);
    }
}

#[test]
fn silence_ends_every_client_within_the_op_timeout() {
    echoes_end(Trick::Silence, "timeout", "no reply within");
    echoes_end(Trick::HalfFrame, "timeout", "no reply within");
}

#[test]
fn work_that_is_pending_for_ever_ends_every_client() {
    echoes_end(Trick::Pending, "timeout", "STATUS_PENDING");
}

#[test]
fn frames_that_no_message_can_have_end_every_client() {
    echoes_end(Trick::HugeFrame, "malformed", "a message of 16777215 bytes");
    echoes_end(Trick::OtherProtocol, "malformed", "does not speak SMB");
}

#[test]
fn messages_cut_short_end_every_client() {
    for bytes in [0, 3, 20, 63] {
        echoes_end(Trick::Cut(bytes), "malformed", "do not fit into its");
    }
    for bytes in [64, 65] {
        echoes_end(Trick::Cut(bytes), "malformed", "cannot be read");
    }
}

#[test]
fn replies_to_nobody_answer_nothing() {
    echoes_end(Trick::UnknownId, "timeout", "no reply within");
    echoes_end(Trick::OtherCommand(command::READ), "malformed", "another command");
}

#[test]
fn compounds_that_point_into_themselves_or_beyond_end_every_client() {
    for next in [1, 8, 56, 64, 4_096, u32::MAX - 7] {
        echoes_end(Trick::NextCommand(next), "malformed", "do not fit into its");
    }
}

#[test]
fn credits_that_are_never_granted_end_every_client() {
    let more = [&ECHO[..], &IMPATIENT].concat();
    let finished = against(Recipe::always(Trick::NoCredits), &more);
    all_leave(&finished, "timeout", "credit");
}

#[test]
fn a_flood_of_oplock_breaks_of_nobody_costs_no_client() {
    let finished =
        against(Recipe::always(Trick::Breaks(200)), &[&ECHO[..], &NOBODY_LEAVES].concat());
    assert_eq!(finished.stayed(), CLIENTS, "{}", finished.point());
    assert_eq!(finished.point()["errors"], serde_json::json!({}));
    assert!(finished.point()["ops"]["echo"]["count"].as_u64().unwrap() > 10);
}

#[test]
fn a_session_or_share_that_goes_away_in_mid_run_ends_its_clients() {
    for (status, message) in [
        (USER_SESSION_DELETED, "forgotten the session"),
        (NETWORK_SESSION_EXPIRED, "expired"),
        (NETWORK_NAME_DELETED, "share"),
    ] {
        let finished = against(Recipe::always(Trick::Status(status)).every(50), &ECHO);
        all_leave(&finished, &format!("status:{status}"), message);
    }
}

#[test]
fn data_that_lie_elsewhere_or_are_longer_than_the_message_end_every_client() {
    for of in [command::READ, command::QUERY_INFO, command::QUERY_DIRECTORY] {
        for trick in [
            Trick::DataOffset(0),
            Trick::DataOffset(255),
            Trick::DataLength(u32::MAX),
            Trick::DataLength(1 << 23),
        ] {
            let finished = against(Recipe::on(of, trick), &[]);
            all_leave(&finished, "malformed", "cannot be read");
        }
    }
}

#[test]
fn reads_that_bring_less_than_they_should_are_counted() {
    let finished = against(Recipe::on(command::READ, Trick::DataLength(1)), &NOBODY_LEAVES);
    finished.ended.check(1, &["invalid"]);
    assert!(finished.errors("length") > 0, "{}", finished.point());
}

#[test]
fn sharing_violations_are_counted_and_too_many_end_a_client() {
    let violation = Trick::Status(SHARING_VIOLATION);
    let recipe = Recipe::on(command::CREATE, violation).every(40);
    let finished = against(recipe, &NOBODY_LEAVES);
    finished.ended.check(1, &["invalid"]);
    let point = finished.point();
    let of_create = |one: &serde_json::Value| one["actual"] == SHARING_VIOLATION;
    let counts = point["unexpected"].as_array().unwrap();
    assert!(counts.iter().any(of_create), "{point}");

    let none = ["--set", "workload.unexpected_max=0"];
    let finished = against(recipe, &none);
    finished.ended.check(1, &["invalid"]);
    assert_eq!(finished.stayed(), 0, "{}", finished.point());
}

#[test]
fn a_client_that_leaves_aborts_the_point_where_the_suite_says_so() {
    let abort = [&ECHO[..], &["--set", "load.on_client_failure=abort"]].concat();
    let recipe = Recipe::always(Trick::Status(USER_SESSION_DELETED)).every(200);
    let finished = against(recipe, &abort);
    finished.ended.check(1, &["invalid"]);
    assert!(finished.stayed() < CLIENTS, "{}", finished.point());
    // Not because no client is left, as without that setting of the suite.
    ended_early(&finished, "could go no further");
}

/// A run whose server misbehaves before the first point ends with 3 and reports it.
#[track_caller]
fn refused(recipe: Recipe, message: &str) {
    let server = Served::with("smb", &[]);
    let hostile = HostileSmb::before(server.address(), recipe);
    hostile.arm();
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let url = through(&server, hostile.address());
    let ended = wait_for(disk_mix(&url, &bundle, &["--points", "3"]).spawn().unwrap());
    assert!(hostile.played() > 0, "nothing happened");
    assert!(!ended.err.contains("panicked"), "{ended:?}");
    ended.check(3, &[message]);
}

#[test]
fn errands_end_where_replies_make_no_sense() {
    refused(Recipe::always(Trick::HugeFrame), "a message of 16777215 bytes");
    refused(Recipe::always(Trick::OtherProtocol), "does not speak SMB");
    refused(Recipe::always(Trick::Cut(70)), "do not fit into its 70 bytes");
    refused(Recipe::always(Trick::NextCommand(8)), "do not fit into its");
    refused(Recipe::on(command::READ, Trick::DataOffset(255)), "the data read lies at 255");
    refused(
        Recipe::on(command::QUERY_DIRECTORY, Trick::DataLength(u32::MAX)),
        "for 4294967295 bytes",
    );
}

const NOT_SUPPORTED: u32 = 0xc000_00bb;

#[test]
fn an_operation_that_the_server_lacks_is_named_before_any_load_and_others_are_tried_all_the_same() {
    let lacks = "1 of the 48 operations that this suite needs does not work: \"lock\" (expected \
                 success, got";
    let on_lock = |status| Recipe::on(command::LOCK, Trick::Status(status));
    refused(on_lock(NOT_SUPPORTED), &format!("{lacks} NT_STATUS_NOT_SUPPORTED)"));
    // One that ends the session too.
    refused(on_lock(USER_SESSION_DELETED), &format!("{lacks}: lock of 200 bytes at 100"));
}

#[test]
fn all_operations_that_a_server_lacks_are_named_at_once() {
    let recipe = Recipe::on(command::QUERY_INFO, Trick::Status(NOT_SUPPORTED));
    refused(recipe, "\"query the file system\" (expected success, got NT_STATUS_NOT_SUPPORTED), ");
    refused(recipe, "\"query an open file\" (expected success, got NT_STATUS_NOT_SUPPORTED), ");
    refused(recipe, "\"query a path\" (expected success, got NT_STATUS_NOT_SUPPORTED), ");
}

/// They wait for half a minute; both at once.
#[test]
fn errands_do_not_wait_for_ever() {
    std::thread::scope(|scope| {
        for trick in [Trick::Silence, Trick::Pending] {
            scope.spawn(move || refused(Recipe::always(trick), "no answer in time"));
        }
    });
}
