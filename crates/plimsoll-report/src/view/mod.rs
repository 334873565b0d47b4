//! The content of both the page and the Markdown of a run, as text in order of reading.

mod agents;
mod capacity;
mod compound_calls;
mod consumers;
mod cost;
pub(crate) mod curves;
mod disclosure;
mod disks;
mod errors;
mod executive;
pub(crate) mod experiment;
mod generation;
mod headline;
mod joined;
mod journeys;
mod limits;
mod load_shape;
mod method;
mod moved;
mod names;
mod page_cache;
mod points;
mod price;
mod promises;
mod published;
pub(crate) mod ratios;
mod sessions;
mod shares;

use plimsoll_model::event::Bound;
use plimsoll_model::finding::{Finding, Rule};
use plimsoll_model::limit::LimitKind;
use plimsoll_model::reported::gate_text;
use plimsoll_model::result::RunResult;
use serde::Serialize;

use crate::sentences::{finding, hint};
use crate::table::{Mark, Table};
use crate::text::{command_line, instant, number};

pub(crate) use cost::{CostUnit, cost_name, cost_of_name, cost_text};
pub(crate) use disclosure::Section;
pub(crate) use headline::Figure;
pub(crate) use joined::joined;
pub(crate) use limits::{THIS_HOST, find, has_limits};
pub use limits::{limit_line, limit_name};
pub(crate) use load_shape::joined_point;
pub(crate) use moved::{metric, ops_unit, rate, rate_unit};
pub(crate) use names::{key_of, key_text};
pub use points::not_counted_word;
pub(crate) use points::{LIMIT_COLUMN, caps, selected_points, timeline_table, timeline_time};
pub(crate) use price::{PriceView, price_comparison_table};
pub use published::Supplements;
pub(crate) use published::{PublishedView, SupplementsView, comparison_tables};

/// Said at the end of every report.
pub(crate) const CLOSING: &str = "Plimsoll is an independent implementation of published \
    benchmark methods. It is not affiliated with the owners of the original benchmarks, and its \
    figures are not comparable with official results of those benchmarks.";

