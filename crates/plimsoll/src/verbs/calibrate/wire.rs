//! What a case speaks: a server of ours behind a queue of known law, and the suite that asks it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use plimsoll_protocol::host::{Calibration, ProperCalibration};
use plimsoll_servers::{Builtin, ServerProcess};

use crate::exit::Failure;
use crate::protocols;

/// A protocol, with or without encryption.
#[derive(Clone, Copy)]
pub(super) struct Wire(&'static Calibration);

/// What a server is started with.
pub(super) struct Start<'a> {
    pub(super) program: PathBuf,
    pub(super) spec: &'a str,
    pub(super) log: Option<&'a Path>,
    pub(super) cores: Vec<u32>,
    /// For files it needs.
    pub(super) dir: &'a Path,
}

impl Wire {
    /// That of the calibrated server proper.
    pub(super) fn proper() -> Self {
        let mut all = protocols::all().flat_map(|one| one.calibration);
        Self(all.find(|wire| wire.proper.is_some()).expect("the program has a calibrated server"))
    }

    /// Those besides the calibrated server proper that were asked for, by protocol or all.
    pub(super) fn beside(asked: &str) -> Vec<Self> {
        let asked_for = protocols::all().filter(|one| [one.protocol.name, ALL].contains(&asked));
        let wires = asked_for.flat_map(|one| one.calibration);
        wires.filter(|wire| wire.proper.is_none()).map(Self).collect()
    }

    pub(super) const fn name(self) -> &'static str {
        self.0.name
    }

    /// The suite of its loads.
    pub(super) const fn suite(self) -> &'static str {
        self.0.suite
    }

    /// The clients of its suite wait for each reply.
    pub(super) const fn waits(self) -> bool {
        self.0.waits
    }

    /// What only the calibrated server proper has.
    pub(super) const fn its_own(self) -> Option<&'static ProperCalibration> {
        self.0.proper.as_ref()
    }

    /// Starts a server.
    pub(super) fn start(self, start: Start<'_>) -> Result<ServerProcess, Failure> {
        let mut arguments: Vec<OsString> = vec!["--calibrated".into(), start.spec.into()];
        if let Some(log) = start.log {
            arguments.extend(["--log".into(), log.as_os_str().to_owned()]);
        }
        let server = (self.0.server)(start.program, &start.cores, start.dir)?;
        arguments.extend(server.arguments.iter().cloned());
        Ok(Builtin { arguments, ..server }.start()?)
    }

    /// Where its requests go.
    pub(super) fn url(self, server: &ServerProcess) -> String {
        format!("{}{}", server.url(), self.0.path)
    }
}

/// Every protocol there is.
pub(super) const ALL: &str = "all";

/// What was spoken, by the names of suites' protocols.
pub(super) fn protocols_of(asked: &str) -> Vec<String> {
    let spoken = protocols::all().filter(|one| {
        let is_asked = [one.protocol.name, ALL].contains(&asked) && !one.calibration.is_empty();
        is_asked || one.calibration.iter().any(|wire| wire.proper.is_some())
    });
    let is_proper = |name: &&str| *name != Wire::proper().name();
    let mut names: Vec<&str> = spoken.map(|one| one.protocol.name).collect();
    names.sort_by_key(is_proper);
    names.into_iter().map(str::to_owned).collect()
}
