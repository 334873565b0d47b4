//! Markdown and CSV against their snapshots.

use plimsoll_model::finding::{LostWith, Rule};
use plimsoll_model::hint::{Hint, RunHint};
use plimsoll_model::result::{CompoundCalls, TimeSummary};

use crate::fixture;

#[test]
fn markdown_of_an_invalid_run_reads_as_a_report() {
    insta::assert_snapshot!(plimsoll_report::markdown(&fixture::invalid(3)));
}

#[test]
fn markdown_of_file_serving_shows_its_mix_its_cap_and_what_was_sent_again() {
    let mut run = fixture::nfs(3);
    run.points.retain(|p| [1, 8, 9, 10].contains(&p.position));
    run.probes.clear();
    run.disclosure = None;
    insta::assert_snapshot!(plimsoll_report::markdown(&run));
}

#[test]
fn csv_of_file_serving_has_what_was_sent_again_and_what_is_not_counted() {
    let mut run = fixture::nfs(3);
    run.points.retain(|p| p.position > 8);
    run.probes.clear();
    let files = plimsoll_report::csv(&run);
    let points: Vec<Vec<&str>> = files[0].1.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| points[0].iter().position(|header| *header == name).unwrap();
    let values = |name: &str| points[1..].iter().map(|row| row[column(name)]).collect::<Vec<_>>();
    assert_eq!(values("valid"), ["true", "false"]);
    assert_eq!(values("not_counted"), ["cap", "cap"]);
    assert_eq!(values("retransmissions"), ["18", "41207"]);
    assert_eq!(values("ambiguous_ops"), ["1", "2"]);
    let (name, ops) = &files[1];
    assert!(name == "ops.csv" && ops.contains("lookup"), "{ops}");
    assert_eq!(ops.lines().count(), 1 + 2 * 13);
}

#[test]
fn compound_calls_have_a_table_and_columns() {
    let mut run = fixture::nfs(3);
    run.points.truncate(2);
    let times = TimeSummary { n: 40, p50: Some(113_000), p99: Some(169_000), ..Default::default() };
    run.points[1].compound_calls = Some(CompoundCalls {
        compounds_per_s: Some(1_380.0),
        operations_per_s: Some(4_200.0),
        opens_per_s: Some(190.0),
        open_ns: Some(times),
        ..CompoundCalls::default()
    });
    let text = plimsoll_report::markdown(&run);
    let row = "| 2 | 1,380 | 4,200 | 190 | 113 | 169 |";
    assert!(text.contains(row), "{text}");
    let points = &plimsoll_report::csv(&run)[0].1;
    let header = points.lines().next().unwrap();
    assert!(header.ends_with(",close_p99_ns,slot_wait_p50_ns,slot_wait_p99_ns"), "{header}");
    let row = points.lines().nth(2).unwrap();
    assert!(row.ends_with(",1380,4200,190,113000,169000,,,,"), "{row}");
    assert!(!plimsoll_report::csv(&fixture::nfs(3))[0].1.contains("compounds_per_s"));
}

#[test]
fn markdown_of_sparse_results_leaves_out_what_is_absent() {
    for (name, run) in [("interrupted", fixture::interrupted()), ("curve", fixture::curve())] {
        let name = format!("markdown_of_sparse_results_leaves_out_what_is_absent_{name}");
        insta::assert_snapshot!(name, plimsoll_report::markdown(&run));
    }
}

#[test]
fn csv_has_units_in_its_headers_and_numbers_unrounded() {
    let mut run = fixture::invalid(3);
    run.points.retain(|p| p.position == 1 || p.position == 8);
    run.probes.truncate(1);
    let files: Vec<String> = plimsoll_report::csv(&run)
        .into_iter()
        .map(|(name, text)| format!("== {name}\n{text}"))
        .collect();
    insta::assert_snapshot!(files.concat());
}

