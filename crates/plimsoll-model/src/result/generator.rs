//! How well a load point was measured: who made its load, how healthy they were, and the
//! uncertainty of its figures.

use serde::{Deserialize, Serialize};

use super::TimeSummary;
use crate::capacity::Figure;
use crate::event::ClockOffset;
use crate::open_end::{open_interval, open_number};

/// The generator's own health in a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratorResult {
    /// Busiest worker, mean over the window; empty polls are not work.
    pub cpu_busy_ratio_max: Option<f64>,
    /// The suite's limit of that share.
    pub cpu_busy_ratio_limit: Option<f64>,
    /// Demand of the worker with the highest demand on its core: CPU time without empty polls, and
    /// time it was ready to run while another thread had the core. `null` where the kernel does not
    /// report it.
    pub asked_ratio_max: Option<f64>,
    /// Largest share of the window that a worker lost in gaps between two empty polls.
    pub gap_ratio_max: Option<f64>,
    /// The longest such gap.
    pub gap_ns_max: Option<u64>,
    /// Share of the window the workers polled without finding anything, mean over workers.
    pub empty_poll_ratio: Option<f64>,
    /// Work of the workers per op done (CPU time without empty polls), in nanoseconds.
    pub work_ns_per_op: Option<f64>,
    /// Largest share of the window in which a worker was ready to run while another thread had its
    /// core.
    pub run_delay_ratio_max: Option<f64>,
    /// sent − the later of due and the instant a client was free: the part of send lag that is
    /// the generator's own.
    pub lateness_ns: Option<TimeSummary>,
    /// Its limit: the suite's, or a twentieth of response p50 when that is more.
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
    /// How much later its load started than the first agent's, as far as the clocks show.
    pub start_skew_ns: u64,
    /// Its monotonic clock against the controller's.
    pub clock: ClockOffset,
}

/// Uncertainty intervals of a distribution of times: `[low, high]` in nanoseconds, 95 %. `null`
/// where the figure itself is, or where it is unknown. Where the sample shows no upper end, `high`
/// is infinite, and `null` in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TimeIntervals {
    /// Of the mean.
    #[serde(deserialize_with = "open_interval")]
    pub mean: Option<[f64; 2]>,
    /// Of the median.
    #[serde(deserialize_with = "open_interval")]
    pub p50: Option<[f64; 2]>,
    /// Of the 90th percentile.
    #[serde(deserialize_with = "open_interval")]
    pub p90: Option<[f64; 2]>,
    /// Of the 95th percentile.
    #[serde(deserialize_with = "open_interval")]
    pub p95: Option<[f64; 2]>,
    /// Of the 99th percentile.
    #[serde(deserialize_with = "open_interval")]
    pub p99: Option<[f64; 2]>,
    /// Of the 99.9th percentile.
    #[serde(deserialize_with = "open_interval")]
    pub p999: Option<[f64; 2]>,
}

impl TimeIntervals {
    /// Of a figure; the maximum has none.
    pub const fn figure(&self, figure: Figure) -> Option<[f64; 2]> {
        match figure {
            Figure::Mean => self.mean,
            Figure::P50 => self.p50,
            Figure::P90 => self.p90,
            Figure::P95 => self.p95,
            Figure::P99 => self.p99,
            Figure::P999 => self.p999,
            Figure::Max => None,
        }
    }
}

/// What an uncertainty interval is made of, for one figure: by how much each part alone moves it,
/// in the figure's unit. Bundles of earlier versions have a part more, `other_runs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Uncertainty {
    /// The figure as measured; of a closed load's throughput, by the cycles of its clients.
    pub value: f64,
    /// The generator's part: how far its own delays may have moved the figure up (of a closed
    /// load's throughput: down).
    pub generator: f64,
    /// The sample's part below the figure.
    pub sample_below: f64,
    /// The sample's part above it; infinite, and `null` in JSON, where the sample shows no upper
    /// end.
    #[serde(deserialize_with = "open_number")]
    pub sample_above: f64,
    /// Half a step of the histogram, to either side; zero for throughput.
    pub resolution: f64,
}

/// Ops of a point that were due in its window and were not sent, or had no reply, when its drain
/// ended. Each counts with its age at that instant: their response times are right-censored, and
/// figures that depend on them are lower bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Censored {
    /// Ops that were never sent.
    pub unsent: u64,
    /// Ops that were sent and had neither a reply nor reached their timeout.
    pub unfinished: u64,
    /// The least age of these ops: percentiles of the response time up to it are exact.
    pub response_exact_to_ns: u64,
    /// The least time since it was sent of an op without a reply: percentiles of the service time
    /// up to it are exact. `null` where every op that was sent has ended.
    pub service_exact_to_ns: Option<u64>,
}

impl Censored {
    /// Is this figure of the response time, in nanoseconds, a lower bound?
    pub fn bounds_response(&self, figure: Figure, ns: f64) -> bool {
        is_bound(Some(self.response_exact_to_ns), figure, ns)
    }

    /// Is this figure of the service time, in nanoseconds, a lower bound?
    pub fn bounds_service(&self, figure: Figure, ns: f64) -> bool {
        is_bound(self.service_exact_to_ns, figure, ns)
    }
}

/// A censored time is longer than any percentile up to `exact_to_ns`, however long it would have
/// been. The mean and the longest depend on every op.
fn is_bound(exact_to_ns: Option<u64>, figure: Figure, ns: f64) -> bool {
    exact_to_ns.is_some_and(|exact_to| match figure {
        Figure::Mean | Figure::Max => true,
        Figure::P50 | Figure::P90 | Figure::P95 | Figure::P99 | Figure::P999 => {
            ns > exact_to as f64
        }
    })
}
