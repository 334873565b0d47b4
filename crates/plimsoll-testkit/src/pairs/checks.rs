//! The list of checks, the same for every row.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::accounting::Accounting;
use super::bench::Bench;
use super::command::{arguments, bundles, out, requested_loads};
use super::{REFUSED, RESUME, Row, VERB};
use crate::program::{
    Ended, broken_rules, is_disturbed, points_finished, result, signal, wait_at_most, wait_until,
};

/// A search for a capacity takes minutes.
const ROW_TIME_MAX: Duration = Duration::from_secs(600);
/// Samples of monitors end this long before or after a window, on a busy machine.
const SAMPLE_OFF_NS: u64 = 100_000_000;
/// Where experiments keep runs that were interrupted or are invalid.
const SET_ASIDE: &str = "set-aside";
/// Largest difference of a cost from the server's own accounting.
const COST_DIFFERENCE_MAX_RATIO: f64 = 0.10;
/// The monitors read CPU time in ticks of this length.
const TICK_NS: u64 = 10_000_000;
/// Less CPU time than this says nothing of 10 %.
const CPU_NS_MIN: u64 = 10 * TICK_NS;
/// Rules that a busy machine does not break: the program or the server failed. All others are about
/// times and rates.
const OF_THE_PROGRAM: [&str; 13] = [
    "panic",
    "ended_early",
    "corrupt",
    "counts",
    "errors",
    "clients_lost",
    "server_lost",
    "not_started",
    "interrupted",
    "aborted",
    "agent_lost",
    "incomplete",
    "tokens",
];
/// The program under test may be a debug build.
const OF_THE_BUILD: &str = "debug_build";
/// Sections of a report of a run, whatever it measured.
const SECTIONS: [&str; 7] =
    ["points", "limits", "resources", "percentiles", "uncertainty", "method", "disclosure"];

/// What came of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// As it should be.
    Right,
    /// There is nothing to check, for this reason.
    NotApplicable(String),
    /// A busy machine prevented the check.
    Disturbed(String),
    /// Not as it should be.
    Fault(String),
}
use CheckResult::{Disturbed, Fault, NotApplicable, Right};

impl fmt::Display for CheckResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Right => f.write_str("right"),
            NotApplicable(why) => write!(f, "– ({why})"),
            Disturbed(why) => write!(f, "disturbed ({why})"),
            Fault(why) => write!(f, "FAULT: {why}"),
        }
    }
}

/// Names of the checks, in their order.
pub const CHECKS: [&str; 8] =
    ["exit code", "verdict", "count", "limit", "cost", "verify", "resume", "report"];

/// The results of a row, in the order of [`CHECKS`].
pub type RowResults = [CheckResult; CHECKS.len()];

/// Runs a row and checks it. `None`, after a skip, where a peer is missing.
pub fn run(program: &Path, row: &Row) -> Option<(Vec<String>, RowResults)> {
    let bench = Bench::start(program, row)?;
    let line = arguments(row, &bench);
    let accounting = Accounting::start(bench.pids());
    let logged_before = bench.logged();
    let child = bench.command(&line).spawn().unwrap();
    accounting.add(child.id());
    if let Some(refusal) = row.refusal {
        return Some((line, refused(&wait_at_most(ROW_TIME_MAX, child), refusal, &out(&bench))));
    }
    let (ended, interrupted) = match row.is(RESUME, "yes") {
        true => interrupted(child, &bench, &accounting),
        false => (wait_at_most(ROW_TIME_MAX, child), None),
    };
    let outcome = Outcome {
        row,
        bench: &bench,
        ended,
        interrupted,
        all_bundles: bundles(&out(&bench)),
        accounting: &accounting,
        logged_before,
    };
    Some((line, outcome.check()))
}

