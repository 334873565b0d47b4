//! Markdown and CSV against their snapshots.

mod fixture;

#[test]
fn markdown_of_an_invalid_run_reads_as_a_report() {
    insta::assert_snapshot!(plimsoll_report::markdown(&[fixture::invalid(3)]));
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
