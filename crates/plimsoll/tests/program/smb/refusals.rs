//! Refused logons: message, exit code, and no traces of a run that never began.

use std::io::{Read as _, Write as _};

use plimsoll_testkit::smb_peers::samba;

use super::runs::{brief, check_ended};
use plimsoll_testkit::program::{command, plimsoll};
use plimsoll_testkit::shared_files::{PASSWORD, PASSWORD_VARIABLE, serve_user, with_password};

#[track_caller]
fn refused(url: &str, parts: &[&str], code: i32) {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let run = plimsoll(&brief("disk-mix", url, &bundle, &["--points", "1"]));
    run.check(code, parts);
    assert!(!bundle.exists(), "nothing is left of a run that never began");
    for secret in ["wrong-5150", PASSWORD] {
        assert!(!run.err.contains(secret) && !run.out.contains(secret), "{run:?}");
    }
}

const WRONG: [&str; 3] =
    ["NT_STATUS_LOGON_FAILURE", "check the user in the URL", "PLIMSOLL_PASSWORD"];

#[test]
fn samba_refuses_a_wrong_password_a_stranger_and_nobody() {
    let Some(server) = samba() else { return };
    let share = format!("{}/share", server.address);
    refused(&format!("smb://plimsoll:wrong-5150@{share}"), &WRONG, 3);
    refused(&format!("smb://stranger:wrong-5150@{share}"), &WRONG, 3);
    refused(&format!("smb://{share}"), &["cannot log on", "no user is named"], 3);
}

#[test]
fn the_reference_server_refuses_a_wrong_password_a_stranger_and_nobody() {
    let server = serve_user(&[]);
    refused(&server.url.replace("ann@", "ann:wrong-5150@"), &WRONG, 3);
    refused(&server.url.replace("ann@", "bob:wrong-5150@"), &WRONG, 3);
    refused(&server.url.replace("ann@", ""), &["cannot log on", "no user is named"], 3);
    // The variable has no password either.
    refused(&server.url, &WRONG, 3);
}

#[test]
fn a_share_that_is_not_there_is_named() {
    let missing = ["NT_STATUS_BAD_NETWORK_NAME", "nowhere", "check the name of the share"];
    let server = serve_user(&[]);
    refused(&with_password(&server).replace("/plimsoll", "/nowhere"), &missing, 3);
    let Some(server) = samba() else { return };
    refused(&server.url_with_password().replace("/share", "/nowhere"), &missing, 3);
}

#[test]
fn a_directory_on_the_share_that_is_not_there_is_named() {
    let Some(server) = samba() else { return };
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let url = format!("{}/no/such/place", server.url_with_password());
    let run = plimsoll(&brief("disk-mix", &url, &bundle, &["--points", "1"]));
    run.check(3, &["no/such/place", "make the directory it lies in"]);
}

#[test]
fn a_url_without_a_share_and_paths_that_climb_are_refused() {
    for url in ["smb://127.0.0.1", "smb://127.0.0.1/", "smb://ann@127.0.0.1:445//"] {
        refused(url, &["it names no share", "smb://[user@]host[:port]/share"], 2);
    }
    refused("smb://127.0.0.1/share/../other", &[". or .. in it"], 2);
}

#[test]
fn a_dead_port_and_a_host_without_address_are_named() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    refused(&format!("smb://ann@{free}/share"), &["refused", "whether the server runs there"], 3);
    refused("smb://no-such-host.invalid/share", &["cannot be resolved"], 3);
}

#[test]
fn a_server_of_something_else_is_said_to_be_none_of_smb() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        client.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").unwrap();
        // The client's message is read to its end: a reset could overtake the answer.
        let _ = client.read_to_end(&mut Vec::new());
    });
    let parts = ["cannot log on", "see whether an SMB server listens on that port"];
    refused(&format!("smb://ann@{address}/share"), &parts, 3);
    server.join().unwrap();
}

#[test]
fn a_share_that_is_named_twice_is_refused() {
    let server = serve_user(&[]);
    let url = with_password(&server);
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let run = plimsoll(&brief("disk-mix", &url, &bundle, &[&url, "--points", "2"]));
    run.check(2, &["are the same directory of one share"]);
    assert!(!bundle.exists());
}

#[test]
fn the_password_may_come_from_the_environment_and_is_written_nowhere() {
    let server = serve_user(&[]);
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let output = command(&brief("disk-mix", &server.url, &bundle, &["--points", "1"]))
        .env(PASSWORD_VARIABLE, PASSWORD)
        .output()
        .unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let again = temp_dir.path().join("c");
    let url = with_password(&server);
    let run = plimsoll(&brief("disk-mix", &url, &again, &["--points", "1"]));
    check_ended(&run);
    for file in ["journal.jsonl", "disclosure.json", "result.json", "report.html", "suite.toml"] {
        for bundle in [&bundle, &again] {
            let text = std::fs::read_to_string(bundle.join(file)).unwrap();
            assert!(!text.contains(PASSWORD), "{file}");
        }
    }
}
