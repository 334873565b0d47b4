//! What failed, before anything that follows from it: lost connections, and one sample of each
//! class of errors.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_model::finding::{Finding, Rule};
use plimsoll_model::result::RunResult;
use plimsoll_model::units::grouped;

use super::super::Style;
use super::elsewhere;
use super::extent::Extent;

/// Is this finding shown here?
pub(super) fn shows(finding: &Finding) -> bool {
    matches!(finding.rule, Rule::ConnectionsLost { .. })
}

/// One class over the points of the ladder.
#[derive(Default)]
struct Class<'r> {
    ops: u64,
    /// Of the first point that kept one.
    sample: Option<(u32, &'r str)>,
}

/// Nothing where no op failed, or none is known closer.
pub(super) fn push(out: &mut String, result: &RunResult, style: Style, extent: &Extent) {
    let warnings = &result.verdict.warnings;
    let connections = warnings.iter().find(|finding| shows(finding)).map(|finding| {
        let place = finding.point.map_or(String::new(), |number| format!("point {number}: "));
        format!("- {place}{}{}", finding.rule, elsewhere(finding, warnings))
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
    let _ = writeln!(out, "{}  {}", extent.gap(), style.mixed("Errors"));
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
