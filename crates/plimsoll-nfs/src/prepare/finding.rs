//! Finds a set that another host has prepared: looks up the handles that a load point needs, and
//! changes nothing.

use std::sync::Arc;

use plimsoll_protocol::channel_pool::{ChannelPool, Report, Tally};
use plimsoll_protocol::data_set;
use plimsoll_protocol::net::{Dial, GoOn, SetupError};

use super::ours::Export;
use super::{CHANNELS, DirectoryDone, PreparedSet};
use crate::fileset::{FileNo, FileSet, FileSetMarker, ROOT};
use crate::handles::{Handles, OwnedHandle};
use crate::mounting::Mounted;
use crate::op::{DirNo, LinkNo};
use crate::procedure::{Call, Reply};
use crate::refusal::CallError;
use crate::remote::Remote;
use crate::wire::rpc::CallWriter;

/// The set with its handles; looks up only what `prepared` does not have.
pub(super) fn find(
    mounted: &Mounted,
    dial: &dyn Dial,
    (set, seed): (FileSet, u64),
    prepared: Option<&PreparedSet>,
) -> Result<PreparedSet, SetupError> {
    let mut remote = mounted.remote(dial, dial.stop())?;
    let export = &mut Export(&mut remote, mounted);
    let (root, marker): (_, FileSetMarker) = data_set::prepared(export)?;
    data_set::check_seed(export, marker.seed(), seed)?;
    if marker.set().files() < set.files() {
        return Err(data_set::not_prepared(export));
    }
    drop(remote);
    let prepared = prepared.filter(|prepared| prepared.handles.root == root);
    if let Some(prepared) = prepared.filter(|prepared| prepared.set.files() >= set.files()) {
        return Ok(prepared.clone());
    }
    // The last prepared directory may have had fewer files.
    let whole = prepared.map_or(0, |prepared| prepared.set.directories().saturating_sub(1));
    let jobs: Vec<DirNo> = (whole..set.directories()).map(DirNo).collect();
    let each = |remote: &mut Remote, dir: &DirNo| {
        find_directory(remote, &root, (set, *dir)).map_err(|e| {
            e.unable_to(&format!("look up {ROOT}/{}", dir.name()), mounted.target_label())
        })
    };
    let pool =
        ChannelPool { open: &|stop| mounted.remote(dial, Arc::clone(stop)), channels: CHANNELS };
    let (tally, total) = (&Tally::default(), jobs.len() as u64);
    // A stop raises the flag of `dial`.
    let progress = &mut |_| GoOn::Yes;
    let report = Report { tally, doing: "looking up files", total, progress };
    let directories = pool.collect(&jobs, each, report)?;
    let mut handles =
        prepared.map_or_else(|| Handles::below(root), |prepared| first_of(prepared, whole));
    directories.into_iter().for_each(|directory: DirectoryDone| directory.add_to(&mut handles));
    Ok(PreparedSet { set, handles: Arc::new(handles) })
}

/// The handles of the first `directories` directories.
fn first_of(prepared: &PreparedSet, directories: u32) -> Handles {
    let mut first = Handles::clone(&prepared.handles);
    let accessed = FileSet::new(prepared.set.files_of(DirNo(directories)).start).accessed();
    first.dirs.truncate(directories as usize);
    first.links.truncate(directories as usize);
    first.files.truncate(accessed as usize);
    first
}

fn find_directory(
    remote: &mut Remote,
    root: &OwnedHandle,
    (set, number): (FileSet, DirNo),
) -> Result<DirectoryDone, CallError> {
    let dir = remote.look_up(root, number.name().as_bytes())?.handle;
    let files: Vec<_> = set.files_of(number).filter_map(|file| FileNo(file).accessed()).collect();
    // The link first.
    let name = |index: usize| match index.checked_sub(1).map(|index| files[index]) {
        None => LinkNo(number.0).name(),
        Some(accessed) => accessed.file().name(),
    };
    let (dialect, mut handles) = (remote.dialect(), vec![OwnedHandle::NONE; files.len() + 1]);
    let call = |index, to: CallWriter<'_>| {
        Call::LookUp(&dir, name(index).as_bytes()).encode(dialect, to);
    };
    let on_reply = |index: usize, reply: Reply<'_>, _: &mut Vec<usize>| {
        handles[index] = reply.looked_up()?.handle.into();
        Ok(())
    };
    remote.run((0..=files.len()).rev().collect(), call, on_reply).map_err(|(error, _)| error)?;
    let link = handles.remove(0);
    let files = files.into_iter().zip(handles).collect();
    Ok(DirectoryDone { files, ..DirectoryDone::new(dir, link) })
}
