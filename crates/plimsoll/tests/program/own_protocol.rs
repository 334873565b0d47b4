//! A toy protocol in an example of its own: the program runs it as it runs its own.

use std::process::Command;

use plimsoll_testkit::program::example;

#[test]
fn a_protocol_from_elsewhere_runs_with_suite_server_and_report() {
    let temp_dir = tempfile::tempdir().unwrap();
    let out = temp_dir.path().join("run");
    let run = Command::new(example("echo"))
        .args(["run", "echo", "builtin:", "--profile", "quick", "--progress", "plain"])
        .args(["--points", "1,2", "--set", "profiles.quick.warm_up=50ms"])
        .args(["--set", "profiles.quick.measure=300ms", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    // A busy machine may make it invalid.
    assert!(matches!(run.status.code(), Some(0 | 1)), "{run:?}");
    let result = std::fs::read_to_string(out.join("result.json")).unwrap();
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    for point in result["points"].as_array().unwrap() {
        assert!(point["achieved_ops_per_s"].as_f64().unwrap() > 0.0, "{point}");
        assert_eq!(point["errors"], serde_json::json!({}), "{point}");
    }
    assert!(out.join("report.html").is_file());
    let suites = Command::new(example("echo")).arg("suites").output().unwrap();
    assert!(String::from_utf8_lossy(&suites.stdout).contains("Eight bytes there and back"));
}
