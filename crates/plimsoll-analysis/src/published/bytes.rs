//! File throughput as a report prints it: bytes per second over clients, with those that took
//! part, and what the server cost.

use plimsoll_model::units::{BYTES_PER_MIB, grouped};
use serde::Deserialize;

use super::{Published, PublishedError, Table, published};
use crate::price::{Peak, Priced};

/// Figures printed with one decimal may be off by half of it.
const PRINTED_TOLERANCE: f64 = 0.0501;

/// Throughput of one server over clients, and its price.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByteCurve {
    /// Name.
    pub name: String,
    /// Clients each mix asked for.
    pub clients: Vec<u32>,
    /// Clients that took part in it.
    pub participating: Vec<u32>,
    /// Throughput of each mix.
    pub bytes_per_s: Vec<f64>,
    /// The same as printed, in Mbit of 2^20 bits.
    pub printed_mbit_per_s: Vec<f64>,
    /// The same as printed, in MB of 2^20 bytes.
    pub printed_mb_per_s: Vec<f64>,
    /// What the price is made of.
    #[serde(default)]
    pub prices: Vec<PriceItem>,
    /// The report's price per MB/s.
    #[serde(default)]
    pub printed_usd_per_mb_per_s: Option<f64>,
    /// Name of the transcribed result this one is compared with in the report, with what it
    /// prints of the comparison.
    #[serde(default)]
    pub rival: Option<Rival>,
}

/// One line of a price.
#[derive(Clone, Debug, PartialEq, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rival {
    /// Name of its file; its first curve is meant.
    pub name: String,
    /// What the report prints.
    pub printed: String,
}

impl ByteCurve {
    /// Its highest mix: clients asked for, and bytes per second.
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

    /// What does not fit together.
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
        if self.participating.iter().zip(&self.clients).any(|(took_part, asked)| took_part > asked)
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
    pub(super) fn mixes_table(&self) -> Table {
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
        Table {
            name: format!("throughput of {}", self.name),
            columns: columns.map(str::to_owned).to_vec(),
            rows: (0..self.clients.len()).map(row).collect(),
        }
    }

    /// The line items and their sum.
    pub(super) fn price_table(&self) -> Table {
        let row = |item: &PriceItem| {
            vec![item.feature.clone(), item.configuration.clone(), grouped(item.usd)]
        };
        let mut rows: Vec<Vec<String>> = self.prices.iter().map(row).collect();
        if let Some(priced) = self.priced() {
            rows.push(vec!["total, computed".to_owned(), String::new(), grouped(priced.price)]);
        }
        Table {
            name: format!("price of {}", self.name),
            columns: ["feature", "configuration", "US $"].map(str::to_owned).to_vec(),
            rows,
        }
    }

    /// Price per unit of the peak, and the ratios to the rival's, from rounded and unrounded peaks.
    pub(super) fn performance_table(&self) -> Table {
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
        Table {
            name: format!("price/performance of {}", self.name),
            columns: ["figure", "peak", "computed", "as printed"].map(str::to_owned).to_vec(),
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
        let other = published(&self.name)?;
        Ok(other.byte_curves.first().and_then(ByteCurve::priced))
    }

    fn throughput_row(&self, own: &Priced, other: &Priced, peak: Peak) -> Vec<String> {
        self.row("throughput", own.times_the_throughput(other, peak), peak)
    }

    fn price_row(&self, own: &Priced, other: &Priced, peak: Peak) -> Vec<String> {
        self.row("price/performance", own.times_the_price_performance(other, peak), peak)
    }

    fn row(&self, what: &str, times: Option<f64>, peak: Peak) -> Vec<String> {
        let times = times.map(|times| format!("{times:.2} times")).unwrap_or_default();
        let printed = if peak == Peak::Rounded { self.printed.clone() } else { String::new() };
        vec![format!("{what} against {}", self.name), peak.as_str().to_owned(), times, printed]
    }
}

impl Published {
    /// What the report says of file throughput, in order.
    pub(super) fn byte_tables(&self) -> Vec<Table> {
        let of = |curve: &ByteCurve| {
            [curve.mixes_table(), curve.performance_table(), curve.price_table()]
        };
        self.byte_curves.iter().flat_map(of).collect()
    }
}

/// With cents, thousands grouped.
fn dollars(value: f64) -> String {
    let cents = (value * 100.0).round();
    let whole = (cents / 100.0).trunc();
    let text = if whole < 100.0 { format!("{whole:.0}") } else { grouped(whole) };
    format!("{text}.{:02.0}", cents - whole * 100.0)
}
