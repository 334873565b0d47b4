//! File throughput as a report prints it: bytes per second over clients, with those that took
//! part, and what the server cost.

use plimsoll_model::published::PublishedTable;
use plimsoll_model::units::{BYTES_PER_MIB, grouped, grouped_with};
use serde::{Deserialize, Serialize};

use super::{Published, PublishedError, headings, published};
use crate::price::{Peak, Priced};

/// Figures printed with one decimal may be off by half of it.
const PRINTED_TOLERANCE: f64 = 0.0501;

/// Throughput of one server over clients, and its price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByteCurve {
    /// Name.
    pub name: String,
    /// Processors of the server, where the report says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<u32>,
    /// Clients that each mix requested.
    pub clients: Vec<u32>,
    /// Clients that took part in it.
    pub participating: Vec<u32>,
    /// Throughput of each mix.
    pub bytes_per_s: Vec<f64>,
    /// The same as printed, in Mbit of 2^20 bits.
    pub printed_mbit_per_s: Vec<f64>,
    /// The same as printed, in MB of 2^20 bytes.
    pub printed_mb_per_s: Vec<f64>,
    /// Line items of the price.
    #[serde(default)]
    pub prices: Vec<PriceItem>,
    /// The report's price per MB/s.
    pub printed_usd_per_mb_per_s: Option<f64>,
    /// Name of the transcribed result that the report compares this one with, and the comparison as
    /// printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rival: Option<Rival>,
    /// Location of the mixes.
    pub place: String,
    /// Location of the line items.
    pub prices_place: String,
    /// Location of the price per MB/s.
    pub printed_price_place: String,
}

/// One line of a price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceItem {
    /// What it is.
    pub feature: String,
    /// Which one.
    pub configuration: String,
    /// Its price.
    pub usd: f64,
}

/// Another server of the same report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rival {
    /// Name of its file; its first curve is meant.
    pub name: String,
    /// The ratio of the throughputs, as printed.
    pub throughput: String,
    /// The same as a number.
    pub throughput_ratio: f64,
    /// The ratio of the prices per unit, as printed.
    pub price_performance: String,
    /// The same as a number.
    pub price_performance_ratio: f64,
    /// Location of the comparison.
    pub place: String,
}

impl ByteCurve {
    /// Its highest mix: requested clients, and bytes per second.
    pub fn peak(&self) -> Option<(u32, f64)> {
        let mixes = self.clients.iter().copied().zip(self.bytes_per_s.iter().copied());
        mixes.reduce(|best, mix| if mix.1 > best.1 { mix } else { best })
    }

    /// Peak and price; `None` without a price.
    pub fn priced(&self) -> Option<Priced> {
        let (_, peak_bytes_per_s) = self.peak()?;
        let price = self.prices.iter().map(|item| item.usd).sum();
        (!self.prices.is_empty()).then_some(Priced { peak_bytes_per_s, price })
    }

    pub(super) fn locations(&self) -> impl Iterator<Item = &str> {
        let own = [&self.place, &self.prices_place, &self.printed_price_place];
        let of_rival = self.rival.as_ref().map(|rival| &rival.place);
        own.into_iter().chain(of_rival).map(String::as_str)
    }

    /// The first inconsistency.
    pub(super) fn mistake(&self) -> Option<String> {
        let mixes = self.clients.len();
        let lengths = [
            self.participating.len(),
            self.bytes_per_s.len(),
            self.printed_mbit_per_s.len(),
            self.printed_mb_per_s.len(),
        ];
        if mixes == 0 || lengths.iter().any(|length| *length != mixes) {
            return Some(format!("the columns of {:?} differ in length", self.name));
        }
        if self
            .participating
            .iter()
            .zip(&self.clients)
            .any(|(took_part, requested)| took_part > requested)
        {
            return Some(format!("in {:?} more clients took part than were asked", self.name));
        }
        let printed = self.printed_mb_per_s.iter().zip(&self.printed_mbit_per_s);
        let off = self.bytes_per_s.iter().zip(printed).find(|(bytes, (mb, mbit))| {
            let exact = **bytes / BYTES_PER_MIB;
            (exact - **mb).abs() > PRINTED_TOLERANCE
                || (exact * 8.0 - **mbit).abs() > PRINTED_TOLERANCE
        });
        if let Some((bytes, _)) = off {
            let bytes = grouped(*bytes);
            return Some(format!("{bytes} bytes/s of {:?} are not the units printed", self.name));
        }
        let per_unit = self.priced().and_then(|priced| priced.per_mb_per_s(Peak::Rounded));
        let wrong = self
            .printed_usd_per_mb_per_s
            .is_some_and(|printed| per_unit.is_none_or(|usd| (usd - printed).abs() > 0.005));
        wrong
            .then(|| format!("the price per MB/s of {:?} does not follow from its peak", self.name))
    }

