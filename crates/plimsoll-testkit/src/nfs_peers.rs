//! A real NFS server and the foreign clients that judge ours.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use plimsoll_nfs::server::ganesha::{self, GaneshaRequest};
use plimsoll_servers::ServerProcess;

use crate::peers::{require_peer, require_root};

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

/// The exported directory, as this host sees it.
///
/// An export with a size of its own lies in the server's namespace and is seen empty.
pub fn export_of(server: &ServerProcess) -> PathBuf {
    PathBuf::from(server.path.split('?').next().unwrap())
}

/// `nfs://HOST:PORT/PATH?mountport=MOUNT` as libnfs wants it:
/// `nfs://HOST/PATH?nfsport=PORT&mountport=MOUNT&version=VERSION`.
pub fn libnfs_url(url: &str, below: &str, version: u32) -> String {
    let rest = url.strip_prefix("nfs://").unwrap();
    let (authority, rest) = rest.split_once('/').unwrap();
    let (host, port) = authority.rsplit_once(':').unwrap();
    let (path, query) = rest.split_once('?').unwrap();
    format!("nfs://{host}/{path}{below}?nfsport={port}&{query}&version={version}")
}

/// What a foreign client said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Whether its exit status was 0.
    pub success: bool,
    /// Its standard output.
    pub output: Vec<u8>,
    /// Its standard error.
    pub errors: String,
}

/// Runs `nfs-ls`, `nfs-cat` or `nfs-cp` of libnfs-utils, at most 10 s, or `None` where it is
/// missing.
pub fn libnfs(program: &str, arguments: &[&str]) -> Option<Said> {
    let program = require_peer(program)?;
    let output = Command::new("timeout").arg("10").arg(program).args(arguments).output().unwrap();
    Some(Said {
        success: output.status.success(),
        output: output.stdout,
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// The same URL by way of a proxy for the NFS port; MOUNT is still asked directly.
pub fn through(url: &str, proxy: SocketAddr) -> String {
    let rest = url.strip_prefix("nfs://").unwrap();
    let (_, path) = rest.split_once('/').unwrap();
    format!("nfs://{proxy}/{path}")
}
