//! A Prometheus exporter: its metrics, written as the texts of `/proc` that they came from. Those of
//! GPUs and of servers of language models have no such texts and are passed on as they are.

mod node;
mod windows;

use plimsoll_model::units::NANOS_PER_SECOND;

use super::http::Page;
use super::{ClockOffset, Fact, Fetched, Lost, Peer, SAMPLE_WAIT, middle};
use crate::clock::ClockReading;
use crate::parse::{Metrics, parse_prometheus};
use crate::root::{Frame, Texts};
use crate::sampler::{SERVER_TEXT, who_tells};

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
        } else if let Some(who) = who_tells(&metrics) {
            (Texts::from([(SERVER_TEXT.to_owned(), reply.text.clone())]), who.to_owned(), none)
        } else {
            return Err(Lost(format!(
                "its {} metrics are neither node_exporter's nor windows_exporter's, nor those of \
                 the DCGM exporter or of a known server of language models",
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

#[cfg(test)]
mod tests;