#[test]
fn every_row_of_a_csv_file_has_as_many_cells_as_its_header() {
    for run in [fixture::valid(3), fixture::smb(3), fixture::sweep(3)] {
        for (name, text) in plimsoll_report::csv(&run) {
            // Commas outside of quotes.
            let cells =
                |line: &str| line.split('"').step_by(2).map(|l| l.matches(',').count()).sum();
            let mut widths: Vec<usize> = text.lines().map(cells).collect();
            widths.dedup();
            assert_eq!(widths.len(), 1, "{name}");
        }
    }
}

#[test]
fn a_percentile_with_a_wide_interval_keeps_its_number() {
    let text = plimsoll_report::markdown(&fixture::valid(3));
    let rows = rows(&text);
    let header = rows.iter().find(|row| row[0] == "point").unwrap();
    let p99 = header.iter().position(|cell| cell.starts_with("p99,")).unwrap();
    let of_point = |point: &str| rows.iter().find(|row| row[0] == point).unwrap()[p99];
    assert_eq!(of_point("1"), "0.0979\u{a0}(0.0911–0.1058)");
    assert_eq!(of_point("8"), "0.532\u{a0}(0.426–0.665)");
    assert!(!text.contains('≈') && text.contains("its uncertainty interval (95 %)"), "{text}");
    // The budget of the headline's figures.
    let p50 = rows.iter().find(|row| row[0] == "response p50").unwrap();
    assert_eq!(p50.len(), 6, "{p50:?}");
    assert!(p50[2].starts_with('−') && p50[4].starts_with('+'), "{p50:?}");
}

#[test]
fn a_result_without_intervals_shows_its_values_bare() {
    let mut run = fixture::valid(3);
    for point in &mut run.points {
        (point.response_interval_ns, point.service_interval_ns) = (None, None);
        (point.achieved_interval_ops_per_s, point.uncertainty) = (None, Default::default());
    }
    let text = plimsoll_report::markdown(&run);
    assert!(!text.contains("interval") && text.contains("mean\u{a0}±"), "{text}");
}

#[test]
fn a_headline_that_is_no_limit_of_the_server_says_at_least() {
    let mut run = fixture::valid(3);
    run.summary.bound = plimsoll_model::event::Bound::AtLeast;
    let text = plimsoll_report::markdown(&run);
    assert!(text.contains("highest sustained ops/s: **at least 25,977 ops/s"), "{text}");
    let page = plimsoll_report::html(&run).unwrap();
    assert!(page.contains("at least 25,977"));
    let points = &plimsoll_report::csv(&run)[0].1;
    assert!(points.lines().nth(1).unwrap().contains(",at_least,"), "{points}");
}

#[test]
fn lost_connections_stand_before_what_follows_from_them() {
    let mut run = fixture::invalid(3);
    let lost = Rule::ConnectionsLost {
        before_reply_ops: 904,
        within_reply_ops: 0,
        reset_ops: 0,
        due_ops: 1_000,
        clients: LostWith::Stayed,
        silence: None,
        early: None,
    };
    run.verdict.warnings.push(lost.of_run());
    let text = plimsoll_report::markdown(&run);
    let at = text.find("connections of 904 of");
    assert!(at.is_some() && at < text.find("Why these figures"), "{text}");
    let page = plimsoll_report::html(&run).unwrap();
    let at = page.find("connections of 904 of");
    assert!(at.is_some() && at < page.find("Why these figures"));
}

#[test]
fn points_left_out_say_why() {
    use plimsoll_model::result::NotCounted;
    let mut run = fixture::valid(3);
    run.points[8].not_counted = Some(NotCounted::NotHeld);
    run.points[9].not_counted = Some(NotCounted::Errors);
    let text = plimsoll_report::markdown(&run);
    for expected in ["| not held, not\u{a0}counted |", "| errors, not\u{a0}counted |"] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
}

/// A ladder of clients with a score of each mix.
fn scored() -> plimsoll_model::result::RunResult {
    let mut run = fixture::valid(3);
    for point in &mut run.points {
        point.score = Some(f64::from(point.position) * 10.5);
    }
    run.summary.score = Some(1_234.5);
    run.summary.score_note = Some("weighted harmonic mean over 10 mixes".to_owned());
    run
}

