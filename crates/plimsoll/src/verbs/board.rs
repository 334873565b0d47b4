//! `plimsoll board DIR… published:NAME…`: a table of results, a line for each bundle and each
//! published system. Nothing is derived again where a bundle has its result.

use std::path::{Path, PathBuf};

use plimsoll_analysis::board::row_of;
use plimsoll_model::board::BoardRow;
use plimsoll_model::bundle::{JOURNAL_FILE, RESULT_FILE, SIGNATURE_FILE};
use plimsoll_model::result::{RESULT_FORMAT, RunResult};
use plimsoll_report::{board_csv, board_html, board_markdown, board_text};

use super::prices::Prices;
use super::runs::bundles_below;
use super::{published, write};
use crate::cli::BoardArgs;
use crate::derive::{self, cannot_render};
use crate::exit::{Exit, Failure};
use crate::terminal;

pub(crate) fn perform(args: &BoardArgs) -> Result<Exit, Failure> {
    let prices = Prices::read(args.prices.as_deref())?;
    let mut rows = Vec::new();
    let mut dirs = Vec::new();
    for place in &args.places {
        match published::name_of(place) {
            Some(name) => rows.extend(published::board_rows(name)?),
            None => dirs.push(directory(place)?),
        }
    }
    let runs = rows_of(&dirs, prices.as_ref())?;
    rows.extend(runs);
    if rows.is_empty() {
        let places = args.places.join(", ");
        return Err(Failure::wrong(format!("{places}: no bundle there has a result to show")));
    }
    let column = args.sort.column();
    rows.sort_by(|a, b| a.order(b, column));
    terminal::print(board_text(&rows).trim_end());
    if let Some(file) = &args.html {
        write(file, &board_html(&rows).map_err(|e| cannot_render(&e))?)?;
    }
    if let Some(file) = &args.md {
        write(file, &board_markdown(&rows))?;
    }
    if let Some(file) = &args.csv {
        write(file, &board_csv(&rows))?;
    }
    Ok(Exit::Valid)
}

/// A directory with bundles somewhere below it.
fn directory(place: &str) -> Result<PathBuf, Failure> {
    let dir = PathBuf::from(place);
    match dir.is_dir() && !bundles_below(std::slice::from_ref(&dir)).is_empty() {
        true => Ok(dir),
        false => Err(Failure::wrong(format!(
            "{place}: no bundle of a run lies there or below; name a directory that holds some, \
             or published results: published:NAME, published:all (plimsoll published lists them)"
        ))),
    }
}

/// A line for each bundle; one that gives no result is named and left out.
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

/// As stored; one of another version is derived again.
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
