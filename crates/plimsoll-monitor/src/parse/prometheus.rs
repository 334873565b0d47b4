//! Prometheus' text format, version 0.0.4, as far as counters and gauges need it.

/// One sample of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrometheusSample<'t> {
    /// Name of the metric.
    pub name: &'t str,
    /// What stands between the braces, as written; empty without braces.
    pub labels: &'t str,
    /// Its value; always finite.
    pub value: f64,
}

/// The samples of a text in their order. Comments, lines that are no samples, and values that are
/// no numbers (`NaN`, `+Inf`) are left out.
pub fn parse_prometheus(text: &str) -> Vec<PrometheusSample<'_>> {
    text.lines().filter_map(|line| parse_line(line.trim())).collect()
}

/// Sum of the samples of a metric whose labels are wanted; absent when there are none.
pub fn sum_of(
    samples: &[PrometheusSample<'_>],
    name: &str,
    wanted: impl Fn(&str) -> bool,
) -> Option<f64> {
    let mut found = samples.iter().filter(|s| s.name == name && wanted(s.labels)).peekable();
    found.peek()?;
    Some(found.map(|sample| sample.value).sum())
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

/// Where the closing brace stands: one within a quoted value does not count.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "# HELP threads Service threads.\n# TYPE threads gauge\nthreads 49\n\
        requests_total{type=\"read\",status=\"ok\"} 12\n\
        requests_total{type=\"write\",status=\"ok\"} 30 1395066363000\n\
        odd{path=\"a}b\\\"c\"} 1.5e3\nnothing\nbroken{a=\"b\" 7\nwait_seconds_total NaN\n\n";

    #[test]
    fn samples_have_name_labels_and_value() {
        let samples = parse_prometheus(TEXT);
        let names: Vec<&str> = samples.iter().map(|sample| sample.name).collect();
        assert_eq!(names, ["threads", "requests_total", "requests_total", "odd"]);
        assert_eq!(samples[3].labels, "path=\"a}b\\\"c\"");
        assert_eq!(samples[3].value, 1_500.0);
    }

    #[test]
    fn sums_are_over_the_wanted_labels_and_absent_without_any() {
        let samples = parse_prometheus(TEXT);
        assert_eq!(sum_of(&samples, "requests_total", |_| true), Some(42.0));
        let reads = |labels: &str| labels.contains("type=\"read\"");
        assert_eq!(sum_of(&samples, "requests_total", reads), Some(12.0));
        assert_eq!(sum_of(&samples, "threads", reads), None);
        assert_eq!(sum_of(&samples, "queue", |_| true), None);
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[a{}\"\\\\ 0-9=.#\n\u{e9}-]{0,80}") {
            for sample in parse_prometheus(&text) {
                prop_assert!(sample.value.is_finite());
            }
        }
    }
}
