//! Means, effects, intervals and F tests against another program:
//! `statsmodels/statsmodels_judge.py` made the experiments up and recorded the results of Python's
//! statsmodels.

use plimsoll_model::comparison::experiment::{AtLevel, Effect, Experiment, Scatter};
use serde::Deserialize;

use super::testing::{Shape, experiment};

const EXPECTED: &str = include_str!("statsmodels/statsmodels.json");
/// Three digits.
const SAME_RATIO: f64 = 5e-4;

#[derive(Deserialize)]
struct ReferenceCases {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    sizes: Vec<usize>,
    values: Option<Vec<f64>>,
    by_hand: Option<usize>,
    runs: Vec<Run>,
    said: ReferenceResult,
}

#[derive(Deserialize)]
struct Run {
    cell: usize,
    block: usize,
    value: f64,
}

#[derive(Deserialize)]
struct ReferenceResult {
    means: std::collections::BTreeMap<usize, Interval>,
    effects: Vec<ReferenceEffect>,
    interaction: Option<Interaction>,
    residual: [f64; 2],
    between_blocks: Option<[f64; 2]>,
}

#[derive(Deserialize)]
struct Interval {
    ratio: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
struct ReferenceEffect {
    factor: usize,
    to: usize,
    at: Vec<[usize; 2]>,
    ratio: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
struct Interaction {
    f: f64,
    degrees: [f64; 2],
    p: f64,
}

fn cases() -> Vec<(String, Experiment, ReferenceResult)> {
    let reference: ReferenceCases = serde_json::from_str(EXPECTED).unwrap();
    let analysed = reference.cases.into_iter().map(|case| {
        let shape =
            Shape { values: case.values, by_hand: case.by_hand, ..Shape::from_sizes(&case.sizes) };
        let runs: Vec<_> = case.runs.iter().map(|run| (run.cell, run.block, run.value)).collect();
        (case.name, experiment(&shape, &runs), case.said)
    });
    analysed.collect()
}

#[track_caller]
fn same(what: &str, actual: f64, expected: f64) {
    let close = (actual - expected).abs() <= SAME_RATIO * expected.abs();
    assert!(close, "{what}: {actual}, statsmodels says {expected}");
}

#[test]
fn means_and_effects_with_their_intervals_are_those_of_statsmodels() {
    for (name, actual, expected) in cases() {
        let means = actual.cells.iter().enumerate().filter(|(_, cell)| cell.mean.is_some());
        let means: Vec<_> = means.collect();
        for (at, cell) in means.iter().filter(|(at, _)| expected.means.contains_key(at)) {
            let (it, [low, high]) = (&expected.means[at], cell.interval.unwrap());
            same(&name, cell.mean.unwrap(), it.ratio);
            same(&name, low, it.low);
            same(&name, high, it.high);
        }
        assert_eq!(actual.effects.len(), expected.effects.len(), "{name}");
        for it in &expected.effects {
            let at: Vec<AtLevel> = it
                .at
                .iter()
                .map(|[factor, level]| AtLevel { factor: *factor, level: *level })
                .collect();
            let is_same = |e: &&Effect| (e.factor, e.to, &e.at) == (it.factor, it.to, &at);
            let effect = actual.effects.iter().find(is_same).unwrap();
            let what = format!("{name}: factor {} to {} at {at:?}", it.factor, it.to);
            let [low, high] = effect.interval.unwrap();
            same(&what, effect.ratio.unwrap(), it.ratio);
            same(&what, low, it.low);
            same(&what, high, it.high);
        }
    }
}

#[test]
fn f_tests_and_scatter_are_those_of_statsmodels() {
    let scatter = |name: &str, actual: Option<Scatter>, expected: Option<[f64; 2]>| match expected {
        None => assert_eq!(actual, None, "{name}"),
        Some([log, degrees]) => {
            let actual = actual.unwrap();
            same(name, actual.spread_ratio.ln_1p(), log);
            same(name, actual.degrees, degrees);
        }
    };
    for (name, actual, expected) in cases() {
        scatter(&name, actual.residual, Some(expected.residual));
        scatter(&name, actual.between_blocks, expected.between_blocks);
        assert_eq!(actual.interaction.is_some(), expected.interaction.is_some(), "{name}");
        let Some((actual, expected)) = actual.interaction.zip(expected.interaction) else {
            continue;
        };
        same(&name, actual.f, expected.f);
        same(&name, actual.p, expected.p);
        assert_eq!((actual.degrees, actual.found), (expected.degrees, expected.p < 0.05), "{name}");
    }
}