#[derive(Debug, Serialize)]
pub(crate) struct RunView {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) targets: Vec<String>,
    pub(crate) valid: bool,
    /// Sign of the verdict, so that it does not depend on colour.
    pub(crate) symbol: &'static str,
    /// `good`, `bad` or `open`.
    pub(crate) mood: &'static str,
    /// `valid (quick)`: the profile is for the eye only.
    pub(crate) verdict: String,
    /// Connections that the server refused or dropped, before all that follows from it.
    pub(crate) connections: Findings,
    pub(crate) reasons: Findings,
    pub(crate) reasons_lead: &'static str,
    pub(crate) warnings: Findings,
    /// Outcomes of the conditions under which the run fails, with a sign.
    pub(crate) gates: Vec<(&'static str, String)>,
    /// What a reader in a hurry must know, a sentence each.
    pub(crate) executive: Vec<String>,
    /// In runs that search one.
    pub(crate) capacity: Option<capacity::CapacityView>,
    pub(crate) figures: Vec<Figure>,
    /// Which point the headline's response times belong to.
    pub(crate) figures_note: String,
    /// What the uncertainty intervals of those figures are made of.
    pub(crate) budget: Table,
    pub(crate) budget_note: &'static str,
    pub(crate) limit: String,
    /// Signs that point at a known cause, a sentence each.
    pub(crate) hints: Vec<String>,
    /// Asymptotes, knee and peak in one line.
    pub(crate) curve: String,
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) departures: Vec<String>,
    /// How many, and what they deviate from.
    pub(crate) departures_lead: String,
    pub(crate) method: method::MethodView,
    pub(crate) command: String,
    /// What the command leaves to chance, and what does not.
    pub(crate) repeat_note: String,
    /// Bytes moved at each point, for suites that count them.
    pub(crate) moved: Table,
    pub(crate) points: Table,
    pub(crate) points_note: String,
    /// Some point is left out of the headline.
    pub(crate) leaves_out: bool,
    /// The generator's health, where a chart would have one dot.
    pub(crate) generator_note: String,
    /// The same of each point of a ladder.
    pub(crate) generator: Table,
    /// What each agent did.
    pub(crate) agents: Table,
    /// Each point has its limit.
    pub(crate) limited: bool,
    /// The figures that show what limited a point, for points limited by a resource.
    pub(crate) evidence: Table,
    /// Which points, with their limit; the text about it, which may be empty.
    pub(crate) limit_texts: Vec<(String, String)>,
    /// A load that changes.
    pub(crate) shape: load_shape::ShapeView,
    /// What an op costs: a table for each host and each separate part of it.
    pub(crate) costs: Vec<Table>,
    pub(crate) cost_note: &'static str,
    pub(crate) page_cache: page_cache::PageCacheView,
    pub(crate) resources: Table,
    pub(crate) consumers: consumers::ConsumersView,
    pub(crate) profile: Option<consumers::ProfileView>,
    pub(crate) errors: Table,
    pub(crate) unexpected: Table,
    pub(crate) error_samples: Vec<(String, Vec<String>)>,
    /// For the headline's point, where there are several kinds of op.
    pub(crate) op_mix: Table,
    pub(crate) generation: generation::GenerationView,
    pub(crate) ops: Vec<Table>,
    pub(crate) per_target: Table,
    pub(crate) sessions: Table,
    pub(crate) compound_calls: Table,
    /// Journeys of users.
    pub(crate) journeys: Table,
    /// Their pages.
    pub(crate) pages: Table,
    pub(crate) session_steps: Table,
    pub(crate) percentiles: Table,
    pub(crate) probes: Table,
    pub(crate) peak_search: String,
    /// How each agent gets to each server.
    pub(crate) networks: Table,
    pub(crate) disclosure: Vec<Section>,
    pub(crate) not_verified: Vec<String>,
}

/// Reasons or warnings: each rule once, with its points and the text of the first. The files have
/// the others.
pub(crate) type Findings = Vec<FindingView>;

#[derive(Debug, Serialize)]
pub(crate) struct FindingView {
    pub(crate) rule: String,
    pub(crate) place: String,
    pub(crate) text: String,
}

fn titles(run: &RunResult) -> (String, String) {
    match &run.suite {
        Some(suite) => {
            (suite.title.clone(), format!("suite {} · method: {}", suite.name, suite.source))
        }
        None => ("Curve from elsewhere".to_owned(), "measured by another program".to_owned()),
    }
}

/// Class of the verdict.
fn mood(run: &RunResult) -> &'static str {
    match (run.verdict.valid, &run.suite) {
        (true, Some(_)) => "good",
        (true, None) => "open",
        (false, _) => "bad",
    }
}

/// What introduces the reasons: figures that are there must not be relied on.
fn reasons_lead(run: &RunResult) -> &'static str {
    match !run.verdict.valid && !run.points.is_empty() {
        true => "Why these figures must not be relied on:",
        false => "Why:",
    }
}

