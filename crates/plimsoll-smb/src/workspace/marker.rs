//! The file that says a directory is ours and what it holds.

use plimsoll_protocol::marker::Marker;
use serde::{Deserialize, Serialize};

use super::{CLIENTS_MAX, Workspace};

/// Text of [`super::MARKER`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareMarker {
    /// Seed of the content.
    seed: u64,
    /// Size of one client's seed files; those of the shared directory take as much.
    workspace_bytes: u64,
    /// Clients whose workspaces are complete, shared directory and `nic.dat` included; 0 while
    /// the first are being made.
    clients: u32,
}

impl ShareMarker {
    /// The marker of a share on which the workspaces of the first `clients` are complete.
    pub fn new(seed: u64, workspace: Workspace, clients: u32) -> Self {
        Self { seed, workspace_bytes: workspace.bytes(), clients }
    }

    /// Seed of the content.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Clients whose workspaces are complete; none while the first are being made.
    pub fn clients(&self) -> u32 {
        self.clients
    }

    /// The seed files are those of `seed` and `workspace`; more clients can be added.
    pub fn is_of(&self, seed: u64, workspace: Workspace) -> bool {
        // Sizes rise and fall together, so equal sums are equal files.
        self.seed == seed && self.workspace_bytes == workspace.bytes()
    }
}

impl Marker for ShareMarker {
    const TITLE: &'static str = "the share's marker";
    const REMEDY: &'static str = "remove plimsoll-files and prepare it again";

    fn excess(&self) -> Option<String> {
        let Self { clients, .. } = self;
        (*clients > CLIENTS_MAX).then(|| format!("{clients} clients, at most {CLIENTS_MAX} can be"))
    }
}
