//! Profiles a server with `perf`, on this host or through ssh: one shell, which gets `script.sh` on
//! its standard input, samples into a directory of its own, prints the samples and removes it.

mod fold;

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use plimsoll_model::server_profile::ProfileScope;
use plimsoll_process::{ChildProcess, Tail};
use rustix::process::Signal;
use thiserror::Error;

use crate::census::Census;
use crate::root::Root;
use crate::source::{MonitorUrl, SourceOptions, ssh_arguments};
pub use fold::Folded;
use fold::Folder;

const SCRIPT: &str = include_str!("script.sh");
/// How lines begin that are not of perf.
const MARK: &str = "=plimsoll ";
/// Longest wait beyond the profile itself: a logon, and names for all addresses.
const WAIT: Duration = Duration::from_secs(60);
/// A line of perf has a name, and those of templates are long; a longer one is cut.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// Bytes of all samples; beyond, the profile ends.
const TEXT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Bytes that are kept of the message of a perf that failed.
const MESSAGE_BYTES_MAX: usize = 1_024;

/// How long the shell may take to end by itself.
const END_WAIT: Duration = Duration::from_secs(2);

/// Where perf runs, and what it samples.
#[derive(Clone, Debug)]
pub struct Profiler {
    program: OsString,
    arguments: Vec<OsString>,
    source: Option<String>,
    /// Empty: the whole host.
    pids: Vec<u32>,
}

/// Why there is no profile.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProfileError {
    /// No perf.
    #[error(
        "perf is not installed on {host}; install it there (Debian: apt install linux-perf, \
         Ubuntu: linux-tools-generic, Fedora: perf)"
    )]
    Absent {
        /// Which host.
        host: String,
    },
    /// perf, the shell or ssh refused.
    #[error(
        "perf does not work on {host}: {message}; run as root there, or permit it: sysctl \
         kernel.perf_event_paranoid=-1"
    )]
    Failed {
        /// Which host.
        host: String,
        /// Its own message.
        message: String,
    },
}

impl Profiler {
    /// Processes of this host with all their descendants; all of the host where none is named.
    pub fn here(pids: &[u32]) -> Self {
        let processes = Census::take(&Root::default()).processes;
        let mut all = pids.to_vec();
        let mut next = 0;
        while let Some(parent) = all.get(next).copied() {
            next += 1;
            let children = processes.iter().filter(|(_, it)| it.parent == parent);
            let new: Vec<u32> = children.map(|it| *it.0).filter(|pid| !all.contains(pid)).collect();
            all.extend(new);
        }
        Self { program: "sh".into(), arguments: Vec::new(), source: None, pids: all }
    }

    /// Profiles the whole host of a source; `None` where it is reached without a shell.
    pub fn there(url: &MonitorUrl, options: &SourceOptions) -> Option<Self> {
        let arguments = ssh_arguments(url)?;
        let program = options.ssh.clone().into();
        Some(Self { program, arguments, source: Some(url.name()), pids: Vec::new() })
    }

    /// The host; `None` is this one.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// What is sampled.
    pub const fn scope(&self) -> ProfileScope {
        if self.pids.is_empty() { ProfileScope::Host } else { ProfileScope::Processes }
    }

    /// Whether perf is there and may sample, tried for a moment.
    pub fn check(&self) -> Result<(), ProfileError> {
        let scope = match self.scope() {
            ProfileScope::Host => "-a",
            ProfileScope::Processes => "self",
        };
        self.ask(scope, None).map(drop)
    }

    /// Samples for this time. The call takes a moment longer.
    pub fn record(&self, seconds: u32) -> Result<Folded, ProfileError> {
        let pids: Vec<String> = self.pids.iter().map(u32::to_string).collect();
        let scope = match self.scope() {
            ProfileScope::Host => "-a".to_owned(),
            ProfileScope::Processes => format!("-p {}", pids.join(",")),
        };
        self.ask(&scope, Some(seconds))
    }

    fn ask(&self, scope: &str, seconds: Option<u32>) -> Result<Folded, ProfileError> {
        let failed = |message: String| ProfileError::Failed { host: self.host(), message };
        let not_started = |e: io::Error| failed(e.to_string());
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        let mut child = ChildProcess::start_with_pipes(command).map_err(not_started)?;
        let errors = Tail::from_output(child.stderr.take()).map_err(not_started)?;
        let length = seconds.map(|seconds| seconds.to_string()).unwrap_or_default();
        let text = format!("scope='{scope}'\nseconds={length}\n{SCRIPT}");
        let (sender, answer) = channel();
        if let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) {
            let talk = move || {
                // If the shell has ended, the other end shows it.
                let _ = input.write_all(text.as_bytes());
                drop(input);
                let _ = sender.send(read(output));
            };
            let thread = std::thread::Builder::new().name("plimsoll-perf".into()).spawn(talk);
            thread.map_err(not_started)?;
        }
        let wait = WAIT + Duration::from_secs(u64::from(seconds.unwrap_or(0)));
        let result = answer.recv_timeout(wait);
        end(&child);
        match result {
            Ok(Answer::Samples(folded)) => Ok(folded),
            Ok(Answer::Absent) => Err(ProfileError::Absent { host: self.host() }),
            Ok(Answer::Failed(message)) => Err(failed(in_one_line(&message))),
            Ok(Answer::Nothing) => Err(failed(in_one_line(&errors.text()))),
            Err(_) => Err(failed(format!("no answer within {} s", wait.as_secs()))),
        }
    }

    fn host(&self) -> String {
        self.source.clone().unwrap_or_else(|| "this host".to_owned())
    }
}

/// The shell's answer.
enum Answer {
    Absent,
    Failed(String),
    Samples(Folded),
    /// It ended in the middle, or before its first output.
    Nothing,
}

fn read(output: impl Read) -> Answer {
    let mut output = BufReader::new(output.take(TEXT_BYTES_MAX));
    let mut folder: Option<Folder> = None;
    let mut failure: Option<String> = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut output).take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches('\n');
        match (text.strip_prefix(MARK), &mut folder, &mut failure) {
            (Some("absent"), ..) => return Answer::Absent,
            (Some("failed"), ..) => failure = Some(String::new()),
            (Some("samples"), ..) => folder = Some(Folder::default()),
            (Some("end"), Some(_), _) => {
                return Answer::Samples(folder.map(Folder::finish).unwrap_or_default());
            }
            (_, _, Some(message)) if message.len() < MESSAGE_BYTES_MAX => {
                message.push_str(text);
                message.push('\n');
            }
            (_, Some(folder), _) => folder.line(text),
            _ => {}
        }
    }
    failure.map_or(Answer::Nothing, Answer::Failed)
}

/// The first lines of a failed perf's message; the others are a manual.
fn in_one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && *line != "Error:");
    let clean = |line: &str| line.chars().filter(|c| !c.is_control()).collect::<String>();
    let first: Vec<String> = lines.take(2).map(clean).collect();
    match first.is_empty() {
        true => "it ended without a word".to_owned(),
        false => first.join(" ").trim_end_matches('.').to_owned(),
    }
}

/// The script removes what it wrote when it ends, by itself as a rule.
fn end(child: &ChildProcess) {
    if !matches!(child.wait_for(END_WAIT), Ok(Some(_))) {
        child.signal_group(Signal::TERM);
        let _ = child.wait();
    }
}

#[cfg(test)]
mod tests;
