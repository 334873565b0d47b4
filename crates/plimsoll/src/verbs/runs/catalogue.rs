//! Which bundles there are, and what each says of itself.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_model::bundle::{
    BundleReader, DISCLOSURE_FILE, JOURNAL_FILE, MANIFEST_FILE, RESULT_FILE, SUITE_FILE,
};
use plimsoll_model::event::Bound;
use plimsoll_model::limit::{Limit, LimitKind, LimitSpan};
use plimsoll_model::result::RESULT_FORMAT;
use serde::{Deserialize, Serialize};

use crate::certificates::made_text;

/// Bundles lie at most this deep below a directory that is named: deeper are other people's files.
const DEPTH_MAX: u32 = 6;
/// `2026-11-23 20:41` of an instant.
const MINUTE_CHARS: usize = 16;

/// A bundle, as far as it says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Run {
    pub(super) dir: PathBuf,
    pub(super) standing: Standing,
    /// First instant of the run, RFC 3339.
    pub(super) started: Option<String>,
    /// Name of the suite.
    pub(super) suite: Option<String>,
    pub(super) profile: Option<String>,
    /// As given, without passwords.
    pub(super) targets: Vec<String>,
    /// The headline; `null` where no point counts.
    pub(super) value: Option<f64>,
    pub(super) unit: String,
    /// Exact, or at least.
    pub(super) bound: Bound,
    pub(super) valid: bool,
    /// Rules that were broken, each once.
    pub(super) reasons: Vec<String>,
    /// What held back the load point with the highest throughput.
    pub(super) limit: Option<String>,
}

/// Whether a bundle has a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum Standing {
    Judged,
    /// Not yet: so many load points are in its journal.
    Unfinished {
        points: u64,
    },
    Broken {
        why: String,
    },
}

impl Run {
    /// When it began, to the minute.
    pub(super) fn started_minute(&self) -> String {
        let minute = self.started.as_deref().and_then(|at| at.get(..MINUTE_CHARS));
        minute.unwrap_or("–").replace('T', " ")
    }

    fn without_result(dir: &Path, standing: Standing) -> Self {
        Self {
            dir: dir.to_owned(),
            standing,
            started: None,
            suite: None,
            profile: None,
            targets: Vec::new(),
            value: None,
            unit: String::new(),
            bound: Bound::default(),
            valid: false,
            reasons: Vec::new(),
            limit: None,
        }
    }
}

/// Every bundle below these directories, newest first; those that say no time come last.
pub(super) fn catalogue(dirs: &[PathBuf]) -> Vec<Run> {
    let mut runs: Vec<Run> = bundles_below(dirs).iter().map(|dir| run_of(dir)).collect();
    runs.sort_by(|a, b| b.started.cmp(&a.started).then_with(|| a.dir.cmp(&b.dir)));
    runs
}

/// Directories of bundles at or below these, each once, by name.
pub(crate) fn bundles_below(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let mut places = Vec::new();
    for dir in dirs {
        find(dir, 0, &mut places);
    }
    places.sort();
    places.dedup();
    places
}

/// Directories that are bundles, or were to become some. Links are not followed.
fn find(dir: &Path, depth: u32, places: &mut Vec<PathBuf>) {
    if is_bundle(dir) {
        places.push(dir.to_owned());
        return;
    }
    if depth == DEPTH_MAX {
        return;
    }
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find(&entry.path(), depth + 1, places);
        }
    }
}

/// One that lost a file is one still: two of them say enough.
fn is_bundle(dir: &Path) -> bool {
    let files = [JOURNAL_FILE, SUITE_FILE, RESULT_FILE, DISCLOSURE_FILE, MANIFEST_FILE];
    files.iter().filter(|file| dir.join(file).is_file()).count() >= 2
}

/// What is told of `result.json`. The rest, most of it, is passed over.
#[derive(Deserialize)]
struct Told {
    format: u32,
    suite: Option<ToldSuite>,
    targets: Vec<String>,
    profile: Option<String>,
    started: Option<String>,
    verdict: ToldVerdict,
    summary: ToldSummary,
    points: Vec<ToldPoint>,
}

#[derive(Deserialize)]
struct ToldSuite {
    name: String,
}

#[derive(Deserialize)]
struct ToldVerdict {
    valid: bool,
    reasons: Vec<ToldReason>,
}

#[derive(Deserialize)]
struct ToldReason {
    rule: String,
}

#[derive(Deserialize)]
struct ToldSummary {
    value: Option<f64>,
    unit: String,
    #[serde(default)]
    bound: Bound,
    #[serde(default)]
    limits: Vec<LimitSpan>,
}

#[derive(Deserialize)]
struct ToldPoint {
    achieved_ops_per_s: Option<f64>,
    #[serde(default)]
    limit: Option<Limit>,
}

fn run_of(dir: &Path) -> Run {
    let bytes = match fs::read(dir.join(RESULT_FILE)) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return unfinished(dir),
        Err(e) => return broken(dir, format!("{RESULT_FILE} cannot be read ({e})")),
    };
    match serde_json::from_slice::<Told>(&bytes) {
        Ok(told) if told.format != RESULT_FORMAT => {
            broken(dir, format!("{RESULT_FILE} has format {}", told.format))
        }
        Ok(told) => judged(dir, told),
        Err(e) => broken(dir, format!("{RESULT_FILE}:{} is no result", e.line())),
    }
}

fn judged(dir: &Path, told: Told) -> Run {
    let mut reasons: Vec<String> = told.verdict.reasons.into_iter().map(|r| r.rule).collect();
    reasons.dedup();
    let rate = |point: &&ToldPoint| point.achieved_ops_per_s.unwrap_or(0.0);
    let top = told.points.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)));
    // The last that is known along the ladder; older results tell of their points alone.
    let spans = told.summary.limits.iter().map(|span| &span.limit);
    let named = spans.rev().find(|limit| limit.kind != LimitKind::Unknown);
    let limit = named.or_else(|| top?.limit.as_ref()).map(plimsoll_report::limit_name);
    Run {
        started: told.started,
        suite: told.suite.map(|suite| suite.name),
        profile: told.profile,
        targets: told.targets,
        value: told.summary.value,
        unit: told.summary.unit,
        bound: told.summary.bound,
        valid: told.verdict.valid,
        reasons,
        limit,
        ..Run::without_result(dir, Standing::Judged)
    }
}

fn unfinished(dir: &Path) -> Run {
    let reader = match BundleReader::open(dir) {
        Ok(reader) => reader,
        Err(e) => return broken(dir, e.to_string()),
    };
    let points = reader.journal().points().count() as u64;
    let run = Run::without_result(dir, Standing::Unfinished { points });
    let Some(started) = reader.journal().started() else { return run };
    Run {
        started: Some(made_text(started.at_unix_ns)),
        profile: Some(started.profile.clone()),
        targets: started.targets.clone(),
        ..run
    }
}

fn broken(dir: &Path, why: String) -> Run {
    Run::without_result(dir, Standing::Broken { why })
}
