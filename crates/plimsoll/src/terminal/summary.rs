//! The end of a run on one screen.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::path::Path;

use plimsoll_model::result::{Finding, PointResult, RunResult};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::{Bytes, BytesPerSec, grouped};

use super::Style;
use super::point_line::time;

/// Findings shown of each kind; the report has all.
const FINDINGS_MAX: usize = 4;
/// How findings say that a run can go on.
const RESUME_ADVICE: &str = "plimsoll resume DIR";
/// Rows of the table of points; a longer ladder is thinned, its ends kept.
const ROWS_MAX: usize = 12;

/// Verdict, headline, limit, table of points, and where the report is.
pub fn summary(result: &RunResult, report: Option<&Path>, style: Style) -> String {
    let mut out = String::new();
    push_headline(&mut out, result, style);
    push_table(&mut out, result, style);
    for (title, findings) in
        [("Reasons", &result.verdict.reasons), ("Warnings", &result.verdict.warnings)]
    {
        push_findings(&mut out, title, findings, style);
    }
    if let Some(dir) = report.and_then(Path::parent) {
        // Findings do not know where the bundle lies.
        out = out.replace(RESUME_ADVICE, &format!("plimsoll resume {}", dir.display()));
    }
    if let Some(report) = report {
        let _ = writeln!(out, "\nReport: {}", report.display());
    }
    out
}

fn push_headline(out: &mut String, result: &RunResult, style: Style) {
    let profile = result.profile.as_deref().unwrap_or_default();
    let word = if result.verdict.valid { style.good("valid") } else { style.bad("invalid") };
    let scaled =
        if matches!(profile, "quick" | "demo") { format!(" ({profile})") } else { String::new() };
    let suite = result.suite.as_ref().map_or("curve", |suite| suite.name.as_str());
    let _ =
        writeln!(out, "\n{} on {}, {word}{scaled}", style.bold(suite), result.targets.join(", "));
    let summary = &result.summary;
    push_score(out, result, style);
    if !summary.metric.is_empty() {
        let value = summary.value.map_or("none".to_owned(), |value| value_text(value, result));
        let _ = writeln!(out, "  {}: {}", summary.metric, style.bold(&value));
    }
    // Said already where the headline is the peak.
    let said = |peak: &f64| summary.value == Some(*peak) || metric(result) == Metric::Bytes;
    if let Some(peak) = summary.peak_ops_per_s.filter(|peak| !said(peak)) {
        let bytes =
            summary.peak_bytes_per_s.map_or(String::new(), |b| format!(", {}/s", Bytes(b as u64)));
        let _ = writeln!(out, "  highest rate of any point: {} ops/s{bytes}", grouped(peak));
    }
    let curve = result.points.len() > 1;
    if let Some(origin) = summary.overall_response_ms.origin.filter(|_| curve) {
        let span = summary.overall_response_ms.span;
        let span = span.map_or(String::new(), |span| format!(" (origin), {span:.3} ms (span)"));
        let _ = writeln!(out, "  overall response: {origin:.3} ms{span}");
    }
    if let Some(limit) = &summary.limit {
        let _ = writeln!(out, "  limit: {limit}");
    }
    if let Some(search) = &summary.peak_search {
        let _ = writeln!(out, "  {search}");
    }
}

/// Before the peak, where the suite has one.
fn push_score(out: &mut String, result: &RunResult, style: Style) {
    let Some(note) = &result.summary.score_note else { return };
    let _ = match result.summary.score {
        Some(score) => writeln!(out, "  score: {} tps ({note})", style.bold(&grouped(score))),
        None => writeln!(out, "  score: {note}"),
    };
}

fn metric(result: &RunResult) -> Metric {
    result.suite.as_ref().map(|suite| suite.metric).unwrap_or_default()
}

/// The headline; bytes in both units people compare.
fn value_text(value: f64, result: &RunResult) -> String {
    let text = format!("{} {}", grouped(value), result.summary.unit);
    match metric(result) {
        Metric::Ops | Metric::Logons => text,
        Metric::Bytes => {
            let rate = BytesPerSec(value);
            format!("{text} ({:.2} MiB/s, {:.1} Mbit/s)", rate.mib_per_s(), rate.mbit_per_s())
        }
    }
}

