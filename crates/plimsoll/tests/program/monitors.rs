//! Monitors of other hosts: `--monitor`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_testkit::peers::require_peer;
use serde_json::Value;
use tempfile::TempDir;

use plimsoll_testkit::program::{
    CheckOutcome, Ended, Running, alone, command, one_is_right, plimsoll, result, short, wait_for,
    wait_until,
};
use plimsoll_testkit::sshd::Sshd;

/// Points long enough for whole samples.
const LONG: [&str; 4] =
    ["--set", "profiles.quick.measure=3s", "--set", "profiles.quick.warm_up=500ms"];

/// A directory with a program `ssh` of this text.
fn ssh_of(text: &str) -> TempDir {
    let directory = TempDir::new().unwrap();
    program_in(directory.path(), "ssh", text);
    directory
}

/// A program of this text.
pub(super) fn program_in(directory: &Path, name: &str, text: &str) {
    let program = directory.join(name);
    fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The programs of the directory come before all others.
pub(super) fn with_programs(directory: &Path, arguments: &[&str]) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = command(arguments);
    command.env("PATH", format!("{}:{path}", directory.display()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(bundle: &Path, ssh: &Path, more: &[&str]) -> Ended {
    let arguments = short("web-static", "builtin:", bundle, more);
    wait_for(with_programs(ssh, &arguments).spawn().unwrap())
}

/// Mean of a resource of a source, or of this host, at a point.
fn mean(result: &Value, point: usize, name: &str, source: Option<&str>) -> Option<f64> {
    let resources = result["points"][point]["resources"].as_array()?;
    let matched = resources
        .iter()
        .find(|resource| resource["name"] == name && resource["source"].as_str() == source);
    matched?["mean"].as_f64()
}

/// Runs until a source's figures agree with those of this host's own monitor, within 2 % or the
/// slack given, at the first point; an overloaded machine reads both late. The last run's result.
#[track_caller]
fn check_alike(source: &str, alike: &[(&str, f64)], mut run: impl FnMut(&Path) -> Ended) -> Value {
    let mut last = Value::Null;
    one_is_right(3, || {
        let temp_dir = TempDir::new().unwrap();
        let bundle = temp_dir.path().join("run");
        let ended = run(&bundle);
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        last = result(&bundle);
        let many_sockets = has_many_sockets();
        let compared =
            alike.iter().filter(|(name, _)| !(many_sockets && name.starts_with("socket.")));
        let differs = compared.filter_map(|(name, slack)| differs(&last, name, source, *slack));
        let covered = mean(&last, 0, "monitor.covered", Some(source));
        let uncovered = covered.is_none_or(|covered| covered < 0.9);
        let uncovered = uncovered.then(|| format!("covered {covered:?}"));
        CheckOutcome::from_point(&last["points"][0], differs.chain(uncovered))
    });
    last
}

/// Does it take long to read all TCP sockets, including those of closed connections? Then monitors
/// do that rarely, or not at all.
fn has_many_sockets() -> bool {
    let text = fs::read_to_string("/proc/net/sockstat").unwrap();
    let tcp = text.lines().find_map(|line| line.strip_prefix("TCP: ")).unwrap();
    let fields: Vec<&str> = tcp.split_whitespace().collect();
    let sockets = |of: &str| fields.iter().skip_while(|name| **name != of).nth(1);
    let count = |of: &str| sockets(of).map_or(0, |count| count.parse::<u64>().unwrap());
    count("inuse") + count("tw") > 4_000
}

/// Asserts the cost of monitoring, where the source reported it.
#[track_caller]
fn check_cost(result: &Value, source: &str, cores_max: f64) {
    let cost = mean(result, 0, "monitor.cpu", Some(source));
    assert!(cost.is_none_or(|cost| cost < cores_max), "{cost:?} of a core");
}

fn differs(result: &Value, name: &str, source: &str, slack: f64) -> Option<String> {
    let [here, there] = [None, Some(source)].map(|source| mean(result, 0, name, source));
    let alike = |(here, there): (f64, f64)| (here - there).abs() <= (0.02 * here).max(slack);
    let differs = !here.zip(there).is_some_and(alike);
    differs.then(|| format!("{name}: {here:?} here, {there:?} there"))
}

#[test]
fn a_host_through_ssh_tells_the_same_figures_as_this_host() {
    let ssh = ssh_of("exec sh");
    let source = "ssh://ann@127.0.0.1:22";
    let monitor = ["--points", "300", "--monitor", "local", "--monitor", source];
    let alike = [
        ("host.cpu_busy", 0.05),
        ("host.memory_used", 50e6),
        ("process.server.cpu", 0.05),
        ("process.server.rss", 5e6),
        ("process.server.cores_allowed", 0.0),
        ("process.server.cores_busy", 0.05),
        ("socket.server.connections", 2.0),
        ("network.lo.sent", 1e6),
    ];
    let result = check_alike(source, &alike, |bundle| {
        let ended = run(bundle, ssh.path(), &[&monitor[..], &LONG].concat());
        let rows = fs::read_to_string(bundle.join("monitors/ssh-ann-127.0.0.1-22/host.csv"));
        let rows = rows.unwrap();
        assert!(rows.starts_with("time_unix_ns,point,cpu_busy_ratio,"), "{rows}");
        assert!(rows.contains(",point-01,"), "{rows}");
        let disclosed = fs::read_to_string(bundle.join("disclosure.json")).unwrap();
        for part in ["clock of ssh://ann@127.0.0.1:22", "round trips", "system of ssh://"] {
            assert!(disclosed.contains(part), "{disclosed}");
        }
        ended
    });
    check_cost(&result, source, 0.1);
}

#[test]
fn an_ssh_that_is_refused_ends_the_run_before_any_load_in_its_own_words() {
    let temp_dir = TempDir::new().unwrap();
    let bundle = temp_dir.path().join("run");
    let ssh = ssh_of("echo 'ann@db: Permission denied (publickey).' >&2; exit 255");
    let ended = run(&bundle, ssh.path(), &["--monitor", "ssh://ann@db"]);
    ended.check(3, &["ssh://ann@db: ssh: ann@db: Permission denied (publickey).", "BatchMode"]);
    assert!(!bundle.exists());
}

#[test]
fn a_source_that_goes_away_in_mid_run_leaves_a_gap_and_the_run_goes_on() {
    let _alone = alone();
    let temp_dir = TempDir::new().unwrap();
    let bundle = temp_dir.path().join("run");
    // The first child ends soon after its greeting; there is no second one.
    let ssh = ssh_of(
        "[ -e \"$0.gone\" ] && { echo 'no route to host' >&2; exit 255; }\n\
         : >\"$0.gone\"; timeout 2 sh",
    );
    let monitor = ["--points", "200,300", "--monitor", "ssh://db"];
    let ended = run(&bundle, ssh.path(), &[&monitor[..], &LONG].concat());
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    assert!(ended.err.contains("ssh://db did not answer"), "{ended:?}");
    assert!(ended.err.contains("no route to host") && ended.err.contains("gap"), "{ended:?}");
    let result = result(&bundle);
    assert_eq!(result["points"].as_array().unwrap().len(), 2);
    let covered = |point| mean(&result, point, "monitor.covered", Some("ssh://db")).unwrap();
    assert!(covered(0) < 0.9, "{}", covered(0));
    assert_eq!(covered(1), 0.0);
    assert_eq!(mean(&result, 1, "host.cpu_busy", Some("ssh://db")), None, "a gap is no zero");
    assert!(mean(&result, 1, "host.cpu_busy", None).is_some());
}

#[test]
fn a_resumed_run_watches_the_same_sources() {
    let _alone = alone();
    let temp_dir = TempDir::new().unwrap();
    let bundle = temp_dir.path().join("run");
    let ssh = ssh_of("exec sh");
    let more = ["--points", "100,110,120,130", "--monitor", "ssh://127.0.0.1"];
    let mut child = with_programs(ssh.path(), &short("web-static", "builtin:", &bundle, &more))
        .spawn()
        .unwrap();
    wait_until("a point is there", || plimsoll_testkit::program::points_finished(&bundle) > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let resume = ["resume", bundle.to_str().unwrap(), "--progress", "none"];
    let resumed = wait_for(with_programs(ssh.path(), &resume).spawn().unwrap());
    assert!(matches!(resumed.code, Some(0 | 1)), "{resumed:?}");
    let result = result(&bundle);
    for point in 0..4 {
        let covered = mean(&result, point, "monitor.covered", Some("ssh://127.0.0.1"));
        assert!(covered.is_some(), "point {point}: {covered:?}");
    }
}

#[test]
fn a_source_that_cannot_be_is_refused_and_its_community_never_shown() {
    let temp_dir = TempDir::new().unwrap();
    let bundle = temp_dir.path().join("run");
    let with = |url: &str| plimsoll(&short("web-static", "builtin:", &bundle, &["--monitor", url]));
    with("ssh://ann:s3cret@db").check(2, &["ssh is asked for no password"]);
    with("db").check(2, &["names no source", "ssh://[user@]host[:port]"]);
    with("snmp://env:PLIMSOLL_NOT_SET@127.0.0.1").check(2, &["PLIMSOLL_NOT_SET"]);
    let nobody = with("snmp://s3cret@127.0.0.1:1");
    nobody.check(3, &["--monitor snmp://127.0.0.1:1: ", "PLIMSOLL_SNMP_COMMUNITY"]);
    for ended in [with("snmp://s3cret@127.0.0.1:x"), with("http://s3cret@127.0.0.1:1/"), nobody] {
        assert!(!format!("{ended:?}").contains("s3cret"), "{ended:?}");
    }
    with("http://127.0.0.1:1/metrics").check(3, &["http://127.0.0.1:1/metrics: cannot connect"]);
    assert!(!bundle.exists());
}

/// The system's ssh with a key of this sshd's.
pub(super) fn ssh_with(sshd: &Sshd, key: &str) -> TempDir {
    ssh_of(&format!("exec /usr/bin/ssh -F {} \"$@\"", sshd.client(key).display()))
}

#[test]
fn a_real_sshd_lets_a_run_watch_its_host_at_little_cost() {
    let Some(sshd) = Sshd::start() else { return };
    let ssh = ssh_with(&sshd, "user");
    let url = sshd.url();
    let monitor = ["--points", "300", "--monitor", &url];
    let alike = [("host.cpu_busy", 0.05), ("process.server.cpu", 0.05)];
    let result = check_alike(&url, &alike, |bundle| {
        run(bundle, ssh.path(), &[&monitor[..], &LONG].concat())
    });
    // It takes half a percent; to check that would need an idle machine.
    check_cost(&result, &url, 0.05);
}

#[test]
fn a_wrong_key_is_told_before_any_load() {
    let Some(sshd) = Sshd::start() else { return };
    let temp_dir = TempDir::new().unwrap();
    let bundle = temp_dir.path().join("run");
    let ssh = ssh_with(&sshd, "wrong");
    let ended = run(&bundle, ssh.path(), &["--monitor", &sshd.url()]);
    ended.check(3, &["Permission denied (publickey", "must work without a password"]);
    assert!(!bundle.exists());
}

/// A program of this test's own that serves until it is dropped.
fn serving(program: &Path, arguments: &[&str]) -> Running {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    Running(command.spawn().unwrap())
}

#[test]
fn node_exporter_tells_the_same_figures_as_this_host() {
    let Some(exporter) = require_peer("prometheus-node-exporter") else { return };
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let _peer = serving(&exporter, &[&format!("--web.listen-address={address}")]);
    wait_until("it listens", || std::net::TcpStream::connect(&address).is_ok());
    let url = format!("http://{address}/metrics");
    let more = [&["--points", "300", "--monitor", &url][..], &LONG].concat();
    let alike = [
        ("host.cpu_busy", 0.05),
        ("host.cpu_user", 0.05),
        ("host.memory_used", 50e6),
        ("host.context_switches", 500.0),
        ("host.pressure_cpu_some", 0.1),
    ];
    check_alike(&url, &alike, |bundle| plimsoll(&short("web-static", "builtin:", bundle, &more)));
}

#[test]
fn snmpd_tells_the_same_traffic_as_this_host_and_no_file_holds_its_community() {
    let Some(snmpd) = require_peer("snmpd") else { return };
    let free = std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let temp_dir = TempDir::new().unwrap();
    let config = temp_dir.path().join("snmpd.conf");
    fs::write(&config, format!("agentAddress udp:{address}\nrocommunity s3cret 127.0.0.1\n"))
        .unwrap();
    let (config, pid) = (config.display().to_string(), temp_dir.path().join("pid"));
    let pid = pid.display().to_string();
    let _peer = serving(&snmpd, &["-f", "-Ln", "-C", "-c", &config, "-p", &pid]);
    let url = format!("snmp://s3cret@{address}");
    // The agent renews counters of interfaces every three seconds, ticks every five.
    let long = ["--set", "profiles.quick.measure=20s", "--set", "profiles.quick.warm_up=6s"];
    let more = [&["--points", "300", "--monitor", &url][..], &long].concat();
    let source = format!("snmp://{address}");
    // Its samples are three seconds long, so that some lie across the window's borders. Those of
    // its ticks may be too long for this window; their values are right.
    let alike = [("network.lo.sent", 1.5e6)];
    let result = check_alike(&source, &alike, |bundle| {
        let mut ended = None;
        wait_until("the agent answers", || {
            let run = plimsoll(&short("web-static", "builtin:", bundle, &more));
            ended.insert(run).code != Some(3)
        });
        let ended = ended.unwrap();
        assert!(files_below(bundle) > 10 && !format!("{ended:?}").contains("s3cret"));
        ended
    });
    if let Some(busy) = mean(&result, 0, "host.cpu_busy", Some(&source)) {
        let user = mean(&result, 0, "host.cpu_user", Some(&source)).unwrap();
        assert!(0.0 < user && user < busy && busy <= 1.0, "{user} {busy}");
    }
    assert_eq!(
        mean(&result, 0, "host.memory_dirty", Some(&source)),
        None,
        "it tells no such thing"
    );
}

/// Counts them, and asserts that none holds the community.
fn files_below(directory: &Path) -> usize {
    let mut files = vec![directory.to_owned()];
    let mut file_count = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        file_count += 1;
        let bytes = fs::read(&path).unwrap();
        assert!(!bytes.windows(6).any(|part| part == b"s3cret"), "{}", path.display());
    }
    file_count
}
