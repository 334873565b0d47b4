//! The end of a run: complete for a file or a pipe, cut to the screen of a terminal.

mod distribution;
mod extent;
mod generation;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use extent::Extent;
use plimsoll_model::capacity::TryOutcome;
use plimsoll_model::event::Bound;
use plimsoll_model::finding::{Finding, Rule};
use plimsoll_model::gate::GateState;
use plimsoll_model::recovery::RecoveryOutcome;
use plimsoll_model::reported::{ReportedFigure, gate_text};
use plimsoll_model::result::{PointResult, RunResult, Verdict};
use plimsoll_model::sessions::SessionStep;
use plimsoll_model::suite::Metric;
use plimsoll_model::units::{Bytes, BytesPerSec, Nanos, grouped};
use plimsoll_report::sentences::{self, finding, hint};

use super::Style;

/// Verdict, headline, limit, table of points, and the report's path. On a terminal it is cut to the
/// screen, since the report has the rest. Without a report nothing is left out.
pub(crate) fn summary(result: &RunResult, report: Option<&Path>, style: Style) -> String {
    match style.screen().filter(|_| report.is_some()) {
        None => text(result, report, style, &Extent::WHOLE),
        Some(screen) => Extent::roomiest(screen, |extent| text(result, report, style, extent)),
    }
}

fn text(result: &RunResult, report: Option<&Path>, style: Style, extent: &Extent) -> String {
    let mut out = String::new();
    push_headline(&mut out, result, style, extent);
    table::push(&mut out, result, style, extent);
    generation::push(&mut out, result, style, extent);
    push_sessions(&mut out, result);
    push_compound_calls(&mut out, result);
    push_journeys(&mut out, result);
    distribution::push(&mut out, result, style, extent);
    push_errors(&mut out, result, style, extent);
    let Verdict { reasons, warnings, .. } = &result.verdict;
    let warnings: Vec<Finding> = warnings.iter().filter(|w| !shows(w)).cloned().collect();
    for (title, findings) in [("Reasons", reasons), ("Warnings", &warnings)] {
        let bundle = report.and_then(Path::parent);
        push_findings(&mut out, findings, &style.mixed(title), bundle, extent);
    }
    for gate in &result.gates {
        let sign = gate.state.sign(gate.fails);
        let sign = match (gate.fails, gate.state) {
            (true, _) => style.bad(sign),
            (false, GateState::Unsure) => style.mixed(sign),
            (false, _) => style.good(sign),
        };
        let _ = writeln!(out, "{sign} {}", gate_text(gate));
    }
    if let Some(report) = report {
        let _ = writeln!(out, "{}Report: {}", extent.separator(), report.display());
    }
    out
}

