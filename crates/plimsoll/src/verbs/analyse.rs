//! `plimsoll analyse`: derive the result of a bundle, or of a curve from elsewhere.

use std::path::Path;

use plimsoll_model::result::RunResult;

use crate::cli::AnalyseArgs;
use crate::derive;
use crate::exit::{Exit, Failure};
use crate::terminal;

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
    Ok(derive::exit_of(&result))
}

fn curve(file: &Path) -> Result<RunResult, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Failure::wrong(format!("{}: cannot read it: {e}", file.display())))?;
    plimsoll_analysis::curve::analyse_curve(&text)
        .map_err(|e| Failure::wrong(format!("{}: {e}", file.display())))
}
