use plimsoll_model::comparison::RatioFigure;
use plimsoll_model::comparison::experiment::{
    AtLevel, Basis, BestClaim, EffectClaim, Experiment, MissingWhy,
};

use super::testing::{Shape, experiment, experiment_of};

/// Scatter without a pattern, up to 1.5 %.
const CHANCE: [f64; 20] = [
    0.004, -0.011, 0.013, -0.006, 0.009, -0.014, 0.002, 0.010, -0.008, -0.003, 0.012, -0.009,
    0.005, -0.002, 0.015, -0.013, 0.007, -0.010, 0.001, 0.011,
];

/// Runs of all cells in so many blocks, each block as a whole 10 % slower than the one before.
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
    found: &Experiment,
    factor: usize,
    at: &[AtLevel],
) -> (f64, Option<[f64; 2]>, EffectClaim) {
    let is_it = |it: &&_| {
        let it: &plimsoll_model::comparison::experiment::Effect = it;
        it.factor == factor && it.at == at
    };
    let it = found.effects.iter().find(is_it).unwrap();
    (it.ratio.unwrap(), it.interval, it.claim)
}

#[test]
fn an_effect_that_depends_on_another_factor_is_shown_at_each_of_its_levels() {
    // The second factor costs 10 % at the second level of the first, nothing at the first.
    let found = experiment(&Shape::of(&[2, 2]), &runs(&[1_000.0, 1_000.0, 1_900.0, 1_710.0], 4));
    assert!(found.interaction.unwrap().found);
    let at = |level| [AtLevel { factor: 0, level }];
    let (ratio, _, claim) = effect(&found, 1, &at(1));
    assert!((ratio - 0.9).abs() < 0.02 && claim == EffectClaim::Differs, "{ratio}");
    assert_eq!(effect(&found, 1, &at(0)).2, EffectClaim::Within);
    let (mean, ..) = effect(&found, 1, &[]);
    assert!((mean - 0.9_f64.sqrt()).abs() < 0.02, "the mean of both: {mean}");
}

#[test]
fn without_an_interaction_only_main_effects_are_shown() {
    let found = experiment(&Shape::of(&[2, 2]), &runs(&[1_000.0, 900.0, 1_900.0, 1_710.0], 4));
    let interaction = found.interaction.unwrap();
    assert!(!interaction.found && (1.01..1.2).contains(&interaction.detectable), "{interaction:?}");
    assert_eq!(found.effects.len(), 2);
    assert!(found.effects.iter().all(|it| it.basis == Basis::Residual && it.at.is_empty()));
}

#[test]
fn blocks_that_are_slower_as_a_whole_widen_nothing() {
    let found = experiment(&Shape::of(&[2]), &runs(&[1_000.0, 1_000.0], 5));
    let (_, interval, claim) = effect(&found, 0, &[]);
    let [low, high] = interval.unwrap();
    assert!(claim == EffectClaim::Within && low > 0.97 && high < 1.03, "{low} {high}");
    assert!(found.residual.unwrap().spread_ratio < 0.02);
}

#[test]
fn of_two_repeats_only_ratios_are_said() {
    let found = experiment(&Shape::of(&[2, 2]), &runs(&[1_000.0, 500.0, 1_900.0, 960.0], 2));
    let (ratio, interval, claim) = effect(&found, 1, &[]);
    assert!((ratio - 0.5).abs() < 0.02, "{ratio}");
    assert_eq!((interval, claim), (None, EffectClaim::RatioOnly));
    assert_eq!(found.effects[0].basis, Basis::TooFewRuns);
    assert_eq!((found.interaction, found.residual), (None, None));
    assert!(found.cells.iter().all(|cell| cell.interval.is_none() && cell.mean.is_some()));
    assert_eq!(found.best.unwrap().claim, BestClaim::RunAgain);
}

#[test]
fn a_level_set_once_has_a_ratio_and_no_interval() {
    let shape = Shape { once: Some(0), ..Shape::of(&[2, 2]) };
    let found = experiment(&shape, &runs(&[1_000.0, 900.0, 1_900.0, 1_710.0], 4));
    let (ratio, interval, claim) = effect(&found, 0, &[]);
    assert!((ratio - 1.9).abs() < 0.03, "{ratio}");
    assert_eq!((interval, claim), (None, EffectClaim::RatioOnly));
    assert_eq!(found.effects[0].basis, Basis::SetOnce);
    // What a program sets within it is compared as ever, its interaction too.
    assert_eq!(effect(&found, 1, &[]).2, EffectClaim::Differs);
    assert!(found.interaction.is_some());
    assert_eq!(found.best.unwrap().claim, BestClaim::RunAgain);
}

#[test]
fn a_setting_made_by_hand_is_judged_by_how_such_settings_scatter() {
    // Within a setting runs agree; settings differ by 5 % from block to block.
    let mut runs = runs(&[1_000.0; 4], 4);
    for (cell, block, value) in &mut runs {
        *value *= if (*cell / 2 + *block) % 2 == 0 { 1.05 } else { 1.0 };
    }
    let shape = Shape { by_hand: Some(0), ..Shape::of(&[2, 2]) };
    let found = experiment(&shape, &runs);
    let width = |factor| effect(&found, factor, &[]).1.map(|[low, high]| high / low - 1.0).unwrap();
    assert!(width(0) > 3.0 * width(1), "{} {}", width(0), width(1));
    let bases: Vec<Basis> = found.effects.iter().map(|it| it.basis).collect();
    assert_eq!(bases, [Basis::BetweenBlocks, Basis::Residual]);
    let [plots, rest] = [found.between_blocks, found.residual].map(|it| it.unwrap().spread_ratio);
    assert!(plots > 2.0 * rest, "{plots} {rest}");
}

