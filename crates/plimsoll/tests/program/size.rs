//! The size of a server, from bundles.

use std::path::Path;

use plimsoll_testkit::program::plimsoll;
use serde_json::Value;

fn bundle(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bundles-0.1.0").join(name);
    path.display().to_string()
}

#[test]
fn a_bundle_is_sized_as_text_and_as_json() {
    let bundle = bundle("transactions");
    let flags = ["size", &bundle, "--load", "30k", "--think", "10s", "--adapter-rate", "119MiB"];
    let shown = plimsoll(&flags);
    shown.check(
        0,
        &["For 30,000 ops/s", "processors", "adapters", "Where 1 core would be full", "Not known:"],
    );
    let ended = plimsoll(&[&flags[..], &["--within", "p99<50ms", "--json"]].concat());
    ended.check(0, &["For 30,000 ops/s within p99<50ms"]);
    let sizing: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((&sizing["format"], &sizing["refused"]), (&1.into(), &Value::Null));
    let processors = &sizing["processors"];
    let count = processors["count"]["value"].as_f64().unwrap();
    let per_op_ns = processors["per_op"]["value"].as_f64().unwrap();
    assert!((count * 0.7 / (30e3 * per_op_ns / 1e9) - 1.0).abs() < 1e-6, "{processors}");
    assert_eq!(sizing["response"][1]["figure"], "p99");
    assert!(sizing["users"].as_f64().unwrap() > 300e3);
    assert!(sizing["adapters"]["count"]["value"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_load_may_be_users_or_bytes_per_second() {
    let [mix, transactions] = ["disk-mix", "transactions"].map(bundle);
    let json = |flags: &[&str]| -> Value {
        let ended = plimsoll(&[&["size"], flags, &["--json"]].concat());
        ended.check(0, &["For "]);
        serde_json::from_str(&ended.out).unwrap()
    };
    let of_users = json(&[&transactions, "--users", "300k", "--think", "10s"]);
    let load = of_users["asked"]["load_ops_per_s"].as_f64().unwrap();
    assert!((29_990.0..30_000.0).contains(&load), "{load}");
    // 60 clients, each 2 s before about 512 ops: without response time 15,350 ops/s.
    let clients = json(&[&mix, "--users", "300", "--users-per-client", "5"]);
    let load = clients["asked"]["load_ops_per_s"].as_f64().unwrap();
    assert!((14_000.0..15_350.0).contains(&load), "{load}");
    assert!((clients["users"].as_f64().unwrap() - 300.0).abs() < 0.1, "{clients}");
    // 83,521,762 bytes/s were 15,389 ops/s.
    let bytes = json(&[&mix, "--load", "80MiB/s"]);
    let load = bytes["asked"]["load_ops_per_s"].as_f64().unwrap();
    assert!((load / 15_456.0 - 1.0).abs() < 0.01, "{load}");
    plimsoll(&["size", &mix, "--load", "80MiB/s"]).check(0, &["For 80.0 MiB/s (15,4"]);
    let refused = |flags: &[&str], parts: &[&str]| {
        plimsoll(&[&["size"], flags].concat()).check(2, parts);
    };
    refused(&[&transactions, "--load", "80MiB/s"], &["transactions does not count bytes"]);
    refused(&[&transactions, "--users", "300"], &["do not pause", "--think 25s"]);
    refused(&[&mix, "--users", "300"], &["are no users", "--users-per-client 5"]);
    refused(&[&mix, "--users", "300", "--think", "25s"], &["think once before 512 ops"]);
    refused(&[&mix, "--load", "80MiB"], &["for example 200MiB/s"]);
    refused(&[&mix], &["--load <N>|--users <N>"]);
    refused(&[&mix, "--load", "1k", "--users", "300"], &["--users"]);
}

#[test]
fn a_load_far_beyond_the_measured_ones_and_a_mix_of_suites_are_refused() {
    let [web, transactions] = ["web-static", "transactions"].map(bundle);
    plimsoll(&["size", &web, "--load", "50k"])
        .check(1, &["Refused: ", "more than 2 x", "two sizes"]);
    plimsoll(&["size", &web, &transactions, "--load", "100"])
        .check(1, &["of different suites, web-static and transactions"]);
    plimsoll(&["size", &web, "--load", "100", "--headroom", "1.2"]).check(2, &["--headroom"]);
    plimsoll(&["size", &web, "--load", "100", "--memory", "64GiB"])
        .check(0, &["How many disks that memory needs: no load point has a predicted miss ratio"]);
    plimsoll(&["size", &web, "--load", "100", "--memory", "much"]).check(2, &["--memory"]);
    plimsoll(&["size", "no/where", "--load", "100"]).check(2, &["no/where", "neither the bundle"]);
}
