//! A full disk under the bundle; the disks below a server's files.

use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_testkit::fault_server::{Fault, FaultServer};
use plimsoll_testkit::peers::{require_peer, require_root};
use plimsoll_testkit::skips::skip;

use plimsoll_testkit::program::{command, plimsoll, points_finished, result, short, wait_for};

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

/// A file system on a loop device, which writes at once; removed when dropped.
struct LoopDisk {
    folder: tempfile::TempDir,
    device: String,
}

impl LoopDisk {
    /// `None`, after [`skip`], where this user may not have one.
    fn mount() -> Option<Self> {
        require_root("a loop device")?;
        let programs = ["losetup", "mkfs.ext4", "mount"].map(require_peer);
        let [Some(losetup), Some(mkfs), Some(mount)] = programs else { return None };
        let folder = tempfile::tempdir().unwrap();
        let (image, at) = (folder.path().join("image"), folder.path().join("at"));
        std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        std::fs::create_dir(&at).unwrap();
        let output = Command::new(losetup).args(["--find", "--show"]).arg(&image).output().unwrap();
        if !output.status.success() {
            skip(&format!("no loop device: {}", String::from_utf8_lossy(&output.stderr).trim()));
            return None;
        }
        let device = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        let disk = Self { folder, device };
        let made = Command::new(mkfs).args(["-q", &disk.device]).status().unwrap();
        let mounted = Command::new(mount).args(["-o", "sync", &disk.device]).arg(at).status();
        if !made.success() || !mounted.unwrap().success() {
            skip("no file system on a loop device");
            return None;
        }
        Some(disk)
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("at")
    }

    fn name(&self) -> &str {
        self.device.trim_start_matches("/dev/")
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).stderr(Stdio::null()).status();
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

#[test]
fn the_disks_below_a_servers_files_are_found_and_those_of_its_log_can_be_named() {
    let (Some(data), Some(log)) = (LoopDisk::mount(), LoopDisk::mount()) else { return };
    let temp_dir = tempfile::tempdir().unwrap();
    let (bundle, system) = (temp_dir.path().join("b"), temp_dir.path().join("system.toml"));
    let named = |log: &str| format!("[[system]]\nname = \"x\"\ndisks = {{ log = [{log:?}] }}\n");
    std::fs::write(&system, named("sdzz")).unwrap();
    let window = "profiles.quick.measure=2s";
    let more = ["--points", "2", "--system", system.to_str().unwrap(), "--set", window];
    let arguments = short("transactions-disk", "builtin:", &bundle, &more);
    let disks = ["[[system]] x: disks: \"sdzz\" is neither one of its disks", data.name()];
    plimsoll(&arguments).check(2, &disks);
    std::fs::write(&system, named(log.path().to_str().unwrap())).unwrap();
    let mut run = command(&arguments);
    run.env("TMPDIR", data.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = wait_for(run.spawn().unwrap());
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let result = result(&bundle);
    let sets = result["disclosure"]["disk_sets"].as_array().unwrap();
    let disk_of =
        |role: &str| sets.iter().find(|set| set["role"] == role).unwrap()["disks"][0].clone();
    assert_eq!([disk_of("log"), disk_of("data")], [log.name(), data.name()], "{sets:?}");
    let point = &result["points"][0];
    let resources = point["resources"].as_array().unwrap();
    // Where this machine is too busy for samples at the borders of the window there are none.
    if resources.iter().any(|used| used["name"] == format!("disk.{}.busy", data.name())) {
        let disks = point["disks"].as_array().unwrap();
        let of_data = disks.iter().find(|disk| disk["role"] == "data").unwrap();
        assert!(of_data["bytes_per_s"].as_f64().unwrap() > 0.0, "{disks:?}");
        assert!(disks.iter().any(|disk| disk["disk"] == log.name()), "{disks:?}");
        let costs = point["cost"].as_array().unwrap();
        let busy = |host: &serde_json::Value| host["figures"]["data_disks_busy"]["value"].as_f64();
        assert!(costs.iter().find_map(busy).unwrap() > 0.0, "{costs:?}");
    }
}