fn push_headline(out: &mut String, result: &RunResult, style: Style, extent: &Extent) {
    let profile = result.profile.as_deref().unwrap_or_default();
    let word = match (result.verdict.valid, &result.suite) {
        (true, Some(_)) => style.good("valid"),
        // A readable file does not show how it was measured.
        (true, None) => style.mixed("not judged"),
        (false, _) => style.bad("invalid"),
    };
    let scaled =
        if matches!(profile, "quick" | "demo") { format!(" ({profile})") } else { String::new() };
    let suite = result.suite.as_ref().map_or("curve from elsewhere", |suite| &suite.name);
    let targets = match result.targets.as_slice() {
        [] => String::new(),
        targets => format!(" on {}", targets.join(", ")),
    };
    let _ = writeln!(out, "\n{}{targets}, {word}{scaled}", style.bold(suite));
    if let Some(rule) = result.server_lost() {
        let _ = writeln!(out, "  {}", extent.headline(&style.bad(&finding::cause(rule))));
    }
    let summary = &result.summary;
    push_score(out, result, style, extent);
    if !summary.metric.is_empty() {
        let none = if is_searched_still(result) { "not known yet" } else { "none" };
        let value = summary.value.map_or(none.to_owned(), |value| value_text(value, result));
        let _ = writeln!(out, "  {}: {}", summary.metric, style.bold(&value));
    }
    push_capacity(out, result, extent);
    for one in &result.recovery {
        let text = sentences::recovery::text(one, &result.axis.unit);
        let text = match one.outcome {
            RecoveryOutcome::Recovered => style.good(&text),
            RecoveryOutcome::NotRecovered => style.bad(&text),
            _ => style.mixed(&text),
        };
        let _ = writeln!(out, "  {}", extent.headline(&text));
    }
    // Already printed if the headline is the peak.
    let is_headline = |peak: &f64| summary.value == Some(*peak) || metric(result) == Metric::Bytes;
    if let Some(peak) = summary.peak_ops_per_s.filter(|peak| !is_headline(peak)) {
        let bytes =
            summary.peak_bytes_per_s.map_or(String::new(), |b| format!(", {}/s", Bytes(b as u64)));
        let _ = writeln!(out, "  highest rate of any point: {} ops/s{bytes}", grouped(peak));
    }
    if let Some(origin) = ReportedFigure::overall(summary, |overall| overall.origin) {
        let span = ReportedFigure::overall(summary, |overall| overall.span);
        let span = span.map(|span| format!(" by origin, {} by span", span.time_text()));
        let origin = origin.time_text();
        let _ = writeln!(out, "  overall response: {origin}{}", span.unwrap_or_default());
    }
    if let Some(limit) = &summary.limit {
        let _ = writeln!(out, "  {}", extent.headline(&format!("limit: {limit}")));
    }
    for hint in &result.hints {
        let text = hint::text(hint);
        let _ = writeln!(out, "  {}", extent.headline(&format!("hint: {text}")));
    }
    if let Some(search) = &summary.peak_search {
        let _ = writeln!(out, "  {}", extent.headline(search));
    }
}

/// Printed below the headline, if a capacity was searched.
fn push_capacity(out: &mut String, result: &RunResult, extent: &Extent) {
    let Some(search) = &result.summary.capacity_search else { return };
    if let Some(capacity) = &result.summary.capacity {
        let think = search.asked.think.map(|think| format!(" at a think time of {think}"));
        let think = think.unwrap_or_default();
        if let Some(users) = capacity.users {
            let _ = writeln!(out, "  users: {}{think}", grouped(users.floor()));
        } else if let Some(client) = sentences::capacity::client(capacity) {
            let _ = writeln!(out, "  clients: {}{think}", grouped(capacity.value));
            let _ = writeln!(out, "  {}", extent.headline(&client));
        }
        if let Some(load) = capacity.undecided_to {
            let _ = writeln!(out, "  undecided up to {} {}", grouped(load), capacity.unit);
        }
        let _ = writeln!(out, "  re-runs passed: {} of {}", capacity.passed, capacity.tries);
    }
    if let Some(how) = &search.how {
        let _ = writeln!(out, "  {}", extent.headline(how));
    }
    let within = search.tries.iter().filter(|attempt| attempt.standing == TryOutcome::Within);
    let highest = within.map(|attempt| attempt.load).reduce(f64::max);
    if let Some(load) = highest.filter(|_| is_searched_still(result)) {
        let unit = &result.summary.unit;
        let _ = writeln!(out, "  highest load within the limits so far: {} {unit}", grouped(load));
    }
}

/// Whether the search for a capacity was cut short.
fn is_searched_still(result: &RunResult) -> bool {
    result.summary.capacity_search.as_ref().is_some_and(|search| search.how.is_none())
}

/// Printed before the peak, if the suite has a score.
fn push_score(out: &mut String, result: &RunResult, style: Style, extent: &Extent) {
    let Some(note) = &result.summary.score_note else { return };
    let _ = match ReportedFigure::score(&result.summary) {
        Some(score) => {
            writeln!(out, "  score: {} tps, {note}", style.bold(&score.rate_text()))
        }
        None => writeln!(out, "  {}", extent.headline(&format!("score: {note}"))),
    };
}

fn metric(result: &RunResult) -> Metric {
    result.suite.as_ref().map(|suite| suite.metric).unwrap_or_default()
}

