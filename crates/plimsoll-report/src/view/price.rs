//! What a system costs, and what that is per unit, as text in order of reading.

use plimsoll_model::prices::{
    Money, PriceComparison, PriceFigure, PriceRow, PricedLine, PricedSystem, Sensitivity,
};
use plimsoll_model::units::grouped_with;
use serde::Serialize;

use crate::table::{Table, figures, words};
use crate::text::{ABSENT, number, three_digits};

/// One system with its price.
#[derive(Debug, Serialize)]
pub(crate) struct PriceView {
    /// Sentence: total and price per unit of the peak.
    pub(crate) claim: String,
    /// Dates, period, availability.
    pub(crate) facts: Vec<(String, String)>,
    /// Both ratios of peak and capacity.
    pub(crate) ratios: Table,
    pub(crate) lines: Table,
    pub(crate) sensitivity: Table,
    pub(crate) remarks: Vec<String>,
}

impl PriceView {
    pub(crate) fn new(system: &PricedSystem) -> Self {
        let [first, last] = &system.dates;
        let quoted = if first == last { first.clone() } else { format!("{first} to {last}") };
        let available = system.available.clone().unwrap_or_else(|| "on sale".to_owned());
        let years = format!("{} years", system.period_years);
        let facts = [("System", system.name.clone()), ("Quoted", quoted), ("Available", available)];
        let facts =
            facts.into_iter().chain([("Period", years), ("Total", system.total.to_string())]);
        Self {
            claim: claim(system),
            facts: facts.map(|(name, value)| (name.to_owned(), value)).collect(),
            ratios: ratios_table(system),
            lines: lines_table(system),
            sensitivity: sensitivity_table(system),
            remarks: system.remarks.clone(),
        }
    }
}

fn claim(system: &PricedSystem) -> String {
    let Some(figure) = system.figures.first() else {
        return format!("The system costs {}.", system.total);
    };
    let most = if figure.at_least { "at most " } else { "" };
    format!(
        "The system costs {}: {most}{} {} per {} of its {}.",
        system.total,
        system.currency,
        three_digits(figure.money_per_unit),
        figure.unit,
        figure.of
    )
}

fn ratios_table(system: &PricedSystem) -> Table {
    let currency = &system.currency;
    let mut table = Table::new(
        "Price per unit, both ways",
        vec![
            words("of"),
            figures("throughput", ""),
            figures(currency, "per unit"),
            figures("units", &format!("per {currency}")),
        ],
    );
    for figure in &system.figures {
        table.push(vec![
            figure.of.clone(),
            throughput(figure),
            with_bounds(figure.money_per_unit, figure.money_per_unit_interval),
            with_bounds(figure.units_per_money, figure.units_per_money_interval),
        ]);
    }
    table
}

fn throughput(figure: &PriceFigure) -> String {
    let least = if figure.at_least { "at least " } else { "" };
    format!("{least}{} {}", number(Some(figure.value)), figure.unit)
}

fn with_bounds(value: f64, bounds: Option<[f64; 2]>) -> String {
    match bounds {
        None => three_digits(value),
        Some([low, high]) => {
            format!("{} ({}–{})", three_digits(value), three_digits(low), three_digits(high))
        }
    }
}

fn lines_table(system: &PricedSystem) -> Table {
    let currency = &system.currency;
    let mut table = Table::new(
        "What it is made of",
        vec![
            words("item"),
            words("part number"),
            words("source"),
            words("date"),
            figures("quantity", ""),
            figures("unit price", currency),
            figures("discount", "%"),
            figures("price", currency),
            figures("maintenance", currency),
            figures("share", "%"),
        ],
    );
    for line in &system.lines {
        table.push(line_cells(line));
    }
    let mut sum = vec![ABSENT.to_owned(); table.columns.len()];
    "Total".clone_into(&mut sum[0]);
    sum[7] = system.total.amount_text();
    table.push(sum);
    table.without_empty_columns()
}

fn line_cells(line: &PricedLine) -> Vec<String> {
    let decimals = if line.unit_price.fract() == 0.0 { 0 } else { 2 };
    let exact = grouped_with(line.unit_price, decimals);
    let unit_price = match line.hourly {
        true => format!("{} an hour", line.unit_price),
        false => exact,
    };
    let maintenance = line.maintenance_price.zip(line.maintenance_years);
    let years = |(price, years): (Money, u32)| format!("{} ({years} years)", price.amount_text());
    let discount = (line.discount_percent > 0.0).then_some(line.discount_percent);
    vec![
        line.name.clone(),
        line.part_number.clone().unwrap_or_else(|| ABSENT.to_owned()),
        line.source.clone(),
        line.date.clone(),
        line.quantity.to_string(),
        unit_price,
        number(discount),
        line.price.amount_text(),
        maintenance.map_or_else(|| ABSENT.to_owned(), years),
        share_cell(line.share_ratio),
    ]
}

fn sensitivity_table(system: &PricedSystem) -> Table {
    let (per, unit) = match system.figures.first() {
        Some(figure) => ("price per unit", format!("{} per {}", system.currency, figure.unit)),
        None => ("total", system.currency.clone()),
    };
    let mut table = Table::new(
        format!("The same {per}, {unit}, if one item had another price"),
        vec![
            words("item"),
            figures("share", "%"),
            figures("10 % less", ""),
            figures("10 % more", ""),
            figures("left out", ""),
        ],
    );
    for row in &system.sensitivity {
        table.push(sensitivity_cells(row));
    }
    table
}

fn sensitivity_cells(row: &Sensitivity) -> Vec<String> {
    let [less, more, without] = row.money_per_unit.unwrap_or(row.totals);
    let cells = [less, more, without].map(three_digits);
    [row.item.clone(), share_cell(row.share_ratio)].into_iter().chain(cells).collect()
}

/// A share, for a column in percent.
fn share_cell(ratio: f64) -> String {
    format!("{:.1}", ratio * 100.0)
}

/// Systems side by side; the first is the measure of the others.
pub(crate) fn price_comparison_table(all: &PriceComparison) -> Table {
    let currency = &all.currency;
    let mut table = Table::new(
        "Price/performance; ratios are to the first system",
        vec![
            words("system"),
            figures("total", currency),
            words("of"),
            figures("throughput", ""),
            figures(currency, "per unit"),
            figures("units", &format!("per {currency}")),
            figures("price", "ratio"),
            figures("throughput", "ratio"),
            figures(&format!("{currency} per unit"), "ratio"),
            figures(&format!("units per {currency}"), "ratio"),
        ],
    );
    for row in &all.rows {
        table.push(comparison_cells(row));
    }
    table
}

fn comparison_cells(row: &PriceRow) -> Vec<String> {
    let ratios = [
        row.price_ratio,
        row.throughput_ratio,
        row.money_per_unit_ratio,
        row.units_per_money_ratio,
    ];
    let figure = &row.figure;
    let mut cells = vec![
        row.name.clone(),
        row.total.amount_text(),
        figure.of.clone(),
        throughput(figure),
        with_bounds(figure.money_per_unit, figure.money_per_unit_interval),
        with_bounds(figure.units_per_money, figure.units_per_money_interval),
    ];
    cells.extend(ratios.map(|ratio| format!("× {}", three_digits(ratio))));
    cells
}
