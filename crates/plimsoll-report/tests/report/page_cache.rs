//! Reads of disks instead of memory, in the page, the Markdown and the tables.

use plimsoll_model::page_cache::{DiskReader, PageCacheUse, PredictedMisses};
use plimsoll_model::result::RunResult;

use crate::fixture;

/// The simulated run on a server with memory for half of its files.
pub fn cached(seconds: u32) -> RunResult {
    let mut run = fixture::valid(seconds);
    for point in &mut run.points {
        let predicted = PredictedMisses {
            full_bytes: 209_715_200.0,
            miss_ratio: Some(0.3),
            hit_ratio: Some(0.9),
            curve: vec![(0.0, 1.2), (104_857_600.0, 0.3), (209_715_200.0, 0.0)],
        };
        point.page_cache = Some(PageCacheUse {
            miss_ratio: 0.32,
            reads_of: DiskReader::ControlGroup,
            available_bytes: Some(104_857_600.0),
            refaults_per_s: Some(75.0),
            major_faults_per_s: Some(2.0),
            predicted: Some(predicted),
        });
    }
    run
}

#[test]
fn measured_misses_are_beside_those_of_the_formula() {
    let run = cached(3);
    let page = plimsoll_report::html(&run).unwrap();
    assert!(page.contains("<a href=\"#page-cache\">Memory and disks</a>"), "in the contents");
    assert!(page.contains("memory for files, MiB") && page.contains("32.0 % with 100"), "drawn");
    let text = plimsoll_report::markdown(&run);
    for expected in [
        "| memory for files, MiB | memory for all that is read, MiB | misses, % | misses predicted, % |",
        "| 100 | 200 | 32.0 | 30.0 | 90.0 | 75.0 | 2.00 | the server's control group |",
        "Che's approximation",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let sheets = plimsoll_report::csv(&run);
    let points = &sheets.iter().find(|(name, _)| name == "points.csv").unwrap().1;
    assert!(points.lines().next().unwrap().contains(",miss_ratio,miss_ratio_predicted,"));
    let charts = plimsoll_report::charts(&run);
    assert!(charts.iter().any(|(name, _)| name == "misses-over-memory.svg"));
}

#[test]
fn a_pattern_that_is_not_ours_has_no_prediction() {
    let mut run = cached(3);
    let caches = run.points.iter_mut().filter_map(|point| point.page_cache.as_mut());
    caches.for_each(|cache| cache.predicted = None);
    let text = plimsoll_report::markdown(&run);
    assert!(text.contains("There is no prediction, because the access pattern is not ours."));
    assert!(!plimsoll_report::html(&run).unwrap().contains("chart-page-cache"));
    assert!(!plimsoll_report::markdown(&fixture::valid(3)).contains("Memory and disks"));
}
