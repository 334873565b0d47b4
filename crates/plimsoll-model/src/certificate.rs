//! A certificate of calibration: how far this program's figures are from the truth on one host, as
//! `plimsoll calibrate` found it. JSON, format 1; `docs/calibration.md` explains it.
//!
//! Two judgements are kept apart. *Tight*: what the client measured against the times the server
//! itself computed for the same requests. *Theory*: those times against what queueing theory says
//! of such a server, within the scatter of a run of that length.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Version of the certificate's format.
pub const CERTIFICATE_FORMAT: u32 = 1;

/// A certificate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Version of this format.
    pub format: u32,
    /// When the calibration ended, nanoseconds since the Unix epoch.
    pub made_unix_ns: u64,
    /// Where.
    pub host: CertifiedHost,
    /// What was calibrated.
    pub instrument: Instrument,
    /// Schedule and service times follow from it.
    pub seed: u64,
    /// Short windows: less is known of the tails.
    pub quick: bool,
    /// What the way there and back costs, waking up included.
    pub floor: Floor,
    /// Open loads on servers of known law.
    pub queues: Vec<QueueCase>,
    /// The interactive law in a closed loop.
    pub closed: ClosedCase,
    /// A pause of the server.
    pub stall: StallCase,
    /// The highest rate with punctual sends.
    pub punctual: PunctualRate,
    /// What a reader must know, for a person.
    pub warnings: Vec<String>,
    /// Every judgement holds.
    pub all_held: bool,
}

/// The host that was calibrated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedHost {
    /// Its name.
    pub name: String,
    /// Kernel release and build; absent when not readable.
    pub kernel: Option<String>,
    /// Processor model; absent when not readable.
    pub cpu_model: Option<String>,
    /// Logical processors online; absent when not readable.
    pub cpus_online: Option<u32>,
}

/// The program and how it was set up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instrument {
    /// Version of the program.
    pub version: String,
    /// `release` or `debug`.
    pub build: String,
    /// What moves bytes: `epoll`.
    pub driver: String,
    /// Worker threads.
    pub workers: u32,
    /// How they wait: `spin`, `precise`, `coalesce`.
    pub pacing: String,
    /// Cores of the generator; empty: shared with everything.
    pub generator_cores: Vec<u32>,
    /// Cores of the calibrated server; empty: shared with everything.
    pub server_cores: Vec<u32>,
}

/// A figure of a distribution of response times.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Arithmetic mean.
    Mean,
    /// Median.
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
}

impl Statistic {
    /// All, in order.
    pub const ALL: [Self; 5] = [Self::Mean, Self::P50, Self::P95, Self::P99, Self::P999];

    /// Share of the sample at or below it; `None` for the mean.
    pub const fn share(self) -> Option<f64> {
        match self {
            Self::Mean => None,
            Self::P50 => Some(0.5),
            Self::P95 => Some(0.95),
            Self::P99 => Some(0.99),
            Self::P999 => Some(0.999),
        }
    }

    /// For a person.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }
}

/// Response times of a server where every request takes the same and nobody waits, at a low rate,
/// less that service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// Ops per second.
    pub rate_ops_per_s: f64,
    /// What every request takes in the server.
    pub service_ns: Nanos,
    /// Ops in the window.
    pub ops: u64,
    /// By statistic; those the sample does not support are absent.
    pub response: Vec<FloorReading>,
}

/// One figure of the floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FloorReading {
    /// Which.
    pub statistic: Statistic,
    /// Response time as the client measured it, less the service.
    pub beyond_ns: Nanos,
}

impl Floor {
    /// The floor under a statistic. Where the sample does not support it, that of the highest
    /// percentile it supports, which is lower: the judgement becomes stricter.
    pub fn under(&self, statistic: Statistic) -> Nanos {
        let known = |wanted| {
            let found = self.response.iter().find(|reading| reading.statistic == wanted);
            found.map(|reading| reading.beyond_ns)
        };
        let highest = || self.response.iter().map(|reading| reading.beyond_ns).max();
        known(statistic).or_else(highest).unwrap_or_default()
    }
}

/// One open load on one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueCase {
    /// In Kendall's notation: `M/M/4`.
    pub queue: String,
    /// Law of the service times, as `serve app --calibrated` takes it.
    pub service: String,
    /// Services at a time.
    pub servers: u32,
    /// Share of its capacity that was asked for.
    pub utilisation: f64,
    /// Ops per second asked for.
    pub rate_ops_per_s: f64,
    /// Length of the window.
    pub seconds: f64,
    /// Ops that came due in the window.
    pub ops_due: u64,
    /// Ops that finished without error in the window.
    pub ops_done: u64,
    /// Requests that arrived at the server in the window.
    pub ops_served: u64,
    /// How late the server's replies left (99th percentile): its own part of the distance.
    pub server_late_p99_ns: Nanos,
    /// Done over due, less one.
    pub rate_error_ratio: f64,
    /// It is within the limit.
    pub rate_held: bool,
    /// By statistic; those the sample does not support are absent.
    pub readings: Vec<Reading>,
}

