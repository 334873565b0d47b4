//! A target of a run, with the process of its server where the run started it.

use std::path::Path;

use plimsoll_model::target::{TargetSpec, TargetUrl};
use plimsoll_servers::listener::{self, Listening};
use plimsoll_servers::{Confined, Confinement, ServerProcess};
use tempfile::TempDir;

use super::{HostError, Started};
use crate::ResolvedTarget;

/// A target of a run.
#[derive(Debug)]
pub struct Target {
    /// As the user wrote it.
    pub spec: TargetSpec,
    /// Where it is.
    pub resolved: ResolvedTarget,
    /// It is on this host, in a network namespace of its own or not.
    pub is_here: bool,
    /// Its process, when this run started it.
    pub process: Option<ServerProcess>,
    /// What holds it to less than it could have; removed after it has ended.
    confined: Option<Confined>,
    /// Its file set, when this run wrote it.
    files: Option<TempDir>,
}

impl Target {
    /// A server that somebody else has started.
    pub fn running(spec: TargetSpec, resolved: ResolvedTarget) -> Self {
        let is_here = is_here(&resolved);
        Self { spec, resolved, is_here, process: None, confined: None, files: None }
    }

    /// A server that this run has started.
    pub fn started(spec: TargetSpec, started: Started) -> Result<Self, HostError> {
        let Started { process, url, files } = started;
        let url = TargetUrl::parse(&url).map_err(|e| HostError::wrong(e.to_string()))?;
        let resolved = ResolvedTarget::at(url, process.address);
        Ok(Self { spec, resolved, is_here: true, process: Some(process), confined: None, files })
    }

    /// As the user wrote it, without the password.
    pub fn name(&self) -> String {
        self.spec.to_string()
    }

    /// Holds a server of ours to a share of the processors and a size of memory.
    pub fn hold(&mut self, confinement: &Confinement) -> Result<(), HostError> {
        if let Some(process) = self.process.as_ref().filter(|_| !confinement.is_none()) {
            self.confined = Some(confinement.hold(process)?);
        }
        Ok(())
    }

    /// The directory it serves, where that is known.
    pub fn serves(&self) -> Option<&Path> {
        let shared = self.process.as_ref().and_then(|process| process.shared.as_deref());
        shared.or_else(|| self.files.as_ref().map(TempDir::path))
    }

    /// Ids of the server's processes, when it is ours or was found by the socket it listens on.
    pub fn pids(&self) -> Vec<u32> {
        match &self.process {
            Some(process) => vec![process.pid()],
            None => who_listens(&self.resolved).map(|found| found.pids).unwrap_or_default(),
        }
    }
}

/// Is its server on this host?
pub fn is_here(target: &ResolvedTarget) -> bool {
    target.unix.is_some() || listener::is_here(target.address)
}

/// The processes of this host that listen where the target is.
pub fn who_listens(target: &ResolvedTarget) -> Option<Listening> {
    match &target.unix {
        Some(path) => listener::on_unix(path),
        None => listener::on(target.address),
    }
}
