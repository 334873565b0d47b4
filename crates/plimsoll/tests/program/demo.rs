//! The demo: its first suite from end to end, and Ctrl-C within the second.

use std::process::Stdio;

use rustix::process::Signal;

use plimsoll_testkit::program::{command, points_finished, result, signal, wait_for, wait_until};

/// All five suites take a minute of a test's time, one of them a fifth of that. Another test shows
/// that Ctrl-C ends the tour and not only the suite.
#[test]
fn the_demo_measures_a_suite_after_the_other_and_ends_with_ctrl_c() {
    let temp_dir = tempfile::tempdir().unwrap();
    let out = temp_dir.path().join("tour");
    let arguments = ["demo", "--out", out.to_str().unwrap(), "--progress", "none"];
    let mut demo = command(&arguments);
    let demo = demo.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (first, second) = (out.join("web-static"), out.join("nfs-v3"));
    wait_until("the first suite has ended", || first.join("report.html").exists());
    wait_until("a point of the second suite has finished", || points_finished(&second) > 0);
    signal(&demo, Signal::INT);
    let ended = wait_for(demo);

    let reports = [first.join("report.html"), second.join("report.html"), out.join("index.html")];
    let advice = format!("plimsoll resume {}", second.display());
    let page = format!("Open {}", reports[2].display());
    ended.check(4, &["web-static  ", &advice, "(demo)", "nfs-v3", &page]);
    let overview = std::fs::read_to_string(&reports[2]).unwrap();
    assert!(overview.contains("href=\"web-static/report.html\""), "{overview}");
    for report in reports {
        let text = std::fs::read_to_string(&report).unwrap();
        assert!(text.contains("</html>"), "{} is whole", report.display());
    }
    assert!(!out.join("disk-mix").exists() && !ended.err.contains("disk-mix"), "{}", ended.err);

    let whole = result(&first);
    let points = whole["points"].as_array().unwrap();
    assert_eq!(points.len(), 10);
    // Where other programs use the processors too, the ops of a short point may have to wait for its
    // end.
    let of_points = |what: &str| {
        let ops = points.iter().flat_map(|point| point["ops"].as_object().unwrap().values());
        ops.map(|op| op[what].as_u64().unwrap()).sum::<u64>()
    };
    assert!(of_points("count") > of_points("errors"), "ops were done: {whole}");
    for point in points {
        let failed = point["errors"].as_object().unwrap().keys();
        let in_earnest: Vec<&String> = failed.filter(|class| *class != "timeout").collect();
        assert!(in_earnest.is_empty(), "{point}");
    }
    // Where its core would have time for nothing but its other work.
    assert_eq!(points[9]["requested"], 5_000.0);
    assert!(whole["probes"].as_array().unwrap().is_empty(), "no search is needed");
}
