//! Agents' processes through real launchers: bytes reach an agent and come back unchanged, and no
//! agent or host stalls the controller or leaves anything behind.
//!
//! A shell script stands in for the agent.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plimsoll_fleet::launcher::child::{ChildEvent, NotSent, end_all};
use plimsoll_fleet::launcher::command::LaunchCommand;
use plimsoll_fleet::launcher::deploy::{Parcel, Patience, deploy};
use plimsoll_fleet::launcher::explain::explain;
use plimsoll_fleet::launcher::gate::StartGate;
use plimsoll_fleet::launcher::spec::AgentSpec;
use plimsoll_testkit::program::{is_alive, kill, wait_until};
use plimsoll_testkit::skips::skip_always;
use plimsoll_testkit::slurm::Slurm;
use plimsoll_testkit::sshd::Sshd;

use super::support::{ScriptFolder, Talk, specs};

/// An agent that answers with what it gets.
const ECHO: &str = "exec cat";

/// Agents of this sshd, as the user whose key it accepts.
fn by_ssh(sshd: &Sshd, key: &str, folder: &ScriptFolder, script: &str) -> AgentSpec {
    let mut spec = specs(&sshd.url()).remove(0);
    spec.settings.options = vec!["-F".to_owned(), sshd.client(key).display().to_string()];
    spec.settings.program = Some(folder.stand_in(script));
    spec
}

fn by_exec(folder: &ScriptFolder, script: &str) -> AgentSpec {
    let mut spec = specs("exec:env A=1").remove(0);
    spec.settings.program = Some(folder.stand_in(script));
    spec
}

#[test]
fn every_byte_comes_back_from_a_command() {
    let folder = ScriptFolder::new();
    let mut talk = Talk::start(&by_exec(&folder, ECHO));
    talk.check_echo(2_000);
    talk.process.close();
    let (_, end) = talk.end();
    assert!(end.status.success(), "{end:?}");
}

#[test]
fn an_agent_of_this_host_is_told_that_it_is_one() {
    let folder = ScriptFolder::new();
    let mut spec = specs("local").remove(0);
    spec.settings.program = Some(folder.stand_in("echo \"$# $1 ${PLIMSOLL_TEST_ROOT-none}\""));
    let mut talk = Talk::start(&spec);
    assert_eq!(talk.read(6 + 1 + 5), b"1 agent none");
}

#[test]
fn every_byte_comes_back_through_ssh() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = ScriptFolder::new();
    let mut talk = Talk::start(&by_ssh(&sshd, "user", &folder, ECHO));
    talk.check_echo(2_000);
    talk.process.close();
    let (_, end) = talk.end();
    assert!(end.status.success(), "{end:?}");
}

#[test]
fn what_an_agent_says_through_ssh_is_shown_and_its_status_passed_on() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = ScriptFolder::new();
    let (lines, end) =
        Talk::start(&by_ssh(&sshd, "user", &folder, "echo 'no \\033[1m' >&2; exit 7")).end();
    assert_eq!(end.status.code(), Some(7));
    assert!(lines.last().unwrap().starts_with("no "), "{lines:?}");
    assert!(!lines.concat().contains('\u{1b}'), "{lines:?}");
}

#[test]
fn an_agent_behind_ssh_ends_with_its_process() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = ScriptFolder::new();
    let mut talk = Talk::start(&by_ssh(&sshd, "user", &folder, "echo $$; exec cat"));
    let agent = talk.read_pid();
    assert!(is_alive(agent));
    talk.process.end();
    wait_until("the agent has ended", || !is_alive(agent));
}

#[test]
fn what_a_start_up_file_prints_comes_before_the_first_byte() {
    let Some(sshd) = Sshd::start() else { return };
    if !login_shell_of_root().ends_with("/bash") {
        return skip_always("root's shell is not bash");
    }
    fs::write(sshd.home().join(".bashrc"), "echo Welcome\n").unwrap();
    let folder = ScriptFolder::new();
    let mut talk = Talk::start(&by_ssh(&sshd, "user", &folder, "printf hello; exec cat"));
    assert_eq!(talk.read(13), b"Welcome\nhello");
}

fn login_shell_of_root() -> String {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let root = users.lines().find(|line| line.starts_with("root:")).unwrap();
    root.rsplit(':').next().unwrap().to_owned()
}