#[test]
fn a_score_stands_before_the_peak_and_in_the_table_of_points() {
    let text = plimsoll_report::markdown(&scored()).replace('\\', "");
    let score = "score, weighted harmonic mean over 10 mixes: **1,234 tps**";
    assert!(text.contains(score), "{text}");
    assert!(text.find(score) < text.find("highest sustained ops/s: 25,977"), "{text}");
    let rows = rows(&text);
    let header = rows.iter().find(|row| row[0] == "point").unwrap();
    let column = header.iter().position(|cell| cell.starts_with("score")).unwrap();
    let second = rows.iter().find(|row| row[0] == "2").unwrap();
    assert_eq!(second[column], "21");
    let points = &plimsoll_report::csv(&scored())[0].1;
    assert!(points.lines().next().unwrap().ends_with(",score_per_s"), "{points}");
    assert!(points.lines().nth(2).unwrap().ends_with(",21"), "{points}");
}

#[test]
fn a_score_that_is_not_there_says_why() {
    let mut run = scored();
    run.summary.score = None;
    run.summary.score_note = Some("none: 9 of 10 mixes were measured".to_owned());
    let text = plimsoll_report::markdown(&run).replace('\\', "");
    assert!(text.contains("score, 9 of 10 mixes were measured: **none**"), "{text}");
}

/// Rows of Markdown tables as lists of cells.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().filter(|line| line.starts_with('|'));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn a_report_of_bytes_has_them_in_every_unit_with_those_who_took_part() {
    let text = plimsoll_report::markdown(&fixture::smb(3));
    for part in [
        "**1.86 MiB/s**",
        "in 10^6 bits: 15.6 Mbit/s",
        "A MiB/s is 2^20 bytes per second, a Mbit/s 10^6 bits per second",
    ] {
        assert!(text.replace('\\', "").contains(part), "{part:?} in {text}");
    }
    let rows = rows(&text);
    let moved = rows.iter().find(|row| row[1..3] == ["60", "27"]).unwrap();
    assert_eq!(moved[3..6], ["1,844,181", "1.76", "14.8"], "{moved:?}");
    assert_eq!(moved.len(), 10, "application and wire bytes stand apart: {moved:?}");
    assert!(!text.contains("most data") && !text.contains("offered"), "said once, or never");
}

#[test]
fn unexpected_statuses_are_called_by_their_names() {
    let text = plimsoll_report::markdown(&fixture::smb(3)).replace('\\', "");
    let rows = rows(&text);
    let matched = rows.iter().find(|row| row.contains(&"STATUS_SHARING_VIOLATION")).unwrap();
    assert_eq!(matched[1..], ["create", "STATUS_SUCCESS", "STATUS_SHARING_VIOLATION", "12"]);
    assert!(text.contains("status:STATUS_SHARING_VIOLATION"), "{text}");
    let files = plimsoll_report::csv(&fixture::smb(3));
    let errors = &files.iter().find(|(name, _)| name == "errors.csv").unwrap().1;
    assert!(errors.contains("0,3221225539,12,STATUS_SUCCESS,STATUS_SHARING_VIOLATION"), "{errors}");
}

#[test]
fn ops_that_never_came_are_left_out_of_the_tables_and_kept_in_the_csv() {
    let run = fixture::smb(3);
    let text = plimsoll_report::markdown(&run);
    assert!(!text.contains("deltree") && text.contains("ops that did not occur are left out"));
    assert!(plimsoll_report::csv(&run)[1].1.contains("deltree"));
}

#[test]
fn a_sweep_of_think_times_shows_the_methods_and_what_was_used() {
    let run = fixture::sweep(3);
    let text = plimsoll_report::markdown(&run);
    assert!(text.contains("think time used, s"), "{text}");
    let rows = rows(&text);
    assert!(rows.iter().any(|row| row.len() > 4 && row[1..4] == ["25", "974", "974"]), "{rows:?}");
    let points = &plimsoll_report::csv(&run)[0].1;
    let header = points.lines().next().unwrap();
    for column in ["requested_s", "achieved_bytes_per_s", "achieved_mib_per_s", "think_used_s"] {
        assert!(header.split(',').any(|name| name == column), "{column} in {header}");
    }
}

