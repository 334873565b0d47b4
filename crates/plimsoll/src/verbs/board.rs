//! `plimsoll board DIR… published:NAME…`: a table of results, a line for each bundle and each
//! published system. Existing results are not derived again.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::TypedValueParser;
use plimsoll_analysis::board::row_of;
use plimsoll_model::board::{BoardColumn, BoardRow};
use plimsoll_model::bundle::{JOURNAL_FILE, RESULT_FILE, SIGNATURE_FILE};
use plimsoll_model::result::{RESULT_FORMAT, RunResult};
use plimsoll_report::{board_csv, board_html, board_markdown, board_text};
use plimsoll_run::derive;

use super::prices::Prices;
use super::runs::bundles_below;
use super::{published, write};
use crate::exit::{Exit, Failure};
use crate::flags::values::one_of;
use crate::terminal;

#[derive(Debug, Args)]
pub(crate) struct BoardArgs {
    /// Directories to search for bundles, and published results: published:NAME (all its systems),
    /// published:NAME/SYSTEM, published:all
    #[arg(value_name = "DIR|published:NAME", default_value = "runs")]
    pub places: Vec<String>,
    /// What the lines are sorted by; on the HTML page every heading sorts too
    #[arg(long, value_name = "COLUMN", default_value = "date", value_parser = sort_columns())]
    pub sort: BoardColumn,
    /// What the systems cost, each by the name of its runs' directory, of a directory above or of
    /// the target: price per unit of the peak
    #[arg(long, value_name = "FILE.toml")]
    pub prices: Option<PathBuf>,
    /// HTML file to write
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Markdown file to write
    #[arg(long, value_name = "FILE")]
    pub md: Option<PathBuf>,
    /// CSV file to write
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// Columns that lines are sorted by.
fn sort_columns() -> impl TypedValueParser<Value = BoardColumn> {
    one_of([
        (&["peak"], "Highest first, by unit", BoardColumn::Peak),
        (&["response"], "Shortest 99th percentile first", BoardColumn::ResponseP99),
        (&["system"], "Alphabetically", BoardColumn::System),
        (&["date"], "Newest first", BoardColumn::Date),
    ])
}

pub(crate) fn perform(args: &BoardArgs) -> Result<Exit, Failure> {
    let prices = Prices::read(args.prices.as_deref())?;
    let mut rows = Vec::new();
    let mut dirs = Vec::new();
    for source in &args.places {
        match published::name_of(source) {
            Some(name) => rows.extend(published::board_rows(name)?),
            None => dirs.push(directory(source)?),
        }
    }
    let runs = rows_of(&dirs, prices.as_ref())?;
    rows.extend(runs);
    if rows.is_empty() {
        let sources = args.places.join(", ");
        return Err(Failure::wrong(format!("{sources}: no bundle there has a result to show")));
    }
    rows.sort_by(|a, b| a.order(b, args.sort));
    terminal::print(board_text(&rows).trim_end());
    if let Some(file) = &args.html {
        write(file, &board_html(&rows)?)?;
    }
    if let Some(file) = &args.md {
        write(file, &board_markdown(&rows))?;
    }
    if let Some(file) = &args.csv {
        write(file, &board_csv(&rows))?;
    }
    Ok(Exit::Valid)
}

/// Checks that it is a directory.
fn directory(source: &str) -> Result<PathBuf, Failure> {
    let dir = PathBuf::from(source);
    match dir.is_dir() && !bundles_below(std::slice::from_ref(&dir)).is_empty() {
        true => Ok(dir),
        false => Err(Failure::wrong(format!(
            "{source}: no bundle of a run lies there or below; name a directory that holds some, \
             or published results: published:NAME, published:all (plimsoll published lists them)"
        ))),
    }
}

/// A line for each bundle. A bundle without a result is reported and left out.
fn rows_of(dirs: &[PathBuf], prices: Option<&Prices<'_>>) -> Result<Vec<BoardRow>, Failure> {
    let mut rows = Vec::new();
    let mut any_priced = false;
    for bundle in bundles_below(dirs) {
        match result_of(&bundle) {
            Ok(run) => {
                any_priced |= prices.is_some_and(|it| it.system_on_board(&bundle, &run).is_some());
                rows.push(line(&bundle, &run, prices));
            }
            Err(why) => terminal::note(&format!("{}: left out: {why}", bundle.display())),
        }
    }
    match prices {
        Some(prices) if !rows.is_empty() && !any_priced => Err(prices.nothing_priced()),
        _ => Ok(rows),
    }
}

fn line(bundle: &Path, run: &RunResult, prices: Option<&Prices<'_>>) -> BoardRow {
    BoardRow {
        price: prices.and_then(|prices| prices.of_line(bundle, run)),
        signed: Some(bundle.join(SIGNATURE_FILE).is_file()),
        ..row_of(bundle.display().to_string(), run)
    }
}

/// The stored result; one of another version is derived again.
fn result_of(bundle: &Path) -> Result<RunResult, String> {
    let stored = match std::fs::read(bundle.join(RESULT_FILE)) {
        Ok(stored) => stored,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(match bundle.join(JOURNAL_FILE).is_file() {
                true => {
                    format!("it is unfinished; go on with plimsoll resume {}", bundle.display())
                }
                false => format!("it has lost {RESULT_FILE} and {JOURNAL_FILE}"),
            });
        }
        Err(e) => return Err(format!("{RESULT_FILE} cannot be read ({e})")),
    };
    match serde_json::from_slice::<RunResult>(&stored) {
        Ok(run) if run.format == RESULT_FORMAT => Ok(run),
        _ => derive::result_of(bundle).map_err(|failure| failure.to_string()),
    }
}
