//! Prices of the systems under test, in the shape of the TPC's pricing rules: a line for each item
//! with part number, source, date, quantity, unit price and discount, and the maintenance of a
//! given number of years; or a price per hour, where a system is rented.
//!
//! A file has one currency, so that nothing is ever added across two.

mod file;
mod money;

use serde::Serialize;

pub use money::{Currency, Date, Money};

/// Version of the price files' format.
pub const PRICES_FORMAT: u32 = 1;
/// Years a system is paid for, where the file has none: those of the TPC's rules.
pub const PERIOD_YEARS: u32 = 3;
/// Hours of a year of rent, day and night.
pub const HOURS_PER_YEAR: u32 = 8_760;

/// A price file, parsed: [`PriceList::parse`] refuses a wrong sum or two currencies.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceList {
    /// Currency of every price in it.
    pub currency: Currency,
    /// Years of rent.
    pub period_years: u32,
    /// In the file's order; each name once.
    pub systems: Vec<SystemPrices>,
}

/// What one system is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemPrices {
    /// The label by which a comparison knows it.
    pub name: String,
    /// At least one.
    pub items: Vec<PriceItem>,
    /// Sum of its lines.
    pub total: Money,
}

/// One line of a price.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names without a comment say it")]
pub struct PriceItem {
    pub name: String,
    /// The seller's number of it.
    pub part_number: Option<String>,
    pub source: String,
    pub date: Date,
    /// From when on anybody can buy it; absent where it is on sale.
    pub available: Option<Date>,
    pub quantity: u32,
    /// Price of one, before the discount.
    pub unit_price: UnitPrice,
    /// Off the price, in percent.
    pub discount_percent: f64,
    /// All of them, less the discount; rounded to the currency's smallest unit.
    pub price: Money,
    /// Maintenance of the whole line.
    pub maintenance: Option<Maintenance>,
    pub total: Money,
}

/// What one of a line costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UnitPrice {
    /// Once.
    Once(f64),
    /// For each hour of the period.
    PerHour(f64),
}

/// Maintenance of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Maintenance {
    /// How long.
    pub years: u32,
    /// For all of these years, and the whole line.
    pub price: Money,
}

impl PriceList {
    /// The system of that name.
    pub fn system(&self, name: &str) -> Option<&SystemPrices> {
        self.systems.iter().find(|system| system.name == name)
    }

    /// Names of its systems, for a message.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.systems.iter().map(|system| system.name.as_str())
    }
}

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
    /// Price of one: once, or for an hour.
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
    /// The server can handle at least that: the price of a unit is no more than this.
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

/// How much the result depends on one line.
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

/// One system by one figure, compared with the first system.
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

#[cfg(test)]
mod tests;
