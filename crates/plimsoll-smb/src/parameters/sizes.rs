//! How large reads and writes are.

use std::fmt;

use plimsoll_model::suite::{SuiteError, TableReader};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Most bytes of one read or write; files of every scale have room for it.
pub(super) const REQUEST_BYTES_MAX: u32 = 65_536;
/// Rows a table may have: a draw walks through them.
const ROWS_MAX: usize = 64;

/// Rows of sizes: row i has weight `percent[i]` and sizes from `bytes_min[i]` to `bytes_max[i]`,
/// all equally likely.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(extend("required" = []))]
pub struct SizeTable {
    /// Weights of the rows.
    pub percent: Vec<f64>,
    /// Smallest size of each row.
    #[schemars(inner(range(min = 1, max = REQUEST_BYTES_MAX)))]
    pub bytes_min: Vec<u32>,
    /// Largest size of each row.
    #[schemars(inner(range(min = 1, max = REQUEST_BYTES_MAX)))]
    pub bytes_max: Vec<u32>,
}

impl fmt::Display for SizeTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.percent.iter().zip(self.bytes_min.iter().zip(&self.bytes_max));
        for (number, (percent, (min, max))) in rows.enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            match min == max {
                true => write!(f, "{comma}{percent} % of {min} B")?,
                false => write!(f, "{comma}{percent} % of {min} to {max} B")?,
            }
        }
        Ok(())
    }
}

impl SizeTable {
    fn from_rows(rows: &[(f64, u32, u32)]) -> Self {
        Self {
            percent: rows.iter().map(|row| row.0).collect(),
            bytes_min: rows.iter().map(|row| row.1).collect(),
            bytes_max: rows.iter().map(|row| row.2).collect(),
        }
    }

    /// The method's reads. Where it has shares of bytes but no sizes, the middle of a row gives
    /// those shares.
    pub fn method_reads() -> Self {
        Self::from_rows(&[
            (7.2, 2, 656),
            (6.1, 1_025, 3_411),
            (67.0, 4_096, 4_096),
            (6.0, 4_097, 16_384),
            (0.3, 24_577, 32_768),
            (13.4, 61_440, 61_440),
        ])
    }

    /// The method's writes, likewise.
    pub fn method_writes() -> Self {
        Self::from_rows(&[
            (18.8, 1, 1),
            (3.6, 2, 1_024),
            (3.7, 1_025, 3_121),
            (26.0, 4_096, 4_096),
            (8.5, 4_986, 16_384),
            (3.9, 16_385, 31_519),
            (0.9, 32_769, 45_911),
            (34.5, 65_536, 65_536),
        ])
    }

    /// Mean size in bytes.
    pub fn mean_bytes(&self) -> f64 {
        let total: f64 = self.percent.iter().sum();
        let sizes = self.bytes_min.iter().zip(&self.bytes_max);
        let middles = sizes.map(|(min, max)| (f64::from(*min) + f64::from(*max)) / 2.0);
        self.percent.iter().zip(middles).map(|(percent, bytes)| percent * bytes).sum::<f64>()
            / total
    }

    /// Fields that a table of reads omits have the method's values.
    pub(super) fn reads<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Written::deserialize(deserializer)?.apply_to(Self::method_reads()))
    }

    /// Fields that a table of writes omits have the method's values.
    pub(super) fn writes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Written::deserialize(deserializer)?.apply_to(Self::method_writes()))
    }

    /// Checks that the lists fit each other. `key` is the table's.
    pub(super) fn check(&self, table: &TableReader<'_>, key: &str) -> Result<(), SuiteError> {
        let wrong = |list: &str, message: String, help: String| {
            Err(table.error_at(&format!("{key}.{list}"), message).with_help(help))
        };
        let rows = self.percent.len();
        if rows != self.bytes_min.len() || rows != self.bytes_max.len() || rows > ROWS_MAX {
            let message = format!(
                "there are {rows} of `percent`, {} of `bytes_min` and {} of `bytes_max`",
                self.bytes_min.len(),
                self.bytes_max.len()
            );
            let help = format!("write lists of the same length, at most {ROWS_MAX}");
            return wrong("percent", message, help);
        }
        let weighted =
            self.percent.iter().all(|p| *p >= 0.0) && self.percent.iter().any(|p| *p > 0.0);
        if !weighted {
            let message = "a weight is below 0, or none is above".to_owned();
            return wrong(
                "percent",
                message,
                "write shares in percent, like [70.0, 30.0]".to_owned(),
            );
        }
        let falling = self.bytes_min.iter().zip(&self.bytes_max).find(|(min, max)| min > max);
        falling.map_or(Ok(()), |(min, max)| {
            let message = format!("a row is from {min} to {max} bytes");
            wrong(
                "bytes_min",
                message,
                "write the smaller size of each row under bytes_min".to_owned(),
            )
        })
    }
}

/// The lists that a suite names.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    percent: Option<Vec<f64>>,
    bytes_min: Option<Vec<u32>>,
    bytes_max: Option<Vec<u32>>,
}

impl Written {
    fn apply_to(self, method: SizeTable) -> SizeTable {
        SizeTable {
            percent: self.percent.unwrap_or(method.percent),
            bytes_min: self.bytes_min.unwrap_or(method.bytes_min),
            bytes_max: self.bytes_max.unwrap_or(method.bytes_max),
        }
    }
}
