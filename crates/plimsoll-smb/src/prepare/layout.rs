//! One layout: surveys what is there and changes nothing, or builds it: makes what is missing,
//! writes and cuts files, removes leftovers.

use std::collections::HashMap;
use std::time::Duration;

use plimsoll_protocol::channel_pool::Tally;
use plimsoll_protocol::content::ContentTable;
use plimsoll_protocol::data_set::disk_bytes;
use plimsoll_protocol::net::SetupError;

use super::super::wire::status;
use super::super::workspace::{ExpectedFile, Layout, ROOT};
use super::share::{EntryStat, Kind, Share, ShareError, Site};

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

/// What is to be done for a layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Survey {
    /// Directories to make.
    pub dirs: Vec<String>,
    /// Files to write or cut, by their numbers in the layout.
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

/// Looks at what is there of `layout`.
pub(super) fn survey(
    share: &mut dyn Share,
    site: &Site<'_>,
    layout: &Layout,
    depth: Depth<'_>,
) -> Result<Survey, SetupError> {
    let mut survey = Survey::default();
    let mut there: HashMap<String, EntryStat> = HashMap::new();
    for dir in &layout.dirs {
        let listed = share.list(dir).map_err(site.unable_to(format_args!("list {dir}")))?;
        let Some(entries) = listed else {
            survey.dirs.push(dir.clone());
            continue;
        };
        if layout.empty.as_ref() == Some(dir) {
            let path = |name| format!("{dir}\\{name}");
            survey.leftovers = entries.iter().map(|e| (path(&e.name), e.stat.kind)).collect();
        } else {
            there.extend(entries.into_iter().map(|e| (below(dir, &e.name), e.stat)));
        }
    }
    for (number, expected) in layout.files.iter().enumerate() {
        let directory = expected.path.rsplit_once('\\').map(|(directory, _)| directory);
        let stat = match directory == Some(ROOT) {
            // Our directory itself is not listed: it may hold the workspaces of thousands.
            true => share
                .find(&expected.path)
                .map_err(site.unable_to(format_args!("look for {}", expected.path)))?,
            false => there.get(&expected.path.to_lowercase()).copied(),
        };
        let repair = needed_repair(share, site, expected, stat, depth)?;
        if repair == Some(Repair::Write) {
            // The server may say any size.
            let existing_bytes = stat.map_or(0, |stat| disk_bytes(stat.bytes.min(expected.bytes)));
            survey.missing_bytes += disk_bytes(expected.bytes).saturating_sub(existing_bytes);
        }
        survey.files.extend(repair.map(|repair| (number, repair)));
    }
    Ok(survey)
}

fn needed_repair(
    share: &mut dyn Share,
    site: &Site<'_>,
    expected: &ExpectedFile,
    stat: Option<EntryStat>,
    depth: Depth<'_>,
) -> Result<Option<Repair>, SetupError> {
    let Some(stat) = stat else { return Ok(Some(Repair::Write)) };
    let path = &expected.path;
    if stat.kind != Kind::File {
        return Err(site.unable_to(format_args!("use {path}"))(ShareError::Foreign));
    }
    if stat.bytes < expected.bytes {
        return Ok(Some(Repair::Write));
    }
    if let Depth::Content(table) = depth {
        let tail = expected.bytes.min(TAIL_BYTES);
        let offset = expected.bytes - tail;
        let read = share
            .read(path, offset, tail as u32)
            .map_err(site.unable_to(format_args!("read the end of {path}")))?;
        if read != table.bytes(expected.content.key, offset, tail as usize) {
            return Ok(Some(Repair::Write));
        }
    }
    Ok((stat.bytes > expected.bytes).then_some(Repair::Cut))
}

/// Servers keep or change the case of names; comparing is done in one case.
fn below(dir: &str, name: &str) -> String {
    format!("{dir}\\{name}").to_lowercase()
}

/// A server may hold a client's files open for a moment after the client is gone.
const BUSY_TRIES: u32 = 40;
/// Between two tries.
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// Does what the survey lists.
pub(super) fn build(
    share: &mut dyn Share,
    site: &Site<'_>,
    (layout, survey): (&Layout, &Survey),
    tally: &Tally,
) -> Result<(), SetupError> {
    for (path, kind) in &survey.leftovers {
        remove_all(share, site, path, *kind)?;
    }
    for path in &survey.dirs {
        share.make_dir(path).map_err(site.unable_to(format_args!("make {path}")))?;
    }
    for (number, repair) in &survey.files {
        let Some(ExpectedFile { path, bytes, content }) = layout.files.get(*number) else {
            continue;
        };
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

/// Removes a file, or a directory and all below it; returns the number of files.
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
            files += remove_all(share, site, &inner, entry.stat.kind)?;
        }
    }
    patiently(share, |share| share.remove(path, kind))
        .map_err(site.unable_to(format_args!("remove {path}")))?;
    Ok(files)
}

/// Retries while the server still keeps files of a departed client open.
pub(super) fn patiently<T>(
    share: &mut dyn Share,
    mut attempt: impl FnMut(&mut dyn Share) -> Result<T, ShareError>,
) -> Result<T, ShareError> {
    let mut tries = 1;
    loop {
        match attempt(share) {
            Err(error) if tries < BUSY_TRIES && is_busy(&error) => {
                tries += 1;
                share.pause(BUSY_PAUSE)?;
            }
            other => return other,
        }
    }
}

fn is_busy(error: &ShareError) -> bool {
    let busy = [status::SHARING_VIOLATION, status::DELETE_PENDING, status::DIRECTORY_NOT_EMPTY];
    error.status().is_some_and(|status| busy.contains(&status))
}
