//! Compares groups of runs, and evaluates conditions on their ratios. The run is the observation:
//! the scatter within one (of its ops, its seconds) shows how precise that run is, not how the next
//! will turn out.
//!
//! | module | what it answers |
//! | --- | --- |
//! | `alike` | may these runs be compared, what differs between the groups, and do the runs of a group measure the same thing |
//! | `figures` | each run's figures, and the load points that all runs share |
//! | `curves` | throughput and response time of each group over load, with published curves |
//! | `ratio` | the ratio of two groups, its interval, and the smallest detectable difference |

mod alike;
mod curves;
mod figures;
mod ratio;
#[cfg(test)]
mod simulation;

use plimsoll_model::comparison::{
    COMPARISON_FORMAT, Comparison, FigureRow, Group, GroupRun, RUNS_MIN, RatioFigure, RatioGate,
    RatioGateResult,
};
use plimsoll_model::condition::Side;
use plimsoll_model::gate::GateState;
use plimsoll_model::limit::LimitKind;
use plimsoll_model::result::RunResult;

use crate::sampling::OUTSIDE;
use figures::interval_of_shared;

pub use alike::CompareError;
pub use curves::add_published;

/// With this many comparisons, chance alone is expected to bring a claim or two.
const FIGURES_MANY: usize = 10;

/// A run to be compared.
#[derive(Clone, Debug)]
pub struct RunInput {
    /// Its directory, as given.
    pub bundle: String,
    /// Its derived result.
    pub result: RunResult,
    /// Its suite as run; empty where it is not known.
    pub suite: toml::Table,
}

/// Runs of one thing.
#[derive(Clone, Debug, Default)]
pub struct GroupInput {
    /// Its label.
    pub label: String,
    /// The user chose the label: reports do not replace it by the software's name.
    pub is_named: bool,
    /// Its runs.
    pub runs: Vec<RunInput>,
}

/// How to compare.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompareOptions<'a> {
    /// The n-th runs of all groups were made one after the other.
    pub paired: bool,
    /// Compare runs that should not be compared, and accept invalid ones; every output says so.
    pub force: bool,
    /// Conditions under which the comparison fails.
    pub gates: &'a [RatioGate],
    /// A limit within an interval fails, or passes; `None`: it fails if the ratio itself breaks it.
    pub unsure_fails: Option<bool>,
}

/// Compares the groups with the first.
///
/// When the runs follow different methods, and `force` is not set.
pub fn compare(
    groups: &[GroupInput],
    options: CompareOptions<'_>,
) -> Result<Comparison, CompareError> {
    let mut forced = alike::refusals(groups);
    if let Some(refusal) = forced.first().filter(|_| !options.force) {
        return Err(refusal.clone());
    }
    let mut forced: Vec<String> = forced.drain(..).map(|refusal| refusal.what()).collect();
    forced.extend(invalid(groups).filter(|_| options.force));
    let rows = figures::rows(groups, options);
    let first = groups.first().and_then(|group| group.runs.first()).map(|run| &run.result);
    let mut comparison = Comparison {
        format: COMPARISON_FORMAT,
        suite: first.and_then(|run| Some(run.suite.as_ref()?.name.clone())).unwrap_or_default(),
        profile: first.and_then(|run| run.profile.clone()).unwrap_or_default(),
        axis: first.map(|run| run.axis.clone()).unwrap_or_default(),
        unit: first.map(|run| run.summary.unit.clone()).unwrap_or_default(),
        paired: options.paired,
        groups: groups.iter().zip(alike::systems(groups)).map(shown).collect(),
        forced,
        differences: alike::differences(groups),
        figures: rows,
        curves: curves::of_groups(groups, options.force),
        notes: Vec::new(),
        gates: Vec::new(),
        prices: None,
        experiment: None,
    };
    for (index, group) in groups.iter().enumerate() {
        comparison.groups[index].splits =
            alike::mixed(group).into_iter().chain(alike::splits(&comparison, index)).collect();
    }
    comparison.notes = notes(&comparison, groups, options);
    comparison.gates = evaluate(&comparison, options);
    Ok(comparison)
}