fn refused(ended: &Ended, refusal: usize, out: &Path) -> RowResults {
    let refusal = &REFUSED[refusal];
    let is_refused = ended.code == Some(refusal.code) && ended.err.contains(refusal.message);
    let refused = match (is_refused, out.exists()) {
        (true, false) => Right,
        (true, true) => Fault("it left a bundle".to_owned()),
        (false, _) => Fault(format!("{:?}: {}", ended.code, last_lines(&ended.err))),
    };
    let none = || NotApplicable("refused".to_owned());
    [refused, none(), none(), none(), none(), none(), none(), none()]
}

/// Ends the run after its first load point, and resumes it. The second is how the first ended.
fn interrupted(mut child: Child, bench: &Bench, accounting: &Accounting) -> (Ended, Option<Ended>) {
    let directory = out(bench);
    wait_until("a load point is finished", || {
        child.try_wait().unwrap().is_some()
            || bundles(&directory).iter().any(|bundle| points_finished(bundle) > 0)
    });
    if child.try_wait().unwrap().is_none() {
        signal(&child, Signal::INT);
    }
    let first = wait_at_most(ROW_TIME_MAX, child);
    if first.code != Some(4) {
        return (first, None);
    }
    let resume = ["resume", &directory.display().to_string(), "--progress", "none"];
    let child = bench.command(&resume.map(str::to_owned)).spawn().unwrap();
    accounting.add(child.id());
    (wait_at_most(ROW_TIME_MAX, child), Some(first))
}

/// What a row left.
struct Outcome<'a> {
    row: &'a Row,
    bench: &'a Bench,
    ended: Ended,
    interrupted: Option<Ended>,
    /// With those that were set aside.
    all_bundles: Vec<PathBuf>,
    accounting: &'a Accounting,
    logged_before: Option<u64>,
}

