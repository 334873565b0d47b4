use plimsoll_model::comparison::{Claim, Curve, Method, RatioFigure};
use plimsoll_model::disclosure::TargetDisclosure;
use plimsoll_model::event::Bound;
use plimsoll_model::gate::GateState;
use plimsoll_model::result::{Censored, NotCounted};

use super::*;
use crate::analyse;
use crate::published::PublishedCurve;
use crate::testing::{PointBuilder, RunBuilder};

mod costs;

/// A run of two load points whose ops all took `response_ns`.
fn run_at(loads: [f64; 2], response_ns: u64) -> RunInput {
    let points = loads.map(|load| PointBuilder::open(load).response_ns(response_ns));
    let mut result = analyse(&RunBuilder::from_points(points).raw());
    // As if the server had not sustained the next load.
    result.summary.bound = Bound::Exact;
    RunInput { bundle: format!("run-{response_ns}"), result, suite: toml::Table::new() }
}

fn run(response_ns: u64) -> RunInput {
    run_at([1_000.0, 2_000.0], response_ns)
}

fn group(label: &str, times_ns: &[u64]) -> GroupInput {
    GroupInput {
        label: label.to_owned(),
        is_named: false,
        runs: times_ns.iter().map(|ns| run(*ns)).collect(),
    }
}

const FAST: [u64; 4] = [1_000_000, 1_020_000, 990_000, 1_010_000];
const SLOW: [u64; 4] = [2_000_000, 2_050_000, 1_980_000, 2_010_000];

fn compared(groups: &[GroupInput]) -> Comparison {
    compare(groups, CompareOptions::default()).unwrap()
}

fn row(comparison: &Comparison, figure: RatioFigure, load: Option<f64>) -> &FigureRow {
    comparison.rows(figure).find(|row| row.load == load).unwrap()
}

#[test]
fn groups_that_differ_are_said_to_with_the_ratio_and_its_interval() {
    let comparison = compared(&[group("a", &FAST), group("b", &SLOW)]);
    let p50 = &row(&comparison, RatioFigure::P50, Some(1_000.0)).ratios[0];
    let ([low, high], ratio) = (p50.interval.unwrap(), p50.ratio.unwrap());
    assert!((ratio - 2.0).abs() < 0.01 && low > 1.9 && high < 2.1, "{p50:?}");
    assert_eq!((p50.claim, p50.method), (Claim::Differs, Some(Method::Welch)));
    assert_eq!(p50.runs, [4, 4]);
    // The same requests were answered: throughput is the same.
    let achieved = &row(&comparison, RatioFigure::AchievedOpsPerS, Some(2_000.0)).ratios[0];
    assert_eq!(achieved.claim, Claim::NotDetectable);
    assert!(achieved.detectable.unwrap() < 1.01, "{achieved:?}");
}

#[test]
fn groups_of_one_kind_have_no_detectable_difference_and_it_is_said_what_would_have_been_seen() {
    let comparison = compared(&[group("a", &FAST), group("b", &[1_005_000, 1_030_000, 985_000])]);
    let p99 = &row(&comparison, RatioFigure::P99, Some(2_000.0)).ratios[0];
    assert_eq!(p99.claim, Claim::NotDetectable);
    // With ten ratios that share the 5 %.
    assert!((1.15..1.3).contains(&p99.detectable.unwrap()), "{p99:?}");
}

#[test]
fn of_fewer_than_three_runs_nothing_is_claimed() {
    let comparison = compared(&[group("a", &FAST), group("b", &[2_000_000])]);
    let p50 = &row(&comparison, RatioFigure::P50, Some(1_000.0)).ratios[0];
    assert_eq!((p50.claim, p50.interval, p50.detectable), (Claim::TooFewRuns, None, None));
    assert!(p50.ratio.unwrap() > 1.9);
    assert!(
        comparison.notes.iter().any(|note| note.contains("ratios only")),
        "{:?}",
        comparison.notes
    );
}

