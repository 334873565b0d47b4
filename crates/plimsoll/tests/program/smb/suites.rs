//! The suites other than the disk mix, and load files.

use std::path::Path;

use plimsoll_testkit::smb_peers::samba;
use serde_json::Value;

use super::runs::{brief, check_as_expected, check_ended, gist, ops_done};
use plimsoll_testkit::program::{plimsoll, result};
use plimsoll_testkit::shared_files::{serve_user, with_password};

/// Runs a suite with these flags; its result.
#[track_caller]
fn run(suite: &str, url: &str, more: &[&str]) -> Value {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    check_ended(&plimsoll(&brief(suite, url, &bundle, more)));
    result(&bundle)
}

/// The same; the points of its result.
#[track_caller]
fn points(suite: &str, url: &str, more: &[&str]) -> Vec<Value> {
    run(suite, url, more)["points"].as_array().unwrap().clone()
}

#[track_caller]
fn check_nic(url: &str) {
    let more = ["--set", "ladder.clients=3", "--points", "2,5"];
    let points = points("nic", url, &more);
    let requested: Vec<_> = points.iter().map(|point| point["requested"].as_f64()).collect();
    assert_eq!(requested, [Some(2.0), Some(5.0)]);
    for point in &points {
        check_as_expected(point);
        assert_eq!(point["bytes_written"], 0, "{}", gist(point));
    }
    assert!(points.iter().any(|point| point["bytes_read"].as_u64().unwrap() > 0));
}

#[test]
fn a_file_is_read_over_and_over_at_two_think_times() {
    check_nic("builtin:");
    let Some(server) = samba() else { return };
    check_nic(&server.url_with_password());
}

#[track_caller]
fn check_logons(url: &str) {
    let result = run("logons", url, &["--points", "5,10"]);
    let deviations = result["departures"].to_string();
    assert!(deviations.contains("logs off at once; the method has none"), "{deviations}");
    for point in result["points"].as_array().unwrap() {
        assert_eq!(point["errors"], serde_json::json!({}), "{}", gist(point));
        assert_eq!(point["unexpected"], serde_json::json!([]), "{}", gist(point));
        assert!(point["ops"]["logon"]["count"].as_u64().unwrap() > 0, "{}", gist(point));
    }
}

#[test]
fn users_log_on_at_two_rates() {
    check_logons("builtin:");
    let Some(server) = samba() else { return };
    check_logons(&server.url_with_password());
}

#[track_caller]
fn check_sustained_logons(url: &str) {
    let result = run("logons-held", url, &["--points", "20", "--set", "load.think.mean=20s"]);
    let point = &result["points"][0];
    check_as_expected(point);
    let sessions = &point["sessions"];
    for count in ["asked", "opened", "held"] {
        assert_eq!(sessions[count], 20, "{sessions}");
    }
    assert_eq!((&sessions["lost"], &sessions["errors"]), (&0.into(), &serde_json::json!({})));
    let steps = sessions["steps"].as_array().unwrap();
    assert_eq!(steps.last().unwrap()["to"], 20, "{sessions}");
    assert!(steps.iter().all(|step| step["p50_ns"].as_f64() > Some(0.0)), "{sessions}");
    let deviations = result["departures"].to_string();
    assert!(deviations.contains("think_scale = 0.01"), "{deviations}");
}

#[test]
fn users_log_on_one_after_the_other_and_stay() {
    check_sustained_logons("builtin:");
    let Some(server) = samba() else { return };
    check_sustained_logons(&server.url_with_password());
}

