//! An nginx that logs every request.

use std::fs;
use std::net::{IpAddr, TcpListener};
use std::process::{Command, Stdio};

use plimsoll_testkit::namespaces::Namespaces;
use plimsoll_testkit::peers::require_peer;
use plimsoll_testkit::program::{Running, wait_until};
use tempfile::TempDir;

/// Ends when dropped.
pub struct AccessLog {
    /// URL of its root, without the slash.
    pub url: String,
    _process: Running,
    temp_dir: TempDir,
}

/// A request in the log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// The client's address.
    pub from: IpAddr,
    /// `METHOD target status`.
    pub request: String,
}

impl AccessLog {
    /// On a port of the loopback interface; `None` without nginx.
    pub fn start() -> Option<Self> {
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        Self::start_at(&address.to_string(), |nginx| nginx)
    }

    /// In the hub.
    pub fn start_in(namespaces: &Namespaces) -> Option<Self> {
        let address = format!("{}:8080", namespaces.hub_address());
        Self::start_at(&address, |nginx| namespaces.in_hub(&nginx))
    }

    /// In a namespace: 0, 1, 2 …
    pub fn start_in_spoke(namespaces: &Namespaces, spoke: usize) -> Option<Self> {
        let address = format!("{}:8080", namespaces.address(spoke));
        Self::start_at(&address, |nginx| namespaces.in_spoke(spoke, &nginx))
    }

    fn start_at(address: &str, enter: impl FnOnce(Command) -> Command) -> Option<Self> {
        let nginx = require_peer("nginx")?;
        let temp_dir = tempfile::tempdir().unwrap();
        let at = temp_dir.path().display().to_string();
        let configuration = format!(
            "daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log stderr;\nevents {{}}\n\
             http {{\nlog_format seen '$remote_addr $request_method $request_uri $status';\n\
             access_log {at}/log seen;\nkeepalive_requests 1000000000;\n\
             client_body_temp_path {at}/body;\n\
             server {{ listen {address};\nlocation / {{ return 200 \"hello\"; }} }}\n}}\n"
        );
        fs::write(temp_dir.path().join("configuration"), configuration).unwrap();
        let mut command = Command::new(nginx);
        command.args(["-p", &at, "-c", "configuration", "-e", "stderr"]);
        let mut command = enter(command);
        let process = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("nginx listens", || temp_dir.path().join("pid").exists());
        Some(Self { url: format!("http://{address}"), _process: Running(process), temp_dir })
    }

    /// All requests in the order of their answers, once there are `least` of them.
    #[track_caller]
    pub fn lines(&self, least: usize) -> Vec<Line> {
        let read = || fs::read_to_string(self.temp_dir.path().join("log")).unwrap_or_default();
        wait_until("the log is written", || read().lines().count() >= least);
        read().lines().map(line).collect()
    }
}

fn line(text: &str) -> Line {
    let (from, request) = text.split_once(' ').unwrap();
    Line { from: from.parse().unwrap(), request: request.to_owned() }
}
