//! What follows from a certificate: its judgements (held, broken, or left open, with the server's
//! log of the same ops), its note in the disclosure of a run, and what it covers there.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Certificate, ClosedCase, JudgementOutcome, ProcessorSettings, QueueCase, Reading, StallCase,
    Statistic,
};
use crate::named::named;
use crate::units::Nanos;

/// This share of the judgements of a kind must have been made: a host that never was quiet gets no
/// certificate.
const MADE_MIN_RATIO: f64 = 0.25;
/// Kinds of judgements of open loads that pauses of the host can leave open everywhere.
const OFTEN_OPEN: [JudgementKind; 4] =
    [JudgementKind::Tight, JudgementKind::OnSchedule, JudgementKind::Sent, JudgementKind::Arrived];

/// One judgement of a certificate. Its name is what [`fmt::Display`] makes: `M/M/4 at 0.9 p99
/// tight`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement<'c> {
    /// What it is about.
    pub case: JudgementCase<'c>,
    /// The figure that was compared, where there are several.
    pub statistic: Option<Statistic>,
    /// What must hold.
    pub kind: JudgementKind,
    /// Its outcome.
    pub outcome: JudgementOutcome,
}

/// What a judgement is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JudgementCase<'c> {
    /// The certificate.
    Certificate,
    /// The round trip.
    RoundTrip,
    /// One open load.
    Queue(&'c QueueCase),
    /// All open loads: were enough judgements of a kind made?
    Enough,
    /// Clients that wait and think.
    ClosedLoop,
    /// A server that pauses.
    Stall,
}

named! {
    fn as_str;
    /// What must hold.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "docs/calibration.md explains the judgements by these names")]
    pub enum JudgementKind {
        /// Each case had its whole time.
        Length = "length",
        Run = "run",
        Due = "due",
        Rate = "rate",
        Served = "served",
        Recorded = "recorded",
        Sum = "sum",
        Ended = "ended",
        Sent = "sent",
        Arrived = "arrived",
        Tight = "tight",
        OnSchedule = "on schedule",
        Theory = "theory",
        Interval = "interval",
        Count = "count",
        /// One judgement at least of a closed loop's response and throughput was made.
        Response = "response",
        Think = "think",
        Stall = "stall",
    }
}

impl Certificate {
    /// Every judgement, those left open included. Where nothing could be compared, that is a
    /// judgement that does not hold.
    pub fn judgements(&self) -> Vec<Judgement<'_>> {
        let of = JudgementCase::Certificate;
        let length = (self.time_share < 1.0)
            .then(|| of.judgement(JudgementKind::Length, JudgementOutcome::Broken));
        let round_trip =
            JudgementCase::RoundTrip.judgement_if(JudgementKind::Run, self.floor.run.held);
        let queues: Vec<Judgement<'_>> =
            self.queues.iter().flat_map(QueueCase::judgements).collect();
        let too_few = OFTEN_OPEN.into_iter().filter(|kind| too_few(&queues, &[*kind]));
        let too_few: Vec<_> = too_few
            .map(|kind| JudgementCase::Enough.judgement(kind, JudgementOutcome::Broken))
            .collect();
        let all = length.into_iter().chain([round_trip]).chain(queues).chain(too_few);
        all.chain(self.closed.judgements()).chain(self.stall.judgements()).collect()
    }

    /// Those that do not hold.
    pub fn broken(&self) -> Vec<Judgement<'_>> {
        let mut all = self.judgements();
        all.retain(|judgement| judgement.outcome == JudgementOutcome::Broken);
        all
    }
}

/// Were most judgements of these kinds left open?
fn too_few(all: &[Judgement<'_>], kinds: &[JudgementKind]) -> bool {
    let of_kinds = all.iter().filter(|judgement| kinds.contains(&judgement.kind));
    let made = of_kinds
        .clone()
        .filter(|judgement| judgement.outcome != JudgementOutcome::NotJudged)
        .count();
    (made as f64) < of_kinds.count() as f64 * MADE_MIN_RATIO
}

impl QueueCase {
    fn judgements(&self) -> Vec<Judgement<'_>> {
        let of = JudgementCase::Queue(self);
        let mut all = vec![of.judgement_if(JudgementKind::Run, self.run.held)];
        let counted = self.ops_scheduled.map(|scheduled| scheduled == self.ops_due);
        all.extend(counted.map(|counted| of.judgement_if(JudgementKind::Due, counted)));
        if self.readings.is_empty() {
            // Nothing to compare is no good evidence.
            all.push(of.judgement(JudgementKind::Tight, JudgementOutcome::Broken));
        }
        all.push(of.judgement(JudgementKind::Rate, self.rate));
        all.push(of.judgement(JudgementKind::Served, self.served));
        all.extend(of.witnessed(self.witness.as_ref()));
        for reading in &self.readings {
            let mut add = |kind, outcome| {
                all.push(Judgement {
                    statistic: Some(reading.statistic),
                    ..of.judgement(kind, outcome)
                });
            };
            add(JudgementKind::Tight, reading.tight);
            if let Some(schedule) = &reading.schedule {
                add(JudgementKind::OnSchedule, schedule.on_schedule);
                add(JudgementKind::Theory, JudgementOutcome::from_bool(schedule.theory_held));
            }
            if let Some(interval_check) = &reading.stated {
                add(JudgementKind::Interval, interval_check.interval);
            }
        }
        all
    }
}

