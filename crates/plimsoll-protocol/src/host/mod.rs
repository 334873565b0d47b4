//! What a protocol brings to the host that runs it, beyond its state machines: it starts the
//! reference server and foreign ones, greets them before the first load point and reads their own
//! figures.
//!
//! The program has one list of [`Registration`]s and names no protocol elsewhere.
//!
//! This is apart from [`Protocol`], because only this part needs processes, tokio and a command
//! line.

pub mod arguments;
pub mod reach;

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_model::event::TimeKind;
use plimsoll_model::suite::{Profile, Suite};
use plimsoll_model::target::TargetUrl;
use plimsoll_model::units::{Bytes, Nanos};
use plimsoll_servers::{ANNOUNCEMENT, Builtin, ServerError, ServerProcess, Stop};
use tempfile::TempDir;

use crate::net::{OnProgress, Room};
use crate::{FileSetId, Protocol, ResolvedTarget};
pub use reach::{Target, is_here, who_listens};

/// A protocol as the program knows it.
pub struct Registration {
    /// Suites, plan, messages: what needs no socket.
    pub protocol: &'static Protocol,
    /// The reference server.
    pub reference: Reference,
    /// Foreign servers, `managed:NAME`.
    pub managed: &'static [Managed],
    /// Facts that methods restrict and every server started here has: path of a parameter below
    /// `generator`, and its value.
    pub servers_practice: &'static [(&'static str, &'static str)],
    /// Reaches every server once and queries what it holds.
    pub greet: fn(&Suite, &[Target], NeedsFiles) -> Result<Greeting, HostError>,
    /// The highest load whose files this host has room for, where it keeps them for servers it
    /// starts.
    pub room: AskRoom,
    /// Addresses the clients connect from; empty leaves it to the system.
    pub sources: fn(&Suite, &[Target]) -> Vec<IpAddr>,
    /// File sets in a directory of this host, for servers that serve one.
    pub directory: Option<DirectoryFileSet>,
    /// Reads a server's own figures, if it has any.
    pub status: Option<Status>,
    /// `HOST:PORT` or `unix:PATH` to connect to in place of what a URL names.
    pub connect_to: Option<ConnectTo>,
    /// Why a name or password in a URL is refused.
    pub refuse_user: Option<&'static str>,
    /// What `plimsoll calibrate` measures of servers of known behaviour.
    pub calibration: &'static [Calibration],
}

impl Registration {
    /// A registration with a reference server and nothing else. Servers are queried when the run is
    /// planned and store whatever the run writes.
    pub const fn new(protocol: &'static Protocol, reference: Reference) -> Self {
        Self {
            protocol,
            reference,
            managed: &[],
            servers_practice: &[],
            greet: greet_nobody,
            room: any_room,
            sources: any_source,
            directory: None,
            status: None,
            connect_to: None,
            refuse_user: None,
            calibration: &[],
        }
    }
}

