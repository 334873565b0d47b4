//! `plimsoll verify BUNDLE`: checksums, then the rules again.

use std::path::Path;

use plimsoll_model::bundle::{BundleReader, Manifest, RESULT_FILE};

use crate::cli::VerifyArgs;
use crate::derive;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Checks that nothing was changed and that the result follows from the raw files.
pub fn perform(args: &VerifyArgs) -> Result<Exit, Failure> {
    let dir = &args.bundle;
    BundleReader::open(dir)?;
    let mut problems = changed_files(dir)?;
    let result = derive::result_of(dir)?;
    problems.extend(stale_result(dir, &derive::result_text(&result)));
    for problem in &problems {
        terminal::print(problem);
    }
    let style = terminal::stdout_style();
    terminal::print(&terminal::summary(&result, None, style));
    if problems.is_empty() {
        terminal::print("Every file is as the run left it.");
        return Ok(derive::exit_of(&result));
    }
    Ok(Exit::Invalid)
}

fn changed_files(dir: &Path) -> Result<Vec<String>, Failure> {
    let Some(manifest) = Manifest::read(dir)? else {
        let text = "no manifest.json: the run did not come to its end; nothing to compare with";
        return Ok(vec![text.to_owned()]);
    };
    Ok(manifest.problems(dir)?.iter().map(ToString::to_string).collect())
}

/// A derived result of another version of this program may differ without any file being changed.
fn stale_result(dir: &Path, fresh: &str) -> Option<String> {
    let stored = std::fs::read_to_string(dir.join(RESULT_FILE)).ok()?;
    (stored != fresh).then(|| {
        format!(
            "{RESULT_FILE} is not what this version derives; to make it again: \
             plimsoll analyse {}",
            dir.display()
        )
    })
}
