//! A server in a process of its own: started on given cores, watched, stopped by its id.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use plimsoll_process::{ChildProcess, Tail};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::clock::Deadline;
use crate::{ServerError, cores};

/// How long a server may take to end after SIGTERM before SIGKILL.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// What runs in a server process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Software {
    /// Name, as its developers spell it.
    pub name: String,
    /// Version, as the program itself reports.
    pub version: String,
}

impl fmt::Display for Software {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// Whether a server process still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It runs.
    Running,
    /// It has ended, with this status.
    Ended(ExitStatus),
}

/// A server in a process of its own. Dropping it stops the server and removes its scratch files.
#[derive(Debug)]
pub struct ServerProcess {
    /// Where it listens.
    pub address: SocketAddr,
    /// Scheme of its URL.
    pub scheme: String,
    /// What follows the address in its URL: path and query.
    pub path: String,
    /// Name and version.
    pub software: Software,
    /// Its whole configuration, for the disclosure.
    pub configuration: String,
    /// Cores it is pinned to; empty: wherever the system puts it.
    pub cores: Vec<u32>,
    /// Who may log on, for servers with logins.
    pub login: Option<Login>,
    /// The directory it serves, where it has one. One with its own size lies in the server's
    /// namespace and looks empty from outside.
    pub shared: Option<PathBuf>,
    /// The Unix socket of its status page, for servers that have one.
    pub status: Option<PathBuf>,
    process: Process,
}

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// Name.
    pub user: String,
    /// Password.
    pub password: String,
}

impl Login {
    /// `user`, with a new random password.
    pub fn with_new_password(user: &str) -> Result<Self, ServerError> {
        Ok(Self { user: user.to_owned(), password: random_hex(16)? })
    }
}