#[test]
fn each_point_says_what_limited_it_in_every_text() {
    let run = fixture::nfs(3);
    let text = plimsoll_report::markdown(&run).replace('\\', "");
    let table = rows(&text);
    let header = table.iter().find(|row| row[0] == "point").unwrap();
    let column = header.iter().position(|cell| *cell == "limit").unwrap();
    let of_point = |point: &str| table.iter().find(|row| row[0] == point).unwrap()[column];
    assert_eq!(of_point("7"), "not saturated");
    assert_eq!(of_point("8"), "disk: nvme0n1 and pool: service threads");
    let reads = table.iter().find(|row| row.contains(&"disk nvme0n1: reads")).unwrap();
    assert_eq!(
        reads[2..],
        ["disk: nvme0n1", "disk nvme0n1: reads", "798\u{a0}1/s", "800\u{a0}1/s", "95.0\u{a0}1/s"]
    );
    assert!(text.contains("- Points 8–10: the disk nvme0n1: 798 reads a second, of 800"), "{text}");

    let files = plimsoll_report::csv(&run);
    let of = |name: &str| &files.iter().find(|(file, _)| file == name).unwrap().1;
    let header = of("points.csv").lines().next().unwrap();
    let last = ",limit_kind,limit_place,limit_text,unfinished_ops,response_exact_to_ns";
    assert!(header.ends_with(last), "{header}");
    let eighth = of("points.csv").lines().nth(8).unwrap();
    assert!(eighth.contains(",disk,nvme0n1,\"the disk nvme0n1: 798 reads"), "{eighth}");
    let limits: Vec<&str> =
        of("limits.csv").lines().filter(|l| l.starts_with("ladder,8,")).collect();
    assert_eq!(limits.len(), 3, "{limits:?}");
    assert!(limits[2].ends_with(",2,pool,service threads,server.threads_busy_mean,,7.9,8,0.75"));
}

#[test]
fn resources_keep_their_names_and_zeros_in_the_csv_alone() {
    let run = fixture::smb(3);
    let text = plimsoll_report::markdown(&run).replace('\\', "");
    assert!(text.contains("server: processor, cores used | ssh://lab@files.example | cores |"));
    assert!(!text.contains("process.server.cpu") && !text.contains("kept by the hypervisor"));
    let files = plimsoll_report::csv(&run);
    let resources = &files.iter().find(|(file, _)| file == "resources.csv").unwrap().1;
    assert!(resources.lines().next().unwrap().ends_with(",resource,unit,mean,max,source"));
    assert!(resources.contains("host.cpu_steal,ratio,0,0,\n"), "{resources}");
    assert!(resources.contains("process.server.cpu,cores,") && resources.contains(",ssh://lab"));
}

#[test]
fn hints_are_told_with_their_points_and_the_page_that_explains_them() {
    let mut run = fixture::valid(3);
    let absent = [plimsoll_report::markdown(&run), plimsoll_report::html(&run).unwrap()];
    assert!(absent.iter().all(|page| !page.contains("hints")));
    let hint = Hint::EvenPauses { pauses: 9, period_ns: 500_000_000, length_ns: 60_000_000 };
    run.hints = vec![RunHint { points: vec![2, 3], hint }];
    for page in [plimsoll_report::markdown(&run), plimsoll_report::html(&run).unwrap()] {
        // Both escape what has a meaning in their markup.
        let text = page.replace("&#x2f;", "/").replace('\\', "");
        assert!(text.contains("no replies for 60.0 ms every 500 ms (9 times)"), "{text}");
        assert!(text.contains("(points 2, 3; docs/hints.md#pauses-at-even-distances)"), "{text}");
    }
}
