//! `plimsoll report BUNDLE…`: a result as HTML, Markdown, CSV and SVG; several as a comparison.

use std::path::{Path, PathBuf};

use plimsoll_analysis::compare::Wishes;
use plimsoll_model::bundle::{Manifest, REPORT_FILE, write_durably};
use plimsoll_model::result::RunResult;

use super::compare::{compared, page};
use super::groups::{self, Named};
use super::prices::Prices;
use crate::cli::ReportArgs;
use crate::derive;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// The page of several runs.
const COMPARISON_FILE: &str = "comparison.html";

/// Renders what is asked for; without a wish, the page beside the bundle.
pub(crate) fn perform(args: &ReportArgs) -> Result<Exit, Failure> {
    if args.prices.is_some() && args.html.is_none() && args.md.is_none() {
        return Err(Failure::wrong(
            "--prices needs a file to write: --html FILE or --md FILE; prices are not of the \
             bundle, so its own report.html stays without",
        ));
    }
    let asked = [&args.html, &args.md, &args.csv, &args.svg];
    let nothing_asked = asked.iter().all(|place| place.is_none());
    let results = match args.bundles.as_slice() {
        [bundle] => report_of(bundle, args, nothing_asked)?,
        bundles => comparison_of(bundles, args, nothing_asked)?,
    };
    if let Some(dir) = &args.csv {
        write_files(dir, &results, plimsoll_report::csv)?;
    }
    if let Some(dir) = &args.svg {
        write_files(dir, &results, plimsoll_report::charts)?;
    }
    Ok(Exit::Valid)
}

fn report_of(
    bundle: &Path,
    args: &ReportArgs,
    nothing_asked: bool,
) -> Result<Vec<RunResult>, Failure> {
    let result = derive::result_of(bundle)?;
    let prices = Prices::read(args.prices.as_deref())?;
    let price = prices.map(|prices| prices.of_run(bundle, &result)).transpose()?;
    let beside = derive::beside(&result, price)?;
    if nothing_asked {
        write(&bundle.join(REPORT_FILE), &derive::report_page(&result, &beside)?)?;
        Manifest::refresh_derived(bundle, &[REPORT_FILE])?;
    }
    if let Some(file) = &args.html {
        write(file, &derive::report_page(&result, &beside)?)?;
    }
    if let Some(file) = &args.md {
        let text = match &args.svg {
            Some(dir) => {
                plimsoll_report::markdown_with_charts(&result, &beside, &seen_from(file, dir))
            }
            None => plimsoll_report::markdown_beside(&result, &beside),
        };
        write(file, &text)?;
    }
    Ok(vec![result])
}

/// Several bundles are looked at to see how they differ.
fn comparison_of(
    bundles: &[PathBuf],
    args: &ReportArgs,
    nothing_asked: bool,
) -> Result<Vec<RunResult>, Failure> {
    let named = bundles
        .iter()
        .map(|bundle| Named { label: None, runs: vec![bundle.display().to_string()] });
    let groups = groups::read(&named.collect::<Vec<_>>())?;
    let mut comparison = compared(&groups, Wishes::default())?;
    let prices = Prices::read(args.prices.as_deref())?;
    comparison.prices = prices.map(|prices| prices.compare(&groups)).transpose()?;
    if nothing_asked {
        let beside = bundles[0].parent().unwrap_or(Path::new(""));
        write(&beside.join(COMPARISON_FILE), &page(&comparison)?)?;
    }
    if let Some(file) = &args.html {
        write(file, &page(&comparison)?)?;
    }
    if let Some(file) = &args.md {
        write(file, &plimsoll_report::comparison_markdown(&comparison))?;
    }
    Ok(groups.into_iter().flat_map(|group| group.runs).map(|run| run.result).collect())
}

/// A directory as a page beside or above it links to it.
fn seen_from(page: &Path, dir: &Path) -> String {
    let beside = page.parent().and_then(|place| dir.strip_prefix(place).ok());
    beside.unwrap_or(dir).display().to_string()
}

/// The files that each result makes.
fn write_files(
    dir: &Path,
    results: &[RunResult],
    files: fn(&RunResult) -> Vec<(String, String)>,
) -> Result<(), Failure> {
    for (index, result) in results.iter().enumerate() {
        // Several runs have files of the same names.
        let place = if results.len() == 1 { dir.to_owned() } else { dir.join(run_name(index)) };
        std::fs::create_dir_all(&place).map_err(|e| {
            Failure::unusable(format!("{}: cannot create it: {e}", place.display()))
        })?;
        for (name, text) in files(result) {
            write(&place.join(name), &text)?;
        }
    }
    Ok(())
}

fn run_name(index: usize) -> String {
    format!("run-{}", index + 1)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    write_durably(path, text.as_bytes())?;
    terminal::print(&path.display().to_string());
    Ok(())
}
