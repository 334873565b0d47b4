//! May runs be compared at all, and what differs between groups of them?
//!
//! Do the runs of a group measure the same thing? Looks for a gap between them that is wide
//! relative to the scatter on either side of it: two modes, or a run far from the others.

use std::collections::BTreeMap;

use plimsoll_model::comparison::{Comparison, Difference, FigureRow};
use plimsoll_model::disclosure::TargetDisclosure;

use super::{GroupInput, RunInput};

/// Keys of a suite that name it, or over which curves are compared.
const SUITE_NAMES: [&str; 7] = ["format", "name", "title", "about", "source", "origins", "ladder"];
/// Settings in the disclosure that say how a run was made.
const SETTINGS: [&str; 5] =
    ["workers", "pacing", "priority of the workers", "server held to", "NFS"];
/// Stands for a value that a run does not have.
const ABSENT: &str = "none";

/// Why two runs cannot be compared: another method, load or program, so that a ratio would mean
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}; compare runs of the same suite, seed and profile, or mark the comparison with --force",
    self.what()
)]
pub struct CompareError {
    what: &'static str,
    first: (String, String),
    other: (String, String),
}

impl CompareError {
    /// What differs, of which runs.
    pub(super) fn what(&self) -> String {
        let (Self { what, .. }, (first, first_is), (other, other_is)) =
            (self, &self.first, &self.other);
        format!("{what} differ: {first} has {first_is}, {other} has {other_is}")
    }
}

/// Every reason against comparing the runs, each kind once.
pub(super) fn refusals(groups: &[GroupInput]) -> Vec<CompareError> {
    let mut runs = groups.iter().flat_map(|group| &group.runs);
    let Some(first) = runs.next() else { return Vec::new() };
    let expected = methods(first);
    let mut refusals: Vec<CompareError> = Vec::new();
    for run in runs {
        for ((what, value), (_, other)) in expected.iter().zip(methods(run)) {
            if *value != other && refusals.iter().all(|refusal| refusal.what != *what) {
                refusals.push(CompareError {
                    what,
                    first: (first.bundle.clone(), value.clone()),
                    other: (run.bundle.clone(), other),
                });
            }
        }
    }
    refusals
}

/// Facts that must be the same in all runs.
fn methods(run: &RunInput) -> Vec<(&'static str, String)> {
    let result = &run.result;
    let or_none = |text: Option<String>| text.unwrap_or_else(|| ABSENT.to_owned());
    let tool =
        result.disclosure.as_ref().map(|it| format!("{} {}", it.tool.version, it.tool.build));
    let mode = run.suite.get("load").and_then(|load| load.get("mode")?.as_str());
    vec![
        ("result formats", result.format.to_string()),
        ("suites", or_none(result.suite.as_ref().map(|suite| suite.name.clone()))),
        ("modes of load", or_none(mode.map(str::to_owned))),
        ("kinds of load", format!("{} ({})", result.axis.name, result.axis.unit)),
        ("profiles", or_none(result.profile.clone())),
        ("seeds", or_none(result.seed.map(|seed| seed.to_string()))),
        ("versions of plimsoll", or_none(tool)),
    ]
}

/// Names of the groups in reports: software and version, where these distinguish the groups and the
/// user named none, else their labels.
pub(super) fn systems(groups: &[GroupInput]) -> Vec<String> {
    let systems: Vec<Option<String>> = groups.iter().map(system).collect();
    let differ = |at: usize| systems[at].is_some() && !systems[..at].contains(&systems[at]);
    let distinguishable =
        (0..groups.len()).all(differ) && !groups.iter().any(|group| group.is_named);
    let name = |(group, system): (&GroupInput, Option<String>)| {
        system.filter(|_| distinguishable).unwrap_or_else(|| group.label.clone())
    };
    groups.iter().zip(systems.clone()).map(name).collect()
}

