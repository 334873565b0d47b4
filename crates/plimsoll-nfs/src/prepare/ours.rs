//! Our directory on an export, as what all data sets share reaches it.

use super::super::fileset::FileSetMarker;
use super::super::handles::OwnedHandle;
use super::super::mounting::Mounted;
use super::super::op::Stability;
use super::super::refusal::CallError;
use super::super::remote::{Listing, Remote};
use plimsoll_protocol::data_set::{self, MARKER, MARKER_NEW, ROOT, Space, Tree, Words};
use plimsoll_protocol::net::SetupError;

/// What an export has under [`ROOT`].
pub(super) type Standing = data_set::Standing<OwnedHandle, FileSetMarker>;

/// An export over one channel.
pub(super) struct Export<'a>(pub &'a mut Remote, pub &'a Mounted);

impl Tree for Export<'_> {
    type Root = OwnedHandle;
    type File = OwnedHandle;
    type Error = CallError;
    const WORDS: Words = Words {
        held: ("a file set", "it"),
        elsewhere: "export",
        needed: "the file set and what the run appends",
        less: "lower the load, or scale the file set down with --profile quick or the profile's \
               workload_scale",
    };

    fn find_root(&mut self) -> Result<Option<OwnedHandle>, CallError> {
        self.find(&self.1.root, ROOT)
    }

    fn make_root(&mut self) -> Result<OwnedHandle, CallError> {
        self.0.make_dir(&self.1.root, ROOT.as_bytes())
    }

    fn names(&mut self, root: &OwnedHandle) -> Result<Vec<Vec<u8>>, CallError> {
        let entries = self.0.list(root, Listing::Names)?;
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }

    fn find(&mut self, dir: &OwnedHandle, name: &str) -> Result<Option<OwnedHandle>, CallError> {
        Ok(self.0.find(dir, name.as_bytes())?.map(|found| found.handle))
    }

    fn read(&mut self, file: &OwnedHandle, bytes: u32) -> Result<Vec<u8>, CallError> {
        Ok(self.0.read(file, 0, bytes)?.data)
    }

    fn replace_marker(&mut self, root: &OwnedHandle, text: &str) -> Result<(), CallError> {
        let file = self.0.create(root, MARKER_NEW.as_bytes())?;
        self.0.set_size(&file, 0)?;
        let written = self.0.write(&file, 0, text.as_bytes(), Stability::FileSync)?;
        if written.bytes_of(text.len()) as usize != text.len() {
            return Err(CallError::Nothing);
        }
        self.0.rename(root, MARKER_NEW.as_bytes(), MARKER.as_bytes())
    }

    fn space(&mut self) -> Result<Space, CallError> {
        let space = self.0.space(&self.1.root)?;
        Ok(Space { bytes: space.available_bytes, files: space.available_files })
    }

    fn place(&self) -> String {
        self.1.place()
    }

    fn unable_to(&self, doing: &str, error: CallError) -> SetupError {
        error.unable_to(doing, self.1.place())
    }
}
