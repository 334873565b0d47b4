//! Amounts of money and days, exact; currencies by their ISO 4217 codes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{grouped_with, read_text};

/// Largest amount of one line or sum, in whole units; more is taken for a typing error.
pub(super) const MONEY_MAX: f64 = 1e12;
/// Prices of one unit are kept to a millionth: an hour may cost a fraction of a cent.
const MICROS: f64 = 1e6;
/// Decimals of these.
const MICROS_DECIMALS: u32 = 6;

/// An amount in the smallest unit of its currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money {
    smallest: i64,
    currency: Currency,
}

impl Money {
    /// Nothing.
    pub const fn zero(currency: Currency) -> Self {
        Self { smallest: 0, currency }
    }

    /// An amount in whole units, rounded to the smallest; `None` beyond 10^12.
    pub fn new(units: f64, currency: Currency) -> Option<Self> {
        Self::times(units, 1, 0.0, currency)
    }

    /// A price in whole units, `times` times, less a discount; rounded once, at the end.
    pub fn times(
        unit_price: f64,
        times: u64,
        discount_percent: f64,
        currency: Currency,
    ) -> Option<Self> {
        if !unit_price.is_finite() || unit_price.abs() > MONEY_MAX {
            return None;
        }
        let micros = (unit_price * MICROS).round() as i128;
        // The discount is accurate to a millionth of the price.
        let paid = (MICROS - discount_percent * MICROS / 100.0).round() as i128;
        let divisor = 10i128.pow(MICROS_DECIMALS - currency.decimals()) * MICROS as i128;
        let product = micros.checked_mul(i128::from(times))?.checked_mul(paid)?;
        let rounded = (product + product.signum() * divisor / 2) / divisor;
        let within = rounded.unsigned_abs() as f64 <= MONEY_MAX * Self::per_unit(currency);
        within.then_some(Self { smallest: i64::try_from(rounded).ok()?, currency })
    }

    /// Both together; `None` where the currencies differ or the sum is too large.
    pub fn plus(self, other: Self) -> Option<Self> {
        let same = self.currency == other.currency;
        let smallest = self.smallest.checked_add(other.smallest).filter(|_| same)?;
        Some(Self { smallest, ..self })
    }

    /// In whole units.
    pub fn units(self) -> f64 {
        self.smallest as f64 / Self::per_unit(self.currency)
    }

    /// Its currency.
    pub const fn currency(self) -> Currency {
        self.currency
    }

    fn per_unit(currency: Currency) -> f64 {
        10f64.powi(currency.decimals() as i32)
    }

    /// Without the code: `13,900.00`.
    pub fn amount_text(self) -> String {
        grouped_with(self.units(), self.currency.decimals() as usize)
    }
}

/// `EUR 13,900.00`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.currency, self.amount_text())
    }
}

/// As a number in whole units; every document names the currency too.
impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.units())
    }
}

/// A day, as ISO 8601 writes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Date(String);

impl Date {
    /// Reads `2026-11-01`.
    pub fn parse(text: &str) -> Option<Self> {
        let [year, month, day] = text.split('-').collect::<Vec<_>>().try_into().ok()?;
        let digits = |part: &str, length: usize| -> Option<u32> {
            let all = part.len() == length && part.bytes().all(|b| b.is_ascii_digit());
            part.parse().ok().filter(|_| all)
        };
        let (year, month, day) = (digits(year, 4)?, digits(month, 2)?, digits(day, 2)?);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        (1..=days).contains(&day).then(|| Self(text.to_owned()))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_text(deserializer, "a day such as 2026-11-01", Self::parse)
    }
}

/// Codes of currencies in use with the decimals of their smallest unit, where these are not two.
/// Source: ISO 4217, list one; funds, metals and testing codes are left out.
const OTHER_DECIMALS: [(&str, u32); 24] = [
    ("BHD", 3),
    ("BIF", 0),
    ("CLP", 0),
    ("DJF", 0),
    ("GNF", 0),
    ("IQD", 3),
    ("ISK", 0),
    ("JOD", 3),
    ("JPY", 0),
    ("KMF", 0),
    ("KRW", 0),
    ("KWD", 3),
    ("LYD", 3),
    ("OMR", 3),
    ("PYG", 0),
    ("RWF", 0),
    ("TND", 3),
    ("UGX", 0),
    ("UYW", 4),
    ("VND", 0),
    ("VUV", 0),
    ("XAF", 0),
    ("XOF", 0),
    ("XPF", 0),
];
/// Codes of the others, four characters apart.
const TWO_DECIMALS: &str = "\
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF \
    CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD \
    HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA \
    MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN \
    QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP \
    TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG";

/// A currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency {
    code: &'static str,
    decimals: u32,
}

impl Currency {
    /// By its code, in capitals.
    pub fn of_code(code: &str) -> Option<Self> {
        Self::all().find(|currency| currency.code == code)
    }

    /// Every known currency.
    pub fn all() -> impl Iterator<Item = Self> {
        let two = TWO_DECIMALS.split_whitespace().map(|code| Self { code, decimals: 2 });
        two.chain(OTHER_DECIMALS.iter().map(|&(code, decimals)| Self { code, decimals }))
    }

    /// Its ISO 4217 code.
    pub const fn code(self) -> &'static str {
        self.code
    }

    /// Decimals of its smallest unit.
    pub const fn decimals(self) -> u32 {
        self.decimals
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code)
    }
}
