//! A full disk under the bundle.

use std::path::Path;
use std::process::Command;

use plimsoll_testkit::fault_server::{Fault, FaultServer};
use plimsoll_testkit::peers::{require_peer, require_root};
use plimsoll_testkit::skips::skip;

use plimsoll_testkit::program::{plimsoll, points_finished, short};

/// A small file system of its own; `None`, after [`skip`], where this user may not mount one.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(at: &'a Path, size: &str) -> Option<Self> {
        require_root("mounting a small tmpfs")?;
        let output = Command::new(require_peer("mount")?)
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(at)
            .output()
            .unwrap();
        if !output.status.success() {
            // In a container root may lack this right.
            skip(&format!("no tmpfs: {}", String::from_utf8_lossy(&output.stderr).trim()));
            return None;
        }
        Some(Self(at))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_ends_with_3_and_keeps_what_is_finished() {
    let temp_dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(temp_dir.path(), "160k") else { return };
    let bundle = disk.0.join("b");
    let server = FaultServer::with_fixed_body(100, |_| Fault::None);
    let points = (0..60).map(|i| (100 + i).to_string()).collect::<Vec<_>>().join(",");
    let more = ["--points", &points, "--set", "load.mode=open"];
    let ended = plimsoll(&short("web-url", &server.url(), &bundle, &more));
    ended.check(3, &["no space left", "plimsoll resume"]);
    let finished = points_finished(&bundle);
    assert!((1..60).contains(&finished), "{finished} points: {}", ended.err);
}
