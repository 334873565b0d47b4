//! The program stays off its workers' cores: its other work runs on other cores.

use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_servers::cores;

use plimsoll_testkit::program::{Running, Served, plimsoll, serve, short, wait_for, wait_until};

/// Names of a process's threads, with the cores each may run on. The first thread bears the
/// program's name.
fn threads(pid: u32) -> Vec<(String, Vec<u32>)> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of = |entry: std::fs::DirEntry| {
        let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
        let value = |key| status.lines().find_map(|line| line.strip_prefix(key));
        let cores = cores::parse_list(value("Cpus_allowed_list:")?)?;
        Some((value("Name:")?.trim().to_owned(), cores))
    };
    entries.flatten().filter_map(of).collect()
}

/// Settings of a bundle's disclosure whose name contains `name`.
fn disclosed(bundle: &Path, name: &str) -> Vec<(String, String)> {
    let text = std::fs::read(bundle.join("disclosure.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let settings = json["setup"].as_array().unwrap().iter();
    settings
        .map(|setting| (text(&setting["name"]), text(&setting["value"])))
        .filter(|(key, _)| key.contains(name))
        .collect()
}

/// Finished load points of a bundle.
fn records(bundle: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.filter(|line| line["event"] == "point_finished").collect()
}

/// To the end of its point, valid or not: this test does not check a measurement.
#[track_caller]
fn ran(code: Option<i32>) {
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
}

fn a_second_core() -> Option<(u32, u32)> {
    let cores = cores::available().unwrap();
    Some((*cores.first()?, *cores.get(1)?))
}

#[test]
fn only_the_worker_runs_on_the_workers_core_while_a_point_lasts() {
    let Some((worker, other)) = a_second_core() else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let more = ["--points", "200", "--set", "profiles.quick.measure=2s"];
    let pair = format!("{worker},{other}");
    let mut arguments = vec!["-c", &pair, env!("CARGO_BIN_EXE_plimsoll")];
    let run = short("web-static", "builtin:", &out, &more);
    arguments.extend(run);
    let child = Command::new("taskset")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let journal = out.join("journal.jsonl");
    wait_until("a point runs", || {
        std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("point_started"))
    });
    // Between points all threads may be on the worker's core; a worker is made when they have left.
    wait_until("there is a worker on its core", || {
        threads(child.id()).contains(&("worker 0".to_owned(), vec![worker]))
    });
    let thread_cores = threads(child.id());
    ran(wait_for(child).code);
    let on_it: Vec<_> = thread_cores.iter().filter(|(_, cores)| cores.contains(&worker)).collect();
    assert_eq!(on_it.len(), 1, "one worker, and nobody else: {thread_cores:?}");
    assert!(
        thread_cores.len() >= 4,
        "the first thread, listener, monitor, worker: {thread_cores:?}"
    );
    assert!(thread_cores.contains(&("plimsoll".to_owned(), vec![other])), "{thread_cores:?}");
    let rest = disclosed(&out, "cores of coordinator and monitors");
    assert_eq!(rest[0].1, other.to_string());
}

#[test]
fn the_pauses_of_the_workers_core_are_disclosed() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    ran(plimsoll(&short("web-static", "builtin:", &out, &["--points", "200"])).code);
    let pauses = disclosed(&out, "own pauses");
    assert_eq!(pauses.len(), 1, "{pauses:?}");
    assert!(pauses[0].1.contains("of polling"), "{pauses:?}");
}

#[test]
fn who_used_the_workers_core_is_named() {
    let Some((worker, other)) = a_second_core() else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let pair = format!("{worker},{other}");
    let mut arguments = vec!["-c", &pair, env!("CARGO_BIN_EXE_plimsoll")];
    let more = ["--points", "200", "--set", "profiles.quick.measure=1s"];
    let run = short("web-static", "builtin:", &out, &more);
    arguments.extend(run);
    let busy = Running(
        Command::new("taskset")
            .args(["-c", &worker.to_string(), "sh", "-c", "while :; do :; done"])
            .spawn()
            .unwrap(),
    );
    let output = Command::new("taskset").args(arguments).output().unwrap();
    let pid = busy.0.id();
    drop(busy);
    ran(output.status.code());
    let records = records(&out);
    let users = records[0]["core_users"].as_array().unwrap();
    let user = users.iter().find(|user| user["pid"] == pid).unwrap();
    assert_eq!((&user["name"], &user["own"]), (&"sh".into(), &false.into()), "{users:?}");
    // How much it had depends on the machine.
    assert!(user["cpu_ns"].as_u64().unwrap() > 0, "{users:?}");
    let own: u64 =
        users.iter().filter(|u| u["own"] == true).filter_map(|u| u["cpu_ns"].as_u64()).sum();
    assert_eq!(own, 0, "{users:?}");
}

#[test]
fn a_server_that_somebody_else_pinned_leaves_the_other_core_to_the_worker() {
    let Some((free, taken)) = a_second_core() else { return };
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("page"), "hello").unwrap();
    let out = dir.path().join("bundle");
    let serve = serve("web", &["--root", root.to_str().unwrap()]);
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", &taken.to_string()]).arg(serve.get_program()).args(serve.get_args());
    let server = Served::start(pinned);
    let url = format!("{}page", server.url);
    let ended = plimsoll(&short("web-url", &url, &out, &["--rate", "200"]));
    drop(server);
    ran(ended.code);
    let placement = &disclosed(&out, "placement")[0].1;
    assert!(placement.contains(&format!("on cores {taken}; the generator has cores {free}")));
    let text = std::fs::read_to_string(out.join("journal.jsonl")).unwrap();
    assert!(text.contains("\"own_cores\":true"), "{text}");
}
