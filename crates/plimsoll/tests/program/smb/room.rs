//! Shares that cannot be written to, have no space, or hold files of others.

use std::path::{Path, PathBuf};

use plimsoll_servers::{Login, ServerProcess};
use plimsoll_smb::server::samba::SambaRequest;
use plimsoll_testkit::smb_peers::{samba, samba_as, share_of};

use super::losses::in_mid_point;
use super::runs::{brief, check_as_expected, check_ended, gist, warnings};
use plimsoll_testkit::program::{plimsoll, result};
use plimsoll_testkit::shared_files::{serve_user, with_password};

const MIB: u64 = 1 << 20;

fn login() -> Option<Login> {
    Some(Login::with_new_password("plimsoll").unwrap())
}

/// The share of a server with a file system of its own size, which only that server's processes
/// see.
fn inside(server: &ServerProcess) -> PathBuf {
    let share = share_of(server);
    Path::new("/proc")
        .join(server.pid().to_string())
        .join("root")
        .join(share.strip_prefix("/").unwrap())
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

#[track_caller]
fn refused(url: &str, parts: &[&str], code: i32) {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    plimsoll(&brief("disk-mix", url, &bundle, &["--points", "1,2"])).check(code, parts);
    // The outcome of the run can be read.
    plimsoll(&["prepare", "disk-mix", url, "--peak", "1"]).check(code, parts);
}

#[test]
fn a_share_that_only_reads_is_refused() {
    let kept = tempfile::tempdir().unwrap();
    let server = serve_user(&["--root", kept.path().to_str().unwrap(), "--read-only"]);
    let parts = ["cannot make plimsoll-files", "NT_STATUS_", "let this user write there"];
    refused(&with_password(&server), &parts, 3);
    assert!(is_empty(kept.path()));
    let request = SambaRequest { login: login(), read_only: true, ..SambaRequest::default() };
    let Some(server) = samba_as(&request) else { return };
    refused(&server.url_with_password(), &parts, 3);
    assert!(is_empty(&share_of(&server)));
}

#[test]
fn workspaces_larger_than_the_share_are_refused_before_the_first_byte() {
    let share_bytes = Some(16 * MIB);
    let request = SambaRequest { login: login(), share_bytes, ..SambaRequest::default() };
    let Some(server) = samba_as(&request) else { return };
    let parts = ["are free there", "nothing was written", "ask for fewer clients"];
    refused(&server.url_with_password(), &parts, 3);
    assert!(is_empty(&inside(&server)), "not even our directory");
}

#[test]
fn a_disk_that_fills_in_mid_run_is_counted_by_status() {
    let request =
        SambaRequest { login: login(), share_bytes: Some(64 * MIB), ..SambaRequest::default() };
    let Some(server) = samba_as(&request) else { return };
    let filler = inside(&server).join("filler");
    let point = in_mid_point(&server, "2", &[], || {
        let full = std::fs::write(&filler, vec![1; 80 << 20]).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    });
    let unexpected = point["unexpected"].as_array().unwrap();
    assert!(
        unexpected.iter().any(|entry| entry["actual_name"] == "NT_STATUS_DISK_FULL"),
        "{}",
        gist(&point)
    );
    assert_eq!(point["valid"], false, "{}", gist(&point));
    // With space again the same share is repaired.
    std::fs::remove_file(&filler).unwrap();
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let url = server.url_with_password();
    check_ended(&plimsoll(&brief("disk-mix", &url, &bundle, &["--points", "2"])));
    check_as_expected(&result(&bundle)["points"][0]);
}

#[test]
fn leftovers_of_another_run_are_put_right() {
    let Some(server) = samba() else { return };
    check_leftovers(&server.url_with_password(), &share_of(&server));
}

#[test]
fn leftovers_of_another_run_are_put_right_on_the_reference_server() {
    let root = tempfile::tempdir().unwrap();
    let server = serve_user(&["--root", root.path().to_str().unwrap()]);
    check_leftovers(&with_password(&server), root.path());
}

#[track_caller]
fn check_leftovers(url: &str, share: &Path) {
    let temp_dir = tempfile::tempdir().unwrap();
    let one_run = |name: &str| {
        let bundle = temp_dir.path().join(name);
        check_ended(&plimsoll(&brief("disk-mix", url, &bundle, &["--points", "2"])));
        let point = result(&bundle)["points"][0].clone();
        check_as_expected(&point);
        assert!(
            !warnings(&point).iter().any(|(rule, _)| rule == "clients_lost"),
            "{}",
            gist(&point)
        );
    };
    one_run("a");
    let client = share.join("plimsoll-files/client00000");
    let (seed, work) = (client.join("seed"), client.join("work"));
    let shorter = seed.join("file05.dat");
    let bytes = std::fs::metadata(&shorter).unwrap().len();
    std::fs::write(&shorter, "another run's").unwrap();
    let longer = std::fs::File::options().append(true).open(seed.join("file06.dat")).unwrap();
    longer.set_len(bytes + 70_000).unwrap();
    std::fs::remove_file(seed.join("file07.dat")).unwrap();
    std::fs::create_dir_all(work.join("deep/deeper")).unwrap();
    std::fs::write(work.join("deep/deeper/file.txt"), "left").unwrap();
    std::fs::write(work.join("left.txt"), "left").unwrap();
    one_run("b");
    for name in ["file05.dat", "file06.dat", "file07.dat"] {
        assert_eq!(std::fs::metadata(seed.join(name)).unwrap().len(), bytes, "{name}");
    }
    assert!(!work.join("deep").exists() && !work.join("left.txt").exists());
    plimsoll(&["clean", url]).check(0, &["removed"]);
    assert!(is_empty(share), "clean leaves nothing");
}

#[test]
fn a_directory_of_somebody_else_is_not_written_to() {
    let Some(server) = samba() else { return };
    check_foreign(&server.url_with_password(), &share_of(&server));
}

#[test]
fn a_directory_of_somebody_else_is_not_written_to_on_the_reference_server() {
    let root = tempfile::tempdir().unwrap();
    let server = serve_user(&["--root", root.path().to_str().unwrap()]);
    check_foreign(&with_password(&server), root.path());
}

#[track_caller]
fn check_foreign(url: &str, share: &Path) {
    let theirs = share.join("plimsoll-files");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::write(theirs.join("letter.txt"), "dear").unwrap();
    let parts = ["plimsoll-files exists there and carries no .plimsoll", "is not ours"];
    refused(url, &parts, 2);
    plimsoll(&["clean", url]).check(2, &parts);
    assert_eq!(std::fs::read(theirs.join("letter.txt")).unwrap(), b"dear");
    assert_eq!(std::fs::read_dir(&theirs).unwrap().count(), 1);
}

#[test]
fn files_of_another_seed_are_not_mixed_with_ours() {
    let server = serve_user(&[]);
    let url = with_password(&server);
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    check_ended(&plimsoll(&brief("disk-mix", &url, &bundle, &["--points", "1"])));
    let other = temp_dir.path().join("c");
    let more = ["--points", "1", "--set", "workload.file_set_seed=2"];
    let parts = ["holds files of seed 1, not 2", "workload.file_set_seed=1", "plimsoll clean"];
    plimsoll(&brief("disk-mix", &url, &other, &more)).check(2, &parts);
    plimsoll(&["clean", &url]).check(0, &["removed"]);
    let third = temp_dir.path().join("d");
    check_ended(&plimsoll(&brief("disk-mix", &url, &third, &more)));
    check_as_expected(&result(&third)["points"][0]);
}
