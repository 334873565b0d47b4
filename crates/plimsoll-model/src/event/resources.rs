//! What the monitors saw of a load point.

use serde::{Deserialize, Serialize};

/// A process that used a core in the window of a load point which a worker or the server wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreUser {
    /// As the kernel calls it.
    pub name: String,
    /// Process id.
    pub pid: u32,
    /// On a worker's core: CPU time of its threads that were last seen there. On the server's: of
    /// all its threads, on any core.
    pub cpu_ns: u64,
    /// It is this program: another thread than a worker.
    pub own: bool,
    /// It belongs to the server that is measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub server: bool,
    /// It is a thread of the kernel (`PF_KTHREAD`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel: bool,
}

/// Whose a [`CoreUser`] is: what can be done about it differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreUserKind {
    /// This program's, another thread than a worker.
    Own,
    /// The server's that is measured, one within the kernel included.
    Server,
    /// The kernel's.
    Kernel,
    /// Another program's.
    Other,
}

impl CoreUser {
    /// Whose it is.
    pub const fn kind(&self) -> CoreUserKind {
        match self {
            Self { own: true, .. } => CoreUserKind::Own,
            Self { server: true, .. } => CoreUserKind::Server,
            Self { kernel: true, .. } => CoreUserKind::Kernel,
            _ => CoreUserKind::Other,
        }
    }
}

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
