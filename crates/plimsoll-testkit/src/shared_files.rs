//! A share to run against, and runs of one short point.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::program::{Ended, command, result, wait_for, wait_until};

/// Password of [`SharedFiles::with_user`].
pub const PASSWORD: &str = "a pass-word 5";
const USER: &str = "ann";

/// `plimsoll serve smb` as a process of its own, stopped when dropped.
pub struct SharedFiles {
    child: Child,
    url: String,
}

impl SharedFiles {
    /// For guests.
    pub fn for_guests() -> Self {
        Self::with(&[])
    }

    /// For one user, whose sessions can be signed.
    pub fn with_user() -> Self {
        Self::with(&["--user", USER])
    }

    /// For guests, with more flags.
    pub fn with(flags: &[&str]) -> Self {
        let mut child = command(&["serve", "smb", "--listen", "127.0.0.1:0", "--stop-with-stdin"])
            .args(flags)
            .env("PLIMSOLL_PASSWORD", PASSWORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let url = said.trim().strip_prefix("listening on ").unwrap().to_owned();
        Self { child, url }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        let (_, place) = self.url.split_once("//").unwrap();
        let (authority, _) = place.split_once('/').unwrap();
        authority.rsplit_once('@').map_or(authority, |(_, address)| address).parse().unwrap()
    }

    /// Its share by way of a proxy at `address`, for its user.
    pub fn through(&self, address: SocketAddr, user: bool) -> String {
        let (_, share) = self.url.rsplit_once('/').unwrap();
        let user = if user { format!("{USER}@") } else { String::new() };
        format!("smb://{user}{address}/{share}")
    }
}

impl Drop for SharedFiles {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
    let place = ["run", "disk-mix", url, "--out", bundle.to_str().unwrap()];
    let mut run = command(&[&place[..], &ONE_POINT, more].concat());
    run.env("PLIMSOLL_PASSWORD", PASSWORD).stdout(Stdio::piped()).stderr(Stdio::piped());
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
    let place = tempfile::tempdir().unwrap();
    let bundle = place.path().join("b");
    let mut child = disk_mix(url, &bundle, more).spawn().unwrap();
    // One that ends before its point says why below.
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
