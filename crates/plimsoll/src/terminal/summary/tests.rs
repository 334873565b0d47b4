use std::path::Path;

use plimsoll_model::assignment::Purpose;
use plimsoll_model::capacity::{
    Capacity, CapacityRequest, CapacitySearch, CapacityTry, TryOutcome, TryReason,
};
use plimsoll_model::event::Bound;
use plimsoll_model::finding::{ErrorCause, Finding, LostWith, Rule};
use plimsoll_model::limit::{Limit, LimitKind};
use plimsoll_model::result::{
    Axis, CompoundCalls, NotCounted, PointResult, RESULT_FORMAT, RunResult, SuiteSummary, Summary,
    TimeIntervals, TimeSummary, Verdict,
};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::Nanos;
use plimsoll_report::sentences::finding;

use super::super::Screen;
use super::super::Style;
use super::extent::lines_on;
use super::summary;

const SCREEN: Screen = Screen { columns: 80, rows: 24 };
const REPORT: &str = "runs/20260102-030405-disk-mix/report.html";

/// Six rules, each at four points, with texts of the maximum length.
fn findings(kind: &str) -> Vec<Finding> {
    let long = |rule: u32| format!("{kind} {rule}: {}the end of {kind} {rule}", "why ".repeat(55));
    let rules = [
        Rule::Panic { message: long(1) },
        Rule::EndedEarly { cause: long(2) },
        Rule::Intervals { files: long(3) },
        Rule::NoCapacity { cause: Some(long(4)) },
        Rule::CurvePoint { column: long(5) },
        Rule::Errors {
            failed_ops: 1,
            due_ops: 2,
            limit_ratio: 0.0,
            most: Some((long(6), 1)),
            cause: ErrorCause::Unknown,
        },
    ];
    let at_all = |rule: Rule| (1..=4).map(move |point| rule.clone().of_point(point));
    rules.into_iter().flat_map(at_all).collect()
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
        error_samples: vec![format!("get (transport): {}", "why ".repeat(40))],
        score: Some(123_456.0),
        ..PointResult::default()
    };
    RunResult {
        gates: Vec::new(),
        load_shape: None,
        recovery: Vec::new(),
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
        monitored_hosts: Vec::new(),
        hints: Vec::new(),
        departures: Vec::new(),
        method: Vec::new(),
        nonconformities: Default::default(),
        server_profile: None,
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
    // Without a report the rest would be lost.
    let nowhere = summary(&result, None, Style::new(false).on(Some(SCREEN)));
    assert!(nowhere.contains("the end of reason 4"), "{nowhere}");
}

/// A valid run of an open suite whose figures have intervals.
fn with_intervals() -> RunResult {
    let mut result = invalid(Metric::Ops);
    result.axis = Axis { name: "requested load".to_owned(), unit: "ops/s".to_owned() };
    result.verdict = Verdict { valid: true, ..Verdict::default() };
    result.summary = Summary {
        metric: "highest sustained load".to_owned(),
        value: Some(31_000.0),
        unit: "ops/s".to_owned(),
        bound: Bound::AtLeast,
        ..Summary::default()
    };
    result.points.truncate(4);
    for point in &mut result.points {
        (point.valid, point.score) = (true, None);
        point.errors.clear();
        point.response_ns = Some(TimeSummary {
            n: 9_999,
            p50: Some(85_400),
            p95: Some(240_000),
            p99: Some(5_000_000),
            ..TimeSummary::default()
        });
        point.response_interval_ns = Some(TimeIntervals {
            p50: Some([84_910.0, 86_100.0]),
            p95: Some([238_000.0, 243_000.0]),
            p99: Some([4.1e6, 6.2e6]),
            ..TimeIntervals::default()
        });
        point.achieved_interval_ops_per_s = Some([123_000.0, 124_000.0]);
    }
    result
}

#[test]
fn figures_stand_beside_their_intervals_as_far_as_a_screen_holds_them() {
    let whole = summary(&with_intervals(), None, Style::new(false));
    for part in ["85.4 µs (84.9–86.1)", "240 µs (238–243)", "123,456\u{a0}(123,000–124,000)"]
    {
        assert!(whole.contains(part), "{part:?} is not in:\n{whole}");
    }
    // However wide an interval is, its number stays.
    assert!(whole.contains("5.00 ms (4.10–6.20)"), "{whole}");
    let text = shown(&with_intervals(), SCREEN);
    let row = text.lines().find(|line| line.contains("5.00 ms")).unwrap();
    assert!(lines_on(row, SCREEN.columns) == 1 && row.contains("85.4 µs"), "{row}");
    let narrow = shown(&with_intervals(), Screen { columns: 60, rows: 24 });
    let row = narrow.lines().find(|line| line.contains("5.00 ms")).unwrap();
    assert!(lines_on(row, 60) == 1 && !row.contains("(84.9"), "{row}");
}

