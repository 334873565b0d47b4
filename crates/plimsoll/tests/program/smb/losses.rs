//! smbd killed in the middle of the mix: a process of one client, then all of them.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use plimsoll_servers::{Login, ServerProcess};
use plimsoll_smb::server::samba::SambaRequest;
use plimsoll_testkit::lossy_proxy::CutProxy;
use plimsoll_testkit::smb_peers::{samba, samba_as};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::runs::{
    brief, check_as_expected, check_ended, command_of, gist, ops_done, reasons, warnings,
};
use plimsoll_testkit::program::{Ended, command, points_finished, result, wait_for, wait_until};

/// A point long enough for its fault, however busy the machine.
const LONG: [&str; 2] = ["--set", "profiles.quick.measure=6s"];

/// Whether a point's clients have started.
fn point_has_begun(bundle: &Path) -> bool {
    std::fs::read_to_string(bundle.join("journal.jsonl"))
        .unwrap_or_default()
        .contains("point_started")
}

/// Starts a run of one long point, injects `fault` in the middle of it, and waits.
#[track_caller]
pub fn in_mid_point(
    server: &ServerProcess,
    clients: &str,
    more: &[&str],
    fault: impl FnOnce(),
) -> Value {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let flags = [&["--points", clients], &LONG[..], more].concat();
    let url = server.url_with_password();
    let child =
        command(&brief("disk-mix", &url, &bundle, &flags)).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the point runs", || point_has_begun(&bundle));
    wait_until_in_mid_mix(server, clients.parse().unwrap());
    fault();
    let ended = wait_for(child);
    check_ended(&ended);
    assert_eq!(points_finished(&bundle), 1);
    result(&bundle)["points"][0].clone()
}

/// All clients are served, and the warm-up is over.
#[track_caller]
fn wait_until_in_mid_mix(server: &ServerProcess, clients: usize) {
    wait_until("all clients are served", || serving(server).len() == clients);
    std::thread::sleep(Duration::from_millis(800));
}

/// The processes of a server that hold a connection, by their ids.
fn serving(server: &ServerProcess) -> Vec<u32> {
    let sockets = server_sockets(server.address.port());
    let holds_one = |pid: &u32| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let links = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links.filter_map(|to| to.to_str().map(str::to_owned)).any(|to| sockets.contains(&to))
    };
    let all = server.pids().unwrap();
    all.into_iter().filter(|pid| *pid != server.pid()).filter(holds_one).collect()
}

/// The established connections on a local port, as `/proc/PID/fd` names them (proc(5)).
fn server_sockets(port: u16) -> HashSet<String> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let local = format!(":{port:04X}");
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_ours = fields.get(1)?.ends_with(&local) && *fields.get(3)? == "01";
        is_ours.then(|| format!("socket:[{}]", fields[9]))
    };
    table.lines().filter_map(socket).collect()
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).unwrap();
    // One that has ended by itself is as good.
    let _ = kill_process(pid, Signal::KILL);
}

#[test]
fn one_client_whose_smbd_is_killed_leaves_and_the_point_goes_on() {
    let Some(server) = samba() else { return };
    let point = in_mid_point(&server, "3", &[], || kill(serving(&server)[0]));
    assert_eq!(point["clients_requested"], 3, "{}", gist(&point));
    assert_eq!(point["clients_participating"], 2, "{}", gist(&point));
    let lost = warnings(&point).into_iter().find(|(rule, _)| rule == "clients_lost");
    let (_, text) = lost.unwrap_or_else(|| panic!("{}", gist(&point)));
    assert!(text.contains("2 of 3 clients took part"), "{text}");
    assert!(!reasons(&point).iter().any(|(rule, _)| rule == "ended_early"), "{}", gist(&point));
    assert!(ops_done(std::slice::from_ref(&point)) > 0, "{}", gist(&point));
    assert_eq!(point["unexpected"], serde_json::json!([]), "{}", gist(&point));
}

