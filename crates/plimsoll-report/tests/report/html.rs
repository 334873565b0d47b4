//! The page as a whole: well formed, self-contained, escaped, complete, small.

use plimsoll_model::finding::{Interruption, Rule};
use plimsoll_model::result::RunResult;

use crate::fixture;

const VOID: [&str; 3] = ["meta", "br", "hr"];

fn page(run: &RunResult) -> String {
    let html = plimsoll_report::html(run).expect("every result renders");
    check(&html);
    html
}

/// Checks that apply to every page.
fn check(html: &str) {
    assert!(html.starts_with("<!doctype html>"), "doctype first, else browsers fall to quirks");
    for bad in ["NaN", "inf\"", "None", "Some(", "undefined", "{{", "{%"] {
        assert!(!html.contains(bad), "{bad:?} in the page");
    }
    let elsewhere = html.replace("href=\"#", "");
    for network in ["src=", "href=", "url(", "@import", "fetch(", "XMLHttp"] {
        assert!(!elsewhere.contains(network), "{network:?} in the page: it must load nothing");
    }
    balanced(html);
    unique_ids(html);
    contents_lead_somewhere(html);
    headings_in_order(html);
}

/// Tags in order of appearance, script and style skipped.
fn tags(html: &str) -> Vec<&str> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        let end = rest[start..].find('>').expect("each < of markup is closed") + start;
        let tag = &rest[start + 1..end];
        tags.push(tag);
        rest = &rest[end + 1..];
        for raw in ["script", "style"] {
            if tag == raw {
                let close = format!("</{raw}>");
                rest = &rest[rest.find(&close).expect("raw text is closed")..];
            }
        }
    }
    tags
}

fn balanced(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in tags(html) {
        if tag.starts_with('!') || tag.ends_with('/') {
            continue;
        }
        let name = tag.trim_start_matches('/').split_whitespace().next().unwrap_or("");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closed in the order opened");
        } else if !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

fn unique_ids(html: &str) {
    let mut ids: Vec<&str> =
        html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "ids are unique");
}

fn contents_lead_somewhere(html: &str) {
    for link in html.split("href=\"#").skip(1) {
        let id = link.split('"').next().unwrap_or_default();
        assert!(html.contains(&format!(" id=\"{id}\"")), "no element #{id}");
    }
}

fn headings_in_order(html: &str) {
    let mut before = 0;
    for tag in tags(html) {
        let level = match tag.as_bytes() {
            [b'h', level @ b'1'..=b'6'] => level - b'0',
            _ => continue,
        };
        assert!(level <= before + 1, "h{level} after h{before}");
        before = level;
    }
    assert!(before > 0, "the page has headings");
}

#[test]
fn a_valid_run_says_so_first_and_shows_its_figures() {
    let html = page(&fixture::valid(30));
    let first = html.split("<section id=").next().unwrap();
    for text in ["✓", "Valid (standard)", "25,977", "1 warning", "2 deviations", "Not saturated"]
    {
        assert!(first.contains(text), "{text:?} on the first screen");
    }
    for text in [
        "achieved = requested",
        "warm-up",
        "Send lag p99, own part",
        "host: processors, busy",
        "Resources over load",
        ">peak</text>",
        "Response time over throughput",
        "somaxconn",
        "2 parameters, 1 with a deviation",
        "≠ keep-alive",
        "public: RFC 1945",
        "ours: no source has them",
    ] {
        assert!(html.contains(text), "{text:?} in the report");
    }
    assert!(html.contains("not comparable with official results"));
}

#[test]
fn an_invalid_run_gives_reasons_and_marks_its_points_by_shape_and_word() {
    let html = page(&fixture::invalid(30));
    assert!(html.contains("✗") && html.contains("Invalid (quick)"));
    assert!(html.contains("ask for less, give the server more resources"));
    assert!(html.contains("class=\"cross s1\"") && html.contains("8–10 invalid</text>"));
    assert!(html.contains("sample too small"), "absent percentiles are explained");
}

#[test]
fn markup_from_a_server_stays_text() {
    let mut run = fixture::invalid(3);
    let evil = "</script><img src=x onerror=alert(1)>\"'&";
    run.targets = vec![evil.into()];
    run.axis.name = evil.into();
    run.axis.unit = evil.into();
    run.command.push(evil.into());
    run.departures.push(evil.into());
    run.method[0].value = evil.into();
    run.verdict.reasons[0] = Rule::Aborted { cause: evil.into(), nothing_finished: false }.of_run();
    run.points[0].errors.insert(evil.into(), 1);
    run.points[0].resources[0].name = evil.into();
    run.disclosure.as_mut().unwrap().targets[0].configuration = Some(evil.into());
    let html = plimsoll_report::html(&run).unwrap();
    assert!(!html.contains("<img") && !html.contains("<script>alert"));
    assert_eq!(html.matches("<script>").count(), 1, "only the page's own script");
    balanced(&html);
}

#[test]
fn a_run_interrupted_before_its_first_point_has_a_report() {
    let html = page(&fixture::interrupted());
    assert!(html.contains("No load point was finished") && html.contains("plimsoll resume DIR"));
    assert!(!html.contains("<svg"), "nothing was measured, nothing is drawn");
}