/// The headline; bytes in both units people compare.
fn value_text(value: f64, result: &RunResult) -> String {
    let bound = match result.summary.bound {
        Bound::Exact => "",
        Bound::AtLeast => "at least ",
    };
    let reported = ReportedFigure::new(value, result.summary.value_interval);
    let text = format!("{bound}{}", reported.throughput_text(&result.summary.unit));
    match result.summary.unit == Metric::Bytes.unit() {
        true => format!("{text}, {:.1} Mbit/s", BytesPerSec(value).mbit_per_s()),
        false => text,
    }
}

/// Other points with the same rule: ` (and at point 3, 5)`.
fn elsewhere(first: &Finding, findings: &[Finding]) -> String {
    let others: Vec<String> = findings
        .iter()
        .filter(|finding| finding.rule.is_same(&first.rule) && finding.point != first.point)
        .filter_map(|finding| finding.point)
        .map(|number| number.to_string())
        .collect();
    match others.as_slice() {
        [] => String::new(),
        _ => format!(" (and at point {})", others.join(", ")),
    }
}

fn push_findings(
    out: &mut String,
    findings: &[Finding],
    title: &str,
    bundle: Option<&Path>,
    extent: &Extent,
) {
    if findings.is_empty() {
        return;
    }
    let describe = |rule: &Rule| match bundle {
        Some(bundle) => finding::text_in(rule, &bundle.display().to_string()),
        None => finding::text(rule),
    };
    let first_of_rule = |(at, finding): &(usize, &Finding)| {
        !findings[..*at].iter().any(|earlier| earlier.rule.is_same(&finding.rule))
    };
    let rules: Vec<&Finding> =
        findings.iter().enumerate().filter(first_of_rule).map(|(_, finding)| finding).collect();
    let more = rules.len().saturating_sub(extent.findings_max);
    // Where lines are few, a separate one would cost a finding.
    let note = match extent.columns {
        Some(_) if more > 0 => format!(" (and {more} more in the report)"),
        _ => String::new(),
    };
    let _ = writeln!(out, "{}  {title}{note}", extent.separator());
    for finding in rules.iter().take(extent.findings_max) {
        let point = finding.point.map_or(String::new(), |number| format!("point {number}: "));
        let text = format!("- {point}{}{}", describe(&finding.rule), elsewhere(finding, findings));
        // A cut command cannot be run.
        let whole = extent.columns.is_none() || finding.rule.is_resumable();
        let _ = writeln!(out, "  {}", if whole { text } else { extent.finding(&text) });
    }
    if more > 0 && extent.columns.is_none() {
        let _ = writeln!(out, "  - and {more} more in the report");
    }
}

/// Whether this finding is shown here.
fn shows(finding: &Finding) -> bool {
    matches!(finding.rule, Rule::ConnectionsLost { .. })
}

/// One class over the points of the ladder.
#[derive(Default)]
struct Class<'r> {
    ops: u64,
    /// From the first point that kept one.
    sample: Option<(u32, &'r str)>,
}

/// The sessions that clients opened and kept, and how long the first and the last took to open.
fn push_sessions(out: &mut String, result: &RunResult) {
    let sustained = result.points.iter().filter_map(|p| Some((p.position, p.sessions.as_ref()?)));
    for (position, sessions) in sustained {
        let [requested, lost] = [sessions.asked, sessions.lost].map(|n| grouped(f64::from(n)));
        let [opened, sustained] = [sessions.opened, sessions.held].map(|n| grouped(n as f64));
        let _ = writeln!(
            out,
            "  sessions at point {position}: {requested} asked for, {opened} opened, {sustained} held at \
             the end, {lost} clients lost"
        );
        let opening = |step: &SessionStep| {
            let [from, to] = [step.from + 1, step.to].map(|n| grouped(n as f64));
            let [p50, p99] = [step.p50_ns, step.p99_ns].map(|ns| Nanos(ns as u64));
            format!("{from} to {to}: p50 {p50}, p99 {p99}")
        };
        if let (Some(first), Some(last)) = (sessions.steps.first(), sessions.steps.last()) {
            let _ = writeln!(out, "    time to open {}; {}", opening(first), opening(last));
        }
    }
}

