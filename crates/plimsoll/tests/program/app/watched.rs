//! Figures that a server reports itself, and the score of a run.

use std::fs;

use serde_json::Value;

use plimsoll_testkit::program::{plimsoll, result, short};

/// Mean of a resource at the last point.
fn mean(result: &Value, name: &str) -> Option<f64> {
    let points = result["points"].as_array()?;
    let resources = points.last()?["resources"].as_array()?;
    resources.iter().find(|resource| resource["name"] == name)?["mean"].as_f64()
}

#[test]
fn a_run_on_the_reference_server_has_its_threads_and_queue_and_a_score_of_each_mix() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("run");
    // A sample a second: if one comes late or not at all, there are others.
    let measure = ["--set", "profiles.quick.measure=3s"];
    let more = [&["--points", "1,4", "--set", "workload.work=2"], &measure[..]].concat();
    let ended = plimsoll(&short("transactions", "builtin:", &bundle, &more));
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let result = result(&bundle);
    let threads = mean(&result, "server.threads").unwrap();
    assert!(threads >= 48.0, "47 and one per processor: {threads}");
    let busy = mean(&result, "server.threads_busy_mean").unwrap();
    // Four clients keep up to four busy. Time is booked at a request's end, so a request that stood
    // still across a border adds its time before it: at most as much again, unless it took longer
    // than the time between two samples.
    assert!(busy > 0.0 && busy <= 8.0, "{busy}");
    assert!(mean(&result, "server.queue").unwrap() < threads);
    let requests = mean(&result, "server.requests").unwrap();
    assert!(requests > 0.0, "{requests}");
    let csv = fs::read_to_string(bundle.join("monitors/app-server.csv")).unwrap();
    assert!(csv.starts_with("time_unix_ns,point,server,threads,threads_busy,"), "{csv}");
    assert!(csv.contains(",point-02,,"), "{csv}");

    for point in result["points"].as_array().unwrap() {
        let (score, rate) = (&point["score"], &point["achieved_ops_per_s"]);
        let (score, rate) = (score.as_f64().unwrap(), rate.as_f64().unwrap());
        assert!(score >= 0.0 && score <= rate * 1.000_001, "{score} of {rate}");
    }
    assert!(ended.err.contains("score:") || ended.out.contains("score:"), "{ended:?}");
    assert!(result["summary"]["score_note"].is_string());
    let disclosed = fs::read_to_string(bundle.join("disclosure.json")).unwrap();
    assert!(!disclosed.contains("answers no status request"), "{disclosed}");
}

#[test]
fn weights_of_transactions_that_are_none_are_refused_before_anything_is_sent() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bundle = temp_dir.path().join("run");
    let more = ["--set", "score.op_weights.random_raed=2"];
    let ended = plimsoll(&short("transactions", "builtin:", &bundle, &more));
    ended.check(2, &["score.op_weights names \"random_raed\"", "did you mean"]);
    assert!(!bundle.exists());
}
