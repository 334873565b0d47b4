//! NFSv2 on real sockets, over TCP and UDP, tested with a small program around libnfs.

use std::path::Path;
use std::process::Command;

use super::running::{Running, in_memory};
use plimsoll_testkit::peers::require_peer;
use plimsoll_testkit::skips::skip;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nfs/server/libnfs_v2.c");
/// Of the package libnfs-dev, which has no program to look for.
const HEADER: &str = "/usr/include/nfsc/libnfs-raw-nfs.h";

/// Compiles that program, or prints why it cannot.
fn compile(into: &Path) -> Option<()> {
    require_peer("cc")?;
    if !Path::new(HEADER).exists() {
        skip("libnfs-dev is not installed");
        return None;
    }
    let status = Command::new("cc").args(["-O1", "-o"]).arg(into).arg(SOURCE).arg("-lnfs").status();
    assert!(status.unwrap().success(), "the judge does not compile");
    Some(())
}

#[track_caller]
fn cross_check(program: &Path, server: &Running) {
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
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("libnfs_v2");
    if compile(&program).is_none() {
        return;
    }
    cross_check(&program, &in_memory());
}