#[test]
fn the_first_lost_client_ends_the_point_where_the_suite_says_abort() {
    let Some(server) = samba() else { return };
    let more = ["--set", "load.on_client_failure=abort", "--set", "profiles.quick.measure=50s"];
    let point = in_mid_point(&server, "3", &more, || kill(serving(&server)[0]));
    assert_eq!(point["valid"], false, "{}", gist(&point));
    let early = reasons(&point).into_iter().find(|(rule, _)| rule == "ended_early");
    let (_, text) = early.unwrap_or_else(|| panic!("{}", gist(&point)));
    assert!(text.contains("could go no further"), "{text}");
    assert!(point["seconds"].as_f64().unwrap() < 50.0, "{}", gist(&point));
}

/// A Samba with this user, where the machine has one.
fn samba_of(login: &Login) -> Option<ServerProcess> {
    samba_as(&SambaRequest { login: Some(login.clone()), ..SambaRequest::default() })
}

/// Runs to the end of the program, with the password.
fn run_as(login: &Login, arguments: &[&str]) -> Ended {
    let mut command = command_of(login, arguments);
    wait_for(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

#[test]
fn a_server_that_is_killed_in_mid_mix_ends_the_run_which_goes_on_when_it_is_back() {
    let login = Login::with_new_password("ann").unwrap();
    let Some(first) = samba_of(&login) else { return };
    let mut proxy = CutProxy::start(first.address);
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let url = format!("smb://ann@{}/share", proxy.address());
    let flags = [&["--points", "2,3"], &LONG[..], &["--set", "profiles.quick.measure=40s"]];
    let flags = flags.concat();
    let child = command_of(&login, &brief("disk-mix", &url, &bundle, &flags))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the point runs", || point_has_begun(&bundle));
    wait_until_in_mid_mix(&first, 2);
    for pid in first.pids().unwrap() {
        kill(pid);
    }
    wait_until("the point ends", || points_finished(&bundle) == 1);
    // At the second point no server answers.
    let advice = format!("plimsoll resume {}", bundle.display());
    wait_for(child).check(3, &["cannot log on", &advice]);
    check_no_client_left(&result(&bundle)["points"][0]);
    resume_elsewhere(&login, &mut proxy, &bundle);
}

#[track_caller]
fn check_no_client_left(point: &Value) {
    assert_eq!(point["valid"], false, "{}", gist(point));
    assert_eq!(point["clients_participating"], 0, "{}", gist(point));
    let early = reasons(point).into_iter().find(|(rule, _)| rule == "ended_early");
    let (_, text) = early.unwrap_or_else(|| panic!("{}", gist(point)));
    assert!(text.contains("no client is left"), "{text}");
    assert!(point["seconds"].as_f64().unwrap() < 40.0, "{}", gist(point));
}

/// Replaces the first server by another, without any of its state.
#[track_caller]
fn resume_elsewhere(login: &Login, proxy: &mut CutProxy, bundle: &Path) {
    let away = run_as(login, &["resume", bundle.to_str().unwrap(), "--progress", "none"]);
    away.check(3, &["cannot log on"]);
    let second = samba_of(login).unwrap();
    let address: SocketAddr = second.address;
    proxy.go_down();
    proxy.come_back_at(address);
    // The rest of the run is shorter than its suite says; only a test can do that.
    let suite = bundle.join("suite.toml");
    let shorter = std::fs::read_to_string(&suite).unwrap().replace("\"40s\"", "\"1s\"");
    std::fs::write(&suite, shorter).unwrap();
    check_ended(&run_as(login, &["resume", bundle.to_str().unwrap(), "--progress", "none"]));
    let result = result(bundle);
    assert_eq!(result["points"].as_array().unwrap().len(), 2);
    check_no_client_left(&result["points"][0]);
    check_as_expected(&result["points"][1]);
    assert_eq!(result["points"][1]["clients_participating"], 3);
}
