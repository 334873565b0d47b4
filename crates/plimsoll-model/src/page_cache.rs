//! How often a server reads its disks instead of its memory: the access pattern of a load, and the
//! measured and the predicted miss ratio of a load point.

use serde::{Deserialize, Serialize};

use crate::named::named;

/// Which parts of the data set a load reads, and how often. Reads are independent of each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessPattern {
    /// Items of the data set by size and popularity, on all servers together.
    pub classes: Vec<AccessClass>,
}

/// Items that have one size and are read equally often: files, or blocks of files.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessClass {
    /// How many.
    pub items: u64,
    /// Bytes of one; a read transfers all of them.
    pub bytes: u64,
    /// Part of all reads that go to this class.
    pub share: f64,
}

/// How the server's memory served the reads of a load point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageCacheUse {
    /// Bytes read from the server's disks, divided by the bytes that it sent.
    pub miss_ratio: f64,
    /// Whose reads of disks are counted.
    pub reads_of: DiskReader,
    /// Memory that the kernel could use for files: what the host has available, at most the limit
    /// of the server's control group less the resident memory of its processes. Absent where it was
    /// not monitored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<f64>,
    /// Pages read per second that memory had no room for a short time before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refaults_per_s: Option<f64>,
    /// Page faults per second that read a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major_faults_per_s: Option<f64>,
    /// What the formula gives; absent where the access pattern is not ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<PredictedMisses>,
}

named! {
    /// Whose reads of disks are counted.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum DiskReader {
        /// The server's control group.
        ControlGroup = "control_group",
        /// All programs of the server's host.
        Host = "host",
    }
}

/// The misses of a cache that replaces the least recently used page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictedMisses {
    /// Memory in which all that is read has room, in whole pages.
    pub full_bytes: f64,
    /// Miss ratio with the available memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub miss_ratio: Option<f64>,
    /// Share of the reads that are answered from the available memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_ratio: Option<f64>,
    /// Pairs of bytes of memory, rising, and miss ratio.
    pub curve: Vec<(f64, f64)>,
}
