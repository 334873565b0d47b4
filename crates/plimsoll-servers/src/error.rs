//! Why a server cannot be started or kept.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a server cannot be started or kept.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// What only servers of one protocol can meet.
    #[error(transparent)]
    Own(Box<dyn std::error::Error + Send + Sync>),
    /// The listening address is taken, not ours, or not allowed.
    #[error("cannot listen on {address}: {source}; choose another address with --listen")]
    Listen {
        /// Requested address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// Servers of a run are to listen on an address that is not of this host.
    #[error(
        "cannot listen on {address}: {source}; `ip address` shows which addresses this host has"
    )]
    NotHere {
        /// Requested address.
        address: IpAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The document root cannot be used.
    #[error("cannot serve the directory {}: {source}", path.display())]
    Root {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A core that does not exist or that this process may not use.
    #[error("cannot pin to cores {cores}: {source}; `nproc` and cgroups limit what is available")]
    Pin {
        /// Requested cores.
        cores: String,
        /// The system's error.
        source: io::Error,
    },
    /// The calibrated server cannot leave behind what happened.
    #[error("cannot write the log {}: {source}; choose another place with --log", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system gives no thread, event queue or temporary file.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
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
        /// Requested name.
        user: String,
    },
    /// A program that prepares a server failed.
    #[error("cannot {doing}: {} failed{}", program.display(), describe_tail(error_output))]
    Failed {
        /// What it was to do.
        doing: &'static str,
        /// The program.
        program: PathBuf,
        /// What it wrote to its error output.
        error_output: String,
    },
    /// The program did not start.
    #[error("cannot start {}: {source}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The server ended although it was not stopped.
    #[error("{software} ended by itself ({status}){}", describe_tail(tail))]
    Ended {
        /// Name and version.
        software: String,
        /// Exit status or signal.
        status: ExitStatus,
        /// The last it wrote to its error log.
        tail: String,
    },
    /// The server runs but does not answer.
    #[error("{software} gives no answer {} s after its start{}", waited.as_secs(), describe_tail(tail))]
    Silent {
        /// Name and version.
        software: String,
        /// How long the wait was.
        waited: Duration,
        /// The last it wrote to its error log.
        tail: String,
    },
}

impl ServerError {
    /// What only servers of one protocol can meet.
    pub fn own(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Own(Box::new(error))
    }
}

fn describe_tail(tail: &str) -> String {
    if tail.trim().is_empty() {
        return "; it wrote nothing to its error log".to_owned();
    }
    format!("; the end of its error log:\n{}", tail.trim_end())
}
