//! Who used a core, as events and limits name it.

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
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CoreUserKind {
    /// This program's, another thread than a worker.
    Own,
    /// The server's that is measured, one within the kernel included.
    Server,
    /// The kernel's.
    Kernel,
    /// Another program's.
    #[default]
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
