//! `plimsoll scale`: a run for each step, a table of them, and a server that is limited to its
//! step.

use std::path::Path;

use serde_json::Value;

use plimsoll_testkit::program::{Ended, plimsoll, result, wait_until};

fn scale(resource: &str, out: &Path, more: &[&str]) -> Ended {
    let mut arguments = vec!["scale", "transactions-processor", "builtin:", "--over", resource];
    arguments.extend(["--out", out.to_str().unwrap(), "--profile", "quick", "--points", "2"]);
    arguments.extend(["--progress", "plain", "--workers", "1"]);
    arguments.extend(["--set", "profiles.quick.warm_up=50ms"]);
    arguments.extend(["--set", "profiles.quick.measure=300ms"]);
    arguments.extend(["--set", "profiles.quick.drain=5s"]);
    arguments.extend(more);
    plimsoll(&arguments)
}

/// Control groups whose server has ended. Those of other tests go with their runs.
fn groups_left() -> Vec<String> {
    let mut left = Vec::new();
    for directory in ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory"] {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        left.extend(names.filter(|name| name.starts_with("plimsoll-scale-")));
    }
    let has_ended = |name: &String| {
        let pid = name.rsplit('-').next().unwrap();
        !Path::new("/proc").join(pid).exists()
    };
    left.retain(has_ended);
    left
}

#[test]
fn each_step_has_a_bundle_a_row_and_a_place_in_the_document() {
    let temp_dir = tempfile::tempdir().unwrap();
    let out = temp_dir.path().join("scaled");
    let ended = scale("threads=1,2", &out, &["--force", "--json"]);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    for (step, expected) in [("threads-1", "1 service threads"), ("threads-2", "2 service threads")]
    {
        let setup = result(&out.join(step))["disclosure"]["setup"].to_string();
        assert!(setup.contains("server held to") && setup.contains(expected), "{setup}");
    }
    let document: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        (&document["format"], &document["suite"]),
        (&1.into(), &"transactions-processor".into())
    );
    let experiment = &document["experiment"];
    let factor = &experiment["factors"][0];
    assert_eq!((&factor["name"], &factor["levels"][1]["value"]), (&"threads".into(), &2.0.into()));
    let effect = &experiment["effects"][0];
    let table = std::fs::read_to_string(out.join("scale.md")).unwrap();
    assert!(table.contains("| threads |"), "{table}");
    // A busy machine may leave a step without a throughput.
    if let (Some(ratio), Some(efficiency)) =
        (effect["ratio"].as_f64(), effect["efficiency"].as_f64())
    {
        assert!((efficiency - ratio / 2.0).abs() < 1e-9, "{effect}");
        assert!(table.contains("efficiency"), "{table}");
    }
    assert_eq!(std::fs::read_to_string(out.join("scale.json")).unwrap(), ended.out);
    let page = std::fs::read_to_string(out.join("scale.html")).unwrap().replace("&#x2f;", "/");
    for step in ["threads-1", "threads-2"] {
        let report = format!("{step}/report.html");
        assert!(page.contains(&format!("href=\"{report}\"")), "{report}");
        assert!(out.join(&report).is_file(), "{report}");
    }
    assert!(page.contains("transactions-processor over threads"));
}

#[test]
fn repeats_are_made_in_an_order_of_their_own_and_kept_below_their_step() {
    let temp_dir = tempfile::tempdir().unwrap();
    let out = temp_dir.path().join("scaled");
    let ended = scale("threads=1,2", &out, &["--force", "--repeat", "2"]);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    assert!(ended.err.contains("run 4 of 4 (repeat 2 of 2), threads "), "{ended:?}");
    assert!(out.join("threads-2/2/report.html").is_file());
}

#[test]
fn a_fraction_of_a_core_is_a_quota_that_goes_with_its_server() {
    let temp_dir = tempfile::tempdir().unwrap();
    let ended = scale("cores=0.5", &temp_dir.path().join("scaled"), &[]);
    if ended.code == Some(3) {
        let refused = ["control group", "cores were asked for"];
        assert!(refused.iter().any(|part| ended.err.contains(part)), "{ended:?}");
        eprintln!("skipped: {}", ended.err);
        return;
    }
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    assert!(ended.out.contains("over cores"), "{ended:?}");
    wait_until("the control groups are gone", || groups_left().is_empty());
}

#[test]
fn what_cannot_be_scaled_is_refused() {
    let temp_dir = tempfile::tempdir().unwrap();
    let out = temp_dir.path().join("scaled");
    scale("cores=2048", &out, &[]).check(3, &["2048 cores were asked for", "take fewer cores"]);
    scale("disks=2", &out, &[]).check(2, &["\"disks\" cannot be scaled", "threads=1,4,16"]);
    scale("cores=none", &out, &[]).check(2, &["\"none\" is no number of cores"]);
    let url = ["scale", "web-static", "http://127.0.0.1:9/", "--over", "cores=1"];
    plimsoll(&url).check(2, &["so it must start it", "builtin: or managed:NAME"]);
    let threads = ["scale", "web-static", "builtin:", "--over", "threads=2"];
    // Nothing was made there so far.
    plimsoll(&[&threads[..], &["--out", out.to_str().unwrap()]].concat())
        .check(2, &["is not ours to choose"]);
}
