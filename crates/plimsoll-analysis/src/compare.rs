//! Groups of runs side by side. The run is the observation: what lies within one (its ops, its
//! seconds) says how well that run is known, and nothing of how the next will come out.
//!
//! | module | what it answers |
//! | --- | --- |
//! | `alike` | may these runs be compared, and what differs between the groups |
//! | `figures` | each run's figures, and which load points runs have in common |
//! | `curves` | throughput and response time of each group over load, published ones beside them |
//! | `ratio` | the ratio of two groups, its interval, and what would have been seen |
//! | `split` | are the runs of a group of one thing |
//! | `gates` | what becomes of conditions on ratios |

mod alike;
mod curves;
mod figures;
mod gates;
mod ratio;
#[cfg(test)]
mod simulation;
mod split;

use plimsoll_model::comparison::{
    COMPARISON_FORMAT, Claim, Comparison, FigureRow, Group, GroupRun, RUNS_MIN, RatioGate,
};
use plimsoll_model::result::RunResult;

use crate::sampling::OUTSIDE;

pub use alike::CompareError;
pub use curves::add_published;

/// Comparisons from which chance alone is expected to bring a claim or two.
const FIGURES_MANY: usize = 10;

/// A run to be compared.
#[derive(Clone, Debug)]
pub struct RunInput {
    /// Its directory, as given.
    pub bundle: String,
    /// What was derived from it.
    pub result: RunResult,
    /// Its suite as run; empty where it is not known.
    pub suite: toml::Table,
}

/// Runs of one thing.
#[derive(Clone, Debug)]
pub struct GroupInput {
    /// What it is called.
    pub label: String,
    /// Its runs.
    pub runs: Vec<RunInput>,
}

/// How to compare.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes<'a> {
    /// The n-th runs of all groups were made one after the other.
    pub paired: bool,
    /// Compare what should not be compared, and take invalid runs; every output says so.
    pub force: bool,
    /// Conditions under which the comparison fails.
    pub gates: &'a [RatioGate],
    /// A limit within an interval fails too.
    pub unsure_fails: bool,
}

/// Compares the groups with the first.
///
/// # Errors
/// When the runs are of different methods, and that was not asked for all the same.
pub fn compare(groups: &[GroupInput], wishes: Wishes<'_>) -> Result<Comparison, CompareError> {
    let mut forced = alike::refusals(groups);
    if let Some(refusal) = forced.first().filter(|_| !wishes.force) {
        return Err(refusal.clone());
    }
    let mut forced: Vec<String> = forced.drain(..).map(|refusal| refusal.what()).collect();
    forced.extend(invalid(groups).filter(|_| wishes.force));
    let rows = figures::rows(groups, wishes);
    let first = groups.first().and_then(|group| group.runs.first()).map(|run| &run.result);
    let mut comparison = Comparison {
        format: COMPARISON_FORMAT,
        suite: first.and_then(|run| Some(run.suite.as_ref()?.name.clone())).unwrap_or_default(),
        profile: first.and_then(|run| run.profile.clone()).unwrap_or_default(),
        axis: first.map(|run| run.axis.clone()).unwrap_or_default(),
        unit: first.map(|run| run.summary.unit.clone()).unwrap_or_default(),
        paired: wishes.paired,
        groups: groups.iter().map(shown).collect(),
        forced,
        differences: alike::differences(groups),
        figures: rows,
        curves: curves::of_groups(groups, wishes.force),
        notes: Vec::new(),
        gates: Vec::new(),
        prices: None,
        experiment: None,
    };
    for (index, group) in groups.iter().enumerate() {
        comparison.groups[index].splits =
            alike::mixed(group).into_iter().chain(split::splits(&comparison, index)).collect();
    }
    comparison.notes = notes(&comparison, groups, wishes);
    comparison.gates = gates::judge(&comparison, wishes);
    Ok(comparison)
}

fn shown(group: &GroupInput) -> Group {
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
    Group { label: group.label.clone(), runs, splits: Vec::new() }
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

fn notes(it: &Comparison, groups: &[GroupInput], wishes: Wishes<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let few: Vec<String> = it
        .groups
        .iter()
        .filter(|group| group.runs.len() < RUNS_MIN)
        .map(|group| format!("{} has {}", group.label, runs_text(group.runs.len())))
        .collect();
    if !few.is_empty() {
        notes.push(format!(
            "{}: ratios only, nothing is claimed of fewer than three runs a side; make more with \
             plimsoll run --repeat 5, or both sides in turn with plimsoll versus",
            few.join(", ")
        ));
    }
    if !wishes.force {
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
    if it.figures.iter().any(|row| row.ratios.iter().any(|r| r.claim == Claim::AtLeast)) {
        notes.push(
            "a server held every load it was asked for, so its peak is not known: ask for more \
             with --points or --peak"
                .into(),
        );
    }
    notes
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

#[cfg(test)]
mod tests;
