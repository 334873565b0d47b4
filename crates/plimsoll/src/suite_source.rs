//! Loads a suite: a shipped one by name, or a file.

use std::path::Path;

use plimsoll_model::suite::{Changes, Override, Suite, nearest};
use plimsoll_model::target::shown_of_unreadable;
use plimsoll_run::{protocols, text_file};

use crate::exit::Failure;

/// The suite that a user named: a shipped one, or the path of a file.
pub(crate) fn find<'a>(
    name_or_path: &str,
    changes: impl Into<Changes<'a>>,
) -> Result<Suite, Failure> {
    refuse_target(name_or_path)?;
    if let Some(text) = protocols::shipped(name_or_path) {
        return Ok(protocols::parse_suite(&format!("{name_or_path}.toml"), text, changes)?);
    }
    let path = Path::new(name_or_path);
    if path.exists() || looks_like_a_path(name_or_path) {
        return from_file(path, changes);
    }
    Err(unknown(name_or_path))
}

/// Refuses a target given instead of a suite, since it may hold a password.
fn refuse_target(text: &str) -> Result<(), Failure> {
    match text.contains("://") || text.contains('@') && !Path::new(text).exists() {
        false => Ok(()),
        true => Err(Failure::wrong(format!(
            "{} is no suite; the suite comes before the target: plimsoll run SUITE TARGET",
            shown_of_unreadable(text)
        ))),
    }
}

/// The suite in a file. Names of files that it has are relative to its folder, those on the command
/// line to the working directory; the suite returned has them absolute.
pub(crate) fn from_file<'a>(
    path: &Path,
    changes: impl Into<Changes<'a>>,
) -> Result<Suite, Failure> {
    let (text, changes) = (read(path)?, changes.into());
    let suite = parse(path, &text, changes)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut values = changes.values.to_vec();
    let files = suite.workload.adjacent_files();
    let is_file = |(_, name): &(&str, &str)| protocols::published_journey(name).is_none();
    for (key, name) in files.into_iter().filter(is_file) {
        let key = format!("workload.{key}");
        let is_given = changes.values.iter().any(|given| given.path == key);
        let from = if is_given { Path::new("") } else { folder };
        let absolute = std::path::absolute(from.join(name)).unwrap_or_else(|_| from.join(name));
        values.push(Override { path: key, value: absolute.display().to_string().into() });
    }
    match values.len() == changes.values.len() {
        true => Ok(suite),
        false => parse(path, &text, Changes { values: &values, ..changes }),
    }
}

/// The text of a suite file.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    text_file::read(path)
        .map_err(|e| Failure::wrong(format!("{}: cannot read the suite file: {e}", path.display())))
}

/// The suite in the text of a file.
pub(crate) fn parse<'a>(
    path: &Path,
    text: &str,
    changes: impl Into<Changes<'a>>,
) -> Result<Suite, Failure> {
    Ok(protocols::parse_suite(&path.display().to_string(), text, changes)?)
}

/// No shipped suite has that name.
pub(crate) fn unknown(name: &str) -> Failure {
    let names = || protocols::shipped_suites().map(|(name, _)| name);
    let help = match nearest(name, names()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("shipped suites: {}", names().collect::<Vec<_>>().join(", ")),
    };
    Failure::wrong(format!("there is no suite {name:?}, and no file of that name; {help}"))
}

fn looks_like_a_path(text: &str) -> bool {
    text.contains('/') || text.ends_with(".toml")
}
