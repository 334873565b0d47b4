//! Our directory on a share.

use super::super::workspace::{marker_path, new_marker_path};
use super::share::{Share, ShareError};
use super::site::Site;
use plimsoll_protocol::net::SetupError;
use plimsoll_protocol::ours::{MARKER_BYTES_MAX, MARKER_NEW, Place, ROOT};

/// A share over one connection. Its directories go by their paths.
pub(super) struct Shared<'a> {
    pub(super) share: &'a mut dyn Share,
    pub(super) site: &'a Site<'a>,
}

impl Place for Shared<'_> {
    type Dir = ();
    type Error = ShareError;
    const ELSEWHERE: &'static str = "another share or directory";

    fn name(&self) -> String {
        self.site.name.to_owned()
    }

    fn unable_to(&self, doing: &str, error: ShareError) -> SetupError {
        error.unable_to(doing, self.site.name)
    }

    fn find(&mut self) -> Result<Option<()>, ShareError> {
        Ok(self.share.find(ROOT)?.map(drop))
    }

    fn make(&mut self) -> Result<(), ShareError> {
        self.share.make_dir(ROOT)
    }

    fn marker(&mut self, (): &()) -> Result<Option<Vec<u8>>, ShareError> {
        let path = marker_path();
        match self.share.find(path.as_str())? {
            Some(_) => self.share.read(path.as_str(), 0, MARKER_BYTES_MAX).map(Some),
            None => Ok(None),
        }
    }

    fn is_bare(&mut self, (): &()) -> Result<bool, ShareError> {
        let listed = self.share.list(ROOT)?.unwrap_or_default();
        Ok(listed.iter().all(|entry| entry.name == MARKER_NEW))
    }

    fn replace_marker(&mut self, (): &(), text: &str) -> Result<(), ShareError> {
        let (new, path) = (new_marker_path(), marker_path());
        self.share.write_text(new.as_str(), text)?;
        self.share.rename(new.as_str(), path.as_str())
    }
}