/// `bytes` of the system's random bytes, in hexadecimal.
pub fn random_hex(bytes: usize) -> Result<String, ServerError> {
    let system = |source| ServerError::System { doing: "read /dev/urandom", source };
    let mut random = vec![0; bytes];
    let mut source = std::fs::File::open("/dev/urandom").map_err(system)?;
    source.read_exact(&mut random).map_err(system)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl fmt::Debug for Login {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl ServerProcess {
    /// `process` as a server that listens on `address`.
    pub fn new(process: Process, address: SocketAddr, facts: Facts) -> Self {
        let Facts { scheme, path, software, configuration, cores } = facts;
        Self {
            address,
            scheme,
            path,
            software,
            configuration,
            cores,
            login: None,
            shared: None,
            status: None,
            process,
        }
    }

    /// Id of the process that was started (the master, where there are workers).
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The directory of its configuration, where it has one of its own.
    pub fn scratch(&self) -> Option<&Path> {
        self.process.scratch.as_ref().map(TempDir::path)
    }

    /// Ids of all processes of the server, for samplers of CPU and memory.
    pub fn pids(&self) -> io::Result<Vec<u32>> {
        processes_of_group(self.pid())
    }

    /// `http://127.0.0.1:PORT/`, `nfs://127.0.0.1:PORT/export?mountport=PORT`,
    /// `smb://USER@127.0.0.1:PORT/share`.
    pub fn url(&self) -> String {
        self.url_of(self.login.as_ref().map(|login| login.user.clone()))
    }

    /// The same with the password, if there is one: for clients, not for eyes.
    pub fn url_with_password(&self) -> String {
        let Login { user, password } = match &self.login {
            Some(login) => login,
            None => return self.url(),
        };
        self.url_of(Some(format!("{user}:{password}")))
    }

    fn url_of(&self, who: Option<String>) -> String {
        let who = who.map(|who| format!("{who}@")).unwrap_or_default();
        format!("{}://{who}{}{}", self.scheme, self.address, self.path)
    }

    /// Whether it still runs. Does not wait.
    pub fn state(&mut self) -> Result<ServerState, ServerError> {
        Ok(self.process.ended()?.map_or(ServerState::Running, ServerState::Ended))
    }

    /// [`ServerError::Ended`] with the end of its error log if it no longer runs.
    pub fn check(&mut self) -> Result<(), ServerError> {
        match self.state()? {
            ServerState::Running => Ok(()),
            ServerState::Ended(status) => Err(ServerError::Ended {
                software: self.software.to_string(),
                status,
                tail: self.stderr_tail(),
            }),
        }
    }

    /// The last it wrote to standard error.
    pub fn stderr_tail(&self) -> String {
        self.process.stderr_tail()
    }

    /// SIGTERM, a bounded wait, SIGKILL; waits until it is gone. Returns its exit status.
    pub fn stop(mut self) -> Result<ExitStatus, ServerError> {
        self.process.stop()
    }
}

/// Facts of a started server other than its process and address.
pub struct Facts {
    /// Scheme of its URL.
    pub scheme: String,
    /// What follows the address in its URL.
    pub path: String,
    /// Name and version.
    pub software: Software,
    /// Its whole configuration.
    pub configuration: String,
    /// Cores it is pinned to.
    pub cores: Vec<u32>,
}

/// How to start a process.
pub struct Launch<'a> {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// What others must not see among the arguments.
    pub environment: Vec<(&'static str, String)>,
    /// Cores to pin it to; empty: wherever the system puts it.
    pub cores: &'a [u32],
    /// Directory that lives as long as the process.
    pub scratch: Option<TempDir>,
    /// Removed as well when this process dies without stopping the server.
    pub remove_when_killed: Option<PathBuf>,
    /// How it ends when this process dies.
    pub parent_watch: ParentWatch,
}

/// How a server ends when this process dies without stopping it (`kill -9`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ParentWatch {
    /// The server watches its standard input itself.
    Stdin,
    /// A shell watches instead, ends the server and removes the scratch directory.
    Shell,
}

/// The process of a server, with what lives as long as it does.
#[derive(Debug)]
pub struct Process {
    /// Its standard input is kept open: its end is the sign for `ParentWatch::Stdin`.
    child: ChildProcess,
    status: Option<ExitStatus>,
    tail: Tail,
    guard: Option<ChildProcess>,
    scratch: Option<TempDir>,
}

impl Process {
    /// Starts it.
    pub fn start(launch: Launch<'_>) -> Result<Self, ServerError> {
        let watches_stdin = launch.parent_watch == ParentWatch::Stdin;
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.arguments)
            .envs(launch.environment.iter().map(|(name, value)| (name, value)))
            .stdin(if watches_stdin { Stdio::piped() } else { Stdio::null() })
            .stdout(if watches_stdin { Stdio::piped() } else { Stdio::null() })
            .stderr(Stdio::piped());
        let program = launch.program;
        let not_started = |source| ServerError::Spawn { program: program.clone(), source };
        let mut child = cores::on_cores(launch.cores, || ChildProcess::start(command))
            .map_err(|source| ServerError::Pin { cores: cores::list(launch.cores), source })?
            .map_err(not_started)?;
        let tail = Tail::from_output(child.stderr.take()).map_err(not_started)?;
        let scratch = launch.scratch;
        let mut process = Self { child, status: None, tail, guard: None, scratch };
        if !watches_stdin {
            process.guard = Some(process.start_guard(launch.remove_when_killed)?);
        }
        Ok(process)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Its exit status once it has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, ServerError> {
        self.wait_for(Duration::ZERO)
    }

    fn wait_for(&mut self, longest: Duration) -> Result<Option<ExitStatus>, ServerError> {
        if self.status.is_none() {
            let waited = self.child.wait_for(longest);
            self.status = waited.map_err(not_waited)?;
            if self.status.is_some() {
                self.end_leftovers();
            }
        }
        Ok(self.status)
    }

    /// The last it wrote to standard error.
    pub fn stderr_tail(&self) -> String {
        self.tail.text()
    }

    /// Waits until it `answers`, which gets the end of `wait`. One that ends meanwhile, or stays
    /// silent, is an error with the end of its error log.
    pub fn wait_until(
        &mut self,
        software: &Software,
        wait: Duration,
        answers: impl Fn(Deadline) -> bool,
    ) -> Result<(), ServerError> {
        let deadline = Deadline::after(wait);
        loop {
            let software = || software.to_string();
            if let Some(status) = self.ended()? {
                let tail = self.stderr_tail();
                return Err(ServerError::Ended { software: software(), status, tail });
            }
            if answers(deadline) {
                return Ok(());
            }
            if !deadline.wait_a_step() {
                let tail = self.stderr_tail();
                return Err(ServerError::Silent { software: software(), waited: wait, tail });
            }
        }
    }

    /// Ends it, by force where it takes too long.
    pub fn stop(&mut self) -> Result<ExitStatus, ServerError> {
        if let Some(status) = self.ended()? {
            return Ok(status);
        }
        self.child.stdin = None;
        self.child.signal(Signal::TERM);
        if let Some(status) = self.wait_for(STOP_GRACE)? {
            return Ok(status);
        }
        self.child.signal_group(Signal::KILL);
        let status = self.child.wait().map_err(not_waited)?;
        self.status = Some(status);
        self.end_leftovers();
        Ok(status)
    }

    /// After the process itself has ended: workers it left behind, and the guard.
    fn end_leftovers(&mut self) {
        // Workers outlive a master that was killed; the group has no other members.
        self.child.signal_group(Signal::KILL);
        // The guard must not wake up and signal an id that is no longer ours.
        self.guard = None;
    }

    /// A shell that waits for the end of its standard input, which comes when this process dies.
    fn start_guard(&self, remove_too: Option<PathBuf>) -> Result<ChildProcess, ServerError> {
        const SCRIPT: &str = r#"read -r _; kill -TERM "$1"; sleep 1; kill -KILL "-$1"
            [ -n "$2" ] && rm -rf "$2"
            [ -n "$3" ] && rm -rf "$3""#;
        let scratch = self.scratch.as_ref().map(|dir| dir.path().as_os_str().to_owned());
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", SCRIPT, "plimsoll-guard"])
            .arg(self.child.id().to_string())
            .arg(scratch.unwrap_or_default())
            .arg(remove_too.unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        ChildProcess::start(shell)
            .map_err(|source| ServerError::Spawn { program: "/bin/sh".into(), source })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error can no longer be reported.
        let _ = self.stop();
    }
}

fn not_waited(source: io::Error) -> ServerError {
    ServerError::System { doing: "wait for a server", source }
}

/// Ids of all processes of this host, ascending.
pub(crate) fn all_pids() -> io::Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        pids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    pids.sort_unstable();
    Ok(pids)
}

/// proc(5), `/proc/PID/stat`: after the command name in parentheses come state, parent and group.
fn processes_of_group(group: u32) -> io::Result<Vec<u32>> {
    let is_member = |pid: &u32| {
        // A process that ended since it was listed is no longer of interest.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        after_name.split_whitespace().nth(2).and_then(|text| text.parse().ok()) == Some(group)
    };
    Ok(all_pids()?.into_iter().filter(is_member).collect())
}
