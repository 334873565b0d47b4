//! The design of an experiment: factors, the cells they span, and the order of runs.
//!
//! Each repeat is a block that holds every cell once, in an order drawn from the seed: what drifts
//! hits all cells alike. Levels that a person sets change as rarely as the design permits: within a
//! block the combinations of hand-set levels come one after the other, each with all its cells.

use std::path::{Path, PathBuf};

use plimsoll_engine::rng::{key, shuffle};
use plimsoll_model::event::ServerLimits;
use plimsoll_model::suite::Override;

use crate::level_commands::LevelCommands;

/// Longest name of a cell's directory.
const PLACE_CHARS_MAX: usize = 100;

/// What is run, and in what order.
#[derive(Clone, Debug)]
pub(crate) struct Design {
    /// What is changed.
    pub factors: Vec<Factor>,
    /// Runs of each cell.
    pub repeats: u32,
    /// The combinations of levels.
    pub cells: Vec<Cell>,
    /// Of each cell, what it is called.
    pub names: Vec<String>,
    /// Of each cell, the directory of its bundles.
    pub places: Vec<String>,
    /// A cell's only bundle is its directory.
    pub flat: bool,
    /// The runs.
    pub steps: Vec<Step>,
}

impl Design {
    /// The full factorial of the factors.
    pub(crate) fn new(factors: Vec<Factor>, repeats: u32, order: Order) -> Self {
        let cells = cells(&factors);
        let names = cells.iter().map(|cell| name(&factors, cell)).collect();
        let places = places(&factors, &cells);
        let steps = steps(&factors, repeats, order);
        Self { factors, repeats, cells, names, places, flat: repeats == 1, steps }
    }

    /// Where the bundle of a run goes: below its cell's directory, or there where there is one run.
    pub(crate) fn place(&self, dir: &Path, step: &Step) -> PathBuf {
        let cell = dir.join(&self.places[step.cell]);
        if self.flat { cell } else { cell.join(step.block.to_string()) }
    }
}

/// `quota = 0.3, access log = off`; of one factor `cores 2`.
fn name(factors: &[Factor], cell: &Cell) -> String {
    let all = factors.iter().zip(&cell.levels);
    match factors.len() {
        1 => {
            all.map(|(factor, level)| format!("{} {}", factor.name, factor.shown(*level))).collect()
        }
        _ => all.map(|(factor, level)| factor.level_text(*level)).collect::<Vec<_>>().join(", "),
    }
}

/// Names of directories that tell the cells apart: `quota-0.3_access-log-off`.
fn places(factors: &[Factor], cells: &[Cell]) -> Vec<String> {
    let part = |text: &str| -> String {
        let kept = text.chars().filter(|c| !c.is_whitespace() || factors.len() > 1);
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        kept.map(plain).take(PLACE_CHARS_MAX).collect()
    };
    let place = |cell: &Cell| {
        let all = factors.iter().zip(&cell.levels);
        let parts = all.map(|(factor, level)| {
            format!("{}-{}", part(&factor.name), part(&factor.levels[*level].name))
        });
        parts.collect::<Vec<_>>().join("_")
    };
    let mut places: Vec<String> = cells.iter().map(place).collect();
    let alike = (1..places.len()).any(|index| places[..index].contains(&places[index]));
    if alike || places.iter().any(|place| place.len() > PLACE_CHARS_MAX) {
        places = (1..=cells.len()).map(|number| format!("cell-{number}")).collect();
    }
    places
}

/// What is changed.
#[derive(Clone, Debug)]
pub(crate) struct Factor {
    /// What it is called.
    pub name: String,
    /// Unit of its levels.
    pub unit: Option<String>,
    /// Its levels.
    pub levels: Vec<Level>,
    /// The user sets it.
    pub hand: Option<HandSet>,
    /// Restores what was there before.
    pub undo: Option<String>,
}

impl Factor {
    /// A level with its unit: `450 MHz`.
    pub(crate) fn shown(&self, level: usize) -> String {
        let unit = self.unit.as_ref().map(|unit| format!(" {unit}")).unwrap_or_default();
        self.levels[level].name.clone() + &unit
    }

    /// `clock = 450 MHz`.
    pub(crate) fn level_text(&self, level: usize) -> String {
        format!("{} = {}", self.name, self.shown(level))
    }
}

/// How often a level is set by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandSet {
    /// Once, for all repeats.
    Once,
    /// Anew in each block.
    EachBlock,
}

/// A level.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// How reports call it.
    pub name: String,
    /// As a number, where it is one.
    pub value: Option<f64>,
    /// What it does to a run.
    pub changes: Vec<Change>,
}

/// What a level does to a run.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Commands set it, or the user does and a command verifies it.
    Commands(LevelCommands),
    /// The same, for the server that the run starts, once it answers.
    AfterStart(LevelCommands),
    /// Values of the suite.
    Keys(Vec<Override>),
    /// The target.
    Target(String),
    /// What the server is held to.
    Server(ServerLimits),
}

/// A combination of levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Of each factor, the index of its level.
    pub levels: Vec<usize>,
}

/// A run to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Index of its cell.
    pub cell: usize,
    /// Its repeat, from 1.
    pub block: u32,
    /// Of each factor, the number of times its level was set by hand up to here.
    pub settings: Vec<u32>,
}

/// The order within a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Drawn from the seed.
    Seeded(u64),
    /// That of the cells, and the reverse in every second block: A B, B A, A B …
    Alternating,
}

