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
    /// Processors that the server had; absent where the disclosure lacks it.
    pub processors: Option<u32>,
    /// The headline, in `unit`.
    pub peak: Option<f64>,
    /// `ops/s`, `bytes/s`.
    pub unit: String,
    /// The server can handle at least the headline.
    pub at_least: bool,
    /// Mean response time at the load point with the highest throughput that counts.
    pub response_mean_ns: Option<f64>,
    /// 99th percentile of the same.
    pub response_p99_ns: Option<f64>,
    /// Overall response time, of suites that have one.
    pub overall_response_ms: Option<f64>,
    /// What limited the run; absent where that is unknown.
    pub limit: Option<Limit>,
    /// What a unit of the peak costs.
    pub price: Option<BoardPrice>,
    /// The verdict of a run; absent of published results.
    pub valid: Option<bool>,
    /// The bundle has a signature, which was not checked; absent of published results.
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
    /// The server can handle at least its peak, so that a unit costs at most this.
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
        self.sort_key(column).number.is_some()
    }

    /// Best or newest first, names by the alphabet; throughputs in different units are not
    /// compared: those of a unit are together. What is absent comes last.
    pub fn order(&self, other: &Self, column: BoardColumn) -> Ordering {
        let absent = other.has(column).cmp(&self.has(column));
        let (one, two) = (self.sort_key(column), other.sort_key(column));
        let number = |key: &SortKey<'_>| key.number.unwrap_or(0.0);
        let by_value = one.texts.cmp(&two.texts).then(number(&one).total_cmp(&number(&two)));
        absent.then(if column.falls() { by_value.reverse() } else { by_value })
    }

    fn sort_key(&self, column: BoardColumn) -> SortKey<'_> {
        let limit = self.limit.as_ref();
        let price = self.price.as_ref();
        let of_unit = |value: Option<f64>| SortKey { texts: [&self.unit, ""], number: value };
        let yes_or_no = |value: Option<bool>| SortKey::number(value.map(f64::from));
        match column {
            BoardColumn::Date => SortKey::text(self.date.as_deref()),
            BoardColumn::System => SortKey::text(Some(&self.system)),
            BoardColumn::Suite => SortKey::text(Some(&self.suite)),
            BoardColumn::Source => SortKey::text(Some(self.source.name())),
            BoardColumn::Limit => SortKey {
                texts: limit.map_or(["", ""], |limit| {
                    [limit.kind.as_str(), limit.place.as_deref().unwrap_or_default()]
                }),
                number: limit.map(|_| 0.0),
            },
            BoardColumn::Price => SortKey {
                texts: price.map_or(["", ""], |price| [&price.unit, &price.currency]),
                number: price.map(|price| price.per_unit),
            },
            BoardColumn::Peak => of_unit(self.peak),
            BoardColumn::PerProcessor => of_unit(self.per_processor()),
            BoardColumn::Processors => SortKey::number(self.processors.map(f64::from)),
            BoardColumn::ResponseMean => SortKey::number(self.response_mean_ns),
            BoardColumn::ResponseP99 => SortKey::number(self.response_p99_ns),
            BoardColumn::OverallResponse => SortKey::number(self.overall_response_ms),
            BoardColumn::Verdict => yes_or_no(self.valid),
            BoardColumn::Signed => yes_or_no(self.signed),
        }
    }
}

/// What a row is sorted by in a column: texts, then a number, which is absent where the row has
/// nothing there.
struct SortKey<'r> {
    texts: [&'r str; 2],
    number: Option<f64>,
}

impl<'r> SortKey<'r> {
    fn text(text: Option<&'r str>) -> Self {
        Self { texts: [text.unwrap_or_default(), ""], number: text.map(|_| 0.0) }
    }

    fn number(number: Option<f64>) -> Self {
        Self { texts: ["", ""], number }
    }
}

impl BoardSource {
    /// The directory, or the name with its prefix.
    pub fn name(&self) -> &str {
        let (Self::Bundle(name) | Self::Published(name)) = self;
        name
    }
}
