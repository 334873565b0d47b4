//! Bundles that version 0.1.0 made, one of each family of suites: the values in their results stay,
//! except for the named ones.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_testkit::program::{copy, plimsoll, result};
use serde_json::Value;

/// Keys that newer versions add.
const ADDED: [&str; 25] = [
    "censored",
    "compounds",
    "cost",
    "delays",
    "delegations",
    "disks",
    "facts",
    "iterations",
    "limits",
    "only_load",
    "opens",
    "operations",
    "others",
    "p999",
    "page_cache",
    "reason",
    "recalls",
    "reconnected",
    "refused",
    "reopened",
    "response_histogram",
    "sessions_rebuilt",
    "slot_waits",
    "stream_waits",
    "unkept",
];
/// Changes in newer versions, a line each: the headline is called a peak only where the server was
/// saturated, and a wide interval has a warning.
const CHANGES: &str = include_str!("../bundles-0.1.0/changes.txt");
/// Intervals and their parts, which newer versions estimate better.
const INTERVAL_KEYS: [&str; 8] = [
    "achieved_interval_ops_per_s",
    "interval",
    "overall_response_interval_ms",
    "response_interval_ns",
    "score_interval",
    "service_interval_ns",
    "uncertainty",
    "value_interval",
];
/// Sentences, which newer versions may reword, and the table that deviations are read from.
const TEXT_KEYS: [&str; 4] = ["departures", "method", "score_note", "text"];

fn bundles() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bundles-0.1.0");
    let items = fs::read_dir(folder).unwrap().map(|item| item.unwrap().path());
    let mut all: Vec<_> = items.filter(|path| path.is_dir()).collect();
    all.sort();
    all
}

/// Differences of `new` from `old` beyond texts and added keys.
fn differences(old: &Value, new: &Value, path: &str) -> Vec<String> {
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            let added = after.keys().filter(|key| !before.contains_key(*key));
            let added = added.filter(|key| !ADDED.contains(&key.as_str()));
            let mut changes: Vec<_> = added.map(|key| format!("{path}.{key} is new")).collect();
            let is_kept = |key: &str| !TEXT_KEYS.contains(&key) && !INTERVAL_KEYS.contains(&key);
            for (key, value) in before.iter().filter(|(key, _)| is_kept(key)) {
                changes.extend(differences(value, &new[key], &format!("{path}.{key}")));
            }
            changes
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            let pairs = before.iter().zip(after).enumerate();
            pairs
                .flat_map(|(at, (old, new))| differences(old, new, &format!("{path}[{at}]")))
                .collect()
        }
        _ if old == new => Vec::new(),
        _ => vec![format!("{path}: {} is now {}", shown(old), shown(new))],
    }
}

/// Numbers with the digits that do not depend on the machine's arithmetic; for findings their
/// rules.
fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) => format!("{:.4e}", number.as_f64().unwrap_or(f64::NAN)),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) if fields.contains_key("rule") => shown(&fields["rule"]),
        other => other.to_string(),
    }
}

#[test]
fn bundles_of_an_older_version_give_the_same_values() {
    let all = bundles();
    assert!(all.len() >= 7, "{all:?}");
    let mut changes = Vec::new();
    for bundle in all {
        let old = result(&bundle);
        let temp_dir = tempfile::tempdir().unwrap();
        let copied = temp_dir.path().join("bundle");
        copy(&bundle, &copied);
        let code = if old["verdict"]["valid"] == true { 0 } else { 1 };
        plimsoll(&["analyse", copied.to_str().unwrap()]).check(code, &["report.html"]);
        let name = bundle.file_name().unwrap().to_string_lossy();
        changes.extend(differences(&old, &result(&copied), &name));
    }
    let changes = changes.join("\n");
    assert_eq!(changes, CHANGES.trim_end(), "now:\n{changes}");
}

#[test]
fn bundles_of_an_older_version_are_compared_and_repeated() {
    let web = bundles().into_iter().find(|bundle| bundle.ends_with("web-url")).unwrap();
    let temp_dir = tempfile::tempdir().unwrap();
    let again = temp_dir.path().join("again");
    let (old, new) = (web.to_str().unwrap(), again.to_str().unwrap());
    let like = ["run", "web-url", "builtin:", "--like", old, "--out", new, "--progress", "none"];
    let repeated = plimsoll(&like);
    assert!(matches!(repeated.code, Some(0 | 1)), "{repeated:?}");
    let points = |bundle: &Path| {
        let result = result(bundle);
        let points = result["points"].as_array().unwrap().iter();
        points.map(|point| point["requested"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(points(&web), points(&again));
    let compare = ["compare", old, "--against", new];
    plimsoll(&compare).check(2, &["versions of plimsoll differ", "--force"]);
    plimsoll(&[&compare[..], &["--force"]].concat()).check(0, &["p99"]);
}
