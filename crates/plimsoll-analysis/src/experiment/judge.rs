//! Means, effects, intervals and F tests against another program: `judge/statsmodels_judge.py` made
//! the experiments up and wrote down what Python's statsmodels says of them.

use plimsoll_model::comparison::experiment::{AtLevel, Effect, Experiment, Scatter};
use serde::Deserialize;

use super::testing::{Shape, experiment};

const SAID: &str = include_str!("judge/statsmodels.json");
/// Three digits.
const SAME_RATIO: f64 = 5e-4;

#[derive(Deserialize)]
struct Judged {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    sizes: Vec<usize>,
    values: Option<Vec<f64>>,
    by_hand: Option<usize>,
    runs: Vec<Run>,
    said: Said,
}

#[derive(Deserialize)]
struct Run {
    cell: usize,
    block: usize,
    value: f64,
}

#[derive(Deserialize)]
struct Said {
    means: std::collections::BTreeMap<usize, Interval>,
    effects: Vec<SaidEffect>,
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
struct SaidEffect {
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

fn cases() -> Vec<(String, Experiment, Said)> {
    let judged: Judged = serde_json::from_str(SAID).unwrap();
    let found = judged.cases.into_iter().map(|case| {
        let shape = Shape { values: case.values, by_hand: case.by_hand, ..Shape::of(&case.sizes) };
        let runs: Vec<_> = case.runs.iter().map(|run| (run.cell, run.block, run.value)).collect();
        (case.name, experiment(&shape, &runs), case.said)
    });
    found.collect()
}

#[track_caller]
fn same(what: &str, found: f64, said: f64) {
    let close = (found - said).abs() <= SAME_RATIO * said.abs();
    assert!(close, "{what}: {found}, statsmodels says {said}");
}

#[test]
fn means_and_effects_with_their_intervals_are_those_of_statsmodels() {
    for (name, found, said) in cases() {
        let means = found.cells.iter().enumerate().filter(|(_, cell)| cell.mean.is_some());
        let means: Vec<_> = means.collect();
        for (at, cell) in means.iter().filter(|(at, _)| said.means.contains_key(at)) {
            let (it, [low, high]) = (&said.means[at], cell.interval.unwrap());
            same(&name, cell.mean.unwrap(), it.ratio);
            same(&name, low, it.low);
            same(&name, high, it.high);
        }
        assert_eq!(found.effects.len(), said.effects.len(), "{name}");
        for it in &said.effects {
            let at: Vec<AtLevel> = it
                .at
                .iter()
                .map(|[factor, level]| AtLevel { factor: *factor, level: *level })
                .collect();
            let is_same = |e: &&Effect| (e.factor, e.to, &e.at) == (it.factor, it.to, &at);
            let found = found.effects.iter().find(is_same).unwrap();
            let what = format!("{name}: factor {} to {} at {at:?}", it.factor, it.to);
            let [low, high] = found.interval.unwrap();
            same(&what, found.ratio.unwrap(), it.ratio);
            same(&what, low, it.low);
            same(&what, high, it.high);
        }
    }
}

#[test]
fn f_tests_and_scatter_are_those_of_statsmodels() {
    let scatter = |name: &str, found: Option<Scatter>, said: Option<[f64; 2]>| match said {
        None => assert_eq!(found, None, "{name}"),
        Some([log, degrees]) => {
            let found = found.unwrap();
            same(name, found.spread_ratio.ln_1p(), log);
            same(name, found.degrees, degrees);
        }
    };
    for (name, found, said) in cases() {
        scatter(&name, found.residual, Some(said.residual));
        scatter(&name, found.between_blocks, said.between_blocks);
        assert_eq!(found.interaction.is_some(), said.interaction.is_some(), "{name}");
        let Some((found, said)) = found.interaction.zip(said.interaction) else { continue };
        same(&name, found.f, said.f);
        same(&name, found.p, said.p);
        assert_eq!((found.degrees, found.found), (said.degrees, said.p < 0.05), "{name}");
    }
}
