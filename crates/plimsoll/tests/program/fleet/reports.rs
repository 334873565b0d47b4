//! Four agents in network namespaces of their own, over `ip netns exec` and over a real sshd each,
//! against each kind of server: one report, and counts that others confirm.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use plimsoll_testkit::capture::Capture;
use plimsoll_testkit::namespaces::Namespaces;
use plimsoll_testkit::peers::require_peer;
use plimsoll_testkit::program::{result, short};
use plimsoll_testkit::sshd::Sshd;
use serde_json::{Value, json};

use super::access_log::AccessLog;
use super::agents::{RunDir, by_exec, by_ssh, done, finished, flags, records, run_in};

const AGENTS: u8 = 4;
/// All completed work counts, and a busy machine gets enough time.
const ALL_COUNTS: [&str; 6] = [
    "--set",
    "profiles.quick.warm_up=1ms",
    "--set",
    "profiles.quick.measure=1s",
    "--set",
    "profiles.quick.drain=60s",
];

/// SMB2 commands (MS-SMB2 2.2.1.2) that agents send under load only, and the ops that contain one
/// each.
const COMMANDS: [(u16, &[&str]); 4] =
    [(7, &["flush"]), (9, &["write"]), (10, &["lock", "unlock"]), (17, &["set_file", "rename"])];
/// The same of procedures of NFSv3 (RFC 1813 section 3.3).
const PROCEDURES: [(u32, &str); 10] = [
    (2, "setattr"),
    (4, "access"),
    (5, "readlink"),
    (7, "write"),
    (8, "create"),
    (12, "remove"),
    (16, "readdir"),
    (17, "readdirplus"),
    (18, "fsstat"),
    (21, "commit"),
];
/// With this each agent checks the marker of the file set before the load.
const READ: u32 = 6;

