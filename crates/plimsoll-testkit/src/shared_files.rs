//! A share to run against, and runs of one short point.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{Ended, Served, command, result, serve, wait_for, wait_until};

/// Where the program looks for a password that no URL has.
pub const PASSWORD_VARIABLE: &str = "PLIMSOLL_PASSWORD";
/// Of the user that [`serve_user`] lets in.
pub const PASSWORD: &str = "plimsoll-test-7513";
const USER: &str = "ann";

/// `plimsoll serve smb` for one user, whose sessions can be signed.
pub fn serve_user(flags: &[&str]) -> Served {
    let mut command = serve("smb", &[&["--user", USER], flags].concat());
    command.env(PASSWORD_VARIABLE, PASSWORD);
    Served::start(command)
}

/// The URL of [`serve_user`] with the password in it.
pub fn with_password(server: &Served) -> String {
    server.url.replace(&format!("{USER}@"), &format!("{USER}:{PASSWORD}@"))
}

/// The share of a server by way of a proxy at `address`, for the user of its URL if it has one.
pub fn through(server: &Served, address: SocketAddr) -> String {
    server.url.replace(&server.address().to_string(), &address.to_string())
}

/// Flags of one point of 1.5 s that begins at once, so that all that is done in it counts.
pub const ONE_POINT: [&str; 16] = [
    "--profile",
    "quick",
    "--progress",
    "none",
    "--workers",
    "1",
    "--set",
    "profiles.quick.warm_up=1ms",
    "--set",
    "profiles.quick.measure=1500ms",
    "--set",
    "profiles.quick.drain=10s",
    "--set",
    "load.start_delay=0s",
    "--set",
    "workload.verify_one_in=1",
];

/// `plimsoll run disk-mix` with one point; flags in `more` win.
pub fn disk_mix(url: &str, bundle: &Path, more: &[&str]) -> Command {
    let arguments = ["run", "disk-mix", url, "--out", bundle.to_str().unwrap()];
    let mut run = command(&[&arguments[..], &ONE_POINT, more].concat());
    run.env(PASSWORD_VARIABLE, PASSWORD).stdout(Stdio::piped()).stderr(Stdio::piped());
    run
}

/// A run to its end, with what it left.
#[derive(Debug)]
pub struct Finished {
    /// How the program ended.
    pub ended: Ended,
    /// `result.json` of its bundle.
    pub result: Value,
}

impl Finished {
    /// Its only point.
    pub fn point(&self) -> &Value {
        &self.result["points"][0]
    }

    /// Clients that stayed.
    pub fn stayed(&self) -> u64 {
        self.point()["clients_participating"].as_u64().unwrap()
    }

    /// Errors of a class.
    pub fn errors(&self, class: &str) -> u64 {
        self.point()["errors"][class].as_u64().unwrap_or(0)
    }

    /// Ops that ended with another status than expected.
    pub fn unexpected(&self) -> u64 {
        let counts = self.point()["unexpected"].as_array();
        counts.into_iter().flatten().map(|one| one["count"].as_u64().unwrap()).sum()
    }
}

/// Runs one point; `begun` is called when it begins.
#[track_caller]
pub fn run(url: &str, more: &[&str], begun: impl FnOnce()) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("b");
    let mut child = disk_mix(url, &bundle, more).spawn().unwrap();
    // If it ends before its point, the check below reports why.
    wait_until("the point begins", || has_begun(&bundle) || child.try_wait().unwrap().is_some());
    begun();
    let ended = wait_for(child);
    assert!(has_begun(&bundle), "{ended:?}");
    Finished { ended, result: result(&bundle) }
}

/// The first point has begun.
pub fn has_begun(bundle: &Path) -> bool {
    let journal = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap_or_default();
    journal.contains("point_started")
}