#[test]
fn a_bound_gives_a_bound_and_no_effect() {
    let shape = Shape { at_least: vec![3], ..Shape::of(&[2, 2]) };
    let found = experiment(&shape, &runs(&[1_000.0, 900.0, 1_900.0, 1_910.0], 3));
    let claims: Vec<EffectClaim> = found.effects.iter().map(|it| it.claim).collect();
    assert_eq!(claims, [EffectClaim::AtLeast; 2]);
    assert!(found.effects.iter().all(|it| it.interval.is_none() && it.ratio.is_some()));
    assert_eq!(found.interaction, None, "three cells tell none");
    assert!(found.cells[3].at_least && found.cells[3].ratio.is_none());
    let shape = Shape { at_least: vec![0, 1, 2, 3], ..Shape::of(&[2, 2]) };
    let found = experiment(&shape, &runs(&[1_000.0; 4], 3));
    assert!(found.effects.iter().all(|it| it.claim == EffectClaim::Open));
    let shape = Shape { at_least: vec![0], ..Shape::of(&[2]) };
    let found = experiment(&shape, &runs(&[1_000.0; 2], 3));
    assert_eq!(found.effects[0].claim, EffectClaim::AtMost);
}

#[test]
fn what_has_no_runs_is_compared_with_nothing() {
    let all = runs(&[1_000.0, 900.0, 1_900.0, 1_710.0], 4);
    let without: Vec<_> = all.into_iter().filter(|(cell, ..)| *cell != 3).collect();
    let found = experiment(&Shape::of(&[2, 2]), &without);
    assert_eq!((found.cells[3].mean, found.cells[3].runs), (None, 0));
    // Over the combinations that have both levels.
    assert!((effect(&found, 1, &[]).0 - 0.9).abs() < 0.02);
    assert_eq!(found.interaction, None);
    let empty = experiment(&Shape::of(&[2, 2]), &[]);
    assert!(empty.effects.iter().all(|it| it.claim == EffectClaim::Absent));
    assert_eq!(empty.best, None);
}

#[test]
fn a_run_without_the_figure_is_a_repeat_that_is_missing() {
    let mut runs = runs(&[1_000.0, 900.0], 3);
    runs[2].2 = f64::NAN;
    let found = experiment(&Shape::of(&[2]), &runs);
    assert_eq!(found.cells[0].runs, 2);
    let [missing] = found.cells[0].missing.as_slice() else { panic!("{:?}", found.cells[0]) };
    assert_eq!((missing.block, &missing.why), (1, &MissingWhy::NoFigure));
    assert_eq!(found.blocks, 3);
}

#[test]
fn the_best_cell_is_claimed_against_the_first_only_beyond_what_choosing_it_brings() {
    let best =
        |means: &[f64]| experiment(&Shape::of(&[means.len()]), &runs(means, 3)).best.unwrap();
    let found = best(&[1_000.0, 1_100.0, 1_020.0, 900.0]);
    assert_eq!((found.cell, found.claim), (1, BestClaim::Better));
    assert!(found.interval.unwrap()[0] > 1.0);
    assert_eq!(best(&[1_000.0, 1_005.0, 1_003.0, 998.0]).claim, BestClaim::RunAgain);
    assert_eq!(best(&[1_000.0, 900.0]).claim, BestClaim::First);
    let shape = Shape::of(&[2]);
    let of_times = experiment_of(RatioFigure::P99, &shape, &runs(&[1_000.0, 900.0], 3));
    assert_eq!(of_times.best.unwrap().claim, BestClaim::Better, "less time is better");
}

#[test]
fn sizes_have_an_efficiency_and_from_four_on_a_law() {
    let law = |n: f64| 5_000.0 * n / (1.0 + 0.05 * (n - 1.0));
    let values = vec![0.5, 1.0, 2.0, 4.0];
    let means: Vec<f64> = values.iter().map(|size| law(size / 0.5)).collect();
    let shape = Shape { values: Some(values.clone()), ..Shape::of(&[4]) };
    let found = experiment(&shape, &runs(&means, 3));
    let last = found.effects.last().unwrap();
    assert!((last.efficiency.unwrap() - 1.0 / 1.35).abs() < 0.02, "{last:?}");
    let [law] = found.laws.as_slice() else { panic!("{:?}", found.laws) };
    assert_eq!((law.one, law.fit.measured_to), (0.5, 8.0));
    assert!((law.fit.alpha - 0.05).abs() < 0.02, "{law:?}");
    let three = Shape { values: Some(values[..3].to_vec()), ..Shape::of(&[3]) };
    assert!(experiment(&three, &runs(&means[..3], 3)).laws.is_empty());
    let times = experiment_of(RatioFigure::P50, &shape, &runs(&means, 3));
    assert!(times.laws.is_empty() && times.effects.iter().all(|it| it.efficiency.is_none()));
}

#[test]
fn runs_that_agree_to_the_last_digit_claim_no_more_than_rounding_allows() {
    let runs: Vec<_> = (0..12).map(|at| (at % 4, at / 4, 1_000.0)).collect();
    let found = experiment(&Shape::of(&[2, 2]), &runs);
    let (_, interval, claim) = effect(&found, 0, &[]);
    assert!(claim == EffectClaim::Within && interval.unwrap()[0] < 0.999_5, "{interval:?}");
}
