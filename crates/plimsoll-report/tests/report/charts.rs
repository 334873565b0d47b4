//! Charts as files of their own.

use std::collections::BTreeSet;

use plimsoll_model::event::Bound;
use plimsoll_model::result::RunResult;
use plimsoll_report::Supplements;

use crate::fixture;

fn charts(run: &RunResult) -> Vec<(String, String)> {
    plimsoll_report::charts(run)
}

fn names(run: &RunResult) -> Vec<String> {
    charts(run).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn each_chart_is_a_file_that_stands_alone() {
    let of_clients = [fixture::smb(30), fixture::sweep(30)];
    let runs = [fixture::valid(30), fixture::invalid(30), fixture::nfs(30)];
    for run in runs.into_iter().chain(of_clients) {
        for (name, svg) in charts(&run) {
            assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{name}");
            assert!(svg.trim_end().ends_with("</svg>") && svg.matches("<svg").count() == 1);
            assert_eq!(svg.matches("<style>").count(), 1, "{name}");
            for elsewhere in ["var(", "url(", "href", "@import", "NaN"] {
                assert!(!svg.contains(elsewhere), "{elsewhere:?} in {name}");
            }
        }
        let all = names(&run);
        let different: BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
        for expected in [
            "load.svg",
            "throughput.svg",
            "response-over-throughput.svg",
            "response.svg",
            "response-over-time.svg",
            "percentiles.svg",
            "ops.svg",
            "point-10-seconds.svg",
            "resources-processors-of-the-server.svg",
        ] {
            // The fixtures of clients have neither as many points nor a server watched here.
            let there = all.iter().any(|name| name == expected);
            assert!(there || run.axis.unit != "ops/s", "{all:?}");
        }
    }
}

/// A server that was not saturated had its highest throughput marked as its peak.
#[test]
fn a_peak_is_marked_only_where_throughput_stopped_following_the_load() {
    let marked = |run: &RunResult| charts(run).iter().any(|(_, svg)| svg.contains(">peak</text>"));
    for mut run in [fixture::valid(30), fixture::smb(30), fixture::sweep(30)] {
        run.summary.bound = Bound::Exact;
        assert!(marked(&run), "{}", run.summary.metric);
        run.summary.bound = Bound::AtLeast;
        assert!(!marked(&run), "{}", run.summary.metric);
    }
    assert!(!marked(&fixture::curve()), "nothing bounds it");
}

#[test]
fn what_was_not_measured_has_no_file() {
    assert!(names(&fixture::interrupted()).is_empty());
    let curve = names(&fixture::curve());
    assert!(curve.contains(&"throughput.svg".to_owned()), "{curve:?}");
    assert!(!curve.iter().any(|name| name.contains("time") || name.contains("ops")), "{curve:?}");
}

#[test]
fn the_heat_map_shows_the_stall_of_the_seventh_second() {
    let heat = |run: &RunResult| {
        let all = charts(run);
        all.into_iter().find(|(name, _)| name == "response-over-time.svg").unwrap().1
    };
    let run = fixture::valid(30);
    let mut calm = run.clone();
    for times in calm.points.iter_mut().filter_map(|p| p.response_over_time.as_mut()) {
        times.counts[6] = times.counts[5].clone();
    }
    let marks = |svg: &str| svg.matches("h").count();
    assert!(marks(&heat(&run)) > marks(&heat(&calm)), "the stall has areas of its own");
}

#[test]
fn a_repository_shows_the_pictures_in_the_markdown() {
    let text =
        plimsoll_report::markdown_with_charts(&fixture::nfs(3), &Supplements::default(), "charts/");
    for file in ["throughput", "response-over-throughput", "response", "response-over-time", "ops"]
    {
        assert!(text.contains(&format!("](<charts/{file}.svg>)")), "{file}: {text}");
    }
    let at = text.find("![").unwrap();
    assert!(text.find("To repeat it").unwrap() < at && at < text.find("## Load points").unwrap());
}
