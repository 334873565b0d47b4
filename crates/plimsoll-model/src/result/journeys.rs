//! Journeys of users in a load point.

use serde::{Deserialize, Serialize};

use super::{TimeIntervals, TimeSummary};

/// Journeys of a load point. Counts are of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JourneySummary {
    /// Journeys whose first request was sent.
    pub begun: u64,
    /// Journeys whose last page was complete.
    pub completed: u64,
    /// Journeys that ended with a request that failed; the pages after it were not reached.
    pub failed: u64,
    /// Journeys whose user gave up on a page.
    pub abandoned: u64,
    /// Of the journeys that ended, the part that was completed; absent where none ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_ratio: Option<f64>,
    /// Its uncertainty interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_interval_ratio: Option<[f64; 2]>,
    /// Completed journeys per second.
    pub completed_per_s: Option<f64>,
    /// Pages that were complete.
    pub pages: u64,
    /// Redirects that were followed.
    pub redirects: u64,
    /// Cookies that were not taken, as browsers do not take them.
    pub ignored_cookies: u64,
    /// Last byte of the last page − due of the first request.
    pub time_ns: Option<TimeSummary>,
    /// Its uncertainty intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_interval_ns: Option<TimeIntervals>,
    /// The same without think times.
    pub busy_ns: Option<TimeSummary>,
}