/// The reference server: `plimsoll serve VERB`, `builtin:`.
pub struct Reference {
    /// What follows `plimsoll serve`.
    pub verb: &'static str,
    /// Its flags.
    pub command: fn() -> clap::Command,
    /// Serves until it is stopped.
    pub serve: fn(&clap::ArgMatches, &Console) -> Result<(), HostError>,
    /// Starts it for a run.
    pub start: fn(&ServerRequest<'_>) -> Result<Started, HostError>,
    /// The number of its service threads can be chosen.
    pub has_threads: bool,
}

impl Reference {
    /// One whose service threads are its own choice.
    pub const fn new(
        verb: &'static str,
        command: fn() -> clap::Command,
        serve: fn(&clap::ArgMatches, &Console) -> Result<(), HostError>,
        start: fn(&ServerRequest<'_>) -> Result<Started, HostError>,
    ) -> Self {
        Self { verb, command, serve, start, has_threads: false }
    }
}

/// A foreign server that a run can start.
pub struct Managed {
    /// What follows `managed:`.
    pub name: &'static str,
    /// Starts it with a temporary configuration.
    pub start: fn(&ServerRequest<'_>, &mut OnProgress<'_>) -> Result<Started, HostError>,
}

/// What a reference server needs of the program it runs in.
pub struct Console {
    /// Writes a line to standard output.
    pub print: fn(&str),
    /// Writes a line to standard error.
    pub note: fn(&str),
    /// Stops on a signal and, if the argument is true, at the end of standard input.
    pub stop: fn(bool) -> Result<Stop, HostError>,
}

impl Console {
    /// Prints where a server listens, once it can be stopped, and for a person how to measure it:
    /// `runs` are what follows `plimsoll run`, with `URL` for where it listens.
    pub fn listens(
        &self,
        url: &str,
        stop_with_stdin: bool,
        runs: &[&str],
    ) -> Result<Stop, HostError> {
        let stop = (self.stop)(stop_with_stdin)?;
        (self.print)(&format!("{ANNOUNCEMENT}{url}"));
        if !stop_with_stdin {
            for run in runs {
                (self.note)(&format!("to measure it: plimsoll run {}", run.replace("URL", url)));
            }
        }
        Ok(stop)
    }
}

/// What a server is to be.
#[derive(Clone, Copy)]
pub struct ServerRequest<'a> {
    /// The suite that uses it.
    pub suite: &'a Suite,
    /// Cores to hold it to.
    pub cores: &'a [u32],
    /// Number of service threads, if given.
    pub threads: Option<u32>,
    /// Additional work for each request, for a reference server of known speed.
    pub work: Option<Nanos>,
    /// The file set it must hold.
    pub file_set: Option<FileSetId>,
    /// Address of this host that it listens on.
    pub listen_on: IpAddr,
}

/// A server that was started.
pub struct Started {
    /// Its process.
    pub process: ServerProcess,
    /// Where it serves.
    pub url: String,
    /// Its file set, removed with it.
    pub files: Option<TempDir>,
}

impl Started {
    /// A server without files of its own.
    pub fn at_its_url(process: ServerProcess) -> Self {
        let url = process.url();
        Self { process, url, files: None }
    }
}

/// Whether the run needs a file set on the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeedsFiles {
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// What the servers answered.
#[derive(Debug, Default)]
pub struct Greeting {
    /// The file set all of them hold, for protocols that cannot write it through the server.
    pub file_set: Option<FileSetId>,
    /// The software that each reports.
    pub software: Vec<Option<String>>,
}

/// Returns the highest load there is room for, from a suite, a profile and the targets.
pub type AskRoom = fn(&Suite, &Profile, &[Target]) -> Result<Option<Room>, HostError>;

/// Returns where a suite has its clients connect.
pub type ConnectTo = fn(&Suite) -> Option<&str>;

/// File sets in a directory.
#[derive(Clone, Copy)]
pub struct DirectoryFileSet {
    /// Writes what is missing of a file set.
    pub write: fn(&Path, FileSetId, &mut OnProgress<'_>) -> Result<Prepared, HostError>,
    /// Removes what carries our marker.
    pub clean: fn(&Path) -> Result<(), HostError>,
}

/// How a server's own figures are read.
#[derive(Clone, Copy)]
pub struct Status {
    /// Makes the client that reads a target's figures; the suite has the header fields to send.
    pub of: fn(&Suite, &ResolvedTarget) -> Option<Box<dyn AskStatus>>,
    /// What stays unknown if a server does not answer, and why.
    pub unknown: &'static str,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// What the directory holds now.
    pub id: FileSetId,
    /// Files written.
    pub files_written: u64,
    /// Bytes written.
    pub written: Bytes,
}

/// Reads one server's own figures again and again, over a separate connection.
pub trait AskStatus: Send {
    /// The figures as Prometheus text, or nothing within `wait`.
    fn ask(&mut self, wait: Duration) -> Option<String>;
}

/// A server of known behaviour behind a protocol, and its clients.
pub struct Calibration {
    /// For the certificate: `https`.
    pub name: &'static str,
    /// What is spoken, as [`Plan::spoken`](crate::Plan::spoken) has it.
    pub spoken: Option<&'static str>,
    /// The suite of its loads.
    pub suite: &'static str,
    /// The suite's clients wait for each reply; otherwise its arrivals are open.
    pub waits: bool,
    /// What follows the server's URL.
    pub path: &'static str,
    /// The time that is compared with the server's log and the law.
    pub checked_time: TimeKind,
    /// The server of a program, on cores, without its law; files it needs may lie in a directory.
    pub server: fn(PathBuf, &[u32], &Path) -> Result<Builtin, HostError>,
    /// Of the calibrated server proper, which does no work.
    pub proper: Option<ProperCalibration>,
}

/// What only the calibrated server proper has.
pub struct ProperCalibration {
    /// The log's key of the op at an index of a seed's schedule.
    pub key: fn(u64, u64) -> u32,
    /// A suite whose clients wait and think.
    pub closed_suite: &'static str,
}

/// Greets nobody: the servers are queried when the run is planned.
pub fn greet_nobody(_: &Suite, targets: &[Target], _: NeedsFiles) -> Result<Greeting, HostError> {
    Ok(Greeting { file_set: None, software: vec![None; targets.len()] })
}

/// Of protocols whose data lies on the server, or that have none.
pub fn any_room(_: &Suite, _: &Profile, _: &[Target]) -> Result<Option<Room>, HostError> {
    Ok(None)
}

/// Leaves the choice of addresses to the system.
pub fn any_source(_: &Suite, _: &[Target]) -> Vec<IpAddr> {
    Vec::new()
}

/// This program, to start a reference server of its own.
pub fn own_program() -> Result<PathBuf, HostError> {
    std::env::current_exe()
        .map_err(|e| HostError::unusable(format!("cannot find this program to start it: {e}")))
}

/// Loopback addresses that clients of many short connections spread over.
const SOURCES: u8 = 16;

/// Addresses for clients that use up the ports of one; empty when a target is on another host.
pub fn local_sources(targets: &[Target]) -> Vec<IpAddr> {
    let local = targets.iter().all(|target| match target.resolved.address.ip() {
        IpAddr::V4(address) => address.is_loopback() && target.resolved.unix.is_none(),
        IpAddr::V6(_) => false,
    });
    if !local {
        return Vec::new();
    }
    (1..=SOURCES).map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))).collect()
}

