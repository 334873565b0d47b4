use plimsoll_model::comparison::experiment::{
    AtLevel, Basis, BestClaim, EffectClaim, Experiment, MissingWhy, Response,
};
use plimsoll_model::comparison::{Comparison, FigureRow, GroupFigure, RatioFigure};
use plimsoll_model::result::Axis;

use super::response_row;
use super::testing::{Shape, experiment, experiment_of};

/// Scatter without a pattern, up to 1.5 %.
const CHANCE: [f64; 20] = [
    0.004, -0.011, 0.013, -0.006, 0.009, -0.014, 0.002, 0.010, -0.008, -0.003, 0.012, -0.009,
    0.005, -0.002, 0.015, -0.013, 0.007, -0.010, 0.001, 0.011,
];

/// Runs of all cells in `blocks` blocks, each block as a whole 10 % slower than the one before.
fn runs(means: &[f64], blocks: usize) -> Vec<(usize, usize, f64)> {
    let mut chance = CHANCE.iter().cycle();
    let all = (0..blocks).flat_map(|block| (0..means.len()).map(move |cell| (cell, block)));
    let run = |(cell, block): (usize, usize)| {
        let chance = chance.next().copied().unwrap_or_default();
        (cell, block, means[cell] * (chance - 0.1 * block as f64).exp())
    };
    all.map(run).collect()
}

fn effect(
    result: &Experiment,
    factor: usize,
    at: &[AtLevel],
) -> (f64, Option<[f64; 2]>, EffectClaim) {
    let is_it = |it: &&_| {
        let it: &plimsoll_model::comparison::experiment::Effect = it;
        it.factor == factor && it.at == at
    };
    let it = result.effects.iter().find(is_it).unwrap();
    (it.ratio.unwrap(), it.interval, it.claim)
}

#[test]
fn an_effect_that_depends_on_another_factor_is_shown_at_each_of_its_levels() {
    // The second factor costs 10 % at the second level of the first, nothing at the first.
    let result =
        experiment(&Shape::from_sizes(&[2, 2]), &runs(&[1_000.0, 1_000.0, 1_900.0, 1_710.0], 4));
    assert!(result.interaction.unwrap().found);
    let at = |level| [AtLevel { factor: 0, level }];
    let (ratio, _, claim) = effect(&result, 1, &at(1));
    assert!((ratio - 0.9).abs() < 0.02 && claim == EffectClaim::Differs, "{ratio}");
    assert_eq!(effect(&result, 1, &at(0)).2, EffectClaim::Within);
    let (mean, ..) = effect(&result, 1, &[]);
    assert!((mean - 0.9_f64.sqrt()).abs() < 0.02, "the mean of both: {mean}");
}

#[test]
fn without_an_interaction_only_main_effects_are_shown() {
    let result =
        experiment(&Shape::from_sizes(&[2, 2]), &runs(&[1_000.0, 900.0, 1_900.0, 1_710.0], 4));
    let interaction = result.interaction.unwrap();
    assert!(!interaction.found && (1.01..1.2).contains(&interaction.detectable), "{interaction:?}");
    assert_eq!(result.effects.len(), 2);
    assert!(result.effects.iter().all(|it| it.basis == Basis::Residual && it.at.is_empty()));
}

#[test]
fn blocks_that_are_slower_as_a_whole_widen_nothing() {
    let result = experiment(&Shape::from_sizes(&[2]), &runs(&[1_000.0, 1_000.0], 5));
    let (_, interval, claim) = effect(&result, 0, &[]);
    let [low, high] = interval.unwrap();
    assert!(claim == EffectClaim::Within && low > 0.97 && high < 1.03, "{low} {high}");
    assert!(result.residual.unwrap().spread_ratio < 0.02);
}