fn shown((group, system): (&GroupInput, String)) -> Group {
    let run = |run: &RunInput| GroupRun {
        bundle: run.bundle.clone(),
        report: None,
        started: run.result.started.clone(),
        targets: run.result.targets.clone(),
        valid: run.result.verdict.valid,
        value: run.result.summary.value,
        limit: run.result.summary.limit.clone(),
    };
    let runs = group.runs.iter().map(run).collect();
    Group { label: group.label.clone(), system, runs, splits: Vec::new() }
}

/// Each invalid run, with the rules it broke.
fn invalid(groups: &[GroupInput]) -> impl Iterator<Item = String> {
    groups.iter().flat_map(|group| &group.runs).filter(|run| !run.result.verdict.valid).map(|run| {
        let reasons = &run.result.verdict.reasons;
        let mut rules: Vec<&str> = reasons.iter().map(|reason| reason.rule.name()).collect();
        rules.sort_unstable();
        rules.dedup();
        format!("{} is not valid ({})", run.bundle, rules.join(", "))
    })
}

fn notes(it: &Comparison, groups: &[GroupInput], options: CompareOptions<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let few: Vec<String> = it
        .groups
        .iter()
        .filter(|group| group.runs.len() < RUNS_MIN)
        .map(|group| format!("{} has {}", group.name(), runs_text(group.runs.len())))
        .collect();
    if !few.is_empty() {
        notes.push(format!(
            "{}: ratios only, nothing is claimed of fewer than three runs a side; make more with \
             plimsoll run --repeat 5, or both sides in turn with plimsoll versus",
            few.join(", ")
        ));
    }
    if !options.force {
        let left_out =
            invalid(groups).map(|what| format!("{what}: figures that this touches are left out"));
        notes.extend(left_out);
    }
    let longest = it.groups.iter().map(|group| group.runs.len()).max().unwrap_or_default();
    if it.paired && it.groups.iter().any(|group| group.runs.len() < longest) {
        notes.push("the groups are not of one length: runs without a pair are left out".into());
    }
    notes.extend(points_note(it));
    let claimable = |row: &FigureRow| row.ratios.iter().filter(|r| r.interval.is_some()).count();
    let claimable: usize =
        it.figures.iter().filter(|row| !row.figure.is_cost()).map(claimable).sum();
    if claimable >= FIGURES_MANY {
        let by_chance = (claimable as f64 * OUTSIDE).round();
        notes.push(format!(
            "each interval is one of 95 %: of {claimable} ratios about {by_chance} would leave out \
             1 by chance, were the groups the same; so none is claimed unless the headline differs, \
             or one of the others where they share the 5 %"
        ));
    }
    notes.extend(peak_note(it, groups));
    notes
}

/// The groups without a known peak, and what to run to learn it.
fn peak_note(it: &Comparison, groups: &[GroupInput]) -> Option<String> {
    let row = it.rows(RatioFigure::Peak).next()?;
    let unknown = it.groups.iter().zip(&row.groups).filter(|(_, figure)| figure.at_least);
    let unknown: Vec<&str> = unknown.map(|(group, _)| group.name()).collect();
    if unknown.is_empty() {
        return None;
    }
    let points = || groups.iter().flat_map(|it| &it.runs).flat_map(|it| &it.result.points);
    let by_generator = points().any(|point| point.limit.kind == LimitKind::Generator);
    let is_open = points().any(|point| point.offered_ops_per_s.is_some());
    let most = points().map(|point| point.requested).fold(0.0, f64::max);
    let more = match (by_generator, is_open) {
        (true, _) => {
            "with more --workers or --agents, since the generator was the limit".to_owned()
        }
        (_, true) => "with --peak auto, the fastest server named first".to_owned(),
        _ if it.axis.unit == "s" => "with shorter think times in --points".to_owned(),
        (_, false) => format!("with --points {most},{},{} (clients)", most * 2.0, most * 4.0),
    };
    let why = if is_open {
        "the loads end below it, or the next load above the highest that was held lies too far above"
    } else {
        "throughput still grew, or cannot be judged"
    };
    Some(format!("the peak of {} is not known: {why}; to learn it, run {more}", unknown.join(", ")))
}

