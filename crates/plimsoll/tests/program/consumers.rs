//! Where the processor time of a host goes, and `--profile-server`.

use std::fs;
use std::path::Path;

use plimsoll_testkit::peers::require_peer;
use plimsoll_testkit::program::{
    CheckOutcome, Ended, one_is_right, plimsoll, result, short, wait_for,
};
use plimsoll_testkit::sshd::Sshd;
use serde_json::Value;
use tempfile::TempDir;

use crate::monitors::{program_in, ssh_with, with_programs};

/// Windows long enough for ticks of 10 ms.
const LONG: [&str; 2] = ["--set", "profiles.quick.measure=2s"];

/// CPU seconds of the entries of a list that match.
fn cpu_s(host: &Value, is_so: impl Fn(&Value) -> bool) -> f64 {
    let all = host["consumers"].as_array().unwrap().iter().chain([&host["others"]]);
    let seconds = |it: &Value| it["user_s"].as_f64().unwrap() + it["system_s"].as_f64().unwrap();
    all.filter(|it| is_so(it)).map(seconds).sum()
}

fn is_server(consumer: &Value) -> bool {
    consumer["kind"] == "server"
}

/// The host of a source, or this host.
fn host<'r>(point: &'r Value, source: Option<&str>) -> &'r Value {
    let hosts = point["consumers"].as_array().unwrap();
    hosts.iter().find(|host| host["source"].as_str() == source).unwrap()
}

/// Inconsistencies of a host: its processes did more or less than its processors, or its server
/// more or less than the monitor of that process counted.
fn odd(point: &Value, source: Option<&str>) -> Vec<String> {
    let host = host(point, source);
    let busy_s = host["busy_s"].as_f64().unwrap();
    let processes_s = cpu_s(host, |_| true);
    let mut odd = Vec::new();
    if (busy_s - processes_s).abs() > 0.1 * busy_s + 0.2 {
        odd.push(format!("{busy_s} s busy, {processes_s} s in processes"));
    }
    let name = "process.server.cpu";
    let resources = point["resources"].as_array().unwrap();
    let server = resources.iter().find(|it| it["name"] == name && it["source"].as_str() == source);
    let server_s = server.unwrap()["mean"].as_f64().unwrap() * point["seconds"].as_f64().unwrap();
    let consumers_s = cpu_s(host, is_server);
    if (server_s - consumers_s).abs() > 0.1 * server_s + 0.1 {
        odd.push(format!("server: {server_s} s by its monitor, {consumers_s} s among consumers"));
    }
    odd
}

#[test]
fn a_managed_server_is_among_the_consumers_and_their_sum_is_the_hosts_busy_time() {
    if require_peer("nginx").is_none() {
        return;
    }
    one_is_right(3, || {
        let temp_dir = TempDir::new().unwrap();
        let bundle = temp_dir.path().join("run");
        let more = [&["--points", "1000"][..], &LONG].concat();
        let ended = plimsoll(&short("web-static", "managed:nginx", &bundle, &more));
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        let result = result(&bundle);
        let point = &result["points"][0];
        let here = host(point, None);
        let interrupts = here["interrupts"].as_array().unwrap();
        let received = interrupts.iter().find(|it| it["name"] == "NET_RX").unwrap();
        assert!(received["per_op"].as_f64().unwrap() > 0.0, "{received}");
        let server = here["consumers"].as_array().unwrap().iter().find(|it| is_server(it));
        assert_eq!(server.unwrap()["name"], "nginx");
        let page = fs::read_to_string(bundle.join("report.html")).unwrap();
        assert!(page.contains("Where the processor time went") && page.contains("nginx (server)"));
        CheckOutcome::from_point(point, odd(point, None))
    });
}