#[test]
fn of_two_repeats_only_ratios_are_said() {
    let result =
        experiment(&Shape::from_sizes(&[2, 2]), &runs(&[1_000.0, 500.0, 1_900.0, 960.0], 2));
    let (ratio, interval, claim) = effect(&result, 1, &[]);
    assert!((ratio - 0.5).abs() < 0.02, "{ratio}");
    assert_eq!((interval, claim), (None, EffectClaim::RatioOnly));
    assert_eq!(result.effects[0].basis, Basis::TooFewRuns);
    assert_eq!((result.interaction, result.residual), (None, None));
    assert!(result.cells.iter().all(|cell| cell.interval.is_none() && cell.mean.is_some()));
    assert_eq!(result.best.unwrap().claim, BestClaim::RunAgain);
}

#[test]
fn a_level_set_once_has_a_ratio_and_no_interval() {
    let shape = Shape { once: Some(0), ..Shape::from_sizes(&[2, 2]) };
    let result = experiment(&shape, &runs(&[1_000.0, 900.0, 1_900.0, 1_710.0], 4));
    let (ratio, interval, claim) = effect(&result, 0, &[]);
    assert!((ratio - 1.9).abs() < 0.03, "{ratio}");
    assert_eq!((interval, claim), (None, EffectClaim::RatioOnly));
    assert_eq!(result.effects[0].basis, Basis::SetOnce);
    // Factors that a program sets within it are compared as usual, including their interaction.
    assert_eq!(effect(&result, 1, &[]).2, EffectClaim::Differs);
    assert!(result.interaction.is_some());
    assert_eq!(result.best.unwrap().claim, BestClaim::RunAgain);
}

#[test]
fn a_setting_made_by_hand_is_judged_by_how_such_settings_scatter() {
    // Within a setting runs agree; settings differ by 5 % from block to block.
    let mut runs = runs(&[1_000.0; 4], 4);
    for (cell, block, value) in &mut runs {
        *value *= if (*cell / 2 + *block) % 2 == 0 { 1.05 } else { 1.0 };
    }
    let shape = Shape { by_hand: Some(0), ..Shape::from_sizes(&[2, 2]) };
    let result = experiment(&shape, &runs);
    let width =
        |factor| effect(&result, factor, &[]).1.map(|[low, high]| high / low - 1.0).unwrap();
    assert!(width(0) > 3.0 * width(1), "{} {}", width(0), width(1));
    let bases: Vec<Basis> = result.effects.iter().map(|it| it.basis).collect();
    assert_eq!(bases, [Basis::BetweenBlocks, Basis::Residual]);
    let [plots, rest] = [result.between_blocks, result.residual].map(|it| it.unwrap().spread_ratio);
    assert!(plots > 2.0 * rest, "{plots} {rest}");
}

#[test]
fn a_bound_gives_a_bound_and_no_effect() {
    let shape = Shape { at_least: vec![3], ..Shape::from_sizes(&[2, 2]) };
    let result = experiment(&shape, &runs(&[1_000.0, 900.0, 1_900.0, 1_910.0], 3));
    let claims: Vec<EffectClaim> = result.effects.iter().map(|it| it.claim).collect();
    assert_eq!(claims, [EffectClaim::AtLeast; 2]);
    assert!(result.effects.iter().all(|it| it.interval.is_none() && it.ratio.is_some()));
    assert_eq!(result.interaction, None, "three cells tell none");
    assert!(result.cells[3].at_least && result.cells[3].ratio.is_none());
    let shape = Shape { at_least: vec![0, 1, 2, 3], ..Shape::from_sizes(&[2, 2]) };
    let result = experiment(&shape, &runs(&[1_000.0; 4], 3));
    assert!(result.effects.iter().all(|it| it.claim == EffectClaim::Open));
    let shape = Shape { at_least: vec![0], ..Shape::from_sizes(&[2]) };
    let result = experiment(&shape, &runs(&[1_000.0; 2], 3));
    assert_eq!(result.effects[0].claim, EffectClaim::AtMost);
}