impl Outcome<'_> {
    fn check(&self) -> RowResults {
        let readable = self.bundles().all(|bundle| bundle.join("result.json").exists());
        if !matches!(self.ended.code, Some(0 | 1)) || self.bundles().next().is_none() || !readable {
            let none = || NotApplicable("no result".to_owned());
            let why = format!("{:?}: {}", self.ended.code, last_lines(&self.ended.err));
            return [Fault(why), none(), none(), none(), none(), none(), none(), none()];
        }
        [
            self.exit_code(),
            self.verdict(),
            self.count(),
            self.limit(),
            self.cost(),
            self.verify(),
            self.resume(),
            self.report(),
        ]
    }

    /// 0 exactly if all is valid.
    fn exit_code(&self) -> CheckResult {
        let valid = self.results().all(|result| result["verdict"]["valid"] == true);
        match (self.ended.code, valid) {
            (Some(0), true) | (Some(1), false) => Right,
            // An invalid run of an experiment is made once more.
            (Some(0), false) if self.is_experiment() => Right,
            (code, _) => Fault(format!("{code:?} although valid is {valid}")),
        }
    }

    fn verdict(&self) -> CheckResult {
        let mut rules: Vec<String> = self.results().flat_map(|it| broken_rules(&it)).collect();
        rules.retain(|rule| rule != OF_THE_BUILD);
        rules.sort();
        rules.dedup();
        let (of_program, others): (Vec<_>, Vec<_>) =
            rules.into_iter().partition(|rule| OF_THE_PROGRAM.contains(&&**rule));
        match (of_program.is_empty(), others.is_empty()) {
            (true, true) => Right,
            (true, false) => Disturbed(others.join(", ")),
            (false, _) => Fault(of_program.join(", ")),
        }
    }

    /// Ops that ended, as against the requests in the servers' logs.
    fn count(&self) -> CheckResult {
        let Some((before, now)) = self.logged_before.zip(self.bench.logged()) else {
            return NotApplicable("the server has no log".to_owned());
        };
        let logged = now - before;
        let done: u64 = self.all_bundles.iter().map(|bundle| ops_done(bundle)).sum();
        // Each run requests once of each target before the load.
        let runs = self.all_bundles.len() as u64 + u64::from(self.interrupted.is_some());
        let checks = runs * self.bench.targets.len() as u64;
        let unfinished: u64 = self.points().map(|it| it["unfinished"].as_u64().unwrap_or(0)).sum();
        // The ops of an interrupted load point are in no record.
        let most = if self.interrupted.is_some() { u64::MAX } else { done + checks + unfinished };
        match (done..=most).contains(&logged) {
            true => Right,
            false => Fault(format!("{done} ops, {checks} checks, {logged} requests in the log")),
        }
    }

    /// The loads are low: nothing limits them.
    fn limit(&self) -> CheckResult {
        if self.row.is(VERB, "capacity") {
            return NotApplicable("the load is searched".to_owned());
        }
        if self.row.is(VERB, "scale") {
            return NotApplicable("the server has a quota".to_owned());
        }
        let named = self
            .results()
            .filter_map(|it| it["points"].as_array()?.last().cloned())
            .find(|point| point["limit"]["kind"] != "none");
        let Some(point) = named else { return Right };
        let limit = &point["limit"];
        let facts = limit["facts"]["kind"].as_str().unwrap_or_default();
        match self.verdict() {
            _ if ["generator", "disturbed"].contains(&facts) => Disturbed(facts.to_owned()),
            _ if is_disturbed(&point) => Disturbed("other programs".to_owned()),
            Disturbed(why) => Disturbed(why),
            _ => Fault(limit.to_string()),
        }
    }

    /// CPU time per op of the server's processes, as against `/proc`.
    fn cost(&self) -> CheckResult {
        let mut outcome = NotApplicable("no cost of the server's processes".to_owned());
        let mut missing = false;
        for bundle in self.bundles() {
            let records = finished_points(bundle);
            for point in result(bundle)["points"].as_array().unwrap() {
                let costs = point["cost"].as_array().into_iter().flatten();
                let is_cpu = |it: &&Value| it["of"] == "server_processes";
                let per_op = costs.clone().find(is_cpu);
                let per_op =
                    per_op.and_then(|it| it.pointer("/figures/cpu_per_op/value")?.as_f64());
                let Some(per_op) = per_op else {
                    missing = true;
                    continue;
                };
                let is_same = |it: &&Value| point["stem"] == *stem_of(it);
                let Some(record) = records.iter().find(is_same) else { continue };
                match self.compare_cost(per_op, point, record) {
                    NotApplicable(why) if matches!(outcome, NotApplicable(_)) => {
                        outcome = NotApplicable(why);
                    }
                    NotApplicable(_) => {}
                    Right if matches!(outcome, NotApplicable(_)) => outcome = Right,
                    Right => {}
                    other => return other,
                }
            }
        }
        match (missing, self.verdict()) {
            (true, Disturbed(why)) => Disturbed(why),
            (true, _) if outcome != Right => Fault("no cost of the server's processes".to_owned()),
            _ => outcome,
        }
    }

    fn compare_cost(&self, per_op_ns: f64, point: &Value, record: &Value) -> CheckResult {
        let number = |key: &str| record[key].as_u64().unwrap_or_default();
        let begin_ns = number("started_unix_ns") + number("warm_up_ns");
        let end_ns = begin_ns + number("measured_ns");
        let shortest = self.accounting.between(begin_ns + SAMPLE_OFF_NS, end_ns - SAMPLE_OFF_NS);
        let longest = self.accounting.between(begin_ns - SAMPLE_OFF_NS, end_ns + SAMPLE_OFF_NS);
        let Some(([low, _], [_, high])) = shortest.zip(longest) else {
            return NotApplicable("its CPU time was not read".to_owned());
        };
        if high < CPU_NS_MIN {
            return NotApplicable(format!("{} ms of CPU time are too few", high / 1_000_000));
        }
        let rate = point["achieved_ops_per_s"].as_f64().unwrap_or_default();
        let reported = per_op_ns * rate * number("measured_ns") as f64 / 1e9;
        let least = low.saturating_sub(TICK_NS) as f64 * (1.0 - COST_DIFFERENCE_MAX_RATIO);
        let range = least..=(high + TICK_NS) as f64 * (1.0 + COST_DIFFERENCE_MAX_RATIO);
        match range.contains(&reported) {
            true => Right,
            false => Fault(format!("{reported:.0} ns, not between {low} and {high} ns")),
        }
    }

    fn verify(&self) -> CheckResult {
        for bundle in &self.all_bundles {
            let line = ["verify".to_owned(), bundle.display().to_string()];
            let ended = wait_at_most(ROW_TIME_MAX, self.bench.command(&line).spawn().unwrap());
            let intact = ended.out.contains("Every file is as the run left it.");
            if !intact || !matches!(ended.code, Some(0 | 1)) {
                return Fault(format!("{:?}: {}", ended.code, last_lines(&ended.out)));
            }
        }
        Right
    }

    /// The loads of all runs are those requested, before and after an interruption.
    fn resume(&self) -> CheckResult {
        let Some(interrupted) = &self.interrupted else {
            return match self.row.is(RESUME, "yes") {
                true => NotApplicable("it had finished before the interruption".to_owned()),
                false => NotApplicable("not resumed".to_owned()),
            };
        };
        if interrupted.code != Some(4) {
            return Fault(format!("{:?}: {}", interrupted.code, last_lines(&interrupted.err)));
        }
        let Some(requested) = requested_loads(self.row) else { return Right };
        for result in self.results() {
            let points = result["points"].as_array().unwrap().iter();
            let loads: Vec<f64> = points.filter_map(|point| point["requested"].as_f64()).collect();
            if loads != requested {
                return Fault(format!("loads {loads:?} instead of {requested:?}"));
            }
        }
        Right
    }

    fn report(&self) -> CheckResult {
        for bundle in self.bundles() {
            let report = fs::read_to_string(bundle.join("report.html")).unwrap_or_default();
            let is_absent = |id: &&&str| !report.contains(&format!("<section id=\"{id}\""));
            let absent: Vec<&str> = SECTIONS.iter().filter(is_absent).copied().collect();
            if !absent.is_empty() {
                return Fault(format!("{} without {}", bundle.display(), absent.join(", ")));
            }
        }
        let page = out(self.bench).join(format!("{}.html", self.row.levels[VERB]));
        match self.is_experiment() && !page.exists() {
            true => Fault(format!("{} is missing", page.display())),
            false => Right,
        }
    }

    fn bundles(&self) -> impl Iterator<Item = &PathBuf> {
        let is_set_aside =
            |bundle: &Path| bundle.components().any(|it| it.as_os_str() == SET_ASIDE);
        self.all_bundles.iter().filter(move |bundle| !is_set_aside(bundle))
    }

    fn is_experiment(&self) -> bool {
        ["versus", "scale", "experiment"].contains(&self.row.levels[VERB])
    }

    fn results(&self) -> impl Iterator<Item = Value> + '_ {
        self.bundles().map(|bundle| result(bundle))
    }

    fn points(&self) -> impl Iterator<Item = Value> + '_ {
        self.results().flat_map(|it| it["points"].as_array().cloned().unwrap_or_default())
    }
}

/// Records of finished load points.
fn finished_points(bundle: &Path) -> Vec<Value> {
    let journal = fs::read_to_string(bundle.join("journal.jsonl")).unwrap();
    let records = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter(|record| record["event"] == "point_finished").collect()
}

/// As `result.json` names the load point.
fn stem_of(record: &Value) -> String {
    format!("point-{:02}", record.pointer("/point/ordinal").and_then(Value::as_u64).unwrap_or(0))
}

/// Of all its load points, warm-up and drain included.
fn ops_done(bundle: &Path) -> u64 {
    let of_second = |second: &Value| second["done"].as_u64().unwrap_or_default();
    let of_point = |record: &Value| -> u64 {
        record["seconds"].as_array().into_iter().flatten().map(of_second).sum()
    };
    finished_points(bundle).iter().map(of_point).sum()
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" / ").chars().take(500).collect()
}
