//! Agents through their launchers: how they are checked, sent the program, restricted by their
//! hosts, and watched meanwhile.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_testkit::peers::require_peer;
use plimsoll_testkit::program::{Ended, command, plimsoll, result, short, wait_for};
use plimsoll_testkit::slurm::Slurm;
use plimsoll_testkit::sshd::Sshd;
use serde_json::Value;
use tempfile::TempDir;

use crate::listening::Listening;

/// A folder for scripts between controller and agent.
struct ScratchDir(TempDir);

impl ScratchDir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let file = self.path(name);
        fs::write(&file, text).unwrap();
        file.display().to_string()
    }

    /// A value of `--agents`: a script that gets the command that starts the agent as `$@`.
    fn launcher(&self, script: &str) -> String {
        let file = self.write("launcher", &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        format!("exec:{file}")
    }

    /// A launcher whose agents are restricted by this file.
    fn allowing(&self, allowed: &str) -> String {
        let file = self.write("allowed.toml", allowed);
        self.launcher(&format!("exec \"$@\" --allow '{file}'"))
    }

    /// A launcher into a host with a cache of its own.
    fn other_host(&self) -> String {
        format!("exec:env XDG_CACHE_HOME={}", self.path("cache").display())
    }

    /// Programs in that cache.
    fn sent(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.path("cache/plimsoll")).unwrap();
        folders.map(|folder| folder.unwrap().path().join("plimsoll")).collect()
    }
}

fn check_agents(more: &[&str]) -> Ended {
    plimsoll(&[&["agents", "check", "--progress", "plain"], more].concat())
}

/// A run at 40 requests a second.
fn run(target: &str, bundle: &Path, more: &[&str]) -> Ended {
    let mut arguments = short("web-url", target, bundle, &["--rate", "40"]);
    // The last `--progress` would be one too many.
    let quiet = arguments.iter().position(|argument| *argument == "none").unwrap();
    arguments[quiet] = "plain";
    arguments.extend(more);
    plimsoll(&arguments)
}

#[test]
fn agents_are_tried_and_who_fails_hides_nobody() {
    let tried = check_agents(&["ssh://127.0.0.1:1,local", "exec:false", "k8s:no-such-ns/a=b"]);
    tried.check(3, &["failed: exec:false: false ended with status 1"]);
    tried.check(3, &["failed: k8s:no-such-ns/a=b: "]);
    tried.check(3, &["1 of 4 agents can be used, on 1 host"]);
    assert!(
        tried.out.starts_with("agent  host") && tried.out.contains("\nlocal  "),
        "{}",
        tried.out
    );
    for title in ["cores", "memory", "network", "open files", "ports < 1024", "clock within"] {
        assert!(tried.out.lines().next().unwrap().contains(title), "{title}: {}", tried.out);
    }
}

#[test]
fn what_was_found_of_agents_can_be_read_by_programs() {
    let tried = check_agents(&["local", "exec:false", "--json"]);
    assert_eq!(tried.code, Some(3), "{tried:?}");
    let all: Value = serde_json::from_str(&tried.out).unwrap();
    assert_eq!(all["format"], 1);
    let [local, failed] = &all["agents"].as_array().unwrap()[..] else { panic!("{all}") };
    assert_eq!((&local["agent"], &local["found"]["same_program"]), (&"local".into(), &true.into()));
    let bound = local["found"]["clock_bound_ns"].as_u64().unwrap();
    assert_eq!(local["found"]["round_trip_ns"].as_u64().unwrap(), 2 * bound);
    assert!(failed["found"].is_null() && failed["failed"].is_string(), "{failed}");
}

#[test]
fn the_program_is_sent_once_to_agents_of_one_launcher() {
    let scratch = ScratchDir::new();
    let agents = ["", &scratch.other_host()].join("[[agent]]\nat = '");
    let file = scratch.write("two.toml", &format!("{agents}'\n").repeat(2));
    let tried = check_agents(&[&file, "--deploy"]);
    tried.check(0, &["the program was sent to 1 host\n", "2 of 2 agents can be used"]);
    assert_eq!(scratch.sent().len(), 1);
    let again = check_agents(&[&file, "--deploy"]);
    again.check(0, &["2 of 2 agents can be used"]);
    assert!(!again.err.contains("was sent"), "{again:?}");
}

