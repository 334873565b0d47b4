//! `prepare` and `clean` through the server, and Ctrl-C while workspaces are written.

use std::path::Path;
use std::process::Stdio;

use plimsoll_testkit::smb_peers::{samba, share_of};
use rustix::process::Signal;

use super::runs::{brief, check_as_expected, check_ended, gist};
use plimsoll_testkit::program::{
    Ended, command, plimsoll, points_finished, result, signal, wait_for, wait_until,
};
use plimsoll_testkit::shared_files::{PASSWORD, PASSWORD_VARIABLE, serve_user, with_password};

/// One client's workspace by the method (NetBench 5.01: 20 MB).
const WORKSPACE_BYTES: u64 = 20 << 20;

fn bytes_below(directory: &Path) -> u64 {
    let of = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => bytes_below(&entry.path()),
        false => entry.metadata().unwrap().len(),
    };
    std::fs::read_dir(directory).unwrap().map(|entry| of(entry.unwrap())).sum()
}

#[track_caller]
fn check_setup(url: &str, share: &Path) {
    let prepare = ["prepare", "disk-mix", url, "--peak", "2"];
    plimsoll(&prepare).check(0, &["for 2 clients is complete", "plimsoll run disk-mix"]);
    let files = share.join("plimsoll-files");
    assert!(files.join(".plimsoll").exists() && files.join("client00001").is_dir());
    let bytes = bytes_below(&files.join("client00001"));
    assert!(bytes.abs_diff(WORKSPACE_BYTES) < WORKSPACE_BYTES / 50, "{bytes}");
    plimsoll(&prepare).check(0, &["0 B written"]);
    plimsoll(&["clean", url]).check(0, &["removed"]);
    assert_eq!(std::fs::read_dir(share).unwrap().count(), 0, "clean leaves nothing");
    plimsoll(&["clean", url]).check(0, &[]);
}

#[test]
fn workspaces_are_prepared_once_and_cleaned_on_samba() {
    let Some(server) = samba() else { return };
    check_setup(&server.url_with_password(), &share_of(&server));
}

#[test]
fn workspaces_are_prepared_once_and_cleaned_on_the_reference_server() {
    let root = tempfile::tempdir().unwrap();
    let server = serve_user(&["--root", root.path().to_str().unwrap()]);
    check_setup(&with_password(&server), root.path());
}

/// Starts a command that writes workspaces, and presses Ctrl-C meanwhile.
#[track_caller]
fn interrupt_writing(share: &Path, arguments: &[&str]) -> Ended {
    let mut begun = command(arguments);
    let child = begun.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let first = share.join("plimsoll-files/client00000/seed/file00.dat");
    wait_until("files are written", || first.exists());
    signal(&child, Signal::INT);
    wait_for(child)
}

#[test]
fn ctrl_c_while_workspaces_are_written_ends_with_4_and_resume_goes_on() {
    let Some(server) = samba() else { return };
    let (url, share) = (server.url_with_password(), share_of(&server));
    let prepare = ["prepare", "disk-mix", url.as_str(), "--peak", "50"];
    interrupt_writing(&share, &prepare).check(4, &["is used again", "plimsoll clean"]);
    plimsoll(&["clean", &url]).check(0, &["removed"]);
    assert!(!share.join("plimsoll-files").exists());
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let more = ["--points", "12", "--set", "profiles.quick.workload_scale=1"];
    let ended = interrupt_writing(&share, &brief("disk-mix", &url, &bundle, &more));
    ended.check(4, &["no load point was finished"]);
    assert_eq!(points_finished(&bundle), 0);
    let password = server.login.clone().unwrap().password;
    let resume = ["resume", bundle.to_str().unwrap(), "--progress", "none"];
    let output = command(&resume).env(PASSWORD_VARIABLE, password).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    assert_eq!(points_finished(&bundle), 1);
    check_as_expected(&result(&bundle)["points"][0]);
    // And a run of another size prepares its own.
    let again = temp_dir.path().join("c");
    check_ended(&plimsoll(&brief("disk-mix", &url, &again, &["--points", "2"])));
    check_as_expected(&result(&again)["points"][0]);
}

#[test]
fn ctrl_c_in_mid_mix_ends_with_4_and_resume_does_the_rest() {
    let server = serve_user(&[]);
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let more = ["--points", "1,2,3", "--set", "profiles.quick.measure=1s"];
    let child = command(&brief("disk-mix", &server.url, &bundle, &more))
        .env(PASSWORD_VARIABLE, PASSWORD)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("a point has finished", || points_finished(&bundle) >= 1);
    signal(&child, Signal::INT);
    wait_for(child).check(4, &["report.html", "plimsoll resume"]);
    let done = points_finished(&bundle);
    assert!(done < 3);
    let resume = ["resume", bundle.to_str().unwrap(), "--progress", "none"];
    // Without the password no logon succeeds, and the bundle stays as it is.
    plimsoll(&resume).check(3, &["NT_STATUS_LOGON_FAILURE", "PLIMSOLL_PASSWORD"]);
    assert_eq!(points_finished(&bundle), done);
    let output = command(&resume).env(PASSWORD_VARIABLE, PASSWORD).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let result = result(&bundle);
    for (point, clients) in result["points"].as_array().unwrap().iter().zip(1..=3) {
        check_as_expected(point);
        assert_eq!(point["clients_participating"], clients, "{}", gist(point));
    }
    assert_eq!(points_finished(&bundle), 3);
}
