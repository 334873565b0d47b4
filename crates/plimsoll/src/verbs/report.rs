//! `plimsoll report BUNDLE…`: results as HTML, Markdown, CSV.

use std::path::Path;

use plimsoll_model::bundle::{Manifest, REPORT_FILE, write_durably};
use plimsoll_model::result::RunResult;

use crate::cli::ReportArgs;
use crate::derive;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Renders what is asked for; without a wish, `report.html` of each bundle.
pub(crate) fn perform(args: &ReportArgs) -> Result<Exit, Failure> {
    let mut results = Vec::new();
    for bundle in &args.bundles {
        results.push(derive::result_of(bundle)?);
    }
    if args.html.is_none() && args.md.is_none() && args.csv.is_none() {
        for (bundle, result) in args.bundles.iter().zip(&results) {
            let page = derive::report_page(std::slice::from_ref(result))?;
            write(&bundle.join(REPORT_FILE), &page)?;
            Manifest::refresh_derived(bundle, &[REPORT_FILE])?;
        }
    }
    if let Some(file) = &args.html {
        write(file, &derive::report_page(&results)?)?;
    }
    if let Some(file) = &args.md {
        write(file, &plimsoll_report::markdown(&results))?;
    }
    if let Some(dir) = &args.csv {
        write_csv(dir, &results)?;
    }
    Ok(Exit::Valid)
}

fn write_csv(dir: &Path, results: &[RunResult]) -> Result<(), Failure> {
    for (index, result) in results.iter().enumerate() {
        // Several runs have files of the same names.
        let place = if results.len() == 1 { dir.to_owned() } else { dir.join(run_name(index)) };
        std::fs::create_dir_all(&place).map_err(|e| {
            Failure::unusable(format!("{}: cannot create it: {e}", place.display()))
        })?;
        for (name, text) in plimsoll_report::csv(result) {
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
