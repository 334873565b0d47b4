//! Replays of a web server's log: each request at its time, once, on the real nginx and on servers
//! of ours.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_testkit::program::{Ended, plimsoll, result, short};
use serde_json::Value;

/// Requests of two seconds: a burst, silence, then a steady part. Path, status and size of each.
fn requests() -> Vec<(u64, &'static str, String, u16, u64)> {
    let mut all = Vec::new();
    for n in 0..40 {
        all.push((n * 1_000, "GET", format!("/burst/{}.html", n % 7), 200, 300 + n % 7));
    }
    for n in 0..60 {
        let at = 500_000 + n * 20_000;
        match n % 6 {
            0 => all.push((at, "HEAD", "/burst/0.html".to_owned(), 200, 0)),
            1 => all.push((at, "GET", "/gone?from=x,y".to_owned(), 404, 153)),
            2 => all.push((at, "GET", "/big".to_owned(), 304, 0)),
            _ => all.push((at, "GET", "/big".to_owned(), 200, 40_000)),
        }
    }
    all
}

/// The suite of a replay, as it is derived; its path.
fn suite(folder: &Path, more: &str, extra: &str) -> PathBuf {
    let lines: String = requests()
        .iter()
        .map(|(at, method, path, status, bytes)| format!("{at},{method},{path},{status},{bytes}\n"))
        .collect();
    let text = format!("at_us,method,path,status,bytes\n{lines}{extra}");
    std::fs::write(folder.join("replay.csv"), text).unwrap();
    let suite = format!(
        "format = 1\nname = \"replay\"\ntitle = \"t\"\nprotocol = \"http\"\n[load]\nmode = \"open\"\n\
         arrivals = \"shared\"\nclients = 20\n[ladder]\nkind = \"points\"\npoints = [1]\n[workload]\n\
         requests = \"replay\"\nreplay_file = \"replay.csv\"\n{more}"
    );
    let path = folder.join("replay.toml");
    std::fs::write(&path, suite).unwrap();
    path
}

fn run(suite: &Path, target: &str, bundle: &Path, more: &[&str]) -> (Ended, Value) {
    let all = [&["--set", "profiles.quick.drain=5s"], more].concat();
    let ended = plimsoll(&short(suite.to_str().unwrap(), target, bundle, &all));
    let result = if bundle.join("result.json").exists() { result(bundle) } else { Value::Null };
    (ended, result)
}

#[test]
fn every_request_is_sent_once_and_answered_as_recorded() {
    let temp_dir = tempfile::tempdir().unwrap();
    let suite = suite(temp_dir.path(), "", "");
    for (name, more) in [
        ("one", &["--speed", "4"][..]),
        ("h2", &["--speed", "4", "--http", "2", "--streams", "4"]),
        ("agents", &["--speed", "4", "--agents", "local,local"]),
    ] {
        let bundle = temp_dir.path().join(name);
        let (ended, result) = run(&suite, "builtin:", &bundle, more);
        assert!(matches!(ended.code, Some(0 | 1)), "{name}: {ended:?}");
        let point = &result["points"][0];
        assert_eq!(point["errors"], serde_json::json!({}), "{name}: {point}");
        let count = |op: &str| point["ops"][op]["count"].as_u64();
        assert_eq!((count("GET"), count("HEAD")), (Some(90), Some(10)), "{name}: {point}");
        assert_eq!(point["not_sent"], 0, "{name}");
        // 40 of the burst, 30 large ones, 10 large ones with status 304, 10 that are not there.
        let burst: u64 =
            requests().iter().filter(|one| one.2.contains("burst")).map(|one| one.4).sum();
        // The last replies may come after the window.
        let all = burst + 40 * 40_000 + 10 * 153;
        let read = point["bytes_read"].as_u64().unwrap();
        assert!(read <= all && read > all / 2, "{name}: {read} of {all}");
        // 1.70 s with the mean interval after the last.
        assert!((point["seconds"].as_f64().unwrap() - 1.697 / 4.0).abs() < 0.01, "{name}: {point}");
        assert!(result["verdict"].to_string().contains("was not judged"), "{name}: {result}");
    }
}

