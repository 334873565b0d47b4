//! Real programs that tests measure ours against: foreign servers and foreign clients.

#[cfg(feature = "servers")]
use std::net::IpAddr;
#[cfg(feature = "servers")]
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

#[cfg(feature = "servers")]
use plimsoll_http::server::nginx::{self, NginxRequest};
#[cfg(feature = "servers")]
use plimsoll_servers::{ServerProcess, listener, programs::LOOPBACK};
use rustix::process::{Pid, Signal, kill_process};

use crate::skips::skip;

/// Where programs are that are not always in a user's `PATH`.
const USUAL_DIRECTORIES: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/nginx/sbin"];

/// The path of the program `name`. If it is missing, a test may return early: it was counted as
/// skipped, or has failed here if skips are not allowed (see [`skip`]).
pub fn require_peer(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = std::env::split_paths(&path)
        .chain(USUAL_DIRECTORIES.iter().map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file());
    if program.is_none() {
        skip(&format!("peer {name} is not installed"));
    }
    program
}

/// For tests that only root can run: `None`, after [`skip`], for other users.
pub fn require_root(what: &str) -> Option<()> {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(&format!("{what} needs root"));
    }
    is_root.then_some(())
}

/// A real nginx that serves `root`, or `None` (see [`require_peer`]). Stops when dropped.
#[cfg(feature = "servers")]
pub fn nginx(root: &Path, cores: &[u32]) -> Option<ServerProcess> {
    require_peer("nginx")?;
    let request = NginxRequest {
        listen_on: LOOPBACK,
        root: root.to_owned(),
        cores: cores.to_vec(),
        tls: None,
        search: None,
        remove_when_killed: None,
        suffix: None,
    };
    Some(nginx::start(&request).unwrap())
}

/// A Python that has xllamacpp, which contains llama.cpp's own server, or `None` (see
/// [`require_peer`]).
pub fn llama_python() -> Option<PathBuf> {
    match std::env::var_os("PLIMSOLL_LLAMA_PYTHON").filter(|path| !path.is_empty()) {
        Some(path) => Some(path.into()),
        None => require_peer("python-xllamacpp"),
    }
}

/// Addresses of this network namespace on which a server's processes take TCP connections.
#[cfg(feature = "servers")]
pub fn listens_on(server: &ServerProcess) -> Vec<IpAddr> {
    let pids = server.pids().unwrap();
    let mut addresses: Vec<IpAddr> = listener::all()
        .into_iter()
        .filter(|socket| socket.holder.as_ref().is_some_and(|(pid, _)| pids.contains(pid)))
        .map(|socket| socket.address.ip().to_canonical())
        .collect();
    addresses.dedup();
    addresses
}

/// Stops processes with SIGSTOP, for example the `pids()` of a server, and lets them go on after
/// `duration`.
pub fn suspend(pids: &[u32], duration: Duration) {
    let signal_all = |signal| {
        for &pid in pids {
            let pid = Pid::from_raw(pid.cast_signed()).unwrap();
            kill_process(pid, signal).unwrap();
        }
    };
    signal_all(Signal::STOP);
    std::thread::sleep(duration);
    signal_all(Signal::CONT);
}

/// What curl saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurlReply {
    /// curl's own exit status: 0, or the kind of failure (curl(1), EXIT CODES).
    pub exit: i32,
    /// Head and body of all replies, as received.
    pub output: Vec<u8>,
    /// What it wrote to standard error (with `-v`: the whole exchange).
    pub log: String,
}

/// Runs curl with `arguments`, at most 10 s, or `None` where it is missing.
pub fn curl(arguments: &[&str]) -> Option<CurlReply> {
    let output = Command::new(require_peer("curl")?)
        .args(["-q", "--silent", "--noproxy", "*", "--max-time", "10"])
        .args(arguments)
        .output()
        .unwrap();
    Some(CurlReply {
        exit: output.status.code().unwrap(),
        output: output.stdout,
        log: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
