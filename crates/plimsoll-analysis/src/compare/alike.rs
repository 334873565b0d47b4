//! May runs be compared at all, and what is not the same between groups of them?

use std::collections::BTreeMap;

use plimsoll_model::comparison::Difference;

use super::{GroupInput, RunInput};

/// Keys of a suite that name it, or that curves are compared over.
const SUITE_NAMES: [&str; 7] = ["format", "name", "title", "about", "source", "origins", "ladder"];
/// What the disclosure's settings say of how a run was made.
const SETTINGS: [&str; 5] =
    ["workers", "pacing", "priority of the workers", "server held to", "NFS"];
/// A value that a run does not have.
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

/// Everything that stands against comparing the runs, each kind once.
pub(super) fn refusals(groups: &[GroupInput]) -> Vec<CompareError> {
    let mut runs = groups.iter().flat_map(|group| &group.runs);
    let Some(first) = runs.next() else { return Vec::new() };
    let wanted = methods(first);
    let mut refusals: Vec<CompareError> = Vec::new();
    for run in runs {
        for ((what, value), (_, other)) in wanted.iter().zip(methods(run)) {
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

/// What must be the same in all runs.
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

/// What is not the same in all groups.
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
        let said = values.into_iter().map(|of_group| of_group.join(" / ")).collect();
        (!same).then(|| Difference { name: name.clone(), values: said })
    });
    differing.collect()
}

/// What is not the same in all runs of a group, for a person.
pub(super) fn mixed(group: &GroupInput) -> Vec<String> {
    let several = values(group).into_iter().filter(|(_, values)| values.len() > 1);
    let said = several.map(|(name, values)| {
        format!("its runs are not of one kind: {name} is {}", values.join(" and "))
    });
    said.collect()
}

/// Facts of a group by name, with the values its runs have of them, in order of the runs.
fn values(group: &GroupInput) -> BTreeMap<String, Vec<String>> {
    let of_runs: Vec<BTreeMap<String, String>> = group.runs.iter().map(facts).collect();
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in of_runs.iter().flat_map(BTreeMap::keys) {
        let values = all.entry(name.clone()).or_default();
        for run in &of_runs {
            let value = run.get(name).map_or(ABSENT, String::as_str);
            if values.iter().all(|known| known != value) {
                values.push(value.to_owned());
            }
        }
    }
    all
}

/// What a run was made with and of. What changes with every run (ports, instants) is not among it.
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
