//! `plimsoll scale`: a run for each step, a table of them, and a server that is held to its step.

use std::path::Path;

use serde_json::Value;

use plimsoll_testkit::program::{Ended, plimsoll, result};

fn scale(over: &str, out: &Path, more: &[&str]) -> Ended {
    let mut arguments = vec!["scale", "transactions-processor", "builtin:", "--over", over];
    arguments.extend(["--out", out.to_str().unwrap(), "--profile", "quick", "--points", "2"]);
    arguments.extend(["--progress", "plain", "--workers", "1"]);
    arguments.extend(["--set", "profiles.quick.warm_up=50ms"]);
    arguments.extend(["--set", "profiles.quick.measure=300ms"]);
    arguments.extend(["--set", "profiles.quick.drain=5s"]);
    arguments.extend(more);
    plimsoll(&arguments)
}

/// Groups of control that a server was held by.
fn groups_left() -> Vec<String> {
    let mut left = Vec::new();
    for place in ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory"] {
        let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        left.extend(names.filter(|name| name.starts_with("plimsoll-scale-")));
    }
    left
}

#[test]
fn each_step_has_a_bundle_and_a_row() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("scaled");
    let ended = scale("threads=1,2", &out, &[]);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let table = std::fs::read_to_string(out.join("scale.md")).unwrap();
    assert!(ended.out.contains(&table), "{ended:?}");
    for part in ["| step | ops/s | ratio | efficiency |", "| threads 1 |", "| threads 2 |"] {
        assert!(table.contains(part), "{part:?} in {table}");
    }
    for (step, said) in [("threads-1", "1 service threads"), ("threads-2", "2 service threads")] {
        let setup = result(&out.join(step))["disclosure"]["setup"].to_string();
        assert!(setup.contains("server held to") && setup.contains(said), "{setup}");
    }
}

#[test]
fn json_is_one_document_and_the_page_draws_and_links_its_steps() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("scaled");
    let ended = scale("threads=1,2", &out, &["--json"]);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let document: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(document["format"], 1);
    assert_eq!(document["suite"], "transactions-processor");
    assert_eq!(document["over"], "threads");
    let steps = document["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2);
    // A busy machine may leave a step without a throughput that counts.
    let first = steps.iter().find(|step| step["throughput"].is_number());
    for step in steps {
        let ratio = step["throughput"].as_f64().map(|throughput| {
            let (at, first) = first.map(|first| (&first["value"], &first["throughput"])).unwrap();
            let ratio = throughput / first.as_f64().unwrap();
            (ratio, ratio / (step["value"].as_f64().unwrap() / at.as_f64().unwrap()))
        });
        let told = step["ratio"].as_f64().zip(step["efficiency"].as_f64());
        match (told, ratio) {
            (None, None) => {}
            (Some(told), Some(ratio)) => {
                assert!((told.0 - ratio.0).abs() < 1e-9, "{document}");
                assert!((told.1 - ratio.1).abs() < 1e-9, "{document}");
            }
            _ => panic!("{document}"),
        }
        assert!(step["valid"].is_boolean() && step["limit"]["kind"].is_string());
    }
    assert_eq!(std::fs::read_to_string(out.join("scale.json")).unwrap(), ended.out);
    let page = std::fs::read_to_string(out.join("scale.html")).unwrap();
    for step in steps {
        let report = format!("{}/report.html", step["bundle"].as_str().unwrap());
        assert!(page.contains(&format!("href=\"{report}\"")), "{report}");
        assert!(out.join(&report).is_file(), "{report}");
    }
    assert!(page.contains("transactions-processor over threads"));
    let drawn = steps.iter().all(|step| step["throughput"].is_number());
    assert_eq!(page.contains("<svg"), drawn);
    if drawn {
        for part in ["straight growth", "Efficiency, %"] {
            assert!(page.contains(part), "{part:?}");
        }
    }
}

#[test]
fn a_fraction_of_a_core_is_a_quota_that_goes_with_its_server() {
    let place = tempfile::tempdir().unwrap();
    let ended = scale("cores=0.5", &place.path().join("scaled"), &[]);
    if ended.code == Some(3) {
        let refused = ["control group", "cores were asked for"];
        assert!(refused.iter().any(|part| ended.err.contains(part)), "{ended:?}");
        eprintln!("skipped: {}", ended.err);
        return;
    }
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    assert!(ended.out.contains("| cores 0.5 |"), "{ended:?}");
    assert_eq!(groups_left(), [""; 0]);
}

#[test]
fn what_cannot_be_scaled_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("scaled");
    scale("cores=2048", &out, &[]).check(3, &["2048 cores were asked for", "take fewer cores"]);
    scale("disks=2", &out, &[]).check(2, &["\"disks\" cannot be scaled", "threads=1,4,16"]);
    scale("cores=none", &out, &[]).check(2, &["\"none\" is no number of cores"]);
    let url = ["scale", "web-static", "http://127.0.0.1:9/", "--over", "cores=1"];
    plimsoll(&url).check(2, &["so it must start it", "builtin: or managed:NAME"]);
    let threads = ["scale", "web-static", "builtin:", "--over", "threads=2"];
    plimsoll(&[&threads[..], &["--out", out.to_str().unwrap()]].concat())
        .check(2, &["is not ours to choose"]);
}
