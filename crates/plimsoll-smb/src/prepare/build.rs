//! Brings a place into order: makes what is missing, writes and cuts, removes what was left.

use std::time::Duration;

use super::super::wire::status;
use super::super::workspace::{Place, Wanted};
use super::share::{Kind, Share, ShareError};
use super::site::Site;
use super::survey::{Repair, Survey};
use plimsoll_protocol::channel_pool::Tally;
use plimsoll_protocol::net::SetupError;

/// A server may hold a client's files open for a moment after the client is gone.
const HELD_TRIES: u32 = 40;
/// Between two tries.
const HELD_PAUSE: Duration = Duration::from_millis(50);

/// Does what the survey found to do.
pub(super) fn build(
    share: &mut dyn Share,
    site: &Site<'_>,
    (place, survey): (&Place, &Survey),
    tally: &Tally,
) -> Result<(), SetupError> {
    for (path, kind) in &survey.leftovers {
        remove_all(share, site, path, *kind)?;
    }
    for path in &survey.dirs {
        share.make_dir(path).map_err(site.unable_to(format_args!("make {path}")))?;
    }
    for (number, repair) in &survey.files {
        let Some(Wanted { path, bytes, content }) = place.files.get(*number) else { continue };
        match repair {
            Repair::Write => {
                patiently(share, |share| share.write(path, *bytes, *content, &tally.bytes))
                    .map_err(site.unable_to(format_args!("write {path}")))?;
            }
            Repair::Cut => patiently(share, |share| share.cut(path, *bytes))
                .map_err(site.unable_to(format_args!("cut {path}")))?,
        }
        tally.step();
    }
    Ok(())
}

/// Removes a file, or a directory and all below it; answers with how many files that were.
pub(super) fn remove_all(
    share: &mut dyn Share,
    site: &Site<'_>,
    path: &str,
    kind: Kind,
) -> Result<u64, SetupError> {
    let mut files = u64::from(kind == Kind::File);
    if kind == Kind::Directory {
        let listed = share.list(path).map_err(site.unable_to(format_args!("list {path}")))?;
        let Some(entries) = listed else { return Ok(0) };
        for entry in entries {
            let inner = format!("{path}\\{}", entry.name);
            files += remove_all(share, site, &inner, entry.found.kind)?;
        }
    }
    patiently(share, |share| share.remove(path, kind))
        .map_err(site.unable_to(format_args!("remove {path}")))?;
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
