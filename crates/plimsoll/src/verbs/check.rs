//! `plimsoll check FILE`: is the suite file right. No packet is sent.

use crate::cli::CheckArgs;
use crate::exit::{Exit, Failure};
use crate::{suite_source, terminal};

/// Reads the suite with every default and says what it is.
pub(crate) fn perform(args: &CheckArgs) -> Result<Exit, Failure> {
    let suite = suite_source::from_file(&args.file, &args.set)?;
    terminal::print(&format!(
        "{} is a valid suite: {} ({}), protocol {}",
        args.file.display(),
        suite.name,
        suite.title,
        suite.protocol
    ));
    Ok(Exit::Valid)
}
