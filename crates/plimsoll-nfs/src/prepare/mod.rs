//! Writes the file set to a server through NFS, reuses and grows what is there, and removes it
//! again. Only below a directory that carries our marker, or that we made.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `ours` | our directory on an export, for what data sets share, and the room a set needs |
//! | `directory` | the work on one directory, pipelined |
//! | `finding` | the set as another host has prepared it |
//! | `clean` | removing the set |
//! | `points` | what happens before each load point, and the workload it hands over |

mod clean;
mod directory;
mod finding;
mod ours;
mod points;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plimsoll_model::units::Bytes;

use self::directory::{DirectoryDone, Shared};
use self::ours::{Export, RootState};
use super::fileset::{Content, FileSet, FileSetMarker};
use super::handles::{Handles, OwnedHandle};
use super::mounting::Mounted;
use super::op::{Accessed, DirNo, LinkNo};
use super::remote::Remote;
use plimsoll_protocol::channel_pool::{ChannelPool, Report, Tally};
use plimsoll_protocol::data_set;
use plimsoll_protocol::net::{Dial, LinkKind, OnProgress, SetupError};

pub use self::clean::{Cleaned, clean, clean_target};
pub use self::ours::SPARE_BYTES;
pub use self::points::{NfsPreparation, PreparationRequest};

/// Channels that work on a server at once by default.
pub const CHANNELS: usize = 4;
/// Most bytes of one WRITE on a stream: more makes nothing faster.
const CHUNK_BYTES_MAX: u32 = 64 * 1024;
/// Bytes of one WRITE as a datagram: one lost fragment loses all of it.
const DATAGRAM_CHUNK_BYTES: u32 = 8 * 1024;
/// Directories (5 MiB each) between two updates of the marker.
const MARKER_EVERY: u32 = 16;

/// What is to be written.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// How much of the numbering.
    pub set: FileSet,
    /// What is in the files.
    pub content: &'a Content,
    /// What the run itself will append.
    pub growth: Bytes,
    /// Channels at work at once.
    pub channels: usize,
}

/// What this process has prepared on a server.
#[derive(Clone, Debug)]
pub struct PreparedSet {
    /// The prepared part of the numbering.
    pub set: FileSet,
    /// Its handles.
    pub handles: Arc<Handles>,
}

/// Our directory, found or made, with room for the set.
#[derive(Debug)]
pub struct Opened {
    /// Its handle.
    pub root: OwnedHandle,
    marker: FileSetMarker,
}

/// Finds or makes our directory. Refuses foreign ones, other seeds and too little room before it
/// writes a byte.
pub fn open(
    remote: &mut Remote,
    mounted: &Mounted,
    order: &Order<'_>,
) -> Result<Opened, SetupError> {
    let (export, seed) = (&mut Export(remote, mounted), order.content.seed());
    let state: RootState = data_set::look(export)?;
    if let Some(marker) = state.marker() {
        data_set::check_seed(export, marker.seed(), seed)?;
    }
    let existing = set_of(&state);
    ours::need(order.set, existing, order.growth).check(export)?;
    let marker = FileSetMarker::new(seed, existing);
    let root = data_set::open(export, state, &marker)?;
    Ok(Opened { root, marker })
}

/// What lies on a server already.
fn existing_set(remote: &mut Remote, mounted: &Mounted) -> Result<FileSet, SetupError> {
    Ok(set_of(&data_set::look(&mut Export(remote, mounted))?))
}

fn set_of(state: &RootState) -> FileSet {
    state.marker().map_or(FileSet::new(0), FileSetMarker::set)
}

/// Brings the set on a server into the state a load point begins with: every file there with its
/// size, no slot. What `prepared` has is only cut back to size.
pub fn prepare(
    mounted: &Mounted,
    dial: &dyn Dial,
    order: &Order<'_>,
    opened: Opened,
    prepared: Option<&PreparedSet>,
    progress: &mut OnProgress<'_>,
) -> Result<PreparedSet, SetupError> {
    let tally = Tally::default();
    let shared = Shared {
        set: order.set,
        content: order.content,
        root: &opened.root,
        chunk_bytes: chunk_bytes(mounted, mounted.limits.write_bytes_max),
        tally: &tally,
    };
    let jobs: Vec<Job> =
        (0..order.set.directories()).map(|n| job(order.set, prepared, n)).collect();
    let mut site = Site {
        mounted,
        dial,
        set: order.set,
        root: opened.root,
        marker: opened.marker,
        done: vec![None; jobs.len()],
        complete: 0,
        verifier: None,
    };
    let open = |stop: &Arc<AtomicBool>| mounted.remote(dial, Arc::clone(stop));
    let pool = ChannelPool { open: &open, channels: order.channels };
    let each = |remote: &mut Remote, job: &Job| {
        let done = match &job.prepared {
            None => directory::build(remote, &shared, job.dir),
            Some(prepared) => directory::restore(remote, &shared, job.dir, prepared),
        };
        done.map_err(|(error, doing)| error.unable_to(&doing, mounted.target_label()))
    };
    let total = jobs.iter().map(|job| job.files).sum();
    let report = Report { tally: &tally, doing: "writing files", total, progress };
    pool.work(&jobs, each, |at, done| site.on_done(at, done), report)?;
    site.finish(prepared)
}

