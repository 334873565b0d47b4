//! A server in a process of its own: started on given cores, watched, stopped by its id.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use crate::clock::Deadline;
use crate::{ServerError, cores};

/// How long a server may take to end after SIGTERM before SIGKILL.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// How long the last words of a server that has ended may take to arrive.
const TAIL_WAIT: Duration = Duration::from_millis(500);
/// How much of a server's error output is kept for messages.
const TAIL_BYTES_MAX: usize = 4096;

/// What runs in a server process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Software {
    /// Name, as its makers spell it.
    pub name: String,
    /// Version, as the program itself says.
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
    /// Who may log on, for servers that ask.
    pub login: Option<Login>,
    /// The directory it serves, for servers whose path does not say. One with a size of its own
    /// lies in the server's namespace and is seen empty.
    pub shared: Option<PathBuf>,
    /// A Unix socket on which it tells of itself, for servers that do.
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
    /// `user`, with a password nobody has had before.
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
        self.process.child.id()
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
        Ok(match self.process.ended()? {
            None => ServerState::Running,
            Some(status) => ServerState::Ended(status),
        })
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

    /// SIGTERM, a bounded wait, SIGKILL; waits until it is gone. Its status says how it ended.
    pub fn stop(mut self) -> Result<ExitStatus, ServerError> {
        self.process.stop()
    }
}

/// What a starter knows of the server besides its process and address.
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
    /// A shell watches in its place, ends the server and removes the scratch directory.
    Shell,
}

/// A child process in a process group of its own, so that Ctrl-C on a terminal reaches only us
/// and we decide when the server ends.
#[derive(Debug)]
pub struct Process {
    child: Child,
    status: Option<ExitStatus>,
    tail: Tail,
    /// Held open: its end is the sign for `ParentWatch::Stdin`.
    stdin: Option<ChildStdin>,
    guard: Option<Child>,
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
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = spawn_on_cores(command, &launch)?;
        let tail = Tail::of(child.stderr.take());
        let stdin = child.stdin.take();
        let scratch = launch.scratch;
        let remove_too = launch.remove_when_killed;
        let mut process = Self { child, status: None, tail, stdin, guard: None, scratch };
        if !watches_stdin {
            process.guard = Some(process.start_guard(remove_too)?);
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
        if self.status.is_none() {
            let waited = self.child.try_wait();
            self.status = waited
                .map_err(|source| ServerError::System { doing: "wait for a server", source })?;
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

    /// Waits until it `answers`, which is told how much of `wait` is left. One that ends meanwhile,
    /// or stays silent, is an error with the end of its error log.
    pub fn wait_until(
        &mut self,
        software: &Software,
        wait: Duration,
        answers: impl Fn(Duration) -> bool,
    ) -> Result<(), ServerError> {
        let deadline = Deadline::after(wait);
        loop {
            let software = || software.to_string();
            if let Some(status) = self.ended()? {
                let tail = self.stderr_tail();
                return Err(ServerError::Ended { software: software(), status, tail });
            }
            if answers(deadline.left()) {
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
        self.stdin = None;
        let pid = self.rustix_pid();
        // An error means that it is gone already, which the wait below finds out.
        let _ = kill_process(pid, Signal::TERM);
        let deadline = Deadline::after(STOP_GRACE);
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if !deadline.wait_a_step() {
                break;
            }
        }
        let _ = kill_process_group(pid, Signal::KILL);
        let reaped = self.child.wait();
        let status =
            reaped.map_err(|source| ServerError::System { doing: "wait for a server", source })?;
        self.status = Some(status);
        self.end_leftovers();
        Ok(status)
    }

    /// After the process itself has ended: workers it left behind, and the guard.
    fn end_leftovers(&mut self) {
        // Workers outlive a master that was killed; the group has no other members.
        let _ = kill_process_group(self.rustix_pid(), Signal::KILL);
        // With all writers gone the end of the pipe is near; the thread drops its sender there.
        let _ = self.tail.complete.recv_timeout(TAIL_WAIT);
        if let Some(mut guard) = self.guard.take() {
            // The guard must not wake up and signal an id that is no longer ours.
            let _ = guard.kill();
            let _ = guard.wait();
        }
    }

    fn rustix_pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// A shell that waits for the end of its standard input, which comes when this process dies.
    fn start_guard(&self, remove_too: Option<PathBuf>) -> Result<Child, ServerError> {
        const SCRIPT: &str = r#"read -r _; kill -TERM "$1"; sleep 1; kill -KILL "-$1"
            [ -n "$2" ] && rm -rf "$2"
            [ -n "$3" ] && rm -rf "$3""#;
        let scratch = self.scratch.as_ref().map(|dir| dir.path().as_os_str().to_owned());
        Command::new("/bin/sh")
            .args(["-c", SCRIPT, "plimsoll-guard"])
            .arg(self.child.id().to_string())
            .arg(scratch.unwrap_or_default())
            .arg(remove_too.unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|source| ServerError::Spawn { program: "/bin/sh".into(), source })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nobody is left to hear of an error.
        let _ = self.stop();
    }
}

/// Spawns from a thread that is pinned first: the child and all its descendants inherit the cores,
/// with no moment in which a worker could have been started elsewhere.
fn spawn_on_cores(mut command: Command, launch: &Launch<'_>) -> Result<Child, ServerError> {
    let spawn = || {
        cores::pin_current_thread(launch.cores)
            .map_err(|source| ServerError::Pin { cores: cores::list(launch.cores), source })?;
        let program = launch.program.clone();
        command.spawn().map_err(|source| ServerError::Spawn { program, source })
    };
    std::thread::scope(|scope| match scope.spawn(spawn).join() {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// The last bytes a process wrote.
#[derive(Debug)]
pub struct Tail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    /// Disconnected once the output has ended.
    complete: mpsc::Receiver<()>,
}

impl Tail {
    /// Drains the output, so that the process never blocks on it, and keeps the end.
    pub fn of(output: Option<impl Read + Send + 'static>) -> Self {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let (until_complete, complete) = mpsc::channel();
        if let Some(output) = output {
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || {
                keep_end(output, &kept);
                drop::<mpsc::Sender<()>>(until_complete);
            });
        }
        Self { kept, complete }
    }

    /// What is kept so far.
    pub fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The same once the output has ended, or after a while: a program that the process left behind
    /// may hold it open.
    pub fn last_text(&self) -> String {
        let _ = self.complete.recv_timeout(TAIL_WAIT);
        self.text()
    }
}

fn keep_end(mut output: impl Read, kept: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = output.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&buffer[..read]);
        let excess = kept.len().saturating_sub(TAIL_BYTES_MAX);
        kept.drain(..excess);
    }
}

/// proc(5), `/proc/PID/stat`: after the command name in parentheses come state, parent and group.
fn processes_of_group(group: u32) -> io::Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process that ended since it was listed is no longer of interest.
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let found = after_name.split_whitespace().nth(2).and_then(|text| text.parse::<u32>().ok());
        if found == Some(group) {
            pids.push(pid);
        }
    }
    pids.sort_unstable();
    Ok(pids)
}
