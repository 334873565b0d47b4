//! What a system costs, and what that is per unit, as text in order of reading.

use plimsoll_model::prices::{PriceComparison, PriceFigure, PricedLine, PricedSystem, Sensitivity};
use plimsoll_model::units::grouped_with;
use serde::Serialize;

use crate::table::{Rows, Table};
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
    let rows =
        Rows::new("Price per unit, both ways", &system.figures).text("of", |it| it.of.clone());
    per_unit(rows, &system.currency, |it| it).table()
}

/// Throughput and both ratios to it.
fn per_unit<T>(rows: Rows<T>, currency: &str, figure: impl Fn(&T) -> &PriceFigure) -> Rows<T> {
    rows.figures("throughput", "", |it| throughput(figure(it)))
        .figures(currency, "per unit", |it| {
            let it = figure(it);
            with_bounds(it.money_per_unit, it.money_per_unit_interval)
        })
        .figures("units", &format!("per {currency}"), |it| {
            let it = figure(it);
            with_bounds(it.units_per_money, it.units_per_money_interval)
        })
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
    let mut table = Rows::new("What it is made of", &system.lines)
        .text("item", |line| line.name.clone())
        .text("part number", |line| line.part_number.clone())
        .text("source", |line| line.source.clone())
        .text("date", |line| line.date.clone())
        .figures("quantity", "", |line| line.quantity.to_string())
        .figures("unit price", currency, |line| unit_price(line))
        .figures("discount", "%", |line| {
            number(Some(line.discount_percent).filter(|percent| *percent > 0.0))
        })
        .figures("price", currency, |line| line.price.amount_text())
        .figures("maintenance", currency, |line| {
            let (price, years) = line.maintenance_price.zip(line.maintenance_years)?;
            Some(format!("{} ({years} years)", price.amount_text()))
        })
        .figures("share", "%", |line| share_cell(line.share_ratio))
        .table();
    let mut sum = vec![ABSENT.to_owned(); table.columns.len()];
    "Total".clone_into(&mut sum[0]);
    sum[7] = system.total.amount_text();
    table.push(sum);
    table.without_empty_columns()
}

fn unit_price(line: &PricedLine) -> String {
    let decimals = if line.unit_price.fract() == 0.0 { 0 } else { 2 };
    match line.hourly {
        true => format!("{} an hour", line.unit_price),
        false => grouped_with(line.unit_price, decimals),
    }
}

fn sensitivity_table(system: &PricedSystem) -> Table {
    let (per, unit) = match system.figures.first() {
        Some(figure) => ("price per unit", format!("{} per {}", system.currency, figure.unit)),
        None => ("total", system.currency.clone()),
    };
    let caption = format!("The same {per}, {unit}, if one item had another price");
    let value =
        |row: &Sensitivity, at: usize| three_digits(row.money_per_unit.unwrap_or(row.totals)[at]);
    Rows::new(caption, &system.sensitivity)
        .text("item", |row| row.item.clone())
        .figures("share", "%", |row| share_cell(row.share_ratio))
        .figures("10 % less", "", |row| value(row, 0))
        .figures("10 % more", "", |row| value(row, 1))
        .figures("left out", "", |row| value(row, 2))
        .table()
}

/// A share, for a column in percent.
fn share_cell(ratio: f64) -> String {
    format!("{:.1}", ratio * 100.0)
}

/// Systems side by side; the first is the measure of the others.
pub(crate) fn price_comparison_table(all: &PriceComparison) -> Table {
    let currency = &all.currency;
    let rows = Rows::new("Price/performance; ratios are to the first system", &all.rows)
        .text("system", |row| row.name.clone())
        .figures("total", currency, |row| row.total.amount_text())
        .text("of", |row| row.figure.of.clone());
    let ratio = |ratio: f64| format!("× {}", three_digits(ratio));
    per_unit(rows, currency, |row| &row.figure)
        .figures("price", "ratio", |row| ratio(row.price_ratio))
        .figures("throughput", "ratio", |row| ratio(row.throughput_ratio))
        .figures(&format!("{currency} per unit"), "ratio", |row| ratio(row.money_per_unit_ratio))
        .figures(&format!("units per {currency}"), "ratio", |row| ratio(row.units_per_money_ratio))
        .table()
}
