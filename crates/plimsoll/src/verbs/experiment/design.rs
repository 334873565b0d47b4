//! The design of an experiment: factors, the cells they span, and the order of runs.
//!
//! Each repeat is a block that holds every cell once, in an order drawn from the seed: drift
//! affects all cells alike. Levels that a person sets change as rarely as the design permits:
//! within a block the combinations of hand-set levels come one after the other, each with all its
//! cells.

use std::path::{Path, PathBuf};

use plimsoll_engine::rng::{key, shuffle};
use plimsoll_model::comparison::RUNS_MIN;
use plimsoll_model::event::ServerLimits;
use plimsoll_model::suite::Override;
use plimsoll_run::level_commands::LevelCommands;

/// Longest name of a cell's directory.
const DIR_CHARS_MAX: usize = 100;

/// The runs of an experiment, and their order.
#[derive(Clone, Debug)]
pub(crate) struct Design {
    /// The varied factors.
    pub factors: Vec<Factor>,
    /// Runs of each cell.
    pub repeats: u32,
    /// The combinations of levels.
    pub cells: Vec<Cell>,
    /// Name of each cell.
    pub names: Vec<String>,
    /// Directory of each cell's bundles.
    pub cell_dirs: Vec<String>,
    /// Each cell has one bundle, directly in its directory.
    pub flat: bool,
    /// The runs.
    pub steps: Vec<Step>,
}

impl Design {
    /// Makes the full factorial of the factors.
    pub(crate) fn new(factors: Vec<Factor>, repeats: u32, order: Order) -> Self {
        let cells = cells(&factors);
        let names = cells.iter().map(|cell| name(&factors, cell)).collect();
        let cell_dirs = cell_dirs(&factors, &cells);
        let steps = steps(&factors, repeats, order);
        Self { factors, repeats, cells, names, cell_dirs, flat: repeats == 1, steps }
    }

    /// The first cell and another one, in alternation, as often as an interval needs.
    pub(crate) fn again(&self, cell: usize) -> Self {
        let repeats = self.repeats.max(RUNS_MIN as u32);
        let kept = |cell: usize| self.cells[cell].clone();
        let (cells, order) = (vec![kept(0), kept(cell)], Order::Alternating);
        let made = (1..=repeats).flat_map(|block| {
            in_order(vec![0, 1], order, block).into_iter().map(move |cell| (cell, block))
        });
        let steps = with_settings(&self.factors, &cells, made.collect());
        let pick = |of: &[String]| vec![of[0].clone(), of[cell].clone()];
        let (names, cell_dirs) = (pick(&self.names), pick(&self.cell_dirs));
        Self { repeats, cells, names, cell_dirs, steps, ..self.clone() }
    }

    /// The same runs as those of one factor, whose levels are the cells.
    pub(crate) fn as_one_factor(&self) -> Self {
        let level = |name: &String| Level { name: name.clone(), value: None, changes: Vec::new() };
        let levels = self.names.iter().map(level).collect();
        let name = "combination".to_owned();
        let factors = vec![Factor { name, unit: None, levels, hand: None, undo: None }];
        Self { cells: cells(&factors), factors, ..self.clone() }
    }

    /// The bundle directory of a run: below its cell's directory, or that directory if there is
    /// only one run.
    pub(crate) fn bundle_dir(&self, dir: &Path, step: &Step) -> PathBuf {
        let cell = dir.join(&self.cell_dirs[step.cell]);
        if self.flat { cell } else { cell.join(step.block.to_string()) }
    }
}

/// `quota = 0.3, access log = off`; for a single factor `cores 2`.
fn name(factors: &[Factor], cell: &Cell) -> String {
    let all = factors.iter().zip(&cell.levels);
    match factors.len() {
        1 => {
            all.map(|(factor, level)| format!("{} {}", factor.name, factor.shown(*level))).collect()
        }
        _ => all.map(|(factor, level)| factor.level_text(*level)).collect::<Vec<_>>().join(", "),
    }
}