#[test]
fn a_host_that_cannot_take_the_program_is_named_and_a_run_may_begin_without_it() {
    let scratch = ScratchDir::new();
    scratch.write("cache", "a file");
    let agents = format!("local,{}", scratch.other_host());
    let tried = check_agents(&[&agents, "--deploy"]);
    tried.check(3, &[": --deploy: env ended with status", "1 of 2 agents can be used"]);
    let target = Listening::start();
    let bundle = scratch.path("bundle");
    let more = ["--agents", &agents, "--deploy", "--agents-min", "1"];
    let ran = run(&target.url, &bundle, &more);
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    ran.check(ran.code.unwrap(), &["XDG_CACHE_HOME", "--deploy: env ended with status"]);
    ran.check(ran.code.unwrap(), &["1 agent of 2 on 1 host, clocks within "]);
    assert_eq!(result(&bundle)["points"][0]["agents"].as_array().unwrap().len(), 1);
}

#[test]
fn another_program_than_was_sent_is_refused() {
    let scratch = ScratchDir::new();
    let other = scratch.path("other");
    // A program that runs as well, with other bytes.
    let grow = "cp \"$1\" \"$2\" && echo more >> \"$2\"";
    let own = command(&[]).get_program().to_owned();
    let mut copy = Command::new("sh");
    assert!(copy.args(["-c", grow, "grow"]).arg(own).arg(&other).status().unwrap().success());
    let (cache, other) = (scratch.path("cache"), other.display());
    let agents = scratch.launcher(&format!(
        "export XDG_CACHE_HOME='{}'\ntest \"$1\" = sh && exec \"$@\"\nexec '{other}' agent",
        cache.display()
    ));
    let tried = check_agents(&[&agents, "--deploy"]);
    tried.check(3, &["and --deploy has sent", "0 of 1 agent can be used"]);
    // Without the flag a message names it.
    check_agents(&[&agents]).check(0, &["another build of this version"]);
}

/// Agents of this sshd.
fn by_ssh(scratch: &ScratchDir, sshd: &Sshd, count: u32) -> String {
    let options = format!("options = ['-F', '{}']", sshd.client("user").display());
    let at = format!("[[agent]]\nat = '{}*{count}'\n{options}\n", sshd.url());
    scratch.write("ssh.toml", &at)
}

