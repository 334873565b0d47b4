//! The file that says a directory is ours and what it holds.

use serde::{Deserialize, Serialize};

use super::{CLIENTS_MAX, Workspace};

/// Version of the file.
const MARKER_FORMAT: u32 = 1;

/// Text of [`super::MARKER`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marker {
    /// Version of this format.
    format: u32,
    /// Program and version that wrote it.
    tool: String,
    /// Seed of the content.
    seed: u64,
    /// Size of one client's seed files; those of the shared directory take as much.
    workspace_bytes: u64,
    /// Clients whose workspaces are complete, shared directory and `nic.dat` included; 0 while
    /// the first are being made.
    clients: u32,
}

/// A marker that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkerError {
    /// Not the JSON of a marker.
    #[error("the share's marker is not valid: {0}; remove plimsoll-files and prepare it again")]
    Invalid(String),
    /// Of another version.
    #[error(
        "the share's marker has format {0}, this program reads {MARKER_FORMAT}; \
             use the version of plimsoll that wrote it"
    )]
    Format(u32),
    /// More clients than there can be.
    #[error(
        "the share's marker names {0} clients, at most {CLIENTS_MAX} can be; \
             remove plimsoll-files and prepare it again"
    )]
    Clients(u32),
}

impl Marker {
    /// The marker of a share on which the workspaces of the first `clients` are complete.
    pub fn new(seed: u64, workspace: Workspace, clients: u32) -> Self {
        Self {
            format: MARKER_FORMAT,
            tool: concat!("plimsoll ", env!("CARGO_PKG_VERSION")).to_owned(),
            seed,
            workspace_bytes: workspace.bytes(),
            clients,
        }
    }

    /// Reads a marker.
    pub fn parse(text: &[u8]) -> Result<Self, MarkerError> {
        let marker: Self =
            serde_json::from_slice(text).map_err(|e| MarkerError::Invalid(e.to_string()))?;
        match marker {
            Self { format, .. } if format != MARKER_FORMAT => Err(MarkerError::Format(format)),
            Self { clients, .. } if clients > CLIENTS_MAX => Err(MarkerError::Clients(clients)),
            _ => Ok(marker),
        }
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

    /// The text of the file.
    pub fn to_json(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("numbers and strings are always JSON");
        text.push('\n');
        text
    }
}