fn push_table(out: &mut String, result: &RunResult, style: Style) {
    if result.points.is_empty() {
        return;
    }
    let unit = match result.axis.name.as_str() {
        "think time" => "think time s",
        _ => &result.axis.unit,
    };
    let (bytes, ops) = match metric(result) {
        Metric::Bytes => (format!("{:>9}  {:>9}  ", "took part", "MiB/s"), Metric::Ops.unit()),
        other => (String::new(), other.unit()),
    };
    let scored = result.points.iter().any(|point| point.score.is_some());
    let in_column = |text: String| if scored { format!("{text:>9}  ") } else { String::new() };
    let score = in_column("score".to_owned());
    let _ = writeln!(
        out,
        "\n  {}",
        style.dim(&format!(
            "{:>12}  {bytes}{:>12}  {score}{:>9}  {:>9}  {:>9}  {:>7}  {:>5}",
            unit, ops, "p50", "p95", "p99", "errors", "busy"
        ))
    );
    for point in thinned(&result.points, metric(result)) {
        let score = in_column(point.score.map_or("–".to_owned(), grouped));
        let _ = writeln!(out, "  {}", row(point, metric(result), &score, style));
    }
    if result.points.len() > ROWS_MAX {
        let _ = writeln!(out, "  {}", style.dim("(some points left out; the report has all)"));
    }
}

fn row(point: &PointResult, metric: Metric, score: &str, style: Style) -> String {
    let times = point.response_ns.unwrap_or_default();
    let errors: u64 = point.errors.values().sum();
    let busy = point
        .generator
        .cpu_busy_ratio_max
        .map_or("–".to_owned(), |ratio| format!("{:.0} %", ratio * 100.0));
    let mark = match (point.valid, &point.not_counted) {
        (false, _) => style.bad("invalid"),
        (true, Some(_)) => style.mixed("not counted"),
        (true, None) => style.good("valid"),
    };
    let bytes = match metric {
        Metric::Ops | Metric::Logons => String::new(),
        Metric::Bytes => {
            let rate = point.achieved_bytes_per_s.map(|rate| BytesPerSec(rate).mib_per_s());
            let rate = rate.map_or("–".to_owned(), |rate| format!("{rate:.2}"));
            let clients = point.clients_participating.map_or("–".to_owned(), |n| n.to_string());
            format!("{clients:>9}  {rate:>9}  ")
        }
    };
    format!(
        "{:>12}  {bytes}{:>12}  {score}{:>9}  {:>9}  {:>9}  {errors:>7}  {busy:>5}  {mark}",
        grouped(point.requested),
        point.achieved_ops_per_s.map_or("–".to_owned(), grouped),
        time(times.p50),
        time(times.p95),
        time(times.p99),
    )
}

/// At most [`ROWS_MAX`] points, evenly chosen: the first, the last and the best of those that
/// count are among them.
fn thinned(points: &[PointResult], metric: Metric) -> Vec<&PointResult> {
    if points.len() <= ROWS_MAX {
        return points.iter().collect();
    }
    let last = points.len() - 1;
    let mut chosen: Vec<usize> = (0..ROWS_MAX).map(|k| k * last / (ROWS_MAX - 1)).collect();
    let value = |at: &usize| match metric {
        Metric::Bytes => points[*at].achieved_bytes_per_s,
        _ => points[*at].achieved_ops_per_s,
    };
    let counting = (0..=last).filter(|at| points[*at].counts());
    let best = counting.max_by(|a, b| value(a).partial_cmp(&value(b)).unwrap_or(Ordering::Equal));
    if let Some(best) = best.filter(|best| (1..last).contains(best))
        && let Some(near) = chosen[1..ROWS_MAX - 1].iter_mut().min_by_key(|at| at.abs_diff(best))
    {
        *near = best;
    }
    chosen.into_iter().map(|at| &points[at]).collect()
}

/// Where else the same rule speaks: ` (and at point 3, 5)`.
fn elsewhere(first: &Finding, findings: &[Finding]) -> String {
    let others: Vec<String> = findings
        .iter()
        .filter(|finding| finding.rule == first.rule && finding.point != first.point)
        .filter_map(|finding| finding.point)
        .map(|number| number.to_string())
        .collect();
    match others.as_slice() {
        [] => String::new(),
        _ => format!(" (and at point {})", others.join(", ")),
    }
}

fn push_findings(out: &mut String, title: &str, findings: &[Finding], style: Style) {
    if findings.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n  {}", style.mixed(title));
    let first_of_rule = |(at, finding): &(usize, &Finding)| {
        !findings[..*at].iter().any(|earlier| earlier.rule == finding.rule)
    };
    let rules: Vec<&Finding> =
        findings.iter().enumerate().filter(first_of_rule).map(|(_, finding)| finding).collect();
    for finding in rules.iter().take(FINDINGS_MAX) {
        let point = finding.point.map_or(String::new(), |number| format!("point {number}: "));
        let _ = writeln!(out, "  - {point}{}{}", finding.text, elsewhere(finding, findings));
    }
    if let Some(more) = rules.len().checked_sub(FINDINGS_MAX).filter(|more| *more > 0) {
        let _ = writeln!(out, "  - and {more} more in the report");
    }
}
