//! `builtin:` targets: the reference server, in a process of its own.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use crate::process::{Facts, Launch, ParentWatch, Process};
use crate::{ServerError, ServerProcess, Software, cores};

/// What a reference server writes to standard output, followed by its URL, once it listens.
pub const ANNOUNCEMENT: &str = "listening on ";

/// How long a reference server may take until it listens.
const START_WAIT: Duration = Duration::from_secs(15);

/// A reference web server to start: `serve web` of a program, on a free port of 127.0.0.1.
#[derive(Clone, Debug)]
pub struct BuiltinWeb {
    /// The program; normally [`std::env::current_exe`].
    pub program: PathBuf,
    /// Arguments after `serve web --listen 127.0.0.1:0 --stop-with-stdin [--cores LIST]`.
    pub arguments: Vec<OsString>,
    /// Cores to pin it to, one serving thread each; empty: one thread anywhere.
    pub cores: Vec<u32>,
    /// Version to disclose.
    pub version: String,
}

impl BuiltinWeb {
    /// Starts it and waits until it says where it listens.
    pub fn start(&self) -> Result<ServerProcess, ServerError> {
        let arguments = self.all_arguments();
        let shown: Vec<_> = arguments.iter().map(|a| a.to_string_lossy().into_owned()).collect();
        let mut process = Process::start(Launch {
            program: self.program.clone(),
            arguments,
            cores: &self.cores,
            scratch: None,
            remove_when_killed: None,
            parent_watch: ParentWatch::Stdin,
        })?;
        let software =
            Software { name: "plimsoll serve web".into(), version: self.version.clone() };
        let (scheme, address) = wait_for_announcement(&mut process, &software)?;
        let configuration = format!("plimsoll {}", shown.join(" "));
        let facts = Facts { scheme, software, configuration, cores: self.cores.clone() };
        Ok(ServerProcess::new(process, address, facts))
    }

    fn all_arguments(&self) -> Vec<OsString> {
        let mut all: Vec<OsString> =
            ["serve", "web", "--listen", "127.0.0.1:0", "--stop-with-stdin"].map(Into::into).into();
        if !self.cores.is_empty() {
            all.extend(["--cores".into(), cores::list(&self.cores).into()]);
        }
        all.extend(self.arguments.iter().cloned());
        all
    }
}

fn wait_for_announcement(
    process: &mut Process,
    software: &Software,
) -> Result<(&'static str, SocketAddr), ServerError> {
    let (sender, announced) = mpsc::channel();
    if let Some(stdout) = process.take_stdout() {
        std::thread::spawn(move || {
            // Reads on to the end, so that the server never blocks on a full pipe.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(found) = parse_announcement(&line) {
                    let _ = sender.send(found);
                }
            }
        });
    }
    match announced.recv_timeout(START_WAIT) {
        Ok(found) => Ok(found),
        Err(why) => {
            let status = process.stop()?;
            let (software, tail) = (software.to_string(), process.stderr_tail());
            Err(match why {
                mpsc::RecvTimeoutError::Disconnected => {
                    ServerError::Ended { software, status, tail }
                }
                mpsc::RecvTimeoutError::Timeout => {
                    ServerError::Silent { software, waited: START_WAIT, tail }
                }
            })
        }
    }
}

fn parse_announcement(line: &str) -> Option<(&'static str, SocketAddr)> {
    let url = line.strip_prefix(ANNOUNCEMENT)?;
    let (scheme, rest) = match url.split_once("://")? {
        ("http", rest) => ("http", rest),
        ("https", rest) => ("https", rest),
        _ => return None,
    };
    Some((scheme, rest.strip_suffix('/')?.parse().ok()?))
}
