//! Cells of the tables.

use super::median;
use super::row::{Row, Sample};

/// The value, or a dash where there is none.
pub fn shown(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "—".to_owned(), |value| format!("{value:.decimals$}"))
}

/// The median with the range it comes from.
pub fn spread(values: &[f64], decimals: usize) -> String {
    let Some(middle) = median(values) else { return "—".to_owned() };
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = values.iter().copied().fold(0.0, f64::max);
    format!("{middle:.decimals$} ({lowest:.decimals$}–{highest:.decimals$})")
}

/// Ours and the rival's, row by row: rate, CPU per `unit` and its ratio to the rival's, memory.
/// `rival` is what the ratio's column calls it.
pub fn beside(ours: &[Row], rivals: &Row, unit: &str, rival: &str) -> String {
    let mut table = format!(
        "| generator | {unit}s/s | CPU µs per {unit} (lowest–highest) | its CPU ÷ {rival}'s | work µs \
         per {unit} | its work ÷ {rival}'s CPU | peak memory MB |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    let cost: fn(&Sample) -> f64 = |s| s.generator_us_per_op;
    for row in ours.iter().chain([rivals]) {
        let beside = |its: Option<f64>| Some(its? / rivals.median(cost)?);
        table.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            row.label(),
            shown(row.median(|s| s.ops_per_s), 0),
            spread(&row.values(cost), 2),
            shown(beside(row.median(cost)), 2),
            shown(row.work(), 2),
            shown(beside(row.work()), 2),
            shown(row.median(|s| s.peak_rss_mb), 0),
        ));
    }
    table
}