/// The software that all runs of a group have.
fn system(group: &GroupInput) -> Option<String> {
    let of_run = |run: &RunInput| {
        let targets = &run.result.disclosure.as_ref()?.targets;
        let mut names = targets.iter().map(TargetDisclosure::system).collect::<Option<Vec<_>>>()?;
        names.dedup();
        Some(names.join(" + ")).filter(|name| !name.is_empty())
    };
    let mut all = group.runs.iter().map(of_run);
    let first = all.next()??;
    all.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

/// Facts that differ between groups.
pub(super) fn differences(groups: &[GroupInput]) -> Vec<Difference> {
    let all: Vec<BTreeMap<String, Vec<String>>> = groups.iter().map(values).collect();
    let mut names: Vec<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    let of = |name: &String| {
        let none = || vec![ABSENT.to_owned()];
        all.iter().map(|group| group.get(name).cloned().unwrap_or_else(none)).collect::<Vec<_>>()
    };
    let differing = names.into_iter().filter_map(|name| {
        let values = of(name);
        let same = values.iter().all(|value| *value == values[0]);
        let texts = values.into_iter().map(|of_group| of_group.join(" / ")).collect();
        (!same).then(|| Difference { name: name.clone(), values: texts })
    });
    differing.collect()
}

/// Facts that differ between the runs of a group, for a person.
pub(super) fn mixed(group: &GroupInput) -> Vec<String> {
    let several = values(group).into_iter().filter(|(_, values)| values.len() > 1);
    let texts = several.map(|(name, values)| {
        format!("its runs are not of one kind: {name} is {}", values.join(" and "))
    });
    texts.collect()
}

/// Facts of a group by name, with the values its runs have of them, in order of the runs.
fn values(group: &GroupInput) -> BTreeMap<String, Vec<String>> {
    let of_runs: Vec<BTreeMap<String, String>> = group.runs.iter().map(facts).collect();
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in of_runs.iter().flat_map(BTreeMap::keys) {
        let values = all.entry(name.clone()).or_default();
        for run in &of_runs {
            let value = run.get(name).map_or(ABSENT, String::as_str);
            if values.iter().all(|listed| listed != value) {
                values.push(value.to_owned());
            }
        }
    }
    all
}

/// Facts about how a run was made, without those that change with every run (ports, instants).
fn facts(run: &RunInput) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut put = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| (name.to_owned(), value)));
    };
    put("target", Some(run.result.targets.join(", ")));
    if let Some(disclosure) = &run.result.disclosure {
        let host = &disclosure.generator;
        let software = disclosure.targets.iter().filter_map(|target| target.software.clone());
        put("server software", Some(software.collect::<Vec<_>>().join(", ")));
        put("operating system of the generator", host.os.clone());
        put("kernel of the generator", host.kernel.clone());
        put("processor of the generator", host.cpu_model.clone());
        put("processors of the generator", host.cpus_available.map(|n| n.to_string()));
        for setting in disclosure.setup.iter().filter(|s| SETTINGS.contains(&s.name.as_str())) {
            put(&setting.name, Some(setting.value.clone()));
        }
        for statement in &disclosure.statements {
            put(&format!("stated: {}", statement.name), Some(statement.value.clone()));
        }
    }
    for (key, value) in run.suite.iter().filter(|(key, _)| !SUITE_NAMES.contains(&key.as_str())) {
        match (key.as_str(), value, &run.result.profile) {
            // Of the profiles that of the run.
            ("profiles", toml::Value::Table(profiles), Some(name)) => {
                let own = profiles.get(name);
                own.into_iter()
                    .for_each(|own| flatten(&format!("profiles.{name}"), own, &mut facts));
            }
            _ => flatten(key, value, &mut facts),
        }
    }
    facts
}

fn flatten(path: &str, value: &toml::Value, facts: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            table.iter().for_each(|(key, value)| flatten(&format!("{path}.{key}"), value, facts));
        }
        toml::Value::String(text) => {
            facts.insert(path.to_owned(), text.clone());
        }
        other => {
            facts.insert(path.to_owned(), other.to_string());
        }
    }
}

/// Runs from which a gap can be distinguished from scatter.
const RUNS_MIN: usize = 4;
/// A gap narrower than this share does not matter, however regular the runs are.
const SPLIT_MIN_RATIO: f64 = 0.03;
/// By how much the widest gap between runs of one normal distribution exceeds their scatter about
/// the means of its two sides in one case of a hundred, by number of runs (40,000 simulations).
const SPLIT_99: [(usize, f64); 10] = [
    (4, 27.8),
    (5, 13.0),
    (6, 8.95),
    (7, 6.97),
    (8, 5.74),
    (10, 4.54),
    (12, 3.74),
    (15, 3.16),
    (20, 2.65),
    (30, 2.28),
];
/// Figures of load points are many: their gap must be wider by this factor.
const POINT_FACTOR: f64 = 1.75;

