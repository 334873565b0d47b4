//! The protocol of a case: a reference server behind a queue of known law, and the suite of its
//! load.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use plimsoll_model::event::TimeKind;
use plimsoll_protocol::host::{Calibration, HostError, ProperCalibration};
use plimsoll_servers::{Builtin, ServerProcess};

/// A protocol, with or without encryption.
#[derive(Clone, Copy)]
pub struct Wire(pub &'static Calibration);

/// Options to start a server with.
pub struct Start<'a> {
    /// The program.
    pub program: PathBuf,
    /// The law.
    pub spec: &'a str,
    /// Location of its log.
    pub log: Option<&'a Path>,
    /// Cores of its own.
    pub cores: Vec<u32>,
    /// Directory for files it needs.
    pub dir: &'a Path,
}

impl Wire {
    /// Name in the certificate.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// What is spoken, if the protocol's name does not say it.
    pub const fn spoken(self) -> Option<&'static str> {
        self.0.spoken
    }

    /// The suite of its loads.
    pub const fn suite(self) -> &'static str {
        self.0.suite
    }

    /// The clients of its suite wait for each reply.
    pub const fn waits(self) -> bool {
        self.0.waits
    }

    /// The time that is checked.
    pub const fn checked_time(self) -> TimeKind {
        self.0.checked_time
    }

    /// Calibration that only the calibrated server proper has.
    pub const fn its_own(self) -> Option<&'static ProperCalibration> {
        self.0.proper.as_ref()
    }

    /// Starts a server.
    pub fn start(self, start: Start<'_>) -> Result<ServerProcess, HostError> {
        let mut arguments: Vec<OsString> = vec!["--calibrated".into(), start.spec.into()];
        if let Some(log) = start.log {
            arguments.extend(["--log".into(), log.as_os_str().to_owned()]);
        }
        let server = (self.0.server)(start.program, &start.cores, start.dir)?;
        arguments.extend(server.arguments.iter().cloned());
        Ok(Builtin { arguments, ..server }.start()?)
    }

    /// Target of its requests.
    pub fn url(self, server: &ServerProcess) -> String {
        format!("{}{}", server.url(), self.0.path)
    }
}