/// A statistic of one case, from three sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Which.
    pub statistic: Statistic,
    /// What the client measured, from due to done.
    pub client_ns: Nanos,
    /// What the server computed, from arrival to departure.
    pub served_ns: Nanos,
    /// How far they may be apart.
    pub allowed_ns: Nanos,
    /// They are no further apart.
    pub tight_held: bool,
    /// What theory says of a run without end.
    pub theory_ns: Nanos,
    /// Shortest and longest that simulated runs of this length gave.
    pub theory_interval_ns: (Nanos, Nanos),
    /// What the server computed lies between them.
    pub theory_held: bool,
}

impl Reading {
    /// Distance between client and server.
    pub const fn error_ns(&self) -> Nanos {
        Nanos(self.client_ns.0.abs_diff(self.served_ns.0))
    }
}

/// A closed loop: clients × one op at a time = throughput × (response + think time).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedCase {
    /// Clients.
    pub clients: u32,
    /// Ops per second.
    pub ops_per_s: f64,
    /// Mean response time.
    pub response_ns: Nanos,
    /// Mean think time that was drawn.
    pub think_ns: Nanos,
    /// X (R + Z) / N, less one.
    pub error_ratio: f64,
    /// It is within the limit.
    pub held: bool,
}

/// A server that pauses once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StallCase {
    /// Length of the pause.
    pub stall_ns: Nanos,
    /// Ops per second, evenly spaced.
    pub rate_ops_per_s: f64,
    /// Ops in the window.
    pub ops: u64,
    /// What the client measured, from due to done.
    pub p99_ns: Nanos,
    /// The same from sent to done: what a tool that times from the send would show.
    pub service_p99_ns: Nanos,
    /// What it must be.
    pub expected_p99_ns: Nanos,
    /// Measured over expected, less one.
    pub error_ratio: f64,
    /// It is within the limit.
    pub held: bool,
}

/// How fast the program can send on time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PunctualRate {
    /// Send lag p99 that counts as punctual.
    pub send_lag_p99_max_ns: Nanos,
    /// Highest rate that was; absent when none was.
    pub highest_ops_per_s: Option<f64>,
    /// Lowest rate that was not; absent when all were.
    pub missed_ops_per_s: Option<f64>,
    /// What was tried, in order.
    pub probes: Vec<PunctualProbe>,
}

/// One rate that was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PunctualProbe {
    /// Ops per second asked for.
    pub rate_ops_per_s: f64,
    /// 99th percentile of send lag.
    pub send_lag_p99_ns: Nanos,
    /// Done over due.
    pub done_ratio: f64,
    /// Send lag within the limit, and (nearly) every op done.
    pub punctual: bool,
}

/// What a run's disclosure says of the host's latest certificate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertificateNote {
    /// When it was made, RFC 3339.
    pub made: String,
    /// Version of the program it was made with.
    pub version: String,
    /// `release` or `debug`.
    pub build: String,
    /// Largest distance between client and server in all cases, over what is allowed there.
    pub worst_tight_ratio: f64,
    /// That distance, in nanoseconds.
    pub worst_tight_ns: u64,
    /// Where: queue, utilisation, statistic.
    pub worst_tight_at: String,
    /// Highest rate with punctual sends; absent when none was.
    pub punctual_ops_per_s: Option<f64>,
    /// What moves bytes.
    pub driver: String,
    /// Worker threads.
    pub workers: u32,
    /// How they wait.
    pub pacing: String,
    /// Every judgement held.
    pub all_held: bool,
}

impl Certificate {
    /// Every judgement: what it is about, and whether it holds.
    pub fn judgements(&self) -> Vec<(String, bool)> {
        let mut all = Vec::new();
        for case in &self.queues {
            let at = case.place();
            all.push((format!("{at} rate"), case.rate_held));
            for reading in &case.readings {
                let name = reading.statistic.name();
                all.push((format!("{at} {name} tight"), reading.tight_held));
                all.push((format!("{at} {name} theory"), reading.theory_held));
            }
        }
        all.push(("closed loop".to_owned(), self.closed.held));
        all.push(("stall".to_owned(), self.stall.held));
        all
    }

