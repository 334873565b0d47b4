//! The sentences of findings, limits, hints and nonconformities, from their facts. They are made
//! here only; `result.json` has them beside the facts, for people who read the file.

pub mod capacity;
pub mod finding;
pub mod hint;
pub mod late;
pub mod limit;
pub mod nonconformity;
pub mod recovery;

use plimsoll_model::finding::Finding;
use plimsoll_model::limit::{Limit, LimitFacts};
use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::sentences::Sentences;

/// For analysis, whose own sentences contain some of these.
pub const SENTENCES: Sentences = Sentences {
    why: capacity::why,
    limit: limit::text,
    limit_with_others: limit::text_with_others,
    unknown_limit: limit::unknown,
};

/// Fills every `text` and `why` of a result, as `result.json` has them.
pub fn add_to_result(result: &mut RunResult) {
    result.points.iter_mut().chain(&mut result.probes).for_each(add_to_point);
    add_to_findings(&mut result.verdict.reasons);
    add_to_findings(&mut result.verdict.warnings);
    let unit = &result.axis.unit;
    result.recovery.iter_mut().for_each(|it| it.text = recovery::text(it, unit));
    let summary = &mut result.summary;
    summary.limits.iter_mut().for_each(|span| add_to_limit(&mut span.limit));
    summary.capacity.iter_mut().for_each(|capacity| add_to_limit(&mut capacity.limit));
    for attempt in summary.capacity_search.iter_mut().flat_map(|search| &mut search.tries) {
        attempt.why = capacity::why(attempt);
    }
}

fn add_to_point(point: &mut PointResult) {
    let PointResult { reasons, warnings, not_counted_because, limit, .. } = point;
    add_to_findings(reasons);
    add_to_findings(warnings);
    add_to_findings(not_counted_because);
    add_to_limit(limit);
}

/// Fills every `text` of some findings.
pub fn add_to_findings<'f>(findings: impl IntoIterator<Item = &'f mut Finding>) {
    for finding in findings {
        finding.text = finding::text(&finding.rule);
    }
}

fn add_to_limit(limit: &mut Limit) {
    limit.text = limit::text(limit);
    limit.also.iter_mut().for_each(add_to_limit);
    limit.behind.iter_mut().for_each(|behind| add_to_limit(behind));
    if let LimitFacts::Memory { fills, .. } = &mut limit.facts {
        fills.iter_mut().for_each(add_to_limit);
    }
}

#[cfg(test)]
mod testing {
    use serde::de::DeserializeOwned;

    pub(super) fn from_facts<F: DeserializeOwned>(facts: &str) -> F {
        serde_json::from_str(facts).unwrap_or_else(|error| panic!("{facts}: {error}"))
    }

    /// Kinds of facts that no test in these files has. Who asks for an unknown kind is told all.
    pub(super) fn untested<F: DeserializeOwned>(files: &[&str]) -> Vec<String> {
        let Err(error) = serde_json::from_str::<F>(r#"{"kind": ""}"#) else { return Vec::new() };
        let error = error.to_string();
        let kinds = error.split('`').skip(1).step_by(2).skip(1);
        let is_tested = |kind: &str| {
            files.iter().any(|file| file.contains(&format!(r##"r#"{{"kind": "{kind}""##)))
        };
        kinds.filter(|kind| !is_tested(kind)).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::finding::Rule;
    use plimsoll_model::limit::{LimitKind, ServerCores};
    use plimsoll_model::units::Nanos;

    use super::*;

    fn in_result(finding: Finding, limit: Limit) -> PointResult {
        let point = PointResult { reasons: vec![finding], limit, ..PointResult::default() };
        let mut run = RunResult { points: vec![point], ..RunResult::default() };
        add_to_result(&mut run);
        run.points.remove(0)
    }

    #[test]
    fn a_finding_in_json_has_the_name_the_text_and_the_facts_and_survives() {
        let rule = Rule::Connections {
            percentile: "p99".into(),
            all_ns: Nanos::from_millis(4),
            own_ns: Nanos::from_millis(1),
            limit_ns: Nanos::from_millis(2),
        };
        let finding = in_result(rule.of_point(3), Limit::default()).reasons.remove(0);
        let json = serde_json::to_value(&finding).unwrap();
        assert_eq!(json["rule"], "connections");
        assert_eq!(json["facts"]["all_ns"], 4_000_000);
        assert_eq!(json["point"], 3);
        assert!(json["text"].as_str().unwrap().starts_with("ops waited for a free connection"));
        assert_eq!(serde_json::from_value::<Finding>(json).unwrap(), finding);
    }

    #[test]
    fn a_limit_in_json_has_its_text_and_facts_and_survives_and_an_older_one_is_read() {
        let cores = ServerCores { count: 1.0, number: Some(1), of_host: false };
        let facts = LimitFacts::CoresByTurns { cores, full_ratio: 0.4 };
        let limit = Limit { only_load: true, ..Limit::new(facts, Vec::new()) };
        let limit = in_result(Rule::DebugBuild.of_run(), limit).limit;
        let mut json = serde_json::to_value(&limit).unwrap();
        assert_eq!((json["kind"].as_str(), json["place"].as_str()), (Some("core"), Some("core 1")));
        assert_eq!(json["facts"]["full_ratio"], 0.4);
        let text = "by turns of less than a second core 1, full in 40 % of the samples of 50 ms, \
                    at this one load";
        assert_eq!(json["text"], text);
        assert_eq!(serde_json::from_value::<Limit>(json.clone()).unwrap(), limit);
        json.as_object_mut().unwrap().remove("facts");
        let old = serde_json::from_value::<Limit>(json).unwrap();
        assert_eq!((old.kind, old.facts), (LimitKind::Core, LimitFacts::Unsaid));
    }

    #[test]
    fn every_limit_within_a_limit_has_its_text() {
        let disk = || LimitFacts::BusyDisk { disk: "vda".into(), busy_ratio: 1.0, queued: 3.0 };
        let disk = || Limit::new(disk(), Vec::new());
        let facts = LimitFacts::Memory {
            used_ratio: 1.0,
            limit_bytes: 1e9,
            pages_per_op: 2.0,
            fills: vec![disk()],
        };
        let also = vec![disk()];
        let limit = Limit { also, behind: Some(disk().into()), ..Limit::new(facts, Vec::new()) };
        let limit = in_result(Rule::DebugBuild.of_run(), limit).limit;
        let LimitFacts::Memory { fills, .. } = &limit.facts else { panic!("{limit:?}") };
        for inner in [&fills[0], &limit.also[0], limit.behind.as_ref().unwrap()] {
            assert_eq!(
                inner.text,
                "the disk vda: it was 100 % busy with 3.0 requests in its queue"
            );
        }
    }
}
