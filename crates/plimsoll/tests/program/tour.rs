//! A run from end to end on servers of our own, and the commands on its bundle.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use plimsoll_testkit::program::{Served, broken_rules, command, plimsoll, result, short, signal};

/// Room for work and its replies on a machine that stands still now and then.
const ROOMY: [&str; 4] =
    ["--set", "profiles.quick.measure=1s", "--set", "profiles.quick.drain=10s"];

#[test]
fn a_run_on_the_builtin_server_leaves_a_bundle_that_verifies() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let dir = bundle.to_str().unwrap();
    let more = [&["--points", "50,100"], &ROOMY[..]].concat();
    let run = plimsoll(&short("web-static", "builtin:", &bundle, &more));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let result = result(&bundle);
    let points = result["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    for point in points {
        assert_eq!(point["errors"].as_object().unwrap().len(), 0, "{point}");
        assert!(point["achieved_ops_per_s"].as_f64().unwrap() > 0.0);
    }
    assert!(!broken_rules(&result).contains(&"incomplete".to_owned()));
    let deviations = result["departures"].to_string();
    assert!(deviations.contains("access log: none; the method has every request"), "{deviations}");
    check_method(&result);
    let software = &result["disclosure"]["targets"][0]["software"];
    assert!(software.as_str().unwrap().contains("plimsoll serve web"), "{software}");

    let verify = plimsoll(&["verify", dir]);
    assert_eq!(verify.code, run.code);
    verify.check(run.code.unwrap(), &["Every file is as the run left it."]);

    let before = std::fs::read(bundle.join("result.json")).unwrap();
    std::fs::remove_file(bundle.join("result.json")).unwrap();
    let analyse = plimsoll(&["analyse", dir, "--json"]);
    assert_eq!(analyse.code, run.code);
    assert_eq!(std::fs::read(bundle.join("result.json")).unwrap(), before);
    assert_eq!(analyse.out.as_bytes(), before);

    let [md, csv, svg] = ["r.md", "csv", "svg"].map(|name| temp_dir.path().join(name));
    let [md_text, csv_text, svg_text] = [&md, &csv, &svg].map(|path| path.to_str().unwrap());
    plimsoll(&["report", dir, "--md", md_text, "--csv", csv_text, "--svg", svg_text])
        .check(0, &["r.md", "throughput.svg"]);
    let text = std::fs::read_to_string(&md).unwrap();
    assert!(text.contains("web-static") && text.contains("](<svg/throughput.svg>)"), "{text}");
    assert!(std::fs::read_dir(csv).unwrap().count() > 0);
    let heat = std::fs::read_to_string(svg.join("response-over-time.svg")).unwrap();
    assert!(heat.starts_with("<svg xmlns=") && heat.contains("class=\"heat h1\""), "{heat}");
    let compared = plimsoll(&["compare", dir, dir]);
    compared.check(0, &["one run each", "left out"]);
    assert!(!compared.out.contains("× 1."), "an invalid run is not compared: {}", compared.out);

    let journal = bundle.join("journal.jsonl");
    let changed =
        std::fs::read_to_string(&journal).unwrap().replacen("\"seed\":1876", "\"seed\":1877", 1);
    std::fs::write(&journal, changed).unwrap();
    let changed = "journal.jsonl was changed after the run";
    plimsoll(&["verify", dir]).check(1, &[changed]);
    // Neither deriving nor rendering again may hide it.
    plimsoll(&["analyse", dir]);
    plimsoll(&["report", dir]).check(0, &["report.html"]);
    plimsoll(&["verify", dir]).check(1, &[changed]);
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, text.replacen("\"event\"", "\"evnt\"", 1)).unwrap();
    plimsoll(&["verify", dir]).check(1, &[changed]);
}

#[test]
fn a_file_without_a_directory_is_written_where_the_user_stands() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    plimsoll(&short("web-url", "builtin:", &bundle, &["--clients", "1"]));
    let status = command(&["report", "b", "--md", "r.md"])
        .current_dir(temp_dir.path())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    assert!(temp_dir.path().join("r.md").exists());
}

#[test]
fn json_is_alone_on_standard_output() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let run = plimsoll(&short("web-url", "builtin:", &bundle, &["--clients", "2", "--json"]));
    let parsed: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(parsed["format"], 1);
    assert_eq!(parsed["points"][0]["requested"], 2.0);
    assert!(run.err.contains("web-url"));
}

#[test]
fn nginx_is_started_with_a_file_set_and_stopped() {
    if plimsoll_testkit::peers::require_peer("nginx").is_none() {
        return;
    }
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let set = ["--points", "50", "--set", "workload.file_set.directories=1"];
    let more = [&set[..], &ROOMY].concat();
    let run = plimsoll(&short("web-static", "managed:nginx", &bundle, &more));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let result = result(&bundle);
    assert_eq!(result["points"][0]["errors"].as_object().unwrap().len(), 0, "{result}");
    let target = &result["disclosure"]["targets"][0];
    assert!(target["software"].as_str().unwrap().starts_with("nginx"), "{target}");
    assert!(target["configuration"].as_str().unwrap().contains("listen"), "{target}");
}

