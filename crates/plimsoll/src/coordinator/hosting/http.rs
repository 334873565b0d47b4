//! Web servers: how they are started and what they are asked before a run.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;

use plimsoll_model::suite::{Profile, Suite};
use plimsoll_model::target::TargetSpec;
use plimsoll_model::units::Bytes;
use plimsoll_protocols::http::fileset::{FileSetId, MARKER, Marker};
use plimsoll_protocols::http::parameters::Connections;
use plimsoll_protocols::http::prepare;
use plimsoll_protocols::net::Room;
use plimsoll_servers::BuiltinWeb;
use plimsoll_servers::managed::{self, ManagedRequest};

use super::super::fetch::{Server, Trusted};
use super::super::servers::{ServerWish, Target, of_process};
use super::{Greeting, HostSide, local_sources, own_program};
use crate::exit::Failure;
use crate::file_set;
use crate::terminal::Live;

/// The registration.
pub const SIDE: HostSide =
    HostSide { protocol: "http", start_builtin, start_managed, greet, room, sources };

/// What a web server of ours answers when the suite needs no file set.
const PLAIN_PATH: &str = "bytes/1024";
/// Name of the one file a managed server serves when the suite needs no file set.
const PLAIN_FILE: &str = "index.html";
const PLAIN_FILE_BYTES: usize = 1024;

fn start_builtin(spec: &TargetSpec, wish: &ServerWish<'_>) -> Result<Target, Failure> {
    let program = own_program()?;
    let mut arguments: Vec<OsString> = Vec::new();
    if let Some(set) = wish.file_set {
        arguments.extend(["--seed".into(), set.seed.to_string().into()]);
        arguments.extend(["--directories".into(), set.directories.to_string().into()]);
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let server = BuiltinWeb { program, arguments, cores: wish.cores.to_vec(), version };
    let process = server.start()?;
    let path = if wish.file_set.is_some() { "" } else { PLAIN_PATH };
    let url = format!("{}{path}", process.url());
    of_process(spec, process, &url, None)
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
    let url = format!("{}{path}", process.url());
    of_process(spec, process, &url, Some(files))
}

fn write_plain_file(path: &Path) -> Result<(), Failure> {
    std::fs::write(path, vec![b'x'; PLAIN_FILE_BYTES])
        .map_err(|e| Failure::unusable(format!("{}: cannot write it: {e}", path.display())))
}

/// Reaches every server once; reads the description of its file set where one is needed.
fn greet(suite: &Suite, targets: &[Target], wish: &ServerWish<'_>) -> Result<Greeting, Failure> {
    let needs_files = wish.file_set.is_some();
    let mut held: Option<FileSetId> = None;
    let mut software = Vec::new();
    for target in targets {
        let name = target.name();
        let server = server_of(suite, target, &name);
        if !needs_files {
            server.greet()?;
            software.push(None);
            continue;
        }
        let (set, said) = read_marker(suite, target, &server)?;
        if held.is_some_and(|first| first != set) {
            return Err(Failure::wrong(format!(
                "{name} holds another file set than the targets before it; prepare all with the \
                 same --peak and --seed"
            )));
        }
        held = Some(set);
        software.push(said);
    }
    Ok(Greeting { file_set: held, software })
}

fn server_of<'a>(suite: &'a Suite, target: &'a Target, name: &'a str) -> Server<'a> {
    let url = &target.resolved.url;
    let tls = (url.scheme == "https").then(|| Trusted {
        verify: suite.workload.get("tls_verify").and_then(toml::Value::as_bool).unwrap_or(true),
        ca_file: suite.workload.get("tls_ca_file").and_then(toml::Value::as_str).map(Path::new),
    });
    let host_field = match url.port {
        Some(port) => url.authority(port),
        None if url.host.contains(':') => format!("[{}]", url.host),
        None => url.host.clone(),
    };
    Server { target: name, address: target.resolved.address, host: &url.host, host_field, tls }
}

fn read_marker(
    suite: &Suite,
    target: &Target,
    server: &Server<'_>,
) -> Result<(FileSetId, Option<String>), Failure> {
    let url = &target.resolved.url;
    let prefix = suite
        .workload
        .get("file_set")
        .and_then(|set| set.get("path_prefix"))
        .and_then(toml::Value::as_str)
        .unwrap_or_default();
    let slash = if url.path.ends_with('/') { "" } else { "/" };
    let path = format!("{}{slash}{prefix}{MARKER}", url.path);
    let place = format!("{}://{}{path}", url.scheme, server.host_field);
    let reply = server.get(&path)?;
    if reply.status != 200 {
        return Err(Failure::unusable(format!(
            "{place}: {}; write the file set with 'plimsoll prepare {} DIR --peak N' and serve DIR",
            reply.status, suite.name
        )));
    }
    let text = String::from_utf8_lossy(&reply.body);
    let marker = Marker::parse(&text).map_err(|e| Failure::unusable(format!("{place}: {e}")))?;
    Ok((marker.id(), reply.software))
}

/// File sets of managed servers lie below `TMPDIR`, one each.
fn room(suite: &Suite, profile: &Profile, targets: &[Target]) -> Result<Option<Room>, Failure> {
    let managed = targets.iter().filter(|t| matches!(t.spec, TargetSpec::Managed(_))).count();
    let set = suite.workload.get("file_set");
    let grows = set.is_some_and(|set| set.get("directories").is_none());
    if managed == 0 || !grows {
        return Ok(None);
    }
    let place = std::env::temp_dir();
    let free = prepare::free_bytes(&place).map_err(|e| {
        Failure::unusable(format!("{}: cannot read its free space: {e}", place.display()))
    })?;
    let each = Bytes(free / managed as u64);
    let load_max_ops_per_s = prepare::load_max(each, profile.workload_scale);
    let place = place.display().to_string();
    Ok(Some(Room { load_max_ops_per_s, free: Bytes(free), place }))
}

/// Connections per request use up the ports of one address: 28,232 by default, and each rests for a
/// minute after its end. On this host there are more addresses for the asking.
fn sources(suite: &Suite, targets: &[Target]) -> Vec<IpAddr> {
    let connections = suite.workload.get("connections").cloned();
    let per_request =
        connections.and_then(|value| value.try_into().ok()) == Some(Connections::PerRequest);
    if per_request { local_sources(targets) } else { Vec::new() }
}
