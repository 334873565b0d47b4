//! `plimsoll check FILE`: checks a suite file. Sends no packet.

use std::path::PathBuf;

use clap::Args;
use plimsoll_model::suite::{Changes, Override, SuiteError};

use crate::exit::{Exit, Failure};
use crate::flags::values::parse_override;
use crate::{suite_source, terminal};

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Suite file
    pub file: PathBuf,
    /// Set a value of the suite, for example rules.errors_max_ratio=0.01
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_override)]
    pub set: Vec<Override>,
}

/// Reads the suite with every default, and prints a summary or every mistake.
pub(crate) fn perform(args: &CheckArgs) -> Result<Exit, Failure> {
    let text = suite_source::read(&args.file)?;
    let mut mistakes = mistakes(args, &text);
    let Some(last) = mistakes.pop() else {
        let suite = suite_source::parse(&args.file, &text, &args.set)?;
        terminal::print(&format!(
            "{} is a valid suite: {} ({}), protocol {}",
            args.file.display(),
            suite.name,
            suite.title,
            suite.protocol
        ));
        return Ok(Exit::Valid);
    };
    mistakes.into_iter().for_each(|mistake| terminal::show_failure(&Failure::from(mistake)));
    Err(last.into())
}

/// Reads the file again and again, each time without the mistakes found so far.
fn mistakes(args: &CheckArgs, text: &str) -> Vec<SuiteError> {
    let (mut values, mut without, mut collected) = (args.set.clone(), Vec::new(), Vec::new());
    loop {
        let changes = Changes { values: &values, ladder: None, without: &without };
        let Err(Failure::Suite(mistake)) = suite_source::parse(&args.file, text, changes) else {
            return collected;
        };
        let key = mistake.key.to_string();
        // No mistake of the file: a key of this table was left out above.
        let is_of = |gone: &String| gone.rsplit_once('.').map_or("", |(table, _)| table) == key;
        if !without.iter().any(is_of) {
            collected.push(*mistake);
        }
        if key.is_empty() || without.contains(&key) {
            return collected;
        }
        values.retain(|item| item.path != key);
        without.push(key);
    }
}
