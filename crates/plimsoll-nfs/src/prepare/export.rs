//! Our directory on an export.

use super::super::handles::OwnedHandle;
use super::super::mounting::Mounted;
use super::super::op::Stability;
use super::super::refusal::CallError;
use super::super::remote::{Listing, Remote};
use plimsoll_protocol::net::SetupError;
use plimsoll_protocol::ours::{MARKER, MARKER_BYTES_MAX, MARKER_NEW, Place, ROOT};

/// An export over one connection.
pub(super) struct Export<'a> {
    pub(super) remote: &'a mut Remote,
    pub(super) mounted: &'a Mounted,
}

impl Place for Export<'_> {
    type Dir = OwnedHandle;
    type Error = CallError;
    const ELSEWHERE: &'static str = "another export";

    fn name(&self) -> String {
        self.mounted.place()
    }

    fn unable_to(&self, doing: &str, error: CallError) -> SetupError {
        error.unable_to(doing, self.mounted.place())
    }

    fn find(&mut self) -> Result<Option<OwnedHandle>, CallError> {
        let found = self.remote.find(&self.mounted.root, ROOT.as_bytes())?;
        Ok(found.map(|found| found.handle))
    }

    fn make(&mut self) -> Result<OwnedHandle, CallError> {
        self.remote.make_dir(&self.mounted.root, ROOT.as_bytes())
    }

    fn marker(&mut self, root: &OwnedHandle) -> Result<Option<Vec<u8>>, CallError> {
        let Some(found) = self.remote.find(root, MARKER.as_bytes())? else { return Ok(None) };
        Ok(Some(self.remote.read(&found.handle, 0, MARKER_BYTES_MAX)?.data))
    }

    fn is_bare(&mut self, root: &OwnedHandle) -> Result<bool, CallError> {
        let entries = self.remote.list(root, Listing::Names)?;
        Ok(entries.iter().all(|entry| entry.name == MARKER_NEW.as_bytes()))
    }

    fn replace_marker(&mut self, root: &OwnedHandle, text: &str) -> Result<(), CallError> {
        let file = self.remote.create(root, MARKER_NEW.as_bytes())?;
        self.remote.set_size(&file, 0)?;
        let written = self.remote.write(&file, 0, text.as_bytes(), Stability::FileSync)?;
        if written.bytes_of(text.len()) as usize != text.len() {
            return Err(CallError::Nothing);
        }
        self.remote.rename(root, MARKER_NEW.as_bytes(), MARKER.as_bytes())
    }
}
