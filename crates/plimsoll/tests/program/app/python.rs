//! Application transactions on a server that shares no line with ours: the one in sixty lines of
//! Python that `docs/app-protocol.md` points to.

use std::collections::BTreeSet;
use std::process::Command;

use plimsoll_testkit::peers::require_peer;
use serde_json::Value;

use plimsoll_testkit::program::{Ended, Served, plimsoll, result, short};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/app_server.py");

/// The server in Python on a free port, or `None` without Python.
fn serve() -> Option<Served> {
    let mut command = Command::new(require_peer("python3")?);
    command.args([SERVER, "0"]);
    Some(Served::start(command))
}

/// Runs `suite` with two points; its result, in which nothing failed and every client worked.
#[track_caller]
fn measured(python: &Served, suite: &str, more: &[&str]) -> Value {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("run");
    let measure = ["--set", "profiles.quick.measure=1s"];
    let patient = ["--points", "1,4", "--set", "profiles.quick.drain=20s"];
    let more = [&patient[..], &measure, more].concat();
    let ended: Ended = plimsoll(&short(suite, &python.url, &bundle, &more));
    // A busy machine breaks rules about time.
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let result = result(&bundle);
    for (point, clients) in result["points"].as_array().unwrap().iter().zip([1, 4]) {
        assert_eq!(point["errors"], serde_json::json!({}), "{ended:?}");
        assert_eq!(point["clients_participating"], clients, "{ended:?}");
        assert!(point["achieved_ops_per_s"].as_f64().unwrap() > 0.0);
    }
    result
}

/// Names of the ops that were done at either point, in order.
fn done(result: &Value) -> BTreeSet<&str> {
    let points = result["points"].as_array().unwrap();
    let ops = points.iter().flat_map(|point| point["ops"].as_object().unwrap());
    ops.filter(|(_, op)| op["count"].as_u64().is_some_and(|count| count > 0))
        .map(|(name, _)| name.as_str())
        .collect()
}

#[test]
fn a_server_in_sixty_lines_of_python_serves_the_whole_suite() {
    let Some(python) = serve() else { return };
    let result = measured(&python, "transactions", &["--set", "workload.work=2"]);
    assert_eq!(
        done(&result).into_iter().collect::<Vec<_>>(),
        ["client/server", "processor", "random read", "random write", "server/client"]
    );
    // The reads' checksums are over content that no server could guess.
    let points = result["points"].as_array().unwrap();
    assert!(points.iter().map(|point| point["verified"].as_u64().unwrap()).sum::<u64>() > 0);
}

#[test]
fn the_kinds_beyond_the_method_are_served_too() {
    let Some(python) = serve() else { return };
    let set = ["sequential_read", "sequential_write", "append"]
        .map(|kind| format!("workload.mix.{kind}=1"));
    let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
    let result = measured(&python, "transactions-disk", &set);
    let names = done(&result);
    for name in ["append", "random read", "sequential read", "sequential write"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
}

#[test]
fn segments_are_filled_beforehand_and_found_in_order() {
    let Some(python) = serve() else { return };
    let scaled = ["--set", "workload.segment_mib=1"];
    let prepare = |written: &str| {
        let mut arguments = vec!["prepare", "transactions", &python.url, "--peak", "3"];
        arguments.extend(["--progress", "none"]);
        arguments.extend(scaled);
        plimsoll(&arguments).check(0, &["the file set for 3 clients is complete", written]);
    };
    prepare("3.00 MiB written");
    prepare("0 B written");
    plimsoll(&["clean", &python.url]).check(2, &["lie in the server's own directory"]);
}

#[test]
fn a_segment_that_the_server_does_not_allow_ends_the_run_before_its_first_point() {
    let Some(python) = serve() else { return };
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("run");
    let set = ["--points", "1", "--set", "workload.segment_mib=8000"];
    plimsoll(&short("transactions", &python.url, &bundle, &set))
        .check(3, &["allows no data segment of 500 MiB", "lower workload.segment_mib"]);
}