/// Directory names that distinguish the cells: `quota-0.3_access-log-off`.
fn cell_dirs(factors: &[Factor], cells: &[Cell]) -> Vec<String> {
    let part = |text: &str| -> String {
        let kept = text.chars().filter(|c| !c.is_whitespace() || factors.len() > 1);
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        kept.map(plain).take(DIR_CHARS_MAX).collect()
    };
    let dir_of = |cell: &Cell| {
        let parts = factors.iter().zip(&cell.levels).map(|(factor, level)| {
            format!("{}-{}", part(&factor.name), part(&factor.levels[*level].name))
        });
        parts.collect::<Vec<_>>().join("_")
    };
    let mut dirs: Vec<String> = cells.iter().map(dir_of).collect();
    let alike = (1..dirs.len()).any(|index| dirs[..index].contains(&dirs[index]));
    if alike || dirs.iter().any(|dir| dir.len() > DIR_CHARS_MAX) {
        dirs = (1..=cells.len()).map(|number| format!("cell-{number}")).collect();
    }
    dirs
}

/// A varied quantity.
#[derive(Clone, Debug)]
pub(crate) struct Factor {
    /// Its name.
    pub name: String,
    /// Unit of its levels.
    pub unit: Option<String>,
    /// Its levels.
    pub levels: Vec<Level>,
    /// Set if the user sets it by hand.
    pub hand: Option<HandSet>,
    /// Command that restores the state before the experiment.
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
    /// Its name in reports.
    pub name: String,
    /// Its numeric value, if it has one.
    pub value: Option<f64>,
    /// Its changes to a run.
    pub changes: Vec<Change>,
}

/// A change that a level makes to a run.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Set by commands, or by the user and verified by a command.
    Commands(LevelCommands),
    /// The same, for the server that the run starts, once it answers.
    AfterStart(LevelCommands),
    /// Values of the suite.
    Keys(Vec<Override>),
    /// An option of the run, as on its command line; `None` leaves it out.
    Flag(Option<String>),
    /// The target.
    Target(String),
    /// Resource limits of the server.
    Server(ServerLimits),
}

/// A combination of levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The index of each factor's level.
    pub levels: Vec<usize>,
}

/// A run to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Index of its cell.
    pub cell: usize,
    /// Its repeat, from 1.
    pub block: u32,
    /// For each factor, how many times its level was set by hand so far.
    pub settings: Vec<u32>,
}

/// The order within a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Drawn from the seed.
    Seeded(u64),
    /// The cells' order, reversed in every second block: A B, B A, A B …
    Alternating,
}

/// All combinations of levels; the last factor changes fastest.
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

/// The runs in the order in which they are made.
fn steps(factors: &[Factor], repeats: u32, order: Order) -> Vec<Step> {
    let cells = cells(factors);
    let blocks: Vec<u32> = (1..=repeats).collect();
    let hand = |hand_set: HandSet| -> Vec<usize> {
        (0..factors.len()).filter(|index| factors[*index].hand == Some(hand_set)).collect()
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

/// Groups the cells by their levels of these factors, so that the first factor changes least.
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
    let with = |chosen: usize| -> Vec<usize> {
        among.iter().copied().filter(|cell| level(cell) == chosen).collect()
    };
    let groups = in_order(levels, order, block).into_iter();
    groups.flat_map(|chosen| nested(&with(chosen), cells, rest, order, block)).collect()
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

/// Counts how often each level is set by hand: at each change, and again in each block.
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
    fn the_first_cell_and_the_best_alternate_when_run_again() {
        let factors = vec![factor(2, Some(HandSet::Once)), factor(2, None)];
        let design = Design::new(factors, 2, Order::Seeded(1));
        let again = design.again(2);
        assert_eq!(order(&again.steps), [(0, 1), (1, 1), (1, 2), (0, 2), (0, 3), (1, 3)]);
        assert_eq!(again.steps.last().unwrap().settings, [4, 0]);
        assert_eq!(again.names, ["f = 0, f = 0", "f = 1, f = 0"]);
        let compared = again.as_one_factor();
        assert_eq!(compared.cells[1].levels, [1]);
        assert_eq!(compared.factors[0].levels[1].name, "f = 1, f = 0");
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