#[test]
fn an_ssh_that_starts_no_agent_says_why_and_what_to_do() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = ScriptFolder::new();
    let mut missing = by_ssh(&sshd, "user", &folder, ECHO);
    missing.settings.program = Some("/no such/plimsoll".to_owned());
    let refused = by_ssh(&sshd, "wrong", &folder, ECHO);
    let mut nowhere = by_ssh(&sshd, "user", &folder, ECHO);
    nowhere.launcher = specs("ssh://127.0.0.1:1").remove(0).launcher;
    for (spec, status, part) in [
        (missing, 127, "let --deploy send this one"),
        (refused, 255, "ssh-copy-id"),
        (nowhere, 255, "no sshd listens there"),
    ] {
        let (_, end) = Talk::start(&spec).end();
        assert_eq!(end.status.code(), Some(status), "{end:?}");
        let text = explain(&spec.launcher, &end);
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn twenty_agents_of_one_host_start_without_being_turned_away() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = ScriptFolder::new();
    let agents = vec![by_ssh(&sshd, "user", &folder, "printf hello; exec cat"); 20];
    let mut gate = StartGate::new(&agents);
    let mut talks: Vec<(usize, Talk)> = Vec::new();
    let mut greeted = Vec::new();
    while greeted.len() < agents.len() {
        let now = gate.start();
        assert!(now.len() <= 8 && (!now.is_empty() || !talks.is_empty()));
        talks.extend(now.into_iter().map(|index| (index, Talk::start(&agents[index]))));
        let (index, mut talk) = talks.remove(0);
        assert_eq!(talk.read(5), b"hello");
        gate.settle(index);
        greeted.push(talk.process);
    }
    end_all(&mut greeted);
}

#[test]
fn a_program_is_sent_through_ssh_and_started() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = ScriptFolder::new();
    let mut spec = by_ssh(&sshd, "user", &folder, ECHO);
    // Larger than all pipes between here and there.
    let text = format!(
        "#!/bin/sh\ntest \"$1\" = agent && exec cat\necho plimsoll 1.2.3\nexit\n{}",
        "#".repeat(3 << 20)
    );
    let own = folder.path().join("own");
    fs::write(&own, text).unwrap();
    let parcel = Parcel::read(&own, "1.2.3").unwrap();
    fs::write(sshd.home().join(".bashrc"), "echo Welcome\n").unwrap();
    let patience = Patience { answer: Duration::from_secs(60), stop: &AtomicBool::new(false) };
    let deployed = deploy(&spec, &parcel, patience).unwrap();
    fs::remove_file(sshd.home().join(".bashrc")).unwrap();
    assert!(deployed.was_sent);
    let cache = sshd.home().join(".cache/plimsoll");
    assert!(deployed.program.starts_with(cache.to_str().unwrap()), "{deployed:?}");
    assert!(!deploy(&spec, &parcel, patience).unwrap().was_sent);
    spec.settings.program = Some(deployed.program);
    Talk::start(&spec).check_echo(10);
}

#[test]
fn a_child_that_ignores_everything_is_killed_and_leaves_no_zombie() {
    let folder = ScriptFolder::new();
    let script = "trap '' TERM; echo $$; while :; do sleep 0.1; done";
    let mut talk = Talk::start(&by_exec(&folder, script));
    let child = talk.read_pid();
    talk.process.end();
    assert!(!fs::exists(format!("/proc/{child}")).unwrap());
}

#[test]
fn a_stopped_child_is_ended_too() {
    let folder = ScriptFolder::new();
    let mut talk = Talk::start(&by_exec(&folder, "echo $$; exec cat"));
    let child = talk.read_pid();
    kill(child, "STOP");
    drop(talk);
    assert!(!fs::exists(format!("/proc/{child}")).unwrap());
}

#[test]
fn a_child_whose_events_nobody_takes_is_ended_too() {
    let folder = ScriptFolder::new();
    let mut talk = Talk::start(&by_exec(&folder, "echo $$; exec yes"));
    let child = talk.read_pid();
    // Its reader waits for room by now, or will.
    talk.process.end();
    assert!(!fs::exists(format!("/proc/{child}")).unwrap());
}

#[test]
fn a_child_that_dies_says_what_it_said_last() {
    let folder = ScriptFolder::new();
    let spec =
        by_exec(&folder, "for i in 1 2 3 4 5 6 7 8 9; do echo line $i >&2; done; kill -9 $$");
    let (lines, end) = Talk::start(&spec).end();
    assert_eq!(lines.len(), 9);
    let text = explain(&spec.launcher, &end);
    assert!(text.starts_with("env ended with signal 9: line 2 / line 3"), "{text}");
}

#[test]
fn a_flood_on_standard_error_delays_no_byte_and_its_source_is_not_waited_for() {
    let folder = ScriptFolder::new();
    let mut talk = Talk::start(&by_exec(&folder, "yes flood >&2 & echo $!; cat"));
    let heir = talk.read_pid();
    talk.check_echo(100);
    talk.process.close();
    let (lines, end) = talk.end();
    assert!(end.status.success(), "{end:?}");
    assert_eq!(lines.len(), 1_001);
    wait_until("what inherited its pipes has ended", || !is_alive(heir));
}