#[test]
fn what_has_no_runs_is_compared_with_nothing() {
    let all = runs(&[1_000.0, 900.0, 1_900.0, 1_710.0], 4);
    let without: Vec<_> = all.iter().copied().filter(|(cell, ..)| *cell != 3).collect();
    let result = experiment(&Shape::from_sizes(&[2, 2]), &without);
    assert_eq!((result.cells[3].mean, result.cells[3].runs), (None, 0));
    // Only over the combinations that have both levels, and these are named.
    assert!((effect(&result, 1, &[]).0 - 0.9).abs() < 0.02);
    let first = |factor| vec![vec![AtLevel { factor, level: 0 }]];
    assert_eq!((&result.effects[0].over, &result.effects[1].over), (&first(1), &first(0)));
    assert_eq!(result.interaction, None);
    let whole = experiment(&Shape::from_sizes(&[2, 2]), &all);
    assert!(whole.effects.iter().all(|it| it.over.is_empty()), "all combinations have runs");
    let of_three = runs(&[1_000.0, 900.0, 1_900.0, 1_710.0, 2_700.0, 2_500.0], 3);
    let of_three: Vec<_> = of_three.into_iter().filter(|(cell, ..)| *cell != 5).collect();
    let result = experiment(&Shape::from_sizes(&[3, 2]), &of_three);
    let combinations: Vec<usize> = result.effects.iter().map(|it| it.over.len()).collect();
    assert_eq!(combinations, [0, 1, 2], "of the second factor two of three combinations have both");
    let empty = experiment(&Shape::from_sizes(&[2, 2]), &[]);
    assert!(empty.effects.iter().all(|it| it.claim == EffectClaim::Absent));
    assert_eq!(empty.best, None);
}

#[test]
fn a_run_without_the_figure_is_a_repeat_that_is_missing() {
    let mut runs = runs(&[1_000.0, 900.0], 3);
    runs[2].2 = f64::NAN;
    let result = experiment(&Shape::from_sizes(&[2]), &runs);
    assert_eq!(result.cells[0].runs, 2);
    let [missing] = result.cells[0].missing.as_slice() else { panic!("{:?}", result.cells[0]) };
    assert_eq!((missing.block, &missing.why), (1, &MissingWhy::NoFigure));
    assert_eq!(result.blocks, 3);
}

#[test]
fn the_best_cell_is_claimed_against_the_first_only_beyond_what_choosing_it_brings() {
    let best = |means: &[f64]| {
        experiment(&Shape::from_sizes(&[means.len()]), &runs(means, 3)).best.unwrap()
    };
    let result = best(&[1_000.0, 1_100.0, 1_020.0, 900.0]);
    assert_eq!((result.cell, result.claim), (1, BestClaim::Better));
    assert!(result.interval.unwrap()[0] > 1.0);
    assert_eq!(best(&[1_000.0, 1_005.0, 1_003.0, 998.0]).claim, BestClaim::RunAgain);
    assert_eq!(best(&[1_000.0, 900.0]).claim, BestClaim::First);
    let shape = Shape::from_sizes(&[2]);
    let of_times = experiment_of(RatioFigure::P99, &shape, &runs(&[1_000.0, 900.0], 3));
    assert_eq!(of_times.best.unwrap().claim, BestClaim::Better, "less time is better");
}

#[test]
fn sizes_have_an_efficiency_and_from_four_on_a_law() {
    let law = |n: f64| 5_000.0 * n / (1.0 + 0.05 * (n - 1.0));
    let values = vec![0.5, 1.0, 2.0, 4.0];
    let means: Vec<f64> = values.iter().map(|size| law(size / 0.5)).collect();
    let shape = Shape { values: Some(values.clone()), ..Shape::from_sizes(&[4]) };
    let result = experiment(&shape, &runs(&means, 3));
    let last = result.effects.last().unwrap();
    assert!((last.efficiency.unwrap() - 1.0 / 1.35).abs() < 0.02, "{last:?}");
    let [law] = result.laws.as_slice() else { panic!("{:?}", result.laws) };
    assert_eq!((law.one, law.fit.measured_to), (0.5, 8.0));
    assert!((law.fit.alpha - 0.05).abs() < 0.02, "{law:?}");
    let three = Shape { values: Some(values[..3].to_vec()), ..Shape::from_sizes(&[3]) };
    assert!(experiment(&three, &runs(&means[..3], 3)).laws.is_empty());
    let times = experiment_of(RatioFigure::P50, &shape, &runs(&means, 3));
    assert!(times.laws.is_empty() && times.effects.iter().all(|it| it.efficiency.is_none()));
}