#[test]
fn a_host_through_ssh_tells_its_consumers_too() {
    let Some(sshd) = Sshd::start() else { return };
    let ssh = ssh_with(&sshd, "user");
    let url = sshd.url();
    one_is_right(3, || {
        let temp_dir = TempDir::new().unwrap();
        let bundle = temp_dir.path().join("run");
        let more = [&["--points", "1000", "--monitor", &url][..], &LONG].concat();
        let arguments = short("web-static", "builtin:", &bundle, &more);
        let ended = wait_for(with_programs(ssh.path(), &arguments).spawn().unwrap());
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        let result = result(&bundle);
        let point = &result["points"][0];
        let [here, there] = [None, Some(url.as_str())].map(|source| host(point, source));
        let [ours, theirs] = [here, there].map(|host| cpu_s(host, is_server));
        let differs = (ours - theirs).abs() > 0.1 * ours + 0.1;
        let differs = differs.then(|| format!("server: {ours} s here, {theirs} s through ssh"));
        CheckOutcome::from_point(point, odd(point, Some(&url)).into_iter().chain(differs))
    });
}

/// A run whose server is profiled with a program that replaces perf.
fn profiled(temp_dir: &Path, perf: &str, more: &[&str]) -> Ended {
    program_in(temp_dir, "perf", perf);
    let bundle = temp_dir.join("run");
    let more = [&["--points", "200,300"][..], more].concat();
    wait_for(
        with_programs(temp_dir, &short("web-static", "builtin:", &bundle, &more)).spawn().unwrap(),
    )
}

const SAMPLES: &str = "[ $1 = record ] && exit\n\
    printf 'plimsoll 8/8 cycles:\\n\\tff write ([kernel.kallsyms])\\n\\tfe main (/bin/p)\\n\\n'";

#[test]
fn a_profile_has_a_load_point_of_its_own_and_its_stacks_are_listed_as_raw() {
    let temp_dir = TempDir::new().unwrap();
    let ended = profiled(temp_dir.path(), SAMPLES, &["--profile-server"]);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let bundle = temp_dir.path().join("run");
    let result = result(&bundle);
    assert_eq!(result["points"].as_array().unwrap().len(), 2);
    assert_eq!(result["probes"].as_array().unwrap().len(), 0);
    let profile = &result["server_profile"];
    assert_eq!((&profile["requested"], &profile["samples"]), (&300.0.into(), &1.into()));
    assert_eq!(profile["scope"], "processes");
    assert!(profile["achieved_ops_per_s"].as_f64().unwrap() > 0.0, "{profile}");
    let file = profile["file"].as_str().unwrap();
    assert_eq!(fs::read_to_string(bundle.join(file)).unwrap(), "plimsoll;main;write_[k] 1\n");
    let manifest: Value =
        serde_json::from_slice(&fs::read(bundle.join("manifest.json")).unwrap()).unwrap();
    assert!(manifest["raw"][file].is_string(), "{manifest}");
    let before = fs::read(bundle.join("result.json")).unwrap();
    plimsoll(&["analyse", bundle.to_str().unwrap()]);
    assert_eq!(fs::read(bundle.join("result.json")).unwrap(), before);
}

#[test]
fn the_load_of_a_profile_can_be_named() {
    let temp_dir = TempDir::new().unwrap();
    let ended = profiled(temp_dir.path(), SAMPLES, &["--profile-server=150"]);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let result = result(&temp_dir.path().join("run"));
    assert_eq!(result["server_profile"]["requested"], 150.0);
}

#[test]
fn a_profile_that_cannot_be_made_is_refused_before_any_load() {
    let temp_dir = TempDir::new().unwrap();
    let script = "echo 'Access is limited.' >&2; exit 255";
    let ended = profiled(temp_dir.path(), script, &["--profile-server"]);
    ended.check(3, &["--profile-server: perf does not work on this host: Access is limited"]);
    assert!(!temp_dir.path().join("run").exists());
    let far = ["run", "web-url", "http://192.0.2.1/", "--profile-server=x"];
    plimsoll(&far).check(2, &["write peak, or a load"]);
}
