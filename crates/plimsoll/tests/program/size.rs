//! How big a server must be, from bundles.

use std::path::Path;

use plimsoll_testkit::program::plimsoll;
use serde_json::Value;

fn bundle(name: &str) -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bundles-0.1.0").join(name);
    place.display().to_string()
}

#[test]
fn a_bundle_is_sized_as_text_and_as_json() {
    let bundle = bundle("transactions");
    let flags = ["size", &bundle, "--load", "30k", "--think", "10s", "--adapter-rate", "119MiB"];
    let shown = plimsoll(&flags);
    shown.check(0, &["For 30,000 ops/s", "processors", "adapters", "Peak of 1 core", "Not known:"]);
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
fn a_load_far_beyond_the_measured_ones_and_a_mix_of_suites_are_refused() {
    let [web, transactions] = ["web-static", "transactions"].map(bundle);
    plimsoll(&["size", &web, "--load", "50k"])
        .check(1, &["Refused: ", "more than 2 x", "two sizes"]);
    plimsoll(&["size", &web, &transactions, "--load", "100"])
        .check(1, &["of different suites, web-static and transactions"]);
    plimsoll(&["size", &web, "--load", "100", "--headroom", "1.2"]).check(2, &["--headroom"]);
    plimsoll(&["size", "no/where", "--load", "100"]).check(2, &["no/where", "neither the bundle"]);
}
