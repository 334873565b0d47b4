//! Agents that die, stall or are no agents, and controllers that end: how the program handles them.

use std::path::Path;
use std::process::{Child, Stdio};

use plimsoll_fleet::frame::encode;
use plimsoll_fleet::message::{FromAgent, Greeting};
use plimsoll_testkit::fault_server::{Fault, FaultServer};
use plimsoll_testkit::namespaces::Namespaces;
use plimsoll_testkit::program::{
    broken_rules, command, kill, plimsoll, points_finished, result, short, signal, wait_for,
    wait_until,
};
use plimsoll_testkit::sshd::Sshd;
use rustix::process::Signal;

use super::access_log::AccessLog;
use super::agents::{RunDir, by_ssh, finished, flags, records, start_in, wait_until_gone};

const NAMES: [&str; 2] = ["one", "two"];
/// Long enough for a disturbance.
const POINT: [&str; 6] =
    ["--points", "300", "--set", "load.mode=open", "--set", "profiles.quick.measure=2s"];

/// A run by two agents, and the server that counts its requests.
struct Scene {
    run_dir: RunDir,
    server: FaultServer,
    run: Child,
}

impl Scene {
    /// Returns in the middle of the load point's window.
    #[track_caller]
    fn begin(more: &[&str]) -> Self {
        let (run_dir, server) = (RunDir::new(), FaultServer::with_fixed_body(100, |_| Fault::None));
        let agents = NAMES.map(|name| run_dir.noted(name, ""));
        let more = [&POINT[..], &flags(&agents), more].concat();
        let mut run = command(&short("web-url", &server.url(), &run_dir.bundle(), &more));
        let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the load is there", || server.requests() > 100);
        Self { run_dir, server, run }
    }

    fn pids(&self) -> [u32; 2] {
        NAMES.map(|name| self.run_dir.pid(name))
    }
}

/// The point was lost through the second agent and made again without it.
#[track_caller]
fn check_made_again(scene: Scene, reason: &str) {
    let pids = scene.pids();
    let name = format!("exec:{}", scene.run_dir.file("two").display());
    check_lost_once(scene.run, &scene.run_dir.bundle(), [&name, reason]);
    wait_until_gone(&pids);
}

/// Only the other agent has made the load point of this run.
#[track_caller]
fn check_lost_once(run: Child, bundle: &Path, [agent, reason]: [&str; 2]) {
    let ended = wait_for(run);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    for part in [agent, reason, "the load point is made again"] {
        assert!(ended.err.contains(part), "{part:?} is not in:\n{}", ended.err);
    }
    assert_eq!(lost(bundle), [agent]);
    let points = finished(bundle);
    let agents = points[0]["agents"].as_array().unwrap();
    assert_eq!((points.len(), agents.len()), (1, 1), "{points:?}");
    let result = result(bundle);
    assert_eq!(result["points"].as_array().unwrap().len(), 1);
    let warned = result["verdict"]["warnings"].as_array().unwrap().iter();
    let warning_rules = warned.filter_map(|warning| warning["rule"].as_str().map(str::to_owned));
    let rules: Vec<String> = warning_rules.chain(broken_rules(&result)).collect();
    assert!(rules.contains(&"agent_lost".to_owned()), "{rules:?}");
}

