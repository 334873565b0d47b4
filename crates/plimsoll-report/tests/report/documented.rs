//! `docs/bundle.md` names every field of a result.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::fixture;

const DOCUMENT: &str = include_str!("../../../../docs/bundle.md");
/// Their keys are names of ops, classes of errors, facts of rules, figures of cost, and things of
/// the disclosure.
const FREE: [&str; 4] = ["errors", "facts", "figures", "disclosure"];

fn collect(value: &Value, fields: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, fields)),
        Value::Object(map) => {
            for (name, value) in map {
                fields.insert(name.clone());
                match (name.as_str(), value) {
                    ("ops", Value::Object(ops)) => {
                        ops.values().for_each(|op| collect(op, fields));
                    }
                    (name, _) if FREE.contains(&name) => {}
                    _ => collect(value, fields),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn every_field_of_a_result_is_documented() {
    let mut fields = BTreeSet::new();
    let runs = [fixture::valid(3), fixture::invalid(3), fixture::nfs(3), fixture::smb(3)];
    let others =
        [fixture::sweep(3), fixture::llm(3), crate::cost::costed(3), crate::page_cache::cached(3)];
    for run in runs.into_iter().chain(others) {
        collect(&serde_json::to_value(run).unwrap(), &mut fields);
    }
    assert!(fields.len() > 60, "{fields:?}");
    let unnamed: Vec<_> = fields
        .iter()
        .filter(|name| {
            let alone = |end: char| DOCUMENT.contains(&format!("`{name}{end}"));
            !alone('`') && !name.starts_with("actual_") && !name.starts_with("expected_")
        })
        .collect();
    assert!(unnamed.is_empty(), "docs/bundle.md says nothing of {unnamed:?}");
}
