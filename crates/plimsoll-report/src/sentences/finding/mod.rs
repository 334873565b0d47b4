//! Findings: cause, measured value, limit, remedy. A file for each question that rules answer; its
//! examples show the sentences of its rules.

mod agents;
mod connections;
mod generator;
mod host;
mod load;
mod precision;
mod record;
mod run;
mod server;
mod tokens;
mod window;

use plimsoll_model::finding::Rule;
use plimsoll_model::units::{grouped, percent};

pub(super) use host::worker_core;
pub use precision::why_never;

/// A bundle that the reader knows himself.
const SOME_BUNDLE: &str = "DIR";

/// What happened and what to do about it.
pub fn text(rule: &Rule) -> String {
    text_in(rule, SOME_BUNDLE)
}

/// The same; `bundle` is the directory that `plimsoll resume` continues.
pub fn text_in(rule: &Rule, bundle: &str) -> String {
    let Text { cause, advice } = explanation(rule, bundle);
    if advice.is_empty() { cause } else { format!("{cause}; {advice}") }
}

/// The text without what to do about it.
pub fn cause(rule: &Rule) -> String {
    explanation(rule, SOME_BUNDLE).cause
}

/// What happened and by how much, and what to do about it.
#[derive(Default)]
struct Text {
    cause: String,
    advice: String,
}

fn explanation(rule: &Rule, bundle: &str) -> Text {
    record::text(rule)
        .or_else(|| generator::text(rule))
        .or_else(|| host::text(rule))
        .or_else(|| agents::text(rule, bundle))
        .or_else(|| load::text(rule))
        .or_else(|| server::text(rule, bundle))
        .or_else(|| connections::text(rule))
        .or_else(|| tokens::text(rule))
        .or_else(|| window::text(rule))
        .or_else(|| precision::text(rule))
        .or_else(|| run::text(rule, bundle))
        .unwrap_or_default()
}

fn advised(cause: impl Into<String>, advice: impl Into<String>) -> Text {
    Text::from(cause.into()).advise(advice)
}

impl From<String> for Text {
    fn from(cause: String) -> Self {
        Self { cause, advice: String::new() }
    }
}

impl Text {
    fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: advice.into(), ..self }
    }
}

fn count(n: u64) -> String {
    grouped(n as f64)
}

/// A part of some ops, in percent.
fn part(ops: u64, of_ops: u64) -> String {
    percent(ops as f64 / of_ops.max(1) as f64)
}

/// A share of all ops, named so, against the share that it should be.
fn uneven(
    (ops, named, part_ops): (u64, &str, u64),
    (off_ratio, limit_ratio): (f64, f64),
) -> String {
    let (off, limit) = (percent(off_ratio), percent(limit_ratio));
    format!(
        "did {} ops where {named} is {}: {off} off (limit {limit})",
        count(ops),
        count(part_ops)
    )
}

#[cfg(test)]
mod testing {
    use super::super::testing::from_facts;
    use super::*;

    const DOCUMENT: &str = include_str!("../../../../../docs/validity.md");

    /// Each rule has its sentence, and is explained to users.
    pub(super) fn check(sentences: &[(&str, &str)]) {
        for (facts, sentence) in sentences {
            let rule: Rule = from_facts(facts);
            assert_eq!(text(&rule), *sentence, "{facts}");
            let cause = cause(&rule);
            assert!(sentence.starts_with(&cause) && !cause.is_empty(), "{cause}");
            assert!(DOCUMENT.contains(&format!("`{}`", rule.name())), "{facts}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{from_facts, untested};
    use super::*;

    #[test]
    fn every_rule_is_tested() {
        let files = [
            include_str!("agents.rs"),
            include_str!("connections.rs"),
            include_str!("generator.rs"),
            include_str!("host.rs"),
            include_str!("load.rs"),
            include_str!("precision.rs"),
            include_str!("record.rs"),
            include_str!("run.rs"),
            include_str!("server.rs"),
            include_str!("tokens.rs"),
            include_str!("window.rs"),
        ];
        assert_eq!(untested::<Rule>(&files), [""; 0]);
    }

    #[test]
    fn a_bundle_is_named_where_it_can_be_resumed() {
        let stopped = r#"{"kind": "interrupted", "how": "stopped"}"#;
        let lost = r#"{"kind": "server_lost", "from_second": null, "made_again": false,
                       "server": {"target": "http://a/", "sign": "ended"}}"#;
        for facts in [stopped, lost] {
            let text = text_in(&from_facts(facts), "out/1");
            assert!(text.contains("plimsoll resume out/1"), "{text}");
        }
    }
}
