//! The servers a run starts itself, and the URL each target has in the end.

use std::net::SocketAddr;

use plimsoll_model::suite::Suite;
use plimsoll_model::target::{TargetSpec, TargetUrl};
use plimsoll_protocols::http::fileset::FileSetId;
use plimsoll_protocols::{Protocol, ResolvedTarget};
use plimsoll_servers::{Confined, ServerProcess, listener};
use tempfile::TempDir;

use super::held::Held;
use super::hosting::HostSide;
use super::reach;
use super::signals::Signals;
use crate::exit::Failure;
use crate::terminal::Live;

/// A target of the run.
#[derive(Debug)]
pub struct Target {
    /// As the user wrote it.
    pub spec: TargetSpec,
    /// Where it is.
    pub resolved: ResolvedTarget,
    /// Its process, when this run started it.
    pub process: Option<ServerProcess>,
    /// What holds it to less than it could have; removed after it has ended.
    confined: Option<Confined>,
    /// Its file set, when this run wrote it.
    _files: Option<TempDir>,
}

impl Target {
    /// As the user wrote it, without the password.
    pub fn name(&self) -> String {
        self.spec.to_string()
    }

    /// Holds a server of ours to a share of the processors and a size of memory.
    pub fn hold(&mut self, held: &Held) -> Result<(), Failure> {
        if let Some(process) = self.process.as_ref().filter(|_| !held.confinement.is_none()) {
            self.confined = Some(held.confinement.hold(process)?);
        }
        Ok(())
    }

    /// Ids of the server's processes, when it is ours or was found by the socket it listens on.
    pub fn pids(&self) -> Vec<u32> {
        match &self.process {
            Some(process) => vec![process.pid()],
            None => listener::on(self.resolved.address).map(|l| l.pids).unwrap_or_default(),
        }
    }
}

/// Addresses of the targets that run already, in order; those to be started have none yet.
pub fn resolve_all(
    specs: &[TargetSpec],
    protocol: &Protocol,
) -> Result<Vec<Option<SocketAddr>>, Failure> {
    let resolve = |spec: &TargetSpec| match spec {
        TargetSpec::Url(url) => {
            let port = default_port(url, protocol)?;
            refuse_user(url)?;
            reach::resolve(url, port).map(Some)
        }
        TargetSpec::Builtin | TargetSpec::Managed(_) => Ok(None),
    };
    specs.iter().map(resolve).collect()
}

fn default_port(url: &TargetUrl, protocol: &Protocol) -> Result<u16, Failure> {
    let known = protocol.schemes.iter().find(|(scheme, _)| *scheme == url.scheme);
    known.map(|(_, port)| *port).ok_or_else(|| {
        let schemes: Vec<_> = protocol.schemes.iter().map(|(s, _)| format!("{s}://")).collect();
        Failure::wrong(format!(
            "target {url}: protocol {} has no scheme {:?}; write {}, builtin: or managed:NAME",
            protocol.name,
            url.scheme,
            schemes.join(" or ")
        ))
    })
}

/// A user name in a URL of HTTP would be dropped in silence, and every reply be a 401; NFS has
/// no names at all.
fn refuse_user(url: &TargetUrl) -> Result<(), Failure> {
    let remedy = match url.scheme.as_str() {
        _ if url.user.is_none() && url.password.is_none() => return Ok(()),
        "http" | "https" => {
            "names and passwords in a URL are not sent; leave them out and write \
             --set 'workload.headers=[\"Authorization: env:VARIABLE\"]'"
        }
        "nfs" => "NFS knows users by number; leave the name out, this program's own are sent",
        _ => return Ok(()),
    };
    Err(Failure::wrong(format!("target {url}: {remedy}")))
}

/// What the servers are to be.
#[derive(Clone, Copy)]
pub struct ServerWish<'a> {
    /// What they are wanted for.
    pub suite: &'a Suite,
    /// Cores to hold them to.
    pub cores: &'a [u32],
    /// Service threads, where somebody wants to have a number of them.
    pub threads: Option<u32>,
    /// The file set they must hold.
    pub file_set: Option<FileSetId>,
    /// Whether to end early.
    pub signals: &'a Signals,
}

/// Starts the server of a target if it is ours.
pub fn start(
    spec: &TargetSpec,
    address: Option<SocketAddr>,
    side: &HostSide,
    wish: &ServerWish<'_>,
    live: &mut Live,
) -> Result<Target, Failure> {
    let has_threads = wish.suite.protocol == "app" && matches!(spec, TargetSpec::Builtin);
    if wish.threads.is_some() && !has_threads {
        return Err(Failure::wrong(format!(
            "threads: the number of {spec}'s is not ours to choose; scale the reference server of \
             transactions (plimsoll scale transactions builtin: --over threads=1,4), or cores"
        )));
    }
    match (spec, address) {
        (TargetSpec::Url(url), Some(address)) => Ok(Target {
            spec: spec.clone(),
            resolved: ResolvedTarget { url: url.clone(), address },
            process: None,
            confined: None,
            _files: None,
        }),
        (TargetSpec::Managed(name), _) => (side.start_managed)(spec, name, wish, live),
        (TargetSpec::Builtin | TargetSpec::Url(_), _) => (side.start_builtin)(spec, wish),
    }
}

/// A target whose server this run started; `url` is where it serves.
pub fn of_process(
    spec: &TargetSpec,
    process: ServerProcess,
    url: &str,
    files: Option<TempDir>,
) -> Result<Target, Failure> {
    let url = TargetUrl::parse(url)?;
    let resolved = ResolvedTarget { url, address: process.address };
    let process = Some(process);
    Ok(Target { spec: spec.clone(), resolved, process, confined: None, _files: files })
}
