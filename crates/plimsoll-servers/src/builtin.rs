//! `builtin:` targets: a reference server, in a process of its own.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

use crate::process::{Facts, Launch, Login, ParentWatch, Process};
use crate::{ServerError, ServerProcess, Software, cores};

/// What a reference server writes to standard output, followed by its URL, once it listens.
pub const ANNOUNCEMENT: &str = "listening on ";

/// Where a reference server finds the password of its user.
pub const PASSWORD_VARIABLE: &str = "PLIMSOLL_PASSWORD";

/// How long a reference server may take until it listens.
const START_WAIT: Duration = Duration::from_secs(15);

/// A reference web server to start: `serve web` of a program, on a free port of 127.0.0.1.
#[derive(Clone, Debug)]
pub struct BuiltinWeb {
    /// The program; normally [`std::env::current_exe`].
    pub program: PathBuf,
    /// Arguments after `serve web --listen 127.0.0.1:0 --stop-with-stdin [--cores LIST]`.
    pub arguments: Vec<OsString>,
    /// Cores to pin it to, one serving thread each; empty: one thread anywhere.
    pub cores: Vec<u32>,
    /// Version to disclose.
    pub version: String,
}

impl BuiltinWeb {
    /// Starts it and waits until it says where it listens.
    pub fn start(&self) -> Result<ServerProcess, ServerError> {
        let Self { program, arguments, cores, version } = self;
        Builtin { verb: "web", program, arguments, cores, version, login: None, scratch: None }
            .start()
    }
}

/// A reference NFS server to start: `serve nfs` of a program, on a free port of 127.0.0.1.
#[derive(Clone, Debug)]
pub struct BuiltinNfs {
    /// The program; normally [`std::env::current_exe`].
    pub program: PathBuf,
    /// Arguments after `serve nfs --listen 127.0.0.1:0 --stop-with-stdin [--cores LIST]`.
    pub arguments: Vec<OsString>,
    /// Cores to pin it to, one UDP thread each; empty: anywhere.
    pub cores: Vec<u32>,
    /// Version to disclose.
    pub version: String,
}

impl BuiltinNfs {
    /// Starts it and waits until it says where it listens.
    pub fn start(&self) -> Result<ServerProcess, ServerError> {
        let Self { program, arguments, cores, version } = self;
        Builtin { verb: "nfs", program, arguments, cores, version, login: None, scratch: None }
            .start()
    }
}

/// A reference SMB server to start: `serve smb` of a program, on a free port of 127.0.0.1.
#[derive(Clone, Debug)]
pub struct BuiltinSmb {
    /// The program; normally [`std::env::current_exe`].
    pub program: PathBuf,
    /// Arguments after `serve smb --listen 127.0.0.1:0 --stop-with-stdin [--cores LIST]
    /// [--user NAME]`.
    pub arguments: Vec<OsString>,
    /// Cores to pin it to, one thread each; empty: as many threads as there are cores, anywhere.
    pub cores: Vec<u32>,
    /// Version to disclose.
    pub version: String,
    /// Who may log on; `None`: everybody, as a guest.
    pub login: Option<Login>,
}

impl BuiltinSmb {
    /// Starts it and waits until it says where it listens.
    pub fn start(&self) -> Result<ServerProcess, ServerError> {
        let Self { program, arguments, cores, version, login } = self;
        let login = login.as_ref();
        Builtin { verb: "smb", program, arguments, cores, version, login, scratch: None }.start()
    }
}

/// A reference server of application transactions to start: `serve app` of a program, on a free
/// port of 127.0.0.1, with its data in a directory of its own below `TMPDIR`.
#[derive(Clone, Debug)]
pub struct BuiltinApp {
    /// The program; normally [`std::env::current_exe`].
    pub program: PathBuf,
    /// Arguments after `serve app --listen 127.0.0.1:0 --stop-with-stdin [--cores LIST]
    /// --temporary-root DIR`.
    pub arguments: Vec<OsString>,
    /// Cores to pin it to; empty: anywhere. The number of its service threads does not follow.
    pub cores: Vec<u32>,
    /// Version to disclose.
    pub version: String,
}

impl BuiltinApp {
    /// Starts it and waits until it says where it listens.
    pub fn start(&self) -> Result<ServerProcess, ServerError> {
        let Self { program, arguments, cores, version } = self;
        // Removed by the server when it ends, and by us when it was killed.
        let scratch = tempfile::Builder::new().prefix("plimsoll-segments-").tempdir();
        let scratch = scratch.map_err(|source| ServerError::System {
            doing: "make a directory for the data segments below TMPDIR",
            source,
        })?;
        let scratch = Some(scratch);
        Builtin { verb: "app", program, arguments, cores, version, login: None, scratch }.start()
    }
}