#[test]
fn a_headline_that_is_no_limit_of_the_server_says_at_least() {
    let text = summary(&with_intervals(), None, Style::new(false));
    assert!(text.contains("highest sustained load: at least 31,000 ops/s"), "{text}");
}

#[test]
fn columns_of_load_and_throughput_have_names_of_their_own() {
    let text = summary(&with_intervals(), None, Style::new(false));
    let titles = text.lines().find(|line| line.contains("p50")).unwrap();
    assert!(titles.contains("requested  achieved ops/s"), "{titles}");
    assert_eq!(titles.matches("ops/s").count(), 1, "{titles}");
}

#[test]
fn points_that_are_not_counted_say_why() {
    let mut result = with_intervals();
    let reasons = [NotCounted::Cap, NotCounted::NotHeld, NotCounted::Errors];
    for (point, why) in result.points.iter_mut().zip(reasons) {
        point.not_counted = Some(why);
    }
    let text = summary(&result, None, Style::new(false));
    let ends: Vec<&str> = text.lines().filter(|line| line.contains("85.4")).collect();
    for (row, ending) in ends.iter().zip(["above the cap", "not held", "  errors", "valid"]) {
        assert!(row.ends_with(ending), "{row}");
    }
}

#[test]
fn each_point_says_what_limited_it_as_far_as_a_screen_holds_it() {
    let mut result = with_intervals();
    for point in &mut result.points {
        point.limit = Limit { kind: LimitKind::None, ..Limit::default() };
    }
    let component = Some("core 1".to_owned());
    let also = vec![Limit { kind: LimitKind::Network, ..Limit::default() }];
    result.points[3].limit =
        Limit { kind: LimitKind::Core, place: component, also, ..Limit::default() };
    let whole = summary(&result, None, Style::new(false));
    let ends: Vec<&str> = whole.lines().filter(|line| line.ends_with("  valid")).collect();
    for (row, ending) in
        ends.iter().zip(["not saturated", "not saturated", "not saturated", "core 1 and network"])
    {
        assert!(row.contains(ending), "{row}");
    }
    let wide = shown(&result, SCREEN);
    let row = wide.lines().find(|line| line.contains("core 1")).unwrap();
    assert!(lines_on(row, SCREEN.columns) == 1 && row.contains("5.00 ms"), "{wide}");
    let narrow = shown(&result, Screen { columns: 50, rows: 24 });
    assert!(!narrow.contains("core 1") && narrow.contains("5.00 ms"), "{narrow}");
}

#[test]
fn what_failed_stands_before_what_follows_from_it_with_a_sample_of_each_class() {
    let mut result = invalid(Metric::Ops);
    let lost = Rule::ConnectionsLost {
        before_reply_ops: 904,
        within_reply_ops: 0,
        reset_ops: 0,
        due_ops: 1_000,
        clients: LostWith::Stayed,
        silence: None,
        early: None,
    };
    let sentence = &finding::text(&lost);
    result.verdict.warnings.push(lost.clone().of_point(2));
    let point = &mut result.points[1];
    point.errors = [("transport".to_owned(), 904), ("status:503".to_owned(), 12)].into();
    point.error_samples = vec![
        "get (transport): GET http://h/: Connection refused".to_owned(),
        "get (status:503): GET http://h/: status 503".to_owned(),
    ];
    for point in &mut result.points[2..] {
        (point.errors, point.error_samples) = (Default::default(), Vec::new());
    }
    (result.points[0].errors, result.points[0].error_samples) = (Default::default(), Vec::new());
    let text = summary(&result, None, Style::new(false));
    let lines: Vec<&str> = text.lines().skip_while(|line| *line != "  Errors").collect();
    assert_eq!(lines[1], format!("  - point 2: {sentence}"));
    let transport =
        "  - transport, 904 ops, first at point 2: get: GET http://h/: Connection refused";
    assert_eq!(lines[2], transport);
    assert_eq!(
        lines[3],
        "  - status:503, 12 ops, first at point 2: get: GET http://h/: status 503"
    );
    assert!(text.find("  Errors") < text.find("  Reasons"), "{text}");
    assert_eq!(text.matches(sentence).count(), 1, "{text}");
}

