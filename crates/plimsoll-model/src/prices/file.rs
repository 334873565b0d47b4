//! A price file as it is written, and the checks across several of its values.

use schemars::JsonSchema;
use serde::Deserialize;

use super::money::{Date, MONEY_MAX, Money};
use super::{
    Currency, HOURS_PER_YEAR, Maintenance, PERIOD_YEARS, PRICES_FORMAT, PriceItem, PriceList,
    SystemPrices, UnitPrice,
};
use crate::suite::{SuiteError, TableReader, nearest, read_document};

/// Most of one item; more is taken for a typing error.
const QUANTITY_MAX: u32 = 1_000_000;
/// Longest period a system is paid for.
const YEARS_MAX: u32 = 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PriceFile {
    /// Version of this format.
    format: u32,
    /// ISO 4217 code of every price in the file.
    currency: String,
    /// Years of rent that a total contains.
    #[serde(default = "period_years")]
    #[schemars(range(min = 1, max = YEARS_MAX))]
    period_years: u32,
    /// The systems.
    systems: Vec<SystemTable>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SystemTable {
    /// The label by which a comparison knows it.
    name: String,
    /// Sum of the lines, from the quote; checked.
    total: Option<f64>,
    /// Its lines.
    items: Vec<ItemTable>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ItemTable {
    /// What it is.
    name: String,
    /// The seller's number of it.
    part_number: Option<String>,
    /// Who quoted the price.
    source: String,
    /// Date of the quote.
    #[schemars(with = "String")]
    date: Date,
    /// From when on anybody can buy it.
    #[schemars(with = "Option<String>")]
    available: Option<Date>,
    /// How many.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = QUANTITY_MAX))]
    quantity: u32,
    /// Of one, before the discount.
    #[schemars(range(min = 0.0, max = MONEY_MAX))]
    unit_price: Option<f64>,
    /// Of one for an hour, before the discount, where it is rented.
    #[schemars(range(min = 0.0, max = MONEY_MAX))]
    price_per_hour: Option<f64>,
    /// Off the price.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 100.0))]
    discount_percent: f64,
    /// Currency of the quote, where it is written there; checked.
    currency: Option<String>,
    /// All of them less the discount, from the quote; checked.
    price: Option<f64>,
    /// Years of maintenance that are paid.
    #[schemars(range(min = 1, max = YEARS_MAX))]
    maintenance_years: Option<u32>,
    /// Maintenance of the whole line for all of these years.
    #[schemars(range(min = 0.0, max = MONEY_MAX))]
    maintenance_price: Option<f64>,
}

const fn period_years() -> u32 {
    PERIOD_YEARS
}

const fn one() -> u32 {
    1
}

impl PriceList {
    /// Reads a price file; `file` names it in messages.
    ///
    /// # Errors
    /// With file, line and what to do next: text that cannot be read, a currency that is unknown or
    /// a second one, a sum that differs from that of its lines.
    pub fn parse(file: &str, text: &str) -> Result<Self, SuiteError> {
        read_document(file, text, |written: PriceFile, root| written.finish(root))
    }
}

impl PriceFile {
    fn finish(self, root: &TableReader<'_>) -> Result<PriceList, SuiteError> {
        if self.format != PRICES_FORMAT {
            let message =
                format!("`format` is {}; this program reads {PRICES_FORMAT}", self.format);
            return Err(root.error_at("format", message));
        }
        let currency = Currency::of_code(&self.currency).ok_or_else(|| {
            let message =
                format!("`currency` is {:?}, not the ISO 4217 code of one", self.currency);
            let capitals = self.currency.to_uppercase();
            let same = Currency::of_code(&capitals).map(Currency::code);
            let near = same.or_else(|| nearest(&capitals, Currency::all().map(Currency::code)));
            let help = near.map_or("write a code such as EUR or USD".to_owned(), |near| {
                format!("did you mean {near:?}?")
            });
            root.error_at("currency", message).with_help(help)
        })?;
        if self.systems.is_empty() {
            return Err(root.error_at("systems", "the file prices no system"));
        }
        let list = Reading { root, currency, period_years: self.period_years };
        let mut systems: Vec<SystemPrices> = Vec::new();
        for (at, table) in self.systems.into_iter().enumerate() {
            if systems.iter().any(|earlier| earlier.name == table.name) {
                let message = format!("a second system is called {:?}", table.name);
                let error = root.error_at(&format!("systems.{at}.name"), message);
                return Err(error.with_help("give each the label of its runs"));
            }
            systems.push(list.system(at, table)?);
        }
        Ok(PriceList { currency, period_years: self.period_years, systems })
    }
}

/// What every line is read with.
struct Reading<'r, 'a> {
    root: &'r TableReader<'a>,
    currency: Currency,
    period_years: u32,
}

impl Reading<'_, '_> {
    fn system(&self, at: usize, table: SystemTable) -> Result<SystemPrices, SuiteError> {
        let path = format!("systems.{at}");
        if table.items.is_empty() {
            let message = format!("system {:?} has no items", table.name);
            return Err(self.root.error_at(&path, message));
        }
        let items: Result<Vec<PriceItem>, SuiteError> = (0..)
            .zip(table.items)
            .map(|(line, item)| self.item(&format!("{path}.items.{line}"), item))
            .collect();
        let items = items?;
        let sum = items.iter().try_fold(Money::zero(self.currency), |sum, i| sum.plus(i.total));
        let total = sum.ok_or_else(|| self.too_large(&path))?;
        self.check(&format!("{path}.total"), table.total, total, "its lines come to")?;
        Ok(SystemPrices { name: table.name, items, total })
    }

    fn item(&self, path: &str, item: ItemTable) -> Result<PriceItem, SuiteError> {
        let at = |key: &str| format!("{path}.{key}");
        if let Some(other) = item.currency.filter(|code| code != self.currency.code()) {
            let message = format!(
                "a price in {other:?} among prices in {}; currencies are never mixed",
                self.currency
            );
            let help = "convert it, and say rate and day in its `source`; or write a file for each";
            return Err(self.root.error_at(&at("currency"), message).with_help(help));
        }
        let (unit_price, times) = match (item.unit_price, item.price_per_hour) {
            (Some(once), None) => (UnitPrice::Once(once), 1),
            (None, Some(hour)) => {
                (UnitPrice::PerHour(hour), u64::from(HOURS_PER_YEAR * self.period_years))
            }
            (Some(_), Some(_)) => {
                let message = format!("{:?} has both a unit price and a price per hour", item.name);
                let help = "price what is bought and what is rented on lines of their own";
                return Err(self.root.error_at(&at("price_per_hour"), message).with_help(help));
            }
            (None, None) => {
                let message = format!("{:?} has no price", item.name);
                let help = "write `unit_price`, or `price_per_hour` of what is rented";
                return Err(self.root.error_at(path, message).with_help(help));
            }
        };
        let (UnitPrice::Once(one) | UnitPrice::PerHour(one)) = unit_price;
        let times = u64::from(item.quantity) * times;
        let price = Money::times(one, times, item.discount_percent, self.currency)
            .ok_or_else(|| self.too_large(path))?;
        let shown = format!("{times} × {one} less {} % are", item.discount_percent);
        self.check(&at("price"), item.price, price, &shown)?;
        let maintenance = match (item.maintenance_years, item.maintenance_price) {
            (Some(years), Some(price)) => {
                let price = Money::new(price, self.currency).ok_or_else(|| self.too_large(path))?;
                Some(Maintenance { years, price })
            }
            (None, None) => None,
            (years, _) => {
                let missing = if years.is_some() { "price" } else { "years" };
                let message = format!("`maintenance_{missing}` of {:?} is missing", item.name);
                return Err(self.root.error_at(path, message));
            }
        };
        let total = maintenance.map_or(Some(price), |maintenance| price.plus(maintenance.price));
        Ok(PriceItem {
            name: item.name,
            part_number: item.part_number,
            source: item.source,
            date: item.date,
            available: item.available,
            quantity: item.quantity,
            unit_price,
            discount_percent: item.discount_percent,
            price,
            maintenance,
            total: total.ok_or_else(|| self.too_large(path))?,
        })
    }

    /// A given sum must equal the computed one, to the smallest unit.
    fn check(
        &self,
        path: &str,
        declared: Option<f64>,
        computed: Money,
        how: &str,
    ) -> Result<(), SuiteError> {
        let Some(declared) = declared else { return Ok(()) };
        let key = path.rsplit('.').next().unwrap_or(path);
        let declared = Money::new(declared, self.currency).ok_or_else(|| self.too_large(path))?;
        if declared == computed {
            return Ok(());
        }
        let message = format!("`{key}` is {declared}, but {how} {computed}");
        let help = "correct a line, or leave the sum out";
        Err(self.root.error_at(path, message).with_help(help))
    }

    fn too_large(&self, path: &str) -> SuiteError {
        let most = Money::new(MONEY_MAX, self.currency).unwrap_or(Money::zero(self.currency));
        self.root.error_at(path, format!("the amount is above {most}"))
    }
}
