//! A server that is watched while agents make its load.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use plimsoll_testkit::namespaces::Namespaces;
use plimsoll_testkit::program::{result, short, wait_for};
use plimsoll_testkit::sshd::Sshd;
use serde_json::Value;

use super::access_log::AccessLog;
use super::agents::{RunDir, by_exec};
use crate::monitors::{ssh_with, with_programs};

fn path_of(command: &Command) -> &OsStr {
    command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value).unwrap()
}

/// The last namespace is the server's host.
const AGENTS: usize = 2;

#[test]
fn what_an_op_costs_the_server_is_known_whoever_makes_the_load() {
    let Some(namespaces) = Namespaces::start(AGENTS as u8 + 1) else { return };
    let Some(nginx) = AccessLog::start_in_spoke(&namespaces, AGENTS) else { return };
    let Some(sshd) = Sshd::start_in(&namespaces, AGENTS) else { return };
    let (ssh, source) = (ssh_with(&sshd, "user"), sshd.url());
    let (run_dir, agents) = (RunDir::new(), by_exec(&namespaces));
    let bundle = run_dir.bundle();
    let mut testbed = format!(
        "[[system]]\nname = \"web 1\"\nmonitor = \"{source}\"\nsegments = [\"bridge\"]\n\
         raid_level = \"none\"\n"
    );
    for agent in &agents[..AGENTS] {
        testbed += &format!("[[agent]]\nat = \"{agent}\"\nsegment = \"bridge\"\n");
    }
    let testbed = run_dir.write("testbed.toml", testbed);
    let phases = ["--points", "200,400", "--set", "profiles.quick.measure=2s"];
    let more = [&["--testbed", &testbed][..], &phases].concat();
    let url = format!("{}/", nginx.url);
    let run = with_programs(ssh.path(), &short("web-url", &url, &bundle, &more));
    // Where it cannot see the server's processes, the server's host is another one.
    let mut apart = Command::new("unshare");
    apart.args(["--pid", "--fork", "--mount-proc", "--kill-child"]);
    apart.arg(run.get_program()).args(run.get_args()).env("PATH", path_of(&run));
    let mut apart = namespaces.in_hub(&apart);
    let ended = wait_for(apart.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");

    let result = result(&bundle);
    let hosts = result["monitored_hosts"].as_array().unwrap();
    let role = |source: &str| {
        let host = hosts.iter().find(|host| host["source"] == source).unwrap();
        (host["role"].as_str().unwrap(), host["basis"].as_str().unwrap())
    };
    assert_eq!(role(&source), ("server", "address"), "{hosts:?}");
    for point in result["points"].as_array().unwrap() {
        assert_eq!(point["agents"].as_array().unwrap().len(), AGENTS);
        let costs = point["cost"].as_array().unwrap();
        let of_server =
            |cost: &&Value| cost["of"] == "server_processes" && cost["source"] == source;
        let cost = costs.iter().find(of_server).unwrap();
        assert!(cost["figures"]["cpu_per_op"]["value"].as_f64().unwrap() > 1_000.0, "{cost}");
        // This host, which coordinates, is watched as well.
        let resources = point["resources"].as_array().unwrap();
        let here = |used: &&Value| used["source"].is_null() && used["name"] == "host.cpu_busy";
        assert!(resources.iter().any(|used| here(&used)), "{resources:?}");
    }
    let report = std::fs::read_to_string(bundle.join("report.html")).unwrap();
    for part in ["found by its address", "The testbed: hosts, segments", "RAID level"] {
        assert!(report.contains(part), "{part} is not in the report");
    }
}
