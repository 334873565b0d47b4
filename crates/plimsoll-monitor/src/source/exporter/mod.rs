//! A Prometheus exporter: its metrics as the counters of `/proc` that they came from. Those of GPUs
//! and of servers of language models are passed on as they are.

mod node;
mod windows;

use std::collections::BTreeMap;

use plimsoll_model::units::NANOS_PER_SECOND;

use super::http::Page;
use super::{ClockOffset, Fact, Fetched, Lost, Peer, SAMPLE_WAIT, middle, row_name, ticks};
use crate::clock::ClockReading;
use crate::parse::{DeviceCounters, Metrics, parse_prometheus, whole};
use crate::root::{Frame, Texts};
use crate::sampler::{HostCounters, HostFigures, PAGING, SERVER_TEXT, TCP_EXT, UDP, exporter_name};

#[derive(Debug)]
pub(super) struct ExporterPeer {
    page: Page,
}

/// One answer.
struct Answer {
    fetched: Fetched,
    texts: Texts,
    system: String,
    offset: Option<ClockOffset>,
}

impl ExporterPeer {
    /// Asks once; its facts, and the names of its disks.
    pub(super) fn open(
        host: &str,
        port: u16,
        path: &str,
    ) -> Result<(Self, Vec<Fact>, Vec<String>), Lost> {
        let peer = Self { page: Page::resolve(host, port, path)? };
        let answer = peer.ask()?;
        let mut facts = vec![("system", answer.system)];
        facts.extend(answer.offset.map(|offset| ("clock", offset.text(1))));
        let disks = answer.fetched.figures.map(|it| it.disks).unwrap_or_default();
        Ok((peer, facts, disks.into_iter().map(|disk| disk.name).collect()))
    }

    fn ask(&self) -> Result<Answer, Lost> {
        let requested = ClockReading::now();
        let reply = self.page.get(SAMPLE_WAIT)?;
        let samples = parse_prometheus(&reply.text);
        let metrics = Metrics::from_samples(&samples);
        let at = middle(requested, reply.first_byte_ns);
        let mut texts = Texts::new();
        let (figures, system) = if metrics.has(node::CPU) {
            let labels = ["sysname", "release", "machine"];
            let system = system(&metrics, "node_uname_info", &labels, "node_exporter");
            (Some(node::figures(&metrics)), system)
        } else if metrics.has(windows::CPU) {
            let figures = windows::figures(&metrics, at.monotonic_ns);
            let labels = ["product", "version"];
            (Some(figures), system(&metrics, "windows_os_info", &labels, "windows_exporter"))
        } else if let Some(who) = exporter_name(&metrics) {
            texts.insert(SERVER_TEXT.to_owned(), reply.text.clone());
            (None, who.to_owned())
        } else {
            return Err(Lost(format!(
                "its {} metrics are neither node_exporter's nor windows_exporter's, nor those of \
                 the DCGM exporter or of a known server of language models",
                samples.len()
            )));
        };
        let own = metrics.sum("process_cpu_seconds_total");
        let reported = metrics.sum("node_time_seconds").or_else(|| metrics.sum("windows_os_time"));
        let ns = |seconds: f64| (seconds * NANOS_PER_SECOND as f64) as u64;
        let fetched = Fetched { at, figures, cost_ns: own.map(ns), ..Fetched::default() };
        let offset = reported.map(|reported| {
            ClockOffset::from_exchange(requested, reply.first_byte_ns, ns(reported), 0)
        });
        Ok(Answer { fetched, texts, system, offset })
    }
}

impl Peer for ExporterPeer {
    fn fetch(&mut self, frame: &Frame) -> Result<Option<Fetched>, Lost> {
        let answer = self.ask()?;
        frame.replace(answer.texts);
        Ok(Some(answer.fetched))
    }
}

/// Disks or interfaces by the exporter's names for them, told apart by a label of the metrics whose
/// names begin with `prefix` and end in these, in the order of the counters, each with the number of
/// the counter's units in one of the metric's. A counter without a metric is zero; one without a
/// name is absent.
fn devices<const N: usize>(
    metrics: &Metrics<'_>,
    (prefix, label): (&str, &str),
    names: &[(&str, f64)],
) -> BTreeMap<String, [Option<u64>; N]> {
    let without_metric = std::array::from_fn(|index| (index < names.len()).then_some(0));
    let mut all = BTreeMap::new();
    for (index, (name, units)) in names.iter().enumerate() {
        for (key, value) in metrics.by(&format!("{prefix}{name}"), label) {
            all.entry(key).or_insert(without_metric)[index] = Some(whole(value * units));
        }
    }
    all
}

/// Sectors of a byte, and milliseconds of a second.
const SECTORS: f64 = 1.0 / 512.0;
const MS: f64 = 1e3;

fn named<const N: usize>(devices: BTreeMap<String, [Option<u64>; N]>) -> Vec<DeviceCounters<N>> {
    let named = |(name, counters): (String, _)| DeviceCounters { name: row_name(&name), counters };
    devices.into_iter().map(named).collect()
}

/// From capacities in bytes per second by interface.
fn speeds_mbit(speeds: BTreeMap<String, f64>) -> BTreeMap<String, u64> {
    let mbit = |(name, speed): (String, f64)| (row_name(&name), whole(speed * 8.0 / 1e6));
    speeds.into_iter().map(mbit).collect()
}

/// The host's description of itself, from labels of a metric.
fn system(metrics: &Metrics<'_>, metric: &str, labels: &[&str], exporter: &str) -> String {
    let parts = labels.iter().filter_map(|label| metrics.label(metric, label));
    let text = parts.collect::<Vec<_>>().join(" ");
    format!("{} ({exporter})", if text.is_empty() { "unknown" } else { &text })
}

#[cfg(test)]
mod tests;
