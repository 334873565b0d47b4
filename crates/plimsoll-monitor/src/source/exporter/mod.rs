//! A Prometheus exporter: its metrics, written as the texts of `/proc` that they came from.

mod node;
mod windows;

use std::collections::{BTreeMap, HashMap};

use plimsoll_model::units::NANOS_PER_SECOND;

use super::http::Page;
use super::{ClockOffset, Fact, Fetched, Lost, Peer, SAMPLE_WAIT, middle};
use crate::clock::ClockReading;
use crate::parse::{PrometheusSample, parse_prometheus};
use crate::root::{Frame, Texts};

#[derive(Debug)]
pub(super) struct ExporterPeer {
    page: Page,
    untold: &'static [(&'static str, &'static str)],
}

/// One answer.
struct Answer {
    fetched: Fetched,
    texts: Texts,
    system: String,
    offset: Option<ClockOffset>,
    untold: &'static [(&'static str, &'static str)],
}

impl ExporterPeer {
    /// Asks once.
    pub(super) fn open(host: &str, port: u16, path: &str) -> Result<(Self, Vec<Fact>), Lost> {
        let page = Page::at(host, port, path)?;
        let mut peer = Self { page, untold: &[] };
        let answer = peer.ask()?;
        peer.untold = answer.untold;
        let mut facts = vec![("system", answer.system)];
        facts.extend(answer.offset.map(|offset| ("clock", offset.text(1))));
        Ok((peer, facts))
    }

    fn ask(&self) -> Result<Answer, Lost> {
        let asked = ClockReading::now();
        let reply = self.page.get(SAMPLE_WAIT)?;
        let samples = parse_prometheus(&reply.text);
        let metrics = Metrics::of(&samples);
        let at = middle(asked, reply.first_byte_ns);
        let none: &[_] = &[];
        let (texts, system, untold) = if metrics.has(node::CPU) {
            (node::texts(&metrics), node::system(&metrics), none)
        } else if metrics.has(windows::CPU) {
            let texts = windows::texts(&metrics, at.monotonic_ns);
            (texts, windows::system(&metrics), &windows::UNTOLD[..])
        } else {
            return Err(Lost(format!(
                "its {} metrics are neither node_exporter's nor windows_exporter's",
                samples.len()
            )));
        };
        let own = metrics.sum("process_cpu_seconds_total");
        let told = metrics.sum("node_time_seconds").or_else(|| metrics.sum("windows_os_time"));
        let ns = |seconds: f64| (seconds * NANOS_PER_SECOND as f64) as u64;
        let fetched = Fetched { at, servers: Vec::new(), cost_ns: own.map(ns) };
        let offset = told.map(|told| ClockOffset::of(asked, reply.first_byte_ns, ns(told), 0));
        Ok(Answer { fetched, texts, system, offset, untold })
    }
}

impl Peer for ExporterPeer {
    fn fetch(&mut self, frame: &Frame) -> Result<Option<Fetched>, Lost> {
        let answer = self.ask()?;
        frame.replace(answer.texts);
        Ok(Some(answer.fetched))
    }

    fn untold(&self) -> &'static [(&'static str, &'static str)] {
        self.untold
    }
}

/// Samples by the name of their metric.
struct Metrics<'t>(HashMap<&'t str, Vec<&'t PrometheusSample<'t>>>);

impl<'t> Metrics<'t> {
    fn of(samples: &'t [PrometheusSample<'t>]) -> Self {
        let mut by_name: HashMap<&str, Vec<&PrometheusSample<'_>>> = HashMap::new();
        for sample in samples {
            by_name.entry(sample.name).or_default().push(sample);
        }
        Self(by_name)
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Sum over all labels.
    fn sum(&self, name: &str) -> Option<f64> {
        Some(self.0.get(name)?.iter().map(|sample| sample.value).sum())
    }

    /// By the value of a label, summed over the others.
    fn by(&self, name: &str, label: &str) -> BTreeMap<String, f64> {
        let mut by: BTreeMap<String, f64> = BTreeMap::new();
        for sample in self.0.get(name).into_iter().flatten() {
            if let Some(value) = label_value(sample.labels, label) {
                *by.entry(value).or_default() += sample.value;
            }
        }
        by
    }

    /// By the values of two labels.
    fn by_two(&self, name: &str, labels: [&str; 2]) -> BTreeMap<[String; 2], f64> {
        let samples = self.0.get(name).into_iter().flatten();
        let keyed = samples.filter_map(|sample| {
            let [first, second] = labels.map(|label| label_value(sample.labels, label));
            Some(([first?, second?], sample.value))
        });
        keyed.collect()
    }

    /// What follows `prefix` in the names of metrics, with their sums, sorted.
    fn below<'a>(&'a self, prefix: &'a str) -> BTreeMap<&'t str, f64> {
        let below = self.0.keys().filter_map(|name| Some((name.strip_prefix(prefix)?, *name)));
        below.filter_map(|(rest, name)| Some((rest, self.sum(name)?))).collect()
    }

    /// A label of the only sample of a metric.
    fn label(&self, name: &str, label: &str) -> Option<String> {
        label_value(self.0.get(name)?.first()?.labels, label)
    }
}

/// Value of a label in what stands between the braces, with its escapes undone.
fn label_value(labels: &str, wanted: &str) -> Option<String> {
    let mut rest = labels;
    loop {
        let (name, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut escaped = false;
        let mut end = None;
        for (at, c) in after.char_indices() {
            match c {
                'n' if escaped => value.push('\n'),
                _ if escaped => value.push(c),
                '\\' => {}
                '"' => {
                    end = Some(at);
                    break;
                }
                _ => value.push(c),
            }
            escaped = c == '\\' && !escaped;
        }
        if name.trim_matches([',', ' ']) == wanted {
            return end.map(|_| value);
        }
        rest = &after[end? + 1..];
    }
}

#[cfg(test)]
mod tests;
