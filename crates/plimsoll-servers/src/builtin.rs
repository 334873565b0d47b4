//! `builtin:` targets: a reference server, in a process of its own; how it listens, how it is
//! stopped, and how its limit of open files is raised.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use plimsoll_model::units::{Nanos, span_text};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::process::{Facts, Launch, Login, ParentWatch, Process};
use crate::programs::LOOPBACK;
use crate::{ServerError, ServerProcess, Software, cores};

/// What a reference server writes to standard output, followed by its URL, once it listens.
pub const ANNOUNCEMENT: &str = "listening on ";

/// Where a reference server finds the password of its user.
pub const PASSWORD_VARIABLE: &str = "PLIMSOLL_PASSWORD";

/// Connections that may wait in the kernel to be accepted; std's limit is too small for clients
/// that connect all at once.
const BACKLOG: i32 = 4_096;

/// How long a reference server may take until it listens.
const START_WAIT: Duration = Duration::from_secs(15);

/// A reference server to start: `serve VERB` of a program, on a free port.
#[derive(Clone, Debug)]
pub struct Builtin {
    /// What follows `serve`.
    pub verb: &'static str,
    /// The program; normally [`std::env::current_exe`].
    pub program: PathBuf,
    /// Address it listens on.
    pub listen_on: IpAddr,
    /// Arguments after `serve VERB --listen ADDR:0 --stop-with-stdin [--cores LIST]
    /// [--user NAME] [--temporary-root DIR]`.
    pub arguments: Vec<OsString>,
    /// Cores to pin it to, one thread each where it has threads of its own; empty: anywhere.
    pub cores: Vec<u32>,
    /// Version to disclose.
    pub version: String,
    /// Who may log on, for servers with logins; `None`: everybody.
    pub login: Option<Login>,
    /// It gets a directory of its own below `TMPDIR`, whose name begins so.
    pub scratch: Option<&'static str>,
}

impl Builtin {
    /// Does this much extra work for each request.
    #[must_use]
    pub fn with_work(mut self, work: Option<Nanos>) -> Self {
        let flag = work.map(|work| ["--work".into(), span_text(work).into()]);
        self.arguments.extend(flag.into_iter().flatten());
        self
    }

    /// It listens on `ip`.
    #[must_use]
    pub fn listening_on(self, ip: IpAddr) -> Self {
        Self { listen_on: ip, ..self }
    }

