//! `plimsoll clean DIR`: removes a file set.

use plimsoll_protocols::http::prepare::clean;

use crate::cli::CleanArgs;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Removes what carries our marker and nothing else.
pub fn perform(args: &CleanArgs) -> Result<Exit, Failure> {
    clean(&args.dir)?;
    terminal::print(&format!("{}: the file set is removed", args.dir.display()));
    Ok(Exit::Valid)
}
