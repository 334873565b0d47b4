//! Price/performance: the price of a unit of throughput, in both directions, and how far one item
//! moves it.
//!
//! Old reports rest on rounded peaks ([`Priced`]): a published price/performance rests on a peak
//! rounded to print; the unrounded one gives another figure, so every such result names the peak it
//! rests on.

use plimsoll_model::event::Bound;
use plimsoll_model::prices::{
    Date, Money, PriceComparison, PriceFigure, PriceItem, PriceList, PriceRow, PricedLine,
    PricedSystem, Sensitivity, SystemPrices, UnitPrice,
};
use plimsoll_model::result::RunResult;
use plimsoll_model::suite::nearest;
use plimsoll_model::units::BYTES_PER_MIB;

/// Changes of the price of an item: a tenth less, a tenth more, free.
pub const CASES: [f64; 3] = [-0.1, 0.1, -1.0];

/// The throughput of a system, as far as its price is concerned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Performance {
    /// Peak and capacity, as far as they are known.
    pub throughputs: Vec<Throughput>,
    /// Weaknesses of them, for a person.
    pub remarks: Vec<String>,
}

/// A throughput that money is divided by.
#[derive(Clone, Debug, PartialEq)]
pub struct Throughput {
    /// `peak` or `capacity`.
    pub of: &'static str,
    /// In `unit`.
    pub value: f64,
    /// Its uncertainty interval.
    pub interval: Option<[f64; 2]>,
    /// `ops/s`, `MiB/s`, `clients`.
    pub unit: String,
    /// The server carries at least that.
    pub at_least: bool,
}

/// Why systems cannot be priced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// The file prices no system of that label.
    #[error("no system of the price file is called {label:?}; {help}")]
    Unknown {
        /// The label.
        label: String,
        /// A hint for the user.
        help: String,
    },
    /// A table of prices needs at least one run.
    #[error("there is no run to divide a price by")]
    Nothing,
}

impl Performance {
    /// Of a run: its headline, and its capacity where one was searched.
    pub fn from_run(run: &RunResult) -> Self {
        let summary = &run.summary;
        let mut throughputs = Vec::new();
        let mut remarks = Vec::new();
        if let Some(value) = summary.value {
            let at_least = summary.bound == Bound::AtLeast;
            let interval = summary.value_interval;
            throughputs.push(Throughput::new("peak", value, interval, &summary.unit, at_least));
        } else {
            remarks.push("the run has no peak that counts, so nothing is divided by it".to_owned());
        }
        if let Some(capacity) = &summary.capacity {
            let interval = capacity.high.map(|high| [capacity.low, high]);
            let (value, unit) = (capacity.value, &capacity.unit);
            let beyond = capacity.high.is_none();
            throughputs.push(Throughput::new("capacity", value, interval, unit, beyond));
            if let Some(users) = capacity.users {
                throughputs.push(Throughput::new("capacity", users, None, "users", beyond));
            }
        }
        if !run.verdict.valid {
            remarks.push("the run is not valid: neither are its prices per unit".to_owned());
        }
        if let Some(profile) =
            run.profile.as_deref().filter(|name| ["quick", "demo"].contains(name))
        {
            remarks.push(format!("measured with the scaled profile {profile}"));
        }
        Self { throughputs, remarks }
    }

    /// From a group of runs: the geometric mean of each figure that every valid run has. One run
    /// keeps its uncertainty interval; the scatter of several is in their comparison.
    pub fn of_runs(runs: &[&RunResult]) -> Self {
        let valid = || runs.iter().filter(|run| run.verdict.valid);
        let all: Vec<Self> = match (valid().count(), runs) {
            (0, _) | (_, [_]) => runs.iter().map(|run| Self::from_run(run)).collect(),
            _ => valid().map(|run| Self::from_run(run)).collect(),
        };
        let Some((first, others)) = all.split_first() else { return Self::default() };
        if others.is_empty() {
            return first.clone();
        }
        let throughputs = first.throughputs.iter().filter_map(|one| {
            let same = |it: &&Throughput| it.of == one.of && it.unit == one.unit;
            let each = all.iter().map(|run| run.throughputs.iter().find(same));
            let each: Vec<&Throughput> = each.collect::<Option<_>>()?;
            let logs: f64 = each.iter().map(|it| it.value.ln()).sum();
            let value = (logs / each.len() as f64).exp();
            let at_least = each.iter().any(|it| it.at_least);
            Some(Throughput { value, interval: None, at_least, ..one.clone() })
        });
        let mut remarks = vec![format!("geometric mean of {} runs", all.len())];
        remarks.extend(first.remarks.iter().cloned());
        Self { throughputs: throughputs.collect(), remarks }
    }
}