impl ClosedCase {
    fn judgements(&self) -> Vec<Judgement<'_>> {
        let of = JudgementCase::ClosedLoop;
        let tight = of.judgement(JudgementKind::Tight, self.tight);
        let mut all = vec![
            of.judgement_if(JudgementKind::Run, self.run.held),
            of.judgement_if(JudgementKind::Count, self.held),
            Judgement { statistic: Some(Statistic::Mean), ..tight },
            of.judgement(JudgementKind::Theory, self.theory),
        ];
        if too_few(&all, &[JudgementKind::Tight, JudgementKind::Theory]) {
            all.push(of.judgement(JudgementKind::Response, JudgementOutcome::Broken));
        }
        all.extend(self.witness.as_ref().map(|_| of.judgement(JudgementKind::Think, self.think)));
        all.extend(of.witnessed(self.witness.as_ref()));
        all
    }
}

impl StallCase {
    fn judgements(&self) -> Vec<Judgement<'_>> {
        let of = JudgementCase::Stall;
        let own = JudgementCase::Certificate.judgement_if(JudgementKind::Stall, self.held);
        let mut all = vec![of.judgement_if(JudgementKind::Run, self.run.held), own];
        all.extend(of.witnessed(self.witness.as_ref()));
        all
    }
}

impl<'c> JudgementCase<'c> {
    const fn judgement(self, kind: JudgementKind, outcome: JudgementOutcome) -> Judgement<'c> {
        Judgement { case: self, statistic: None, kind, outcome }
    }

    const fn judgement_if(self, kind: JudgementKind, holds: bool) -> Judgement<'c> {
        self.judgement(kind, JudgementOutcome::from_bool(holds))
    }

    /// Judgements by the server's log.
    fn witnessed(self, cross_check: Option<&CrossCheck>) -> impl Iterator<Item = Judgement<'c>> {
        let outcomes = cross_check.map(CrossCheck::outcomes).unwrap_or_default().into_iter();
        outcomes.map(move |(kind, outcome)| self.judgement(kind, outcome))
    }
}

impl fmt::Display for Judgement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.case {
            JudgementCase::Certificate => Ok(()),
            JudgementCase::RoundTrip => f.write_str("there and back "),
            JudgementCase::Queue(case) => write!(f, "{} ", case.label()),
            JudgementCase::Enough => f.write_str("enough judgements "),
            JudgementCase::ClosedLoop => f.write_str("closed loop "),
            JudgementCase::Stall => f.write_str("stall "),
        }?;
        if let Some(statistic) = self.statistic {
            write!(f, "{} ", statistic.name())?;
        }
        f.write_str(self.kind.as_str())
    }
}

impl JudgementOutcome {
    /// Outcome of a judgement that was made.
    pub const fn from_bool(holds: bool) -> Self {
        if holds { Self::Held } else { Self::Broken }
    }
}

/// The counts and the four times of the ops of one load, against schedule and server's log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossCheck {
    /// Response times that were recorded of ops due in the window.
    pub ops_recorded: u64,
    /// As many as came due in the window by the schedule; of a closed loop as many as it counts.
    pub ops_expected: u64,
    /// Each op was recorded once.
    pub recorded: JudgementOutcome,
    /// Replies that the server handed to the kernel in the window; absent where its log lacks them.
    pub replies: Option<u64>,
    /// How many more or fewer the client may have counted: those in transit at either end.
    pub replies_allowed: u64,
    /// The client counted as many ops done in the window.
    pub ended: JudgementOutcome,
    /// Mean from due to sent, and from due to the arrival at the server; absent where the log does
    /// not match requests to ops.
    pub sent: Option<CheckedTime>,
    /// Mean from due to the reply's arrival by the kernel's stamps (response less receive lag), and
    /// from due to the reply handed to the kernel; absent also where stamps are bounds.
    pub arrived: Option<CheckedTime>,
    /// Service and send lag add up to the response, and without receive lag it is no shorter than
    /// without any delay of the generator.
    pub sum: JudgementOutcome,
}

