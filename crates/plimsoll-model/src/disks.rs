//! What the disks of a host are for, and their use at a load point.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cost::CostFigure;
use crate::named::named;

named! {
    /// What disks are for.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    pub enum DiskRole {
        /// The files that the server serves.
        Data = "data",
        /// The files that it appends to.
        Log = "log",
        /// Its database.
        Database = "database",
    }
}

impl DiskRole {
    /// How busy its disks are, as a figure of cost.
    pub const fn busy_figure(self) -> CostFigure {
        match self {
            Self::Data => CostFigure::DataDisksBusy,
            Self::Log => CostFigure::LogDisksBusy,
            Self::Database => CostFigure::DatabaseDisksBusy,
        }
    }
}

/// Disks of a host that have one role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskSet {
    /// The host's source, as resources name it; absent for this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What they are for.
    pub role: DiskRole,
    /// Their names, as monitors have them.
    pub disks: Vec<String>,
    /// What the role rests on: a directory or file that lies on them, or the name that was given.
    pub basis: String,
}

/// Use of a disk over the window. Figures that its host does not report are absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskUse {
    /// The host's source; absent for this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its name.
    pub disk: String,
    /// What it is for; `null` where that is unknown.
    pub role: Option<DiskRole>,
    /// Share of the time with a request.
    pub busy_ratio: Option<f64>,
    /// That share over the mean of all disks of its role: 1 for all if they are used evenly.
    pub busy_over_mean: Option<f64>,
    /// Reads and writes.
    pub transfers_per_s: Option<f64>,
    /// Bytes read and written.
    pub bytes_per_s: Option<f64>,
    /// Mean time of a transfer with its wait: requests in the queue over transfers per second.
    pub transfer_s: Option<f64>,
}
