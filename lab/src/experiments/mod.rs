//! `cargo lab experiments`: a thousand simulated experiments of each kind. How often does an
//! interval contain the truth, is an absent interaction claimed, and is one found that has the size
//! that the experiment reports as detectable?

mod simulated;

use clap::Parser;
use plimsoll_engine::rng::Random;
use plimsoll_model::comparison::experiment::{Effect, EffectClaim, Experiment};
use xtask::verb::Result;

use crate::page::Table;
use simulated::{Drift, Kind, Truth, random};

const TABLE: Table<'static> = Table { page: "docs/experiments.md", name: "lab experiments" };
const GRIDS: u32 = 1_000;
const SEED: u64 = 33;
/// Standard deviation of a run's logarithm, as measured of runs of one server
/// (`crates/plimsoll-analysis/src/compare/simulation/`).
const RUN: f64 = 0.045;
/// Of a setting that a person makes.
const SETTING: f64 = 0.06;
/// What is true of every experiment: the first factor adds 50 %, the second costs 5 %.
const TRUTH: Truth = Truth { first: 0.405, second: -0.05, both: 0.0 };

/// Options of `cargo lab experiments`.
#[derive(Parser)]
pub struct Options {
    /// Experiments of each kind.
    #[arg(long, default_value_t = GRIDS)]
    grids: u32,
    /// Replace the table in `docs/experiments.md`.
    #[arg(long)]
    write: bool,
}

/// Shares of the experiments of a kind.
#[derive(Clone, Copy, Debug)]
struct Shares {
    /// Intervals of the first factor's effects that hold the truth.
    first: f64,
    /// Of the second's.
    second: f64,
    /// An interaction is claimed that is not there.
    claimed: f64,
    /// An interaction of the size reported as detectable is found.
    interaction: f64,
    /// An effect of the size reported as detectable is found.
    effect: f64,
}

/// Simulates all kinds, and prints what became of them.
pub fn experiments(options: &Options) -> Result<()> {
    if options.write {
        TABLE.check()?;
    }
    let mut lines = vec![
        "| grid | repeats | drift | first factor set by | intervals: first | second | interaction \
         claimed, none there | interaction found | effect found |"
            .to_owned(),
        "|---|--:|---|---|--:|--:|--:|--:|--:|".to_owned(),
    ];
    let mut wrong = Vec::new();
    for kind in kinds() {
        let shares = shares(kind, options.grids, SEED);
        let line = line(kind, shares);
        println!("{line}");
        if !is_sound(shares, [0.93..=0.97, 0.03..=0.07], 0.8) {
            wrong.push(line.clone());
        }
        lines.push(line);
    }
    if options.write {
        TABLE.write(&lines.join("\n"))?;
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("not as stated:\n{}", wrong.join("\n"))),
    }
}

fn kinds() -> impl Iterator<Item = Kind> {
    let by_hand = [None, Some(SETTING)].into_iter();
    let drifts = move |by_hand| {
        [Drift::None, Drift::Linear, Drift::Walk].map(|drift| (by_hand, drift)).into_iter()
    };
    let sizes = |(by_hand, drift)| {
        let grids = [([2, 2], 3), ([2, 2], 5), ([2, 3], 3), ([2, 3], 5)];
        grids.map(|(sizes, blocks)| Kind { sizes, blocks, scatter: RUN, drift, by_hand })
    };
    by_hand.flat_map(drifts).flat_map(sizes)
}

fn shares(kind: Kind, grids: u32, seed: u64) -> Shares {
    let mut random = random(seed);
    let mut sums = [0.0; 5];
    for _ in 0..grids {
        for (sum, share) in sums.iter_mut().zip(of_one(kind, &mut random)) {
            *sum += share;
        }
    }
    let [first, second, claimed, interaction, effect] = sums.map(|sum| sum / f64::from(grids));
    Shares { first, second, claimed, interaction, effect }
}

/// Of an experiment, and of two like it in which something has the size that it reports as
/// detectable.
fn of_one(kind: Kind, random: &mut Random) -> [f64; 5] {
    let share = |is: bool| f64::from(u8::from(is));
    let experiment = kind.experiment(TRUTH, random);
    let interaction = experiment.interaction.expect("two factors, three repeats");
    let both = Truth { both: interaction.detectable.ln(), ..TRUTH };
    let second = main_effects(&experiment, 1).next().and_then(|it| it.detectable);
    let second = Truth { second: second.expect("three repeats").ln(), ..TRUTH };
    let like = [both, second].map(|truth| kind.experiment(truth, random));
    [
        covered(&experiment, 0, TRUTH.first),
        covered(&experiment, 1, TRUTH.second),
        share(interaction.found),
        share(like[0].interaction.is_some_and(|it| it.found)),
        share(main_effects(&like[1], 1).next().is_some_and(|it| it.claim == EffectClaim::Differs)),
    ]
}

fn main_effects(experiment: &Experiment, factor: usize) -> impl Iterator<Item = &Effect> {
    experiment.effects.iter().filter(move |it| it.factor == factor && it.at.is_empty())
}

/// The share of a factor's intervals that hold the truth; its third level is as the first.
fn covered(experiment: &Experiment, factor: usize, second_level: f64) -> f64 {
    let holds = |it: &Effect| {
        let truth = if it.to == 1 { second_level.exp() } else { 1.0 };
        let [low, high] = it.interval.unwrap_or([0.0, 0.0]);
        f64::from(u8::from((low..=high).contains(&truth)))
    };
    let all: Vec<f64> = main_effects(experiment, factor).map(holds).collect();
    all.iter().sum::<f64>() / all.len() as f64
}

fn is_sound(
    it: Shares,
    [coverage, claimed]: [std::ops::RangeInclusive<f64>; 2],
    power: f64,
) -> bool {
    let covers = [it.first, it.second].iter().all(|share| coverage.contains(share));
    covers && claimed.contains(&it.claimed) && it.interaction.min(it.effect) >= power
}

fn line(kind: Kind, it: Shares) -> String {
    let [first, second] = kind.sizes;
    let drift = match kind.drift {
        Drift::None => "none",
        Drift::Linear => "linear",
        Drift::Walk => "random walk",
    };
    let by = if kind.by_hand.is_some() { "hand" } else { "program" };
    let shares = [it.first, it.second, it.claimed, it.interaction, it.effect];
    let shares = shares.map(|share| format!("{:.1} %", share * 100.0)).join(" | ");
    format!("| {first} × {second} | {} | {drift} | {by} | {shares} |", kind.blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_simulated_experiments_is_as_right_as_it_says() {
        // Two hundred know a share of 95 % to three points.
        const FEW: u32 = 200;
        let kind =
            Kind { sizes: [2, 2], blocks: 3, scatter: RUN, drift: Drift::Linear, by_hand: None };
        let by_hand = Kind { sizes: [2, 3], blocks: 5, by_hand: Some(SETTING), ..kind };
        for kind in [kind, by_hand] {
            let observed = shares(kind, FEW, SEED);
            assert!(is_sound(observed, [0.91..=0.99, 0.01..=0.09], 0.77), "{kind:?}: {observed:?}");
        }
    }
}
