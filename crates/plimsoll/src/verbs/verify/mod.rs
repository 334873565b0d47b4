//! `plimsoll verify BUNDLE`: checksums and signature, then result and report made again from the
//! raw files and held against what is stored.

mod differences;

use std::path::Path;

use plimsoll_model::bundle::{BundleError, Manifest, REPORT_FILE, RESULT_FILE};
use plimsoll_model::result::RunResult;
use serde_json::Value;

use crate::cli::VerifyArgs;
use crate::derive;
use crate::exit::{Exit, Failure};
use crate::signature::{self, Trust};
use crate::terminal;
use differences::{Difference, differences};

/// More differences than these are counted.
const DIFFERENCES_SHOWN: usize = 20;

/// Checks that nothing was changed and that the result follows from the raw files; then signs,
/// where that is asked for.
pub(crate) fn perform(args: &VerifyArgs) -> Result<Exit, Failure> {
    let dir = &args.bundle;
    let trust = args.key.as_deref().map(Trust::read).transpose()?;
    let (fresh, found) = look(dir, trust.as_ref())?;
    for line in found.damage.iter().chain(&found.notes) {
        terminal::print(line);
    }
    let fresh = match fresh {
        Ok(fresh) => fresh,
        Err(failure) => {
            terminal::show_failure(&failure);
            return Ok(Exit::Invalid);
        }
    };
    let style = terminal::stdout_style();
    terminal::print(&terminal::summary(&fresh.result, None, style));
    if !found.damage.is_empty() {
        if args.sign.is_some() {
            terminal::note("not signed: the bundle is not as the run left it");
        }
        return Ok(Exit::Invalid);
    }
    terminal::print("Every file is as the run left it.");
    if let Some(key) = &args.sign {
        terminal::print(&signature::sign(dir, key)?);
    }
    Ok(derive::exit_of(&fresh.result))
}

/// What the raw files give now.
struct Fresh {
    result: RunResult,
    result_text: String,
    report: String,
    /// The run was made by this version of the program.
    same_version: bool,
}

impl Fresh {
    fn of(dir: &Path) -> Result<Self, Failure> {
        let result = derive::result_of(dir)?;
        let tool = result.disclosure.as_ref().map(|disclosure| &disclosure.tool);
        let same_version = tool.is_none_or(|tool| tool.version == env!("CARGO_PKG_VERSION"));
        let report =
            derive::report_page(std::slice::from_ref(&result), &[derive::beside(&result, None)?])?;
        Ok(Self { result_text: derive::result_text(&result), result, report, same_version })
    }
}

/// What is wrong with a bundle, and what should be known of it besides.
#[derive(Debug, Default)]
struct Found {
    damage: Vec<String>,
    notes: Vec<String>,
}

/// Holds the files of a bundle against its manifest, its signature, and what the raw files give.
/// Those may give nothing any more; where the manifest does not say why, that is the failure.
fn look(dir: &Path, trust: Option<&Trust>) -> Result<(Result<Fresh, Failure>, Found), Failure> {
    let mut found = Found::default();
    let listed = listed_problems(dir, &mut found)?;
    match signature::check(dir, trust) {
        Ok(note) => found.notes.extend(note),
        Err(problem) => found.damage.push(problem),
    }
    let fresh = Fresh::of(dir);
    match &fresh {
        Ok(fresh) => against(dir, fresh, &mut found),
        Err(_) if listed && !found.damage.is_empty() => {}
        Err(_) => return fresh.map(|fresh| (Ok(fresh), found)),
    }
    Ok((fresh, found))
}

/// What the manifest says; false where there is none.
fn listed_problems(dir: &Path, found: &mut Found) -> Result<bool, Failure> {
    let manifest = match Manifest::read(dir) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => {
            found.damage.push(
                "no manifest.json: the run did not come to its end; nothing to compare with".into(),
            );
            return Ok(false);
        }
        Err(error @ (BundleError::Malformed { .. } | BundleError::Format { .. })) => {
            found.damage.push(error.to_string());
            return Ok(true);
        }
        Err(error) => return Err(error.into()),
    };
    for problem in manifest.problems(dir)? {
        let list = if problem.is_damage() { &mut found.damage } else { &mut found.notes };
        list.push(problem.to_string());
    }
    Ok(true)
}

fn against(dir: &Path, fresh: &Fresh, found: &mut Found) {
    found.damage.extend(stale_result(dir, fresh));
    stale_report(dir, fresh, found);
}

/// What a stored result says otherwise. One of another version of this program may differ without
/// any file being changed.
fn stale_result(dir: &Path, fresh: &Fresh) -> Vec<String> {
    let Ok(stored) = std::fs::read_to_string(dir.join(RESULT_FILE)) else {
        let there = dir.join(RESULT_FILE).exists();
        return there
            .then(|| format!("{RESULT_FILE} cannot be read as text"))
            .into_iter()
            .collect();
    };
    if stored == fresh.result_text {
        return Vec::new();
    }
    let why = match fresh.same_version {
        true => "is not what the raw files give",
        false => "is not what this version derives; another one made it",
    };
    let again = format!("to make it again: plimsoll analyse {}", dir.display());
    let Ok(stored) = serde_json::from_str::<Value>(&stored) else {
        return vec![format!("{RESULT_FILE} {why}: it is no JSON; {again}")];
    };
    let fresh: Value = serde_json::from_str(&fresh.result_text).unwrap_or_default();
    let all = differences(&stored, &fresh);
    let mut lines = vec![format!("{RESULT_FILE} {why}; {again}")];
    lines.extend(all.iter().take(DIFFERENCES_SHOWN).map(|difference| {
        let Difference { path, stored, fresh } = difference;
        format!("  {RESULT_FILE}: {path}: stored {stored}, recomputed {fresh}")
    }));
    match all.len() {
        0 => lines.push("  every value is the same, the bytes are not".to_owned()),
        n if n > DIFFERENCES_SHOWN => lines.push(format!("  and {} more", n - DIFFERENCES_SHOWN)),
        _ => {}
    }
    lines
}

/// A page of another version may look otherwise, and says the same.
fn stale_report(dir: &Path, fresh: &Fresh, found: &mut Found) {
    let path = dir.join(REPORT_FILE);
    let stored = match std::fs::read(&path) {
        Ok(stored) if stored == fresh.report.as_bytes() => return,
        Ok(stored) => stored,
        Err(_) => return,
    };
    let same = |(a, b): &(&u8, &u8)| a == b;
    let first = stored.iter().zip(fresh.report.as_bytes()).take_while(same).count();
    let again = format!("to make it again: plimsoll report {}", dir.display());
    match fresh.same_version {
        true => found.damage.push(format!(
            "{REPORT_FILE} is not what the raw files give: it differs from byte {first} on; {again}"
        )),
        false => found
            .notes
            .push(format!("{REPORT_FILE} is of another version of plimsoll than this; {again}")),
    }
}

#[cfg(test)]
mod tests;
