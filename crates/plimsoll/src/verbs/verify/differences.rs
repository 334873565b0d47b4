//! Differences of two JSON documents: path and both values.

use serde_json::Value;

/// Longer values are cut.
const VALUE_CHARS_MAX: usize = 60;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// `points[2].response_ns.p99`; empty for the whole document.
    pub(super) path: String,
    pub(super) stored: String,
    pub(super) fresh: String,
}

/// All differences, down to the leaves that both documents have, in the order of names.
pub(super) fn differences(stored: &Value, fresh: &Value) -> Vec<Difference> {
    let mut collected = Vec::new();
    compare(String::new(), Some(stored), Some(fresh), &mut collected);
    collected
}

fn compare(
    path: String,
    stored: Option<&Value>,
    fresh: Option<&Value>,
    collected: &mut Vec<Difference>,
) {
    match (stored, fresh) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let dot = if path.is_empty() { "" } else { "." };
                compare(format!("{path}{dot}{name}"), a.get(name), b.get(name), collected);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                compare(format!("{path}[{index}]"), a.get(index), b.get(index), collected);
            }
        }
        (a, b) if a == b => {}
        (a, b) => collected.push(Difference { path, stored: text(a), fresh: text(b) }),
    }
}

fn text(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_leaf_that_differs_is_named_with_both_values() {
        let stored = json!({"a": 1, "b": [1, {"c": null}], "gone": "x", "same": 1.5});
        let fresh = json!({"a": 2, "b": [1, {"c": false}, 3], "same": 1.5, "new": {}});
        let lines: Vec<String> = differences(&stored, &fresh)
            .iter()
            .map(|d| format!("{} {} {}", d.path, d.stored, d.fresh))
            .collect();
        assert_eq!(
            lines,
            [
                "a 1 2",
                "b[1].c null false",
                "b[2] nothing 3",
                "gone \"x\" nothing",
                "new nothing {}"
            ]
        );
        assert_eq!(differences(&stored, &stored), []);
        let long = json!("é".repeat(200));
        assert_eq!(differences(&long, &json!(1))[0].stored.chars().count(), VALUE_CHARS_MAX + 1);
    }
}
