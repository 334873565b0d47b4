//! Brings a place into order: makes what is missing, writes and cuts, removes what was left.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::super::wire::status;
use super::place::{Place, Wanted};
use super::share::{Kind, Share, ShareError, Text};
use super::site::Site;
use super::survey::{Repair, Survey};
use plimsoll_protocol::content::ContentTable;

/// How far all channels are, for the caller's eyes.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Files in order.
    pub files: AtomicU64,
    /// Bytes written.
    pub bytes: AtomicU64,
}

/// What the work on all places shares.
#[derive(Clone, Copy)]
pub(super) struct Style<'a> {
    /// Which share.
    pub site: &'a Site<'a>,
    /// What is in the files.
    pub table: &'a ContentTable,
    /// Who counts.
    pub tally: &'a Tally,
}

/// A server may hold a client's files open for a moment after the client is gone.
const HELD_TRIES: u32 = 40;
/// Between two tries.
const HELD_PAUSE: Duration = Duration::from_millis(50);

/// Does what the survey found to do. What could not be done is named with the error.
pub(super) fn build(
    share: &mut dyn Share,
    style: &Style<'_>,
    place: &Place,
    survey: &Survey,
) -> Result<(), (ShareError, String)> {
    for (path, kind) in &survey.leftovers {
        let path = style.site.path(path);
        patiently(share, |share| share.remove(&path, *kind))
            .map_err(|e| (e, format!("remove {path}")))?;
    }
    for dir in &survey.dirs {
        let path = style.site.path(dir);
        share.make_dir(&path).map_err(|e| (e, format!("make {path}")))?;
    }
    for (number, repair) in &survey.files {
        let Some(wanted) = place.files.get(*number) else { continue };
        let path = style.site.path(&wanted.path);
        match repair {
            Repair::Write => {
                write(share, style, wanted, &path).map_err(|e| (e, format!("write {path}")))?
            }
            Repair::Cut => patiently(share, |share| share.cut(&path, wanted.bytes))
                .map_err(|e| (e, format!("cut {path}")))?,
        }
        style.tally.files.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn write(
    share: &mut dyn Share,
    style: &Style<'_>,
    wanted: &Wanted,
    path: &str,
) -> Result<(), ShareError> {
    let text = Text::Keyed { bytes: wanted.bytes, content: wanted.content, table: style.table };
    patiently(share, |share| share.write(path, &text, &style.tally.bytes))
}

/// Removes a directory and all below it; answers with how many files that were.
pub(super) fn remove_tree(share: &mut dyn Share, path: &str) -> Result<u64, (ShareError, String)> {
    let mut files = 0;
    let listed = share.list(path).map_err(|e| (e, format!("list {path}")))?;
    let Some(entries) = listed else { return Ok(0) };
    for entry in entries {
        let inner = format!("{path}\\{}", entry.name);
        match entry.found.kind {
            Kind::Directory => files += remove_tree(share, &inner)?,
            Kind::File => {
                patiently(share, |share| share.remove(&inner, Kind::File))
                    .map_err(|e| (e, format!("remove {inner}")))?;
                files += 1;
            }
        }
    }
    patiently(share, |share| share.remove(path, Kind::Directory))
        .map_err(|e| (e, format!("remove {path}")))?;
    Ok(files)
}

/// Tries again while the server still holds what a client that is gone had open.
pub(super) fn patiently<T>(
    share: &mut dyn Share,
    mut attempt: impl FnMut(&mut dyn Share) -> Result<T, ShareError>,
) -> Result<T, ShareError> {
    let mut tries = 1;
    loop {
        match attempt(share) {
            Err(error) if tries < HELD_TRIES && is_held(&error) => {
                tries += 1;
                share.pause(HELD_PAUSE)?;
            }
            other => return other,
        }
    }
}

fn is_held(error: &ShareError) -> bool {
    let held = [status::SHARING_VIOLATION, status::DELETE_PENDING, status::DIRECTORY_NOT_EMPTY];
    error.status().is_some_and(|status| held.contains(&status))
}