    /// Its mixes, peak marked.
    pub(super) fn mixes_table(&self) -> PublishedTable {
        let peak = self.peak().map(|(clients, _)| clients);
        let row = |at: usize| {
            let bytes = self.bytes_per_s[at];
            vec![
                self.clients[at].to_string(),
                self.participating[at].to_string(),
                grouped(bytes),
                format!("{:.1}", self.printed_mb_per_s[at]),
                format!("{:.1}", self.printed_mbit_per_s[at]),
                format!("{:.1}", bytes * 8.0 / 1e6),
                if Some(self.clients[at]) == peak { "peak" } else { "" }.to_owned(),
            ]
        };
        let columns = [
            "clients asked for",
            "took part",
            "bytes/s",
            "MB/s of 2^20 bytes, printed",
            "Mbit/s of 2^20 bits, printed",
            "Mbit/s of 10^6 bits, computed",
            "",
        ];
        PublishedTable {
            name: format!("throughput of {}", self.name),
            place: self.place.clone(),
            columns: headings(&columns),
            rows: (0..self.clients.len()).map(row).collect(),
        }
    }

    /// The line items and their sum.
    pub(super) fn price_table(&self) -> PublishedTable {
        let row = |item: &PriceItem| {
            vec![item.feature.clone(), item.configuration.clone(), grouped(item.usd)]
        };
        let mut rows: Vec<Vec<String>> = self.prices.iter().map(row).collect();
        if let Some(priced) = self.priced() {
            rows.push(vec!["total, computed".to_owned(), String::new(), grouped(priced.price)]);
        }
        PublishedTable {
            name: format!("price of {}", self.name),
            place: self.prices_place.clone(),
            columns: headings(&["feature", "configuration", "US $"]),
            rows,
        }
    }

    /// Price per unit of the peak, and the ratios to the rival's, from rounded and unrounded peaks.
    pub(super) fn performance_table(&self) -> PublishedTable {
        let mut rows = Vec::new();
        if let Some(priced) = self.priced() {
            for peak in Peak::BOTH {
                rows.push(self.per_unit_row(&priced, peak));
            }
            let rival = self.rival.as_ref().and_then(|rival| Some((rival, rival.priced().ok()??)));
            if let Some((rival, other)) = rival {
                rows.extend(Peak::BOTH.map(|peak| rival.throughput_row(&priced, &other, peak)));
                rows.extend(Peak::BOTH.map(|peak| rival.price_row(&priced, &other, peak)));
            }
        }
        PublishedTable {
            name: format!("price/performance of {}", self.name),
            place: match &self.rival {
                Some(rival) => format!("{}; {}", self.printed_price_place, rival.place),
                None => self.printed_price_place.clone(),
            },
            columns: headings(&["figure", "peak", "computed", "as printed"]),
            rows,
        }
    }

    fn per_unit_row(&self, priced: &Priced, peak: Peak) -> Vec<String> {
        let usd = priced.per_mb_per_s(peak).map(dollars).unwrap_or_default();
        let mb_per_s = peak.mb_per_s(priced.peak_bytes_per_s);
        let printed = self.printed_usd_per_mb_per_s.filter(|_| peak == Peak::Rounded);
        vec![
            "US $ per MB/s of 2^20 bytes".to_owned(),
            match peak {
                Peak::Rounded => format!("{mb_per_s:.1}, {}", peak.as_str()),
                Peak::Unrounded => format!("{mb_per_s:.3}, {}", peak.as_str()),
            },
            usd,
            printed.map(dollars).unwrap_or_default(),
        ]
    }
}

impl Rival {
    fn priced(&self) -> Result<Option<Priced>, PublishedError> {
        Ok(published(&self.name)?.byte_curves.first().and_then(ByteCurve::priced))
    }

    fn throughput_row(&self, own: &Priced, other: &Priced, peak: Peak) -> Vec<String> {
        let times = own.times_the_throughput(other, peak);
        self.row(("throughput", &self.throughput), times, peak)
    }

    fn price_row(&self, own: &Priced, other: &Priced, peak: Peak) -> Vec<String> {
        let times = own.times_the_price_performance(other, peak);
        self.row(("price/performance", &self.price_performance), times, peak)
    }

    fn row(&self, (what, printed): (&str, &str), times: Option<f64>, peak: Peak) -> Vec<String> {
        let times = times.map(|times| format!("{times:.2} times")).unwrap_or_default();
        let printed = if peak == Peak::Rounded { printed } else { "" };
        let what = format!("{what} against {}", self.name);
        vec![what, peak.as_str().to_owned(), times, printed.to_owned()]
    }
}

impl Published {
    /// The report's tables of file throughput, in order.
    pub(super) fn byte_tables(&self) -> Vec<PublishedTable> {
        let of = |curve: &ByteCurve| [curve.performance_table(), curve.price_table()];
        self.byte_curves.iter().flat_map(of).collect()
    }
}

/// With cents, thousands grouped.
fn dollars(value: f64) -> String {
    grouped_with(value, 2)
}