/// A desktop that saves a letter and reads it again.
const LETTER: &str = r#"# What dbench 4 writes, in small.
Deltree "\clients\client1" NT_STATUS_OK
Mkdir "\clients" *
Mkdir "\clients\client1" NT_STATUS_OK
NTCreateX "\clients\client1\letter.doc" 0x40 0x1 7 NT_STATUS_OBJECT_NAME_NOT_FOUND
NTCreateX "\clients\client1\letter.doc" 0x40 0x2 8 NT_STATUS_OK
QUERY_FS_INFORMATION 1 NT_STATUS_OK
WriteX 8 0 65536 65536 NT_STATUS_OK
WriteX 8 65536 1000 1000 NT_STATUS_OK
LockX 8 0 100 NT_STATUS_OK
UnlockX 8 0 100 NT_STATUS_OK
Flush 8 NT_STATUS_OK
QUERY_FILE_INFORMATION 8 258 NT_STATUS_OK
SET_FILE_INFORMATION 8 1004 NT_STATUS_OK
ReadX 8 0 4096 4096 NT_STATUS_OK
ReadX 8 65536 4096 1000 NT_STATUS_OK
Close 8 NT_STATUS_OK
QUERY_PATH_INFORMATION "\clients\client1\letter.doc" 1004 NT_STATUS_OK
FIND_FIRST "\clients\client1\*.doc" 260 1366 1 NT_STATUS_OK
Rename "\clients\client1\letter.doc" "\clients\client1\sent.doc" NT_STATUS_OK
Unlink "\clients\client1\sent.doc" 0x1f NT_STATUS_OK
QUERY_PATH_INFORMATION "\clients\client1\sent.doc" 1004 NT_STATUS_OBJECT_NAME_NOT_FOUND
Rmdir "\clients\client1" NT_STATUS_OK
"#;

fn load_file(temp_dir: &Path, text: &str) -> String {
    let path = temp_dir.join("letter.txt");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[track_caller]
fn check_replay(url: &str) {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = load_file(temp_dir.path(), LETTER);
    let points = points("disk-mix", url, &["--points", "1,4", "--loadfile", &file]);
    for (point, clients) in points.iter().zip([1, 4]) {
        check_as_expected(point);
        assert_eq!(point["clients_participating"], clients, "{}", gist(point));
    }
    assert!(ops_done(&points) > 22, "less than a pass");
}

#[test]
fn a_load_file_is_replayed_without_an_unexpected_status() {
    check_replay("builtin:");
    let Some(server) = samba() else { return };
    check_replay(&server.url_with_password());
}

#[test]
fn a_load_file_that_expects_what_does_not_come_is_counted_by_line_of_status() {
    let server = serve_user(&[]);
    let temp_dir = tempfile::tempdir().unwrap();
    let wrong = LETTER.replace("ReadX 8 0 4096 4096 NT_STATUS_OK", "ReadX 8 0 4096 4096 ERROR");
    let file = load_file(temp_dir.path(), &wrong);
    let url = with_password(&server);
    let unlimited = ["--set", "workload.unexpected_max=1000000"];
    let flags = [&["--points", "1", "--loadfile", &file], &unlimited[..]].concat();
    let point = points("disk-mix", &url, &flags).remove(0);
    let unexpected = point["unexpected"].as_array().unwrap();
    assert_eq!(unexpected.len(), 1, "{}", gist(&point));
    assert_eq!(unexpected[0]["op"], "read");
    assert_eq!(point["clients_participating"], 1, "{}", gist(&point));
    assert_eq!(point["not_counted"], "errors", "{}", gist(&point));
}

#[test]
fn a_mistake_in_a_load_file_is_named_with_its_line_before_anybody_is_asked() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    // Nothing listens there: the file is read first.
    let url = "smb://127.0.0.1:1/share";
    let file = load_file(temp_dir.path(), &LETTER.replace("Flush 8", "Flash 8"));
    let more = ["--points", "1", "--loadfile", &file];
    let run = plimsoll(&brief("disk-mix", url, &bundle, &more));
    run.check(2, &["letter.txt:12: operation \"Flash\" is not known", "did you mean Flush?"]);
    let file = load_file(temp_dir.path(), &LETTER.replace("65536 1000 1000", "65536 many 1000"));
    let more = ["--points", "1", "--loadfile", &file];
    plimsoll(&brief("disk-mix", url, &bundle, &more)).check(2, &["letter.txt:9:", "\"many\""]);
    let more = ["--points", "1", "--loadfile", "/no/such/file.txt"];
    plimsoll(&brief("disk-mix", url, &bundle, &more)).check(2, &["/no/such/file.txt"]);
    assert!(!bundle.exists());
}
