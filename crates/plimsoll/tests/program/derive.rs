//! Loads from what a server recorded: derived, and run again. That a replay keeps the times of the
//! log is in `replay.rs`.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_testkit::program::{Ended, plimsoll, result, short};
use serde_json::Value;

use crate::web_peers::WebPeer;

/// Derives a load into `out`.
fn derive(log: &Path, out: &Path, more: &[&str]) -> Ended {
    let (log, out) = (log.to_str().unwrap(), out.to_str().unwrap());
    plimsoll(&[&["derive", log, "--out", out], more].concat())
}

#[track_caller]
fn facts(out: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(out.join("derived.json")).unwrap()).unwrap()
}

/// nginx logs a load of ours; what is derived from its log is that load, and runs on it.
#[test]
fn a_log_of_nginx_becomes_a_model_that_runs_on_it() {
    let Some(nginx) = WebPeer::nginx() else { return };
    let folder = tempfile::tempdir().unwrap();
    let journey = folder.path().join("journey.toml");
    let pages = r#"
[[page]]
name = "home"
path = "/"
think = "constant 20ms"
parallel = 2
[[page.request]]
path = "/look.css"
repeat = "2"
[[page]]
name = "item"
path = "/item/{{int 1 40}}?from=home"
next = { item = 0.5, end = 0.5 }
"#;
    std::fs::write(&journey, pages).unwrap();
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let run = ["--journey", journey.to_str().unwrap(), "--users", "4", "-n", "600"];
    plimsoll(&short("web-users", &url, &folder.path().join("first"), &run));

    let out = folder.path().join("load");
    let ended = derive(&nginx.combined_log(), &out, &["--keep"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let facts = facts(&out);
    let log = std::fs::read_to_string(nginx.combined_log()).unwrap();
    let lines = |part: &str| log.lines().filter(|line| line.contains(part)).count() as u64;
    assert_eq!(facts["requests"], lines("GET /"), "{ended:?}");
    let page = |name: &str| {
        let pages = facts["pages"].as_array().unwrap();
        pages.iter().find(|page| page["name"] == name).unwrap()["views"].as_u64().unwrap()
    };
    assert_eq!((page("home"), page("item")), (lines("GET / HTTP"), lines("GET /item/")));

    let model = out.join("model.toml");
    let check = plimsoll(&["check", model.to_str().unwrap()]);
    assert_eq!(check.code, Some(0), "{check:?}");
    let bundle = folder.path().join("second");
    let more = ["--set", "load.clients=50", "-n", "300"];
    let ended = plimsoll(&short(model.to_str().unwrap(), &url, &bundle, &more));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let point = result(&bundle)["points"][0].take();
    assert_eq!(point["errors"], serde_json::json!({}), "{ended:?}");
    assert!(point["ops"]["home"]["count"].as_u64() > Some(0), "{ended:?}");
    let log = std::fs::read_to_string(nginx.combined_log()).unwrap();
    let is_of_model = |line: &str| {
        ["GET / ", "GET /look.css ", "GET /item/"].iter().any(|path| line.contains(path))
    };
    assert!(log.lines().all(is_of_model));
}

#[test]
fn a_hashed_model_runs_on_a_server_of_ours_with_its_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let mut text = String::new();
    for n in 0..400 {
        let (minute, second) = (n / 60, n % 60);
        for (path, bytes) in [("/private", 1_234), (&*format!("/doc/{}", n % 25), 5_000 + n % 25)] {
            _ = writeln!(
                text,
                "10.0.0.{} - - [10/Oct/2020:10:{minute:02}:{second:02} +0000] \"GET {path} HTTP/1.1\" \
                 200 {bytes} \"-\" \"x\"",
                n % 7
            );
        }
    }
    std::fs::write(&log, text).unwrap();
    let out = folder.path().join("load");
    let ended = derive(&log, &out, &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for file in std::fs::read_dir(&out).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains("private") && !text.contains("/doc/") && !text.contains("10.0.0."));
    }
    let bundle = folder.path().join("b");
    let model = out.join("model.toml");
    let fast = ["--set", "ladder.points=[40]", "-n", "200"];
    let ended = plimsoll(&short(model.to_str().unwrap(), "builtin:", &bundle, &fast));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let point = result(&bundle)["points"][0].take();
    assert_eq!(point["errors"], serde_json::json!({}), "{ended:?}");
    let mean = point["bytes_read"].as_f64().unwrap() / point["response_ns"]["n"].as_f64().unwrap();
    assert!((1_234.0..5_024.0).contains(&mean), "{mean}");
}

#[test]
fn what_is_no_log_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("a.log");
    let out = folder.path().join("load");
    for (bytes, message) in [
        (&b""[..], "every file is empty"),
        (&b"hello\nworld\n"[..], "give the format"),
        (&b"\x1f\x8b\x08\x00"[..], "a.log: cannot read it"),
    ] {
        std::fs::write(&log, bytes).unwrap();
        let ended = derive(&log, &out, &[]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.err.contains(message), "{ended:?}");
        assert!(!out.exists(), "{ended:?}");
    }
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("mine"), "").unwrap();
    let ended = derive(&log, &out, &[]);
    assert!(ended.code == Some(2) && ended.err.contains("name another folder"), "{ended:?}");
    assert!(out.join("mine").exists());
}

/// The counters of a server under the load of the suite give its mix.
#[test]
fn counters_of_an_nfs_server_become_a_suite_with_their_mix() {
    let folder = tempfile::tempdir().unwrap();
    let counters = |name: &str, factor: u64| {
        let counts =
            [0, 110, 10, 270, 70, 70, 180, 90, 10, 0, 0, 0, 10, 0, 0, 0, 20, 90, 10, 1, 0, 50];
        let counts = counts.map(|count| (count * factor).to_string()).join(" ");
        let (read, written) = (180 * 8_192 * factor, 90 * 6_000 * factor);
        let file = folder.path().join(name);
        std::fs::write(&file, format!("io {read} {written}\nproc3 22 {counts}\n")).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let (before, after) = (counters("before", 1), counters("after", 11));
    let out = folder.path().join("load");
    let to = out.to_str().unwrap();
    let ended = plimsoll(&["derive", "--nfs", &before, &after, "--over", "20s", "--out", to]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let facts = facts(&out);
    assert_eq!((&facts["ops"], &facts["left_out"]["fsinfo"]), (&9_900.into(), &10.into()));
    let (bundle, model) = (folder.path().join("b"), out.join("model.toml"));
    let more = ["--set", "profiles.quick.measure=2s", "--set", "profiles.quick.drain=10s"];
    let ended = plimsoll(&short(model.to_str().unwrap(), "builtin:", &bundle, &more));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let point = result(&bundle)["points"][0].take();
    let ops = point["ops"].as_object().unwrap();
    let done: f64 = ops.values().map(|op| op["count"].as_f64().unwrap()).sum();
    assert!(done > 500.0, "{ended:?}");
    for (op, expected) in facts["mix"].as_object().unwrap() {
        let share = ops[op]["count"].as_f64().unwrap() / done;
        let expected = expected.as_f64().unwrap() / 9_900.0;
        // Of a thousand ops; the bound of a longer run is in docs/derive.md.
        assert!((share - expected).abs() < 0.04, "{op}: {share} {expected}");
    }
    let ended = plimsoll(&["derive", "--nfs", &after, &before, "--over", "20s", "--out", to]);
    assert!(ended.code == Some(2), "{ended:?}");
}