/// Compound calls at the load point with the highest throughput of those that count.
fn push_compound_calls(out: &mut String, result: &RunResult) {
    let rate = |point: &PointResult| point.achieved_ops_per_s.unwrap_or_default();
    let counted = result.points.iter().filter(|point| point.counts());
    let peak = counted.max_by(|a, b| rate(a).total_cmp(&rate(b)));
    let Some((point, calls)) = peak.and_then(|point| Some((point, point.compound_calls?))) else {
        return;
    };
    let rates = [calls.compounds_per_s, calls.operations_per_s, calls.opens_per_s];
    let [compounds, operations, opens] = rates.map(|rate| grouped(rate.unwrap_or_default()));
    let _ = writeln!(
        out,
        "  compound calls at point {}: {compounds}/s with {operations} operations/s, {opens} opens/s",
        point.position,
    );
}

/// Journeys of users at each load point.
fn push_journeys(out: &mut String, result: &RunResult) {
    let all = result.points.iter().filter_map(|p| Some((p.position, p.journeys.as_ref()?)));
    for (position, journeys) in all {
        let counts = [journeys.begun, journeys.completed, journeys.failed, journeys.abandoned];
        let [begun, completed, failed, abandoned] = counts.map(|n| grouped(n as f64));
        let time = journeys.time_ns.and_then(|times| times.p50);
        let ended = journeys.completed + journeys.failed + journeys.abandoned;
        let time = match time {
            // Their times would be those of the short ones.
            _ if 10 * ended < 9 * journeys.begun => {
                "; the longer ones had not ended: warm up and measure longer".to_owned()
            }
            Some(p50) => format!("; half of them within {}, think times included", Nanos(p50)),
            None => String::new(),
        };
        let _ = writeln!(
            out,
            "  journeys at point {position}: {begun} begun, {completed} completed, {failed} failed, \
             {abandoned} abandoned{time}"
        );
    }
}

/// Failures, before their consequences: lost connections, and one sample of each class of errors.
/// Empty if no op failed or no details are known.
fn push_errors(out: &mut String, result: &RunResult, style: Style, extent: &Extent) {
    let warnings = &result.verdict.warnings;
    let connections = warnings.iter().find(|finding| shows(finding)).map(|finding| {
        let location = finding.point.map_or(String::new(), |number| format!("point {number}: "));
        let text = finding::text(&finding.rule);
        format!("- {location}{text}{}", elsewhere(finding, warnings))
    });
    let classes = classes(result);
    let samples = classes.iter().filter_map(|(name, class)| {
        let (point, sample) = class.sample?;
        let sample = sample.replacen(&marker(name), ":", 1);
        Some(format!(
            "- {name}, {} ops, first at point {point}: {sample}",
            grouped(class.ops as f64)
        ))
    });
    let lines: Vec<String> = connections.into_iter().chain(samples).collect();
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "{}  {}", extent.separator(), style.mixed("Errors"));
    for line in lines.iter().take(extent.findings_max) {
        let _ = writeln!(out, "  {}", extent.finding(line));
    }
}

/// The most frequent first.
fn classes(result: &RunResult) -> Vec<(&str, Class<'_>)> {
    let mut classes: BTreeMap<&str, Class<'_>> = BTreeMap::new();
    for point in &result.points {
        for (name, ops) in &point.errors {
            let class = classes.entry(name).or_default();
            class.ops += ops;
            let sample = point.error_samples.iter().find(|text| text.contains(&marker(name)));
            class.sample = class.sample.or(sample.map(|text| (point.position, text.as_str())));
        }
    }
    let mut classes: Vec<_> = classes.into_iter().collect();
    classes.sort_by_key(|(_, class)| std::cmp::Reverse(class.ops));
    classes
}

/// Samples read `op (class): detail`.
fn marker(class: &str) -> String {
    format!(" ({class}):")
}
