//! What the uncertainty intervals of the headline's figures are made of.

use plimsoll_model::result::{RunResult, Uncertainty};
use plimsoll_model::units::{grouped, three_digits, time_unit};

use super::headline::headline_point;
use crate::table::{Table, figures, words};

pub(super) const NOTE: &str = "Each column says how far the truth may lie from the measured \
    figure through that part alone, at 95 %. Generator: its own late sends and late reads. Sample: \
    what other seconds of the same length might have shown. Other runs: how far runs of one closed \
    load lie apart. Sample and other runs add up as squares do. Histogram: half a step of the scale \
    the times are counted on.";

/// One figure a row, of the point the headline speaks of; empty where nothing is known.
pub(super) fn table(run: &RunResult) -> Table {
    let Some(point) = headline_point(run) else { return Table::default() };
    let mut table = Table::new(
        format!("What the uncertainty intervals of load point {} are made of", point.position),
        vec![
            words("figure"),
            figures("measured", ""),
            figures("generator", ""),
            figures("sample below", ""),
            figures("sample above", ""),
            figures("other runs", ""),
            figures("histogram", ""),
        ],
    );
    for (key, parts) in &point.uncertainty {
        table.push(row(key, parts));
    }
    table
}

fn row(key: &str, parts: &Uncertainty) -> Vec<String> {
    let name = key.trim_end_matches("_ns").trim_end_matches("_ops_per_s").replace('_', " ");
    let is_time = key.ends_with("_ns");
    // A late generator makes times longer and a closed loop's throughput smaller.
    let generator = if is_time { "−" } else { "+" };
    let (unit_size, unit) = if is_time { time_unit(parts.value) } else { (1.0, "ops/s") };
    let text = |sign: &str, value: f64| match value {
        0.0 => "0".to_owned(),
        _ => format!("{sign}{}", three_digits(value / unit_size)),
    };
    let measured = match is_time {
        true => text("", parts.value),
        false => grouped(parts.value),
    };
    vec![
        name,
        format!("{measured}\u{a0}{unit}"),
        text(generator, parts.generator),
        text("−", parts.sample_below),
        text("+", parts.sample_above),
        text("±", parts.other_runs),
        text("±", parts.resolution),
    ]
}
