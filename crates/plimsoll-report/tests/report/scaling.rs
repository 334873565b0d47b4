//! The page and the table of a scaling.

use plimsoll_model::event::Bound;
use plimsoll_model::limit::{Limit, LimitKind};
use plimsoll_model::scaling::{SCALING_FORMAT, Scaling, ScalingStep};
use plimsoll_report::{scaling_html, scaling_markdown};

fn step(value: f64, throughput: Option<f64>) -> ScalingStep {
    ScalingStep {
        name: format!("cores {value}"),
        value,
        throughput,
        interval: throughput.map(|t| [t - 10.0, t + 10.0]),
        bound: Bound::Exact,
        ratio: None,
        efficiency: None,
        limit: Limit {
            kind: LimitKind::Core,
            place: Some("core <1>".to_owned()),
            ..Limit::default()
        },
        limit_text: Some("one core | of <two>".to_owned()),
        valid: throughput.is_some(),
        bundle: format!("cores-{value}"),
    }
}

fn scaling(throughputs: &[(f64, Option<f64>)]) -> Scaling {
    let mut scaling = Scaling {
        format: SCALING_FORMAT,
        suite: "web-static".to_owned(),
        over: "cores".to_owned(),
        unit: "ops/s".to_owned(),
        steps: throughputs.iter().map(|(size, value)| step(*size, *value)).collect(),
    };
    scaling.compare();
    scaling
}

#[test]
fn ratio_and_efficiency_are_those_of_the_first_step_with_a_figure() {
    let scaling = scaling(&[(0.25, None), (0.5, Some(100.0)), (1.0, Some(150.0))]);
    let figures: Vec<_> = scaling.steps.iter().map(|s| (s.ratio, s.efficiency)).collect();
    assert_eq!(figures, [(None, None), (Some(1.0), Some(1.0)), (Some(1.5), Some(0.75))]);
    let table = scaling_markdown(&scaling);
    assert!(table.contains("| cores 0.25 | none | – | – | invalid | core <1> |"), "{table}");
    assert!(table.contains("| 1.50 | 75 % | valid |"), "{table}");
}

#[test]
fn the_page_draws_both_curves_escapes_what_it_shows_and_links_below_itself() {
    let page = scaling_html(&scaling(&[(0.5, Some(100.0)), (1.0, Some(150.0))])).unwrap();
    for part in
        ["Throughput, times the first step", "Efficiency, % of", "href=\"cores-0.5/report.html"]
    {
        assert!(page.contains(part), "{part:?}");
    }
    assert!(page.contains("of &lt;two&gt;") && !page.contains("<two>"));
    assert!(!page.contains("NaN") && !page.contains("http"));
}

#[test]
fn one_step_has_a_table_and_no_picture() {
    let page = scaling_html(&scaling(&[(1.0, Some(100.0))])).unwrap();
    assert!(page.contains("<table") && !page.contains("<svg"));
}
