//! Our directory on a share, as what all data sets share reaches it.

use super::super::op::PathText;
use super::super::workspace::{ROOT, ShareMarker, root_path};
use super::share::{Share, ShareError};
use super::site::Site;
use plimsoll_protocol::data_set::{self, MARKER, MARKER_NEW, Space, Tree, Words};
use plimsoll_protocol::net::SetupError;

/// What a share has under [`ROOT`].
pub(super) type Standing = data_set::Standing<(), ShareMarker>;

/// A share over one connection.
pub(super) struct OnShare<'a>(pub &'a mut dyn Share, pub &'a Site<'a>);

impl Tree for OnShare<'_> {
    type Root = ();
    type File = PathText;
    type Error = ShareError;
    const WORDS: Words = Words {
        held: ("files", "them"),
        elsewhere: "share or directory",
        needed: "the workspaces and what the clients write",
        less: "ask for fewer clients, or scale the workspaces down with --set \
               workload.workspace_mib or --profile quick",
    };

    fn find_root(&mut self) -> Result<Option<()>, ShareError> {
        Ok(self.0.find(ROOT)?.map(drop))
    }

    fn make_root(&mut self) -> Result<(), ShareError> {
        self.0.make_dir(ROOT)
    }

    fn names(&mut self, (): &()) -> Result<Vec<Vec<u8>>, ShareError> {
        let entries = self.0.list(ROOT)?.unwrap_or_default();
        Ok(entries.into_iter().map(|entry| entry.name.into_bytes()).collect())
    }

    fn find(&mut self, (): &(), name: &str) -> Result<Option<PathText>, ShareError> {
        let path = root_path(name);
        Ok(self.0.find(path.as_str())?.map(|_| path))
    }

    fn read(&mut self, file: &PathText, bytes: u32) -> Result<Vec<u8>, ShareError> {
        self.0.read(file.as_str(), 0, bytes)
    }

    fn replace_marker(&mut self, (): &(), text: &str) -> Result<(), ShareError> {
        let (new, path) = (root_path(MARKER_NEW), root_path(MARKER));
        self.0.write_text(new.as_str(), text)?;
        self.0.rename(new.as_str(), path.as_str())
    }

    fn space(&mut self) -> Result<Space, ShareError> {
        // Where the server does not say, what does not fit fails when it is written.
        Ok(Space { bytes: self.0.free_bytes()?.unwrap_or(u64::MAX), files: None })
    }

    fn place(&self) -> String {
        self.1.name.to_owned()
    }

    fn unable_to(&self, doing: &str, error: ShareError) -> SetupError {
        self.1.unable_to(doing)(error)
    }
}