#[test]
fn nginx_logs_what_the_replay_has_at_its_times() {
    let temp_dir = tempfile::tempdir().unwrap();
    let suite = suite(temp_dir.path(), "", "");
    let Some(nginx) = LoggedNginx::start(temp_dir.path()) else { return };
    let mut before = 0;
    for (speed, more) in [(1.0, &[][..]), (4.0, &["--speed", "4", "--connections", "8"])] {
        let bundle = temp_dir.path().join(format!("x{speed}"));
        let (ended, result) = run(&suite, &nginx.url, &bundle, more);
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        assert_eq!(result["points"][0]["errors"], serde_json::json!({}), "{ended:?}");
        let lines = nginx.lines(before + 100);
        let own = &lines[before..];
        let mut counts: BTreeMap<(&str, u16), i32> = BTreeMap::new();
        let all = requests();
        for (_, _, path, status, _) in &all {
            let status = if *status == 304 { 200 } else { *status };
            *counts.entry((path.as_str(), status)).or_default() += 1;
        }
        for (_, path, status) in own {
            *counts.entry((path.as_str(), *status)).or_default() -= 1;
        }
        assert!(counts.values().all(|left| *left == 0), "{counts:?}");
        // No schedule of a busy machine is exact; the silence after the burst and the length are.
        let times: Vec<f64> = own.iter().map(|(at, ..)| *at).collect();
        let length = times[99] - times[0];
        assert!(length > 1.6 / speed && length < 1.68 / speed + 5.0, "{speed}: {length}");
        before = lines.len();
    }
}

#[test]
fn only_the_beginning_of_a_replay_is_played_and_other_statuses_are_errors() {
    let temp_dir = tempfile::tempdir().unwrap();
    let suite = suite(temp_dir.path(), "speed = 2.0\n", "1700000,GET,/burst/1.html,500,9\n");
    let bundle = temp_dir.path().join("b");
    let (ended, result) = run(&suite, "builtin:", &bundle, &["--for", "300ms"]);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    // 0.6 s of the recording: the burst, and five of the steady part.
    let point = &result["points"][0];
    let count = |op: &str| point["ops"][op]["count"].as_u64().unwrap();
    assert_eq!(count("GET") + count("HEAD"), 45, "{point}");
    let bundle = temp_dir.path().join("c");
    // Another server, which has the path and no such failure.
    let Some(nginx) = LoggedNginx::start(temp_dir.path()) else { return };
    let (_, result) = run(&suite, &nginx.url, &bundle, &["--speed", "5"]);
    let point = &result["points"][0];
    assert_eq!(point["errors"], serde_json::json!({ "status:200": 1 }), "{point}");
    let sample = point["error_samples"].to_string();
    assert!(
        sample.contains("line 102: GET /burst/1.html: status 200, where the recording has 500")
    );
}

#[test]
fn requests_without_a_free_client_are_named() {
    let temp_dir = tempfile::tempdir().unwrap();
    let suite = suite(temp_dir.path(), "", "");
    let bundle = temp_dir.path().join("b");
    let slow = ["--speed", "4", "--connections", "1", "--set", "op_timeout=9s"];
    let server = plimsoll_testkit::program::Served::with(
        "web",
        &["--replay", temp_dir.path().join("replay.csv").to_str().unwrap(), "--work", "5ms"],
    );
    let (ended, result) = run(&suite, &format!("http://{}/", server.address()), &bundle, &slow);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let late = &result["points"][0]["late"];
    let first = late["first"].as_array().unwrap();
    assert!(late["count"].as_u64() > Some(20) && first.len() == 20, "{late}");
    let waited = first.iter().filter(|one| one["cause"] == "no_client").count();
    assert!(waited > 10 && first[0]["line"].as_u64() >= Some(2), "{late}");
    let warnings = result["points"][0]["warnings"].to_string();
    assert!(warnings.contains("requests were sent more than 2.00 ms after"), "{warnings}");
    let report = std::fs::read_to_string(bundle.join("report.html")).unwrap();
    assert!(report.contains("late, no client was free"), "the report names them");
}