#[test]
fn runs_of_other_methods_are_refused_or_marked() {
    let check = |change: fn(&mut RunInput), what: &str| {
        let (a, mut b) = (group("a", &FAST), group("b", &SLOW));
        change(&mut b.runs[1]);
        let groups = [a, b];
        let error = compare(&groups, CompareOptions::default()).unwrap_err().to_string();
        assert!(error.starts_with(what) && error.contains("--force"), "{error}");
        let forced = CompareOptions { force: true, ..CompareOptions::default() };
        let marked = compare(&groups, forced).unwrap().forced;
        assert!(marked[0].starts_with(what), "{marked:?}");
    };
    check(|run| run.result.seed = Some(2), "seeds differ: run-1000000 has 1, run-2050000 has 2");
    check(|run| run.result.profile = Some("quick".into()), "profiles differ");
    check(|run| run.result.suite.as_mut().unwrap().name = "nfs-v3".into(), "suites differ");
    check(|run| run.result.axis.unit = "clients".into(), "kinds of load differ");
    check(|run| run.result.format = 2, "result formats differ");
    check(
        |run| run.suite = toml::from_str("load = { mode = \"closed\" }").unwrap(),
        "modes of load differ",
    );
    check(
        |run| {
            let disclosure = run.result.disclosure.get_or_insert_default();
            disclosure.tool.version = "9".into();
        },
        "versions of plimsoll differ",
    );
}

#[test]
fn figures_of_invalid_runs_and_points_are_left_out_unless_forced() {
    let (a, mut b) = (group("a", &FAST), group("b", &SLOW));
    b.runs[0].result.verdict.valid = false;
    b.runs[0].result.points[0].valid = false;
    let groups = [a, b];
    let comparison = compared(&groups);
    assert_eq!(row(&comparison, RatioFigure::Peak, None).groups[1].values[0], None);
    assert_eq!(row(&comparison, RatioFigure::P50, Some(1_000.0)).groups[1].values[0], None);
    assert!(row(&comparison, RatioFigure::P50, Some(2_000.0)).groups[1].values[0].is_some());
    assert!(
        comparison.notes.iter().any(|note| note.contains("left out")),
        "{:?}",
        comparison.notes
    );
    let forced =
        compare(&groups, CompareOptions { force: true, ..CompareOptions::default() }).unwrap();
    assert!(row(&forced, RatioFigure::Peak, None).groups[1].values[0].is_some());
    assert!(forced.forced[0].contains("is not valid"), "{:?}", forced.forced);
}

#[test]
fn a_lower_bound_is_not_compared() {
    let (a, mut b) = (group("a", &FAST), group("b", &SLOW));
    for run in &mut b.runs {
        run.result.points[0].censored = Some(Censored { unsent: 1, ..Censored::default() });
    }
    let comparison = compared(&[a, b]);
    assert!(
        row(&comparison, RatioFigure::P50, Some(1_000.0)).groups[1]
            .values
            .iter()
            .all(|it| it.is_none())
    );
    assert!(row(&comparison, RatioFigure::P50, Some(2_000.0)).groups[1].values[0].is_some());
}

#[test]
fn curves_without_a_common_load_are_drawn_straight_between_their_points() {
    let a = GroupInput {
        label: "a".into(),
        is_named: false,
        runs: vec![run_at([1_000.0, 2_000.0], 1_000_000)],
    };
    let mut b = GroupInput {
        label: "b".into(),
        is_named: false,
        runs: vec![run_at([1_500.0, 2_500.0], 1_000_000)],
    };
    let p50 = |run: &mut RunInput, index: usize, ns| {
        run.result.points[index].response_ns.as_mut().unwrap().p50 = Some(ns);
    };
    p50(&mut b.runs[0], 0, 1_000_000);
    p50(&mut b.runs[0], 1, 4_000_000);
    let comparison = compared(&[a, b]);
    let loads: Vec<_> = comparison.rows(RatioFigure::P50).map(|row| row.load.unwrap()).collect();
    assert_eq!(loads, [2_000.0], "1,000 is below the second curve");
    let p50 = row(&comparison, RatioFigure::P50, Some(2_000.0));
    assert!(p50.interpolated);
    let between = p50.groups[1].mean.unwrap();
    assert!((between / 2e6 - 1.0).abs() < 0.01, "half way in logarithms: {between}");
    assert!(
        comparison.notes.iter().any(|note| note.contains("--like DIR")),
        "{:?}",
        comparison.notes
    );
}

