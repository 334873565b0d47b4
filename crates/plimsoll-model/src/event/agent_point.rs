//! What an agent did in a load point, and how well its clock is known.

use serde::{Deserialize, Serialize};

use super::CoreUser;
use crate::units::Nanos;

/// An agent's part in a load point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentPoint {
    /// As the user named it, with a number where the name stands for several: `ssh://a#2`.
    pub name: String,
    /// Name of its host.
    pub host: String,
    /// How many of the load point's workers were its own; they follow those of the agents before.
    pub workers: u32,
    /// Ops that ended in the window, over its workers.
    pub done: u64,
    /// Ops of these that failed.
    pub errors: u64,
    /// Start of its load, by its own wall clock, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Its load started so much later than the first agent's, as far as the clocks tell.
    pub start_skew_ns: u64,
    /// Its clock against the controller's.
    pub clock: ClockOffset,
    /// Its wall clock moved by this much against its monotonic one during the point.
    pub clock_step_ns: i64,
    /// CPU time of its process in the window.
    pub process_cpu_ns: u64,
    /// CPU time of its monitors in the window.
    pub monitor_cpu_ns: u64,
    /// Who else used its workers' cores, the largest first; `None` when nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_users: Option<Vec<CoreUser>>,
}

/// An agent's monotonic clock less the controller's. The true offset was within `bound` of
/// `offset_ns` during the whole load point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockOffset {
    /// The offset before the load point.
    pub offset_ns: i64,
    /// Half of the shortest round trip, and the drift.
    #[serde(rename = "bound_ns")]
    pub bound: Nanos,
    /// The offset after the load point less the one before it.
    pub drift_ns: i64,
}
