//! Parts of the files that loads have in common.

use std::path::Path;

use crate::error::DeriveError;

/// A profile of a suite.
#[derive(Clone, Debug)]
pub(crate) struct Profile<'t> {
    pub name: &'t str,
    pub warm_up: &'t str,
    pub measure: &'t str,
    pub workload_scale: f64,
}

/// The tables of the profiles.
pub(crate) fn profiles(profiles: &[Profile<'_>]) -> String {
    let table = |Profile { name, warm_up, measure, workload_scale }: &Profile<'_>| {
        format!(
            "[profiles.{name}]\nwarm_up = \"{warm_up}\"\nmeasure = \"{measure}\"\ndrain = \
             \"10s\"\nworkload_scale = {workload_scale:?}\nthink_scale = 1.0\n\n"
        )
    };
    profiles.iter().map(table).collect()
}

/// A text as a string of TOML.
pub(crate) fn toml_text(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// Writes a file of a load.
pub(crate) fn write_file(file: &Path, text: &str) -> Result<(), DeriveError> {
    std::fs::write(file, text)
        .map_err(|source| DeriveError::Unwritable { file: file.to_owned(), source })
}
