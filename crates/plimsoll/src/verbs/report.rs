//! `plimsoll report BUNDLE…`: a result as HTML, Markdown, CSV and SVG; several as a comparison.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_analysis::compare::CompareOptions;
use plimsoll_model::bundle::{Manifest, REPORT_FILE, write_durably};
use plimsoll_model::result::RunResult;
use plimsoll_report::html_with_supplements;
use plimsoll_run::derive;

use super::compare::{compared, page};
use super::groups::{self, Named};
use super::prices::Prices;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// The page of several runs.
const COMPARISON_FILE: &str = "comparison.html";

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Bundles of runs; several are compared with the first
    #[arg(required = true, value_name = "BUNDLE")]
    pub bundles: Vec<PathBuf>,
    /// HTML file to write [default without any output flag: BUNDLE/report.html, of several bundles
    /// comparison.html beside the first]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Markdown file to write
    #[arg(long, value_name = "FILE")]
    pub md: Option<PathBuf>,
    /// Directory to write CSV files into
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Directory to write the charts into, each as an SVG file
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// What the systems cost: price per unit of peak and capacity, in the files of --html and --md
    #[arg(long, value_name = "FILE.toml")]
    pub prices: Option<PathBuf>,
}

/// Renders the requested files; without a request, the page in the bundle.
pub(crate) fn perform(args: &ReportArgs) -> Result<Exit, Failure> {
    if args.prices.is_some() && args.html.is_none() && args.md.is_none() {
        return Err(Failure::wrong(
            "--prices needs a file to write: --html FILE or --md FILE; prices are not of the \
             bundle, so its own report.html stays without",
        ));
    }
    let outputs = [&args.html, &args.md, &args.csv, &args.svg];
    let no_outputs = outputs.iter().all(|output| output.is_none());
    let results = match args.bundles.as_slice() {
        [bundle] => report_of(bundle, args, no_outputs)?,
        bundles => comparison_of(bundles, args, no_outputs)?,
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
    no_outputs: bool,
) -> Result<Vec<RunResult>, Failure> {
    let result = derive::result_of(bundle)?;
    let prices = Prices::read(args.prices.as_deref())?;
    let price = prices.map(|prices| prices.of_run(bundle, &result)).transpose()?;
    let supplements = derive::supplements(&result, price)?;
    if no_outputs {
        write(&bundle.join(REPORT_FILE), &html_with_supplements(&result, &supplements)?)?;
        Manifest::refresh_derived(bundle, &[REPORT_FILE])?;
    }
    if let Some(file) = &args.html {
        write(file, &html_with_supplements(&result, &supplements)?)?;
    }
    if let Some(file) = &args.md {
        let text = match &args.svg {
            Some(dir) => plimsoll_report::markdown_with_charts(
                &result,
                &supplements,
                &relative_to_page(file, dir),
            ),
            None => plimsoll_report::markdown_with_supplements(&result, &supplements),
        };
        write(file, &text)?;
    }
    Ok(vec![result])
}

/// Compares several bundles.
fn comparison_of(
    bundles: &[PathBuf],
    args: &ReportArgs,
    no_outputs: bool,
) -> Result<Vec<RunResult>, Failure> {
    let named = bundles
        .iter()
        .map(|bundle| Named { label: None, runs: vec![bundle.display().to_string()] });
    let groups = groups::read(&named.collect::<Vec<_>>())?;
    let mut comparison = compared(&groups, CompareOptions::default())?;
    let prices = Prices::read(args.prices.as_deref())?;
    comparison.prices = prices.map(|prices| prices.compare(&groups)).transpose()?;
    if no_outputs {
        let parent = bundles[0].parent().unwrap_or(Path::new(""));
        write(&parent.join(COMPARISON_FILE), &page(&comparison)?)?;
    }
    if let Some(file) = &args.html {
        write(file, &page(&comparison)?)?;
    }
    if let Some(file) = &args.md {
        write(file, &plimsoll_report::comparison_markdown(&comparison))?;
    }
    Ok(groups.into_iter().flat_map(|group| group.runs).map(|run| run.result).collect())
}

/// The directory, relative to the page if it lies at or below the page's directory.
fn relative_to_page(page: &Path, dir: &Path) -> String {
    let relative = page.parent().and_then(|parent| dir.strip_prefix(parent).ok());
    relative.unwrap_or(dir).display().to_string()
}

/// Writes the files of each result.
fn write_files(
    dir: &Path,
    results: &[RunResult],
    files: fn(&RunResult) -> Vec<(String, String)>,
) -> Result<(), Failure> {
    for (index, result) in results.iter().enumerate() {
        // Files of several runs have the same names.
        let target_dir =
            if results.len() == 1 { dir.to_owned() } else { dir.join(run_name(index)) };
        std::fs::create_dir_all(&target_dir).map_err(|e| {
            Failure::unusable(format!("{}: cannot create it: {e}", target_dir.display()))
        })?;
        for (name, text) in files(result) {
            write(&target_dir.join(name), &text)?;
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