#[test]
fn a_hashed_replay_is_refused_elsewhere_and_served_from_files() {
    let temp_dir = tempfile::tempdir().unwrap();
    let hashed = suite(temp_dir.path(), "hashed = true\n", "");
    let bundle = temp_dir.path().join("b");
    let (ended, _) = run(&hashed, "http://127.0.0.1:9/", &bundle, &[]);
    ended.check(2, &["the paths of this load are hashed", "derive it again with --keep"]);
    for (flag, value) in [("--rate", "5"), ("--points", "5"), ("--clients", "5"), ("--think", "1s")]
    {
        let (ended, _) = run(&hashed, "builtin:", &bundle, &[flag, value]);
        ended.check(2, &[flag, "the requests of a replay and their times are those of its file"]);
    }
    let capacity = ["capacity", hashed.to_str().unwrap(), "builtin:", "--within", "p99<1s"];
    plimsoll(&capacity).check(2, &["a replay has the load of its log and no other"]);
    plimsoll(&["run", "web-url", "builtin:", "--speed", "2"])
        .check(2, &["--speed belongs to recorded"]);
    if plimsoll_testkit::peers::require_peer("nginx").is_some() {
        let (ended, result) = run(&hashed, "managed:nginx", &bundle, &["--speed", "4"]);
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        assert_eq!(result["points"][0]["errors"], serde_json::json!({}), "{ended:?}");
        let bytes = result["points"][0]["bytes_read"].as_u64().unwrap();
        assert!(bytes > 20 * 40_000 && bytes < 40 * 40_000 + 20_000, "{bytes}");
    }
}

/// nginx with a log of its own format, in front of files that the replay has.
struct LoggedNginx {
    child: std::process::Child,
    log: PathBuf,
    url: String,
}

impl LoggedNginx {
    fn start(folder: &Path) -> Option<Self> {
        let program = plimsoll_testkit::peers::require_peer("nginx")?;
        let root = folder.join("root");
        std::fs::create_dir_all(root.join("burst")).unwrap();
        for n in 0..7 {
            std::fs::write(root.join(format!("burst/{n}.html")), vec![b'x'; 300 + n]).unwrap();
        }
        std::fs::write(root.join("big"), vec![b'x'; 40_000]).unwrap();
        let port = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap().port()
        };
        let configuration = format!(
            "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr crit;\nevents {{}}\nhttp {{\n\
             log_format t '$msec $request_uri $status';\naccess_log access.log t;\n\
             client_body_temp_path b;\nproxy_temp_path p;\nfastcgi_temp_path f;\nuwsgi_temp_path u;\n\
             scgi_temp_path s;\nserver {{ listen 127.0.0.1:{port}; root {}; }}\n}}\n",
            root.display()
        );
        std::fs::write(folder.join("nginx.conf"), configuration).unwrap();
        let child = std::process::Command::new(program)
            .args(["-e", "stderr", "-c", "nginx.conf", "-p"])
            .arg(folder)
            .spawn()
            .unwrap();
        plimsoll_testkit::program::wait_until("nginx listens", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        let url = format!("http://127.0.0.1:{port}/");
        Some(Self { child, log: folder.join("access.log"), url })
    }

    /// Time, path and status of each request so far, at least this many.
    fn lines(&self, at_least: usize) -> Vec<(f64, String, u16)> {
        let read = || std::fs::read_to_string(&self.log).unwrap_or_default();
        plimsoll_testkit::program::wait_until("nginx has logged", || {
            read().lines().count() >= at_least
        });
        let parsed = |line: &str| {
            let mut parts = line.split(' ');
            let mut next = || parts.next().unwrap();
            (next().parse().unwrap(), next().to_owned(), next().parse().unwrap())
        };
        read().lines().map(parsed).collect()
    }
}

impl Drop for LoggedNginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