impl Throughput {
    /// Bytes are counted in MiB: a byte per second has no price worth printing.
    pub fn new(
        of: &'static str,
        value: f64,
        interval: Option<[f64; 2]>,
        unit: &str,
        at_least: bool,
    ) -> Self {
        let (divisor, unit) = match unit {
            "bytes/s" => (BYTES_PER_MIB, "MiB/s"),
            other => (1.0, other),
        };
        let interval = interval.map(|bounds| bounds.map(|bound| bound / divisor));
        Self { of, value: value / divisor, interval, unit: unit.to_owned(), at_least }
    }
}

/// The system a label stands for; the only one of a file stands for any.
///
/// # Errors
/// When the file prices several systems and none has that label.
pub fn system_of<'l>(list: &'l PriceList, label: &str) -> Result<&'l SystemPrices, PriceError> {
    if let [only] = list.systems.as_slice() {
        return Ok(only);
    }
    list.system(label).ok_or_else(|| unknown(list, label))
}

fn unknown(list: &PriceList, label: &str) -> PriceError {
    let help = match nearest(label, list.names()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("it prices: {}", list.names().collect::<Vec<_>>().join(", ")),
    };
    PriceError::Unknown { label: label.to_owned(), help }
}

/// A system with the price of its throughput.
pub fn priced(list: &PriceList, system: &SystemPrices, carries: &Performance) -> PricedSystem {
    let total = system.total.units();
    let figures: Vec<PriceFigure> =
        carries.throughputs.iter().filter_map(|throughput| figure(throughput, total)).collect();
    let mut remarks = carries.remarks.clone();
    remarks.extend(remarks_of(list, system));
    let days = || system.items.iter().map(|item| &item.date);
    let day = |day: Option<&Date>| day.map(ToString::to_string).unwrap_or_default();
    PricedSystem {
        name: system.name.clone(),
        currency: list.currency.code().to_owned(),
        period_years: list.period_years,
        lines: system.items.iter().map(|item| line(item, total)).collect(),
        total: system.total,
        dates: [day(days().min()), day(days().max())],
        available: system
            .items
            .iter()
            .filter_map(|item| item.available.as_ref())
            .max()
            .map(ToString::to_string),
        sensitivity: system.items.iter().map(|item| sensitivity(item, total, &figures)).collect(),
        figures,
        remarks,
    }
}

fn line(item: &PriceItem, total: f64) -> PricedLine {
    let (unit_price, hourly) = match item.unit_price {
        UnitPrice::Once(price) => (price, false),
        UnitPrice::PerHour(price) => (price, true),
    };
    PricedLine {
        name: item.name.clone(),
        part_number: item.part_number.clone(),
        source: item.source.clone(),
        date: item.date.to_string(),
        quantity: item.quantity,
        unit_price,
        hourly,
        discount_percent: item.discount_percent,
        price: item.price,
        maintenance_years: item.maintenance.map(|maintenance| maintenance.years),
        maintenance_price: item.maintenance.map(|maintenance| maintenance.price),
        share_ratio: share(item, total),
    }
}

fn share(item: &PriceItem, total: f64) -> f64 {
    if total > 0.0 { item.total.units() / total } else { 0.0 }
}

/// Both ratios; `None` for a throughput or total of zero.
fn figure(throughput: &Throughput, total: f64) -> Option<PriceFigure> {
    let Throughput { of, value, interval, unit, at_least } = throughput;
    let bounds = interval.filter(|[low, _]| *low > 0.0);
    (*value > 0.0 && total > 0.0).then(|| PriceFigure {
        of: (*of).to_owned(),
        value: *value,
        interval: *interval,
        unit: unit.clone(),
        at_least: *at_least,
        money_per_unit: total / value,
        money_per_unit_interval: bounds.map(|[low, high]| [total / high, total / low]),
        units_per_money: value / total,
        units_per_money_interval: bounds.map(|bounds| bounds.map(|bound| bound / total)),
    })
}

fn sensitivity(item: &PriceItem, total: f64, figures: &[PriceFigure]) -> Sensitivity {
    let cost = item.total.units();
    let totals = CASES.map(|change| total + change * cost);
    let money_per_unit = figures.first().map(|first| totals.map(|total| total / first.value));
    Sensitivity { item: item.name.clone(), share_ratio: share(item, total), totals, money_per_unit }
}

