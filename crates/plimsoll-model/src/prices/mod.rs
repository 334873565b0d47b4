//! Prices of the systems under test, in the shape of the TPC's pricing rules: a line for each item
//! with part number, source, date, quantity, unit price and discount, and the maintenance of a
//! stated number of years; or a price per hour, where a system is rented.
//!
//! A file has one currency, so that nothing is ever added across two.

mod file;
mod money;
mod priced;

pub use money::{Currency, Date, Money};
pub use priced::{PriceComparison, PriceFigure, PriceRow, PricedLine, PricedSystem, Sensitivity};

/// Version of the price files' format.
pub const PRICES_FORMAT: u32 = 1;
/// Years a system is paid for, where the file does not say: those of the TPC's rules.
pub const PERIOD_YEARS: u32 = 3;
/// Hours of a year of rent, day and night.
pub const HOURS_PER_YEAR: u32 = 8_760;

/// A price file: what [`PriceList::parse`] makes of it cannot hold a wrong sum or two currencies.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceList {
    /// Of every price in it.
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
    /// Of one, before the discount.
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

#[cfg(test)]
mod tests;
