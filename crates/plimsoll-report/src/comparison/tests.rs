use plimsoll_model::comparison::{
    Claim, Difference, FigureRow, GroupRun, Method, Ratio, RatioGateResult,
};

use super::*;

fn group(label: &str) -> Group {
    let run = |n: u32| GroupRun {
        bundle: format!("v/{label}/{n}"),
        targets: vec![label.to_owned()],
        valid: true,
        value: Some(30_000.0),
        limit: Some("the <core> was full".to_owned()),
        ..GroupRun::default()
    };
    Group { label: label.to_owned(), runs: (1..=3).map(run).collect(), splits: Vec::new() }
}

fn row(figure: RatioFigure, load: Option<f64>, ratio: Ratio) -> FigureRow {
    let of =
        |mean| GroupFigure { mean: Some(mean), spread_ratio: Some(0.031), ..Default::default() };
    FigureRow {
        figure,
        load,
        interpolated: false,
        not_counted: Vec::new(),
        groups: vec![of(30_000.0), of(21_600.0)],
        ratios: vec![ratio],
    }
}

fn comparison() -> Comparison {
    let differs = Ratio {
        ratio: Some(0.72),
        interval: Some([0.69, 0.75]),
        interval_of_all: Some([0.66, 0.78]),
        method: Some(Method::PairedT),
        runs: [3, 3],
        detectable: Some(1.08),
        claim: Claim::Differs,
    };
    let same = Ratio {
        ratio: Some(1.01),
        interval: Some([0.96, 1.06]),
        claim: Claim::NotDetectable,
        ..differs.clone()
    };
    Comparison {
        suite: "web-static".to_owned(),
        profile: "quick".to_owned(),
        unit: "ops/s".to_owned(),
        paired: true,
        groups: vec![group("managed:nginx"), group("managed:caddy")],
        differences: vec![Difference {
            name: "target".to_owned(),
            values: vec!["managed:nginx".to_owned(), "<b>".to_owned()],
        }],
        figures: vec![
            row(RatioFigure::Peak, None, differs.clone()),
            row(RatioFigure::P50, Some(4_000.0), same),
            row(RatioFigure::P99, Some(4_000.0), differs),
        ],
        ..Comparison::default()
    }
}

#[test]
fn the_page_says_the_finding_first_and_draws_every_ratio() {
    let page = comparison_html(&comparison()).unwrap().replace("&#x2f;", "/");
    let first = "Peak: managed:caddy 21,600 ops/s, managed:nginx 30,000 ops/s: × 0.72 (0.69–0.75), \
                 28 % less.";
    assert!(page.contains(first), "{page}");
    assert!(page.contains("p50 at 4,000: none seen (0.96–1.06)"), "{page}");
    assert!(page.contains("class=\"whisker s1\"") && page.contains("class=\"whisker weak\""));
    assert!(page.contains("&lt;b&gt;") && !page.contains("<b>&lt;") && !page.contains("<core>"));
    assert!(!page.contains("http://") && !page.contains("https://"), "no network");
}

#[test]
fn a_forced_comparison_is_marked_wherever_it_is_shown() {
    let mut forced = comparison();
    forced.forced = vec!["seeds differ: a has 1, b has 2".to_owned()];
    let page = comparison_html(&forced).unwrap();
    let (text, md) = (comparison_text(&forced), comparison_markdown(&forced));
    for shown in [page, text, md] {
        assert!(shown.contains(FORCED) && shown.contains("seeds differ"), "{shown}");
    }
}

#[test]
fn text_and_markdown_hold_figures_conditions_and_notes() {
    let mut it = comparison();
    it.notes = vec!["mind *this*".to_owned()];
    it.gates = vec![RatioGateResult {
        expr: "p99 > 1.05x".parse().unwrap(),
        group: "managed:caddy".to_owned(),
        state: GateState::Unsure,
        fails: false,
        ratio: Some(1.02),
        interval: None,
        load: Some(4_000.0),
    }];
    let text = comparison_text(&it);
    assert!(
        text.contains(
            "managed:caddy compared with managed:nginx (web-static, profile quick, 3 pairs"
        )
    );
    let gate = "p99 > 1.05x: unsure, managed:caddy × 1.02 at 4,000; fewer than three runs a side";
    assert!(text.contains(gate), "{text}");
    assert!(text.contains("no difference seen (0.96–1.06); 8.0 % would have been"), "{text}");
    let md = comparison_markdown(&it);
    assert!(md.contains("| 4,000 | none seen (0.96–1.06) | × 0.72 (0.69–0.75) |"), "{md}");
    assert!(md.contains(r"mind \*this\*"), "{md}");
}

#[test]
fn costs_are_told_at_the_load_of_the_peak_and_the_others_stand_in_a_table() {
    use plimsoll_model::cost::CostFigure;
    let mut it = comparison();
    let ratio = it.figures[0].ratios[0].clone();
    for load in [1_000.0, 2_000.0, 4_000.0] {
        let mut done = row(RatioFigure::AchievedOpsPerS, Some(load), ratio.clone());
        done.groups.iter_mut().for_each(|group| group.mean = Some(load));
        it.figures.push(done);
        let cpu = RatioFigure::Cost(CostFigure::CpuPerOp);
        it.figures.push(row(cpu, Some(load), ratio.clone()));
    }
    let (page, text) = (comparison_html(&it).unwrap(), comparison_text(&it));
    let first = "managed:caddy compared with managed:nginx: 28 % slower at 28 % less CPU per op. \
                 (Costs at 4,000";
    assert!(page.replace("&#x2f;", "/").contains(first), "{page}");
    assert_eq!(text.matches("CPU per op ").count(), 1, "{text}");
    assert!(text.contains("CPU per op         30.0 µs → 21.6 µs  × 0.72 (0.69–0.75)"), "{text}");
    let md = comparison_markdown(&it);
    assert!(md.contains("| 1,000 | × 0.72 (0.69–0.75) |"), "{md}");
}
