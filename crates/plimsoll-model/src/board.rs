//! A table of results, as the source reports had it: runs and published systems, a line each. What
//! analysis makes of results and of transcribed files; reports show it.

use std::cmp::Ordering;

use crate::limit::Limit;

/// A result, or a published system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoardRow {
    /// Where it is from.
    pub source: BoardSource,
    /// First instant of the run, RFC 3339; the year of a published result.
    pub date: Option<String>,
    /// Server software and the processor of its host; where neither is known, the targets.
    pub system: String,
    /// Suite of the run, or those that follow the published method.
    pub suite: String,
    /// Profile of the run; absent of published results.
    pub profile: Option<String>,
    /// Processors that the server had; absent where the disclosure does not say.
    pub processors: Option<u32>,
    /// The headline, in `unit`.
    pub peak: Option<f64>,
    /// `ops/s`, `bytes/s`.
    pub unit: String,
    /// The server carries at least the headline.
    pub at_least: bool,
    /// Mean response time at the load point with the highest throughput that counts.
    pub response_mean_ns: Option<f64>,
    /// 99th percentile of the same.
    pub response_p99_ns: Option<f64>,
    /// Overall response time, of suites that have one.
    pub overall_response_ms: Option<f64>,
    /// What held the run back; absent where nothing is known of it.
    pub limit: Option<Limit>,
    /// What a unit of the peak costs.
    pub price: Option<BoardPrice>,
    /// The verdict of a run; absent of published results.
    pub valid: Option<bool>,
    /// The bundle carries a signature, which was not checked; absent of published results.
    pub signed: Option<bool>,
}

/// Where a line is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoardSource {
    /// Directory of a bundle.
    Bundle(String),
    /// A published system, as typed after `published:`.
    Published(String),
}

impl Default for BoardSource {
    fn default() -> Self {
        Self::Bundle(String::new())
    }
}

/// What a unit of the peak costs.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardPrice {
    /// ISO 4217 code.
    pub currency: String,
    /// Money for one unit.
    pub per_unit: f64,
    /// `ops/s`, `MiB/s`.
    pub unit: String,
    /// The server carries at least its peak, so that a unit costs at most this.
    pub at_most: bool,
}

/// What lines are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the columns")]
pub enum BoardColumn {
    Date,
    System,
    Suite,
    Processors,
    Peak,
    PerProcessor,
    ResponseMean,
    ResponseP99,
    OverallResponse,
    Limit,
    Price,
    Verdict,
    Signed,
    Source,
}

impl BoardColumn {
    /// The best or newest is the largest value, so that the first order is a falling one.
    pub const fn falls(self) -> bool {
        use BoardColumn::{Date, Peak, PerProcessor, Processors, Signed, Verdict};
        matches!(self, Date | Processors | Peak | PerProcessor | Verdict | Signed)
    }
}

impl BoardRow {
    /// Peak for each processor, in `unit`.
    pub fn per_processor(&self) -> Option<f64> {
        let processors = self.processors.filter(|number| *number > 0)?;
        Some(self.peak? / f64::from(processors))
    }

    /// The row has something to be sorted by in this column.
    pub fn has(&self, column: BoardColumn) -> bool {
        match column {
            BoardColumn::Date => self.date.is_some(),
            BoardColumn::System | BoardColumn::Suite | BoardColumn::Source => true,
            BoardColumn::Limit => self.limit.is_some(),
            BoardColumn::Verdict => self.valid.is_some(),
            BoardColumn::Signed => self.signed.is_some(),
            number => self.number(number).is_some(),
        }
    }

    /// Best or newest first, names by the alphabet; throughputs in different units are not compared:
    /// those of a unit are together. What is absent comes last.
    pub fn order(&self, other: &Self, column: BoardColumn) -> Ordering {
        let absent = other.has(column).cmp(&self.has(column));
        let by_value = || match column {
            BoardColumn::Date => other.date.cmp(&self.date),
            BoardColumn::System => self.system.cmp(&other.system),
            BoardColumn::Suite => self.suite.cmp(&other.suite),
            BoardColumn::Source => self.source.name().cmp(other.source.name()),
            BoardColumn::Limit => self.limit_order().cmp(&other.limit_order()),
            BoardColumn::Verdict => other.valid.cmp(&self.valid),
            BoardColumn::Signed => other.signed.cmp(&self.signed),
            BoardColumn::Processors => descending(self, other, column),
            BoardColumn::Peak | BoardColumn::PerProcessor => {
                self.unit.cmp(&other.unit).reverse().then(descending(self, other, column))
            }
            BoardColumn::Price => {
                let unit = |row: &Self| {
                    row.price.as_ref().map(|it| (it.unit.clone(), it.currency.clone()))
                };
                unit(self).cmp(&unit(other)).then(descending(other, self, column))
            }
            // A short time is the better one.
            BoardColumn::ResponseMean | BoardColumn::ResponseP99 | BoardColumn::OverallResponse => {
                descending(other, self, column)
            }
        };
        absent.then_with(by_value)
    }

    fn limit_order(&self) -> Option<(&'static str, Option<&str>)> {
        self.limit.as_ref().map(|limit| (limit.kind.as_str(), limit.place.as_deref()))
    }

    fn number(&self, column: BoardColumn) -> Option<f64> {
        match column {
            BoardColumn::Processors => self.processors.map(f64::from),
            BoardColumn::Peak => self.peak,
            BoardColumn::PerProcessor => self.per_processor(),
            BoardColumn::ResponseMean => self.response_mean_ns,
            BoardColumn::ResponseP99 => self.response_p99_ns,
            BoardColumn::OverallResponse => self.overall_response_ms,
            BoardColumn::Price => self.price.as_ref().map(|price| price.per_unit),
            _ => None,
        }
    }
}

fn descending(one: &BoardRow, other: &BoardRow, column: BoardColumn) -> Ordering {
    let number = |row: &BoardRow| row.number(column).unwrap_or(0.0);
    number(other).total_cmp(&number(one))
}

impl BoardSource {
    /// The directory, or the name with its prefix.
    pub fn name(&self) -> &str {
        let (Self::Bundle(name) | Self::Published(name)) = self;
        name
    }
}
