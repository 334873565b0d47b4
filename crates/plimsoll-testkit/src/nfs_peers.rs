//! A real NFS server, and the foreign clients that check ours.

use std::ffi::OsStr;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_nfs::server::ganesha::{self, GaneshaRequest};
use plimsoll_nfs::server::{Nfs4, NfsConfig, NfsServer};
use plimsoll_servers::ServerProcess;
use tempfile::TempDir;

use crate::peers::{require_peer, require_root};
use crate::program::{Running, ServerThread};

/// A real NFS-Ganesha with an empty export of its own, or `None` where it is not installed or
/// this is not root (see [`require_peer`]). Stops when dropped.
pub fn ganesha(cores: &[u32]) -> Option<ServerProcess> {
    ganesha_as(&GaneshaRequest { cores: cores.to_vec(), ..GaneshaRequest::default() })
}

/// As [`ganesha()`], with a request of one's own.
pub fn ganesha_as(request: &GaneshaRequest) -> Option<ServerProcess> {
    require_peer("ganesha.nfsd")?;
    require_peer("rpcbind")?;
    require_root("NFS-Ganesha")?;
    Some(ganesha::start(request).unwrap())
}

/// The reference server in a thread of the test; stops when dropped.
pub struct OwnNfs {
    /// Where it listens.
    pub address: SocketAddr,
    /// What to measure.
    pub url: String,
    /// Its clients and sessions of version 4.1.
    pub v4: Arc<Nfs4>,
    _serving: ServerThread,
}

impl OwnNfs {
    /// On a free port.
    pub fn start() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let config =
            NfsConfig { listen, memory_bytes_max: 1 << 30, portmapper: None, cores: Vec::new() };
        let server = NfsServer::bind(&config).unwrap();
        let (address, url, v4) = (server.address(), server.url(), server.v4());
        Self { address, url, v4, _serving: ServerThread::new(move |stop| server.serve_until(stop)) }
    }
}

/// A go-nfs that serves a directory of its own, and its URL; stops when dropped. `None` where it
/// is not installed (see [`require_peer`]).
pub fn go_nfs() -> Option<GoNfs> {
    let program = require_peer("osnfs")?;
    let export = tempfile::tempdir().unwrap();
    // Free now; the server accepts no other configuration.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let process = Command::new(program)
        .args([export.path().as_os_str(), OsStr::new(&port.to_string())])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = GoNfs { _process: Running(process), port, export };
    for _ in 0..200 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some(server);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("go-nfs does not listen on port {port}");
}

/// A running go-nfs.
#[derive(Debug)]
pub struct GoNfs {
    _process: Running,
    port: u16,
    export: TempDir,
}

impl GoNfs {
    /// What to measure.
    pub fn url(&self) -> String {
        format!("nfs://127.0.0.1:{0}/mount?mountport={0}", self.port)
    }

    /// What it serves, as this host sees it.
    pub fn export(&self) -> &Path {
        self.export.path()
    }
}

/// The exported directory, as this host sees it.
///
/// An export with its own size lies in the server's namespace and looks empty from outside.
pub fn export_of(server: &ServerProcess) -> PathBuf {
    PathBuf::from(server.path.split('?').next().unwrap())
}

/// `nfs://HOST:PORT/PATH?mountport=MOUNT` in libnfs's form:
/// `nfs://HOST/PATH?nfsport=PORT&mountport=MOUNT&version=VERSION`.
pub fn libnfs_url(url: &str, below: &str, version: u32) -> String {
    let rest = url.strip_prefix("nfs://").unwrap();
    let (authority, rest) = rest.split_once('/').unwrap();
    let (host, port) = authority.rsplit_once(':').unwrap();
    let (path, query) = rest.split_once('?').unwrap();
    format!("nfs://{host}/{path}{below}?nfsport={port}&{query}&version={version}")
}

/// The output of a foreign client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerOutput {
    /// Whether its exit status was 0.
    pub success: bool,
    /// Its standard output.
    pub output: Vec<u8>,
    /// Its standard error.
    pub errors: String,
}

/// Runs `nfs-ls`, `nfs-cat` or `nfs-cp` of libnfs-utils, at most 10 s, or `None` where it is
/// missing.
pub fn libnfs(program: &str, arguments: &[&str]) -> Option<PeerOutput> {
    let program = require_peer(program)?;
    let output = Command::new("timeout").arg("10").arg(program).args(arguments).output().unwrap();
    Some(PeerOutput {
        success: output.status.success(),
        output: output.stdout,
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// The same URL by way of a proxy for the NFS port; MOUNT still goes to the server directly.
pub fn through(url: &str, proxy: SocketAddr) -> String {
    let rest = url.strip_prefix("nfs://").unwrap();
    let (_, path) = rest.split_once('/').unwrap();
    format!("nfs://{proxy}/{path}")
}
