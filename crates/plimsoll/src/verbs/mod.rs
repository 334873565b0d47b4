//! One file per verb of the command line.

pub(crate) mod agent;
pub(crate) mod agents;
pub(crate) mod analyse;
pub(crate) mod board;
pub(crate) mod calibrate;
pub(crate) mod capacity;
pub(crate) mod check;
pub(crate) mod clean;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod experiment;
mod flag_values;
pub(crate) mod generate;
pub(crate) mod groups;
pub(crate) mod inventory;
mod llm_flags;
pub(crate) mod prepare;
pub(crate) mod prices;
pub(crate) mod published;
pub(crate) mod report;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod scale;
pub(crate) mod serve;
pub(crate) mod size;
pub(crate) mod suites;
pub(crate) mod url_flags;
pub(crate) mod verify;
pub(crate) mod versus;

use std::path::Path;

use plimsoll_model::bundle::write_durably;

use crate::exit::Failure;
use crate::terminal;

/// Makes a directory, and those above it, where it is not there yet.
fn make_directory(dir: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(dir).map_err(|e| {
        Failure::unusable(format!("{}: cannot make the directory: {e}", dir.display()))
    })
}

/// Writes a file that was asked for besides the terminal, and says so.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    write_durably(file, text.as_bytes())?;
    terminal::note(&file.display().to_string());
    Ok(())
}
