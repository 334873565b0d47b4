use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::*;

const DASHBOARD: &str = include_str!("../../../../../../packaging/grafana/plimsoll.json");
/// Attributes of the data points that queries may name.
const ATTRIBUTES: [&str; 11] = [
    "plimsoll.agent",
    "plimsoll.device",
    "plimsoll.host",
    "plimsoll.host.role",
    "plimsoll.limit.kind",
    "plimsoll.limit.location",
    "plimsoll.op",
    "plimsoll.phase",
    "plimsoll.point.ordinal",
    "plimsoll.point.purpose",
    "plimsoll.point.requested",
];

/// A metric as Prometheus names it: the unit at the end, a share as a ratio, a sum as a total.
/// <https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/>
fn prometheus_name(name: &str, unit: &str) -> String {
    let suffix = match unit {
        "" | "{op}" | "{core}" => "",
        "1" => "_ratio",
        "s" => "_seconds",
        "By" => "_bytes",
        "By/s" => "_bytes_per_second",
        "{op}/s" | "{token}/s" | "{chunk}/s" => "_per_second",
        other => panic!("{other} of {name}"),
    };
    format!("{}{suffix}", name.replace('.', "_"))
}

fn exported() -> BTreeSet<String> {
    let named = |(name, unit): (&str, &str)| prometheus_name(name, unit);
    let histograms = HISTOGRAMS.iter().chain(&STREAM_HISTOGRAMS).map(|of| named((of.0, "s")));
    let sums = SUMS.iter().map(|of| format!("{}_total", named((of.0, "{op}"))));
    let gauges = GAUGES.iter().map(|of| (of.0, of.1));
    let gauges = gauges.chain(AGENT_GAUGES.iter().map(|of| (of.0, of.1)));
    let gauges = gauges.chain(RESOURCE_GAUGES.iter().map(|of| (of.1, of.2)));
    let gauges = gauges.chain(SECOND_GAUGES.iter().map(|of| (of.0, of.1)));
    let gauges = gauges.chain([(LIMIT.0, LIMIT.1)]);
    histograms.chain(sums).chain(gauges.map(named)).collect()
}

/// All texts under one of these keys.
fn texts<'j>(json: &'j Json, keys: &[&str], texts_of: &mut Vec<&'j str>) {
    match json {
        Json::Object(fields) => {
            for (key, value) in fields {
                texts_of.extend(value.as_str().filter(|_| keys.contains(&key.as_str())));
                texts(value, keys, texts_of);
            }
        }
        Json::Array(items) => items.iter().for_each(|item| texts(item, keys, texts_of)),
        _ => {}
    }
}

#[test]
fn the_dashboard_asks_for_nothing_that_is_not_exported() {
    let dashboard: Json = serde_json::from_str(DASHBOARD).unwrap();
    let mut queries = Vec::new();
    texts(&dashboard, &["expr", "definition"], &mut queries);
    assert!(queries.len() > 20, "{queries:?}");
    let labels = ATTRIBUTES.iter().map(|name| name.replace('.', "_"));
    let names: BTreeSet<String> = exported().into_iter().chain(labels).collect();
    for query in queries {
        let tokens = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let unknown =
            tokens.filter(|token| token.starts_with("plimsoll") && !names.contains(*token));
        assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&str>::new(), "{query}");
    }
}

#[test]
fn the_dashboard_has_a_row_for_each_question_and_a_choice_of_source_and_run() {
    let dashboard: Json = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let rows = panels.iter().filter(|panel| panel["type"] == "row");
    let rows: Vec<&str> = rows.filter_map(|row| row["title"].as_str()).collect();
    assert_eq!(rows, ["Load", "Response times", "Agents", "Resources of the server", "Limit"]);
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let variables: Vec<&str> = variables.iter().filter_map(|it| it["type"].as_str()).collect();
    assert_eq!(variables, ["datasource", "query"]);
    let ids: BTreeSet<u64> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has a number of its own");
}
