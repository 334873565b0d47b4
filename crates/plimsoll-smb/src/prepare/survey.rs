//! Looks at what is there of a place; changes nothing.

use std::collections::HashMap;

use super::super::workspace::{Place, ROOT, Wanted};
use super::share::{Found, Kind, Share, ShareError};
use super::site::Site;
use plimsoll_protocol::content::ContentTable;
use plimsoll_protocol::data_set::disk_bytes;
use plimsoll_protocol::net::SetupError;

/// Bytes at the end of a file that are compared. The end was written last.
const TAIL_BYTES: u64 = 4096;

/// How much a look costs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Depth<'a> {
    /// Sizes.
    Sizes,
    /// Sizes, and the end of each file's content.
    Content(&'a ContentTable),
}

/// What is to be done with a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Survey {
    /// Directories to make.
    pub dirs: Vec<String>,
    /// Files to write or cut, by their numbers in the place.
    pub files: Vec<(usize, Repair)>,
    /// What must go, with all below it.
    pub leftovers: Vec<(String, Kind)>,
    /// Room that it takes beyond what is there.
    pub missing_bytes: u64,
}

/// What a file needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// All its content.
    Write,
    /// Its size is too large.
    Cut,
}

impl Survey {
    /// Everything is as it must be.
    pub(super) fn is_in_order(&self) -> bool {
        self.dirs.is_empty() && self.files.is_empty() && self.leftovers.is_empty()
    }
}

/// Looks at `place`.
pub(super) fn survey(
    share: &mut dyn Share,
    site: &Site<'_>,
    place: &Place,
    depth: Depth<'_>,
) -> Result<Survey, SetupError> {
    let mut survey = Survey::default();
    let mut there: HashMap<String, Found> = HashMap::new();
    for dir in &place.dirs {
        let listed = share.list(dir).map_err(site.unable_to(format_args!("list {dir}")))?;
        let Some(entries) = listed else {
            survey.dirs.push(dir.clone());
            continue;
        };
        if place.empty.as_ref() == Some(dir) {
            let path = |name| format!("{dir}\\{name}");
            survey.leftovers = entries.iter().map(|e| (path(&e.name), e.found.kind)).collect();
        } else {
            there.extend(entries.into_iter().map(|e| (below(dir, &e.name), e.found)));
        }
    }
    for (number, wanted) in place.files.iter().enumerate() {
        let directory = wanted.path.rsplit_once('\\').map(|(directory, _)| directory);
        let found = match directory == Some(ROOT) {
            // Our directory itself is not listed: it may hold the workspaces of thousands.
            true => share
                .find(&wanted.path)
                .map_err(site.unable_to(format_args!("look for {}", wanted.path)))?,
            false => there.get(&wanted.path.to_lowercase()).copied(),
        };
        let repair = judge(share, site, wanted, found, depth)?;
        if repair == Some(Repair::Write) {
            // The server may say any size.
            let held = found.map_or(0, |found| disk_bytes(found.bytes.min(wanted.bytes)));
            survey.missing_bytes += disk_bytes(wanted.bytes).saturating_sub(held);
        }
        survey.files.extend(repair.map(|repair| (number, repair)));
    }
    Ok(survey)
}

fn judge(
    share: &mut dyn Share,
    site: &Site<'_>,
    wanted: &Wanted,
    found: Option<Found>,
    depth: Depth<'_>,
) -> Result<Option<Repair>, SetupError> {
    let Some(found) = found else { return Ok(Some(Repair::Write)) };
    let path = &wanted.path;
    if found.kind != Kind::File {
        return Err(site.unable_to(format_args!("use {path}"))(ShareError::Foreign));
    }
    if found.bytes < wanted.bytes {
        return Ok(Some(Repair::Write));
    }
    if let Depth::Content(table) = depth {
        let tail = wanted.bytes.min(TAIL_BYTES);
        let offset = wanted.bytes - tail;
        let read = share
            .read(path, offset, tail as u32)
            .map_err(site.unable_to(format_args!("read the end of {path}")))?;
        if read != table.bytes(wanted.content.key, offset, tail as usize) {
            return Ok(Some(Repair::Write));
        }
    }
    Ok((found.bytes > wanted.bytes).then_some(Repair::Cut))
}

/// Servers keep or change the case of names; comparing is done in one case.
fn below(dir: &str, name: &str) -> String {
    format!("{dir}\\{name}").to_lowercase()
}
