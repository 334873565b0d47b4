use std::fs;
use std::path::Path;

use super::*;

/// A bundle with this `result.json`.
fn bundle(dir: &Path, result: &str) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("suite.toml"), "").unwrap();
    fs::write(dir.join("journal.jsonl"), "").unwrap();
    fs::write(dir.join("result.json"), result).unwrap();
}

fn result(started: &str, value: &str, valid: bool) -> String {
    format!(
        r#"{{"format":1,"suite":{{"name":"web-static-of-a-long-name","title":"t","source":"s"}},
        "targets":["http://server.example.org:8080/"],"profile":"quick","started":"{started}",
        "verdict":{{"valid":{valid},"reasons":[{{"rule":"rate","text":"t","point":1}}]}},
        "summary":{{"metric":"m","value":{value},"unit":"ops/s","bound":"at_least"}},
        "points":[{{"achieved_ops_per_s":10.5,"limit":{{"kind":"core","place":"core 1","text":"t",
        "evidence":[],"also":[]}}}},{{"achieved_ops_per_s":null}}],"probes":[{{"x":[1,2]}}]}}"#
    )
}

#[test]
fn bundles_are_listed_newest_first_and_broken_ones_spoil_nothing() {
    let temp_dir = tempfile::tempdir().unwrap();
    let at = temp_dir.path();
    bundle(&at.join("old"), &result("2026-01-02T03:04:05Z", "12345.6", true));
    bundle(&at.join("group/new"), &result("2026-11-02T03:04:05Z", "null", false));
    bundle(&at.join("torn"), "{\"format\":1,");
    bundle(&at.join("later"), "{\"format\":9}");
    let future = result("2026-05-02T03:04:05Z", "1", true).replace("\"format\":1", "\"format\":2");
    bundle(&at.join("later"), &future);
    bundle(&at.join("going"), "");
    fs::remove_file(at.join("going/result.json")).unwrap();
    fs::create_dir_all(at.join("no bundle/deep")).unwrap();
    fs::write(at.join("no bundle/result.json"), "{}").unwrap();
    let runs = catalogue(&[at.to_owned(), at.join("old")]);
    let names: Vec<_> = runs.iter().map(|run| run.dir.strip_prefix(at).unwrap()).collect();
    let expected = ["group/new", "old", "going", "later", "torn"];
    assert_eq!(names, expected.map(Path::new));
    assert_eq!(runs[1].value, Some(12_345.6));
    assert_eq!(runs[1].limit.as_deref(), Some("core 1"));
    assert_eq!(runs[0].reasons, ["rate"]);
    assert!(matches!(
        &runs[2].standing,
        ResultState::Broken { .. } | ResultState::Unfinished { .. }
    ));
    assert!(matches!(&runs[3].standing, ResultState::Broken { why } if why.contains("format 2")));
    assert!(matches!(&runs[4].standing, ResultState::Broken { why } if why.contains("no result")));
}

#[test]
fn the_limit_of_a_run_is_the_last_that_is_known_along_its_ladder() {
    let span = |from: u32, kind: &str, component: &str| {
        format!(
            r#"{{"from":{from}.0,"limit":{{"kind":"{kind}","place":{component},"text":"t",
            "evidence":[],"also":[]}}}}"#
        )
    };
    let spans = [span(4, "disk", "\"vda\""), span(9, "unknown", "null")].join(",");
    let limits = format!("\"limits\":[{spans}],\"unit\"");
    let temp_dir = tempfile::tempdir().unwrap();
    let text = result("2026-01-02T03:04:05Z", "12345.6", true).replace("\"unit\"", &limits);
    bundle(&temp_dir.path().join("a"), &text);
    let runs = catalogue(&[temp_dir.path().to_owned()]);
    assert_eq!(runs[0].limit.as_deref(), Some("disk: vda"));
}

#[test]
fn a_line_fits_eighty_columns_and_a_wide_terminal_shows_the_directory() {
    let temp_dir = tempfile::tempdir().unwrap();
    bundle(&temp_dir.path().join("a"), &result("2026-01-02T03:04:05Z", "12345.6", true));
    bundle(&temp_dir.path().join(format!("b{}", "é".repeat(90))), "rubbish");
    let runs = catalogue(&[temp_dir.path().to_owned()]);
    let narrow = table(&runs, COLUMNS);
    assert!(narrow.lines().all(|line| line.chars().count() <= COLUMNS), "{narrow}");
    let line = narrow.lines().nth(1).unwrap();
    assert_eq!(
        line,
        "2026-01-02 03:04 web-static-o… server.example.… ≥12,346 ops/s  valid   core 1"
    );
    let wide = table(&runs, 400);
    assert!(wide.lines().nth(1).unwrap().ends_with("/a"), "{wide}");
}
