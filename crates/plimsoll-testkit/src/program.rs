//! Runs the program and looks at what it leaves behind, for tests of the package `plimsoll`: cargo
//! builds the program for them only. And looks at processes from outside, for all tests.

use std::cell::Cell;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
#[cfg(feature = "servers")]
use std::thread::JoinHandle;
use std::time::Duration;

#[cfg(feature = "servers")]
use plimsoll_servers::{ServerError, Stop};
use serde_json::Value;

use crate::clock::now;
use crate::skips::skip_always;

/// Longest any of these runs may take, on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(180);
/// Measurements that differ on a disturbed machine, after which a test shows nothing.
const DISTURBED_MAX: usize = 3;

/// How the program ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; absent where a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub out: String,
    /// What it wrote to standard error.
    pub err: String,
}

impl Ended {
    /// Asserts the exit code and that the messages hold all of `parts`.
    #[track_caller]
    pub fn check(&self, code: i32, parts: &[&str]) {
        let all = format!("{}\n{}", self.out, self.err);
        assert_eq!(self.code, Some(code), "{all}");
        for part in parts {
            assert!(all.contains(part), "{part:?} is not in:\n{all}");
        }
    }
}

/// Cargo puts a test into a folder next to its package's binaries.
fn binaries_folder() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}

/// An example of the package under test, which cargo builds with its tests.
pub fn example(name: &str) -> PathBuf {
    let program = binaries_folder().join("examples").join(name);
    assert!(program.exists(), "{} is missing: cargo build --examples", program.display());
    program
}

/// The binary with these arguments.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(binaries_folder().join("plimsoll"));
    command.args(arguments).stdin(Stdio::null()).env_remove("RUST_BACKTRACE");
    command
}

/// Verbs that make load.
const LOAD_VERBS: [&str; 7] =
    ["run", "capacity", "versus", "scale", "experiment", "calibrate", "demo"];

/// Runs the binary to its end. New load does not begin beside a test that measures [`alone`].
pub fn plimsoll(arguments: &[&str]) -> Ended {
    let waits =
        !MEASURES_ALONE.get() && arguments.first().is_some_and(|it| LOAD_VERBS.contains(it));
    let _alongside = waits.then(RunAlongside::start);
    let output = command(arguments).output().unwrap();
    Ended {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs of the tests of this process.
static RUNS: Mutex<Runs> = Mutex::new(Runs { alongside: 0, is_one_alone: false });
static A_RUN_ENDED: Condvar = Condvar::new();
thread_local! { static MEASURES_ALONE: Cell<bool> = const { Cell::new(false) }; }

struct Runs {
    alongside: u32,
    is_one_alone: bool,
}

fn runs_when(is_free: impl Fn(&Runs) -> bool) -> MutexGuard<'static, Runs> {
    let runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    A_RUN_ENDED.wait_while(runs, |runs| !is_free(runs)).unwrap_or_else(PoisonError::into_inner)
}

/// A run that waits for measurements which began, never for those that wait: it may need another
/// run of its own test to go on.
struct RunAlongside;

impl RunAlongside {
    fn start() -> Self {
        runs_when(|runs| !runs.is_one_alone).alongside += 1;
        Self
    }
}

impl Drop for RunAlongside {
    fn drop(&mut self) {
        RUNS.lock().unwrap_or_else(PoisonError::into_inner).alongside -= 1;
        A_RUN_ENDED.notify_all();
    }
}

/// While it lives, no other test of this process runs the program through [`plimsoll`].
#[must_use]
pub struct Alone(());

/// Waits for the runs of other tests: two measurements on one small machine would measure each
/// other. The caller's own runs are made by its thread.
pub fn alone() -> Alone {
    assert!(!MEASURES_ALONE.replace(true), "a measurement within a measurement");
    runs_when(|runs| !runs.is_one_alone && runs.alongside == 0).is_one_alone = true;
    Alone(())
}

impl Drop for Alone {
    fn drop(&mut self) {
        MEASURES_ALONE.set(false);
        RUNS.lock().unwrap_or_else(PoisonError::into_inner).is_one_alone = false;
        A_RUN_ENDED.notify_all();
    }
}

/// `plimsoll serve` on a free port; it ends with its standard input.
pub fn serve(verb: &str, flags: &[&str]) -> Command {
    let free = ["serve", verb, "--listen", "127.0.0.1:0", "--stop-with-stdin"];
    command(&[&free[..], flags].concat())
}

/// A server that a test started, killed when dropped.
pub struct Served {
    child: Option<Child>,
    out: BufReader<ChildStdout>,
    /// Where it listens.
    pub url: String,
}

impl Served {
    /// Our server on a free port.
    #[track_caller]
    pub fn with(verb: &str, flags: &[&str]) -> Self {
        Self::start(serve(verb, flags))
    }

    /// Starts a command that becomes a server, and waits until it prints where it listens.
    #[track_caller]
    pub fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let Some(url) = line.trim().strip_prefix("listening on ").map(str::to_owned) else {
            panic!("it said {line:?} and {:?}", wait_for(child));
        };
        Self { child: Some(child), out, url }
    }

    /// Address and port in its URL.
    pub fn address(&self) -> SocketAddr {
        let authority = self.url.split('/').nth(2).unwrap();
        authority.rsplit('@').next().unwrap().parse().unwrap()
    }

    /// The process.
    pub fn child(&self) -> &Child {
        self.child.as_ref().unwrap()
    }

    /// The content of its `/proc/PID/NAME`.
    pub fn proc(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.child().id())).unwrap()
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Lets it end by itself, as its standard input does.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        drop(self.child.as_mut().unwrap().stdin.take());
        self.ended()
    }

    /// Waits for an end that something else brought about.
    #[track_caller]
    pub fn ended(mut self) -> Ended {
        wait_for(self.child.take().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Its standard input ends with the handle; a killed one cannot wait for that.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A server in a thread of the test, stopped when dropped. Then it must have ended well.
#[cfg(feature = "servers")]
pub struct ServerThread {
    /// Stops it.
    pub stop: Stop,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
}

#[cfg(feature = "servers")]
impl ServerThread {
    /// Starts it.
    pub fn new(serve: impl FnOnce(&Stop) -> Result<(), ServerError> + Send + 'static) -> Self {
        let stop = Stop::new();
        let requested = stop.clone();
        Self { stop, thread: Some(std::thread::spawn(move || serve(&requested))) }
    }
}

#[cfg(feature = "servers")]
impl Drop for ServerThread {
    fn drop(&mut self) {
        self.stop.request();
        let served = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            served.unwrap().unwrap();
        }
    }
}

/// A child that is ended with its owner.
#[derive(Debug)]
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            signal(&self.0, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

/// Arguments of a run whose points take 0.3 s.
pub fn short<'a>(suite: &'a str, target: &'a str, out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["run", suite, target, "--out", out.to_str().unwrap()];
    arguments.extend(["--profile", "quick", "--progress", "none", "--workers", "1"]);
    arguments.extend(["--set", "profiles.quick.warm_up=50ms"]);
    arguments.extend(["--set", "profiles.quick.measure=300ms"]);
    arguments.extend(["--set", "profiles.quick.drain=300ms"]);
    arguments.extend(more);
    arguments
}

/// Copies a bundle, or any other directory.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let copied = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &copied),
            false => drop(std::fs::copy(entry.path(), copied).unwrap()),
        }
    }
}

