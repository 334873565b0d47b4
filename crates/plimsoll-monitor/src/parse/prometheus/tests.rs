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
    let metrics = Metrics::from_samples(&samples);
    assert_eq!(metrics.sum_of("requests_total", |_| true), Some(42.0));
    let reads = |labels: &str| labels.contains("type=\"read\"");
    assert_eq!(metrics.sum_of("requests_total", reads), Some(12.0));
    assert_eq!(metrics.sum_of("threads", reads), None);
    assert_eq!(metrics.sum_of("queue", |_| true), None);
}

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
    let text = "a_total{x=\"1\",y=\"p\"} 2\na_total{x=\"1\",y=\"q\"} 3\na_total{x=\"2\"} 4\nb 1\n";
    let samples = parse_prometheus(text);
    let metrics = Metrics::from_samples(&samples);
    assert_eq!(metrics.sum("a_total"), Some(9.0));
    assert_eq!(metrics.by("a_total", "x"), [("1".into(), 5.0), ("2".into(), 4.0)].into());
    let by_two = [("p".into(), 2.0), ("q".into(), 3.0)].into();
    assert_eq!(metrics.by_two("a_total", ["x", "y"]), [("1".into(), by_two)].into());
    assert_eq!((metrics.count("a_total"), metrics.count("c")), (Some(9), None));
}

proptest! {
    #[test]
    fn no_text_is_too_odd(text in "[a{}\"\\\\ 0-9=.#\n\u{e9}-]{0,80}") {
        for sample in parse_prometheus(&text) {
            prop_assert!(sample.value.is_finite());
        }
    }

    #[test]
    fn no_labels_are_too_odd(labels in "[a=\",\\\\ \u{e9}]{0,60}") {
        label_value(&labels, "a");
    }
}
