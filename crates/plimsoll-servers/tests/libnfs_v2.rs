//! NFSv2 on real sockets, over TCP and UDP, judged by a small program around libnfs.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::print_stderr, reason = "a test that skips its peer must say so loudly")]

mod nfs_sockets;

use std::path::Path;
use std::process::Command;

use nfs_sockets::{Running, in_memory, run};
use plimsoll_servers::nfs::{Flush, NfsFiles};
use plimsoll_testkit::peers::require_peer;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/libnfs_v2.c");
/// Of the package libnfs-dev, which has no program to look for.
const HEADER: &str = "/usr/include/nfsc/libnfs-raw-nfs.h";

/// Compiles the judge, or says loudly that it cannot be had here.
fn compile(into: &Path) -> Option<()> {
    require_peer("cc")?;
    if !Path::new(HEADER).exists() {
        let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!in_ci, "{HEADER} is missing, and CI=true allows no skipping");
        eprintln!("SKIP ===== libnfs-dev is not installed; this test shows nothing here =====");
        return None;
    }
    let status = Command::new("cc").args(["-O1", "-o"]).arg(into).arg(SOURCE).arg("-lnfs").status();
    assert!(status.unwrap().success(), "the judge does not compile");
    Some(())
}

#[track_caller]
fn judge(program: &Path, server: &Running) {
    for transport in ["tcp", "udp"] {
        let port = server.address.port().to_string();
        let ended = Command::new("timeout")
            .arg("20")
            .arg(program)
            .args([port.as_str(), transport])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "over {transport}: {errors} {}", ended.status);
        assert_eq!(ended.stdout, b"judged\n");
    }
}

#[test]
fn libnfs_finds_every_procedure_of_version_2_as_the_standard_has_it() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("libnfs_v2");
    if compile(&program).is_none() {
        return;
    }
    judge(&program, &in_memory());
    let root = place.path().join("export");
    std::fs::create_dir(&root).unwrap();
    judge(&program, &run(NfsFiles::Directory { root, flush: Flush::Never }, false));
}
