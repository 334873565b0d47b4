//! What the monitors saw of a load point.

use serde::{Deserialize, Serialize};

/// Use of one resource over the window of a load point. A resource that could not be watched has
/// no entry; zero is a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceUse {
    /// Stable name, from whole to part: `host.cpu_busy`, `process.server.cpu`, `disk.vda.busy`.
    pub name: String,
    /// `ratio`, `cores`, `bytes`, `bytes/s`, `1/s`, `s`, or empty for a plain count.
    pub unit: String,
    /// Mean over the window, by time.
    pub mean: f64,
    /// Highest sample of the window.
    pub max: f64,
    /// Where it was read, as given to `--monitor`, without secrets; absent for this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its samples, for resources that are drawn over time: seconds from the window's start to the
    /// sample's middle, and its value. Of long windows, means of several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<(f64, f64)>,
}

impl ResourceUse {
    /// A figure of the whole window, without samples.
    pub fn of_window(name: &str, unit: &str, mean: f64, max: f64) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned(), mean, max, ..Self::default() }
    }
}

/// How a worker fared in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerHealth {
    /// CPU time (user + system) of the worker's thread.
    pub cpu_ns: u64,
    /// Of the interval, time spent in polls that found nothing, where the worker polls.
    pub empty_poll_ns: u64,
    /// Length of the interval.
    pub wall_ns: u64,
    /// Times the worker woke from a sleep.
    pub wakeups: u64,
    /// Ops waiting for a free connection at the end of the interval.
    pub backlog_ops: u64,
    /// Time the worker was ready to run while another thread had its core; `None` where the kernel
    /// does not say.
    #[serde(default)]
    pub run_delay_ns: Option<u64>,
    /// Time the worker slept of its own will, waiting for replies or the next op.
    #[serde(default)]
    pub sleep_ns: u64,
    /// Time between two empty polls that was far longer than a poll takes: somebody else had the
    /// core, another thread or the hypervisor. Part of neither work nor empty polls.
    #[serde(default)]
    pub gap_ns: u64,
    /// The longest of those gaps.
    #[serde(default)]
    pub gap_ns_max: u64,
    /// The wall clock moved by this much against the monotonic one since the last interval. Stamps
    /// of replies are wall clock.
    #[serde(default)]
    pub clock_step_ns: i64,
}

impl WorkerHealth {
    /// Share of the interval in which the worker did useful work; empty polls are not work.
    pub fn busy_ratio(&self) -> f64 {
        if self.wall_ns == 0 {
            return 0.0;
        }
        // Polls that another thread interrupted are gaps and not counted as polls.
        let work_ns = self.cpu_ns as f64 - self.empty_poll_ns as f64;
        (work_ns / self.wall_ns as f64).clamp(0.0, 1.0)
    }
}
