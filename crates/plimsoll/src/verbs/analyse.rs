//! `plimsoll analyse`: derive the result of a bundle, or of a curve from elsewhere.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_model::result::RunResult;
use plimsoll_run::{derive, text_file};

use crate::exit::{Exit, Failure};
use crate::terminal;

#[derive(Debug, Args)]
pub(crate) struct AnalyseArgs {
    /// Bundle of a run
    #[arg(required_unless_present = "curve", conflicts_with = "curve")]
    pub bundle: Option<PathBuf>,
    /// Curve from elsewhere; header: load,throughput,response_ms[,…]
    #[arg(long, value_name = "FILE.csv")]
    pub curve: Option<PathBuf>,
    /// Print result.json on standard output
    #[arg(long)]
    pub json: bool,
}

/// Analyses and shows; a bundle's derived files are written again.
pub(crate) fn perform(args: &AnalyseArgs) -> Result<Exit, Failure> {
    let (result, report) = match (&args.bundle, &args.curve) {
        (_, Some(file)) => (curve(file)?, None),
        (Some(dir), None) => {
            let result = derive::result_of(dir)?;
            let report = derive::write_again(dir, &result)?;
            (result, Some(report))
        }
        (None, None) => return Err(Failure::wrong("name a bundle, or a curve with --curve")),
    };
    if args.json {
        terminal::print(&derive::result_text(&result));
    } else {
        let style = terminal::stdout_style();
        terminal::print(&terminal::summary(&result, report.as_deref(), style));
    }
    Ok(Exit::from(&result))
}

fn curve(file: &Path) -> Result<RunResult, Failure> {
    let text = text_file::read(file)
        .map_err(|e| Failure::wrong(format!("{}: cannot read it: {e}", file.display())))?;
    plimsoll_analysis::curve::analyse_curve(&text)
        .map_err(|e| Failure::wrong(format!("{}: {e}", file.display())))
}
