//! Figures that servers report of themselves (`plimsoll_app_…`), polled once per sample, and the
//! kernel's NFS server, where there is one.

use std::fmt;

use super::Elapsed;
use super::models::{self, ModelTotals};
use super::table::{Column, Rows, Table, Unit};
use crate::parse::{Metrics, NfsdCounters, PrometheusSample, parse_nfsd, parse_prometheus};
use crate::root::{ProcFile, Root};

/// Path in a source's frame of a server's own figures.
pub(crate) const SERVER_TEXT: &str = "plimsoll/server";

pub(super) static SERVERS: Table = Table::keyed("server").columns(&[
    Column::summed("threads", Unit::Count),
    Column::summed("threads_busy", Unit::Count),
    Column::summed("threads_busy_mean", Unit::Count),
    Column::summed("queue", Unit::Count),
    Column::summed("queue_mean", Unit::Count),
    Column::summed("threads_in_fdatasync", Unit::Count),
    Column::summed("fdatasyncs", Unit::PerSecond),
    Column::summed("requests", Unit::PerSecond),
    Column::summed("segment_read", Unit::BytesPerSecond),
    Column::summed("segment_written", Unit::BytesPerSecond),
    Column::summed("connections", Unit::Count),
    Column::written("connections_refused", Unit::PerSecond),
    Column::written("connections_timed_out", Unit::PerSecond),
    Column::summed("connections_accepted", Unit::PerSecond),
    Column::summed("connections_reading", Unit::Count),
    Column::summed("connections_writing", Unit::Count),
    Column::summed("connections_waiting", Unit::Count),
]);

/// Totals of which rates are made.
const TOTALS: [&str; 8] = [
    "plimsoll_app_service_seconds_total",
    "plimsoll_app_queue_wait_seconds_total",
    "plimsoll_app_fdatasync_seconds_total",
    "plimsoll_app_fdatasyncs_total",
    "plimsoll_app_requests_total",
    "plimsoll_app_segment_read_bytes_total",
    "plimsoll_app_segment_written_bytes_total",
    "plimsoll_app_connections_refused_total",
];
const TIMED_OUT: &str = "plimsoll_app_connections_timed_out_total";
const ACCEPTED: &str = "plimsoll_app_connections_accepted_total";

/// A server that is polled for its own figures.
pub struct ServerProbe {
    /// Key of its rows besides `server`; empty where there is only one.
    key: String,
    ask: Ask,
}

/// Its figures as Prometheus text; absent when it does not answer. The wait has a bound: samples
/// of everything else come after it.
type Ask = Box<dyn FnMut() -> Option<String> + Send>;

impl ServerProbe {
    /// A server, and a function that polls it. `ask` must return within a fraction of the sampling
    /// interval, whatever the server does.
    pub fn new(
        key: impl Into<String>,
        ask: impl FnMut() -> Option<String> + Send + 'static,
    ) -> Self {
        Self { key: key.into(), ask: Box::new(ask) }
    }
}

impl fmt::Debug for ServerProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerProbe").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Whether a text has known figures of a server.
pub fn has_server_figures(text: &str) -> bool {
    let samples = parse_prometheus(text);
    let is_ours = |sample: &PrometheusSample<'_>| sample.name.starts_with("plimsoll_app_");
    samples.iter().any(is_ours) || models::exporter_name(&Metrics::from_samples(&samples)).is_some()
}

/// The server whose figures come with the frames of another host, if any do.
pub(super) fn of_frame(root: &Root) -> Vec<ServerProbe> {
    let frame = root.frame().cloned();
    frame.map(|frame| ServerProbe::new("", move || frame.text(SERVER_TEXT))).into_iter().collect()
}

#[derive(Debug)]
pub(super) struct ServerSource {
    probes: Vec<(ServerProbe, Option<Answer>)>,
}

/// A server's answer, and its time. Answers may be slow at times, so rates are over the time
/// between answers, not between samples.
#[derive(Debug)]
struct Answer {
    at_ns: u64,
    totals: Totals,
    model: ModelTotals,
}

type Totals = [Option<f64>; TOTALS.len() + 2];

impl Answer {
    fn until(&self, later: &Self) -> Elapsed {
        Elapsed::from_ns(later.at_ns.saturating_sub(self.at_ns))
    }
}

impl ServerSource {
    pub(super) fn new(probes: Vec<ServerProbe>) -> Self {
        Self { probes: probes.into_iter().map(|probe| (probe, None)).collect() }
    }

