//! Profiles a server with `perf`, on this host or through ssh: one shell, which gets `script.sh` on
//! its standard input, samples into a directory of its own, prints what it saw and removes it.

mod fold;

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use plimsoll_model::server_profile::ProfileScope;
use thiserror::Error;

use crate::census::Census;
use crate::root::Root;
use crate::source::{MonitorUrl, SourceWish, ssh_arguments};
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
/// Bytes that are kept of the words of a perf that failed.
const WORDS_BYTES_MAX: usize = 1_024;

/// How often and how far apart is looked whether the shell has ended.
const END_LOOKS: u32 = 200;
const END_LOOK: Duration = Duration::from_millis(10);

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
        "perf is not installed on {place}; install it there (Debian: apt install linux-perf, \
         Ubuntu: linux-tools-generic, Fedora: perf)"
    )]
    Absent {
        /// Which host.
        place: String,
    },
    /// perf, the shell or ssh said no.
    #[error(
        "perf does not work on {place}: {words}; run as root there, or permit it: sysctl \
         kernel.perf_event_paranoid=-1"
    )]
    Failed {
        /// Which host.
        place: String,
        /// In its own words.
        words: String,
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

    /// All of the host of a source; `None` where it is reached without a shell.
    pub fn there(url: &MonitorUrl, wish: &SourceWish) -> Option<Self> {
        let arguments = ssh_arguments(url)?;
        let program = wish.ssh.clone().into();
        Some(Self { program, arguments, source: Some(url.name()), pids: Vec::new() })
    }

    /// The host; `None` is this one.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// What is sampled.
    pub const fn scope(&self) -> ProfileScope {
        match self.pids.is_empty() {
            true => ProfileScope::Host,
            false => ProfileScope::Processes,
        }
    }

    /// Whether perf is there and may sample, tried for a moment.
    pub fn check(&self) -> Result<(), ProfileError> {
        let scope = match self.scope() {
            ProfileScope::Host => "-a",
            ProfileScope::Processes => "self",
        };
        self.ask(scope, None).map(drop)
    }

    /// Samples for so long. What is begun now is over a moment later than that.
    pub fn record(&self, seconds: u32) -> Result<Folded, ProfileError> {
        let pids: Vec<String> = self.pids.iter().map(u32::to_string).collect();
        let scope = match self.scope() {
            ProfileScope::Host => "-a".to_owned(),
            ProfileScope::Processes => format!("-p {}", pids.join(",")),
        };
        self.ask(&scope, Some(seconds))
    }

    fn ask(&self, scope: &str, seconds: Option<u32>) -> Result<Folded, ProfileError> {
        let failed = |words: String| ProfileError::Failed { place: self.place(), words };
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for this program.
        command.process_group(0);
        let mut child = command.spawn().map_err(|e| failed(e.to_string()))?;
        let length = seconds.map(|seconds| seconds.to_string()).unwrap_or_default();
        let text = format!("scope='{scope}'\nseconds={length}\n{SCRIPT}");
        let (sender, answer) = channel();
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        if let (Some(mut input), Some(output), Some(mut errors)) = streams {
            let talk = move || {
                // A shell that has gone says so at the other end.
                let _ = input.write_all(text.as_bytes());
                drop(input);
                let mut told = read(output);
                if let Answer::Nothing(words) = &mut told {
                    let _ = (&mut errors).take(WORDS_BYTES_MAX as u64).read_to_string(words);
                }
                let _ = sender.send(told);
            };
            let thread = std::thread::Builder::new().name("plimsoll-perf".into()).spawn(talk);
            thread.map_err(|e| failed(e.to_string()))?;
        }
        let wait = WAIT + Duration::from_secs(u64::from(seconds.unwrap_or(0)));
        let told = answer.recv_timeout(wait);
        end(&mut child);
        match told {
            Ok(Answer::Samples(folded)) => Ok(folded),
            Ok(Answer::Absent) => Err(ProfileError::Absent { place: self.place() }),
            Ok(Answer::Failed(words) | Answer::Nothing(words)) => Err(failed(in_one_line(&words))),
            Err(_) => Err(failed(format!("no answer within {} s", wait.as_secs()))),
        }
    }

    fn place(&self) -> String {
        self.source.clone().unwrap_or_else(|| "this host".to_owned())
    }
}

/// What the shell said.
enum Answer {
    Absent,
    Failed(String),
    Samples(Folded),
    /// It ended in the middle, or before its first word.
    Nothing(String),
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
            (_, _, Some(words)) if words.len() < WORDS_BYTES_MAX => {
                words.push_str(text);
                words.push('\n');
            }
            (_, Some(folder), _) => folder.line(text),
            _ => {}
        }
    }
    failure.map_or_else(|| Answer::Nothing(String::new()), Answer::Failed)
}

/// The first words of a perf that failed; the others are a manual.
fn in_one_line(words: &str) -> String {
    let lines = words.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && *line != "Error:");
    let clean = |line: &str| line.chars().filter(|c| !c.is_control()).collect::<String>();
    let first: Vec<String> = lines.take(2).map(clean).collect();
    match first.is_empty() {
        true => "it ended without a word".to_owned(),
        false => first.join(" ").trim_end_matches('.').to_owned(),
    }
}

/// The script removes what it wrote when it ends, by itself as a rule.
fn end(child: &mut Child) {
    for _ in 0..END_LOOKS {
        if child.try_wait().is_ok_and(|status| status.is_some()) {
            return;
        }
        std::thread::sleep(END_LOOK);
    }
    let group = rustix::process::Pid::from_child(child);
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
    let _ = child.wait();
}

#[cfg(test)]
mod tests;
