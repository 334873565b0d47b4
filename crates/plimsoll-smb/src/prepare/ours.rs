//! Our directory on a share: is it there, is it ours, what does its marker say.

use super::super::workspace::{self, MARKER, MARKER_NEW, ROOT, ShareMarker};
use super::share::Share;
use super::site::Site;
use plimsoll_protocol::marker::Marker as _;
use plimsoll_protocol::net::SetupError;

/// A marker is a few hundred bytes.
const MARKER_BYTES_MAX: u32 = 8192;

/// What a share has under [`ROOT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RootState {
    /// Nothing.
    Absent,
    /// Our directory. Without a marker when it is empty: its making was cut short.
    Ours(Option<ShareMarker>),
}

/// Looks; a directory of somebody else is an error.
pub(super) fn look(share: &mut dyn Share, site: &Site<'_>) -> Result<RootState, SetupError> {
    let root = share.find(ROOT).map_err(site.unable_to("look for plimsoll-files"))?;
    if root.is_none() {
        return Ok(RootState::Absent);
    }
    let path = workspace::marker_path();
    let found = share
        .find(path.as_str())
        .map_err(site.unable_to("look for the marker in plimsoll-files"))?;
    if found.is_none() {
        let listed = share.list(ROOT).map_err(site.unable_to("list plimsoll-files"))?;
        if listed.unwrap_or_default().iter().all(|entry| entry.name == MARKER_NEW) {
            return Ok(RootState::Ours(None));
        }
        return Err(SetupError::Wrong(format!(
            "{}: {ROOT} exists there and carries no {MARKER}, so it is not ours and nothing is \
             written or removed; move it away, or use another share or directory",
            site.name
        )));
    }
    let text = share
        .read(path.as_str(), 0, MARKER_BYTES_MAX)
        .map_err(site.unable_to("read the marker in plimsoll-files"))?;
    match ShareMarker::parse(&text) {
        Ok(marker) => Ok(RootState::Ours(Some(marker))),
        Err(error) => Err(SetupError::Wrong(format!("{}: {error}", site.name))),
    }
}

/// Refuses files of another seed.
pub(super) fn check_seed(
    marker: &ShareMarker,
    seed: u64,
    site: &Site<'_>,
) -> Result<(), SetupError> {
    let held = marker.seed();
    if held == seed {
        return Ok(());
    }
    Err(SetupError::Wrong(format!(
        "{}: {ROOT} holds files of seed {held}, not {seed}; use them with --set \
         workload.file_set_seed={held}, or remove them with plimsoll clean",
        site.name
    )))
}

/// Makes the directory where it is missing, and its marker.
pub(super) fn open(
    share: &mut dyn Share,
    site: &Site<'_>,
    state: &RootState,
    marker: &ShareMarker,
) -> Result<(), SetupError> {
    match state {
        RootState::Ours(Some(held)) if held == marker => return Ok(()),
        RootState::Ours(_) => {}
        RootState::Absent => {
            share.make_dir(ROOT).map_err(site.unable_to("make plimsoll-files"))?;
        }
    }
    write_marker(share, site, marker)
}

/// Replaces the marker in one step, so that it is whole at any instant.
pub(super) fn write_marker(
    share: &mut dyn Share,
    site: &Site<'_>,
    marker: &ShareMarker,
) -> Result<(), SetupError> {
    let (new, path) = (workspace::new_marker_path(), workspace::marker_path());
    share
        .write_text(new.as_str(), &marker.to_json())
        .and_then(|()| share.rename(new.as_str(), path.as_str()))
        .map_err(site.unable_to("write the marker in plimsoll-files"))
}