#[test]
fn runs_that_agree_to_the_last_digit_claim_no_more_than_rounding_allows() {
    let runs: Vec<_> = (0..12).map(|at| (at % 4, at / 4, 1_000.0)).collect();
    let result = experiment(&Shape::from_sizes(&[2, 2]), &runs);
    let (_, interval, claim) = effect(&result, 0, &[]);
    assert!(claim == EffectClaim::Within && interval.unwrap()[0] < 0.999_5, "{interval:?}");
}

fn group(mean: f64, at_least: bool) -> GroupFigure {
    GroupFigure { mean: Some(mean), at_least, ..GroupFigure::default() }
}

fn row(figure: RatioFigure, load: Option<f64>, groups: [GroupFigure; 2]) -> FigureRow {
    FigureRow {
        figure,
        load,
        interpolated: false,
        not_counted: Vec::new(),
        groups: groups.into(),
        ratios: Vec::new(),
    }
}

/// A ladder that ended below the peak of one server, or whose steps are too far apart for the
/// other, leaves the highest rate of saturated servers, or else the same load.
#[test]
fn without_a_known_peak_cells_are_compared_at_the_same_load() {
    let of = |unit: &str, figures: Vec<FigureRow>| Comparison {
        axis: Axis { name: String::new(), unit: unit.to_owned() },
        figures,
        ..Comparison::default()
    };
    let peak = |at_least| row(RatioFigure::Peak, None, [group(40e3, at_least), group(10e3, true)]);
    let at = |figure, load| row(figure, Some(load), [group(1.0, false), group(2.0, false)]);
    let evaluate = |it: &Comparison| {
        let (row, unknown) = response_row(it, Response::default());
        (row.map(|row| (row.figure, row.load)), unknown)
    };
    let mut open = vec![peak(true), at(RatioFigure::P99, 1e3), at(RatioFigure::P99, 10e3)];
    assert_eq!(
        evaluate(&of("ops/s", open.clone())),
        (Some((RatioFigure::P99, Some(10e3))), vec![0, 1])
    );
    // A load that one of them did not sustain is left out for both.
    open[2].not_counted = vec!["b".to_owned()];
    assert_eq!(evaluate(&of("ops/s", open.clone())).0, Some((RatioFigure::P99, Some(1e3))));
    open[0] = peak(false);
    open.push(row(RatioFigure::PeakOpsPerS, None, [group(41e3, false), group(25e3, false)]));
    let saturated = evaluate(&of("ops/s", open.clone()));
    assert_eq!(saturated, (Some((RatioFigure::PeakOpsPerS, None)), vec![1]));
    let closed = vec![peak(true), at(RatioFigure::AchievedOpsPerS, 32.0)];
    let rate = Some((RatioFigure::AchievedOpsPerS, Some(32.0)));
    assert_eq!(evaluate(&of("clients", closed.clone())).0, rate);
    // The user's choice stays.
    let requested = Response { figure: RatioFigure::P99, load: Some(10e3) };
    let of_user = of("ops/s", open);
    assert_eq!(response_row(&of_user, requested).1, Vec::<usize>::new());
    let exact =
        of("ops/s", vec![row(RatioFigure::Peak, None, [group(4.0, false), group(1.0, false)])]);
    assert_eq!(evaluate(&exact), (Some((RatioFigure::Peak, None)), Vec::new()));
}
