//! What must lie on a share before a load point, as directories and files.

use super::{Home, Workspace};
use crate::op::Content;

/// A file that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Its path.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// What it holds.
    pub content: Content,
}

/// A part of what must be there; one channel at a time works on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Directories below our own, each after the one it lies in.
    pub dirs: Vec<String>,
    /// Files in them, or in our own.
    pub files: Vec<Wanted>,
    /// The one of the directories that must be empty.
    pub empty: Option<String>,
}

impl Place {
    /// A client's workspace, with nothing where its script makes files.
    pub(crate) fn of_client(seed: u64, client: u32, workspace: Workspace) -> Self {
        let home = Home::Client(client);
        let empty = super::work_directory(client).to_string();
        let seeds = super::seed_directory(home).to_string();
        Self {
            dirs: vec![super::home_path(home).to_string(), seeds, empty.clone()],
            files: seed_files(seed, home, workspace),
            empty: Some(empty),
        }
    }

    /// What all clients read.
    pub(crate) fn shared(seed: u64, workspace: Workspace) -> Self {
        Self {
            dirs: vec![super::seed_directory(Home::Shared).to_string()],
            files: seed_files(seed, Home::Shared, workspace),
            empty: None,
        }
    }

    /// The file of the `nic` suite.
    pub(crate) fn nic(seed: u64, bytes: u32) -> Self {
        let file = Wanted {
            path: super::nic_path().to_string(),
            bytes: u64::from(bytes),
            content: super::nic_content(seed),
        };
        Self { files: vec![file], ..Self::default() }
    }

    /// Where load files are replayed: an empty directory.
    pub(crate) fn replay() -> Self {
        let root = super::replay_root().to_string();
        Self { dirs: vec![root.clone()], files: Vec::new(), empty: Some(root) }
    }
}

fn seed_files(seed: u64, home: Home, workspace: Workspace) -> Vec<Wanted> {
    let wanted = |file| Wanted {
        path: super::path_of(home, file).to_string(),
        bytes: u64::from(workspace.bytes_of(file)),
        content: super::content(seed, home, file),
    };
    workspace.files().map(wanted).collect()
}
