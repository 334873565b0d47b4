use plimsoll_model::comparison::{
    Claim, Curve, CurveFigure, CurvePoint, Difference, FigureRow, GroupRun, Method,
    PublishedSource, Ratio, RatioGateResult,
};

use plimsoll_model::gate::GateState;

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
    let runs = (1..=3).map(run).collect();
    Group { label: label.to_owned(), runs, ..Group::default() }
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

/// Ten points up to a load; groups with response times and the range of their runs.
fn curve(label: &str, most: f64, published: Option<u32>) -> Curve {
    let ranged = |value: f64| {
        let range = published.is_none().then_some([value * 0.98, value * 1.02]);
        Some(CurveFigure { value, range })
    };
    let point = |step: u32| {
        let load = most * f64::from(step) / 10.0;
        let response = |ns: f64| ranged(ns * f64::from(step)).filter(|_| published.is_none());
        CurvePoint {
            load,
            throughput: ranged(load * 0.995),
            response_mean_ns: response(200_000.0),
            response_p99_ns: response(900_000.0),
            not_counted: step == 10 && published.is_none(),
        }
    };
    let source = |year| PublishedSource {
        name: "old/system".to_owned(),
        year,
        source: format!("A <source> of {year}"),
    };
    let published = published.map(source);
    Curve { label: label.to_owned(), published, points: (1..=10).map(point).collect() }
}

/// Five servers and two published systems of very different size.
fn five_groups() -> Comparison {
    let labels = ["nginx", "caddy", "apache", "lighttpd", "builtin"];
    let mut it = comparison();
    it.groups = labels.map(group).to_vec();
    for row in &mut it.figures {
        row.groups.resize(5, row.groups[1].clone());
        row.ratios.resize(4, row.ratios[0].clone());
    }
    for difference in &mut it.differences {
        difference.values = labels.map(str::to_owned).to_vec();
    }
    it.axis.name = "requested load".to_owned();
    it.axis.unit = "ops/s".to_owned();
    let groups =
        (0..).zip(labels).map(|(at, label)| curve(label, 30_000.0 - 2_000.0 * f64::from(at), None));
    let old =
        [curve("1 processor", 1_000.0, Some(1998)), curve("2 processors", 1_661.0, Some(1998))];
    it.curves = groups.chain(old).collect();
    it
}

#[test]
fn five_groups_and_two_published_systems_are_drawn_in_one_chart_each() {
    let it = five_groups();
    let page = comparison_html(&it).unwrap();
    let chart = |id: &str| {
        let from = page.find(&format!("id=\"{id}-title\"")).unwrap_or_else(|| panic!("no {id}"));
        let end = page[from..].find("</svg>").unwrap();
        &page[from..from + end]
    };
    let throughput = chart("curves-throughput");
    // The old systems carry a twentieth: equal ratios are equal steps.
    assert!(throughput.contains("Throughput, ops/s; log scales"), "{throughput}");
    for number in 1..=7 {
        let dash = if number > 5 { " dashed" } else { "" };
        for class in ["course", "mark"] {
            assert!(
                throughput.contains(&format!("class=\"{class} c{number}{dash}\"")),
                "{class} {number}"
            );
        }
    }
    assert_eq!(throughput.matches("class=\"range").count(), 5, "published figures have no range");
    assert_eq!(throughput.matches(" open\"").count(), 5);
    assert_eq!(chart("curves-p99").matches("class=\"course").count(), 5, "what lacks is left out");
    assert!(page.contains("1 processor (published, 1998)<small>A &lt;source&gt; of 1998</small>"));
    assert!(comparison_text(&it).contains("curve: 2 processors (published, 1998), 10 load points"));
    insta::assert_snapshot!(comparison_markdown(&it));
}

#[test]
fn no_more_curves_are_drawn_than_can_be_told_apart_and_published_ones_are_kept() {
    let mut it = five_groups();
    it.curves.splice(5..5, (6..=9).map(|number| curve(&number.to_string(), 30_000.0, None)));
    let page = comparison_html(&it).unwrap();
    assert!(page.contains("3 curves are not drawn") && !page.contains("class=\"course c9"));
    assert!(page.contains("<b>8</b>") && page.contains("2 processors (published, 1998)"));
    it.curves = vec![Curve { points: Vec::new(), ..curve("a", 1.0, None) }];
    assert!(!comparison_html(&it).unwrap().contains("Curves over load"), "none has a course");
}

#[test]
fn one_group_beside_published_results_has_its_figures_and_no_ratio() {
    let mut it = five_groups();
    it.groups.truncate(1);
    it.differences.clear();
    for row in &mut it.figures {
        row.groups.truncate(1);
        row.ratios.clear();
    }
    let (page, text) = (comparison_html(&it).unwrap(), comparison_text(&it));
    assert!(page.contains("nginx beside published results") && page.contains("30,000 ops"));
    assert!(
        text.contains("peak") && text.contains("30,000 ops/s") && !text.contains('×'),
        "{text}"
    );
}