impl RunView {
    pub(crate) fn new(run: &RunResult) -> Self {
        let (title, subtitle) = titles(run);
        let (figures, figures_note) = headline::figures(run);
        let points = points::points_table(run);
        let warnings = run.verdict.warnings.iter();
        let (connections, warnings): (Vec<&Finding>, Vec<&Finding>) =
            warnings.partition(|it| matches!(it.rule, Rule::ConnectionsLost { .. }));
        Self {
            title,
            subtitle,
            targets: run.targets.clone(),
            valid: run.verdict.valid,
            symbol: symbol(run),
            mood: mood(run),
            verdict: verdict(run),
            connections: findings(connections),
            reasons: findings(run.verdict.reasons.iter()),
            reasons_lead: reasons_lead(run),
            warnings: findings(warnings),
            gates: run.gates.iter().map(|it| (it.state.sign(it.fails), gate_text(it))).collect(),
            executive: executive::sentences(run),
            capacity: capacity::view(run),
            figures,
            figures_note,
            budget: headline::budget_table(run),
            budget_note: headline::BUDGET_NOTE,
            limit: run.summary.limit.clone().unwrap_or_default(),
            hints: run.hints.iter().map(hint::text).collect(),
            curve: curve(run),
            facts: facts(run),
            departures: run.departures.clone(),
            departures_lead: method::deviations_lead(run),
            method: method::view(run),
            command: command_line(&run.command),
            repeat_note: repeat_note(run),
            moved: moved::moved_table(run),
            points_note: points::note(run, &points),
            leaves_out: run.points.iter().any(|p| Mark::of_point(p) == Mark::NotCounted),
            points,
            generator_note: points::generator_note(run),
            generator: points::generator_table(run),
            agents: agents::table(run),
            limited: has_limits(run),
            evidence: limits::evidence_table(run),
            limit_texts: limits::texts(run),
            shape: load_shape::view(run),
            costs: cost::cost_tables(run),
            cost_note: cost::COST_NOTE,
            page_cache: page_cache::view(run),
            resources: limits::resource_table(run),
            consumers: consumers::view(run),
            profile: consumers::profile(run),
            errors: errors::errors_table(run),
            unexpected: errors::unexpected_table(run),
            error_samples: errors::error_samples(run),
            op_mix: shares::op_mix(run),
            generation: generation::view(run),
            ops: shares::ops_tables(run),
            per_target: shares::per_target_table(run),
            sessions: sessions::sessions_table(run),
            compound_calls: compound_calls::table(run),
            journeys: journeys::journeys_table(run),
            pages: journeys::pages_table(run),
            session_steps: sessions::steps_table(run),
            percentiles: points::percentiles_table(run),
            probes: points::probes_table(run),
            peak_search: run.summary.peak_search.clone().unwrap_or_default(),
            networks: agents::networks(run),
            disclosure: disclosure::sections(run),
            not_verified: run.disclosure.iter().flat_map(|d| d.not_verified.clone()).collect(),
        }
    }

    /// View of a run in progress. Findings on the run as a whole are left out: most of them are
    /// that the run has not ended.
    pub(crate) fn so_far(run: &RunResult) -> Self {
        let of_points = run.verdict.reasons.iter().filter(|reason| reason.point.is_some());
        let mut all = Self::new(run);
        for figure in all.figures.iter_mut().filter(|figure| figure.value == headline::NONE) {
            "not yet".clone_into(&mut figure.value);
        }
        Self {
            symbol: "…",
            mood: "open",
            verdict: match run.points.len() + run.probes.len() {
                1 => "Under way: 1 load point has finished".to_owned(),
                several => format!("Under way: {several} load points have finished"),
            },
            reasons: findings(of_points),
            reasons_lead: "Points that must not be relied on:",
            gates: Vec::new(),
            executive: Vec::new(),
            ..all
        }
    }
}

fn symbol(run: &RunResult) -> &'static str {
    match (run.verdict.valid, &run.suite) {
        (true, Some(_)) => "✓",
        (true, None) => "?",
        (false, _) => "✗",
    }
}

fn verdict(run: &RunResult) -> String {
    let word = match (run.verdict.valid, &run.suite) {
        (true, Some(_)) => "Valid",
        // Only the content of the file was checked: how it was measured is unknown.
        (true, None) => "Not judged",
        (false, _) => "Invalid",
    };
    match &run.profile {
        Some(profile) => format!("{word} ({profile})"),
        None => word.to_owned(),
    }
}

