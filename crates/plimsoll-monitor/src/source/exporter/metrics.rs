//! Samples of an exporter by name and label. Pure.

use std::collections::{BTreeMap, HashMap};

use crate::parse::PrometheusSample;

/// Samples by the name of their metric.
pub(super) struct Metrics<'t>(HashMap<&'t str, Vec<&'t PrometheusSample<'t>>>);

impl<'t> Metrics<'t> {
    pub(super) fn of(samples: &'t [PrometheusSample<'t>]) -> Self {
        let mut by_name: HashMap<&str, Vec<&PrometheusSample<'_>>> = HashMap::new();
        for sample in samples {
            by_name.entry(sample.name).or_default().push(sample);
        }
        Self(by_name)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Sum over all labels.
    pub(super) fn sum(&self, name: &str) -> Option<f64> {
        Some(self.0.get(name)?.iter().map(|sample| sample.value).sum())
    }

    /// By the value of a label, summed over the others.
    pub(super) fn by(&self, name: &str, label: &str) -> BTreeMap<String, f64> {
        let mut by: BTreeMap<String, f64> = BTreeMap::new();
        for sample in self.0.get(name).into_iter().flatten() {
            if let Some(value) = label_value(sample.labels, label) {
                *by.entry(value).or_default() += sample.value;
            }
        }
        by
    }

    /// By the values of two labels.
    pub(super) fn by_two(&self, name: &str, labels: [&str; 2]) -> BTreeMap<[String; 2], f64> {
        let samples = self.0.get(name).into_iter().flatten();
        let keyed = samples.filter_map(|sample| {
            let [first, second] = labels.map(|label| label_value(sample.labels, label));
            Some(([first?, second?], sample.value))
        });
        keyed.collect()
    }

    /// What follows `prefix` in the names of metrics, with their sums, sorted.
    pub(super) fn below<'a>(&'a self, prefix: &'a str) -> BTreeMap<&'t str, f64> {
        let below = self.0.keys().filter_map(|name| Some((name.strip_prefix(prefix)?, *name)));
        below.filter_map(|(rest, name)| Some((rest, self.sum(name)?))).collect()
    }

    /// A label of the only sample of a metric.
    pub(super) fn label(&self, name: &str, label: &str) -> Option<String> {
        label_value(self.0.get(name)?.first()?.labels, label)
    }
}

/// Value of a label in what stands between the braces, with its escapes undone.
fn label_value(labels: &str, wanted: &str) -> Option<String> {
    let mut rest = labels;
    loop {
        let (name, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut escaped = false;
        let mut end = None;
        for (at, c) in after.char_indices() {
            match c {
                'n' if escaped => value.push('\n'),
                _ if escaped => value.push(c),
                '\\' => {}
                '"' => {
                    end = Some(at);
                    break;
                }
                _ => value.push(c),
            }
            escaped = c == '\\' && !escaped;
        }
        if name.trim_matches([',', ' ']) == wanted {
            return end.map(|_| value);
        }
        rest = &after[end? + 1..];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse::parse_prometheus;

    #[test]
    fn a_label_is_found_whatever_the_others_hold() {
        let labels = r#"nic="a \"b\", mode=\"x\" \\",mode="idle", core="0,1""#;
        assert_eq!(label_value(labels, "mode").as_deref(), Some("idle"));
        assert_eq!(label_value(labels, "nic").as_deref(), Some(r#"a "b", mode="x" \"#));
        assert_eq!(label_value(labels, "core").as_deref(), Some("0,1"));
        assert_eq!(label_value(labels, "cor"), None);
        assert_eq!(label_value("mode=\"open", "mode"), None);
    }

    #[test]
    fn samples_are_summed_by_a_label() {
        let text =
            "a_total{x=\"1\",y=\"p\"} 2\na_total{x=\"1\",y=\"q\"} 3\na_total{x=\"2\"} 4\nb 1\n";
        let samples = parse_prometheus(text);
        let metrics = Metrics::of(&samples);
        assert_eq!(metrics.sum("a_total"), Some(9.0));
        assert_eq!(metrics.by("a_total", "x"), [("1".into(), 5.0), ("2".into(), 4.0)].into());
        assert_eq!(metrics.by_two("a_total", ["x", "y"]).len(), 2);
        assert_eq!(metrics.below("a_"), [("total", 9.0)].into());
    }

    proptest! {
        #[test]
        fn no_labels_are_too_odd(labels in "[a=\",\\\\ \u{e9}]{0,60}") {
            label_value(&labels, "a");
        }
    }
}
