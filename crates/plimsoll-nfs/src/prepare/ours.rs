//! Our directory on an export, as what all data sets share reaches it, and the room a set needs.

use plimsoll_model::units::Bytes;
use plimsoll_protocol::data_set::{self, MARKER, MARKER_NEW, Need, ROOT, Space, Terms, Tree};
use plimsoll_protocol::net::SetupError;

use crate::fileset::{FileNo, FileSet, FileSetMarker};
use crate::handles::OwnedHandle;
use crate::mounting::Mounted;
use crate::op::Stability;
use crate::refusal::CallError;
use crate::remote::{Listing, Remote};

/// What an export has under [`ROOT`].
pub(super) type RootState = data_set::RootState<OwnedHandle, FileSetMarker>;

/// An export over one channel.
pub(super) struct Export<'a>(pub &'a mut Remote, pub &'a Mounted);

impl Tree for Export<'_> {
    type Root = OwnedHandle;
    type File = OwnedHandle;
    type Error = CallError;
    const TERMS: Terms = Terms {
        subject: ("a file set", "it"),
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
        Ok(self.0.list(root, Listing::Names)?.into_iter().map(|entry| entry.name).collect())
    }

    fn find(&mut self, dir: &OwnedHandle, name: &str) -> Result<Option<OwnedHandle>, CallError> {
        Ok(self.0.find(dir, name.as_bytes())?.map(|resolved| resolved.handle))
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

    fn location(&self) -> String {
        self.1.target_label()
    }

    fn unable_to(&self, doing: &str, error: CallError) -> SetupError {
        error.unable_to(doing, self.1.target_label())
    }
}

/// Left free beyond the file set: the file system's own needs, and other users of it.
pub const SPARE_BYTES: u64 = 64 * 1024 * 1024;
/// Files of the pattern of sizes.
const PATTERN_FILES: u32 = 100;

/// Room for the files of `set` beyond those of `existing_set`, and for what the run itself appends.
pub(super) fn need(set: FileSet, existing: FileSet, growth: Bytes) -> Need {
    Need {
        files: u64::from(set.files().saturating_sub(existing.files())),
        bytes: disk_bytes(set).saturating_sub(disk_bytes(existing)),
        growth,
        spare: SPARE_BYTES,
    }
}

fn disk_bytes(set: FileSet) -> u64 {
    let of = |files: std::ops::Range<u32>| -> u64 {
        files.map(|n| data_set::disk_bytes(FileNo(n).bytes())).sum()
    };
    let (patterns, rest) = (set.files() / PATTERN_FILES, set.files() % PATTERN_FILES);
    let directories = u64::from(set.directories()) * 3 * data_set::disk_bytes(1);
    u64::from(patterns) * of(0..PATTERN_FILES) + of(0..rest) + directories
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_are_counted_as_the_blocks_they_take() {
        let (hundred, all) = (FileSet::new(100), FileSet::new(1_000));
        // 67 of a hundred files have less than a block or one; 33 are multiples of it.
        let files = 67 * 4 + 10 * 8 + 8 * 16 + 5 * 32 + 4 * 64 + 3 * 128 + 2 * 256 + 1024;
        let missing = |set, existing| need(set, existing, Bytes(0)).bytes;
        assert_eq!(missing(hundred, FileSet::new(0)), files * 1024 + 3 * 4096);
        assert_eq!(missing(all, all), 0);
        assert_eq!(missing(hundred, all), 0);
    }
}