#[test]
fn a_child_that_reads_nothing_stalls_nobody() {
    let folder = ScriptFolder::new();
    let mut talk = Talk::start(&by_exec(&folder, "echo $$; exec sleep 1000"));
    let child = talk.read_pid();
    let frame: Arc<[u8]> = vec![0; 1 << 20].into();
    let sent = (0..1_000).map(|_| talk.process.send(Arc::clone(&frame)));
    let refused = sent.take_while(Result::is_ok).count();
    assert!((64..=66).contains(&refused), "{refused}");
    assert_eq!(talk.process.send(frame), Err(NotSent::Stalled));
    talk.process.end();
    assert!(!fs::exists(format!("/proc/{child}")).unwrap());
    assert_eq!(talk.process.send(Arc::from([1].as_slice())), Err(NotSent::Closed));
}

#[test]
fn what_was_sent_is_written_before_the_input_is_closed() {
    let folder = ScriptFolder::new();
    let mut talk = Talk::start(&by_exec(&folder, "sleep 0.2; wc -c"));
    let frame: Arc<[u8]> = vec![0; 1 << 20].into();
    for _ in 0..8 {
        talk.process.send(Arc::clone(&frame)).unwrap();
    }
    talk.process.close();
    assert_eq!(talk.read(7), b"8388608");
}

#[test]
fn a_launcher_that_is_not_installed_is_named() {
    let spec = specs("exec:no-such-launcher x").remove(0);
    let command = LaunchCommand::agent(&spec, "/own".as_ref());
    let error = Talk::try_start(&command).err().unwrap().to_string();
    assert!(error.contains("cannot run no-such-launcher"), "{error}");
}

/// One cluster for all: it takes a second to start, and as long to free a processor.
#[test]
fn agents_of_slurm() {
    let Some(slurm) = Slurm::start(1) else { return };
    let folder = ScriptFolder::new();
    let by_slurm = |script: &str, options: &[&str]| {
        let mut spec = specs("slurm:1").remove(0);
        spec.settings.program = Some(folder.stand_in(script));
        spec.settings.options = options.iter().map(|option| (*option).to_owned()).collect();
        let mut command = LaunchCommand::agent(&spec, "/own".as_ref());
        command.environment.push(("SLURM_CONF".into(), slurm.configuration().into()));
        (spec, command)
    };
    // Every byte comes back.
    let (_, command) = by_slurm(ECHO, &[]);
    let mut talk = Talk::try_start(&command).unwrap();
    talk.check_echo(2_000);
    // No processor is free.
    let (spec, command) = by_slurm(ECHO, &["--immediate=1"]);
    let (_, end) = Talk::try_start(&command).unwrap().end();
    let text = explain(&spec.launcher, &end);
    assert!(text.contains("no processor is free"), "{text}");
    talk.process.close();
    let (_, end) = talk.end();
    assert!(end.status.success(), "{end:?}");
    // A task that ignores the end of its input ends with its srun.
    slurm.wait_until_idle();
    let (_, command) = by_slurm("echo $$; exec sleep 1000", &[]);
    let mut talk = Talk::try_start(&command).unwrap();
    let task = talk.read_pid();
    talk.process.end();
    wait_until("the task has ended", || !is_alive(task));
    // The program is missing.
    slurm.wait_until_idle();
    let (mut spec, _) = by_slurm(ECHO, &[]);
    spec.settings.program = Some("/no/such/plimsoll".to_owned());
    let mut command = LaunchCommand::agent(&spec, "/own".as_ref());
    command.environment.push(("SLURM_CONF".into(), slurm.configuration().into()));
    let (_, end) = Talk::try_start(&command).unwrap().end();
    let text = explain(&spec.launcher, &end);
    assert!(text.contains("let --deploy send this one"), "{text}");
}

#[test]
fn the_shell_of_a_network_namespace_is_a_launcher() {
    let Some(ip) = plimsoll_testkit::peers::require_peer("ip") else { return };
    if plimsoll_testkit::peers::require_root("a network namespace").is_none() {
        return;
    }
    let name = format!("plimsoll-launch-{}", std::process::id());
    let netns = |verb: &str| Command::new(&ip).args(["netns", verb, &name]).status().unwrap();
    if !netns("add").success() {
        return skip_always("no network namespace can be made");
    }
    let folder = ScriptFolder::new();
    let mut spec = specs(&format!("exec:ip netns exec {name}")).remove(0);
    spec.settings.program = Some(folder.stand_in(ECHO));
    let mut talk = Talk::start(&spec);
    talk.check_echo(100);
    talk.process.end();
    assert!(netns("delete").success());
}

#[test]
fn an_end_follows_all_that_was_printed() {
    let folder = ScriptFolder::new();
    let talk = Talk::start(&by_exec(&folder, "head -c 300000 /dev/zero; echo last >&2"));
    let (mut bytes, mut lines) = (0, Vec::new());
    loop {
        match talk.event() {
            ChildEvent::Bytes(more) => bytes += more.len(),
            ChildEvent::Line(line) => lines.push(line),
            ChildEvent::Ended(_) => break,
        }
    }
    assert_eq!((bytes, lines), (300_000, vec!["last".to_owned()]));
}
