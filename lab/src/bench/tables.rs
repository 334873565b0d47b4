//! Cells of the tables.

use super::median;
use super::row::Row;

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

/// Ours and, as the last, the rival's, row by row: rate, CPU per `unit` and its ratio to the
/// rival's, the server's CPU where it was measured, memory. `rival` is what the ratio's column
/// calls it.
pub fn beside(rows: &[Row], unit: &str, rival: &str) -> String {
    let rivals = rows.last().and_then(Row::cost);
    let with_server = rows.iter().any(|row| row.server_cost().is_some());
    let server = |cell: String| if with_server { format!(" {cell} |") } else { String::new() };
    let mut table = format!(
        "| generator | {unit}s/s | CPU µs per {unit} (lowest–highest) | its CPU ÷ {rival}'s | work µs \
         per {unit} | its work ÷ {rival}'s CPU |{} peak memory MB |\n\
         | --- | --- | --- | --- | --- | --- |{} --- |\n",
        server(format!("server's CPU µs per {unit}")),
        server("---".to_owned()),
    );
    for row in rows {
        let beside = |its: Option<f64>| shown(its.zip(rivals).map(|(its, rivals)| its / rivals), 2);
        table.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} |{} {} |\n",
            row.label(),
            shown(row.rate(), 0),
            spread(&row.costs(), 2),
            beside(row.cost()),
            shown(row.work(), 2),
            beside(row.work()),
            server(shown(row.server_cost(), 2)),
            shown(row.memory(), 0),
        ));
    }
    table
}