#[test]
fn a_curve_from_elsewhere_shows_what_it_has() {
    let html = page(&fixture::curve());
    assert!(html.contains("Curve from elsewhere") && html.contains(">mean</text>"));
    assert!(!html.contains("p99.9"), "columns without a value are left out");
    assert!(!html.contains("achieved = requested"), "the load has no unit");
    assert!(html.contains("Service time, log scale") && html.contains("Not judged"));
    assert!(!html.contains("class=\"cross"), "its points have no verdict");
}

#[test]
fn a_single_point_against_two_targets_shows_both_and_the_clients_that_stayed() {
    let html = page(&fixture::single());
    assert!(html.contains("By target") && html.contains("62\u{a0}of\u{a0}64"));
    assert!(html.contains("Busiest worker") && html.contains("too small for the percentile"));
    assert!(html.contains("192.0.2.18"));
}

#[test]
fn file_serving_shows_its_peak_with_its_overall_response_time_and_marks_what_is_not_counted() {
    let html = page(&fixture::nfs(30));
    let first = html.split("<section id=").next().unwrap();
    for text in ["peak throughput", "7.54", "8.14", "overall response, span", "divided by the peak"]
    {
        assert!(first.contains(text), "{text:?} on the first screen");
    }
    for text in [
        "above the cap, not\u{a0}counted",
        "✗ errors; above the cap",
        "class=\"not-counted\"",
        "class=\"ring s1\"",
        "Mean service time, ms",
        "cap: not counted above",
        "sent again",
        "ambiguous",
        "readdirplus",
        "may have lost writes",
        "refused the call itself",
        "not comparable with official results",
    ] {
        assert!(html.contains(text), "{text:?} in the report");
    }
}

#[test]
fn a_web_report_has_no_columns_of_file_serving() {
    let html = page(&fixture::valid(30));
    for text in ["sent again", "ambiguous", "service mean", "overall response, span", "ring s1"] {
        assert!(!html.contains(&format!(">{text}")), "{text:?} in a web report");
    }
}

#[test]
fn a_full_profile_of_ten_points_stays_small() {
    let html = page(&fixture::valid(600));
    assert!(html.len() < 1_500_000, "{} bytes", html.len());
}

#[test]
fn odd_numbers_do_not_break_the_page() {
    let mut run = fixture::valid(3);
    run.points[0].requested = f64::NAN;
    run.points[1].achieved_ops_per_s = Some(f64::INFINITY);
    run.points[2].timeline[1].ops_per_s = f64::NAN;
    run.points[3].response_percentiles = vec![(f64::NAN, 3), (100.0, 4)];
    run.points[4].resources[0].mean = f64::NAN;
    run.points[5].response_ns = None;
    run.summary.value = Some(f64::NAN);
    page(&run);
}

#[test]
fn the_chart_of_a_suite_of_bytes_is_drawn_in_mib_per_second() {
    for run in [fixture::smb(3), fixture::sweep(3)] {
        let html = page(&run);
        assert!(html.contains("Throughput, MiB/s") && !html.contains("Throughput, ops/s"));
    }
}

#[test]
fn asymptotes_knee_and_peak_are_marked_in_the_curve_and_said_below_it() {
    let run = fixture::smb(3);
    let html = page(&run);
    assert!(html.contains(
        "queueing must begin at 4.4 clients; knee at 5.1 (4–8) clients; highest at 16 clients, on \
         a plateau to 28"
    ));
    for word in [">queueing</text>", ">knee</text>", ">peak</text>"] {
        assert_eq!(html.matches(word).count(), 2, "wide and narrow: {word}");
    }
    assert!(html.contains("Line and band: the knee, where two straight"));
    assert!(!page(&fixture::valid(3)).contains("Shape of the curve"));
    let markdown = plimsoll_report::markdown(&run);
    assert!(markdown.contains("Shape of the curve: queueing must begin at 4.4 clients; knee at"));
    let sheets = plimsoll_report::csv(&run);
    let (_, curve) = sheets.iter().find(|(name, _)| name == "curve.csv").unwrap();
    let lines: Vec<&str> = curve.lines().collect();
    assert_eq!(lines[0], "figure,unit,value,low,high");
    assert!(lines.contains(&"knee,clients,5.1,4,8"), "{curve}");
    assert!(lines.contains(&"peak,bytes/s,1950885,,"), "{curve}");
}

#[test]
fn the_name_of_the_line_of_held_loads_does_not_stand_in_the_peaks_name() {
    let html = page(&fixture::valid(3));
    let height = |name: &str| -> f64 {
        let end = html.find(&format!(">{name}</text>")).unwrap();
        let y = html[..end].rfind(" y=\"").unwrap() + 4;
        html[y..].split('"').next().unwrap().parse().unwrap()
    };
    assert!((height("achieved = requested") - height("peak")).abs() > 20.0);
}