#[test]
fn through_ssh_the_program_is_missed_then_sent_and_makes_a_run() {
    let Some(sshd) = Sshd::start() else { return };
    let scratch = ScratchDir::new();
    let agents = by_ssh(&scratch, &sshd, 2);
    let missed = check_agents(&[&agents]);
    missed.check(3, &["status 127", "install it", "let --deploy send this one"]);
    let target = Listening::start();
    let bundle = scratch.path("bundle");
    let ran = run(&target.url, &bundle, &["--agents", &agents, "--deploy"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    ran.check(ran.code.unwrap(), &["was sent to 1 host\n", "2 agents on 1 host, clocks within "]);
    assert!(sshd.home().join(".cache/plimsoll").is_dir());
    assert_eq!(result(&bundle)["points"][0]["agents"].as_array().unwrap().len(), 2);
    assert!(target.requests().values().sum::<u64>() > 0);
}

#[test]
fn an_agent_that_a_key_starts_keeps_to_what_its_host_allows() {
    let Some(sshd) = Sshd::start() else { return };
    let scratch = ScratchDir::new();
    let allowed = scratch.write("allowed.toml", "targets = ['192.0.2.0/24:80']\n");
    let own = command(&[]).get_program().to_owned();
    let forced = format!("command=\"{} agent --allow {allowed}\",", own.display());
    let keys = sshd.home().with_file_name("authorized");
    let key = fs::read_to_string(&keys).unwrap();
    fs::write(&keys, forced + &key).unwrap();
    let agents = by_ssh(&scratch, &sshd, 1);
    check_agents(&[&agents]).check(0, &["1 of 1 agent can be used"]);
    check_agents(&[&agents, "--deploy"]).check(3, &["an agent answers where a shell should"]);
    let target = Listening::start();
    let ran = run(&target.url, &scratch.path("bundle"), &["--agents", &agents]);
    ran.check(3, &["the owner of this agent's host does not allow 127.0.0.1:"]);
}

#[test]
fn through_slurm_the_program_is_sent_too() {
    let Some(slurm) = Slurm::start(1) else { return };
    let scratch = ScratchDir::new();
    let mut check = command(&["agents", "check", "slurm:1", "--deploy", "--progress", "plain"]);
    check.env("SLURM_CONF", slurm.configuration()).env("XDG_CACHE_HOME", scratch.path("cache"));
    let child = check.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let tried = wait_for(child.spawn().unwrap());
    tried.check(0, &["was sent to 1 host\n", "1 of 1 agent can be used"]);
    assert_eq!(scratch.sent().len(), 1);
}

#[test]
fn a_target_that_its_host_does_not_allow_is_refused_by_the_agent() {
    let scratch = ScratchDir::new();
    let target = Listening::start();
    let agents = scratch.allowing("targets = ['127.0.0.1:9', '10.0.0.0/8:1-65535']");
    let ran = run(&target.url, &scratch.path("bundle"), &["--agents", &agents]);
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let who = format!("agent {agents} on {host}: {}", target.url);
    ran.check(3, &[&format!("{who}: the owner of this agent's host does not allow")]);
    ran.check(3, &["allowed are 127.0.0.1:9, 10.0.0.0/8:1-65535"]);
}

#[test]
fn one_target_of_two_that_is_not_allowed_is_refused_before_the_load() {
    let scratch = ScratchDir::new();
    let [first, second] = [(); 2].map(|()| Listening::start());
    let port = first.url.trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    let agents = scratch.allowing(&format!("targets = ['127.0.0.1:{port}']"));
    let more = [second.url.as_str(), "--agents", &agents];
    let ran = run(&first.url, &scratch.path("bundle"), &more);
    ran.check(3, &[&format!("{}: the owner of this agent's host does not allow", second.url)]);
    // The controller checks each once.
    assert!(first.requests().values().sum::<u64>() <= 2, "{:?}", first.requests());
}

#[test]
fn more_than_its_host_allows_is_refused_by_the_agent() {
    let scratch = ScratchDir::new();
    let target = Listening::start();
    for (allowed, part) in [
        ("max_ops_per_s = 30", "allows 30 ops/s, and 40 are asked for"),
        ("cores = 1", "allows a worker for each of 1 core(s), and 2 are asked for"),
    ] {
        let at = scratch.allowing(allowed);
        let file = scratch.write("agents.toml", &format!("[[agent]]\nat = '{at}'\nworkers = 2\n"));
        run(&target.url, &scratch.path(allowed), &["--agents", &file]).check(3, &[part]);
    }
}

#[test]
fn what_agents_print_without_end_is_shown_with_their_name_and_to_an_end() {
    let scratch = ScratchDir::new();
    let agents = scratch.launcher("seq -f 'noise %.0f' 5000 >&2\nexec \"$@\"");
    let tried = check_agents(&[&agents]);
    tried.check(0, &[&format!("agent {agents}: noise 1000\n"), "further lines are left out"]);
    assert_eq!(tried.err.matches(": noise ").count(), 1_000);
}

#[test]
fn a_line_of_an_agent_takes_the_place_of_the_live_line() {
    let Some(script) = require_peer("script") else { return };
    let scratch = ScratchDir::new();
    let slow = "for i in 1 2 3; do sleep 0.3; echo noise $i >&2; done\nexec \"$@\"";
    let agents = scratch.launcher(slow);
    let own = command(&[]).get_program().to_owned();
    let line = format!("'{}' agents check local '{agents}'", own.display());
    // With a terminal.
    let shown = Command::new(script).args(["-qec", &line, "/dev/null"]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("agents: 1 of 2 are there"), "{shown:?}");
    for number in 1..=3 {
        let noise = format!("agent {agents}: noise {number}\r\n");
        let (before, _) = shown.split_once(&noise).unwrap_or_else(|| panic!("{shown:?}"));
        assert!(before.ends_with('\n') || before.ends_with("\r\u{1b}[J"), "{shown:?}");
    }
}

#[test]
fn a_manifest_is_printed_for_kubectl() {
    let printed = plimsoll(&["agents", "manifest", "--replicas", "2", "--namespace", "bench"]);
    printed.check(0, &["completionMode: Indexed\n", "k8s:bench/job-name=plimsoll\n"]);
    let image = format!("image: \"plimsoll:{}\"\n", env!("CARGO_PKG_VERSION"));
    assert!(printed.out.contains(&image) && printed.err.is_empty(), "{printed:?}");
    plimsoll(&["agents", "manifest", "--replicas", "2", "--name", "A b"]).check(2, &["small"]);
    plimsoll(&["agents", "manifest", "--replicas", "0"]).check(2, &[]);
}