#[test]
fn a_peak_that_was_not_reached_is_claimed_only_in_the_direction_it_leaves_open() {
    let peaks = |label: &str, values: [f64; 3], bound| {
        let mut group = group(label, &FAST[..3]);
        for (run, value) in group.runs.iter_mut().zip(values) {
            (run.result.summary.value, run.result.summary.bound) = (Some(value), bound);
        }
        group
    };
    let claim = |first, other| {
        let comparison = compared(&[first, other]);
        row(&comparison, RatioFigure::Peak, None).ratios[0].claim
    };
    let (low, high) = ([1_000.0, 1_010.0, 1_020.0], [2_000.0, 2_010.0, 2_020.0]);
    let (exact, least) = (Bound::Exact, Bound::AtLeast);
    assert_eq!(claim(peaks("a", high, least), peaks("b", low, exact)), Claim::Differs);
    assert_eq!(claim(peaks("a", low, least), peaks("b", high, exact)), Claim::AtLeast);
    assert_eq!(claim(peaks("a", low, exact), peaks("b", high, least)), Claim::Differs);
    assert_eq!(claim(peaks("a", low, least), peaks("b", high, least)), Claim::AtLeast);
}

/// 10,054 ops/s of a server that carries 25,000: the load point below 40,000 was taken for its
/// peak.
#[test]
fn a_rung_far_below_one_that_brought_more_is_no_peak() {
    let at_least = |rungs: [(f64, u64); 2]| {
        let points = rungs.map(|(load, ops)| PointBuilder::open(load).achieved(ops));
        let result = analyse(&RunBuilder::from_points(points).raw());
        assert_eq!(result.summary.bound, Bound::Exact, "the second was not held");
        let run = RunInput { bundle: String::new(), result, suite: toml::Table::new() };
        let runs = vec![run; 3];
        let group = |label: &str| GroupInput {
            label: label.to_owned(),
            runs: runs.clone(),
            ..GroupInput::default()
        };
        let comparison = compared(&[group("a"), group("b")]);
        let unknown =
            comparison.notes.iter().any(|note| note.starts_with("the peak of a, b is not"));
        let row = row(&comparison, RatioFigure::Peak, None);
        assert_eq!(row.groups[0].at_least, unknown, "{:?}", comparison.notes);
        unknown
    };
    assert!(at_least([(10_000.0, 10_000), (40_000.0, 25_000)]));
    assert!(at_least([(10_000.0, 10_000), (12_000.0, 10_700)]), "it brought more");
    assert!(at_least([(10_000.0, 10_000), (40_000.0, 9_000)]), "it fell somewhere between");
    assert!(!at_least([(10_000.0, 10_000), (40_000.0, 10_200)]), "it brought no more");
    assert!(!at_least([(10_000.0, 10_000), (12_500.0, 9_000)]), "a quarter above");
}

/// Software and version, where these distinguish the groups.
#[test]
fn groups_are_called_by_their_software_unless_it_is_unknown_equal_or_somebody_named_them() {
    let of = |label: &str, software: Option<&str>| {
        let mut group = group(label, &FAST[..1]);
        let target = TargetDisclosure {
            software: software.map(str::to_owned),
            ..TargetDisclosure::default()
        };
        group.runs[0].result.disclosure.get_or_insert_default().targets = vec![target];
        group
    };
    let names = |groups: [GroupInput; 2]| {
        let comparison = compared(&groups);
        let labels: Vec<&str> =
            comparison.groups.iter().map(|group| group.label.as_str()).collect();
        assert_eq!(labels, ["http://a/", "http://b/"]);
        comparison.groups.iter().map(|group| group.system.clone()).collect::<Vec<_>>()
    };
    let nginx = Some("nginx version: nginx/1.22.1");
    let both = || [of("http://a/", nginx), of("http://b/", Some("Caddy v2.6.2 h1:abc="))];
    assert_eq!(names(both()), ["nginx 1.22.1", "Caddy 2.6.2"]);
    let mut named = both();
    named[1].is_named = true;
    let labels = ["http://a/", "http://b/"];
    assert_eq!(names(named), labels);
    assert_eq!(names([of("http://a/", nginx), of("http://b/", nginx)]), labels);
    assert_eq!(names([of("http://a/", nginx), of("http://b/", None)]), labels);
    assert_eq!(names([of("http://a/", nginx), of("http://b/", Some("2.6.2"))]), labels);
}

#[test]
fn conditions_are_judged_on_the_interval() {
    let groups = [group("a", &FAST), group("b", &SLOW)];
    let state = |expr: &str, groups: &[GroupInput]| {
        let gates = [expr.parse().unwrap()];
        let options = CompareOptions { gates: &gates, ..CompareOptions::default() };
        let gate = compare(groups, options).unwrap().gates.remove(0);
        (gate.state, gate.fails)
    };
    assert_eq!(state("p99 > 1.5x", &groups), (GateState::Failed, true));
    assert_eq!(state("p99@1000 > 2.2x", &groups), (GateState::Held, false));
    assert_eq!(state("p50@1000 > 2x", &groups), (GateState::Unsure, false));
    assert_eq!(state("p50@77 > 2x", &groups), (GateState::Unknown, true));
    assert_eq!(state("peak < 0.97x", &groups), (GateState::Held, false));
    let few = [group("a", &FAST), group("b", &SLOW[..2])];
    assert_eq!(state("p99 > 1.5x", &few), (GateState::Unsure, true), "the ratio decides");
}