/// What all reference servers have in common.
struct Builtin<'a> {
    verb: &'static str,
    program: &'a PathBuf,
    arguments: &'a [OsString],
    cores: &'a [u32],
    version: &'a str,
    login: Option<&'a Login>,
    /// Where it may leave files; lives as long as its process.
    scratch: Option<TempDir>,
}

impl Builtin<'_> {
    fn start(mut self) -> Result<ServerProcess, ServerError> {
        let arguments = self.all_arguments();
        let shown: Vec<_> = arguments.iter().map(|a| a.to_string_lossy().into_owned()).collect();
        let password = self.login.map(|login| (PASSWORD_VARIABLE, login.password.clone()));
        let mut process = Process::start(Launch {
            program: self.program.clone(),
            arguments,
            environment: password.into_iter().collect(),
            cores: self.cores,
            scratch: self.scratch.take(),
            remove_when_killed: None,
            parent_watch: ParentWatch::Stdin,
        })?;
        let name = format!("plimsoll serve {}", self.verb);
        let software = Software { name, version: self.version.to_owned() };
        let Announced { scheme, address, path } = wait_for_announcement(&mut process, &software)?;
        let configuration = format!("plimsoll {}", shown.join(" "));
        let facts = Facts { scheme, path, software, configuration, cores: self.cores.to_vec() };
        let mut server = ServerProcess::new(process, address, facts);
        server.login = self.login.cloned();
        Ok(server)
    }

    fn all_arguments(&self) -> Vec<OsString> {
        let mut all: Vec<OsString> =
            ["serve", self.verb, "--listen", "127.0.0.1:0", "--stop-with-stdin"]
                .map(Into::into)
                .into();
        if !self.cores.is_empty() {
            all.extend(["--cores".into(), cores::list(self.cores).into()]);
        }
        if let Some(Login { user, .. }) = self.login {
            all.extend(["--user".into(), user.into()]);
        }
        if let Some(scratch) = &self.scratch {
            all.extend(["--temporary-root".into(), scratch.path().into()]);
        }
        all.extend(self.arguments.iter().cloned());
        all
    }
}

/// Where a reference server says it listens.
#[derive(Debug, PartialEq, Eq)]
struct Announced {
    scheme: &'static str,
    address: SocketAddr,
    /// What follows the address in the URL.
    path: String,
}

fn wait_for_announcement(
    process: &mut Process,
    software: &Software,
) -> Result<Announced, ServerError> {
    let (sender, announced) = mpsc::channel();
    if let Some(stdout) = process.take_stdout() {
        std::thread::spawn(move || {
            // Reads on to the end, so that the server never blocks on a full pipe.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(found) = parse_announcement(&line) {
                    let _ = sender.send(found);
                }
            }
        });
    }
    match announced.recv_timeout(START_WAIT) {
        Ok(found) => Ok(found),
        Err(why) => {
            let status = process.stop()?;
            let (software, tail) = (software.to_string(), process.stderr_tail());
            Err(match why {
                mpsc::RecvTimeoutError::Disconnected => {
                    ServerError::Ended { software, status, tail }
                }
                mpsc::RecvTimeoutError::Timeout => {
                    ServerError::Silent { software, waited: START_WAIT, tail }
                }
            })
        }
    }
}

fn parse_announcement(line: &str) -> Option<Announced> {
    const SCHEMES: [&str; 5] = ["http", "https", "nfs", "smb", "app"];
    let (scheme, rest) = line.strip_prefix(ANNOUNCEMENT)?.split_once("://")?;
    let scheme = SCHEMES.into_iter().find(|known| *known == scheme)?;
    let (authority, _) = rest.split_once('/')?;
    let path = rest[authority.len()..].to_owned();
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    Some(Announced { scheme, address: address.parse().ok()?, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_is_a_url_with_a_port() {
        let parsed =
            |line| parse_announcement(line).map(|a| (a.scheme, a.address.to_string(), a.path));
        let found =
            |scheme, address: &str, path: &str| Some((scheme, address.to_owned(), path.to_owned()));
        assert_eq!(parsed("listening on https://[::1]:8443/"), found("https", "[::1]:8443", "/"));
        assert_eq!(
            parsed("listening on nfs://127.0.0.1:2049/export?mountport=2049"),
            found("nfs", "127.0.0.1:2049", "/export?mountport=2049")
        );
        assert_eq!(
            parsed("listening on smb://ann@127.0.0.1:445/plimsoll"),
            found("smb", "127.0.0.1:445", "/plimsoll")
        );
        assert_eq!(
            parsed("listening on app://127.0.0.1:7415/"),
            found("app", "127.0.0.1:7415", "/")
        );
        for wrong in ["listening on ftp://127.0.0.1:1/", "listening on http://host/", "ready"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
