//! Agents of a test: how they are started, their messages, and a run's report of them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use plimsoll_fleet::frame::Decoder;
use plimsoll_fleet::message::{FromAgent, PointReport};
use plimsoll_model::bundle::PackedSlice;
use plimsoll_testkit::namespaces::Namespaces;
use plimsoll_testkit::program::{command, is_alive, wait_for, wait_until};
use plimsoll_testkit::sshd::Sshd;
use serde_json::Value;
use tempfile::TempDir;

/// A folder for a bundle, and for scripts between a launcher and its agent.
pub struct RunDir(TempDir);

impl RunDir {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn bundle(&self) -> PathBuf {
        self.file("bundle")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file; its path.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        fs::write(self.file(name), text).unwrap();
        self.file(name).display().to_string()
    }

    /// `exec:` with a script that gets the arguments of the agent's command.
    pub fn by_script(&self, name: &str, script: &str) -> String {
        let path = self.write(name, format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        format!("exec:{path}")
    }

    /// An agent that writes its process id into the file of its name; `before` runs it.
    pub fn noted(&self, name: &str, before: &str) -> String {
        let at = self.0.path().display();
        self.by_script(name, &format!("echo $$ > {at}/{name}.pid\nexec {before} \"$@\""))
    }

    /// Its process, once it has started.
    #[track_caller]
    pub fn pid(&self, name: &str) -> u32 {
        let file = self.file(&format!("{name}.pid"));
        let read = || fs::read_to_string(&file).unwrap_or_default().trim().parse().ok();
        wait_until("the agent has started", || read().is_some());
        read().unwrap()
    }

    /// An agent whose messages are all recorded; `before` runs it.
    pub fn recorded(&self, name: &str, before: &str) -> String {
        let at = self.0.path().display();
        self.by_script(name, &format!("{before} \"$@\" | tee {at}/{name}.frames"))
    }

    /// Its reports of load points.
    pub fn recorded_points(&self, name: &str) -> Vec<RecordedPoint> {
        let mut frames = Decoder::default();
        frames.push(&fs::read(self.file(&format!("{name}.frames"))).unwrap());
        let (mut points, mut slices) = (Vec::new(), Vec::new());
        while let Some(message) = frames.next::<FromAgent>().unwrap() {
            match message {
                FromAgent::Slices(more) => slices.extend(more),
                FromAgent::Finished(report) => {
                    points.push(RecordedPoint {
                        report: *report,
                        slices: std::mem::take(&mut slices),
                    });
                }
                _ => {}
            }
        }
        frames.end().unwrap();
        points
    }
}

/// An agent's report of a load point.
pub struct RecordedPoint {
    pub report: PointReport,
    pub slices: Vec<PackedSlice>,
}

/// Flags for agents.
pub fn flags(agents: &[String]) -> Vec<&str> {
    agents.iter().flat_map(|at| ["--agents", at]).collect()
}

/// An agent in each namespace, as `--agents` has it.
pub fn by_exec(namespaces: &Namespaces) -> Vec<String> {
    namespaces.spokes().iter().map(|name| format!("exec:ip netns exec {name}")).collect()
}

/// The file of agents that are started over ssh, one for each sshd. Each writes its process id into
/// a file of the run directory: that of the first is `0.pid`.
pub fn by_ssh(run_dir: &RunDir, sshds: &[Sshd]) -> String {
    let program = command(&[]).get_program().to_str().unwrap().to_owned();
    let mut tables = String::new();
    for (number, sshd) in sshds.iter().enumerate() {
        let (url, client) = (sshd.url(), sshd.client("user"));
        let noted = run_dir.noted(&number.to_string(), &program);
        let noted = noted.trim_start_matches("exec:");
        let options = format!("[\"-F\", \"{}\"]", client.display());
        tables +=
            &format!("[[agent]]\nat = \"{url}\"\nprogram = \"{noted}\"\noptions = {options}\n");
    }
    run_dir.write("agents.toml", tables)
}

/// Starts the program in the hub.
pub fn start_in(namespaces: &Namespaces, arguments: &[&str]) -> Child {
    let mut run = namespaces.in_hub(&command(arguments));
    run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs it to its end.
#[track_caller]
pub fn run_in(namespaces: &Namespaces, arguments: &[&str]) {
    let ended = wait_for(start_in(namespaces, arguments));
    // A build with debug assertions measures nothing that is valid.
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
}

/// Records of finished load points.
pub fn finished(bundle: &Path) -> Vec<Value> {
    let of = |record: Value| (record["event"] == "point_finished").then_some(record);
    records(bundle).into_iter().filter_map(of).collect()
}

/// The journal.
pub fn records(bundle: &Path) -> Vec<Value> {
    let text = fs::read_to_string(bundle.join("journal.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Ops that each agent has done at a load point.
pub fn done(point: &Value) -> Vec<u64> {
    let agents = point["agents"].as_array().unwrap();
    agents.iter().map(|agent| agent["done"].as_u64().unwrap()).collect()
}

/// None of these processes is left.
#[track_caller]
pub fn wait_until_gone(pids: &[u32]) {
    wait_until("the agents have ended", || !pids.iter().any(|pid| is_alive(*pid)));
}
