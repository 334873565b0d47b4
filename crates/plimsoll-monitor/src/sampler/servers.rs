//! What servers tell of themselves (`plimsoll_app_…`), asked once per sample.

use std::fmt;

use super::Elapsed;
use super::table::{Column, Rows, Table, Unit};
use crate::parse::{PrometheusSample, parse_prometheus, sum_of};
use crate::root::Root;

/// Where a source's frame has what a server tells of itself.
pub(crate) const SERVER_TEXT: &str = "plimsoll/server";

pub(super) static SERVERS: Table = Table {
    name: "server",
    keyed: true,
    idle_left_out: false,
    ends_with_load: false,
    columns: &[
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
    ],
};

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

/// A server that is asked for its own figures.
pub struct ServerProbe {
    /// What its rows are called besides `server`; empty where there is only one.
    key: String,
    ask: Ask,
}

/// Its figures as Prometheus text; absent when it does not answer. The wait has a bound: samples
/// of everything else come after it.
type Ask = Box<dyn FnMut() -> Option<String> + Send>;

impl ServerProbe {
    /// A server, and how to ask it. `ask` must return within a fraction of the sampling interval,
    /// whatever the server does.
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

/// The server whose figures come with the frames of another host, if any do.
pub(super) fn of_frame(root: &Root) -> Vec<ServerProbe> {
    let frame = root.frame().cloned();
    frame.map(|frame| ServerProbe::new("", move || frame.text(SERVER_TEXT))).into_iter().collect()
}

#[derive(Debug)]
pub(super) struct ServerSource {
    probes: Vec<(ServerProbe, Option<Answer>)>,
}

/// What a server told, and when: it may take much longer once than the next time, so that rates
/// are over the time between answers, not between samples.
#[derive(Debug)]
struct Answer {
    at_ns: u64,
    totals: Totals,
}

type Totals = [Option<f64>; TOTALS.len() + 2];

impl ServerSource {
    pub(super) fn new(probes: Vec<ServerProbe>) -> Self {
        Self { probes: probes.into_iter().map(|probe| (probe, None)).collect() }
    }

    /// Asks every server; `now_ns` reads the monotonic clock.
    pub(super) fn sample(&mut self, now_ns: impl Fn() -> u64, rows: &mut Rows) {
        rows.clear();
        for (probe, before) in &mut self.probes {
            // Of a server that did not answer nothing is known until the answer after next.
            let was = before.take();
            let Some(text) = (probe.ask)() else { continue };
            let samples = parse_prometheus(&text);
            let is = before.insert(Answer { at_ns: now_ns(), totals: totals(&samples) });
            rows.push(&probe.key, &values(&samples, was.as_ref(), is));
        }
    }
}

fn totals(samples: &[PrometheusSample<'_>]) -> Totals {
    // Our own questions are no work.
    let work = |labels: &str| !labels.contains("type=\"status\"");
    let mut totals = Totals::default();
    for (total, name) in totals.iter_mut().zip(TOTALS.into_iter().chain([TIMED_OUT, ACCEPTED])) {
        *total = sum_of(samples, name, work);
    }
    totals
}

fn values(
    samples: &[PrometheusSample<'_>],
    was: Option<&Answer>,
    is: &Answer,
) -> [Option<f64>; 17] {
    let gauge = |name| sum_of(samples, name, |_| true);
    // Seconds of waiting per second are the mean number that wait (Little's law).
    let rate = |index: usize| {
        let was = was?;
        let elapsed = Elapsed::from_ns(is.at_ns.saturating_sub(was.at_ns));
        let grown = is.totals[index]? - was.totals[index]?;
        Some(grown / elapsed.0?).filter(|rate| *rate >= 0.0)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use plimsoll_model::units::NANOS_PER_SECOND;

    use super::*;

    fn text(requests: u32, wait_s: f64) -> String {
        format!(
            "plimsoll_app_threads 4\nplimsoll_app_threads_busy 3\nplimsoll_app_queue_length 7\n\
             plimsoll_app_queue_wait_seconds_total {wait_s}\n\
             plimsoll_app_requests_total{{type=\"read\",status=\"ok\"}} {requests}\n\
             plimsoll_app_requests_total{{type=\"status\",status=\"ok\"}} {}\n",
            requests * 9,
        )
    }

    #[test]
    fn gauges_are_as_told_and_totals_become_rates() {
        let mut told = [text(100, 10.0), text(300, 22.0)].into_iter();
        let mut source = ServerSource::new(vec![ServerProbe::new("", move || told.next())]);
        let mut rows = Rows::new(&SERVERS);
        source.sample(|| 7 * NANOS_PER_SECOND, &mut rows);
        assert_eq!(rows.value("", "threads_busy"), Some(3.0));
        assert_eq!(rows.value("", "requests"), None, "the first has no rates");
        source.sample(|| 9 * NANOS_PER_SECOND, &mut rows);
        assert_eq!(rows.value("", "requests"), Some(100.0), "status requests are no work");
        assert_eq!(rows.value("", "queue_mean"), Some(6.0));
        assert_eq!((rows.value("", "queue"), rows.value("", "threads")), (Some(7.0), Some(4.0)));
        assert_eq!(rows.value("", "fdatasyncs"), None, "what a server does not tell is absent");
        source.sample(|| 10 * NANOS_PER_SECOND, &mut rows);
        assert!(rows.rows().is_empty(), "it does not answer any more");
    }

    #[test]
    fn a_server_that_takes_its_time_to_answer_is_not_busier_for_it() {
        // Asked once a second, it answers after 0.0, 0.6 and 0.1 s; 100 requests a second.
        let now_ms = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&now_ms);
        let mut waits_ms = [0, 600, 100].into_iter();
        let ask = move || {
            clock.fetch_add(waits_ms.next()?, Ordering::Relaxed);
            let answered_ms = clock.load(Ordering::Relaxed);
            Some(text((answered_ms / 10) as u32, 0.0))
        };
        let mut source = ServerSource::new(vec![ServerProbe::new("", ask)]);
        let mut rows = Rows::new(&SERVERS);
        for asked_s in 0..3 {
            now_ms.store(asked_s * 1_000, Ordering::Relaxed);
            source.sample(|| now_ms.load(Ordering::Relaxed) * 1_000_000, &mut rows);
            let expected = (asked_s > 0).then_some(100.0);
            assert_eq!(rows.value("", "requests"), expected);
        }
    }

    #[test]
    fn a_server_that_was_away_or_began_anew_has_no_rates_at_first() {
        let mut told = [Some(text(900, 9.0)), None, Some(text(50, 1.0)), Some(text(20, 0.5))];
        let mut turn = 0;
        let ask = move || {
            turn += 1;
            told[turn - 1].take()
        };
        let mut source = ServerSource::new(vec![ServerProbe::new("2", ask)]);
        let mut rows = Rows::new(&SERVERS);
        for second in 0..3 {
            source.sample(|| second * NANOS_PER_SECOND, &mut rows);
        }
        assert_eq!(rows.value("2", "queue"), Some(7.0));
        assert_eq!(rows.value("2", "requests"), None, "nothing is known of the time between");
        source.sample(|| 3 * NANOS_PER_SECOND, &mut rows);
        assert_eq!(rows.value("2", "requests"), None, "a total that shrank is another's");
    }
}