#[test]
fn a_list_of_urls_and_an_open_rate_are_taken_from_the_command_line() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let list = temp_dir.path().join("urls.txt");
    std::fs::write(&list, "# two\n3 /bytes/100\n1 /bytes/200\n").unwrap();
    let open = ["--rate", "100", "--for", "1s", "--urls", list.to_str().unwrap()];
    let more = [&open[..], &ROOMY[2..]].concat();
    let run = plimsoll(&short("web-url", "builtin:", &bundle, &more));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let result = result(&bundle);
    let ops = result["points"][0]["ops"].as_object().unwrap();
    assert_eq!(ops.keys().collect::<Vec<_>>(), ["GET /bytes/100", "GET /bytes/200"]);
    assert_eq!(result["points"][0]["errors"].as_object().unwrap().len(), 0, "{result}");
}

#[test]
fn a_prepared_directory_is_served_and_measured_twice() {
    let temp_dir = tempfile::tempdir().unwrap();
    let (www, bundle) = (temp_dir.path().join("www"), temp_dir.path().join("b"));
    let root = www.to_str().unwrap();
    plimsoll(&["prepare", "web-static", root, "--peak", "0.05", "--seed", "5"]).check(0, &[root]);
    let server = Served::with("web", &["--root", root]);
    let more = [&["--points", "40", "--repeat", "2"], &ROOMY[..]].concat();
    let run = plimsoll(&short("web-static", &server.url, &bundle, &more));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    for number in [1, 2] {
        let result = result(&temp_dir.path().join(format!("b-{number}")));
        let point = &result["points"][0];
        assert_eq!(point["errors"].as_object().unwrap().len(), 0, "{point}");
        let deviations = result["departures"].to_string();
        assert!(deviations.contains("the server holds 1"), "{deviations}");
        check_method(&result);
        let runs = parameter(&result, "generator.runs");
        assert_eq!(runs["value"], format!("run {number} of 2; each is reported"));
    }
    signal(server.child(), rustix::process::Signal::INT);
    assert_eq!(server.ended().code, Some(0), "a server stopped by Ctrl-C has done its work");
}

fn largest_file(below: &Path) -> PathBuf {
    let directories = std::fs::read_dir(below).unwrap().map(|entry| entry.unwrap().path());
    let files = directories.filter(|path| path.is_dir()).flat_map(|directory| {
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path())
    });
    files.max_by_key(|path| path.metadata().unwrap().len()).unwrap()
}

/// A row of the table of the method.
fn parameter<'r>(result: &'r Value, key: &str) -> &'r Value {
    let table = result["method"].as_array().unwrap();
    table.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("{key}"))
}

/// Every parameter of a shipped suite has an origin, and the deviations are those of the table.
fn check_method(result: &Value) {
    let table = result["method"].as_array().unwrap();
    assert!(table.len() > 20, "{table:?}");
    for row in table.iter().filter(|row| row["key"] != "generator.runs") {
        assert!(row["said"].as_str().is_some_and(|text| !text.is_empty()), "no origin: {row}");
    }
    let named: Vec<&Value> = table.iter().map(|row| &row["departure"]).collect();
    let deviations = result["departures"].as_array().unwrap();
    assert!(deviations.iter().all(|deviation| named.contains(&deviation)), "{deviations:?}");
    for deviation in deviations.iter().filter_map(Value::as_str) {
        let row = table.iter().find(|row| row["departure"] == deviation).unwrap();
        let of_method = deviation.contains("the method has");
        let origin = row["origin"].as_str().unwrap();
        assert_eq!(of_method, ["source", "public"].contains(&origin), "{row}");
    }
}

#[test]
fn of_several_runs_the_last_may_be_the_one_that_counts() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let more = ["--points", "50", "--repeat", "2", "--report", "last"];
    let run = plimsoll(&short("web-static", "builtin:", &bundle, &[&more[..], &ROOMY].concat()));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    for number in [1, 2] {
        let result = result(&temp_dir.path().join(format!("b-{number}")));
        let runs = parameter(&result, "generator.runs")["value"].as_str().unwrap().to_owned();
        assert!(runs.starts_with(&format!("run {number} of 2; the last is reported")), "{runs}");
    }
    assert!(!run.out.contains("b-1"), "only the last is shown: {}", run.out);
    assert!(run.out.contains("b-2") && run.err.contains("b-1"), "{run:?}");
    plimsoll(&["run", "web-static", "builtin:", "--report", "last"]).check(2, &["--repeat 3"]);
}

#[test]
fn a_file_set_is_read_before_the_first_point_where_the_suite_wants_it_warm() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let more = ["--points", "50", "--set", "conditioning=warm"];
    let run = plimsoll(&short("web-static", "builtin:", &bundle, &[&more[..], &ROOMY].concat()));
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    let result = result(&bundle);
    assert_eq!(parameter(&result, "conditioning")["value"], "warm");
    let deviations = result["departures"].to_string();
    assert!(deviations.contains("warm; the suite has as_found"), "{deviations}");

    // A file that hardly any request is for is missed all the same.
    let www = temp_dir.path().join("www");
    let root = www.to_str().unwrap();
    plimsoll(&["prepare", "web-static", root, "--peak", "0.05"]).check(0, &[root]);
    std::fs::remove_file(largest_file(&www)).unwrap();
    let server = Served::with("web", &["--root", root]);
    let bundle = temp_dir.path().join("holes");
    let more = ["--points", "1", "--set", "conditioning=warm"];
    plimsoll(&short("web-static", &server.url, &bundle, &more))
        .check(3, &["the file set was being read"]);
    signal(server.child(), rustix::process::Signal::INT);
    server.ended().check(0, &[]);
    let nothing = ["run", "web-url", "http://127.0.0.1:9/", "--set", "conditioning=warm"];
    let refused = plimsoll(&[&nothing[..], &["--no-check"]].concat());
    assert!(matches!(refused.code, Some(2 | 3)), "{refused:?}");
}
