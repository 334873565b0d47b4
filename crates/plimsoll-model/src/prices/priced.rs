//! What analysis makes of prices and a result; reports show it.

use serde::Serialize;

use super::Money;

/// A system with what its throughput costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names without a comment say it")]
pub struct PricedSystem {
    pub name: String,
    /// ISO 4217 code of every amount.
    pub currency: String,
    /// Years of rent in it.
    pub period_years: u32,
    pub lines: Vec<PricedLine>,
    pub total: Money,
    /// First and last day of its quotes.
    pub dates: [String; 2],
    /// When the last of it can be bought; `null` where all of it is on sale.
    pub available: Option<String>,
    /// Peak first, then the capacity; empty where the run has neither.
    pub figures: Vec<PriceFigure>,
    /// A row for each line: what the price per unit of the first figure would be.
    pub sensitivity: Vec<Sensitivity>,
    /// What a reader must know of the figures.
    pub remarks: Vec<String>,
}

/// One line, as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names without a comment say it")]
pub struct PricedLine {
    pub name: String,
    /// The seller's number; `null` without one.
    pub part_number: Option<String>,
    pub source: String,
    pub date: String,
    pub quantity: u32,
    /// Of one: once, or for an hour.
    pub unit_price: f64,
    /// It is paid by the hour.
    pub hourly: bool,
    pub discount_percent: f64,
    pub price: Money,
    /// Years of maintenance, where it is paid.
    pub maintenance_years: Option<u32>,
    pub maintenance_price: Option<Money>,
    pub share_ratio: f64,
}

/// A throughput and its price, both ways.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PriceFigure {
    /// `peak` or `capacity`.
    pub of: String,
    /// The throughput, in `unit`.
    pub value: f64,
    /// Its uncertainty interval.
    pub interval: Option<[f64; 2]>,
    /// `ops/s`, `MiB/s`, `clients`.
    pub unit: String,
    /// The server carries at least that: the price of a unit is no more than this.
    pub at_least: bool,
    /// Money for one unit.
    pub money_per_unit: f64,
    /// The same at the ends of the interval: `[low, high]`.
    pub money_per_unit_interval: Option<[f64; 2]>,
    /// Units for one of the currency.
    pub units_per_money: f64,
    /// The same at the ends of the interval: `[low, high]`.
    pub units_per_money_interval: Option<[f64; 2]>,
}

/// What hangs on one line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sensitivity {
    /// The line.
    pub item: String,
    /// Share of the total.
    pub share_ratio: f64,
    /// Total if it cost 10 % less, 10 % more, and without it.
    pub totals: [f64; 3],
    /// Money for a unit of the first figure in these cases; `null` where the run has none.
    pub money_per_unit: Option<[f64; 3]>,
}

/// Systems side by side, in the order of their labels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PriceComparison {
    /// ISO 4217 code of every amount.
    pub currency: String,
    /// Which figures are compared: those all systems have.
    pub of: Vec<String>,
    /// A row for each system and figure.
    pub rows: Vec<PriceRow>,
    /// The systems in full.
    pub systems: Vec<PricedSystem>,
}

/// One system by one figure, held against the first system.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names without a comment say it")]
pub struct PriceRow {
    pub name: String,
    pub total: Money,
    pub figure: PriceFigure,
    /// Its total over the first's.
    pub price_ratio: f64,
    /// Its throughput over the first's.
    pub throughput_ratio: f64,
    /// Its money for a unit over the first's: below 1 is cheaper.
    pub money_per_unit_ratio: f64,
    /// Its units for money over the first's: above 1 is cheaper.
    pub units_per_money_ratio: f64,
}
