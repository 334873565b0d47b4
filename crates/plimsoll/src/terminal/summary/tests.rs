use std::path::Path;

use plimsoll_model::result::{
    Axis, Finding, PointResult, RESULT_FORMAT, RunResult, SuiteSummary, Summary, TimeSummary,
    Verdict,
};
use plimsoll_model::suite::Metric;

use super::super::Style;
use super::super::style::Screen;
use super::extent::lines_on;
use super::summary;

const SCREEN: Screen = Screen { columns: 80, rows: 24 };
const REPORT: &str = "runs/20260102-030405-disk-mix/report.html";

/// Six rules, each at four points, with texts as long as the longest there are.
fn findings(kind: &str) -> Vec<Finding> {
    let text =
        |rule: usize| format!("{kind} {rule}: {}the end of {kind} {rule}", "why ".repeat(55));
    let finding = |rule: usize, point| Finding {
        rule: format!("{kind}{rule}"),
        text: text(rule),
        point: Some(point),
    };
    (1..=6).flat_map(|rule| (1..=4).map(move |point| finding(rule, point))).collect()
}

/// An invalid run of sixteen points with everything a summary can hold.
fn invalid(metric: Metric) -> RunResult {
    let time = Some(123_456_789);
    let times = TimeSummary { n: 99, p50: time, p95: time, p99: time, ..TimeSummary::default() };
    let point = |clients: u32| PointResult {
        position: clients,
        requested: f64::from(clients),
        achieved_ops_per_s: Some(123_456.0),
        achieved_bytes_per_s: Some(1e9),
        clients_participating: Some(clients),
        response_ns: Some(times),
        errors: [("transport".to_owned(), 1_234_567)].into(),
        score: Some(123_456.0),
        ..PointResult::default()
    };
    RunResult {
        format: RESULT_FORMAT,
        suite: Some(SuiteSummary {
            name: "disk-mix".to_owned(),
            metric,
            ..SuiteSummary::default()
        }),
        targets: vec!["smb://ann@192.0.2.17:4455/share".to_owned()],
        profile: Some("quick".to_owned()),
        axis: Axis { name: "clients".to_owned(), unit: "clients".to_owned() },
        summary: Summary {
            metric: "peak throughput".to_owned(),
            value: Some(1e9),
            unit: "bytes/s".to_owned(),
            peak_ops_per_s: Some(123_456.0),
            score_note: Some("none: ".to_owned() + &"a mix does not count ".repeat(8)),
            limit: Some("the network ".repeat(14)),
            peak_search: Some("all clients at once reached ".repeat(8)),
            ..Summary::default()
        },
        points: (1..=16).map(point).collect(),
        verdict: Verdict {
            valid: false,
            reasons: findings("reason"),
            warnings: findings("warning"),
        },
        started: None,
        seed: None,
        command: Vec::new(),
        probes: Vec::new(),
        departures: Vec::new(),
        disclosure: None,
    }
}

fn shown(result: &RunResult, screen: Screen) -> String {
    summary(result, Some(Path::new(REPORT)), Style::new(true).on(Some(screen)))
}

#[test]
fn a_summary_of_an_invalid_run_of_sixteen_points_fits_a_screen() {
    for metric in [Metric::Ops, Metric::Bytes, Metric::Logons] {
        let text = shown(&invalid(metric), SCREEN);
        let lines = lines_on(&text, SCREEN.columns);
        assert!(lines < SCREEN.rows, "{lines} lines and a prompt:\n{text}");
        assert!(lines > SCREEN.rows - 6, "there is room for more:\n{text}");
        assert!(text.ends_with(&format!("Report: {REPORT}\n")), "{text}");
        for part in ["disk-mix", "reason 1", "warning 1", "…", "more in the report", "left out"] {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
        assert!(!text.contains("the end of reason 1"), "{text}");
    }
}

#[test]
fn no_row_of_the_table_breaks_on_eighty_columns() {
    for metric in [Metric::Ops, Metric::Bytes, Metric::Logons] {
        let text = shown(&invalid(metric), SCREEN);
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("123,456  ")).collect();
        assert!(rows.len() >= 4, "{text}");
        for row in rows {
            assert_eq!(lines_on(row, SCREEN.columns), 1, "{row}");
            assert!(row.contains("1234567") && row.contains("invalid"), "{row}");
        }
    }
}

#[test]
fn a_larger_screen_shows_more_and_none_cuts_nothing() {
    let result = invalid(Metric::Ops);
    let of_rows = |rows| shown(&result, Screen { columns: 120, rows }).len();
    assert!(of_rows(24) < of_rows(36) && of_rows(36) < of_rows(72));
    let whole = summary(&result, Some(Path::new(REPORT)), Style::new(false));
    for kind in ["reason", "warning"] {
        for number in 1..=4 {
            assert!(whole.contains(&format!("the end of {kind} {number}")), "{whole}");
        }
    }
    assert_eq!(whole.matches("  - and 2 more in the report").count(), 2, "{whole}");
    assert!(!whole.contains('…'), "{whole}");
    // Nobody could tell where the rest is.
    let nowhere = summary(&result, None, Style::new(false).on(Some(SCREEN)));
    assert!(nowhere.contains("the end of reason 4"), "{nowhere}");
}

#[test]
fn the_command_that_goes_on_is_never_cut() {
    let mut result = invalid(Metric::Ops);
    let text = format!("{}`plimsoll resume DIR` goes on", "3 of 16 points, ".repeat(5));
    result.verdict.reasons.insert(0, Finding { rule: "incomplete".to_owned(), text, point: None });
    let text = shown(&result, SCREEN);
    assert!(text.contains("`plimsoll resume runs/20260102-030405-disk-mix` goes on"), "{text}");
    assert!(lines_on(&text, SCREEN.columns) < SCREEN.rows, "{text}");
}

#[test]
fn paint_takes_no_room() {
    assert_eq!(lines_on("\x1b[1;31mabcd\x1b[0m\n\n", 4), 2);
    assert_eq!(lines_on("abcde", 4), 2);
}
