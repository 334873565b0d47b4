//! A real SMB server, and the foreign clients that check ours.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_servers::{Login, ServerProcess};
use plimsoll_smb::server::samba::{self, SambaRequest};

use crate::nfs_peers::PeerOutput;
use crate::peers::{require_peer, require_root};
use crate::program::Running;

/// Where Debian's dbench puts the load file that everybody knows.
const LOAD_FILES: [&str; 2] =
    ["/usr/share/dbench/client.txt", "/usr/share/dbench/loadfiles/client.txt"];

/// Where Debian has Python, and puts the server of its impacket.
const PYTHON: &str = "/usr/bin/python3";
const IMPACKET: &str = "/usr/lib/python3/dist-packages/impacket/smbserver.py";

/// A real Samba with an empty share of its own and one user, or `None` where it is not installed
/// (see [`require_peer`]). Stops when dropped.
pub fn samba() -> Option<ServerProcess> {
    require_peer("smbd")?;
    let login = Some(Login::with_new_password("plimsoll").unwrap());
    samba_as(&SambaRequest { login, ..SambaRequest::default() })
}

/// As [`samba()`], with a given request; `None` also if it needs root.
pub fn samba_as(request: &SambaRequest) -> Option<ServerProcess> {
    require_peer("smbd")?;
    require_peer("pdbedit")?;
    if request.share_bytes.is_some() {
        require_root("a share of a given size")?;
    }
    Some(samba::start(request).unwrap())
}

/// The shared directory, as this host sees it.
pub fn share_of(server: &ServerProcess) -> PathBuf {
    server.shared.clone().unwrap()
}

/// impacket's SMB server, whose replies differ from MS-SMB2 in details. Stops when dropped.
pub struct Impacket {
    _process: Running,
    /// `smb://127.0.0.1:PORT/share`; guests are let in.
    pub url: String,
}

/// Serves `directory`, or `None` where impacket is not installed (see [`require_peer`]).
pub fn impacket(directory: &Path) -> Option<Impacket> {
    require_peer(IMPACKET)?;
    let mut child = Command::new(PYTHON)
        .args(["-c", include_str!("impacket.py")])
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let port = lines.find_map(|line| line.parse::<u16>().ok()).unwrap();
    // Its later output is ignored, and must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    Some(Impacket { _process: Running(child), url: format!("smb://127.0.0.1:{port}/share") })
}

/// Runs `commands` (`put FILE; ls`) in smbclient at `smb://[USER:PASSWORD@]HOST:PORT/SHARE`, with
/// further `arguments`, at most 20 s; `None` where it is missing.
pub fn smbclient(url: &str, arguments: &[&str], commands: &str) -> Option<PeerOutput> {
    let program = require_peer("smbclient")?;
    let ShareAddress { host, port, share, user } = ShareAddress::from_url(url);
    let output = Command::new("timeout")
        .arg("20")
        .arg(program)
        .args([&format!("//{host}/{share}"), "--port", port, "--user", &user])
        // The host's own configuration must not change what is tested.
        .args(["--configfile", "/dev/null"])
        .args(arguments)
        .args(["--command", commands])
        .output()
        .unwrap();
    Some(PeerOutput {
        success: output.status.success(),
        output: output.stdout,
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Runs a test of smbtorture (`smb2.bench.echo`) with `arguments`, at most 60 s; `None` where it is
/// missing.
pub fn smbtorture(url: &str, test: &str, arguments: &[&str]) -> Option<PeerOutput> {
    let program = require_peer("smbtorture")?;
    let ShareAddress { host, port, share, user } = ShareAddress::from_url(url);
    let output = Command::new("timeout")
        .arg("60")
        .arg(program)
        .args([&format!("//{host}/{share}"), "-p", port, "-U", &user])
        .args(["-s", "/dev/null"])
        .args(arguments)
        .arg(test)
        .output()
        .unwrap();
    Some(PeerOutput {
        success: output.status.success(),
        output: output.stdout,
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// dbench's own load file, or `None` where dbench is not installed (see [`require_peer`]).
pub fn dbench_load_file() -> Option<PathBuf> {
    let load_file = LOAD_FILES.into_iter().map(PathBuf::from).find(|path| path.is_file());
    // Required by name, so that its absence is reported like that of a program.
    load_file.or_else(|| require_peer("dbench, for its client.txt"))
}

/// A URL in the parts that Samba's programs want.
struct ShareAddress<'a> {
    host: &'a str,
    port: &'a str,
    share: &'a str,
    /// `USER%PASSWORD`; `%` for a guest.
    user: String,
}

impl<'a> ShareAddress<'a> {
    fn from_url(url: &'a str) -> Self {
        let rest = url.strip_prefix("smb://").unwrap();
        let (authority, share) = rest.split_once('/').unwrap();
        let (user, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (user.replacen(':', "%", 1), address),
            None => ("%".to_owned(), authority),
        };
        let (host, port) = address.rsplit_once(':').unwrap();
        Self { host, port, share, user }
    }
}
