//! Prometheus' text format (version 0.0.4, as far as counters and gauges need it).

use std::collections::{BTreeMap, HashMap};

/// One sample of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrometheusSample<'t> {
    /// Name of the metric.
    pub name: &'t str,
    /// The text between the braces, as written; empty without braces.
    pub labels: &'t str,
    /// Its value; always finite.
    pub value: f64,
}

/// The samples of a text in their order. Comments, lines that are no samples, and values that are
/// no numbers (`NaN`, `+Inf`) are left out.
pub fn parse_prometheus(text: &str) -> Vec<PrometheusSample<'_>> {
    text.lines().filter_map(|line| parse_line(line.trim())).collect()
}

fn parse_line(line: &str) -> Option<PrometheusSample<'_>> {
    if line.starts_with('#') {
        return None;
    }
    let end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let (name, rest) = line.split_at(end);
    if name.is_empty() {
        return None;
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        None => ("", rest),
        Some(inside) => inside.split_at_checked(end_of_labels(inside)?)?,
    };
    // A timestamp may follow.
    let value = rest.trim_start_matches('}').split_whitespace().next()?;
    let value = value.parse().ok().filter(|value: &f64| value.is_finite())?;
    Some(PrometheusSample { name, labels, value })
}

/// Position of the closing brace; one within a quoted value does not count.
fn end_of_labels(text: &str) -> Option<usize> {
    let mut quoted = false;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '}' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// The samples of a text by the name of their metric.
#[derive(Debug)]
pub struct Metrics<'t>(HashMap<&'t str, Vec<&'t PrometheusSample<'t>>>);

impl<'t> Metrics<'t> {
    /// Sorts them.
    pub fn from_samples(samples: &'t [PrometheusSample<'t>]) -> Self {
        let mut by_name: HashMap<&str, Vec<&PrometheusSample<'_>>> = HashMap::new();
        for sample in samples {
            by_name.entry(sample.name).or_default().push(sample);
        }
        Self(by_name)
    }

    /// There is a sample of it.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Sum over all labels.
    pub fn sum(&self, name: &str) -> Option<f64> {
        self.sum_of(name, |_| true)
    }

    /// The same of a counter or a number of things.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.sum(name).map(whole)
    }

    /// Sum over the labels that are included.
    pub fn sum_of(&self, name: &str, is_included: impl Fn(&str) -> bool) -> Option<f64> {
        let samples = self.0.get(name)?.iter().filter(|sample| is_included(sample.labels));
        samples.map(|sample| sample.value).reduce(|a, b| a + b)
    }

    /// Mean over all labels.
    pub fn mean(&self, name: &str) -> Option<f64> {
        Some(self.sum(name)? / self.0.get(name)?.len() as f64)
    }

    /// By the value of a label, summed over the others.
    pub fn by(&self, name: &str, label: &str) -> BTreeMap<String, f64> {
        let mut by: BTreeMap<String, f64> = BTreeMap::new();
        for sample in self.0.get(name).into_iter().flatten() {
            if let Some(value) = label_value(sample.labels, label) {
                *by.entry(value).or_default() += sample.value;
            }
        }
        by
    }

    /// By the values of two labels.
    pub fn by_two(&self, name: &str, labels: [&str; 2]) -> BTreeMap<String, BTreeMap<String, f64>> {
        let mut by: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        for sample in self.0.get(name).into_iter().flatten() {
            if let [Some(first), Some(second)] =
                labels.map(|label| label_value(sample.labels, label))
            {
                by.entry(first).or_default().insert(second, sample.value);
            }
        }
        by
    }

    /// A label of the only sample of a metric.
    pub fn label(&self, name: &str, label: &str) -> Option<String> {
        label_value(self.0.get(name)?.first()?.labels, label)
    }
}

/// A counter; what is below zero counts as zero.
pub(crate) fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Value of a label in the text between the braces, unescaped.
fn label_value(labels: &str, label: &str) -> Option<String> {
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
        if name.trim_matches([',', ' ']) == label {
            return end.map(|_| value);
        }
        rest = &after[end? + 1..];
    }
}

#[cfg(test)]
mod tests;
