//! Finds bundles, and reads a summary of each.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_model::bundle::{
    BundleReader, DISCLOSURE_FILE, JOURNAL_FILE, MANIFEST_FILE, RESULT_FILE, SUITE_FILE,
};
use plimsoll_model::event::Bound;
use plimsoll_model::limit::{Limit, LimitKind, LimitSpan};
use plimsoll_model::result::RESULT_FORMAT;
use plimsoll_run::certificates::made_text;
use serde::{Deserialize, Serialize};

/// Bundles lie at most this deep below a named directory: deeper directories are unrelated.
const DEPTH_MAX: u32 = 6;
/// `2026-11-23 20:41` of an instant.
const MINUTE_CHARS: usize = 16;

/// A bundle's summary, as far as it is available.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Run {
    pub(super) dir: PathBuf,
    pub(super) standing: ResultState,
    /// First instant of the run, RFC 3339.
    pub(super) started: Option<String>,
    /// Name of the suite.
    pub(super) suite: Option<String>,
    pub(super) profile: Option<String>,
    /// As given, without passwords.
    pub(super) targets: Vec<String>,
    /// The headline; `null` if no point counts.
    pub(super) value: Option<f64>,
    pub(super) unit: String,
    /// Whether the value is exact or a lower bound.
    pub(super) bound: Bound,
    pub(super) valid: bool,
    /// Rules that were broken, each once.
    pub(super) reasons: Vec<String>,
    /// What limited the load point with the highest throughput.
    pub(super) limit: Option<String>,
}

/// Whether a bundle has a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum ResultState {
    Judged,
    /// No result yet; this many load points are in its journal.
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

    fn without_result(dir: &Path, state: ResultState) -> Self {
        Self {
            dir: dir.to_owned(),
            standing: state,
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

/// Every bundle below these directories, newest first; those without a time come last.
pub(super) fn catalogue(dirs: &[PathBuf]) -> Vec<Run> {
    let mut runs: Vec<Run> = bundles_below(dirs).iter().map(|dir| run_of(dir)).collect();
    runs.sort_by(|a, b| b.started.cmp(&a.started).then_with(|| a.dir.cmp(&b.dir)));
    runs
}

/// Directories of bundles at or below these, each once, by name.
pub(crate) fn bundles_below(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let mut bundles = Vec::new();
    for dir in dirs {
        find(dir, 0, &mut bundles);
    }
    bundles.sort();
    bundles.dedup();
    bundles
}

/// Directories that are or should become bundles. Links are not followed.
fn find(dir: &Path, depth: u32, bundles: &mut Vec<PathBuf>) {
    if is_bundle(dir) {
        bundles.push(dir.to_owned());
        return;
    }
    if depth == DEPTH_MAX {
        return;
    }
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find(&entry.path(), depth + 1, bundles);
        }
    }
}

/// Two of its files are enough: one may be lost.
fn is_bundle(dir: &Path) -> bool {
    let files = [JOURNAL_FILE, SUITE_FILE, RESULT_FILE, DISCLOSURE_FILE, MANIFEST_FILE];
    files.iter().filter(|file| dir.join(file).is_file()).count() >= 2
}

/// The parts of `result.json` that are shown. The rest, most of it, is skipped.
#[derive(Deserialize)]
struct StoredResult {
    format: u32,
    suite: Option<StoredSuite>,
    targets: Vec<String>,
    profile: Option<String>,
    started: Option<String>,
    verdict: StoredVerdict,
    summary: StoredSummary,
    points: Vec<StoredPoint>,
}

#[derive(Deserialize)]
struct StoredSuite {
    name: String,
}

#[derive(Deserialize)]
struct StoredVerdict {
    valid: bool,
    reasons: Vec<StoredReason>,
}

#[derive(Deserialize)]
struct StoredReason {
    rule: String,
}

#[derive(Deserialize)]
struct StoredSummary {
    value: Option<f64>,
    unit: String,
    #[serde(default)]
    bound: Bound,
    #[serde(default)]
    limits: Vec<LimitSpan>,
}

#[derive(Deserialize)]
struct StoredPoint {
    achieved_ops_per_s: Option<f64>,
    limit: Option<Limit>,
}

fn run_of(dir: &Path) -> Run {
    let bytes = match fs::read(dir.join(RESULT_FILE)) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return unfinished(dir),
        Err(e) => return broken(dir, format!("{RESULT_FILE} cannot be read ({e})")),
    };
    match serde_json::from_slice::<StoredResult>(&bytes) {
        Ok(stored) if stored.format != RESULT_FORMAT => {
            broken(dir, format!("{RESULT_FILE} has format {}", stored.format))
        }
        Ok(stored) => run_from_result(dir, stored),
        Err(e) => broken(dir, format!("{RESULT_FILE}:{} is no result", e.line())),
    }
}

fn run_from_result(dir: &Path, stored: StoredResult) -> Run {
    let mut reasons: Vec<String> = stored.verdict.reasons.into_iter().map(|r| r.rule).collect();
    reasons.dedup();
    let rate = |point: &&StoredPoint| point.achieved_ops_per_s.unwrap_or(0.0);
    let top = stored.points.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)));
    // The last known one along the ladder; older results have limits of points only.
    let spans = stored.summary.limits.iter().map(|span| &span.limit);
    let named = spans.rev().find(|limit| limit.kind != LimitKind::Unknown);
    let limit = named.or_else(|| top?.limit.as_ref()).map(plimsoll_report::limit_name);
    Run {
        started: stored.started,
        suite: stored.suite.map(|suite| suite.name),
        profile: stored.profile,
        targets: stored.targets,
        value: stored.summary.value,
        unit: stored.summary.unit,
        bound: stored.summary.bound,
        valid: stored.verdict.valid,
        reasons,
        limit,
        ..Run::without_result(dir, ResultState::Judged)
    }
}

fn unfinished(dir: &Path) -> Run {
    let reader = match BundleReader::open(dir) {
        Ok(reader) => reader,
        Err(e) => return broken(dir, e.to_string()),
    };
    let points = reader.journal().points().count() as u64;
    let run = Run::without_result(dir, ResultState::Unfinished { points });
    let Some(started) = reader.journal().started() else { return run };
    Run {
        started: Some(made_text(started.at_unix_ns)),
        profile: Some(started.profile.clone()),
        targets: started.targets.clone(),
        ..run
    }
}

fn broken(dir: &Path, why: String) -> Run {
    Run::without_result(dir, ResultState::Broken { why })
}
