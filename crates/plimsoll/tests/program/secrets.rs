//! Passwords and header values: sent, and neither stored nor shown.

use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;

use crate::listening::Listening;
use plimsoll_testkit::program::{
    Ended, command, plimsoll, points_finished, short, signal, wait_for, wait_until,
};

const TOKEN: &str = "c0ffee-77";

/// Nothing in the bundle holds `secret`.
#[track_caller]
pub(crate) fn check_nowhere(dir: &Path, secret: &str) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check_nowhere(&path, secret);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(secret), "{} holds {secret}", path.display());
    }
}

fn text_of(bundle: &Path, file: &str) -> String {
    std::fs::read_to_string(bundle.join(file)).unwrap()
}

#[track_caller]
fn check_refused(arguments: &[&str], parts: &[&str]) -> Ended {
    let ended = plimsoll(arguments);
    ended.check(2, parts);
    assert!(!format!("{}{}", ended.out, ended.err).contains("s3cret"), "{ended:?}");
    ended
}

#[test]
fn a_target_that_cannot_be_read_is_not_echoed_with_its_password() {
    for target in [
        "smb://ann:s3cret/share",
        "smb://ann:s3cret@host:port/share",
        "smb://ann:s3cret@ho st/share",
        "smb:/ann:s3cret@host/share",
        "smb://ann:1234#s3cret@host/share",
        "smb://ann:1234/s3cret@host/share",
    ] {
        check_refused(&["run", "disk-mix", target], &["target \""]);
    }
    for verb in [&["clean"][..], &["prepare", "disk-mix", "--peak", "1"]] {
        check_refused(&[verb, &["smb://ann:s3cret/share"]].concat(), &["is not a port"]);
    }
    let swapped = ["run", "smb://ann:s3cret@host/share", "builtin:"];
    check_refused(&swapped, &["the suite comes before the target"]);
    let temp_dir = tempfile::tempdir().unwrap();
    let server = Listening::start();
    let url = server.url.replace("://", "://ann:s3cret@");
    let set = format!("workload.urls=[\"{url}\"]");
    let run = short("web-url", &server.url, temp_dir.path(), &["--set", &set]);
    check_refused(&run, &["names a user"]);
}

#[test]
fn a_header_that_is_none_is_not_echoed() {
    for bad in
        ["[\"s3cret\"]", "[\"X Key: s3cret\"]", "\"X-Key: s3cret\"", "[1, \"X-Key: s3cret\"]"]
    {
        let set = format!("workload.headers={bad}");
        let run = ["run", "web-url", "http://127.0.0.1:1/", "--set", &set];
        check_refused(&run, &["workload.headers"]);
        let temp_dir = tempfile::tempdir().unwrap();
        let file = temp_dir.path().join("mine.toml");
        let shipped = plimsoll(&["suites", "show", "web-url"]).out;
        assert!(shipped.contains("\nheaders = []"));
        let own = shipped.replace("\nheaders = []", &format!("\nheaders = {bad}"));
        std::fs::write(&file, own).unwrap();
        check_refused(&["check", file.to_str().unwrap()], &["mine.toml", "workload.headers"]);
    }
}

#[test]
fn values_of_headers_are_sent_and_in_no_file_of_the_bundle() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let server = Listening::start();
    let set = format!("workload.headers=[\"X-Api-Key: {TOKEN}\", \"Accept: all\"]");
    let more = ["--rate", "100", "--set", set.as_str()];
    let ended = plimsoll(&short("web-url", &server.url, &bundle, &more));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    server.saw(&format!("X-Api-Key: {TOKEN}"));
    check_nowhere(&bundle, TOKEN);
    for file in ["suite.toml", "journal.jsonl", "disclosure.json", "report.html", "result.json"] {
        let text = text_of(&bundle, file);
        assert!(text.contains("X-Api-Key: (left out)"), "{file}");
        assert!(text.contains("Accept: all"), "{file}");
    }
}

#[test]
fn a_header_may_come_from_the_environment_or_a_file() {
    let temp_dir = tempfile::tempdir().unwrap();
    let (bundle, file) = (temp_dir.path().join("b"), temp_dir.path().join("key"));
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let server = Listening::start();
    let from_file = format!("X-Api-Key: @{}", file.display());
    let set = format!("workload.headers=[\"Authorization: env:HOLES_TOKEN\", \"{from_file}\"]");
    let more = ["--rate", "100", "--set", set.as_str()];
    let run = short("web-url", &server.url, &bundle, &more);
    let started =
        command(&run).env("HOLES_TOKEN", "Bearer s0me-key").stdout(Stdio::piped()).spawn();
    let ended = wait_for(started.unwrap());
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    server.saw("Authorization: Bearer s0me-key");
    server.saw(&format!("X-Api-Key: {TOKEN}"));
    check_nowhere(&bundle, TOKEN);
    check_nowhere(&bundle, "s0me-key");
    for stored in ["suite.toml", "journal.jsonl", "disclosure.json"] {
        let text = text_of(&bundle, stored);
        assert!(text.contains("Authorization: env:HOLES_TOKEN"), "{stored}");
        assert!(text.contains(&from_file), "{stored}");
    }
}

#[test]
fn a_header_that_cannot_be_read_ends_with_2_and_says_where_it_was_sought() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let empty = temp_dir.path().join("lines");
    std::fs::write(&empty, "s3cret\nX-Other: s3cret\n").unwrap();
    let lines = format!("X-Key: @{}", empty.display());
    for (header, parts) in [
        ("X-Key: env:HOLES_UNSET", ["header X-Key", "HOLES_UNSET is not set", "@FILE"]),
        ("X-Key: @/nowhere/key", ["header X-Key", "/nowhere/key", "env:VARIABLE"]),
        (lines.as_str(), ["header X-Key", "lines", "one line"]),
    ] {
        let set = format!("workload.headers=[\"{header}\"]");
        check_refused(&short("web-url", "builtin:", &bundle, &["--set", &set]), &parts);
        assert!(!bundle.exists());
    }
}

#[test]
fn resume_reads_a_header_again_and_asks_for_one_that_was_left_out() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let server = Listening::start();
    let set = format!("workload.headers=[\"X-Api-Key: {TOKEN}\"]");
    let more = ["--points", "100,110,120", "--set", "load.mode=open", "--set", &set];
    let child = command(&short("web-url", &server.url, &bundle, &more))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("a point has finished", || points_finished(&bundle) >= 1);
    signal(&child, Signal::INT);
    assert_eq!(wait_for(child).code, Some(4));
    let resume = ["resume", bundle.to_str().unwrap(), "--progress", "none"];
    plimsoll(&resume).check(2, &["header X-Api-Key", "env:VARIABLE", "@FILE", "suite.toml"]);
    let suite = text_of(&bundle, "suite.toml");
    let given = suite.replace("X-Api-Key: (left out)", "X-Api-Key: env:HOLES_KEY");
    std::fs::write(bundle.join("suite.toml"), given).unwrap();
    plimsoll(&resume).check(2, &["HOLES_KEY is not set"]);
    let resumed = command(&resume).env("HOLES_KEY", "again-5").stdout(Stdio::piped()).spawn();
    let resumed = wait_for(resumed.unwrap());
    assert!(matches!(resumed.code, Some(0 | 1)), "{resumed:?}");
    server.saw("X-Api-Key: again-5");
    assert_eq!(points_finished(&bundle), 3);
    check_nowhere(&bundle, "again-5");
    check_nowhere(&bundle, TOKEN);
}
