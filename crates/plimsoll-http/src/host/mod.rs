//! Web servers: how they are started and queried before a run.

pub mod fetch;
pub mod prepare;
mod serve;
mod sized;

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use plimsoll_model::event::TimeKind;
use plimsoll_model::suite::{Profile, Suite};
use plimsoll_model::target::TargetSpec;
use plimsoll_model::units::Bytes;
use plimsoll_protocol::host::{
    Calibration, DirectoryFileSet, Greeting, HostError, Managed, NeedsFiles, Reference,
    Registration, ServerRequest, Started, Target, local_sources, own_program,
};
use plimsoll_protocol::marker::Marker as _;
use plimsoll_protocol::net::{OnProgress, Room, SetupProgress};
use plimsoll_servers::programs::LOOPBACK;
use plimsoll_servers::{Builtin, ServerError, ServerProcess};

use crate::fileset::{FileSetId, FileSetMarker, MARKER};
use crate::journey::{self, Journeys};
use crate::parameters::{Connections, HttpWorkload};
use crate::server::caddy::{self, CaddyRequest};
use crate::server::nginx::{self, NginxRequest};
use crate::server::self_signed;
use crate::version::HTTP2;
use fetch::Server;
use prepare::{PrepareError, Prepared, Progress};
use sized::SizedFiles;

/// The registration.
pub const REGISTRATION: Registration = Registration {
    managed: &[
        Managed { name: "nginx", start: start_nginx },
        Managed { name: "caddy", start: start_caddy },
    ],
    servers_practice: &[("generator.access_log", "none")],
    greet,
    room,
    sources,
    directory: Some(DirectoryFileSet { write: write_files, clean: clean_files }),
    connect_to: Some(|suite| suite.workload.parameters::<HttpWorkload>().connect_to.as_deref()),
    refuse_user: Some(
        "names and passwords in a URL are not sent; leave them out and write \
         --set 'workload.headers=[\"Authorization: env:VARIABLE\"]'",
    ),
    calibration: &[
        calibration("http", without_certificate),
        calibration("https", with_certificate),
        Calibration {
            spoken: Some(HTTP2),
            suite: SIX_CONNECTIONS,
            ..calibration("http2", without_certificate)
        },
        Calibration {
            spoken: Some(HTTP2),
            suite: SIX_CONNECTIONS,
            ..calibration("https2", with_certificate)
        },
        Calibration {
            spoken: Some(HTTP2),
            suite: ONE_CONNECTION,
            ..calibration("http2-one-connection", without_certificate)
        },
    ],
    ..Registration::new(
        &crate::PROTOCOL,
        Reference::new("web", serve::command, serve::serve, start_reference),
    )
};

/// A small reply.
const CALIBRATION_PATH: &str = "bytes/64";
/// Loads over HTTP/2. The 48 clients share connections.
const SIX_CONNECTIONS: &str =
    concat!(include_str!("calibration.toml"), "http = \"2\"\nstreams = 8\n");
const ONE_CONNECTION: &str =
    concat!(include_str!("calibration.toml"), "http = \"2\"\nstreams = 48\n");
/// What a web server of ours answers when the suite needs no file set.
const PLAIN_PATH: &str = "bytes/1024";
/// Name of the one file a managed server serves when the suite needs no file set.
const PLAIN_FILE: &str = "index.html";
const PLAIN_FILE_BYTES: usize = 1024;

fn start_reference(request: &ServerRequest<'_>) -> Result<Started, HostError> {
    let mut arguments: Vec<OsString> = Vec::new();
    if let Some(set) = request.file_set {
        arguments.extend(["--seed".into(), set.seed.to_string().into()]);
        arguments.extend(["--directories".into(), set.directories.to_string().into()]);
    }
    let journey = request.suite.workload.parameters::<HttpWorkload>().journey_file.as_ref();
    arguments.extend(journey.into_iter().flat_map(|file| ["--journey".into(), file.into()]));
    let replay = request.suite.workload.parameters::<HttpWorkload>().replay_file.as_ref();
    arguments.extend(replay.into_iter().flat_map(|file| ["--replay".into(), file.into()]));
    let server = Builtin { arguments, ..Builtin::new("web", own_program()?, request.cores) };
    let process = server.listening_on(request.listen_on).with_work(request.work).start()?;
    let is_plain = request.file_set.is_none() && journey.is_none() && replay.is_none();
    let path = if is_plain { PLAIN_PATH } else { "" };
    let url = format!("{}{path}", process.url());
    Ok(Started { process, url, files: None })
}

