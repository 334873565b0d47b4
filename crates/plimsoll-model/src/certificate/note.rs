//! What is told of a certificate in the disclosure of a run, and what it covers: the program and the
//! host as they were then.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Certificate, Judged, QueueCase, Reading};

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
    /// Largest distance between client and server in all open cases that were judged, over what is
    /// allowed there.
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
    /// What this run differs in from what was certified, for a person.
    #[serde(default)]
    pub not_covered: Vec<String>,
}

impl Certificate {
    /// For the disclosure of a run; `made` is [`Self::made_unix_ns`] as text, `now` what the run
    /// itself is made with.
    pub fn note(&self, made: String, now: &Circumstances) -> CertificateNote {
        let readings = self.queues.iter().flat_map(|c| c.readings.iter().map(move |r| (c, r)));
        let readings = readings.filter(|(_, reading)| reading.tight != Judged::NotJudged);
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
            worst_tight_at: worst.map_or_else(|| "nothing was compared".to_owned(), at),
            punctual_ops_per_s: self.punctual.highest_ops_per_s,
            driver: self.instrument.driver.clone(),
            workers: self.instrument.workers,
            pacing: self.instrument.pacing.clone(),
            all_held: self.all_held,
            not_covered: self.not_covered(now),
        }
    }
}

impl Reading {
    /// Share of what is allowed that the distance takes up.
    fn used(&self) -> f64 {
        self.error_ns().0 as f64 / self.allowed_ns.0.max(1) as f64
    }
}

/// What figures of a host depend on, as it is for a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// Version of the program.
    pub version: String,
    /// `release` or `debug`.
    pub build: String,
    /// Kernel release and build; absent when not readable.
    pub kernel: Option<String>,
    /// Frequency governor of the processors; absent where there is none.
    pub governor: Option<String>,
    /// How workers wait; absent where that is not settled.
    pub pacing: Option<String>,
    /// How workers stand to other programs; absent where that is not settled.
    pub priority: Option<String>,
    /// The protocol that is spoken; absent where that is not settled.
    pub protocol: Option<String>,
}

impl Certificate {
    /// What differs from what was certified, in words: "kernel 6.1, certified 6.18".
    pub fn not_covered(&self, now: &Circumstances) -> Vec<String> {
        let none = || "none".to_owned();
        let (host, instrument) = (&self.host, &self.instrument);
        let mut found = Vec::new();
        let mut compare = |what: &str, now: &str, then: &str| {
            if now != then {
                found.push(format!("{what} {now}, certified {then}"));
            }
        };
        compare("version", &now.version, &instrument.version);
        compare("build", &now.build, &instrument.build);
        let known = |text: &Option<String>| text.clone().unwrap_or_else(none);
        compare("kernel", &known(&now.kernel), &known(&host.kernel));
        compare("governor", &known(&now.governor), &known(&host.governor));
        let settled = [
            ("pacing", &now.pacing, &instrument.pacing),
            ("priority", &now.priority, &instrument.priority),
        ];
        for (what, now, then) in settled {
            if let Some(now) = now {
                compare(what, now, then);
            }
        }
        let spoken = |protocol: &&String| instrument.protocols.contains(*protocol);
        if let Some(protocol) = now.protocol.as_ref().filter(|protocol| !spoken(protocol)) {
            let then = instrument.protocols.join(", ");
            found.push(format!("protocol {protocol}, certified {then}"));
        }
        found
    }
}
