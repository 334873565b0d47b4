//! `plimsoll runs [DIR…]`: the bundles below directories, a line each, newest first. Nothing is
//! derived and no database is kept: a line shows the bundle's `result.json`, or without one the
//! length of its journal.

mod catalogue;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use plimsoll_model::event::Bound;
use plimsoll_model::reported::ReportedFigure;

use crate::exit::{Exit, Failure};
use crate::terminal;
pub(super) use catalogue::bundles_below;
use catalogue::{ResultState, Run, catalogue};

/// Version of `--json`.
const CATALOGUE_FORMAT: u32 = 1;
/// Width for output that is no terminal, and minimum width.
const COLUMNS: usize = 80;
/// Widths of all columns but the last: started, suite, target, headline, verdict.
const WIDTHS: [usize; 5] = [16, 13, 16, 14, 7];
/// The width that remains for the limit.
const LIMIT_WIDTH: usize = COLUMNS - 5 - 16 - 13 - 16 - 14 - 7;
const TITLES: [&str; 6] = ["started (UTC)", "suite", "target", "headline", "verdict", "limit"];

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Directories to search
    #[arg(value_name = "DIR", default_value = "runs")]
    pub dirs: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn perform(args: &RunsArgs) -> Result<Exit, Failure> {
    for dir in &args.dirs {
        if !dir.is_dir() {
            return Err(Failure::wrong(format!(
                "{}: there is no such directory; name one that holds bundles of runs",
                dir.display()
            )));
        }
    }
    let runs = catalogue(&args.dirs);
    if args.json {
        let all = serde_json::json!({ "format": CATALOGUE_FORMAT, "runs": runs });
        terminal::print(&format!("{all:#}"));
    } else if runs.is_empty() {
        let dirs: Vec<String> = args.dirs.iter().map(|dir| dir.display().to_string()).collect();
        terminal::print(&format!("no bundles below {}", dirs.join(", ")));
    } else {
        let screen = terminal::stdout_style().screen();
        terminal::print(&table(&runs, screen.map_or(COLUMNS, |screen| screen.columns)));
    }
    Ok(Exit::Valid)
}

/// A line for each run; if there is room, with the directory.
fn table(runs: &[Run], columns: usize) -> String {
    let longest = |run: &Run| run.dir.display().to_string().chars().count();
    let dirs = runs.iter().map(longest).max().unwrap_or(0);
    let with_dirs = columns > COLUMNS + dirs;
    let mut out = String::new();
    let titles: Vec<String> = TITLES.iter().map(|title| (*title).to_owned()).collect();
    push(&mut out, &titles, with_dirs.then_some("directory"));
    for run in runs {
        let dir = run.dir.display().to_string();
        match &run.standing {
            ResultState::Judged => push(&mut out, &cells(run), with_dirs.then_some(&dir)),
            // Its directory is needed to resume it.
            ResultState::Unfinished { points } => {
                let started = run.started_minute();
                let what = match points {
                    0 => "unfinished, no load point".to_owned(),
                    1 => "unfinished, 1 load point".to_owned(),
                    n => format!("unfinished, {n} load points"),
                };
                push_message_row(&mut out, &started, &what, &dir, columns);
            }
            ResultState::Broken { why } => {
                let what = format!("broken: {why}");
                push_message_row(&mut out, &run.started_minute(), &what, &dir, columns);
            }
        }
    }
    out
}

fn cells(run: &Run) -> Vec<String> {
    let headline = match (run.value, run.bound) {
        (None, _) => "–".to_owned(),
        (Some(value), bound) => {
            let sign = if bound == Bound::AtLeast { "≥" } else { "" };
            format!("{sign}{}", ReportedFigure::new(value, None).throughput_text(&run.unit))
        }
    };
    let verdict = if run.valid { "valid" } else { "invalid" };
    let target = run.targets.first().cloned().unwrap_or_default();
    let target = match run.targets.len() {
        0 | 1 => target,
        n => format!("{n} targets"),
    };
    // All URLs begin like this.
    let target = target.strip_prefix("http://").unwrap_or(&target).trim_end_matches('/');
    vec![
        run.started_minute(),
        run.suite.clone().unwrap_or_else(|| "curve".to_owned()),
        target.to_owned(),
        headline,
        verdict.to_owned(),
        run.limit.clone().unwrap_or_else(|| "–".to_owned()),
    ]
}

fn push(out: &mut String, cells: &[String], dir: Option<&str>) {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(WIDTHS) {
        let cell = cut(cell, width);
        let _ = write!(line, "{cell:<width$} ");
    }
    let limit = cut(cells.last().map(String::as_str).unwrap_or_default(), LIMIT_WIDTH);
    match dir {
        Some(dir) => {
            let _ = write!(line, "{limit:<LIMIT_WIDTH$} {dir}");
        }
        None => line.push_str(&limit),
    }
    let _ = writeln!(out, "{}", line.trim_end());
}

fn push_message_row(out: &mut String, started: &str, what: &str, dir: &str, columns: usize) {
    let width = WIDTHS[0];
    let line = format!("{started:<width$} {dir}: {what}");
    let _ = writeln!(out, "{}", cut(&line, columns.max(COLUMNS)));
}

/// The text, cut to at most this many characters with a mark.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width - 1).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests;
