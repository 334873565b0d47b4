//! Bundles that version 0.1.0 made, one of each family of suites: the values in their results stay.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_testkit::program::{copy, plimsoll, result};
use serde_json::Value;

/// What newer versions say besides.
const ADDED: [&str; 11] = [
    "censored",
    "cost",
    "facts",
    "limits",
    "only_load",
    "others",
    "reason",
    "reconnected",
    "refused",
    "stream_waits",
    "unkept",
];
/// Sentences, which newer versions may word in another way, and the table that deviations are read
/// off.
const WORDS: [&str; 4] = ["departures", "method", "score_note", "text"];

fn bundles() -> Vec<PathBuf> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bundles-0.1.0");
    let mut all: Vec<_> = fs::read_dir(place).unwrap().map(|item| item.unwrap().path()).collect();
    all.sort();
    all
}

/// Where `new` differs from `old` in more than words and what was added.
fn differences(old: &Value, new: &Value, place: &str) -> Vec<String> {
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            let added = after.keys().filter(|key| !before.contains_key(*key));
            let added = added.filter(|key| !ADDED.contains(&key.as_str()));
            let mut found: Vec<_> = added.map(|key| format!("{place}.{key} is new")).collect();
            for (key, value) in before.iter().filter(|(key, _)| !WORDS.contains(&key.as_str())) {
                found.extend(differences(value, &new[key], &format!("{place}.{key}")));
            }
            found
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            let pairs = before.iter().zip(after).enumerate();
            pairs
                .flat_map(|(at, (old, new))| differences(old, new, &format!("{place}[{at}]")))
                .collect()
        }
        _ if old == new => Vec::new(),
        _ => vec![format!("{place}: {old} is now {new}")],
    }
}

#[test]
fn bundles_of_an_older_version_give_the_same_values() {
    let all = bundles();
    assert!(all.len() >= 7, "{all:?}");
    for bundle in all {
        let old = result(&bundle);
        let place = tempfile::tempdir().unwrap();
        let copied = place.path().join("bundle");
        copy(&bundle, &copied);
        let code = if old["verdict"]["valid"] == true { 0 } else { 1 };
        plimsoll(&["analyse", copied.to_str().unwrap()]).check(code, &["report.html"]);
        let found = differences(&old, &result(&copied), "");
        assert!(found.is_empty(), "{}: {found:#?}", bundle.display());
    }
}

#[test]
fn bundles_of_an_older_version_are_compared_and_repeated() {
    let web = bundles().into_iter().find(|bundle| bundle.ends_with("web-url")).unwrap();
    let place = tempfile::tempdir().unwrap();
    let again = place.path().join("again");
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
