//! `plimsoll verify BUNDLE`: checksums, then the rules again.

use std::path::Path;

use plimsoll_model::bundle::{Manifest, RESULT_FILE};

use crate::cli::VerifyArgs;
use crate::derive;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Checks that nothing was changed and that the result follows from the raw files.
pub(crate) fn perform(args: &VerifyArgs) -> Result<Exit, Failure> {
    let dir = &args.bundle;
    let result = match derive::result_of(dir) {
        Ok(result) => result,
        Err(failure) => return unreadable(dir, failure),
    };
    let mut problems = changed_files(dir)?;
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

/// A bundle that cannot be read back: the files that were changed say why.
fn unreadable(dir: &Path, failure: Failure) -> Result<Exit, Failure> {
    let problems = match Manifest::read(dir) {
        Ok(Some(manifest)) => manifest.problems(dir)?,
        _ => Vec::new(),
    };
    if problems.is_empty() {
        return Err(failure);
    }
    for problem in &problems {
        terminal::print(&problem.to_string());
    }
    terminal::show_failure(&failure);
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