    /// Asks every server; `now_ns` reads the monotonic clock. The rows are those of servers, of
    /// models and of GPUs.
    pub(super) fn sample(&mut self, now_ns: impl Fn() -> u64, rows: [&mut Rows; 3]) {
        let [rows, models, gpus] = rows;
        for rows in [&mut *rows, &mut *models, &mut *gpus] {
            rows.clear();
        }
        for (probe, before) in &mut self.probes {
            // After a missing answer there is no rate until the answer after next.
            let was = before.take();
            let Some(text) = (probe.ask)() else { continue };
            let samples = parse_prometheus(&text);
            let metrics = Metrics::from_samples(&samples);
            let is = before.insert(Answer {
                at_ns: now_ns(),
                totals: totals(&metrics),
                model: ModelTotals::from_metrics(&metrics),
            });
            let values = values(&metrics, was.as_ref(), is);
            if values.iter().any(Option::is_some) {
                rows.push(&probe.key, &values);
            }
            let was = was.map(|was| (was.until(is), was.model));
            models::sample((&probe.key, &metrics), (was, is.model), (models, gpus));
        }
    }
}

fn totals(metrics: &Metrics<'_>) -> Totals {
    // Our own questions are no work.
    let work = |labels: &str| !labels.contains("type=\"status\"");
    let mut totals = Totals::default();
    for (total, name) in totals.iter_mut().zip(TOTALS.into_iter().chain([TIMED_OUT, ACCEPTED])) {
        *total = metrics.sum_of(name, work);
    }
    totals
}

fn values(metrics: &Metrics<'_>, was: Option<&Answer>, is: &Answer) -> [Option<f64>; 17] {
    let gauge = |name| metrics.sum(name);
    // Seconds of waiting per second are the mean number that wait (Little's law).
    let rate = |index: usize| {
        let was = was?;
        let grown = is.totals[index]? - was.totals[index]?;
        Some(grown / was.until(is).0?).filter(|rate| *rate >= 0.0)
    };
    [
        gauge("plimsoll_app_threads"),
        gauge("plimsoll_app_threads_busy"),
        rate(0),
        gauge("plimsoll_app_queue_length"),
        rate(1),
        rate(2),
        rate(3),
        rate(4),
        rate(5),
        rate(6),
        gauge("plimsoll_app_connections"),
        rate(7),
        rate(8),
        rate(9),
        gauge("plimsoll_app_connections_reading"),
        gauge("plimsoll_app_connections_writing"),
        gauge("plimsoll_app_connections_waiting"),
    ]
}

pub(super) static NFSD: Table = Table::single("nfsd").without_idle().columns(&[
    Column::written("threads", Unit::Count),
    Column::summed("calls", Unit::PerSecond),
    Column::summed("bad_calls", Unit::PerSecond),
    Column::summed("read", Unit::BytesPerSecond),
    Column::summed("written", Unit::BytesPerSecond),
    Column::written("connections_opened", Unit::PerSecond),
    Column::summed("operations", Unit::PerSecond),
    Column::summed("opens", Unit::PerSecond),
]);

#[derive(Debug)]
pub(super) struct NfsdSource {
    file: ProcFile,
    before: Option<NfsdCounters>,
    buffer: Vec<u8>,
}

impl NfsdSource {
    pub(super) fn open(root: &Root) -> Self {
        // The file is there once the server is loaded, which may be later.
        let file = ProcFile::reopened(root, "proc/net/rpc/nfsd");
        Self { file, before: None, buffer: Vec::new() }
    }

    pub(super) fn sample(&mut self, elapsed: Elapsed, rows: &mut Rows) {
        rows.clear();
        let before = self.before.take();
        let Some(text) = self.file.read(&mut self.buffer) else { return };
        let now = *self.before.insert(parse_nfsd(&text));
        // A server that is loaded but not started has no threads.
        if now.threads.is_none_or(|threads| threads == 0) {
            return;
        }
        let rate = |of: fn(&NfsdCounters) -> Option<u64>| {
            elapsed.rate(before.as_ref().and_then(of), of(&now))
        };
        rows.push(
            "",
            &[
                now.threads.map(|threads| threads as f64),
                rate(|n| n.calls),
                rate(|n| n.bad_calls),
                rate(|n| n.bytes_read),
                rate(|n| n.bytes_written),
                rate(|n| n.connections),
                rate(|n| n.operations),
                rate(|n| n.opens),
            ],
        );
    }
}

#[cfg(test)]
mod tests;
