//! Reads the groups of runs that a user names.

use std::path::{Path, PathBuf};

use plimsoll_analysis::compare::{GroupInput, RunInput};
use plimsoll_model::bundle::{BundleReader, JOURNAL_FILE, SUITE_FILE};
use plimsoll_model::result::RunResult;
use plimsoll_run::derive;

use crate::exit::Failure;

/// A group as the user named it.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub label: Option<String>,
    /// Bundles, directories of them, or the stem of repeats.
    pub runs: Vec<String>,
}

/// Reads and analyses the groups. Those without a label are named after their targets if these
/// differ, else after their directories.
pub(super) fn read(named: &[Named]) -> Result<Vec<GroupInput>, Failure> {
    let mut groups = Vec::new();
    for group in named {
        let mut runs = Vec::new();
        for name in &group.runs {
            for bundle in bundles(Path::new(name))? {
                runs.push(run_of(&bundle)?);
            }
        }
        let (label, is_named) = (group.label.clone().unwrap_or_default(), group.label.is_some());
        groups.push(GroupInput { label, is_named, runs });
    }
    label(&mut groups, named);
    Ok(groups)
}

/// A run and its suite.
pub(crate) fn run_of(bundle: &Path) -> Result<RunInput, Failure> {
    input(bundle, derive::result_of(bundle)?)
}

/// A run with an existing result, and its suite.
pub(crate) fn input(bundle: &Path, result: RunResult) -> Result<RunInput, Failure> {
    let suite = BundleReader::open(bundle)?;
    let suite = suite.suite_text().parse().map_err(|e: toml::de::Error| {
        Failure::wrong(format!("{}: {}", bundle.join(SUITE_FILE).display(), e.message()))
    })?;
    Ok(RunInput { bundle: bundle.display().to_string(), result, suite })
}

/// The bundle itself, those in the directory, or those that `run --repeat` made with that name.
pub(crate) fn bundles(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if is_bundle(path) {
        return Ok(vec![path.to_owned()]);
    }
    let within = if path.is_dir() { in_directory(path, |_| true)? } else { repeats_of(path)? };
    match within.is_empty() {
        false => Ok(within),
        true => Err(Failure::wrong(format!(
            "{}: neither the bundle of a run nor a directory that holds some; runs are made with \
             plimsoll run SUITE TARGET --out DIR",
            path.display()
        ))),
    }
}

/// Whether there is a finished run.
pub(crate) fn is_finished(path: &Path) -> bool {
    BundleReader::open(path).is_ok_and(|bundle| bundle.journal().is_finished())
}

fn is_bundle(path: &Path) -> bool {
    path.join(JOURNAL_FILE).is_file()
}

/// `DIR-1`, `DIR-2` …
fn repeats_of(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let Some(stem) = path.file_name().map(|name| format!("{}-", name.to_string_lossy())) else {
        return Ok(Vec::new());
    };
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    if !parent.is_dir() {
        return Ok(Vec::new());
    }
    let is_repeat =
        |name: &str| name.strip_prefix(&stem).is_some_and(|number| number.parse::<u32>().is_ok());
    in_directory(parent, is_repeat)
}

/// Bundles directly below, sorted by name, with numbers by their size.
fn in_directory(dir: &Path, is_included: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |e: std::io::Error| {
        Failure::unusable(format!("{}: cannot read the directory: {e}", dir.display()))
    };
    let mut entries: Vec<(String, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_included(&name) && is_bundle(&path) {
            entries.push((name, path));
        }
    }
    entries.sort_by_key(|(name, _)| natural(name));
    Ok(entries.into_iter().map(|(_, path)| path).collect())
}

/// `run-10` comes after `run-9`.
fn natural(name: &str) -> (String, u64, String) {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (stem, number) = name.split_at(name.len() - digits);
    (stem.to_owned(), number.parse().unwrap_or(0), name.to_owned())
}

fn label(groups: &mut [GroupInput], named: &[Named]) {
    let of_targets: Vec<Option<String>> = groups.iter().map(one_target).collect();
    let targets_differ = of_targets.iter().all(Option::is_some) && all_differ(&of_targets);
    let short = |named: &Named| {
        let first = named.runs.first().map(Path::new)?;
        first.file_name().map(|name| name.to_string_lossy().into_owned())
    };
    let of_names: Vec<Option<String>> = named.iter().map(short).collect();
    let names_differ = all_differ(&of_names);
    for (index, group) in groups.iter_mut().enumerate() {
        if !group.label.is_empty() {
            continue;
        }
        let whole = || named[index].runs.first().cloned();
        let name = match (targets_differ, names_differ) {
            (true, _) => of_targets[index].clone(),
            (false, true) => of_names[index].clone(),
            (false, false) => whole(),
        };
        group.label = name.unwrap_or_default();
    }
    // Groups of the same runs differ only by their number.
    for index in 1..groups.len() {
        if groups[..index].iter().any(|other| other.label == groups[index].label) {
            groups[index].label = format!("{} ({})", groups[index].label, index + 1);
        }
    }
}

/// The targets, if all runs of a group have the same.
fn one_target(group: &GroupInput) -> Option<String> {
    let mut targets = group.runs.iter().map(|run| run.result.targets.join(", "));
    let first = targets.next()?;
    targets.all(|other| other == first).then_some(first)
}

fn all_differ(names: &[Option<String>]) -> bool {
    names.iter().enumerate().all(|(index, name)| !names[..index].contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_the_end_of_names_count() {
        let mut names = ["r-10", "r-9", "a", "r-1"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["a", "r-1", "r-9", "r-10"]);
    }

    #[test]
    fn a_directory_of_bundles_and_the_stem_of_repeats_are_groups() {
        let temp_dir = tempfile::tempdir().unwrap();
        for name in ["r-2", "r-10", "r-1", "r-x"] {
            std::fs::create_dir(temp_dir.path().join(name)).unwrap();
            std::fs::write(temp_dir.path().join(name).join(JOURNAL_FILE), "").unwrap();
        }
        std::fs::create_dir(temp_dir.path().join("empty")).unwrap();
        let names = |at: &Path| -> Vec<String> {
            let paths = bundles(at).unwrap();
            paths.iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names(temp_dir.path()), ["r-1", "r-2", "r-10", "r-x"]);
        assert_eq!(names(&temp_dir.path().join("r")), ["r-1", "r-2", "r-10"]);
        assert_eq!(names(&temp_dir.path().join("r-2")), ["r-2"]);
        assert!(bundles(&temp_dir.path().join("empty")).is_err());
        assert!(bundles(&temp_dir.path().join("no/where")).is_err());
    }
}
