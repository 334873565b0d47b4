use plimsoll_model::comparison::{Group, GroupFigure};
use plimsoll_model::result::Axis;

use super::*;

const WEB: &str = include_str!("../../../../../published/web-n440bx-1998.toml");
const FILES_NT: &str = include_str!("../../../../../published/netbench-nt-1998.toml");
const FILES_SUN: &str = include_str!("../../../../../published/netbench-sun-1998.toml");
const NFS: &str = include_str!("../../../../../published/nfs-pseries-v2-2002.toml");

/// Each figure in both systems; the load is that of the peak.
fn comparison(labels: [&str; 2], claim: Claim, figures: &[(RatioFigure, f64, f64)]) -> Comparison {
    let row = |(figure, first, other): &(RatioFigure, f64, f64)| FigureRow {
        figure: *figure,
        load: (!figure.is_headline()).then_some(1_000.0),
        interpolated: false,
        not_counted: Vec::new(),
        groups: [first, other]
            .map(|mean| GroupFigure { mean: Some(*mean), ..GroupFigure::default() })
            .into(),
        ratios: vec![Ratio { ratio: Some(other / first), claim, ..Ratio::default() }],
    };
    let group = |label: &str| Group { label: label.to_owned(), ..Group::default() };
    let at_load = (RatioFigure::AchievedOpsPerS, 1_000.0, 1_000.0);
    Comparison {
        groups: labels.map(group).into(),
        axis: Axis { name: "requested load".to_owned(), unit: "ops/s".to_owned() },
        figures: figures.iter().chain([&at_load]).map(row).collect(),
        ..Comparison::default()
    }
}

fn cost(figure: CostFigure, first: f64, other: f64) -> (RatioFigure, f64, f64) {
    (RatioFigure::Cost(figure), first, other)
}

/// The finding alone, without the load at its end.
fn finding_text(comparison: &Comparison) -> String {
    let sentence = joined(comparison, 0).unwrap().replace('\u{a0}', " ");
    sentence.split(" (Costs at").next().unwrap().to_owned()
}

/// These figures are those of the transcribed report.
fn transcribed(report: &str, figures: &[&str]) {
    for figure in figures {
        assert!(report.contains(figure), "{figure}");
    }
}

#[test]
fn speed_comes_first_then_cpu_then_what_else_differs() {
    let it = comparison(
        ["a", "b"],
        Claim::Differs,
        &[
            (RatioFigure::Peak, 1_000.0, 1_120.0),
            cost(CostFigure::CpuPerOp, 50e3, 45.5e3),
            cost(CostFigure::DiskBusy, 0.4, 0.5),
            cost(CostFigure::CpuBusy, 0.55, 0.82),
            cost(CostFigure::ContextSwitchesPerOp, 2.0, 1.4),
        ],
    );
    assert_eq!(
        joined(&it, 0).unwrap().replace('\u{a0}', " "),
        "b compared with a: 12 % faster at 9.0 % less CPU per op; 30 % fewer context switches per \
         op, processors 82 % busy instead of 55 %, disks 25 % busier. (Costs at 1,000 ops/s, the \
         load of the peak.)"
    );
}

#[test]
fn what_was_not_seen_is_not_said_and_what_is_not_claimed_is_marked() {
    let figures = [(RatioFigure::Peak, 1_000.0, 1_010.0), cost(CostFigure::CpuPerOp, 50e3, 49e3)];
    let mut it = comparison(["a", "b"], Claim::NotDetectable, &figures);
    it.figures[1].ratios[0].interval = Some([0.95, 1.01]);
    let expected = "no difference in speed seen at no detectable difference in CPU per op";
    assert!(finding_text(&it).contains(expected), "{}", finding_text(&it));
    assert!(finding_text(&it).ends_with("(0.95–1.01)."), "{}", finding_text(&it));
    let few = comparison(["a", "b"], Claim::TooFewRuns, &figures);
    assert!(joined(&few, 0).unwrap().ends_with("load of the peak; too few runs for a claim.)"));
    assert_eq!(joined(&comparison(["a", "b"], Claim::Differs, &figures[..1]), 0), None);
}

