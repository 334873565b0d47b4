//! `plimsoll import curl|har FILE`: a journey for suite web-users from recorded requests.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plimsoll_model::bundle::write_durably;
use plimsoll_run::protocols::journey_import::{RecordFormat, import};
use plimsoll_run::text_file;

use crate::exit::{Exit, Failure};
use crate::flags::url::USERS_SUITE;
use crate::terminal;

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// What the file is
    #[arg(value_enum, value_name = "FORMAT")]
    format: Format,
    /// The file, as a browser saved or copied it
    file: PathBuf,
    /// Where the journey goes; must not exist
    #[arg(long, value_name = "FILE", default_value = "journey.toml")]
    out: PathBuf,
}

/// Records that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Command lines, as browsers copy them
    Curl,
    /// HTTP Archive 1.2
    Har,
}

/// Writes the journey, and prints what was left out and guessed.
pub(crate) fn perform(args: &ImportArgs) -> Result<Exit, Failure> {
    let (file, out) = (args.file.display(), args.out.display());
    if args.out.exists() {
        return Err(Failure::wrong(format!("{out} exists: name another file with --out")));
    }
    let text = text_file::read(&args.file)
        .map_err(|e| Failure::wrong(format!("{file}: cannot read it: {e}")))?;
    let format = match args.format {
        Format::Curl => RecordFormat::Curl,
        Format::Har => RecordFormat::Har,
    };
    let journey = import(format, &text).map_err(|e| Failure::wrong(format!("{file}: {e}")))?;
    write_durably(&args.out, journey.toml.as_bytes())
        .map_err(|e| Failure::unusable(format!("{out}: cannot write it: {e}")))?;
    for note in &journey.notes {
        terminal::print(&format!("- {note}"));
    }
    terminal::print(&format!(
        "{out}: {} pages. Read it, then: plimsoll run {USERS_SUITE} {}/ --journey {out} --users 5",
        journey.pages, journey.origin
    ));
    Ok(Exit::Valid)
}