/// One directory's work.
#[derive(Clone, Debug)]
struct Job {
    dir: DirNo,
    /// Those that are looked at.
    files: u64,
    /// The directory as it was in order before; `None` if its state is unknown.
    prepared: Option<DirectoryDone>,
}

fn job(set: FileSet, prepared: Option<&PreparedSet>, number: u32) -> Job {
    let dir = DirNo(number);
    let files = set.files_of(dir);
    let prepared = prepared
        .filter(|prepared| prepared.set.files_of(dir).end >= files.end)
        .and_then(|prepared| done_before(&prepared.handles, dir, &files));
    let looked_at = prepared.as_ref().map_or(files.len(), |done| done.files.len());
    Job { dir, files: looked_at as u64, prepared }
}

fn done_before(handles: &Handles, dir: DirNo, files: &Range<u32>) -> Option<DirectoryDone> {
    let accessed = |files| FileSet::new(files).accessed();
    let here = (accessed(files.start)..accessed(files.end)).map(Accessed);
    Some(DirectoryDone {
        files: here.filter_map(|a| Some((a, *handles.file(a)?))).collect(),
        ..DirectoryDone::new(*handles.dir(dir)?, *handles.link(LinkNo(dir.0))?)
    })
}

/// Bytes of one READ or WRITE, of which the server takes at most `limit`.
fn chunk_bytes(mounted: &Mounted, limit: u32) -> u32 {
    let most = match mounted.site.link {
        LinkKind::Stream => CHUNK_BYTES_MAX,
        LinkKind::Datagram => DATAGRAM_CHUNK_BYTES,
    };
    limit.min(most)
}

/// The set on one server, while it is worked on.
struct Site<'a> {
    mounted: &'a Mounted,
    dial: &'a dyn Dial,
    set: FileSet,
    root: OwnedHandle,
    marker: FileSetMarker,
    done: Vec<Option<DirectoryDone>>,
    /// Directories from the first on without a gap.
    complete: u32,
    verifier: Option<[u8; 8]>,
}

impl Site<'_> {
    fn mark(&mut self) -> Result<(), SetupError> {
        let last = DirNo(self.complete.saturating_sub(1));
        let files = if self.complete == 0 { 0 } else { self.set.files_of(last).end };
        if files <= self.marker.set().files() {
            return Ok(());
        }
        self.marker = FileSetMarker::new(self.marker.seed(), FileSet::new(files));
        // A channel of its own: servers close those that were idle for minutes.
        let mut remote = self.mounted.remote(self.dial, self.dial.stop())?;
        data_set::write_marker(&mut Export(&mut remote, self.mounted), &self.root, &self.marker)
    }

    fn finish(mut self, prepared: Option<&PreparedSet>) -> Result<PreparedSet, SetupError> {
        self.mark()?;
        if let Some(prepared) = prepared.filter(|prepared| prepared.set.files() >= self.set.files())
        {
            return Ok(prepared.clone());
        }
        let mut handles = Handles::below(self.root);
        self.done.into_iter().flatten().for_each(|directory| directory.add_to(&mut handles));
        Ok(PreparedSet { set: self.set, handles: Arc::new(handles) })
    }

    fn on_done(&mut self, at: usize, done: DirectoryDone) -> Result<(), SetupError> {
        directory::check_verifier(&mut self.verifier, done.verifier)
            .map_err(|e| e.unable_to("write the file set", self.mounted.target_label()))?;
        self.done[at] = Some(done);
        while self.done.get(self.complete as usize).is_some_and(Option::is_some) {
            self.complete += 1;
            if self.complete.is_multiple_of(MARKER_EVERY) {
                self.mark()?;
            }
        }
        Ok(())
    }
}