/// An interval that contains the limit decides nothing, so without a rule from the user the ratio
/// itself does: a gate that is never sure is an open one.
#[test]
fn an_unsure_condition_fails_by_the_rule_that_was_asked_for() {
    let groups = [group("a", &FAST), group("b", &SLOW)];
    let fails = |expr: &str, unsure_fails: Option<bool>| {
        let gates = [expr.parse().unwrap()];
        let options = CompareOptions { gates: &gates, unsure_fails, ..CompareOptions::default() };
        let gate = compare(&groups, options).unwrap().gates.remove(0);
        assert_eq!(gate.state, GateState::Unsure, "{gate:?}");
        gate.fails
    };
    let rules = [Some(false), Some(true), None];
    assert_eq!(rules.map(|rule| fails("p50@1000 > 1.98x", rule)), [false, true, true]);
    assert_eq!(rules.map(|rule| fails("p50@1000 > 2.02x", rule)), [false, true, false]);
    assert_eq!(rules.map(|rule| fails("p50@1000 < 2.02x", rule)), [false, true, true]);
    assert_eq!(rules.map(|rule| fails("p99@2000 > 1.98x", rule)), [false, true, true]);
}

#[test]
fn a_condition_is_judged_by_what_it_looks_at_and_no_more_ratios() {
    let groups = [group("a", &FAST), group("b", &SLOW)];
    let interval = |expr: &str| {
        let gates = [expr.parse().unwrap()];
        let comparison =
            compare(&groups, CompareOptions { gates: &gates, ..CompareOptions::default() })
                .unwrap();
        (comparison.gates[0].interval.unwrap(), comparison)
    };
    let width = |[low, high]: [f64; 2]| high - low;
    let (one, comparison) = interval("p99@1000 > 1.5x");
    let (worst, _) = interval("p99 > 1.5x");
    let all = row(&comparison, RatioFigure::P99, Some(1_000.0)).ratios[0].interval_of_all.unwrap();
    assert!(width(one) < width(worst) && width(worst) < width(all), "{one:?} {worst:?} {all:?}");
}

#[test]
fn what_differs_between_and_within_groups_is_said() {
    let (a, mut b) = (group("a", &FAST), group("b", &SLOW));
    let suite =
        |signing| toml::from_str(&format!("workload = {{ signing = {signing:?} }}")).unwrap();
    b.runs.iter_mut().for_each(|run| run.suite = suite("required"));
    b.runs[3].result.targets = vec!["http://elsewhere/".into()];
    let comparison = compared(&[a, b]);
    let of = |name: &str| {
        comparison.differences.iter().find(|it| it.name == name).unwrap().values.clone()
    };
    assert_eq!(of("workload.signing"), ["none", "required"]);
    assert!(of("target")[1].ends_with(" / http://elsewhere/"));
    let splits = &comparison.groups[1].splits;
    assert!(splits.iter().any(|split| split.contains("target is")), "{splits:?}");
    assert!(comparison.groups[0].splits.is_empty(), "{:?}", comparison.groups[0].splits);
}

#[test]
fn a_group_of_two_modes_is_seen() {
    let modes = [1_000_000, 1_010_000, 990_000, 1_500_000, 1_005_000, 995_000, 1_490_000];
    let comparison = compared(&[group("a", &modes), group("b", &FAST)]);
    let splits = &comparison.groups[0].splits;
    assert!(
        splits.iter().any(|split| split.contains("run-1500000, run-1490000 lie above")),
        "{splits:?}"
    );
}

#[test]
fn points_that_the_server_did_not_hold_are_named() {
    let (a, mut b) = (group("a", &FAST), group("b", &SLOW));
    b.runs[0].result.points[1].not_counted = Some(NotCounted::NotHeld);
    let comparison = compared(&[a, b]);
    assert_eq!(row(&comparison, RatioFigure::P50, Some(2_000.0)).not_counted, ["b"]);
    assert!(row(&comparison, RatioFigure::P50, Some(1_000.0)).not_counted.is_empty());
}