/// Agents that the journal calls lost.
fn lost(bundle: &Path) -> Vec<String> {
    let records = records(bundle).into_iter().filter(|record| record["event"] == "agent_lost");
    records.map(|record| record["agent"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_point_whose_agent_is_killed_is_made_again_by_those_that_are_left() {
    let scene = Scene::begin(&["--agents-min", "1"]);
    kill(scene.run_dir.pid("two"), "KILL");
    check_made_again(scene, "signal 9");
}

#[test]
fn a_point_whose_agent_stands_still_is_made_again_by_those_that_are_left() {
    let scene = Scene::begin(&["--agents-min", "1"]);
    kill(scene.run_dir.pid("two"), "STOP");
    check_made_again(scene, "nothing was heard of it for 3");
}

#[test]
fn a_point_whose_agent_is_cut_off_is_made_again_by_those_that_are_left() {
    let Some(namespaces) = Namespaces::start(2) else { return };
    let sshds = [0, 1].map(|spoke| Sshd::start_in(&namespaces, spoke));
    let [Some(first), Some(second)] = sshds else { return };
    let Some(nginx) = AccessLog::start_in(&namespaces) else { return };
    let run_dir = RunDir::new();
    let (bundle, cut_off, sshds) = (run_dir.bundle(), second.url(), [first, second]);
    let agents = by_ssh(&run_dir, &sshds);
    let more = [&POINT[..], &["--agents-min", "1", "--agents", &agents]].concat();
    let run = start_in(&namespaces, &short("web-url", &nginx.url, &bundle, &more));
    nginx.lines(100);
    namespaces.cut_off(1);
    check_lost_once(run, &bundle, [&cut_off, "nothing was heard of it for 3"]);
    // The disconnected agent gets no message either.
    wait_until_gone(&["0", "1"].map(|name| run_dir.pid(name)));
}

#[test]
fn a_run_that_has_lost_too_many_agents_ends_and_is_resumed() {
    let scene = Scene::begin(&["--agents-min", "2"]);
    let (bundle, pids) = (scene.run_dir.bundle(), scene.pids());
    kill(pids[1], "KILL");
    let ended = wait_for(scene.run);
    let name = scene.run_dir.file("two").display().to_string();
    ended.check(3, &[&name, "signal 9"]);
    assert_eq!(points_finished(&bundle), 0);
    wait_until_gone(&pids);
    let resumed = plimsoll(&["resume", bundle.to_str().unwrap(), "--progress", "none"]);
    assert!(matches!(resumed.code, Some(0 | 1)), "{resumed:?}");
    let points = finished(&bundle);
    assert_eq!((points.len(), points[0]["agents"].as_array().unwrap().len()), (1, 2));
    wait_until_gone(&NAMES.map(|name| scene.run_dir.pid(name)));
}

#[test]
fn ctrl_c_ends_the_agents_too() {
    let scene = Scene::begin(&[]);
    let pids = scene.pids();
    signal(&scene.run, Signal::INT);
    let ended = wait_for(scene.run);
    ended.check(4, &["no load point was finished"]);
    wait_until_gone(&pids);
}

#[test]
fn agents_of_a_controller_that_was_killed_end_by_themselves() {
    let mut scene = Scene::begin(&[]);
    let pids = scene.pids();
    signal(&scene.run, Signal::KILL);
    scene.run.wait().unwrap();
    wait_until_gone(&pids);
    let sent = scene.server.requests();
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(scene.server.requests(), sent, "load without an agent");
}

#[test]
fn agents_that_are_none_are_named_with_what_they_said_before_any_load() {
    let run_dir = RunDir::new();
    let greeting = Greeting { version: "0.0.1".to_owned(), ..Greeting::default() };
    let frame = encode(&FromAgent::Hello(Box::new(greeting))).unwrap();
    let frame = run_dir.write("greeting", frame);
    let chatty = "echo Welcome to this host\nexec \"$@\"";
    let of_another_version = format!("cat {frame}\nexec cat > /dev/null");
    let missing = "exec /no/such/plimsoll \"$@\"";
    for (script, message) in [
        (chatty, "expected a message of Plimsoll, got \"Welcome to this host"),
        (&of_another_version, "it runs Plimsoll 0.0.1, this is"),
        (missing, "let --deploy send this one"),
    ] {
        check_refused(&run_dir, script, message);
    }
}

/// No request is sent where one of two agents is no agent.
#[track_caller]
fn check_refused(run_dir: &RunDir, script: &str, message: &str) {
    let server = FaultServer::with_fixed_body(100, |_| Fault::None);
    let agents = [run_dir.noted("good", ""), run_dir.by_script("other", script)];
    let run = plimsoll(&short("web-url", &server.url(), &run_dir.bundle(), &flags(&agents)));
    run.check(3, &["1 of 2 agents", &agents[1], message]);
    wait_until_gone(&[run_dir.pid("good")]);
    assert_eq!((points_finished(&run_dir.bundle()), server.requests()), (0, 0));
}