    /// A server of `program` on `cores` and loopback, of this version, without arguments of its
    /// own.
    pub fn new(verb: &'static str, program: PathBuf, cores: &[u32]) -> Self {
        Self {
            verb,
            program,
            listen_on: LOOPBACK,
            arguments: Vec::new(),
            cores: cores.to_vec(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            login: None,
            scratch: None,
        }
    }

    /// Starts it and waits until it announces its address.
    pub fn start(&self) -> Result<ServerProcess, ServerError> {
        // Removed by the server when it ends, and by us when it was killed.
        let scratch = self.scratch.map(|prefix| tempfile::Builder::new().prefix(prefix).tempdir());
        let scratch = scratch.transpose().map_err(|source| ServerError::System {
            doing: "make a directory below TMPDIR",
            source,
        })?;
        let arguments = self.all_arguments(scratch.as_ref());
        let shown: Vec<_> = arguments.iter().map(|a| a.to_string_lossy().into_owned()).collect();
        let login = self.login.as_ref();
        let password = login.map(|login| (PASSWORD_VARIABLE, login.password.clone()));
        let mut process = Process::start(Launch {
            program: self.program.clone(),
            arguments,
            environment: password.into_iter().collect(),
            cores: &self.cores,
            scratch,
            remove_when_killed: None,
            parent_watch: ParentWatch::Stdin,
        })?;
        let name = format!("plimsoll serve {}", self.verb);
        let software = Software { name, version: self.version.clone() };
        let Announced { scheme, address, path } = wait_for_announcement(&mut process, &software)?;
        let configuration = format!("plimsoll {}", shown.join(" "));
        let facts = Facts { scheme, path, software, configuration, cores: self.cores.clone() };
        let mut server = ServerProcess::new(process, address, facts);
        server.login = self.login.clone();
        server.shared = server.scratch().map(Path::to_owned);
        Ok(server)
    }

    fn all_arguments(&self, scratch: Option<&TempDir>) -> Vec<OsString> {
        let listen = SocketAddr::new(self.listen_on, 0).to_string();
        let mut all: Vec<OsString> =
            ["serve", self.verb, "--listen", &listen, "--stop-with-stdin"].map(Into::into).into();
        if !self.cores.is_empty() {
            all.extend(["--cores".into(), cores::list(&self.cores).into()]);
        }
        if let Some(Login { user, .. }) = &self.login {
            all.extend(["--user".into(), user.into()]);
        }
        if let Some(scratch) = scratch {
            all.extend(["--temporary-root".into(), scratch.path().into()]);
        }
        all.extend(self.arguments.iter().cloned());
        all
    }
}

/// The announced address of a reference server.
#[derive(Debug, PartialEq, Eq)]
struct Announced {
    scheme: String,
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
                if let Some(announcement) = parse_announcement(&line) {
                    let _ = sender.send(announcement);
                }
            }
        });
    }
    match announced.recv_timeout(START_WAIT) {
        Ok(announcement) => Ok(announcement),
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
    let (scheme, rest) = line.strip_prefix(ANNOUNCEMENT)?.split_once("://")?;
    let (authority, _) = rest.split_once('/')?;
    let path = rest[authority.len()..].to_owned();
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    Some(Announced { scheme: scheme.to_owned(), address: address.parse().ok()?, path })
}

/// A request to stop, shared by those that may request it and those that must obey. Clones are one
/// request.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

impl Stop {
    /// Not requested yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Requests the stop. Further calls change nothing.
    pub fn request(&self) {
        self.0.send_replace(true);
    }

    /// Whether the stop was requested.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Requests the stop once standard input ends: a process whose parent holds the other end of
    /// that pipe stops with its parent, however that ends.
    pub fn request_when_stdin_ends(&self) {
        let stop = self.clone();
        std::thread::spawn(move || {
            let mut unread = [0; 256];
            let mut stdin = io::stdin().lock();
            while matches!(stdin.read(&mut unread), Ok(1..)) {}
            stop.request();
        });
    }

    /// Waits until it is requested.
    pub async fn requested(&self) {
        let mut requests = self.0.subscribe();
        // An error would mean that the sender is gone, and `self` holds it.
        let _ = requests.wait_for(|is_requested| *is_requested).await;
    }
}

/// Listens, without blocking. Returns the address too, whose port the system may have chosen.
pub fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)?;
    // A second listen(2) on a listening socket changes its backlog.
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Lets this process have as many files open as the system allows: every connection is one.
/// Fewer are no error, only slower.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // A sandbox may refuse it; the limit then stays.
    let _ = setrlimit(Resource::Nofile, raised);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_is_a_url_with_a_port() {
        let parsed =
            |line| parse_announcement(line).map(|a| (a.scheme, a.address.to_string(), a.path));
        let expected = |scheme: &str, address: &str, path: &str| {
            Some((scheme.to_owned(), address.to_owned(), path.to_owned()))
        };
        assert_eq!(
            parsed("listening on https://[::1]:8443/"),
            expected("https", "[::1]:8443", "/")
        );
        assert_eq!(
            parsed("listening on nfs://127.0.0.1:2049/export?mountport=2049"),
            expected("nfs", "127.0.0.1:2049", "/export?mountport=2049")
        );
        assert_eq!(
            parsed("listening on smb://ann@127.0.0.1:445/plimsoll"),
            expected("smb", "127.0.0.1:445", "/plimsoll")
        );
        assert_eq!(
            parsed("listening on app://127.0.0.1:7415/"),
            expected("app", "127.0.0.1:7415", "/")
        );
        for wrong in ["listening at http://127.0.0.1:1/", "listening on http://host/", "ready"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
