//! Verdict and gates in the XML that CI systems show.

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment};
use plimsoll_model::comparison::Comparison;
use plimsoll_model::gate::GateState;
use plimsoll_model::reported::gate_text;
use plimsoll_model::result::RunResult;
use serde::Serialize;

use crate::comparison::title as comparison_title;
use crate::html::ReportError;
use crate::sentences::finding;
use crate::view::ratios;

#[derive(Serialize)]
struct JunitFile {
    tests: usize,
    failures: usize,
    suites: Vec<Suite>,
}

#[derive(Serialize)]
struct Suite {
    name: String,
    failures: usize,
    skipped: usize,
    cases: Vec<Case>,
}

#[derive(Serialize)]
struct Case {
    name: String,
    failure: Option<String>,
    /// It neither passed nor failed.
    skipped: bool,
    said: String,
}

impl Suite {
    fn new(name: String, cases: Vec<Case>) -> Self {
        let failures = cases.iter().filter(|case| case.failure.is_some()).count();
        let skipped = cases.iter().filter(|case| case.skipped).count();
        Self { name: printable(&name), failures, skipped, cases }
    }
}

/// A test suite for each run: one case for its verdict, one for each gate.
///
/// # Errors
/// When the embedded template does not render, which no result should be able to cause.
pub fn junit(runs: &[RunResult]) -> Result<String, ReportError> {
    render(runs.iter().map(suite).collect())
}

/// A test suite for a comparison: whether like was compared with like, and a case for each
/// condition.
///
/// # Errors
/// When the embedded template does not render, which no document should be able to cause.
pub fn comparison_junit(comparison: &Comparison) -> Result<String, ReportError> {
    let forced = printable(&comparison.forced.join("; "));
    let alike = Case {
        name: "like is compared with like".to_owned(),
        failure: (!forced.is_empty()).then_some(forced),
        skipped: false,
        said: printable(&comparison.notes.join("; ")),
    };
    let gates = comparison.gates.iter().map(|gate| Case {
        name: printable(&format!("{} in {}", gate.expr, gate.group)),
        failure: gate.fails.then(|| printable(&ratios::gate(comparison, gate))),
        skipped: gate.state == GateState::Unsure && !gate.fails,
        said: printable(&ratios::gate(comparison, gate)),
    });
    let cases: Vec<Case> = std::iter::once(alike).chain(gates).collect();
    let name = format!("{} {}", comparison.suite, comparison_title(comparison));
    render(vec![Suite::new(name, cases)])
}

fn render(suites: Vec<Suite>) -> Result<String, ReportError> {
    let file = JunitFile {
        tests: suites.iter().map(|suite| suite.cases.len()).sum(),
        failures: suites.iter().map(|suite| suite.failures).sum(),
        suites,
    };
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("junit.xml", include_str!("../templates/junit.xml"))?;
    Ok(environment.get_template("junit.xml")?.render(Value::from(Serde(file)))?)
}

fn suite(run: &RunResult) -> Suite {
    let name = run.suite.as_ref().map_or("curve from elsewhere", |suite| &suite.name);
    let reasons = run.verdict.reasons.iter().map(|reason| finding::text(&reason.rule));
    let reasons: Vec<String> = reasons.collect();
    let verdict = Case {
        name: "the figures can be trusted".to_owned(),
        failure: (!run.verdict.valid).then(|| printable(&reasons.join("; "))),
        skipped: false,
        said: printable(&run.command.join(" ")),
    };
    let gates = run.gates.iter().map(|gate| Case {
        name: gate.expr.to_string(),
        failure: gate.fails.then(|| gate_text(gate)),
        skipped: gate.state == GateState::Unsure && !gate.fails,
        said: gate_text(gate),
    });
    let cases: Vec<Case> = std::iter::once(verdict).chain(gates).collect();
    Suite::new(format!("{name} {}", run.targets.join(", ")), cases)
}

/// XML 1.0 has no control characters.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_model::finding::Rule;
    use plimsoll_model::gate::{GateResult, GateState};
    use plimsoll_model::result::Verdict;

    use super::*;

    #[test]
    fn verdict_and_gates_are_cases_and_what_failed_says_why() {
        let gate = |expr: &str, state, fails| GateResult {
            expr: expr.parse().unwrap(),
            state,
            fails,
            value: Some(60e6),
            low: Some(55e6),
            high: Some(66e6),
            load: Some(4_000.0),
        };
        let reason =
            Rule::Aborted { cause: "a < b & \u{1b}c".to_owned(), nothing_finished: false }.of_run();
        let run = RunResult {
            verdict: Verdict { valid: false, reasons: vec![reason], warnings: Vec::new() },
            gates: vec![
                gate("p99 > 50ms", GateState::Failed, true),
                gate("p99 > 90ms", GateState::Held, false),
                gate("p99 > 61ms", GateState::Unsure, false),
                gate("p99 > 59ms", GateState::Unsure, true),
            ],
            ..RunResult::default()
        };
        let xml = junit(&[run]).unwrap();
        assert!(xml.contains("<testsuites name=\"plimsoll\" tests=\"5\" failures=\"3\">"), "{xml}");
        assert!(
            xml.contains("message=\"the run could not continue: a &lt; b &amp;  c; mend"),
            "{xml}"
        );
        assert!(xml.contains("name=\"p99 &gt; 50ms\""), "{xml}");
        assert!(xml.contains("p99 &gt; 90ms: held, 60.0 ms (55.0–66.0) at load 4,000"), "{xml}");
        // Neither green nor red: a CI system shows it as skipped.
        assert!(xml.contains("failures=\"3\" skipped=\"1\">"), "{xml}");
        let skipped = "<skipped message=\"p99 &gt; 61ms: unsure, 60.0 ms (55.0–66.0) at load 4,000";
        assert!(xml.contains(skipped), "{xml}");
        assert!(xml.contains("<failure message=\"p99 &gt; 59ms: unsure"), "{xml}");
    }
}