/// *Compared to runs with fast-write enabled, disks housing the filesystem data were 25 % busier,
/// and disks housing the filesystem logs were twice as busy.*
#[test]
fn the_fast_write_cache_of_the_pseries_report_comes_out_as_it_was_printed() {
    let busier = r#"["data disks, busier without fast-write cache", "%", "25""#;
    let twice = r#"["log disks, busier without fast-write cache", "times", "2""#;
    transcribed(NFS, &[r#"["disks, busy", "%", "30""#, busier, twice]);
    let figures = [
        cost(CostFigure::DataDisksBusy, 0.30, 0.30 * 1.25),
        cost(CostFigure::LogDisksBusy, 0.30, 0.60),
    ];
    let labels = ["fast-write enabled", "fast-write disabled"];
    assert_eq!(
        finding_text(&comparison(labels, Claim::Differs, &figures)),
        "fast-write disabled compared with fast-write enabled: data disks 25 % busier, log disks \
         twice as busy."
    );
}

/// *Each of the ProLiant 3000's CPUs was 45 % utilized at peak performance; the Ultra Enterprise
/// 450 CPUs spent 29 % of their time in system and user time.* Two processors each.
#[test]
fn mindcrafts_processors_come_out_as_they_were_printed() {
    transcribed(FILES_NT, &[r#"["processors, at the peak", "45 % each""#, "64.1"]);
    transcribed(FILES_SUN, &["29 % busy"]);
    let figures = [
        (RatioFigure::Peak, 64.1, 14.9),
        cost(CostFigure::CpuPerOp, 2.0 * 0.45 / 64.1, 2.0 * 0.29 / 14.9),
        cost(CostFigure::CpuBusy, 0.45, 0.29),
    ];
    assert_eq!(
        finding_text(&comparison(
            ["ProLiant 3000", "Ultra Enterprise 450"],
            Claim::Differs,
            &figures
        )),
        "Ultra Enterprise 450 compared with ProLiant 3000: 77 % slower at 2.8 times the CPU per \
         op; processors 29 % busy instead of 45 %."
    );
}

/// *CPU utilization is 91 %* with two processors and *100 %* with one, at 1,825 and 1,150 ops/s.
#[test]
fn intels_second_processor_is_explained_by_its_utilisation() {
    let total = r#"["processors, total", "%", "99.4", "90.9"]"#;
    transcribed(WEB, &["peak_ops_per_s = 1150", "peak_ops_per_s = 1825", total]);
    let figures = [
        (RatioFigure::Peak, 1_150.0, 1_825.0),
        cost(CostFigure::CpuPerOp, 0.994e9 / 1_150.0, 2.0 * 0.909e9 / 1_825.0),
        cost(CostFigure::CpuBusy, 0.994, 0.909),
        cost(CostFigure::SystemShare, 85.24 / 99.4, 80.5 / 90.9),
    ];
    assert_eq!(
        finding_text(&comparison(["one processor", "two processors"], Claim::Differs, &figures)),
        "two processors compared with one processor: 59 % faster at 15 % more CPU per op; \
         processors 91 % busy instead of 99 %, 89 % of the CPU time in the kernel instead of 86 %."
    );
}

#[test]
fn a_server_that_would_have_carried_more_is_at_least_so_much_faster_or_its_speed_is_not_said() {
    let figures =
        [(RatioFigure::Peak, 40_000.0, 10_054.0), cost(CostFigure::CpuPerOp, 50e3, 150e3)];
    let mut it = comparison(["a", "b"], Claim::Differs, &figures);
    it.figures[0].groups[0].at_least = true;
    assert!(finding_text(&it).starts_with("b compared with a: at least 75 % slower at 3.0 times"));
    it.figures[0].ratios[0].claim = Claim::AtLeast;
    assert!(
        finding_text(&it).starts_with("b compared with a: 3.0 times the CPU per op"),
        "{}",
        finding_text(&it)
    );
}