/// Splits in the figures of the group at `index`, for a person; of each load point at most one
/// figure is named.
pub(super) fn splits(comparison: &Comparison, index: usize) -> Vec<String> {
    let mut texts = Vec::new();
    let mut loads: Vec<f64> = Vec::new();
    // The disk cost of an op falls into modes by when the kernel writes.
    for row in comparison.figures.iter().filter(|row| !row.figure.is_cost()) {
        if row.load.is_some_and(|load| loads.contains(&load)) {
            continue;
        }
        let Some(text) = split_of(row, index, comparison) else { continue };
        loads.extend(row.load);
        texts.push(text);
    }
    texts
}

fn split_of(row: &FigureRow, index: usize, comparison: &Comparison) -> Option<String> {
    let (group, figure) = (comparison.groups.get(index)?, row.groups.get(index)?);
    let logs = figure.values.iter().enumerate();
    let logs: Vec<(usize, f64)> = logs.filter_map(|(i, v)| Some((i, (*v)?.ln()))).collect();
    let factor = if row.load.is_some() { POINT_FACTOR } else { 1.0 };
    let (lower, upper) = widest_split(logs, factor)?;
    let mean =
        |side: &[(usize, f64)]| side.iter().map(|(_, log)| log).sum::<f64>() / side.len() as f64;
    let apart = (mean(&upper) - mean(&lower)).exp_m1() * 100.0;
    let (fewer, word) = match lower.len() <= upper.len() {
        true => (&lower, "below"),
        false => (&upper, "above"),
    };
    let mut runs: Vec<usize> = fewer.iter().map(|(run, _)| *run).collect();
    runs.sort_unstable();
    let named: Vec<&str> =
        runs.iter().filter_map(|run| Some(group.runs.get(*run)?.bundle.as_str())).collect();
    let at_load = row
        .load
        .map_or(String::new(), |load| format!(" at {}", plimsoll_model::units::grouped(load)));
    let what = if named.len() == 1 { "lies" } else { "lie" };
    Some(format!(
        "two modes in {}{at_load}: {} {what} {word} the others, the two sides {apart:.0} % apart; \
         look at what was different then, or compare them apart",
        row.figure.as_str(),
        named.join(", "),
    ))
}

type Side = Vec<(usize, f64)>;

/// The runs on either side of a gap too wide for chance.
fn widest_split(mut runs: Side, factor: f64) -> Option<(Side, Side)> {
    let n = runs.len();
    if n < RUNS_MIN {
        return None;
    }
    runs.sort_by(|a, b| a.1.total_cmp(&b.1));
    let width = |at: usize| runs[at].1 - runs[at - 1].1;
    let at = (1..n).max_by(|a, b| width(*a).total_cmp(&width(*b)))?;
    let width = width(at);
    let upper = runs.split_off(at);
    let squares = |side: &[(usize, f64)]| {
        let mean = side.iter().map(|(_, log)| log).sum::<f64>() / side.len() as f64;
        side.iter().map(|(_, log)| (log - mean).powi(2)).sum::<f64>()
    };
    let scatter = ((squares(&runs) + squares(&upper)) / (n - 2) as f64).sqrt();
    let wide = width > SPLIT_MIN_RATIO && width > limit(n) * factor * scatter;
    wide.then_some((runs, upper))
}

fn limit(runs: usize) -> f64 {
    SPLIT_99.iter().rev().find(|(n, _)| *n <= runs).map_or(f64::INFINITY, |(_, limit)| *limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(values: &[f64]) -> Option<(usize, usize)> {
        let runs = values.iter().map(|value: &f64| value.ln()).enumerate().collect();
        widest_split(runs, 1.0).map(|(lower, upper)| (lower.len(), upper.len()))
    }

    #[test]
    fn two_modes_and_a_run_far_off_are_seen() {
        assert_eq!(sides(&[100.0, 101.0, 100.5, 80.0, 100.2]), Some((1, 4)));
        assert_eq!(sides(&[100.0, 81.0, 100.5, 80.0, 100.2, 80.4]), Some((3, 3)));
    }

    #[test]
    fn scatter_and_small_gaps_are_not() {
        assert_eq!(sides(&[100.0, 104.0, 97.0, 101.0, 95.0]), None);
        assert_eq!(sides(&[100.0, 100.0, 100.0, 101.0, 101.0]), None, "one percent");
        assert_eq!(sides(&[100.0, 100.0, 50.0]), None, "three runs cannot tell");
    }
}
