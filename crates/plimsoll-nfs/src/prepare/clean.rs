//! Removes a file set: exactly what carries our names below our marker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::fileset::{EntryName, FileNo};
use super::super::handles::OwnedHandle;
use super::super::mounting::{MountRequest, Mounted, mount};
use super::super::op::{DirNo, LinkNo, SlotNo};
use super::super::parameters::NfsVersion;
use super::super::procedure::Call;
use super::super::refusal::CallError;
use super::super::remote::{Entry, Listing, Remote};
use super::super::validate;
use super::CHANNELS;
use super::ours::{Export, RootState};
use crate::procedure::Reply;
use crate::wire::rpc::CallWriter;
use crate::wire::v3::Status3;
use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::channel_pool::{ChannelPool, Report, Tally};
use plimsoll_protocol::data_set::{self, MARKER, MARKER_NEW, ROOT};
use plimsoll_protocol::net::{Dial, LinkKind, OnProgress, SetupError, SourcePort};

/// Things of others that a message names.
const FOREIGN_NAMED_MAX: usize = 8;

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Files and links.
    pub files: u64,
    /// Foreign objects that stay, by their paths; the directories around them stay too.
    pub foreign: Vec<String>,
}

/// Removes our file set from an export. `None`: there is none.
pub fn clean(
    mounted: &Mounted,
    dial: &dyn Dial,
    progress: &mut OnProgress<'_>,
) -> Result<Option<Cleaned>, SetupError> {
    let mut remote = mounted.remote(dial, dial.stop())?;
    let state: RootState = data_set::look(&mut Export(&mut remote, mounted))?;
    let RootState::Ours(root, _) = state else {
        return Ok(None);
    };
    let failed =
        |doing: &'static str| move |e: CallError| e.unable_to(doing, mounted.target_label());
    validate::remove_scratch(&mut remote, &root).map_err(failed("remove the scratch directory"))?;
    let entries = remote.list(&root, Listing::Names).map_err(failed("list plimsoll-files"))?;
    let dirs: Vec<DirNo> =
        entries.iter().filter_map(|e| number_of(&e.name, DIR)).map(DirNo).collect();
    let files = AtomicU64::new(0);
    let (tally, total) = (Tally::default(), dirs.len() as u64);
    let each = |remote: &mut Remote, dir: &DirNo| {
        let foreign = clean_directory(remote, &root, *dir, &files).map_err(|e| {
            e.unable_to(&format!("remove {ROOT}/{}", dir.name()), mounted.target_label())
        })?;
        tally.step();
        Ok(foreign)
    };
    let open = |stop: &Arc<AtomicBool>| mounted.remote(dial, Arc::clone(stop));
    let pool = ChannelPool { open: &open, channels: CHANNELS };
    let report = Report { tally: &tally, doing: "removing directories", total, progress };
    let mut foreign = pool.collect(&dirs, each, report)?.concat();
    let is_ours = |name: &[u8]| {
        name == MARKER.as_bytes() || name == MARKER_NEW.as_bytes() || number_of(name, DIR).is_some()
    };
    foreign.extend(entries.iter().filter(|e| !is_ours(&e.name)).map(|e| path(None, &e.name)));
    // The marker last: a cleaning that was cut short can be done again.
    let mut finish = || {
        is_gone(remote.remove(&root, MARKER_NEW.as_bytes()))?;
        is_gone(remote.remove(&root, MARKER.as_bytes()))?;
        is_gone(remote.remove_dir(&mounted.root, ROOT.as_bytes()))
    };
    finish().map_err(failed("remove plimsoll-files"))?;
    foreign.sort_unstable();
    Ok(Some(Cleaned { files: files.into_inner(), foreign }))
}