/// Remarks on the prices.
fn remarks_of(list: &PriceList, system: &SystemPrices) -> Vec<String> {
    let years = list.period_years;
    let mut remarks = Vec::new();
    for item in &system.items {
        let paid = item.maintenance.map(|maintenance| maintenance.years);
        if let Some(paid) = paid.filter(|paid| *paid != years) {
            remarks.push(format!(
                "maintenance of {} is paid for {paid} years, the period is {years}",
                item.name
            ));
        }
    }
    if system.items.iter().any(|item| matches!(item.unit_price, UnitPrice::PerHour(_))) {
        remarks.push(format!("rent is that of {years} years, day and night"));
    }
    remarks
}

/// Compares systems by every figure they all have, relative to the first one.
///
/// # Errors
/// When a label has no prices.
pub fn compare_priced(
    list: &PriceList,
    runs: &[(String, Performance)],
) -> Result<PriceComparison, PriceError> {
    let mut systems = Vec::new();
    for (label, performance) in runs {
        let prices = list.system(label).ok_or_else(|| unknown(list, label))?;
        systems.push(priced(list, prices, performance));
    }
    let first = systems.first().ok_or(PriceError::Nothing)?;
    let in_all = |other: &PriceFigure| systems.iter().all(|it| same(it, other).is_some());
    let common: Vec<&PriceFigure> = first.figures.iter().filter(|figure| in_all(figure)).collect();
    let mut rows = Vec::new();
    for base in &common {
        let of_each = systems.iter().filter_map(|system| Some((system, same(system, base)?)));
        rows.extend(of_each.map(|(system, figure)| row(system, figure, first.total, base)));
    }
    Ok(PriceComparison {
        currency: list.currency.code().to_owned(),
        of: common.iter().map(|figure| format!("{}, {}", figure.of, figure.unit)).collect(),
        rows,
        systems: systems.clone(),
    })
}

/// The figure of a system with the kind and unit of `other`.
fn same<'s>(system: &'s PricedSystem, other: &PriceFigure) -> Option<&'s PriceFigure> {
    system.figures.iter().find(|figure| figure.of == other.of && figure.unit == other.unit)
}

fn row(system: &PricedSystem, figure: &PriceFigure, total: Money, base: &PriceFigure) -> PriceRow {
    PriceRow {
        name: system.name.clone(),
        total: system.total,
        price_ratio: system.total.units() / total.units(),
        throughput_ratio: figure.value / base.value,
        money_per_unit_ratio: figure.money_per_unit / base.money_per_unit,
        units_per_money_ratio: figure.units_per_money / base.units_per_money,
        figure: figure.clone(),
    }
}

/// How a peak enters a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peak {
    /// As printed: in MB of 2^20 bytes per second, rounded to one decimal.
    Rounded,
    /// As measured.
    Unrounded,
}

impl Peak {
    /// Both, the printed one first.
    pub const BOTH: [Self; 2] = [Self::Rounded, Self::Unrounded];

    /// Its label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rounded => "rounded to one decimal",
            Self::Unrounded => "unrounded",
        }
    }

    /// The peak in MB of 2^20 bytes per second.
    pub fn mb_per_s(self, bytes_per_s: f64) -> f64 {
        let exact = bytes_per_s / BYTES_PER_MIB;
        match self {
            Self::Rounded => (exact * 10.0).round() / 10.0,
            Self::Unrounded => exact,
        }
    }
}

/// A server with its peak and its price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Priced {
    /// Highest throughput.
    pub peak_bytes_per_s: f64,
    /// Sum of its line items.
    pub price: f64,
}

impl Priced {
    /// Price per MB of 2^20 bytes per second; `None` for a peak of zero.
    pub fn per_mb_per_s(&self, peak: Peak) -> Option<f64> {
        let rate = peak.mb_per_s(self.peak_bytes_per_s);
        (rate > 0.0).then(|| self.price / rate)
    }

    /// How many times the throughput of `other` this one has.
    pub fn times_the_throughput(&self, other: &Self, peak: Peak) -> Option<f64> {
        let [own, others] = [self, other].map(|it| peak.mb_per_s(it.peak_bytes_per_s));
        (others > 0.0).then(|| own / others)
    }

    /// How many times less a unit of this one's throughput costs than one of `other`'s.
    pub fn times_the_price_performance(&self, other: &Self, peak: Peak) -> Option<f64> {
        let (own, others) = (self.per_mb_per_s(peak)?, other.per_mb_per_s(peak)?);
        (own > 0.0).then(|| others / own)
    }
}

#[cfg(test)]
mod tests;
