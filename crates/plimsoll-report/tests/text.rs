//! Markdown and CSV against their snapshots.

mod fixture;

#[test]
fn markdown_of_an_invalid_run_reads_as_a_report() {
    insta::assert_snapshot!(plimsoll_report::markdown(&[fixture::invalid(3)]));
}

#[test]
fn markdown_of_file_serving_shows_its_mix_its_cap_and_what_was_sent_again() {
    let mut run = fixture::nfs(3);
    run.points.retain(|p| [1, 8, 9, 10].contains(&p.position));
    run.probes.clear();
    run.disclosure = None;
    insta::assert_snapshot!(plimsoll_report::markdown(&[run]));
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
    assert_eq!(values("not_counted"), ["response_cap", "response_cap"]);
    assert_eq!(values("retransmissions"), ["18", "41207"]);
    assert_eq!(values("ambiguous_ops"), ["1", "2"]);
    let (name, ops) = &files[1];
    assert!(name == "ops.csv" && ops.contains("lookup"), "{ops}");
    assert_eq!(ops.lines().count(), 1 + 2 * 13);
}

#[test]
fn markdown_of_sparse_results_leaves_out_what_is_absent() {
    insta::assert_snapshot!(plimsoll_report::markdown(&[fixture::interrupted(), fixture::curve()]));
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
    let run = fixture::valid(3);
    for (name, text) in plimsoll_report::csv(&run) {
        let mut widths: Vec<usize> = text.lines().map(|l| l.matches(',').count()).collect();
        widths.dedup();
        assert_eq!(widths.len(), 1, "{name}");
    }
}
