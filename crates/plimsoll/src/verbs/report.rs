//! `plimsoll report BUNDLE…`: results as HTML, Markdown, CSV, and their charts as SVG.

use std::path::Path;

use plimsoll_model::bundle::{Manifest, REPORT_FILE, write_durably};
use plimsoll_model::result::RunResult;

use super::prices::Prices;
use crate::cli::ReportArgs;
use crate::derive;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Renders what is asked for; without a wish, `report.html` of each bundle.
pub(crate) fn perform(args: &ReportArgs) -> Result<Exit, Failure> {
    if args.prices.is_some() && args.html.is_none() && args.md.is_none() {
        return Err(Failure::wrong(
            "--prices needs a file to write: --html FILE or --md FILE; prices are not of the \
             bundle, so its own report.html stays without",
        ));
    }
    let prices = Prices::read(args.prices.as_deref())?;
    let mut results = Vec::new();
    let mut beside = Vec::new();
    for bundle in &args.bundles {
        let result = derive::result_of(bundle)?;
        let price = prices.as_ref().map(|prices| prices.of_run(bundle, &result)).transpose()?;
        beside.push(derive::beside(&result, price)?);
        results.push(result);
    }
    let asked = [&args.html, &args.md, &args.csv, &args.svg];
    if asked.iter().all(|place| place.is_none()) {
        for (bundle, (result, beside)) in args.bundles.iter().zip(results.iter().zip(&beside)) {
            let (result, beside) = (std::slice::from_ref(result), std::slice::from_ref(beside));
            let page = derive::report_page(result, beside)?;
            write(&bundle.join(REPORT_FILE), &page)?;
            Manifest::refresh_derived(bundle, &[REPORT_FILE])?;
        }
    }
    if let Some(file) = &args.html {
        write(file, &derive::report_page(&results, &beside)?)?;
    }
    if let Some(file) = &args.md {
        let text = match (results.as_slice(), &args.svg) {
            ([run], Some(dir)) => {
                plimsoll_report::markdown_with_charts(run, &beside, &seen_from(file, dir))
            }
            _ => plimsoll_report::markdown_beside(&results, &beside),
        };
        write(file, &text)?;
    }
    if let Some(dir) = &args.csv {
        write_files(dir, &results, plimsoll_report::csv)?;
    }
    if let Some(dir) = &args.svg {
        write_files(dir, &results, plimsoll_report::charts)?;
    }
    Ok(Exit::Valid)
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