#[test]
fn a_curve_from_elsewhere_shows_its_response_times_and_counts_no_errors() {
    let text = "load,throughput,response_ms\n1,100,0.34\n2,200,0.5\n3,300,0.9\n";
    let curve = plimsoll_analysis::curve::analyse_curve(text).unwrap();
    let text = summary(&curve, None, Style::new(false));
    for part in ["curve from elsewhere, not judged", "340 µs", "900 µs", "overall response: "] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    assert!(!text.contains("valid") && !text.contains("errors"), "{text}");
}

#[test]
fn the_command_that_goes_on_is_never_cut() {
    let mut result = invalid(Metric::Ops);
    let cause = "the server is gone, ".repeat(2);
    result.verdict.reasons.insert(0, Rule::Aborted { cause, nothing_finished: false }.of_run());
    let text = shown(&result, SCREEN);
    assert!(text.contains("`plimsoll resume runs/20260102-030405-disk-mix`"), "{text}");
    assert!(lines_on(&text, SCREEN.columns) < SCREEN.rows, "{text}");
}

#[test]
fn paint_takes_no_room() {
    assert_eq!(lines_on("\x1b[1;31mabcd\x1b[0m\n\n", 4), 2);
    assert_eq!(lines_on("abcde", 4), 2);
}

#[test]
fn a_capacity_in_clients_that_are_no_users_says_so() {
    let request = CapacityRequest {
        within: "p99<50ms".parse().unwrap(),
        think: Some(Nanos::from_secs(2)),
        users_per_client: None,
    };
    let capacity = Capacity {
        value: 58.0,
        unit: "clients".to_owned(),
        low: 58.0,
        high: Some(60.0),
        undecided_to: None,
        within: request.within.clone(),
        passed: 5,
        tries: 5,
        users: None,
        client: Some("one stands for 5 to 10 users (a report)".to_owned()),
        limit: Limit::default(),
    };
    let mut result = invalid(Metric::Bytes);
    result.summary.value = Some(58.0);
    result.summary.unit = "clients".to_owned();
    result.summary.capacity = Some(capacity);
    result.summary.capacity_search =
        Some(CapacitySearch { asked: request, how: None, tries: Vec::new() });
    let text = summary(&result, None, Style::new(false));
    assert!(text.contains("  clients: 58 at a think time of 2.00 s\n"), "{text}");
    assert!(text.contains("one stands for 5 to 10 users (a report)"), "{text}");
    assert!(!text.contains("  users: ") && !text.contains("Mbit/s"), "{text}");
}

#[test]
fn a_capacity_that_is_still_searched_is_not_none() {
    let attempt = |load: f64, outcome| CapacityTry {
        point: 1,
        load,
        purpose: Purpose::Probe,
        standing: outcome,
        passed: true,
        late: false,
        why: String::new(),
        reason: TryReason::Figures,
        figures: Vec::new(),
    };
    let tries = vec![attempt(500.0, TryOutcome::Within), attempt(900.0, TryOutcome::Undecided)];
    let limits = CapacityRequest {
        within: "p99<50ms".parse().unwrap(),
        think: None,
        users_per_client: Some(1.0),
    };
    let mut result = invalid(Metric::Ops);
    result.summary = Summary {
        metric: "capacity within p99<50ms".to_owned(),
        unit: "ops/s".to_owned(),
        capacity_search: Some(CapacitySearch { asked: limits, how: None, tries }),
        ..Summary::default()
    };
    let text = summary(&result, None, Style::new(false));
    assert!(text.contains("capacity within p99<50ms: not known yet"), "{text}");
    assert!(text.contains("highest load within the limits so far: 500 ops/s"), "{text}");
    let search = result.summary.capacity_search.as_mut().unwrap();
    search.how = Some("no load is within the limits".to_owned());
    let text = summary(&result, None, Style::new(false));
    assert!(text.contains("capacity within p99<50ms: none"), "{text}");
}

#[test]
fn compound_calls_are_shown_of_the_highest_load_that_counts() {
    let mut result = invalid(Metric::Ops);
    let calls = |compounds_per_s| {
        Some(CompoundCalls { compounds_per_s: Some(compounds_per_s), ..Default::default() })
    };
    for (point, rate) in result.points.iter_mut().zip([900.0, 1_380.0, 1_200.0]) {
        (point.achieved_ops_per_s, point.compound_calls) = (Some(rate), calls(1.38 * rate));
        (point.valid, point.not_counted) = (rate < 1_380.0, None);
    }
    result.points.truncate(3);
    let text = summary(&result, None, Style::new(false));
    let line = "  compound calls at point 3: 1,656/s with 0 operations/s, 0 opens/s\n";
    assert!(text.contains(line), "{text}");
}