#[test]
fn pairs_that_lack_a_run_are_left_out() {
    let groups = [group("a", &FAST), group("b", &SLOW[..3])];
    let comparison =
        compare(&groups, CompareOptions { paired: true, ..CompareOptions::default() }).unwrap();
    let p50 = &row(&comparison, RatioFigure::P50, Some(1_000.0)).ratios[0];
    assert_eq!((p50.runs, p50.method), ([3, 3], Some(Method::PairedT)));
    assert!(
        comparison.notes.iter().any(|note| note.contains("without a pair")),
        "{:?}",
        comparison.notes
    );
}

#[test]
fn a_curve_holds_every_load_of_its_own_group_with_the_range_of_its_runs() {
    let wide = GroupInput {
        label: "b".to_owned(),
        is_named: false,
        runs: vec![run_at([500.0, 3_000.0], 1_000_000)],
    };
    let it = compared(&[group("a", &[1_000_000, 1_210_000]), wide]);
    let [a, b] = &it.curves[..] else { panic!("{:?}", it.curves) };
    let loads = |curve: &Curve| curve.points.iter().map(|point| point.load).collect::<Vec<_>>();
    assert_eq!((loads(a), loads(b)), (vec![1_000.0, 2_000.0], vec![500.0, 3_000.0]));
    let mean = a.points[0].response_mean_ns.unwrap();
    assert!((mean.value / 1_100_000.0 - 1.0).abs() < 0.001, "{mean:?}");
    assert!(mean.range.is_some() && b.points[0].throughput.unwrap().range.is_none());
    // Loads that only some runs have: between its points a run is interpolated linearly.
    let runs = vec![run_at([1_000.0, 2_000.0], 1_000_000), run_at([1_500.0, 2_500.0], 1_000_000)];
    let mixed = compared(&[
        GroupInput { label: "c".to_owned(), is_named: false, runs },
        group("d", &[1_000_000]),
    ]);
    let figures = mixed.curves[0].points.iter().map(|point| point.throughput.unwrap());
    let ranged: Vec<bool> = figures.map(|figure| figure.range.is_some()).collect();
    assert_eq!(ranged, [false, true, true, false]);
}

#[test]
fn published_curves_stand_beside_runs_of_their_method_axis_and_unit_only() {
    let published = |names: &[&str]| -> Vec<PublishedCurve> {
        names.iter().map(|name| crate::published::curve(name).unwrap()).collect()
    };
    let mut it = compared(&[group("a", &FAST), group("b", &SLOW)]);
    (it.suite, it.unit, it.axis.unit) = ("web-static".into(), "ops/s".into(), "ops/s".into());
    let web = "web-n440bx-1998/2-cpu-400-mhz";
    let before = it.clone();
    add_published(&mut it, published(&[web, "netbench-nt-1998"]));
    let [.., nothing, drawn] = &it.curves[..] else { panic!() };
    assert_eq!((nothing.published.is_none(), drawn.points.len()), (true, 10));
    assert_eq!(drawn.published.as_ref().map(|it| it.year), Some(1998));
    let mentions = |it: &Comparison, part: &str| it.notes.iter().any(|note| note.contains(part));
    assert!(
        mentions(&it, "prints no requested loads") && mentions(&it, "no ratio to them is claimed")
    );
    assert!(mentions(&it, "ProLiant 3000 is not drawn: it follows the method of disk-mix"));
    assert_eq!(it.figures, before.figures);

    let mut files = Comparison { suite: "disk-mix".to_owned(), ..before.clone() };
    add_published(&mut files, published(&["netbench-nt-1998"]));
    assert!(mentions(&files, "its load is in clients, and that of the runs in ops/s"));
    files.axis.unit = "clients".to_owned();
    add_published(&mut files, published(&["netbench-nt-1998"]));
    assert!(mentions(&files, "its throughput is in bytes/s, and that of the runs in ops/s"));
    files.unit = "bytes/s".to_owned();
    add_published(&mut files, published(&["netbench-nt-1998"]));
    assert_eq!(files.curves.len(), 3);
    let mut nfs = Comparison { suite: "nfs-v3".to_owned(), ..before };
    let name = "nfs-pseries-v3-2002/ibm-eserver-pseries-690-turbo-udp";
    add_published(&mut nfs, published(&[name]));
    assert!(mentions(&nfs, "its source prints no load points") && nfs.curves.len() == 2);
}
