//! Our directory on an export: is it there, is it ours, what does its marker say.

use super::super::fileset::{FileSet, FileSetMarker, MARKER, ROOT};
use super::super::handles::OwnedHandle;
use super::super::mounting::Mounted;
use super::super::op::Stability;
use super::super::refusal::CallError;
use super::super::remote::{Listing, Remote};
use plimsoll_protocol::marker::Marker as _;
use plimsoll_protocol::net::SetupError;

/// The marker in the making; renamed when it is whole.
pub(super) const MARKER_NEW: &str = ".plimsoll.new";
/// A marker is a few hundred bytes.
const MARKER_BYTES_MAX: u32 = 8192;

/// What an export has under [`ROOT`].
#[derive(Debug)]
pub(super) enum RootState {
    /// Nothing.
    Absent,
    /// Our directory. Without a marker when it is empty: its making was cut short.
    Ours(OwnedHandle, Option<FileSetMarker>),
}

/// Looks; a directory of somebody else is an error.
pub(super) fn look(remote: &mut Remote, mounted: &Mounted) -> Result<RootState, SetupError> {
    let failed = |doing: &'static str| move |e: CallError| e.unable_to(doing, mounted.place());
    let found =
        remote.find(&mounted.root, ROOT.as_bytes()).map_err(failed("look for plimsoll-files"))?;
    let Some(root) = found.map(|found| found.handle) else { return Ok(RootState::Absent) };
    let marker = remote
        .find(&root, MARKER.as_bytes())
        .map_err(failed("look for the marker in plimsoll-files"))?;
    let Some(marker) = marker else {
        let entries = remote.list(&root, Listing::Names).map_err(failed("list plimsoll-files"))?;
        if entries.iter().all(|entry| entry.name == MARKER_NEW.as_bytes()) {
            return Ok(RootState::Ours(root, None));
        }
        return Err(SetupError::Wrong(format!(
            "{}: {ROOT} exists there and carries no {MARKER}, so it is not ours and nothing is \
             written or removed; move it away, or use another export",
            mounted.place()
        )));
    };
    let text = remote
        .read(&marker.handle, 0, MARKER_BYTES_MAX)
        .map_err(failed("read the marker in plimsoll-files"))?
        .data;
    match FileSetMarker::parse(&text) {
        Ok(marker) => Ok(RootState::Ours(root, Some(marker))),
        Err(error) => Err(SetupError::Wrong(format!("{}: {error}", mounted.place()))),
    }
}

/// Refuses a set of another seed.
pub(super) fn check_seed(
    marker: &FileSetMarker,
    seed: u64,
    mounted: &Mounted,
) -> Result<(), SetupError> {
    let held = marker.seed();
    if held == seed {
        return Ok(());
    }
    Err(SetupError::Wrong(format!(
        "{}: {ROOT} holds a file set of seed {held}, not {seed}; use it with --set \
         workload.file_set_seed={held}, or remove it with plimsoll clean",
        mounted.place()
    )))
}

/// Makes the directory and its first marker where they are missing.
pub(super) fn open(
    remote: &mut Remote,
    mounted: &Mounted,
    state: RootState,
    seed: u64,
) -> Result<(OwnedHandle, FileSetMarker), SetupError> {
    let root = match state {
        RootState::Ours(root, Some(marker)) => return Ok((root, marker)),
        RootState::Ours(root, None) => root,
        RootState::Absent => remote
            .make_dir(&mounted.root, ROOT.as_bytes())
            .map_err(|e| e.unable_to("make plimsoll-files", mounted.place()))?,
    };
    let marker = FileSetMarker::new(seed, FileSet::new(0));
    write_marker(remote, mounted, &root, &marker)?;
    Ok((root, marker))
}

/// Replaces the marker in one step, so that it is whole at any instant.
pub(super) fn write_marker(
    remote: &mut Remote,
    mounted: &Mounted,
    root: &OwnedHandle,
    marker: &FileSetMarker,
) -> Result<(), SetupError> {
    let text = marker.to_json();
    let mut write = || {
        let file = remote.create(root, MARKER_NEW.as_bytes())?;
        remote.set_size(&file, 0)?;
        let written = remote.write(&file, 0, text.as_bytes(), Stability::FileSync)?;
        if written.bytes_of(text.len()) as usize != text.len() {
            return Err(CallError::Nothing);
        }
        remote.rename(root, MARKER_NEW.as_bytes(), MARKER.as_bytes())
    };
    write().map_err(|e| e.unable_to("write the marker in plimsoll-files", mounted.place()))
}
