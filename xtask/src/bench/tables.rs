//! Cells of the tables.

use super::median;

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