/// One report of four agents whose parts add up; the only load point.
#[track_caller]
fn check_report(bundle: &Path) -> Value {
    let result = result(bundle);
    let point = result["points"][0].clone();
    assert_eq!(point["errors"], json!({}), "{point}");
    let agents = point["agents"].as_array().unwrap();
    assert_eq!(agents.len(), usize::from(AGENTS), "{point}");
    let shares: f64 = agents.iter().map(|agent| agent["share_ratio"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{agents:?}");
    let records = finished(bundle);
    assert_eq!(records.len(), 1);
    let total = records[0]["totals"]["done_in_window"].as_u64().unwrap();
    assert_eq!(done(&records[0]).iter().sum::<u64>(), total, "{point}");
    let disclosed = fs::read_to_string(bundle.join("disclosure.json")).unwrap();
    let disclosed: Value = serde_json::from_str(&disclosed).unwrap();
    // Network namespaces of one host.
    assert_eq!(disclosed["agent_hosts"][0]["agents"].as_array().unwrap().len(), agents.len());
    let report = fs::read_to_string(bundle.join("report.html")).unwrap().replace("&#x2f;", "/");
    for agent in agents {
        let name = agent["name"].as_str().unwrap();
        assert!(report.contains(name), "{name} is not in the report");
    }
    point
}

fn count(point: &Value, op: &str) -> u64 {
    point["ops"][op]["count"].as_u64().unwrap_or(0)
}

/// Port of the server that the run has started.
fn server_port(bundle: &Path) -> u16 {
    let started = |record: &Value| record["event"] == "point_started";
    let record = records(bundle).into_iter().find(started).unwrap();
    let address = record["assignment"]["endpoints"][0]["address"].as_str().unwrap();
    address.parse::<SocketAddr>().unwrap().port()
}

#[test]
fn nginx_has_a_request_in_its_log_for_each_op_of_each_agent() {
    let Some(namespaces) = Namespaces::start(AGENTS) else { return };
    let Some(nginx) = AccessLog::start_in(&namespaces) else { return };
    let run_dir = RunDir::new();
    let (bundle, agents) = (run_dir.bundle(), by_exec(&namespaces));
    let run_of = ["run", "web-url", &nginx.url, "--out", bundle.to_str().unwrap()];
    let more = ["--progress", "none", "--workers", "1", "-n", "400"];
    run_in(&namespaces, &[&run_of[..], &more, &flags(&agents)].concat());
    check_report(&bundle);
    let record = &finished(&bundle)[0];
    let log = nginx.lines(400);
    let from = |agent| log.iter().filter(|line| line.from == namespaces.address(agent)).count();
    let logged: Vec<u64> = (0..usize::from(AGENTS)).map(|agent| from(agent) as u64).collect();
    assert_eq!(logged, done(record));
    assert_eq!(logged.iter().sum::<u64>(), 400);
    let by_controller = log.iter().filter(|line| line.from == namespaces.hub_address()).count();
    assert_eq!((by_controller, log.len()), (1, 401), "the look before load");
}

#[test]
fn an_nginx_of_the_run_listens_where_agents_over_ssh_reach_it() {
    if require_peer("nginx").is_some() {
        run_by_ssh("web-static", "managed:nginx", &["--points", "200"]);
    }
}

#[test]
fn a_server_of_transactions_serves_agents_over_ssh() {
    let small = ["--points", "8", "--set", "workload.segment_mib=1"];
    run_by_ssh("transactions", "builtin:", &small);
}

#[track_caller]
fn run_by_ssh(suite: &str, target: &str, more: &[&str]) {
    let Some(namespaces) = Namespaces::start(AGENTS) else { return };
    let Some(sshds) = sshds(&namespaces) else { return };
    let run_dir = RunDir::new();
    let (bundle, agents) = (run_dir.bundle(), by_ssh(&run_dir, &sshds));
    let listen_on = namespaces.hub_address().to_string();
    let here = ["--listen-on", &listen_on, "--agents", &agents];
    run_in(&namespaces, &short(suite, target, &bundle, &[&here[..], &ALL_COUNTS, more].concat()));
    let point = check_report(&bundle);
    assert!(point["achieved_ops_per_s"].as_f64().unwrap() > 0.0, "{point}");
}

fn sshds(namespaces: &Namespaces) -> Option<Vec<Sshd>> {
    (0..usize::from(AGENTS)).map(|agent| Sshd::start_in(namespaces, agent)).collect()
}

#[test]
fn tshark_counts_the_commands_that_agents_over_ssh_send_to_samba() {
    if require_peer("smbd").is_none() {
        return;
    }
    let Some(namespaces) = Namespaces::start(AGENTS) else { return };
    let Some(sshds) = sshds(&namespaces) else { return };
    let Some(capture) = Capture::start_in(&namespaces) else { return };
    let run_dir = RunDir::new();
    let (bundle, agents) = (run_dir.bundle(), by_ssh(&run_dir, &sshds));
    let listen_on = namespaces.hub_address().to_string();
    let here = ["--listen-on", &listen_on, "--agents", &agents, "--points", "4"];
    let small = ["--set", "workload.workspace_mib=1", "--set", "load.start_delay=0s"];
    // Longer than a busy disk keeps the server from its first answer: shares are of ops in it.
    let set = ["--set", "profiles.quick.workload_scale=1", "--set", "profiles.quick.measure=4s"];
    let more = [&here[..], &ALL_COUNTS, &small, &set].concat();
    run_in(&namespaces, &short("disk-mix", "managed:samba", &bundle, &more));
    let captured = capture.of_port(server_port(&bundle)).finish_smb();
    let point = check_report(&bundle);
    assert_eq!(captured.dropped, 0, "the capture lost packets");
    for (command, ops) in COMMANDS {
        let counted: u64 = ops.iter().map(|op| count(&point, op)).sum();
        assert_eq!(
            captured.count(command),
            counted,
            "command {command}, of {ops:?}: wire, counted"
        );
    }
    assert!(captured.count(9) > 0, "{captured:?}");
}

#[test]
fn tshark_counts_the_calls_that_agents_send_to_ganesha() {
    if require_peer("ganesha.nfsd").is_none() || require_peer("rpcbind").is_none() {
        return;
    }
    let Some(namespaces) = Namespaces::start(AGENTS) else { return };
    let Some(capture) = Capture::start_in(&namespaces) else { return };
    let run_dir = RunDir::new();
    let (bundle, agents) = (run_dir.bundle(), by_exec(&namespaces));
    let listen_on = namespaces.hub_address().to_string();
    let here = ["--listen-on", &listen_on, "--points", "50"];
    let small = ["--set", "workload.mib_per_op_per_s=0.04"];
    // Longer than a busy disk keeps the server from its first answer: shares are of ops in it.
    let set = ["--set", "profiles.quick.workload_scale=1", "--set", "profiles.quick.measure=4s"];
    let more = [&here[..], &flags(&agents), &ALL_COUNTS, &small, &set].concat();
    run_in(&namespaces, &short("nfs-v3", "managed:ganesha", &bundle, &more));
    let captured = capture.of_port(server_port(&bundle)).finish();
    let point = check_report(&bundle);
    assert_eq!(captured.dropped, 0, "the capture lost packets");
    let before_load = u64::from(AGENTS);
    let counts = PROCEDURES.map(|(procedure, op)| (op, captured.nfs(3, procedure)));
    for (op, on_the_wire) in
        [&counts[..], &[("read", captured.nfs(3, READ) - before_load)]].concat()
    {
        // Ops due in the millisecond of warm-up are on the wire and not in the window.
        let counted = count(&point, op);
        let apart = on_the_wire.abs_diff(counted);
        assert!(apart <= 4, "{op}: {counted} counted, {on_the_wire} on the wire");
    }
    assert!(captured.nfs(3, READ) > before_load, "{captured:?}");
}