/// Removes our file set from a target, in whichever version of NFS it serves; returns a message.
pub fn clean_target(
    target: &ResolvedTarget,
    dial: &dyn Dial,
    progress: &mut OnProgress<'_>,
) -> Result<String, SetupError> {
    let caller = dial.caller();
    let request = |version| MountRequest {
        target,
        version,
        transport: LinkKind::Stream,
        caller: &caller,
        source: SourcePort::Any,
    };
    let named = target.url.query_value("version").and_then(NfsVersion::parse);
    let mounted = match named {
        Some(version) => mount(&request(version), dial),
        None => mount(&request(NfsVersion::V3), dial)
            .or_else(|first| mount(&request(NfsVersion::V2), dial).map_err(|_| first))
            .or_else(|first| mount(&request(NfsVersion::V4_1), dial).map_err(|_| first)),
    };
    let Some(cleaned) = clean(&mounted?, dial, progress)? else {
        return Ok(format!("no {ROOT} there, nothing to remove"));
    };
    let mut message = format!("removed {} files below {ROOT}", cleaned.files);
    if !cleaned.foreign.is_empty() {
        let named = cleaned.foreign.iter().take(FOREIGN_NAMED_MAX).cloned().collect::<Vec<_>>();
        let more = if named.len() < cleaned.foreign.len() { ", …" } else { "" };
        let names = named.join(", ");
        message =
            format!("{message}; {} things not ours stay: {names}{more}", cleaned.foreign.len());
    }
    Ok(message)
}

/// An absent directory is fine, and one with foreign objects stays.
fn is_gone(removed: Result<(), CallError>) -> Result<(), CallError> {
    match removed {
        Err(CallError::Status(Status3::NOENT)) => Ok(()),
        // Some servers answer EXIST or ACCES for a directory that is not empty. Its content was
        // listed as foreign.
        Err(CallError::Status(Status3::NOTEMPTY | Status3::EXIST)) => Ok(()),
        other => other,
    }
}

type Numbered = fn(u32) -> EntryName;
const DIR: (&str, Numbered) = ("dir", |n| DirNo(n).name());
const IN_A_DIRECTORY: [(&str, Numbered); 3] = [
    ("file", |n| FileNo(n).name()),
    ("link", |n| LinkNo(n).name()),
    ("slot", |n| SlotNo(n).name()),
];

/// The number in a name of ours, which has exactly the form we give it.
fn number_of(name: &[u8], (prefix, named): (&str, Numbered)) -> Option<u32> {
    let number = std::str::from_utf8(name.strip_prefix(prefix.as_bytes())?).ok()?.parse().ok()?;
    (named(number).as_bytes() == name).then_some(number)
}

fn path(dir: Option<DirNo>, name: &[u8]) -> String {
    match dir {
        Some(dir) => format!("{ROOT}/{}/{}", dir.name(), name.escape_ascii()),
        None => format!("{ROOT}/{}", name.escape_ascii()),
    }
}

/// Answers with the paths of what stays.
fn clean_directory(
    remote: &mut Remote,
    root: &OwnedHandle,
    dir: DirNo,
    files: &AtomicU64,
) -> Result<Vec<String>, CallError> {
    let Some(resolved) = remote.find(root, dir.name().as_bytes())? else { return Ok(Vec::new()) };
    let entries = remote.list(&resolved.handle, Listing::Names)?;
    let is_ours = |name: &[u8]| IN_A_DIRECTORY.iter().any(|form| number_of(name, *form).is_some());
    let (ours, foreign): (Vec<_>, Vec<_>) = entries.into_iter().partition(|e| is_ours(&e.name));
    let dialect = remote.dialect();
    let call = |entry: &Entry, to: CallWriter<'_>| {
        Call::Remove(&resolved.handle, &entry.name).encode(dialect, to);
    };
    let on_reply = |_, reply: Reply<'_>, _: &mut Vec<&Entry>| {
        files.fetch_add(u64::from(reply.was_removed()?), Ordering::Relaxed);
        Ok(())
    };
    remote.run(ours.iter().rev().collect(), call, on_reply).map_err(|(error, _)| error)?;
    if foreign.is_empty() {
        is_gone(remote.remove_dir(root, dir.name().as_bytes()))?;
    }
    Ok(foreign.iter().map(|entry| path(Some(dir), &entry.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_exactly_our_form_are_ours() {
        assert_eq!(number_of(b"dir00012", DIR), Some(12));
        assert_eq!(number_of(b"dir123456", DIR), Some(123_456));
        for other in ["dir12", "dir000012", "dir+0001", "dirabcde", "adir00012", "dir"] {
            assert_eq!(number_of(other.as_bytes(), DIR), None, "{other}");
        }
    }
}
