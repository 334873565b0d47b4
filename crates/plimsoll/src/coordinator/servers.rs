//! The servers a run starts itself, and the URL each target has in the end.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

use plimsoll_model::target::{TargetSpec, TargetUrl};
use plimsoll_protocols::http::fileset::FileSetId;
use plimsoll_protocols::{Protocol, ResolvedTarget};
use plimsoll_servers::managed::{self, ManagedRequest};
use plimsoll_servers::{BuiltinWeb, ServerProcess};
use tempfile::TempDir;

use super::reach;
use super::signals::Signals;
use crate::exit::Failure;
use crate::file_set;
use crate::terminal::Live;

/// What a web server of ours answers when the suite needs no file set.
const PLAIN_PATH: &str = "bytes/1024";
/// Name of the one file a managed server serves when the suite needs no file set.
const PLAIN_FILE: &str = "index.html";
const PLAIN_FILE_BYTES: usize = 1024;

/// A target of the run.
#[derive(Debug)]
pub struct Target {
    /// As the user wrote it.
    pub spec: TargetSpec,
    /// Where it is.
    pub resolved: ResolvedTarget,
    /// Its process, when this run started it.
    pub process: Option<ServerProcess>,
    /// Its file set, when this run wrote it.
    _files: Option<TempDir>,
}

impl Target {
    /// As the user wrote it, without the password.
    pub fn name(&self) -> String {
        self.spec.to_string()
    }

    /// Ids of the server's processes, when it is ours.
    pub fn pids(&self) -> Vec<u32> {
        self.process.as_ref().map(ServerProcess::pid).into_iter().collect()
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
            refuse_user_of_http(url)?;
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
            "target {url}: protocol {} has no scheme {:?}; write {}, builtin: or managed:nginx",
            protocol.name,
            url.scheme,
            schemes.join(" or ")
        ))
    })
}

/// A user name in a URL of HTTP would be dropped in silence, and every reply be a 401.
fn refuse_user_of_http(url: &TargetUrl) -> Result<(), Failure> {
    let named = url.user.is_some() || url.password.is_some();
    if !named || !matches!(url.scheme.as_str(), "http" | "https") {
        return Ok(());
    }
    Err(Failure::wrong(format!(
        "target {url}: names and passwords in a URL are not sent; leave them out and write \
         --set 'workload.headers=[\"Authorization: Basic …\"]'"
    )))
}

/// What the servers are to be.
#[derive(Clone, Copy)]
pub struct ServerWish<'a> {
    /// Cores to hold them to.
    pub cores: &'a [u32],
    /// The file set they must hold.
    pub file_set: Option<FileSetId>,
    /// Whether to end early.
    pub signals: &'a Signals,
}

/// Starts the server of a target if it is ours.
pub fn start(
    spec: &TargetSpec,
    address: Option<SocketAddr>,
    wish: &ServerWish<'_>,
    live: &mut Live,
) -> Result<Target, Failure> {
    match (spec, address) {
        (TargetSpec::Url(url), Some(address)) => Ok(Target {
            spec: spec.clone(),
            resolved: ResolvedTarget { url: url.clone(), address },
            process: None,
            _files: None,
        }),
        (TargetSpec::Managed(name), _) => start_managed(spec, name, wish, live),
        (TargetSpec::Builtin | TargetSpec::Url(_), _) => start_builtin(spec, wish),
    }
}

fn start_builtin(spec: &TargetSpec, wish: &ServerWish<'_>) -> Result<Target, Failure> {
    let program = std::env::current_exe()
        .map_err(|e| Failure::unusable(format!("cannot find this program to start it: {e}")))?;
    let mut arguments: Vec<OsString> = Vec::new();
    if let Some(set) = wish.file_set {
        arguments.extend(["--seed".into(), set.seed.to_string().into()]);
        arguments.extend(["--directories".into(), set.directories.to_string().into()]);
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let server = BuiltinWeb { program, arguments, cores: wish.cores.to_vec(), version };
    let process = server.start()?;
    let path = if wish.file_set.is_some() { "" } else { PLAIN_PATH };
    of_process(spec, process, path, None)
}

fn start_managed(
    spec: &TargetSpec,
    name: &str,
    wish: &ServerWish<'_>,
    live: &mut Live,
) -> Result<Target, Failure> {
    let files = tempfile::Builder::new()
        .prefix("plimsoll-files-")
        .tempdir()
        .map_err(|e| Failure::unusable(format!("cannot make a directory for the file set: {e}")))?;
    match wish.file_set {
        Some(set) => drop(file_set::write(files.path(), set, wish.signals, live)?),
        None => write_plain_file(&files.path().join(PLAIN_FILE))?,
    }
    let request = ManagedRequest {
        root: files.path().to_owned(),
        cores: wish.cores.to_vec(),
        tls: None,
        search: None,
        remove_when_killed: Some(files.path().to_owned()),
    };
    let process = managed::start(name, &request)?;
    let path = if wish.file_set.is_some() { "" } else { PLAIN_FILE };
    of_process(spec, process, path, Some(files))
}

fn write_plain_file(path: &Path) -> Result<(), Failure> {
    std::fs::write(path, vec![b'x'; PLAIN_FILE_BYTES])
        .map_err(|e| Failure::unusable(format!("{}: cannot write it: {e}", path.display())))
}

fn of_process(
    spec: &TargetSpec,
    process: ServerProcess,
    path: &str,
    files: Option<TempDir>,
) -> Result<Target, Failure> {
    let url = TargetUrl::parse(&format!("{}{path}", process.url()))?;
    let resolved = ResolvedTarget { url, address: process.address };
    Ok(Target { spec: spec.clone(), resolved, process: Some(process), _files: files })
}