    /// For the disclosure of a run; `made` is [`Self::made_unix_ns`] as text.
    pub fn note(&self, made: String) -> CertificateNote {
        let readings = self.queues.iter().flat_map(|c| c.readings.iter().map(move |r| (c, r)));
        let worst = readings.max_by(|(_, a), (_, b)| a.used().total_cmp(&b.used()));
        let at = |(case, reading): (&QueueCase, &Reading)| {
            format!("{} {}", case.place(), reading.statistic.name())
        };
        CertificateNote {
            made,
            version: self.instrument.version.clone(),
            build: self.instrument.build.clone(),
            worst_tight_ratio: worst.map_or(0.0, |(_, reading)| reading.used()),
            worst_tight_ns: worst.map_or(0, |(_, reading)| reading.error_ns().0),
            worst_tight_at: worst.map_or_else(String::new, at),
            punctual_ops_per_s: self.punctual.highest_ops_per_s,
            driver: self.instrument.driver.clone(),
            workers: self.instrument.workers,
            pacing: self.instrument.pacing.clone(),
            all_held: self.all_held,
        }
    }
}

impl QueueCase {
    /// `M/M/4 at 0.9`.
    pub fn place(&self) -> String {
        format!("{} at {}", self.queue, self.utilisation)
    }
}

impl Reading {
    /// Share of what is allowed that the distance takes up.
    fn used(&self) -> f64 {
        self.error_ns().0 as f64 / self.allowed_ns.0.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(statistic: Statistic, client: u64, served: u64) -> Reading {
        let micros = Nanos::from_micros;
        Reading {
            statistic,
            client_ns: micros(client),
            served_ns: micros(served),
            allowed_ns: micros(100),
            tight_held: client.abs_diff(served) <= 100,
            theory_ns: micros(served),
            theory_interval_ns: (micros(served), micros(served)),
            theory_held: true,
        }
    }

    fn certificate() -> Certificate {
        let case = QueueCase {
            queue: "M/M/4".into(),
            service: "exp:1ms".into(),
            servers: 4,
            utilisation: 0.9,
            rate_ops_per_s: 3_600.0,
            seconds: 30.0,
            ops_due: 108_000,
            ops_done: 107_990,
            ops_served: 107_995,
            server_late_p99_ns: Nanos(3_000),
            rate_error_ratio: -9.3e-5,
            rate_held: true,
            readings: vec![
                reading(Statistic::Mean, 3_040, 2_970),
                reading(Statistic::P99, 9_120, 9_000),
            ],
        };
        Certificate {
            format: CERTIFICATE_FORMAT,
            made_unix_ns: 1,
            host: CertifiedHost::default(),
            instrument: Instrument::default(),
            seed: 1,
            quick: false,
            floor: Floor::default(),
            queues: vec![case],
            closed: ClosedCase { held: true, ..ClosedCase::default() },
            stall: StallCase { held: true, ..StallCase::default() },
            punctual: PunctualRate::default(),
            warnings: Vec::new(),
            all_held: false,
        }
    }

    #[test]
    fn a_certificate_reads_back_and_an_unknown_field_is_an_error() {
        let text = serde_json::to_string(&certificate()).unwrap();
        assert_eq!(serde_json::from_str::<Certificate>(&text).unwrap(), certificate());
        let more = text.replacen("\"format\"", "\"fromat\":1,\"format\"", 1);
        assert!(serde_json::from_str::<Certificate>(&more).is_err());
    }

    #[test]
    fn the_note_names_the_reading_that_came_closest_to_its_limit() {
        let note = certificate().note("2026-11-22T06:00:00Z".into());
        assert_eq!(note.worst_tight_at, "M/M/4 at 0.9 p99");
        assert_eq!((note.worst_tight_ns, note.worst_tight_ratio), (120_000, 1.2));
    }

    #[test]
    fn judgements_name_what_did_not_hold() {
        let broken: Vec<_> =
            certificate().judgements().into_iter().filter(|(_, held)| !held).collect();
        assert_eq!(broken, [("M/M/4 at 0.9 p99 tight".to_owned(), false)]);
    }

    #[test]
    fn a_disclosure_without_one_does_not_mention_it() {
        let disclosure = crate::disclosure::Disclosure::default();
        assert!(!serde_json::to_string(&disclosure).unwrap().contains("certificate"));
    }

    #[test]
    fn without_a_figure_for_a_tail_the_floor_under_it_is_the_highest_known() {
        let at = |statistic, us| FloorReading { statistic, beyond_ns: Nanos::from_micros(us) };
        let response = vec![at(Statistic::Mean, 50), at(Statistic::P99, 80)];
        let floor = Floor { response, ..Floor::default() };
        assert_eq!(floor.under(Statistic::Mean), Nanos::from_micros(50));
        assert_eq!(floor.under(Statistic::P999), Nanos::from_micros(80));
        assert_eq!(Floor::default().under(Statistic::Mean), Nanos::ZERO);
    }
}