/// A calibration over HTTP/1.1.
const fn calibration(
    name: &'static str,
    server: fn(PathBuf, &[u32], &Path) -> Result<Builtin, HostError>,
) -> Calibration {
    Calibration {
        name,
        spoken: None,
        suite: include_str!("calibration.toml"),
        waits: false,
        path: CALIBRATION_PATH,
        checked_time: TimeKind::Response,
        server,
        proper: None,
    }
}

fn without_certificate(program: PathBuf, cores: &[u32], _: &Path) -> Result<Builtin, HostError> {
    Ok(Builtin::new("web", program, cores))
}

/// A server with a certificate made for it.
fn with_certificate(program: PathBuf, cores: &[u32], dir: &Path) -> Result<Builtin, HostError> {
    let pem = self_signed(LOOPBACK)?;
    let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    for (path, text) in [(&cert, &pem.certificate), (&key, &pem.key)] {
        std::fs::write(path, text).map_err(|e| {
            HostError::unusable(format!("{}: cannot write it: {e}; make room", path.display()))
        })?;
    }
    let arguments = vec!["--cert".into(), cert.into(), "--key".into(), key.into()];
    Ok(Builtin { arguments, ..Builtin::new("web", program, cores) })
}

fn start_nginx(
    request: &ServerRequest<'_>,
    progress: &mut OnProgress<'_>,
) -> Result<Started, HostError> {
    start_with_files(request, progress, |root, suffix| {
        nginx::start(&NginxRequest {
            listen_on: request.listen_on,
            root: root.clone(),
            cores: request.cores.to_vec(),
            tls: None,
            search: None,
            remove_when_killed: Some(root),
            suffix,
        })
    })
}

fn start_caddy(
    request: &ServerRequest<'_>,
    progress: &mut OnProgress<'_>,
) -> Result<Started, HostError> {
    start_with_files(request, progress, |root, suffix| {
        caddy::start(&CaddyRequest {
            listen_on: request.listen_on,
            root: root.clone(),
            cores: request.cores.to_vec(),
            search: None,
            remove_when_killed: Some(root),
            suffix,
        })
    })
}

/// The journey in a file, or that of a published method.
fn read_journey(file: &Path) -> Result<Journeys, HostError> {
    let unread = |e| HostError::wrong(format!("cannot read {}: {e}", file.display()));
    let text = match file.to_str().and_then(journey::published) {
        Some(text) => text.to_owned(),
        None => std::fs::read_to_string(file).map_err(unread)?,
    };
    let journeys = journey::file::parse(file, &text, &|path| std::fs::read(path));
    journeys.map_err(|e| HostError::wrong(e.to_string()))
}

