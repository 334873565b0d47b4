//! Experiments whose truth is known: runs that scatter, hosts that drift, settings that vary a
//! little each time.

use plimsoll_analysis::experiment::{CellInput, analyse};
use plimsoll_engine::rng::{Random, Stream};
use plimsoll_model::comparison::experiment::{Experiment, Factor, Level, Setting};
use plimsoll_model::comparison::{FigureRow, GroupFigure, RatioFigure};

/// A run of no experiment in particular.
const RUN_OPS_PER_S: f64 = 20_000.0;
/// A linear drift's size over the whole experiment, in standard deviations of a run.
const LINEAR: f64 = 5.0;
/// A step of a walk.
const WALK: f64 = 0.5;

/// How fast a host is, run after run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drift {
    /// As fast in the last run as in the first.
    None,
    /// It slows down by as much in each run.
    Linear,
    /// Each run's speed is that of the run before, and chance.
    Walk,
}

/// A kind of experiments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// Levels of the first factor and of the second.
    pub(super) sizes: [usize; 2],
    pub(super) blocks: usize,
    /// Standard deviation of a run's logarithm.
    pub(super) scatter: f64,
    pub(super) drift: Drift,
    /// Standard deviation of a setting of the first factor, where a person makes it.
    pub(super) by_hand: Option<f64>,
}

/// What is true of the cells, as logarithms.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Truth {
    /// Of the second level of the first factor.
    pub(super) first: f64,
    /// Of the second level of the second factor.
    pub(super) second: f64,
    /// By how much more the second factor does at the second level of the first. Spread over the
    /// four cells so that it is hardest to see.
    pub(super) both: f64,
}

impl Truth {
    fn log(self, [first, second]: [usize; 2]) -> f64 {
        let is = |level: usize| if level == 1 { 1.0 } else { 0.0 };
        let sign = |level: usize| match level {
            0 => -1.0,
            1 => 1.0,
            _ => 0.0,
        };
        let both = sign(first) * sign(second) * self.both / 4.0;
        is(first) * self.first + is(second) * self.second + both
    }
}

impl Kind {
    fn cells(self) -> Vec<[usize; 2]> {
        let [first, second] = self.sizes;
        (0..first).flat_map(|a| (0..second).map(move |b| [a, b])).collect()
    }

    /// The cells of a block in the order of their runs: those of a setting made by hand together,
    /// all else in any order.
    fn order(self, random: &mut Random) -> Vec<[usize; 2]> {
        let mut cells = self.cells();
        shuffle(&mut cells, random);
        if self.by_hand.is_some() {
            let mut settings: Vec<usize> = (0..self.sizes[0]).collect();
            shuffle(&mut settings, random);
            cells.sort_by_key(|cell| settings[cell[0]]);
        }
        cells
    }

    /// An experiment of the kind, and its evaluation.
    pub(super) fn experiment(self, truth: Truth, random: &mut Random) -> Experiment {
        let (cells, [firsts, seconds]) = (self.cells(), self.sizes);
        let mut values = vec![Vec::new(); cells.len()];
        let runs = (self.blocks * cells.len()) as f64;
        let (mut walked, mut made) = (0.0, 0.0);
        for _ in 0..self.blocks {
            let settings: Vec<f64> =
                (0..firsts).map(|_| self.by_hand.unwrap_or_default() * normal(random)).collect();
            for [a, b] in self.order(random) {
                let drifted = match self.drift {
                    Drift::None => 0.0,
                    Drift::Linear => -LINEAR * self.scatter * made / runs,
                    Drift::Walk => {
                        walked += WALK * self.scatter * normal(random);
                        walked
                    }
                };
                made += 1.0;
                let log = truth.log([a, b]) + settings[a] + drifted + self.scatter * normal(random);
                values[a * seconds + b].push(RUN_OPS_PER_S * log.exp());
            }
        }
        self.analysed(values)
    }

    fn analysed(self, values: Vec<Vec<f64>>) -> Experiment {
        let cell = |(group, levels): (usize, [usize; 2])| CellInput {
            levels: levels.to_vec(),
            group: Some(group),
            blocks: (0..self.blocks).collect(),
            missing: Vec::new(),
        };
        let cells: Vec<CellInput> = self.cells().into_iter().enumerate().map(cell).collect();
        let group = |values: Vec<f64>| {
            let logs: f64 = values.iter().map(|value| value.ln()).sum();
            let mean = Some((logs / self.blocks as f64).exp());
            let values = values.into_iter().map(Some).collect();
            GroupFigure { mean, values, ..GroupFigure::default() }
        };
        let row = FigureRow {
            figure: RatioFigure::Peak,
            load: None,
            interpolated: false,
            not_counted: Vec::new(),
            groups: values.into_iter().map(group).collect(),
            ratios: Vec::new(),
        };
        analyse(self.factors(), &cells, &row)
    }

    fn factors(self) -> Vec<Factor> {
        let by_hand = self.by_hand.map(|_| Setting::ByHand).unwrap_or_default();
        let sets = [by_hand, Setting::ByProgram];
        let factor = |((size, set), name): ((usize, Setting), &str)| Factor {
            name: name.to_owned(),
            unit: None,
            levels: (0..size)
                .map(|at| Level { name: at.to_string(), system: None, value: None })
                .collect(),
            set,
        };
        self.sizes.into_iter().zip(sets).zip(["first", "second"]).map(factor).collect()
    }
}

pub(super) fn random(seed: u64) -> Random {
    Random::new(seed, Stream::Script, 0)
}

fn shuffle<T>(items: &mut [T], random: &mut Random) {
    plimsoll_engine::rng::shuffle(items, random.bits());
}

fn normal(random: &mut Random) -> f64 {
    let (a, b) = (1.0 - random.unit(), random.unit());
    (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}