fn points_note(it: &Comparison) -> Option<String> {
    let of_points = || it.figures.iter().filter(|row| row.load.is_some());
    match of_points().next() {
        None => Some(
            "the runs have no range of loads in common: give both the same --points, or repeat one \
             like the other with plimsoll run SUITE TARGET --like DIR"
                .into(),
        ),
        Some(_) if of_points().any(|row| row.interpolated) => Some(
            "the runs share no load points: between two points of a run its figures are drawn \
             straight, within the range that all runs have; to have the same points: plimsoll run \
             SUITE TARGET --like DIR"
                .into(),
        ),
        Some(_) => None,
    }
}

fn runs_text(count: usize) -> String {
    match count {
        1 => "one run".to_owned(),
        2 => "two runs".to_owned(),
        count => format!("{count} runs"),
    }
}

/// Each condition for each group after the first.
fn evaluate(comparison: &Comparison, options: CompareOptions<'_>) -> Vec<RatioGateResult> {
    let others = 1..comparison.groups.len();
    let of = |index| options.gates.iter().map(move |gate| (index, gate));
    others
        .flat_map(of)
        .map(|(index, gate)| evaluate_one(comparison, gate, index, options.unsure_fails))
        .collect()
}

fn evaluate_one(
    comparison: &Comparison,
    gate: &RatioGate,
    index: usize,
    unsure_fails: Option<bool>,
) -> RatioGateResult {
    let is_at_load = |row: &&FigureRow| gate.at.is_none_or(|load| row.load == Some(load));
    let rows: Vec<&FigureRow> = comparison.rows(gate.figure).filter(is_at_load).collect();
    let with_interval = rows.iter().filter(|row| row.ratios[index - 1].interval.is_some()).count();
    // The worst of several load points is selected by its value: they share the 5 %.
    let interval = |row: &FigureRow| match with_interval {
        0 | 1 => row.ratios[index - 1].interval,
        loads => interval_of_shared(row, index, comparison.paired, loads),
    };
    let evaluated = rows
        .into_iter()
        .filter_map(|row| EvaluatedRow::from_row(row, interval(row), gate, index))
        .reduce(|worst, next| if next.is_worse_than(&worst, gate.side) { next } else { worst });
    let state = evaluated.as_ref().map_or(GateState::Unknown, |evaluated| evaluated.state);
    let ratio = evaluated.as_ref().map(|evaluated| evaluated.ratio);
    RatioGateResult {
        expr: gate.clone(),
        group: comparison.groups[index].label.clone(),
        state,
        fails: gate.fails(state, ratio, unsure_fails),
        ratio,
        interval: evaluated.as_ref().and_then(|evaluated| evaluated.interval),
        load: evaluated.and_then(|evaluated| evaluated.load),
    }
}

/// A row compared with a condition.
struct EvaluatedRow {
    state: GateState,
    ratio: f64,
    /// The interval that decided it.
    interval: Option<[f64; 2]>,
    load: Option<f64>,
}

impl EvaluatedRow {
    fn from_row(
        row: &FigureRow,
        interval: Option<[f64; 2]>,
        gate: &RatioGate,
        index: usize,
    ) -> Option<Self> {
        let ratio = row.ratios.get(index - 1)?.ratio?;
        let sides = interval.map(|[low, high]| {
            // A server that could have carried more leaves one side open.
            let low = if row.groups[0].at_least { 0.0 } else { low };
            let high = if row.groups[index].at_least { f64::INFINITY } else { high };
            [low, high]
        });
        let state =
            GateState::from_condition(sides.and_then(|sides| gate.side.holds(gate.limit, sides)));
        Some(Self { state, ratio, interval, load: row.load })
    }

    fn is_worse_than(&self, other: &Self, side: Side) -> bool {
        let rank = |state| match state {
            GateState::Failed => 2,
            GateState::Unsure | GateState::Unknown => 1,
            GateState::Held => 0,
        };
        let further = match side {
            Side::Above => self.ratio > other.ratio,
            Side::Below => self.ratio < other.ratio,
        };
        match rank(self.state).cmp(&rank(other.state)) {
            std::cmp::Ordering::Equal => further,
            order => order.is_gt(),
        }
    }
}

#[cfg(test)]
mod tests;