/// A mean time as the client has it, and a part of it by the server's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckedTime {
    /// By the client.
    pub client_ns: Nanos,
    /// By the server's log.
    pub server_ns: Nanos,
    /// Most that they may be apart, in the direction in which they are.
    pub allowed_ns: Nanos,
    /// They are no further apart. Left open where the server itself was late.
    pub judged: JudgementOutcome,
}

impl CrossCheck {
    /// Its judgements and their outcomes.
    pub(super) fn outcomes(&self) -> Vec<(JudgementKind, JudgementOutcome)> {
        let mut all =
            vec![(JudgementKind::Recorded, self.recorded), (JudgementKind::Sum, self.sum)];
        all.extend(self.replies.map(|_| (JudgementKind::Ended, self.ended)));
        all.extend(self.sent.map(|sent| (JudgementKind::Sent, sent.judged)));
        all.extend(self.arrived.map(|arrived| (JudgementKind::Arrived, arrived.judged)));
        all
    }
}

/// The host's latest certificate in a run's disclosure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertificateNote {
    /// When it was made, RFC 3339.
    pub made: String,
    /// Version of the program it was made with.
    pub version: String,
    /// `release` or `debug`.
    pub build: String,
    /// Largest distance between client and server, over what is allowed there, in all open cases
    /// that were judged.
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
    /// Differences of this run from what was certified, for a person.
    #[serde(default)]
    pub not_covered: Vec<String>,
}

impl Certificate {
    /// For the disclosure of a run; `made` is [`Self::made_unix_ns`] as text, `now` what the run
    /// itself is made with.
    pub fn note(&self, made: String, now: &RunEnvironment) -> CertificateNote {
        let readings = self.queues.iter().flat_map(|c| c.readings.iter().map(move |r| (c, r)));
        let readings = readings.filter(|(_, reading)| reading.tight != JudgementOutcome::NotJudged);
        let worst = readings.max_by(|(_, a), (_, b)| a.used().total_cmp(&b.used()));
        let at = |(case, reading): (&QueueCase, &Reading)| {
            format!("{} {}", case.label(), reading.statistic.name())
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
pub struct RunEnvironment {
    /// Version of the program.
    pub version: String,
    /// `release` or `debug`.
    pub build: String,
    /// Kernel release and build; absent when not readable.
    pub kernel: Option<String>,
    /// Frequency governor of the processors; absent where there is none.
    pub governor: Option<String>,
    /// Other settings of the processors.
    pub processor: ProcessorSettings,
    /// How workers wait; absent where that is not settled.
    pub pacing: Option<String>,
    /// Scheduling priority of the workers; absent where that is not settled.
    pub priority: Option<String>,
    /// The protocol that is spoken; absent where that is not settled.
    pub protocol: Option<String>,
}

impl Certificate {
    /// Differences from what was certified, as text: "kernel 6.1, certified 6.18".
    pub fn not_covered(&self, now: &RunEnvironment) -> Vec<String> {
        let none = || "none".to_owned();
        let (host, instrument) = (&self.host, &self.instrument);
        let mut differences = Vec::new();
        let mut compare = |what: &str, now: &str, then: &str| {
            if now != then {
                differences.push(format!("{what} {now}, certified {then}"));
            }
        };
        compare("version", &now.version, &instrument.version);
        compare("build", &now.build, &instrument.build);
        let text_or_none = |text: &Option<String>| text.clone().unwrap_or_else(none);
        compare("kernel", &text_or_none(&now.kernel), &text_or_none(&host.kernel));
        compare("governor", &text_or_none(&now.governor), &text_or_none(&host.governor));
        if !host.processor.is_empty() {
            let names: BTreeSet<&String> =
                host.processor.keys().chain(now.processor.keys()).collect();
            for name in names {
                let value = |of: &ProcessorSettings| of.get(name).cloned().unwrap_or_else(none);
                compare(name, &value(&now.processor), &value(&host.processor));
            }
        }
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
            differences.push(format!("protocol {protocol}, certified {then}"));
        }
        differences
    }
}
