//! Compares groups of runs, made alternately or one by one.
//!
//! A build with debug assertions measures nothing, so its runs are invalid: these comparisons are
//! forced, and marked.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::listening::Listening;
use plimsoll_testkit::program::{
    command, plimsoll, points_finished, result, short, signal, wait_for, wait_until,
};

const LOADS: [&str; 2] = ["--rate", "50,100"];
/// Long relative to the delays of a busy machine, and in windows with ops enough for a median.
const FAST: Duration = Duration::from_millis(40);
const SLOW: Duration = Duration::from_millis(240);
const WINDOW: [&str; 4] =
    ["--set", "profiles.quick.measure=1s", "--set", "profiles.quick.drain=2s"];

/// Flags of short load points for a verb other than run.
fn quick<'a>(arguments: &[&'a str], out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let of_run = short("web-url", "", out, more);
    arguments.iter().copied().chain(of_run[3..].iter().copied()).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn figure<'v>(comparison: &'v Value, name: &str, load: Option<f64>) -> &'v Value {
    let rows = comparison["figures"].as_array().unwrap();
    let matched = rows.iter().find(|row| row["figure"] == name && row["load"].as_f64() == load);
    matched.unwrap_or_else(|| panic!("no {name} at {load:?} in {comparison}"))
}

#[test]
fn repeats_are_groups_and_a_slower_server_is_told_with_its_interval() {
    let (server, temp_dir) = (Listening::start_slow(FAST), tempfile::tempdir().unwrap());
    let slow = Listening::start_slow(SLOW);
    let out = |name: &str| temp_dir.path().join(name);
    for (name, url) in [("before", &server.url), ("after", &slow.url)] {
        let flags = [&LOADS[..], &WINDOW, &["--repeat", "3"]].concat();
        plimsoll(&short("web-url", url, &out(name), &flags)).check(1, &[]);
    }
    let (before, after, html) = (out("before"), out("after"), out("c.html"));
    let compared = |more: &[&str]| {
        let names = ["compare", text(&before), "--against", text(&after), "--json"];
        plimsoll(&[&names[..], more].concat())
    };
    let plain = compared(&[]);
    plain.check(0, &["is not valid (debug_build", "left out"]);
    let junit = out("junit.xml");
    let flags = ["--force", "--html", text(&html), "--junit", text(&junit)];
    let gates = ["--fail-if", "p50 > 1.5x", "--fail-if", "p50 > 900x"];
    let forced = compared(&[&flags[..], &gates].concat());
    forced.check(1, &["Forced", "p50 > 1.5x: failed", "p50 > 900x: held"]);
    let document: Value = serde_json::from_str(&forced.out).unwrap();
    assert_eq!(document["groups"][1]["runs"].as_array().unwrap().len(), 3);
    let ratio = &figure(&document, "p50", Some(50.0))["ratios"][0];
    assert_eq!((&ratio["claim"], &ratio["method"]), (&"differs".into(), &"welch".into()));
    assert!(ratio["interval"][0].as_f64().unwrap() > 1.5, "{ratio}");
    let page = std::fs::read_to_string(html).unwrap();
    assert!(page.contains("Forced: these runs") && page.contains("<svg"), "{page}");
    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(xml.contains("name=\"p50 &gt; 1.5x in "), "{xml}");
    // A side with one run: nothing could decide a condition, so none is evaluated.
    let one = out("before-1");
    let arguments = ["compare", text(&one), "--against", text(&after), "--fail-if", "p50 > 1.05x"];
    let few = plimsoll(&[&arguments[..], &["--force"]].concat());
    let like = format!("--like {0} --repeat 2 --out {0}-more", text(&one));
    few.check(2, &["'p50 > 1.05x'", "needs 3 valid runs a side", "plimsoll run web-url", &like]);
    assert_eq!(few.err.matches("plimsoll run ").count(), 1, "the other side has three");
    plimsoll(&arguments).check(2, &["--repeat 3", "plimsoll run web-url"]);
    // A third label, and one run of it: a ratio, and nothing claimed.
    let third = format!("third={}", text(&temp_dir.path().join("before-1")));
    let labelled = compared(&["--force", "--label", &third]);
    labelled.check(0, &["third compared with", "no claim: too few runs"]);
    // The same as a page, with no more than the bundles' names.
    let bundles = [out("before-1"), out("after-1")];
    plimsoll(&["report", text(&bundles[0]), text(&bundles[1])]).check(0, &["comparison.html"]);
    assert!(temp_dir.path().join("comparison.html").exists());
}

