//! Conditions under which a run fails.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use plimsoll_testkit::fault_server::{Fault, FaultServer};

use crate::listening::Listening;
use plimsoll_testkit::program::{plimsoll, result, short};

/// The runs of these tests are not valid: a build with debug assertions measures nothing. The
/// outcome of a gate is in the result all the same.
#[test]
fn conditions_are_judged_told_and_kept_with_the_run() {
    let (server, temp_dir) = (Listening::start(), tempfile::tempdir().unwrap());
    let (bundle, junit) = (temp_dir.path().join("b"), temp_dir.path().join("junit.xml"));
    let flags =
        [
            &[
                "--rate",
                "100",
                "--fail-if",
                "max@100 > 1ns",
                "--fail-if",
                "achieved_ops_per_s@100<1",
            ][..],
            &["--fail-if", "errors > 5%", "--junit", junit.to_str().unwrap()],
        ]
        .concat();
    let run = plimsoll(&short("web-url", &server.url, &bundle, &flags));
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.out.contains("max@100 > 1ns: failed"), "{}", run.out);
    assert!(run.out.contains("achieved_ops_per_s@100 < 1: held"), "{}", run.out);
    let states = |bundle: &Path| {
        let gates = result(bundle)["gates"].as_array().unwrap().clone();
        let state = |gate: &serde_json::Value| gate["state"].as_str().unwrap().to_owned();
        gates.iter().map(state).collect::<Vec<_>>()
    };
    let reported = states(&bundle);
    assert_eq!((reported.len(), reported[0].as_str(), reported[1].as_str()), (3, "failed", "held"));
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("name=\"max@100 &gt; 1ns\""), "{xml}");
    // The journal has them, so that a bundle gives the same result again.
    let again = plimsoll(&["analyse", bundle.to_str().unwrap()]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert_eq!(states(&bundle), reported);
    let page = std::fs::read_to_string(bundle.join("report.html")).unwrap();
    assert!(page.contains("Conditions under which the run fails"));
}

/// A server that takes 50 ms, over four connections: 80 ops/s of the 1,500.
#[test]
fn an_overload_is_not_held_and_its_times_are_lower_bounds() {
    let server = FaultServer::with_fixed_body(1, |_| Fault::Late(Duration::from_millis(50)));
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let flags = ["--rate", "1500", "--connections", "4", "--timeout", "30s", "--no-check"];
    let gates = ["--fail-if", "p50@1500 > 1ms", "--fail-if", "p50@1500 > 60s"];
    let run = plimsoll(&short("web-url", &server.url(), &bundle, &[&flags[..], &gates].concat()));
    let result = result(&bundle);
    let point = &result["points"][0];
    assert_eq!(point["not_counted"], "not_held", "{point}");
    assert_eq!(point["errors"], serde_json::json!({}));
    assert!(point["censored"]["unsent"].as_u64().unwrap() > 100, "{point}");
    assert_eq!(point["response_interval_ns"]["p50"], serde_json::Value::Null);
    let states: Vec<_> = result["gates"].as_array().unwrap().iter().map(|g| &g["state"]).collect();
    assert_eq!(states, ["failed", "unsure"]);
    assert!(run.out.contains("p50 ≥\u{a0}") && run.out.contains("were never sent"), "{}", run.out);
    let page = std::fs::read_to_string(bundle.join("report.html")).unwrap();
    assert!(page.contains("≥ marks a lower bound"));
}

#[test]
fn a_condition_that_cannot_be_read_is_refused_before_any_load() {
    let run = |gate: &str| plimsoll(&["run", "web-url", "http://127.0.0.1:9/", "--fail-if", gate]);
    run("p99 > 50").check(2, &["with its unit"]);
    run("p98 > 5ms").check(2, &["no figure of a result"]);
}

#[test]
fn figures_that_a_suite_cannot_have_are_refused_before_any_load() {
    let run =
        |more: &[&str]| plimsoll(&[&["run", "web-url", "http://127.0.0.1:9/"], more].concat());
    run(&["--fail-if", "tpot.p90 > 50ms"]).check(2, &["no streams of output", "web-url"]);
    run(&["--goodput", "first_output<1s"]).check(2, &["no streams of output"]);
    run(&["--fail-if", "goodput < 95%"]).check(2, &["write --goodput"]);
    let searched = ["capacity", "web-url", "http://127.0.0.1:9/", "--within", "chunk_gap.p99<1s"];
    plimsoll(&searched).check(2, &["--within chunk_gap.p99", "no streams of output"]);
}

/// Half of the replies take 50 ms.
#[test]
fn goodput_is_told_of_any_suite() {
    let server = FaultServer::with_fixed_body(1, |request| match request.index % 2 {
        0 => Fault::Late(Duration::from_millis(50)),
        _ => Fault::None,
    });
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("b");
    let flags = ["--rate", "40", "--no-check", "--goodput", "response<45ms"];
    let run = plimsoll(&short("web-url", &server.url(), &bundle, &flags));
    let goodput = &result(&bundle)["points"][0]["goodput"];
    let share = goodput["share_ratio"].as_f64().unwrap();
    assert!((0.2..=0.55).contains(&share), "{goodput}");
    assert_eq!(goodput["limits"]["response"], "45ms");
    assert!(run.out.contains("goodput: requests within response<45ms"), "{}", run.out);
}

#[test]
fn the_action_runs_a_suite_posts_its_report_and_takes_the_exit_code() {
    let (server, temp_dir) = (Listening::start(), tempfile::tempdir().unwrap());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../action/run.sh");
    let summary = temp_dir.path().join("summary.md");
    let act = |fail_if: &str, target: &str, action: &str| {
        Command::new(script)
            .env("RUNNER_TEMP", temp_dir.path())
            .env("GITHUB_ACTION", action)
            .env("GITHUB_STEP_SUMMARY", &summary)
            .env("GITHUB_OUTPUT", temp_dir.path().join("output"))
            .env("PLIMSOLL_PROGRAM", env!("CARGO_BIN_EXE_plimsoll"))
            .env("PLIMSOLL_SUITE", "web-url")
            .env("PLIMSOLL_TARGET", target)
            .env("PLIMSOLL_FAIL_IF", fail_if)
            .env("PLIMSOLL_FLAGS", "--clients\n1\n--for\n200ms\n--profile\nquick")
            .output()
            .unwrap()
    };
    let ended = act("p50 > 1ns\nerrors > 1%", &server.url, "one");
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let posted = std::fs::read_to_string(&summary).unwrap();
    assert!(posted.contains("Conditions under which the run fails"), "{posted}");
    let output = std::fs::read_to_string(temp_dir.path().join("output")).unwrap();
    assert!(output.starts_with("bundle=") && output.contains("one"), "{output}");
    assert_eq!(act("", "http://127.0.0.1:9/", "two").status.code(), Some(3));
    assert_eq!(act("p99", &server.url, "three").status.code(), Some(2));
}
