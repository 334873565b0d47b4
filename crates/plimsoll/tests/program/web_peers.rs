//! Foreign web servers that write down every request: nginx and Caddy.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use plimsoll_testkit::peers::require_peer;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::{signal, wait_until};

/// A server that somebody else has started, on a port and on a Unix socket.
pub struct WebPeer {
    pub name: &'static str,
    pub port: u16,
    child: Child,
    place: TempDir,
    line: fn(&str) -> Option<String>,
}

impl WebPeer {
    /// Those that are installed.
    pub fn all() -> Vec<Self> {
        [Self::nginx(), Self::caddy()].into_iter().flatten().collect()
    }

    /// With `location` in its server besides the page that answers everything.
    pub fn nginx_with(location: &str) -> Option<Self> {
        let program = require_peer("nginx")?;
        let config = |port: u16, place: &Path| {
            let place = place.display();
            format!(
                "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr;\n\
                 events {{}}\nhttp {{\nlog_format line '$request_method $request_uri $status';\n\
                 access_log {place}/log line;\nclient_body_temp_path {place}/body;\n\
                 server {{ listen 127.0.0.1:{port}; listen unix:{place}/socket;\n\
                 location / {{ return 200 \"hello\"; }}\n{location}\n}} }}\n"
            )
        };
        let arguments = |place: &Path| {
            let config = place.join("config");
            let texts = ["-p".into(), place.into(), "-c".into(), config, "-e".into()];
            texts.into_iter().chain(["stderr".into()]).collect()
        };
        Some(Self::start("nginx", program, config, arguments, |line| Some(line.to_owned())))
    }

    fn nginx() -> Option<Self> {
        Self::nginx_with("")
    }

    fn caddy() -> Option<Self> {
        let program = require_peer("caddy")?;
        let config = |port: u16, place: &Path| {
            let place = place.display();
            format!(
                "{{\nadmin off\nauto_https off\n}}\n\
                 http://localhost:{port}, http://127.0.0.1:{port} {{\n\
                 bind 127.0.0.1 unix/{place}/socket\nlog {{\noutput file {place}/log\n\
                 format json\n}}\nrespond \"hello\" 200\n}}\n"
            )
        };
        let arguments = |place: &Path| {
            let config = place.join("config");
            ["run".into(), "--adapter".into(), "caddyfile".into(), "--config".into(), config].into()
        };
        Some(Self::start("caddy", program, config, arguments, caddy_line))
    }

    fn start(
        name: &'static str,
        program: PathBuf,
        config: impl Fn(u16, &Path) -> String,
        arguments: impl Fn(&Path) -> Vec<PathBuf>,
        line: fn(&str) -> Option<String>,
    ) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let place = TempDir::new().unwrap();
        fs::write(place.path().join("config"), config(port, place.path())).unwrap();
        let mut command = Command::new(program);
        command
            .args(arguments(place.path()))
            .env("HOME", place.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME");
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // A port that was free a moment ago may still be held by a child that is being started.
        wait_until(name, || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { name, port, child, place, line }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub fn socket(&self) -> PathBuf {
        self.place.path().join("socket")
    }

    /// How often its log has each `METHOD target status`, once it has `total` in all.
    pub fn log_of(&self, total: u64) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        wait_until("the log is written", || {
            counts = self.log();
            counts.values().sum::<u64>() >= total
        });
        counts
    }

    fn log(&self) -> BTreeMap<String, u64> {
        let text = fs::read_to_string(self.place.path().join("log")).unwrap_or_default();
        let mut counts = BTreeMap::new();
        for line in text.lines().filter_map(self.line) {
            *counts.entry(line).or_default() += 1;
        }
        counts
    }
}

impl Drop for WebPeer {
    fn drop(&mut self) {
        signal(&self.child, Signal::TERM);
        let _ = self.child.wait();
    }
}

fn caddy_line(line: &str) -> Option<String> {
    let entry: serde_json::Value = serde_json::from_str(line).ok()?;
    let request = entry.get("request")?;
    let (method, uri) = (request.get("method")?.as_str()?, request.get("uri")?.as_str()?);
    Some(format!("{method} {uri} {}", entry.get("status")?))
}
