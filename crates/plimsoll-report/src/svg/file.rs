//! Charts as files of their own: with their style, in the colours of paper, so that programs which
//! know neither dark mode nor variables of CSS show them too.

use plimsoll_model::result::RunResult;

use super::{
    COST_CHARTS, Frame, chunk_interval_chart, cost_chart, first_output_chart,
    first_output_heat_chart, generator_chart, heat_chart, load_chart, ops_chart, page_cache_chart,
    percentile_chart, resource_chart, resource_topics, response_chart, response_curve_chart,
    step_chart, throughput_chart, timeline_chart, tokens_chart,
};

const PALETTE: &str = include_str!("../../templates/palette.css");
const STYLE: &str = include_str!("../../templates/chart.css");
const WIDTH: f64 = 760.0;
const WIDTH_OF_SECONDS: f64 = 420.0;

/// Every chart that the run has, as (file name, SVG).
pub fn charts(run: &RunResult) -> Vec<(String, String)> {
    type Draw = fn(Frame<'_>, &RunResult) -> Option<String>;
    let drawings: [(&str, Draw); 14] = [
        ("load", load_chart),
        ("throughput", throughput_chart),
        ("response-over-throughput", response_curve_chart),
        ("response", response_chart),
        ("percentiles", percentile_chart),
        ("response-over-time", heat_chart),
        ("ops", ops_chart),
        ("output-tokens-over-those-of-a-user", step_chart),
        ("output-tokens", tokens_chart),
        ("first-output", first_output_chart),
        ("chunk-gap", chunk_interval_chart),
        ("first-output-over-time", first_output_heat_chart),
        ("generator", generator_chart),
        ("misses-over-memory", page_cache_chart),
    ];
    let mut charts: Vec<(String, String)> = drawings
        .into_iter()
        .filter_map(|(name, draw)| {
            Some((name.to_owned(), draw(Frame { id: name, width: WIDTH }, run)?))
        })
        .collect();
    for plan in COST_CHARTS {
        let name = format!("cost-{}", plain(plan.0.split(':').next().unwrap_or_default()));
        let drawing = cost_chart(Frame { id: &name, width: WIDTH }, run, plan);
        charts.extend(drawing.map(|drawing| (name, drawing)));
    }
    for topic in resource_topics(run) {
        let name = format!("resources-{}", plain(&topic.title));
        let drawing = resource_chart(Frame { id: &name, width: WIDTH }, run, topic);
        charts.extend(drawing.map(|drawing| (name, drawing)));
    }
    let top = run.points.iter().flat_map(|p| &p.timeline).map(|s| s.ops_per_s).fold(0.0, f64::max);
    for point in &run.points {
        let name = format!("point-{:02}-seconds", point.position);
        let drawing = timeline_chart(Frame { id: &name, width: WIDTH_OF_SECONDS }, point, top);
        charts.extend(drawing.map(|drawing| (name, drawing)));
    }
    let style = resolved(STYLE);
    let file = |(name, drawing): (String, String)| (format!("{name}.svg"), alone(&drawing, &style));
    charts.into_iter().map(file).collect()
}

/// The drawing with what it needs to be opened alone.
fn alone(drawing: &str, style: &str) -> String {
    let Some((head, body)) = drawing.split_once(">\n") else { return drawing.to_owned() };
    let head = head.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1);
    format!(
        "{head}>\n<style>\n{style}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n{body}\n",
        colour("paper")
    )
}

/// A style sheet with its variables replaced by their light values.
fn resolved(style: &str) -> String {
    let mut pieces = style.split("var(--");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once(')').unwrap_or((piece, ""));
        out.push_str(colour(name));
        out.push_str(rest);
    }
    out
}

/// A variable's first value, which is the light one.
fn colour(name: &str) -> &'static str {
    let begin = format!("--{name}: ");
    let declaration = PALETTE.split_once(begin.as_str()).and_then(|(_, rest)| rest.split_once(';'));
    declaration.map_or("none", |(value, _)| value)
}

/// A title as a part of a file name.
fn plain(title: &str) -> String {
    let parts = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_of_a_file_has_no_variable_left_and_a_value_for_each() {
        let style = resolved(STYLE);
        assert!(!style.contains("var("), "{style}");
        assert!(!style.contains(": none;  ") && style.contains("#14508c"));
        for name in STYLE.split("var(--").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert_ne!(colour(name), "none", "--{name} has no value");
        }
    }

    #[test]
    fn a_title_makes_a_plain_file_name() {
        assert_eq!(plain("Network eth0.100 · ssh://lab@x"), "network-eth0-100-ssh-lab-x");
    }
}