/// `result.json` of a bundle.
pub fn result(bundle: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(bundle.join("result.json")).unwrap()).unwrap()
}

/// Names of the rules that made a run or its points invalid, or left a point out.
pub fn broken_rules(result: &Value) -> Vec<String> {
    let of = |node: &Value| -> Vec<String> {
        node["reasons"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|reason| reason["rule"].as_str().map(str::to_owned))
            .collect()
    };
    let mut rules = of(&result["verdict"]);
    for point in result["points"].as_array().into_iter().flatten() {
        rules.extend(of(point));
        let left_out = point["not_counted_because"]["rule"].as_str();
        rules.extend(left_out.map(str::to_owned));
    }
    rules
}

/// What a measurement shows, and how it differs from what it should show.
pub enum CheckOutcome {
    /// What it should show.
    Right,
    /// Something else, and how that differs.
    Wrong(String),
    /// Other programs used so much of this machine that the run reports it.
    Disturbed(String),
}

impl CheckOutcome {
    /// Of a load point and all that differs at it.
    pub fn from_point(point: &Value, differs: impl IntoIterator<Item = String>) -> Self {
        let differs: Vec<String> = differs.into_iter().collect();
        match (differs.is_empty(), is_disturbed(point)) {
            (true, _) => Self::Right,
            (false, true) => Self::Disturbed(differs.join("; ")),
            (false, false) => Self::Wrong(differs.join("; ")),
        }
    }
}

/// Other programs used so much of this machine that the load point reports it.
pub(crate) fn is_disturbed(point: &Value) -> bool {
    let mut warnings = point["warnings"].as_array().into_iter().flatten();
    let is_named =
        |rule: &Value| ["other_work", "stolen", "core_taken"].iter().any(|it| rule == it);
    point["limit"]["kind"] == "disturbed" || warnings.any(|warning| is_named(&warning["rule"]))
}

/// Measures [`alone`] until one measurement is right, `tries` times at most: a wrong program is wrong each
/// time, a machine that stands still now and then is not. Where other programs use the machine all
/// the time, the test is a skipped one.
#[track_caller]
pub fn one_is_right(tries: usize, mut measure: impl FnMut() -> CheckOutcome) {
    let _alone = alone();
    let (mut wrong, mut disturbed) = (Vec::new(), Vec::new());
    loop {
        match measure() {
            CheckOutcome::Right => return,
            CheckOutcome::Wrong(how) => wrong.push(how),
            CheckOutcome::Disturbed(how) => disturbed.push(how),
        }
        assert!(wrong.len() < tries, "{wrong:#?}; on a disturbed machine: {disturbed:#?}");
        if disturbed.len() == DISTURBED_MAX {
            return skip_always(&format!("other programs use this machine: {disturbed:?}"));
        }
    }
}

/// Finished load points of a bundle's journal.
pub fn points_finished(bundle: &Path) -> usize {
    let text = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap_or_default();
    text.lines().filter(|line| line.contains("\"event\":\"point_finished\"")).count()
}

/// Neither gone nor a zombie.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

/// Cores that a process may run on, as the kernel lists them.
pub fn cores_of(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    allowed.trim().to_owned()
}

/// Sends a signal to one process by its id.
pub fn kill(pid: u32, signal: &str) {
    let status = Command::new("kill").args(["-s", signal, &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

/// Waits until `done`, or gives up loudly.
#[track_caller]
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let started = now();
    while !done() {
        assert!(started.elapsed() < TIME_LIMIT, "still waiting until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for a child's end; kills it when it takes too long.
#[track_caller]
pub fn wait_for(child: Child) -> Ended {
    wait_at_most(TIME_LIMIT, child)
}

/// The same, for a child that may take this time.
#[track_caller]
pub fn wait_at_most(limit: Duration, mut child: Child) -> Ended {
    let started = now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > limit {
            child.kill().unwrap();
            panic!("the program did not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    Ended {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Sends a signal to a process this test started.
pub fn signal(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
}
