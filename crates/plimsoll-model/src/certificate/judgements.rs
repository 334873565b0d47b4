//! What a certificate says holds, breaks, or is left open, the server's log of the same ops included.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Certificate, ClosedCase, Judged, QueueCase, StallCase, Statistic};
use crate::named::named;
use crate::units::Nanos;

/// Of the judgements of a kind, this share must have been made: a host that never was quiet has no
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
    pub case: JudgedCase<'c>,
    /// The figure that was compared, where there are several.
    pub statistic: Option<Statistic>,
    /// What must hold.
    pub kind: JudgementKind,
    /// What came of it.
    pub judged: Judged,
}

/// What a judgement is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JudgedCase<'c> {
    /// The certificate.
    Certificate,
    /// The way there and back.
    ThereAndBack,
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
        let of = JudgedCase::Certificate;
        let length =
            (self.time_share < 1.0).then(|| of.judged(JudgementKind::Length, Judged::Broken));
        let way = JudgedCase::ThereAndBack.held(JudgementKind::Run, self.floor.run.held);
        let queues: Vec<Judgement<'_>> =
            self.queues.iter().flat_map(QueueCase::judgements).collect();
        let too_few = OFTEN_OPEN.into_iter().filter(|kind| too_few(&queues, &[*kind]));
        let too_few: Vec<_> =
            too_few.map(|kind| JudgedCase::Enough.judged(kind, Judged::Broken)).collect();
        let all = length.into_iter().chain([way]).chain(queues).chain(too_few);
        all.chain(self.closed.judgements()).chain(self.stall.judgements()).collect()
    }

    /// Those that do not hold.
    pub fn broken(&self) -> Vec<Judgement<'_>> {
        let mut all = self.judgements();
        all.retain(|judgement| judgement.judged == Judged::Broken);
        all
    }
}

/// Were most judgements of these kinds left open?
fn too_few(all: &[Judgement<'_>], kinds: &[JudgementKind]) -> bool {
    let of_kinds = all.iter().filter(|judgement| kinds.contains(&judgement.kind));
    let made = of_kinds.clone().filter(|judgement| judgement.judged != Judged::NotJudged).count();
    (made as f64) < of_kinds.count() as f64 * MADE_MIN_RATIO
}

impl QueueCase {
    fn judgements(&self) -> Vec<Judgement<'_>> {
        let of = JudgedCase::Queue(self);
        let mut all = vec![of.held(JudgementKind::Run, self.run.held)];
        let counted = self.ops_scheduled.map(|scheduled| scheduled == self.ops_due);
        all.extend(counted.map(|counted| of.held(JudgementKind::Due, counted)));
        if self.readings.is_empty() {
            // Nothing to compare is no good evidence.
            all.push(of.judged(JudgementKind::Tight, Judged::Broken));
        }
        all.push(of.judged(JudgementKind::Rate, self.rate));
        all.push(of.judged(JudgementKind::Served, self.served));
        all.extend(of.witnessed(self.witness.as_ref()));
        for reading in &self.readings {
            let mut add = |kind, judged| {
                all.push(Judgement {
                    statistic: Some(reading.statistic),
                    ..of.judged(kind, judged)
                });
            };
            add(JudgementKind::Tight, reading.tight);
            if let Some(schedule) = &reading.schedule {
                add(JudgementKind::OnSchedule, schedule.on_schedule);
                add(JudgementKind::Theory, Judged::from_held(schedule.theory_held));
            }
            if let Some(stated) = &reading.stated {
                add(JudgementKind::Interval, stated.interval);
            }
        }
        all
    }
}

impl ClosedCase {
    fn judgements(&self) -> Vec<Judgement<'_>> {
        let of = JudgedCase::ClosedLoop;
        let tight = of.judged(JudgementKind::Tight, self.tight);
        let mut all = vec![
            of.held(JudgementKind::Run, self.run.held),
            of.held(JudgementKind::Count, self.held),
            Judgement { statistic: Some(Statistic::Mean), ..tight },
            of.judged(JudgementKind::Theory, self.theory),
        ];
        if too_few(&all, &[JudgementKind::Tight, JudgementKind::Theory]) {
            all.push(of.judged(JudgementKind::Response, Judged::Broken));
        }
        all.extend(self.witness.as_ref().map(|_| of.judged(JudgementKind::Think, self.think)));
        all.extend(of.witnessed(self.witness.as_ref()));
        all
    }
}

impl StallCase {
    fn judgements(&self) -> Vec<Judgement<'_>> {
        let of = JudgedCase::Stall;
        let own = JudgedCase::Certificate.held(JudgementKind::Stall, self.held);
        let mut all = vec![of.held(JudgementKind::Run, self.run.held), own];
        all.extend(of.witnessed(self.witness.as_ref()));
        all
    }
}

impl<'c> JudgedCase<'c> {
    const fn judged(self, kind: JudgementKind, judged: Judged) -> Judgement<'c> {
        Judgement { case: self, statistic: None, kind, judged }
    }

    const fn held(self, kind: JudgementKind, held: bool) -> Judgement<'c> {
        self.judged(kind, Judged::from_held(held))
    }

    /// What the server's log says.
    fn witnessed(self, witness: Option<&CrossCheck>) -> impl Iterator<Item = Judgement<'c>> {
        let judged = witness.map(CrossCheck::judged).unwrap_or_default().into_iter();
        judged.map(move |(kind, judged)| self.judged(kind, judged))
    }
}

impl fmt::Display for Judgement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.case {
            JudgedCase::Certificate => Ok(()),
            JudgedCase::ThereAndBack => f.write_str("there and back "),
            JudgedCase::Queue(case) => write!(f, "{} ", case.place()),
            JudgedCase::Enough => f.write_str("enough judgements "),
            JudgedCase::ClosedLoop => f.write_str("closed loop "),
            JudgedCase::Stall => f.write_str("stall "),
        }?;
        if let Some(statistic) = self.statistic {
            write!(f, "{} ", statistic.name())?;
        }
        f.write_str(self.kind.as_str())
    }
}

impl Judged {
    /// Of a judgement that was made.
    pub const fn from_held(held: bool) -> Self {
        if held { Self::Held } else { Self::Broken }
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
    pub recorded: Judged,
    /// Replies that the server handed to the kernel in the window; absent where its log cannot say.
    pub replies: Option<u64>,
    /// How many more or fewer the client may have counted: those on their way at either end.
    pub replies_allowed: u64,
    /// The client counted as many ops done in the window.
    pub ended: Judged,
    /// Mean from due to sent, and from due to the arrival at the server; absent where the log does
    /// not tell which request is which op.
    pub sent: Option<CheckedTime>,
    /// Mean from due to the reply's arrival by the kernel's stamps (response less receive lag), and
    /// from due to the reply handed to the kernel; absent also where stamps are bounds.
    pub arrived: Option<CheckedTime>,
    /// Service and send lag add up to the response, and without receive lag it is no shorter than
    /// without any delay of the generator.
    pub sum: Judged,
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
    pub judged: Judged,
}

impl CrossCheck {
    /// What it judges, and what came of it.
    pub(super) fn judged(&self) -> Vec<(JudgementKind, Judged)> {
        let mut all =
            vec![(JudgementKind::Recorded, self.recorded), (JudgementKind::Sum, self.sum)];
        all.extend(self.replies.map(|_| (JudgementKind::Ended, self.ended)));
        all.extend(self.sent.map(|sent| (JudgementKind::Sent, sent.judged)));
        all.extend(self.arrived.map(|arrived| (JudgementKind::Arrived, arrived.judged)));
        all
    }
}
