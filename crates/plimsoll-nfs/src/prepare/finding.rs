//! Finds a set that another host has brought into order: looks up the handles that a load point
//! needs, and changes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_protocol::channel_pool::{ChannelPool, Report, Tally};
use plimsoll_protocol::data_set;
use plimsoll_protocol::net::{Dial, GoOn, SetupError};

use super::ours::Export;
use super::{CHANNELS, Known, window};
use crate::fileset::{EntryName, FileNo, FileSet, FileSetMarker, ROOT};
use crate::handles::{Handles, OwnedHandle};
use crate::mounting::Mounted;
use crate::op::{DirNo, LinkNo};
use crate::procedure::{Call, Reply};
use crate::refusal::CallError;
use crate::remote::{Feed, Remote, Retries};

/// Handles of a directory: its own, that of its link, those of its accessed files, rising.
type Found = (OwnedHandle, OwnedHandle, Vec<OwnedHandle>);

/// The set with its handles; of what is `known`, only that is looked up which the set has beyond.
pub(super) fn find(
    mounted: &Mounted,
    dial: &dyn Dial,
    (set, seed): (FileSet, u64),
    known: Option<&Known>,
) -> Result<Known, SetupError> {
    let mut remote = mounted.remote(dial, dial.stop())?;
    let export = &mut Export(&mut remote, mounted);
    let (root, marker): (_, FileSetMarker) = data_set::prepared(export)?;
    data_set::check_seed(export, marker.seed(), seed)?;
    if marker.set().files() < set.files() {
        return Err(data_set::not_prepared(export));
    }
    drop(remote);
    let known = known.filter(|known| known.handles.root == root);
    if let Some(known) = known.filter(|known| known.set.files() >= set.files()) {
        return Ok(known.clone());
    }
    // The last directory that is known may have had fewer files.
    let whole = known.map_or(0, |known| known.set.directories().saturating_sub(1));
    let jobs: Vec<DirNo> = (whole..set.directories()).map(DirNo).collect();
    let each = |remote: &mut Remote, dir: &DirNo| {
        find_directory(remote, &root, (set, *dir), window(mounted.kind))
            .map_err(|e| e.unable_to(&format!("look up {ROOT}/{}", dir.name()), mounted.place()))
    };
    let pool =
        ChannelPool { open: &|stop| mounted.remote(dial, Arc::clone(stop)), channels: CHANNELS };
    let (tally, total) = (&Tally::default(), jobs.len() as u64);
    // Whoever stops raises the flag of `dial`.
    let progress = &mut |_| GoOn::Yes;
    let report = Report { tally, doing: "looking up files", total, progress };
    let found = pool.collect(&jobs, each, report)?;
    let mut handles = known.map_or_else(|| none_below(root), |known| first_of(known, whole));
    for (dir, link, files) in found {
        handles.dirs.push(dir);
        handles.links.push(link);
        handles.files.extend(files);
    }
    Ok(Known { set, handles: Arc::new(handles) })
}

fn none_below(root: OwnedHandle) -> Handles {
    Handles { root, dirs: Vec::new(), files: Vec::new(), links: Vec::new() }
}

/// Those of the first so many directories.
fn first_of(known: &Known, directories: u32) -> Handles {
    let mut first = Handles::clone(&known.handles);
    let accessed = FileSet::new(known.set.files_of(DirNo(directories)).start).accessed();
    first.dirs.truncate(directories as usize);
    first.links.truncate(directories as usize);
    first.files.truncate(accessed as usize);
    first
}

fn find_directory(
    remote: &mut Remote,
    root: &OwnedHandle,
    (set, number): (FileSet, DirNo),
    window: usize,
) -> Result<Found, CallError> {
    let dir = remote.look_up(root, number.name().as_bytes())?.handle;
    let accessed = set.files_of(number).map(FileNo).filter(|file| file.accessed().is_some());
    let names = std::iter::once(LinkNo(number.0).name()).chain(accessed.map(FileNo::name));
    let mut lookups = LookUps::new(dir, names.collect());
    remote.run(window, &mut lookups)?;
    let mut found = lookups.found.into_iter().flatten();
    let link = found.next().ok_or(CallError::Nothing)?;
    Ok((dir, link, found.collect()))
}

/// Names of a directory, many asked for at once.
struct LookUps {
    dir: OwnedHandle,
    names: Vec<EntryName>,
    /// By place among the names.
    found: Vec<Option<OwnedHandle>>,
    /// Places that can be asked for now; the last is next.
    ready: Vec<usize>,
    in_flight: HashMap<u32, usize>,
    calls: u32,
    retries: Retries,
}

impl LookUps {
    fn new(dir: OwnedHandle, names: Vec<EntryName>) -> Self {
        let ready = (0..names.len()).rev().collect();
        let found = vec![None; names.len()];
        let (in_flight, retries) = (HashMap::new(), Retries::default());
        Self { dir, names, found, ready, in_flight, calls: 0, retries }
    }
}

impl Feed for LookUps {
    fn next(&mut self) -> Option<(u32, Call<'_>)> {
        let place = self.ready.pop()?;
        let number = self.calls;
        self.calls += 1;
        self.in_flight.insert(number, place);
        Some((number, Call::LookUp(&self.dir, self.names[place].as_bytes())))
    }

    fn on_reply(&mut self, number: u32, reply: Reply<'_>) -> Result<(), CallError> {
        let Some(place) = self.in_flight.remove(&number) else { return Ok(()) };
        if self.retries.calls_again(reply) {
            self.ready.push(place);
            return Ok(());
        }
        self.found[place] = Some(reply.looked_up()?.handle.into());
        Ok(())
    }

    fn wants_pause(&mut self) -> bool {
        self.retries.wants_pause()
    }
}
