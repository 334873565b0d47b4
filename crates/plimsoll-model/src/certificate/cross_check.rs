//! What the server's log says of the ops that the client counted and timed.

use serde::{Deserialize, Serialize};

use super::{Judged, JudgementKind};
use crate::units::Nanos;

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