#[test]
fn runs_of_different_methods_are_refused_and_one_like_another_is_not() {
    let (server, temp_dir) = (Listening::start(), tempfile::tempdir().unwrap());
    let out = |name: &str| temp_dir.path().join(name);
    let run = |name: &str, more: &[&str]| {
        let made = plimsoll(&short("web-url", &server.url, &out(name), more));
        assert_eq!(made.code, Some(1), "{made:?}");
    };
    run("a", &[&LOADS[..], &["--seed", "7"]].concat());
    run("b", &LOADS);
    let (a, b, like) = (out("a"), out("b"), out("like"));
    plimsoll(&["compare", text(&a), text(&b)]).check(2, &["seeds differ", "has 7", "--force"]);
    let md = out("c.md");
    plimsoll(&["compare", text(&a), text(&b), "--force", "--md", text(&md)])
        .check(0, &["forced: seeds differ"]);
    assert!(std::fs::read_to_string(md).unwrap().contains("seeds differ"));
    let again = ["run", "web-url", &server.url, "--like", text(&a), "--out", text(&like)];
    assert_eq!(plimsoll(&again).code, Some(1));
    let loads = |of: &Path| -> Vec<f64> {
        let result = result(of);
        let points = result["points"].as_array().unwrap();
        points.iter().map(|point| point["requested"].as_f64().unwrap()).collect()
    };
    assert_eq!((loads(&like), result(&like)["seed"].as_u64()), (loads(&a), Some(7)));
    plimsoll(&["compare", text(&a), text(&like)]).check(0, &["one run"]);
    let other = ["run", "web-static", "builtin:", "--like", text(&a)];
    plimsoll(&other).check(2, &["a run of suite web-url"]);
    plimsoll(&["run", "web-url", &server.url, "--fail-if", "p99 > 1.05x"])
        .check(2, &["one run has no ratio"]);
    plimsoll(&["compare", text(&a)]).check(2, &["at least two"]);
    plimsoll(&["compare", text(&a), text(temp_dir.path().join("none").as_path())])
        .check(2, &["neither the bundle of a run"]);
}

#[test]
fn versus_makes_pairs_in_turn_and_tells_a_slower_server() {
    let (server, temp_dir) = (Listening::start_slow(FAST), tempfile::tempdir().unwrap());
    let slow = Listening::start_slow(SLOW);
    let out = temp_dir.path().join("v");
    let gates = ["--force", "--fail-if", "p50 > 1.5x", "--fail-if", "errors > 50%", "--json"];
    let flags = [&LOADS[..], &WINDOW, &["--repeat", "3"], &gates].concat();
    let made = plimsoll(&quick(&["versus", "web-url", &server.url, &slow.url], &out, &flags));
    made.check(1, &["3 pairs of runs made in turn", "p50 > 1.5x: failed", "--paired"]);
    let started = |side: &str, number: u32| {
        let result = result(&out.join(side).join(number.to_string()));
        result["started"].as_str().unwrap().to_owned()
    };
    let order = [("a", 1), ("b", 1), ("b", 2), ("a", 2), ("a", 3), ("b", 3)];
    let instants: Vec<String> = order.iter().map(|(side, n)| started(side, *n)).collect();
    assert!(instants.is_sorted(), "{instants:?}");
    assert_eq!(result(&out.join("b/1"))["gates"].as_array().unwrap().len(), 1);
    let document: Value = serde_json::from_str(&made.out).unwrap();
    let ratio = &figure(&document, "p50", Some(100.0))["ratios"][0];
    assert_eq!((&ratio["claim"], &ratio["method"]), (&"differs".into(), &"paired_t".into()));
    for file in ["versus.html", "versus.md", "versus.json"] {
        assert!(out.join(file).exists(), "{file}");
    }
    let (a, b) = (out.join("a"), out.join("b"));
    let again = ["compare", text(&a), "--against", text(&b), "--paired", "--force", "--json"];
    let again: Value = serde_json::from_str(&plimsoll(&again).out).unwrap();
    assert_eq!(again["figures"], document["figures"]);
}

#[test]
fn versus_that_is_ended_or_fails_loses_nothing() {
    let (server, temp_dir) = (Listening::start(), tempfile::tempdir().unwrap());
    let out = temp_dir.path().join("v");
    let arguments = ["versus", "web-url", &server.url, &server.url];
    let child = command(&quick(&arguments, &out, &[&LOADS[..], &["--repeat", "9"]].concat()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the second pair has begun", || points_finished(&out.join("b/2")) >= 1);
    signal(&child, Signal::INT);
    wait_for(child).check(4, &["ratios only"]);
    assert!(out.join("versus.html").exists());
    plimsoll(&["verify", text(&out.join("a/1"))]).check(1, &["Every file is as"]);
    plimsoll(&["report", text(&out.join("b/2"))]).check(0, &["report.html"]);

    let gone = temp_dir.path().join("gone");
    let arguments = ["versus", "web-url", &server.url, "http://127.0.0.1:9/"];
    plimsoll(&quick(&arguments, &gone, &LOADS)).check(3, &["127.0.0.1:9"]);
    plimsoll(&["verify", text(&gone.join("a/1"))]).check(1, &["Every file is as"]);
}

#[test]
fn versus_refuses_what_it_cannot_compare_before_any_load() {
    let arguments = ["versus", "web-url", "http://127.0.0.1:9/", "http://127.0.0.1:9/"];
    let refused = |more: &[&str]| plimsoll(&[&arguments[..], more].concat());
    refused(&["--set-b", "load.mode=open"]).check(2, &["open load"]);
    refused(&["--fail-if", "p99 > 1.0y"]).check(2, &["with its unit"]);
    let few = ["--repeat", "2", "--fail-if", "p99 > 1.05x"];
    refused(&few).check(2, &["'p99 > 1.05x'", "needs 3 runs a side", "--repeat 3"]);
    let scale = ["scale", "web-static", "builtin:", "--over", "cores=1,2", "--fail-if"];
    plimsoll(&[&scale[..], &["peak < 0.9x"]].concat()).check(2, &["--repeat 3"]);
    plimsoll(&arguments[..3]).check(2, &["TARGET_B"]);
}