#[test]
fn each_point_has_a_cell_with_its_limit_below_the_curve() {
    let html = page(&fixture::invalid(3));
    assert_eq!(html.matches("class=\"cell none\"").count(), 2 * 7, "wide and narrow");
    assert_eq!(html.matches("class=\"cell cpu\" x").count(), 2 * 3);
    for text in [
        ">not saturated</text>",
        ">core 1</text>",
        "<title>point 8, 28,000 ops/s: core 1; one core of the server (core 1",
        "The figures that say so, of load points that a resource held back",
        "server: processor, cores used",
        "0.987\u{a0}cores",
        "<b>Points 1–7</b>",
    ] {
        assert!(html.contains(text), "{text:?} in the report");
    }
    let curve = page(&fixture::curve());
    assert!(!curve.contains("class=\"cell") && !curve.contains(">unknown<"), "no verdict");
}

#[test]
fn two_limits_at_once_are_both_named_with_their_evidence() {
    let html = page(&fixture::nfs(3));
    let named = "disk: nvme0n1 and pool: service threads";
    assert!(html.contains(named) && html.contains("server: service threads busy"));
    assert!(html.contains("798\u{a0}1&#x2f;s"), "the value with its unit");
}

#[test]
fn resources_are_drawn_over_load_and_their_table_is_folded_without_zeros() {
    let html = page(&fixture::nfs(3));
    let section = html.split("id=\"resources\"").nth(1).unwrap();
    let section = section.split("</section>").next().unwrap();
    for text in [
        "Processors of the server",
        "Disk nvme0n1",
        "reads allowed",
        "Requests in its queue",
        ">allowed</text>",
        "Service threads",
        "<summary>All resources that were watched</summary>",
        "server on nvme0n1: reads it may do",
    ] {
        assert!(section.contains(text), "{text:?} in the section of resources");
    }
    for zero in ["dropped before they were accepted", "not yet accepted", "kept by the hypervisor"]
    {
        assert!(!html.contains(zero), "{zero:?} was zero at every load");
    }
    assert!(!html.contains("· this host"), "there is no other");
    assert!(!page(&fixture::single()).contains("Processors of the server"), "one point");
}

#[test]
fn resources_of_another_host_say_whose_they_are() {
    let html = page(&fixture::smb(3));
    for text in [
        "Processors of the server · ssh://lab@files.example",
        "Processors of the server · this host",
        "Network eth0.100 · ssh://lab@files.example",
        "network eth0.100: sent, share of the link",
        "network: eth0.100",
    ] {
        assert!(html.contains(text), "{text:?} in the report");
    }
}

#[test]
fn a_window_of_less_than_two_seconds_has_no_drawing_of_seconds() {
    assert!(page(&fixture::valid(2)).contains("Second by second"));
    assert!(!page(&fixture::valid(1)).contains("Second by second"), "a line needs two");
}

#[test]
fn the_live_page_hears_of_its_own_run_and_of_nothing_else() {
    let page = plimsoll_report::live_page().unwrap();
    for network in ["src=", "url(", "@import", "fetch(", "XMLHttp", "://", "{{", "{%"] {
        assert!(!page.contains(network), "{network:?} in the page");
    }
    assert_eq!(page.matches("new EventSource(\"events\")").count(), 1);
    // Screen readers announce finished points, but not each second.
    assert_eq!(page.matches("role=\"status\"").count(), 1);
    let report = plimsoll_report::html_body(&fixture::valid(30)).unwrap();
    let filled = page.replace("<div id=\"report\">", &format!("<div id=\"report\">{report}"));
    unique_ids(&filled);
}

#[test]
fn the_body_of_a_page_is_what_the_report_shows() {
    let run = fixture::invalid(30);
    assert!(page(&run).contains(&plimsoll_report::html_body(&run).unwrap()));
}

#[test]
fn a_run_that_goes_on_has_no_verdict_yet() {
    let mut run = fixture::invalid(30);
    let interrupted = Rule::Interrupted { how: Interruption::Stopped, nothing_finished: false };
    run.verdict.reasons.insert(0, interrupted.of_run());
    let body = plimsoll_report::html_body_so_far(&run).unwrap();
    assert!(body.contains("verdict open") && body.contains("Under way: "));
    assert!(body.contains("Points that must not be relied on:"), "{body}");
    assert!(!body.contains("the run was interrupted") && !body.contains("Invalid (quick)"));
}

#[test]
#[ignore = "writes every fixture as a page to look at"]
fn fixtures_are_pages_below_target_tmp() {
    let runs = [
        ("valid", fixture::valid(30)),
        ("invalid", fixture::invalid(30)),
        ("full", fixture::valid(600)),
        ("interrupted", fixture::interrupted()),
        ("curve", fixture::curve()),
        ("single", fixture::single()),
        ("nfs", fixture::nfs(30)),
        ("smb", fixture::smb(30)),
        ("sweep", fixture::sweep(30)),
        ("llm", fixture::llm(30)),
        ("llm-without-usage", fixture::llm_without_usage(30)),
    ];
    for (name, run) in runs {
        std::fs::write(format!("{}/{name}.html", env!("CARGO_TARGET_TMPDIR")), page(&run)).unwrap();
    }
}
