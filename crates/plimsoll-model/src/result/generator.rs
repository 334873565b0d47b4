//! Who made the load of a point, and how healthy they were.

use serde::{Deserialize, Serialize};

use super::TimeSummary;
use crate::event::ClockOffset;

/// The generator's own health in a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratorResult {
    /// Busiest worker, mean over the window; empty polls are not work.
    pub cpu_busy_ratio_max: Option<f64>,
    /// The suite's limit of that share.
    #[serde(default)]
    pub cpu_busy_ratio_limit: Option<f64>,
    /// What the worker that asked most asked of its core: CPU time without empty polls, and time it
    /// was ready to run while another thread had the core. `null` where the kernel does not say.
    #[serde(default)]
    pub asked_ratio_max: Option<f64>,
    /// Largest share of the window that a worker lost in gaps between two empty polls.
    #[serde(default)]
    pub gap_ratio_max: Option<f64>,
    /// The longest such gap.
    #[serde(default)]
    pub gap_ns_max: Option<u64>,
    /// Share of the window the workers polled without finding anything, mean over workers.
    #[serde(default)]
    pub empty_poll_ratio: Option<f64>,
    /// Work of the workers per op done (CPU time without empty polls), in nanoseconds.
    #[serde(default)]
    pub work_ns_per_op: Option<f64>,
    /// Largest share of the window in which a worker was ready to run while another thread had its
    /// core.
    #[serde(default)]
    pub run_delay_ratio_max: Option<f64>,
    /// sent − the later of due and the instant a client was free: the part of send lag that is
    /// the generator's own.
    #[serde(default)]
    pub lateness_ns: Option<TimeSummary>,
    /// Its limit: the suite's, or a twentieth of response p50 when that is more.
    #[serde(default)]
    pub lateness_limit_ns: Option<u64>,
    /// CPU time of the generator process per op done, in nanoseconds.
    pub cpu_ns_per_op: Option<f64>,
    /// Share of one core the monitors took.
    pub monitor_cpu_ratio: Option<f64>,
    /// Pacing the workers used.
    pub pacing: Option<String>,
}

/// An agent in a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentResult {
    /// As the user named it.
    pub name: String,
    /// Name of its host.
    pub host: String,
    /// Its workers.
    pub workers: u32,
    /// Ops that its clients finished in the window, per second.
    pub achieved_ops_per_s: Option<f64>,
    /// These as a share of all agents'.
    pub share_ratio: Option<f64>,
    /// Ops of its clients that failed.
    pub errors: u64,
    /// Its busiest worker, mean over the window.
    pub cpu_busy_ratio_max: Option<f64>,
    /// Largest share of the window in which one of its workers was ready to run while another
    /// thread had its core.
    pub run_delay_ratio_max: Option<f64>,
    /// Its load started so much later than the first agent's, as far as the clocks tell.
    pub start_skew_ns: u64,
    /// Its monotonic clock against the controller's.
    pub clock: ClockOffset,
}