impl Registration {
    /// Default port of a URL's scheme; `None` for a scheme of another protocol.
    pub fn port_of(&self, url: &TargetUrl) -> Option<u16> {
        let entry = self.protocol.schemes.iter().find(|(scheme, _)| *scheme == url.scheme);
        entry.map(|(_, port)| *port)
    }
}

/// Why a host cannot do its part, with the next move.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct HostError {
    /// Who is to do something about it.
    pub kind: HostErrorKind,
    message: String,
}

/// Who is to do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostErrorKind {
    /// The user's request is wrong.
    Wrong,
    /// The target or the environment is unusable.
    Unusable,
    /// The user interrupted it.
    Interrupted,
}

impl HostError {
    /// The user's request is wrong.
    pub fn wrong(message: impl Into<String>) -> Self {
        Self { kind: HostErrorKind::Wrong, message: message.into() }
    }

    /// The target or the environment is unusable.
    pub fn unusable(message: impl Into<String>) -> Self {
        Self { kind: HostErrorKind::Unusable, message: message.into() }
    }

    /// The user interrupted it.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Self { kind: HostErrorKind::Interrupted, message: message.into() }
    }
}

impl From<clap::Error> for HostError {
    fn from(error: clap::Error) -> Self {
        Self::wrong(error.to_string())
    }
}

impl From<ServerError> for HostError {
    fn from(error: ServerError) -> Self {
        Self::unusable(error.to_string())
    }
}
