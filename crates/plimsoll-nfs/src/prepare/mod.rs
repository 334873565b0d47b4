//! Writes the file set to a server through NFS, reuses and grows what is there, and removes it
//! again. Only below a directory that carries our marker, or that we made.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `ours` | our directory on an export, for what data sets share, and the room a set needs |
//! | `directory` | the work on one directory, pipelined |
//! | `finding` | the set as another host has brought it there |
//! | `clean` | the way back |
//! | `points` | what happens before each load point, and the workload it hands over |

mod clean;
mod directory;
mod finding;
mod ours;
mod points;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plimsoll_model::units::Bytes;

use self::directory::{DirectoryDone, Shared};
use self::ours::{Export, Standing};
use super::fileset::{Content, FileSet, FileSetMarker};
use super::handles::{Handles, OwnedHandle};
use super::mounting::Mounted;
use super::op::{Accessed, DirNo};
use super::refusal::CallError;
use super::remote::Remote;
use plimsoll_protocol::channel_pool::{ChannelPool, Report, Tally};
use plimsoll_protocol::data_set;
use plimsoll_protocol::net::{Dial, LinkKind, OnProgress, SetupError};

pub use self::clean::{Cleaned, clean, clean_target};
pub use self::ours::SPARE_BYTES;
pub use self::points::{NfsPreparation, PreparationRequest};

/// Channels that work on a server at once, when nothing else is said.
pub const CHANNELS: usize = 4;
/// Bytes of one WRITE on a stream at most: beyond it nothing gets faster.
const CHUNK_BYTES_MAX: u32 = 64 * 1024;
/// Bytes of one WRITE as a datagram: one lost fragment loses all of it.
const DATAGRAM_CHUNK_BYTES: u32 = 8 * 1024;
/// Calls in flight on a stream.
const WINDOW: usize = 16;
/// Datagrams in flight on one channel: what all channels have there fits into the receive buffer
/// that a socket has by default, 208 KiB, so that none is lost.
const DATAGRAM_WINDOW: usize = 2;
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

/// What this process knows to be in order on a server.
#[derive(Clone, Debug)]
pub struct Known {
    /// So much of the numbering.
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
    let standing: Standing = data_set::look(export)?;
    if let Some(marker) = standing.marker() {
        data_set::check_seed(export, marker.seed(), seed)?;
    }
    let held = set_of(&standing);
    ours::need(order.set, held, order.growth).check(export)?;
    let marker = FileSetMarker::new(seed, held);
    let root = data_set::open(export, standing, &marker)?;
    Ok(Opened { root, marker })
}

/// What lies on a server already.
fn held(remote: &mut Remote, mounted: &Mounted) -> Result<FileSet, SetupError> {
    Ok(set_of(&data_set::look(&mut Export(remote, mounted))?))
}

fn set_of(standing: &Standing) -> FileSet {
    standing.marker().map_or(FileSet::new(0), FileSetMarker::set)
}

/// Brings the set on a server into the state a load point begins with: every file there with its
/// size, no slot. What is `known` is only cut back to size.
pub fn prepare(
    mounted: &Mounted,
    dial: &dyn Dial,
    order: &Order<'_>,
    opened: Opened,
    known: Option<&Known>,
    progress: &mut OnProgress<'_>,
) -> Result<Known, SetupError> {
    let tally = Tally::default();
    let shared = Shared {
        set: order.set,
        content: order.content,
        root: &opened.root,
        chunk_bytes: chunk_bytes(mounted),
        window: window(mounted.kind),
        tally: &tally,
    };
    let jobs: Vec<Job> = (0..order.set.directories()).map(|n| job(order.set, known, n)).collect();
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
        let done = match job {
            Job::Build { dir, .. } => directory::build(remote, &shared, *dir),
            Job::Restore { dir, known } => directory::restore(remote, &shared, *dir, known.clone()),
        };
        done.map_err(|(error, doing)| error.unable_to(&doing, mounted.place()))
    };
    let total = jobs.iter().map(Job::files).sum();
    let report = Report { tally: &tally, doing: "writing files", total, progress };
    pool.work(&jobs, each, |at, done| site.on_done(at, done), report)?;
    site.finish(known)
}

/// One directory's work.
#[derive(Clone, Debug)]
enum Job {
    Build { dir: DirNo, files: u64 },
    Restore { dir: DirNo, known: DirectoryDone },
}

impl Job {
    fn files(&self) -> u64 {
        match self {
            Self::Build { files, .. } => *files,
            Self::Restore { known, .. } => known.files.len() as u64,
        }
    }
}

fn job(set: FileSet, known: Option<&Known>, number: u32) -> Job {
    let dir = DirNo(number);
    let files = set.files_of(dir);
    let build = Job::Build { dir, files: files.len() as u64 };
    let Some(known) = known.filter(|known| known.set.files_of(dir).end >= files.end) else {
        return build;
    };
    let handles = &known.handles;
    let first = FileSet::new(files.start).accessed();
    let here = (first..FileSet::new(files.end).accessed()).map(Accessed);
    match (handles.dirs.get(number as usize), handles.links.get(number as usize)) {
        (Some(handle), Some(link)) => Job::Restore {
            dir,
            known: DirectoryDone {
                handle: *handle,
                link: *link,
                files: here.filter_map(|a| Some((a, *handles.file(a)?))).collect(),
                verifier: None,
            },
        },
        _ => build,
    }
}

fn chunk_bytes(mounted: &Mounted) -> u32 {
    let most = match mounted.kind {
        LinkKind::Stream => CHUNK_BYTES_MAX,
        LinkKind::Datagram => DATAGRAM_CHUNK_BYTES,
    };
    mounted.limits.write_bytes_max.min(most)
}

/// Calls in flight on one channel.
fn window(kind: LinkKind) -> usize {
    match kind {
        LinkKind::Stream => WINDOW,
        LinkKind::Datagram => DATAGRAM_WINDOW,
    }
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

    fn finish(mut self, known: Option<&Known>) -> Result<Known, SetupError> {
        self.mark()?;
        if let Some(known) = known.filter(|known| known.set.files() >= self.set.files()) {
            return Ok(known.clone());
        }
        let done: Vec<DirectoryDone> = self.done.into_iter().flatten().collect();
        let handles = Handles {
            root: self.root,
            dirs: done.iter().map(|dir| dir.handle).collect(),
            links: done.iter().map(|dir| dir.link).collect(),
            files: done.iter().flat_map(|dir| &dir.files).map(|(_, handle)| *handle).collect(),
        };
        Ok(Known { set: self.set, handles: Arc::new(handles) })
    }

    fn on_done(&mut self, at: usize, done: DirectoryDone) -> Result<(), SetupError> {
        if let (Some(before), Some(now)) = (self.verifier, done.verifier)
            && before != now
        {
            return Err(CallError::Restarted.unable_to("write the file set", self.mounted.place()));
        }
        self.verifier = self.verifier.or(done.verifier);
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
