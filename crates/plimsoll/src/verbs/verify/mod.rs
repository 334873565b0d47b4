//! `plimsoll verify BUNDLE`: checks checksums and signature, then derives result and report again
//! from the raw files and compares them with the stored ones.

mod differences;

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_model::bundle::{BundleError, Manifest, REPORT_FILE, RESULT_FILE};
use plimsoll_model::result::RunResult;
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::signature::{self, Trust};
use crate::terminal;
use differences::{Difference, differences};
use plimsoll_run::derive;

/// Further differences are only counted.
const DIFFERENCES_SHOWN: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Bundle of a run
    pub bundle: PathBuf,
    /// Check the signature too: a public key of minisign, or the file that holds it
    #[arg(long, value_name = "PUBLICKEY", conflicts_with = "sign")]
    pub key: Option<String>,
    /// Sign the bundle, if nothing is wrong with it, with a secret key of minisign;
    /// PLIMSOLL_MINISIGN_PASSWORD may hold its password
    #[arg(long, value_name = "KEYFILE")]
    pub sign: Option<PathBuf>,
}

/// Checks that nothing was changed and that the result follows from the raw files; then signs, if
/// requested.
pub(crate) fn perform(args: &VerifyArgs) -> Result<Exit, Failure> {
    let dir = &args.bundle;
    let trust = args.key.as_deref().map(Trust::read).transpose()?;
    let (fresh, inspection) = look(dir, trust.as_ref())?;
    for line in inspection.damage.iter().chain(&inspection.notes) {
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
    if !inspection.damage.is_empty() {
        if args.sign.is_some() {
            terminal::note("not signed: the bundle is not as the run left it");
        }
        return Ok(Exit::Invalid);
    }
    terminal::print("Every file is as the run left it.");
    if let Some(key) = &args.sign {
        terminal::print(&signature::sign(dir, key)?);
    }
    Ok(Exit::from(&fresh.result))
}

/// Results derived from the raw files now.
struct Fresh {
    result: RunResult,
    result_text: String,
    report: String,
    /// Whether this version of the program made the run.
    same_version: bool,
}

impl Fresh {
    fn from_dir(dir: &Path) -> Result<Self, Failure> {
        let result = derive::result_of(dir)?;
        let tool = result.disclosure.as_ref().map(|disclosure| &disclosure.tool);
        let same_version = tool.is_none_or(|tool| tool.version == env!("CARGO_PKG_VERSION"));
        let report = derive::own_page(&result)?;
        Ok(Self { result_text: derive::result_text(&result), result, report, same_version })
    }
}

/// Damage of a bundle, and remarks about it.
#[derive(Debug, Default)]
struct Inspection {
    damage: Vec<String>,
    notes: Vec<String>,
}

/// Checks the files of a bundle against its manifest, its signature, and the results derived from
/// the raw files. Fails if nothing can be derived and the manifest does not show why.
fn look(
    dir: &Path,
    trust: Option<&Trust>,
) -> Result<(Result<Fresh, Failure>, Inspection), Failure> {
    let mut inspection = Inspection::default();
    let listed = listed_problems(dir, &mut inspection)?;
    match signature::check(dir, trust) {
        Ok(note) => inspection.notes.extend(note),
        Err(problem) => inspection.damage.push(problem),
    }
    let fresh = Fresh::from_dir(dir);
    match &fresh {
        Ok(fresh) => against(dir, fresh, &mut inspection),
        Err(_) if listed && !inspection.damage.is_empty() => {}
        Err(_) => return fresh.map(|fresh| (Ok(fresh), inspection)),
    }
    Ok((fresh, inspection))
}

/// Checks the manifest; false if there is none.
fn listed_problems(dir: &Path, inspection: &mut Inspection) -> Result<bool, Failure> {
    let manifest = match Manifest::read(dir) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => {
            inspection.damage.push(
                "no manifest.json: the run did not come to its end; nothing to compare with".into(),
            );
            return Ok(false);
        }
        Err(error @ (BundleError::Malformed { .. } | BundleError::Format { .. })) => {
            inspection.damage.push(error.to_string());
            return Ok(true);
        }
        Err(error) => return Err(error.into()),
    };
    for problem in manifest.problems(dir)? {
        let list = if problem.is_damage() { &mut inspection.damage } else { &mut inspection.notes };
        list.push(problem.to_string());
    }
    Ok(true)
}

fn against(dir: &Path, fresh: &Fresh, inspection: &mut Inspection) {
    inspection.damage.extend(stale_result(dir, fresh));
    stale_report(dir, fresh, inspection);
}

/// Differences of the stored result. One of another version of this program may differ without any
/// file being changed.
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

/// Checks the stored page. One of another version may look different with the same content.
fn stale_report(dir: &Path, fresh: &Fresh, inspection: &mut Inspection) {
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
        true => inspection.damage.push(format!(
            "{REPORT_FILE} is not what the raw files give: it differs from byte {first} on; {again}"
        )),
        false => inspection
            .notes
            .push(format!("{REPORT_FILE} is of another version of plimsoll than this; {again}")),
    }
}

#[cfg(test)]
mod tests;