/// Every combination of levels; the last factor changes fastest.
fn cells(factors: &[Factor]) -> Vec<Cell> {
    let mut all = vec![Vec::new()];
    for factor in factors {
        let each = |before: Vec<usize>| {
            (0..factor.levels.len()).map(move |level| [&before[..], &[level]].concat())
        };
        all = all.into_iter().flat_map(each).collect();
    }
    all.into_iter().map(|levels| Cell { levels }).collect()
}

/// The runs in the order they are made.
fn steps(factors: &[Factor], repeats: u32, order: Order) -> Vec<Step> {
    let cells = cells(factors);
    let blocks: Vec<u32> = (1..=repeats).collect();
    let hand = |wanted: HandSet| -> Vec<usize> {
        (0..factors.len()).filter(|index| factors[*index].hand == Some(wanted)).collect()
    };
    let (once, anew) = (hand(HandSet::Once), hand(HandSet::EachBlock));
    let all: Vec<usize> = (0..cells.len()).collect();
    let mut made: Vec<(usize, u32)> = Vec::new();
    for outer in nested(&all, &cells, &once, order, 0) {
        for block in &blocks {
            for inner in nested(&outer, &cells, &anew, order, *block) {
                made.extend(in_order(inner, order, *block).into_iter().map(|cell| (cell, *block)));
            }
        }
    }
    with_settings(factors, &cells, made)
}

/// The cells in groups that have the levels of those factors in common, so that the first factor
/// changes least.
fn nested(
    among: &[usize],
    cells: &[Cell],
    factors: &[usize],
    order: Order,
    block: u32,
) -> Vec<Vec<usize>> {
    let Some((first, rest)) = factors.split_first() else { return vec![among.to_vec()] };
    let level = |cell: &usize| cells[*cell].levels[*first];
    let mut levels: Vec<usize> = among.iter().map(level).collect();
    levels.sort_unstable();
    levels.dedup();
    let with = |wanted: usize| -> Vec<usize> {
        among.iter().copied().filter(|cell| level(cell) == wanted).collect()
    };
    let groups = in_order(levels, order, block).into_iter();
    groups.flat_map(|wanted| nested(&with(wanted), cells, rest, order, block)).collect()
}

fn in_order(mut items: Vec<usize>, order: Order, block: u32) -> Vec<usize> {
    match order {
        Order::Seeded(seed) => {
            let first = items.first().copied().unwrap_or_default() as u64;
            let count = items.len() as u64;
            shuffle(&mut items, key(&[seed, u64::from(block), first, count]));
        }
        Order::Alternating if block.is_multiple_of(2) => items.reverse(),
        Order::Alternating => {}
    }
    items
}

/// Counts how often each level is set by hand: where it changes, and anew in each block.
fn with_settings(factors: &[Factor], cells: &[Cell], made: Vec<(usize, u32)>) -> Vec<Step> {
    let mut settings = vec![0; factors.len()];
    let mut before: Option<(usize, u32)> = None;
    let mut steps = Vec::new();
    for (cell, block) in made {
        for (index, factor) in factors.iter().enumerate() {
            let Some(hand) = factor.hand else { continue };
            let is_new = before.is_none_or(|(earlier, earlier_block)| {
                let changes = cells[earlier].levels[index] != cells[cell].levels[index];
                changes || (hand == HandSet::EachBlock && earlier_block != block)
            });
            settings[index] += u32::from(is_new);
        }
        steps.push(Step { cell, block, settings: settings.clone() });
        before = Some((cell, block));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(levels: usize, hand: Option<HandSet>) -> Factor {
        let level =
            |number: usize| Level { name: number.to_string(), value: None, changes: Vec::new() };
        let levels = (0..levels).map(level).collect();
        Factor { name: "f".into(), unit: None, levels, hand, undo: None }
    }

    fn order(steps: &[Step]) -> Vec<(usize, u32)> {
        steps.iter().map(|step| (step.cell, step.block)).collect()
    }

    #[test]
    fn each_block_holds_every_cell_once_in_an_order_of_its_own() {
        let factors = [factor(2, None), factor(3, None)];
        let steps = steps(&factors, 4, Order::Seeded(1));
        let blocks: Vec<Vec<usize>> =
            steps.chunks(6).map(|block| block.iter().map(|step| step.cell).collect()).collect();
        for block in &blocks {
            let mut sorted = block.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
        }
        assert!(blocks.windows(2).any(|pair| pair[0] != pair[1]), "{blocks:?}");
        assert_eq!(cells(&factors)[4].levels, [1, 1]);
        assert_ne!(order(&steps), order(&super::steps(&factors, 4, Order::Seeded(2))));
    }

    #[test]
    fn two_levels_alternate() {
        let steps = steps(&[factor(2, None)], 3, Order::Alternating);
        assert_eq!(order(&steps), [(0, 1), (1, 1), (1, 2), (0, 2), (0, 3), (1, 3)]);
    }

    #[test]
    fn what_is_set_by_hand_changes_once_for_each_level_and_block() {
        let factors = [factor(2, Some(HandSet::EachBlock)), factor(3, None)];
        let steps = steps(&factors, 3, Order::Seeded(7));
        assert_eq!(steps.last().unwrap().settings, [6, 0]);
        for pair in steps.chunks(3) {
            assert!(pair.iter().all(|step| step.settings == pair[0].settings), "{pair:?}");
        }
    }

    #[test]
    fn what_is_set_once_stays_for_all_repeats() {
        let factors = [factor(2, None), factor(2, Some(HandSet::Once))];
        let steps = steps(&factors, 5, Order::Seeded(7));
        assert_eq!(steps.last().unwrap().settings, [0, 2]);
        let level = |step: &Step| cells(&factors)[step.cell].levels[1];
        assert!(steps[..10].iter().all(|step| level(step) == level(&steps[0])));
    }
}