fn findings<'f>(all: impl IntoIterator<Item = &'f Finding>) -> Findings {
    let mut rules: Vec<(&Finding, Vec<u32>)> = Vec::new();
    for one in all {
        match rules.iter_mut().find(|(first, _)| first.rule.is_same(&one.rule)) {
            Some((_, points)) => points.extend(one.point),
            None => rules.push((one, one.point.into_iter().collect())),
        }
    }
    rules.into_iter().map(|(first, points)| finding(first, &points)).collect()
}

/// `5–10, 12`.
fn positions(points: &[u32]) -> String {
    let runs = points.chunk_by(|a, b| a + 1 == *b);
    let texts: Vec<String> = runs
        .map(|run| match run {
            [first, .., last] => format!("{first}–{last}"),
            other => other.iter().map(u32::to_string).collect(),
        })
        .collect();
    texts.join(", ")
}

fn finding(finding: &Finding, points: &[u32]) -> FindingView {
    FindingView {
        rule: finding.rule.name().replace('_', " "),
        place: match points {
            [] => String::new(),
            [point] => format!("point {point}"),
            [first, also @ ..] => format!("point {first}, also {}", positions(also)),
        },
        text: finding::text(&finding.rule),
    }
}

fn facts(run: &RunResult) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| (name.to_owned(), value)));
    };
    add("Server", servers(run));
    add("Started", run.started.as_deref().map(instant));
    add("Profile", run.profile.clone());
    add("Load points", (!run.points.is_empty()).then(|| run.points.len().to_string()));
    add("Measured per point", headline::window(run));
    let cap_ms = run.suite.as_ref().and_then(|suite| suite.response_cap_ms);
    let cap = cap_ms.map(|cap| format!("mean service time {} ms", number(Some(cap))));
    add("Response cap", cap);
    add("Seed", run.seed.map(|s| s.to_string()));
    let tool = run.disclosure.as_ref().map(|d| &d.tool);
    add("Plimsoll", tool.map(|t| format!("{} ({} build)", t.version, t.build)));
    facts
}

/// What the curve shows. A searched ladder ends where the server still sustained its load.
fn curve(run: &RunResult) -> String {
    let Some(curve) = &run.summary.curve else { return String::new() };
    let free = run.points.iter().all(|point| point.limit.kind == LimitKind::None);
    let searched = !run.probes.is_empty() && run.summary.bound == Bound::Exact;
    let beyond = "; the ladder ends at the peak that the search verified, and only the search \
                  went beyond it, to what limits the server";
    format!("{}{}", curve.text, if free && searched { beyond } else { "" })
}

/// What the command alone does not repeat: a search may end at another load, and a default
/// may change with the version.
fn repeat_note(run: &RunResult) -> String {
    let Some(seed) = run.seed else { return String::new() };
    format!(
        "The seed is {seed}. To have the same load points too, name the folder that the run wrote: \
         plimsoll run --like FOLDER."
    )
}

/// What answered, and whether it had to share the generator's host.
fn servers(run: &RunResult) -> Option<String> {
    let targets = run.disclosure.iter().flat_map(|disclosure| &disclosure.targets);
    let mut servers: Vec<String> = targets
        .map(|target| {
            let software = target.software.as_deref().unwrap_or("software not known");
            let location =
                if target.same_host { "on the generator's host" } else { "on another host" };
            format!("{software}, {location}")
        })
        .collect();
    servers.dedup();
    (!servers.is_empty()).then(|| servers.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_many_points_break_is_one_line_with_its_points() {
        let ambiguous = |at: &u32| Rule::Ambiguous { ops: u64::from(*at) }.of_point(*at);
        let mut all: Vec<Finding> = [2, 5, 6, 7, 9].iter().map(ambiguous).collect();
        all.insert(1, Rule::ForeignCurve.of_run());
        let views = findings(&all);
        let locations: Vec<&str> = views.iter().map(|view| view.place.as_str()).collect();
        assert_eq!(locations, ["point 2, also 5–7, 9", ""]);
        let one = findings(&all[..1]);
        assert_eq!((one.len(), one[0].place.as_str()), (1, "point 2"));
    }
}