/// Starts a server of files that are written for it.
fn start_with_files(
    request: &ServerRequest<'_>,
    progress: &mut OnProgress<'_>,
    start: impl FnOnce(PathBuf, Option<&'static str>) -> Result<ServerProcess, ServerError>,
) -> Result<Started, HostError> {
    let files = tempfile::Builder::new().prefix("plimsoll-files-").tempdir().map_err(|e| {
        HostError::unusable(format!("cannot make a directory for the file set: {e}"))
    })?;
    let sized = SizedFiles::of_workload(request.suite.workload.parameters())?;
    match (request.file_set, &sized) {
        (Some(set), _) => drop(write_files(files.path(), set, progress)?),
        (None, Some(sized)) => sized.write_to(files.path())?,
        (None, None) => write_plain_file(&files.path().join(PLAIN_FILE))?,
    }
    let suffix = sized.as_ref().map(|_| sized::SUFFIX);
    let process = start(files.path().to_owned(), suffix)?;
    let is_plain = request.file_set.is_none() && sized.is_none();
    let path = if is_plain { PLAIN_FILE } else { "" };
    let url = format!("{}{path}", process.url());
    Ok(Started { process, url, files: Some(files) })
}

fn write_files(
    directory: &Path,
    set: FileSetId,
    progress: &mut OnProgress<'_>,
) -> Result<Prepared, HostError> {
    let mut show = |at: Progress| {
        progress(SetupProgress {
            doing: "directories",
            done: at.directories_done.into(),
            total: at.directories.into(),
            bytes: at.written,
        })
    };
    Ok(prepare::prepare(directory, set, &mut show)?)
}

fn clean_files(directory: &Path) -> Result<(), HostError> {
    prepare::clean(directory)?;
    Ok(())
}

impl From<PrepareError> for HostError {
    fn from(error: PrepareError) -> Self {
        let kind = match error {
            PrepareError::Foreign(_)
            | PrepareError::NotOurs(_)
            | PrepareError::OtherSeed { .. }
            | PrepareError::TooMany(_) => Self::wrong,
            PrepareError::Stopped(_) => Self::interrupted,
            _ => Self::unusable,
        };
        kind(error.to_string())
    }
}

fn write_plain_file(path: &Path) -> Result<(), HostError> {
    std::fs::write(path, vec![b'x'; PLAIN_FILE_BYTES])
        .map_err(|e| HostError::unusable(format!("{}: cannot write it: {e}", path.display())))
}

/// Reaches every server once; reads the description of its file set where one is needed.
fn greet(suite: &Suite, targets: &[Target], needs: NeedsFiles) -> Result<Greeting, HostError> {
    let workload = suite.workload.parameters::<HttpWorkload>();
    if workload.hashed && targets.iter().any(|target| !target.spec.is_started()) {
        return Err(HostError::wrong(
            "the paths of this load are hashed, so only builtin: and managed: servers have them; \
             derive it again with --keep",
        ));
    }
    let mut file_set: Option<FileSetId> = None;
    let mut software = Vec::new();
    for target in targets {
        let name = target.name();
        let server = Server::new(workload, target, &name);
        if needs == NeedsFiles::No {
            server.greet()?;
            software.push(None);
            continue;
        }
        let (set, reported) = read_marker((suite, workload), target, &server)?;
        if file_set.is_some_and(|first| first != set) {
            return Err(HostError::wrong(format!(
                "{name} holds another file set than the targets before it; prepare all with the \
                 same --peak and --seed"
            )));
        }
        file_set = Some(set);
        software.push(reported);
    }
    Ok(Greeting { file_set, software })
}

fn read_marker(
    (suite, workload): (&Suite, &HttpWorkload),
    target: &Target,
    server: &Server<'_>,
) -> Result<(FileSetId, Option<String>), HostError> {
    let url = &target.resolved.url;
    let prefix = workload.file_set.as_ref().map_or("", |set| &set.path_prefix);
    let slash = if url.path.ends_with('/') { "" } else { "/" };
    let path = format!("{}{slash}{prefix}{MARKER}", url.path);
    let marker_url = format!("{}://{}{path}", url.scheme, server.host_field);
    let reply = server.get(&path)?;
    if reply.status != 200 {
        return Err(HostError::unusable(format!(
            "{marker_url}: {}; write the file set with 'plimsoll prepare {} DIR --peak N' and serve DIR",
            reply.status, suite.name
        )));
    }
    let marker = FileSetMarker::parse(&reply.body)
        .map_err(|e| HostError::unusable(format!("{marker_url}: {e}")))?;
    Ok((marker.id(), reply.software))
}

/// File sets of managed servers lie below `TMPDIR`, one each.
fn room(suite: &Suite, profile: &Profile, targets: &[Target]) -> Result<Option<Room>, HostError> {
    let managed = targets.iter().filter(|t| matches!(t.spec, TargetSpec::Managed(_))).count();
    let set = &suite.workload.parameters::<HttpWorkload>().file_set;
    let grows = set.as_ref().is_some_and(|set| set.directories.is_none());
    if managed == 0 || !grows {
        return Ok(None);
    }
    let directory = std::env::temp_dir();
    let free = prepare::free_bytes(&directory).map_err(|e| {
        HostError::unusable(format!("{}: cannot read its free space: {e}", directory.display()))
    })?;
    let each = Bytes(free / managed as u64);
    let load_max_ops_per_s = prepare::load_max(each, profile.workload_scale);
    let directory = directory.display().to_string();
    Ok(Some(Room { load_max_ops_per_s, free: Bytes(free), location: directory }))
}

/// Connections per request use up the ports of one address: 28,232 by default, and each rests for a
/// minute after its end. On this host there are more addresses for the asking.
fn sources(suite: &Suite, targets: &[Target]) -> Vec<IpAddr> {
    let connections = suite.workload.parameters::<HttpWorkload>().connections;
    let per_request = connections == Connections::PerRequest;
    if per_request { local_sources(targets) } else { Vec::new() }
}
