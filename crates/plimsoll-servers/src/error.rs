//! Why a server cannot be started or kept.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a server cannot be started or kept.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The listening address is taken, not ours, or not allowed.
    #[error("cannot listen on {address}: {source}; choose another address with --listen")]
    Listen {
        /// Address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The portmapper's address is taken, mostly by a portmapper.
    #[error(
        "cannot listen on {address} as a portmapper: {source}; another one may run there, and \
             the ports in the URL make it unnecessary"
    )]
    Portmapper {
        /// Address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The address for metrics is taken, not ours, or not allowed.
    #[error("cannot serve metrics on {address}: {source}; choose another address with --metrics")]
    Metrics {
        /// Address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The directory for data segments cannot be used.
    #[error("cannot keep data segments in {}: {source}; name another with --root", path.display())]
    Segments {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory for data segments holds something else.
    #[error(
        "{} is not empty and does not carry the marker {}; name a new or empty directory with \
             --root", path.display(), crate::app::MARKER
    )]
    SegmentsOccupied {
        /// The directory.
        path: PathBuf,
    },
    /// A directory that was to be removed at the end holds data segments.
    #[error(
        "{} holds data segments, which would be removed at the end; keep them with --root, or \
             name a new or empty directory", path.display()
    )]
    SegmentsKept {
        /// The directory.
        path: PathBuf,
    },
    /// Another server uses the directory for data segments.
    #[error("another server keeps its data segments in {}; stop it or name another directory \
             with --root", path.display())]
    SegmentsInUse {
        /// The directory.
        path: PathBuf,
    },
    /// A limit of memory, and segments on a file system in memory.
    #[error(
        "{} is on a file system in memory, which a limit of memory would fill; name a directory \
             on a disk with --root", path.display()
    )]
    SegmentsInMemory {
        /// The directory.
        path: PathBuf,
    },
    /// The limit of memory cannot be set.
    #[error(
        "cannot limit the memory of this process with a control group: {source}; run as root, or \
             without --memory as: systemd-run --scope -p MemoryMax={bytes} plimsoll serve app"
    )]
    Memory {
        /// Limit asked for.
        bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A limit of memory the server itself would break.
    #[error("{bytes} bytes of memory are too few for the server; allow at least {bytes_min}")]
    MemoryTooSmall {
        /// Limit asked for.
        bytes: u64,
        /// Least that is allowed.
        bytes_min: u64,
    },
    /// The document root cannot be used.
    #[error("cannot serve the directory {}: {source}", path.display())]
    Root {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A certificate or key file cannot be read.
    #[error("cannot use the PEM file {}: {reason}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        reason: String,
    },
    /// Certificate and key were read, and do not make a TLS server.
    #[error("cannot set up TLS: {0}; check that the key belongs to the certificate")]
    Tls(String),
    /// The SMB server refuses its configuration.
    #[error("cannot set up the SMB server: {0}")]
    Smb(String),
    /// A core that does not exist or that this process may not use.
    #[error("cannot pin to cores {cores}: {source}; `nproc` and cgroups limit what is available")]
    Pin {
        /// Cores asked for.
        cores: String,
        /// What the system said.
        source: io::Error,
    },
    /// The calibrated server cannot leave behind what happened.
    #[error("cannot write the log {}: {source}; choose another place with --log", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system gives no thread, event queue or temporary file.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// `managed:` with a name nobody knows.
    #[error("there is no managed:{name}; {}", managed_hint(suggestion))]
    UnknownManaged {
        /// Name as typed.
        name: String,
        /// The nearest known name, when one is near.
        suggestion: Option<&'static str>,
    },
    /// A managed server that this version cannot start yet.
    #[error("managed:{name} is not supported yet; start it yourself and give its URL")]
    NotSupportedYet {
        /// Name as typed.
        name: &'static str,
    },
    /// The managed server is not installed.
    #[error(
        "managed:{name}: no {program} found in {searched}; install it ({install}) or give a URL"
    )]
    NotInstalled {
        /// Name after `managed:`.
        name: &'static str,
        /// Name of the program that is missing.
        program: &'static str,
        /// Where it was looked for.
        searched: String,
        /// How to get it.
        install: &'static str,
    },
    /// A managed server that speaks another protocol than the suite.
    #[error("managed:{name} serves {serves}, not {asked}; choose a suite for it or another server")]
    OtherService {
        /// Name as typed.
        name: &'static str,
        /// What it serves.
        serves: &'static str,
        /// What was asked for.
        asked: &'static str,
    },
    /// A managed server that only root can start.
    #[error("managed:{name} needs root: {why}; run as root, or start a server and give its URL")]
    NeedsRoot {
        /// Name as typed.
        name: &'static str,
        /// What only root may do.
        why: &'static str,
    },
    /// A managed server cannot have a user of that name.
    #[error("a managed server cannot have a user {user:?}; use letters, digits and ._-")]
    BadUser {
        /// Name asked for.
        user: String,
    },
    /// A program that prepares a server failed.
    #[error("cannot {doing}: {} failed{}", program.display(), last_words(said))]
    Failed {
        /// What it was to do.
        doing: &'static str,
        /// The program.
        program: PathBuf,
        /// What it wrote to its error output.
        said: String,
    },
    /// The program did not start.
    #[error("cannot start {}: {source}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The server ended although nobody asked it to.
    #[error("{software} ended by itself ({status}){}", last_words(tail))]
    Ended {
        /// Name and version.
        software: String,
        /// Exit status or signal.
        status: ExitStatus,
        /// The last it wrote to its error log.
        tail: String,
    },
    /// The server runs but does not answer.
    #[error("{software} gives no answer {} s after its start{}", waited.as_secs(), last_words(tail))]
    Silent {
        /// Name and version.
        software: String,
        /// How long it was waited for.
        waited: Duration,
        /// The last it wrote to its error log.
        tail: String,
    },
}

fn managed_hint(suggestion: &Option<&'static str>) -> String {
    match suggestion {
        Some(near) => format!("did you mean managed:{near}?"),
        None => format!("known: {}", crate::managed::NAMES.join(", ")),
    }
}

fn last_words(tail: &str) -> String {
    if tail.trim().is_empty() {
        return "; it wrote nothing to its error log".to_owned();
    }
    format!("; the end of its error log:\n{}", tail.trim_end())
}
