//! What the server counts, and the same as Prometheus text.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::wire::{RequestType, Status};

/// Request types by number; 0 stands for unknown ones.
const TYPES: [&str; 8] =
    ["unknown", "client_server", "processor", "server_client", "read", "write", "append", "status"];
/// Statuses by number.
const STATUSES: [&str; 6] = ["ok", "bad_request", "out_of_range", "storage", "no_room", "ending"];

/// A sum that only grows.
#[derive(Debug, Default)]
pub(super) struct Total(AtomicU64);

impl Total {
    pub(super) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// What is in `amount`, which is empty afterwards.
    pub(super) fn add_taken(&self, amount: &mut u64) {
        match std::mem::take(amount) {
            0 => {}
            amount => self.add(amount),
        }
    }

    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the server has counted since its start. Nanoseconds and bytes; the text has seconds.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    requests: [[Total; STATUSES.len()]; TYPES.len()],
    service_ns: [Total; TYPES.len()],
    pub(super) queue_wait_ns: Total,
    pub(super) received_bytes: Total,
    pub(super) sent_bytes: Total,
    pub(super) read_bytes: Total,
    pub(super) written_bytes: Total,
    pub(super) fdatasyncs: Total,
    pub(super) fdatasync_ns: Total,
    /// Open now.
    pub(super) connections: Total,
    pub(super) accepted: Total,
    pub(super) refused: Total,
    pub(super) timed_out: Total,
    pub(super) malformed: Total,
}

/// A figure that exists only at the moment of the request: name, help and value.
pub(super) type Gauge = (&'static str, &'static str, u64);

impl Metrics {
    /// A request has been answered.
    pub(super) fn answered(&self, kind: u8, status: Status) {
        self.requests[type_index(kind)][status as usize].add(1);
    }

    /// A service thread has spent so long on a request of this type.
    pub(super) fn served(&self, kind: RequestType, service_ns: u64) {
        self.service_ns[kind as usize].add(service_ns);
    }

    /// In Prometheus' text format, version 0.0.4.
    pub(super) fn text(&self, present: &[Gauge]) -> String {
        let mut text = Text(String::with_capacity(8 << 10));
        for &(name, help, value) in present {
            text.gauge(name, help, value);
        }
        text.family("requests_total", "counter", "Requests answered, by type and status.");
        for (kind, by_status) in TYPES.iter().zip(&self.requests) {
            for (status, count) in STATUSES.iter().zip(by_status) {
                let count = count.get();
                if count > 0 || (*status == "ok" && *kind != "unknown") {
                    let labels = format!("{{type=\"{kind}\",status=\"{status}\"}}");
                    text.sample("requests_total", &labels, count);
                }
            }
        }
        const SERVICE: &str = "service_seconds_total";
        text.family(SERVICE, "counter", "Time service threads spent on requests, by type.");
        for (kind, ns) in TYPES.iter().zip(&self.service_ns).skip(1) {
            text.sample(SERVICE, &format!("{{type=\"{kind}\"}}"), Seconds(ns.get()));
        }
        text.seconds(
            "queue_wait_seconds_total",
            "Time requests and greetings waited for a service thread.",
            &self.queue_wait_ns,
        );
        let counts: [(&str, &str, &Total); 9] = [
            ("received_bytes_total", "Bytes received from clients.", &self.received_bytes),
            ("sent_bytes_total", "Bytes sent to clients.", &self.sent_bytes),
            ("segment_read_bytes_total", "Bytes read from segments.", &self.read_bytes),
            ("segment_written_bytes_total", "Bytes written to segments.", &self.written_bytes),
            ("fdatasyncs_total", "Calls of fdatasync.", &self.fdatasyncs),
            ("connections_total", "Connections accepted, refused ones too.", &self.accepted),
            (
                "connections_refused_total",
                "Connections refused with a greeting or closed for \
                want of room.",
                &self.refused,
            ),
            (
                "connections_timed_out_total",
                "Connections ended because a greeting, a request \
                or the taking of a reply was not complete in time.",
                &self.timed_out,
            ),
            (
                "connections_malformed_total",
                "Connections ended because of bytes that are no \
                message.",
                &self.malformed,
            ),
        ];
        for (name, help, total) in counts {
            text.family(name, "counter", help);
            text.sample(name, "", total.get());
        }
        text.seconds("fdatasync_seconds_total", "Time spent in fdatasync.", &self.fdatasync_ns);
        text.gauge("connections", "Connections open.", self.connections.get());
        text.0
    }
}

fn type_index(kind: u8) -> usize {
    RequestType::from_code(kind).map_or(0, |kind| kind as usize)
}

/// Metrics in that format.
#[derive(Default)]
pub(super) struct Text(pub(super) String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let name = format_args!("plimsoll_app_{name}");
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl fmt::Display) {
        let _ = writeln!(self.0, "plimsoll_app_{name}{labels} {value}");
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "gauge", help);
        self.sample(name, "", value);
    }

    fn seconds(&mut self, name: &str, help: &str, total: &Total) {
        self.family(name, "counter", help);
        self.sample(name, "", Seconds(total.get()));
    }
}

/// Nanoseconds, shown as seconds without loss.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_and_status_has_its_place() {
        for code in 0..=u8::MAX {
            assert_eq!(RequestType::from_code(code).is_some(), (1..8).contains(&code));
            assert_eq!(Status::from_code(code).is_some(), code < 6);
        }
        let metrics = Metrics::default();
        metrics.answered(2, Status::Ok);
        metrics.answered(99, Status::BadRequest);
        metrics.served(RequestType::Processor, 1_500_000_001);
        let text = metrics.text(&[("threads", "Service threads.", 49), ("durable", "1: yes.", 1)]);
        for line in [
            "# TYPE plimsoll_app_requests_total counter",
            "plimsoll_app_requests_total{type=\"processor\",status=\"ok\"} 1",
            "plimsoll_app_requests_total{type=\"unknown\",status=\"bad_request\"} 1",
            "plimsoll_app_service_seconds_total{type=\"processor\"} 1.500000001",
            "plimsoll_app_threads 49",
            "plimsoll_app_durable 1",
        ] {
            assert!(text.lines().any(|candidate| candidate == line), "{line} is not in\n{text}");
        }
        assert!(text.len() < 32 << 10, "{} bytes", text.len());
    }
}
