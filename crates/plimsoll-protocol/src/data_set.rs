//! The data of a run on a server: files of known content below one directory, [`ROOT`], that
//! carries our marker.
//!
//! This module has what all protocols share. A protocol brings a [`Tree`] (access to our directory
//! over one channel), the numbering of its files, and the work on one directory of them, which
//! keeps the protocol's own windows full. The flow:
//!
//! 1. [`look`]: is the directory there, is it ours, what does its marker contain. Foreign
//!    directories and ([`check_seed`]) other seeds are refused.
//! 2. The protocol computes what is missing; [`Need::check`] refuses what would not fit, before the
//!    first byte.
//! 3. [`open`] makes the directory and its first marker.
//! 4. [`crate::channel_pool`] does the directories, each on one of several channels, and reports
//!    progress to the caller. [`write_marker`] records what is complete.
//! 5. To remove a set: the directories in the same way, the marker last, so that a cleaning that
//!    was cut short can be done again.

use plimsoll_model::units::Bytes;

use crate::marker::Marker;
use crate::net::{GoOn, OnProgress, SetupError, SetupProgress};

/// Directory that holds everything of ours.
pub const ROOT: &str = "plimsoll-files";
/// File in [`ROOT`] that marks the directory as ours.
pub const MARKER: &str = ".plimsoll";
/// The marker while it is written; renamed when it is whole.
pub const MARKER_NEW: &str = ".plimsoll.new";
/// A marker is a few hundred bytes.
const MARKER_BYTES_MAX: u32 = 8192;

/// The directory of a data set, over one channel.
pub trait Tree {
    /// What our directory is reached by.
    type Root;
    /// What a file in it is reached by.
    type File;
    /// Why something could not be done.
    type Error;
    /// For messages.
    const TERMS: Terms;

    /// Our directory; `None`: nothing has its name.
    fn find_root(&mut self) -> Result<Option<Self::Root>, Self::Error>;
    /// Makes our directory.
    fn make_root(&mut self) -> Result<Self::Root, Self::Error>;
    /// The names in our directory.
    fn names(&mut self, root: &Self::Root) -> Result<Vec<Vec<u8>>, Self::Error>;
    /// A file in our directory; `None`: nothing has its name.
    fn find(&mut self, root: &Self::Root, name: &str) -> Result<Option<Self::File>, Self::Error>;
    /// The first `bytes` of a file, fewer when it has fewer.
    fn read(&mut self, file: &Self::File, bytes: u32) -> Result<Vec<u8>, Self::Error>;
    /// Replaces [`MARKER`] in one step, so that it is whole at any instant: writes
    /// [`MARKER_NEW`], waits until it is stored, and renames it.
    fn replace_marker(&mut self, root: &Self::Root, text: &str) -> Result<(), Self::Error>;
    /// What is free.
    fn space(&mut self) -> Result<Space, Self::Error>;
    /// Where it is, as the user knows it.
    fn location(&self) -> String;
    /// For the user: what could not be done, where, why, and the next move.
    fn unable_to(&self, doing: &str, error: Self::Error) -> SetupError;
}

/// How a protocol speaks of its data.
pub struct Terms {
    /// `a file set`, and what stands for it: `it`.
    pub subject: (&'static str, &'static str),
    /// What the user may name instead: `export`.
    pub elsewhere: &'static str,
    /// What room is needed for.
    pub needed: &'static str,
    /// How to need less.
    pub less: &'static str,
}

/// What lies under [`ROOT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootState<R, M> {
    /// Nothing.
    Absent,
    /// Our directory. Without a marker when it is empty: its making was cut short.
    Ours(R, Option<M>),
}

impl<R, M> RootState<R, M> {
    /// The marker that is there.
    pub fn marker(&self) -> Option<&M> {
        match self {
            Self::Ours(_, marker) => marker.as_ref(),
            Self::Absent => None,
        }
    }
}

/// Looks; a directory of somebody else is an error.
pub fn look<T: Tree, M: Marker>(tree: &mut T) -> Result<RootState<T::Root, M>, SetupError> {
    let result = tree.find_root();
    let Some(root) = result.map_err(|e| tree.unable_to("look for plimsoll-files", e))? else {
        return Ok(RootState::Absent);
    };
    let result = tree.find(&root, MARKER);
    let result = result.map_err(|e| tree.unable_to("look for the marker in plimsoll-files", e))?;
    let Some(marker) = result else {
        let names = tree.names(&root).map_err(|e| tree.unable_to("list plimsoll-files", e))?;
        if names.iter().all(|name| name == MARKER_NEW.as_bytes()) {
            return Ok(RootState::Ours(root, None));
        }
        return Err(SetupError::Wrong(format!(
            "{}: {ROOT} exists there and carries no {MARKER}, so it is not ours and nothing is \
             written or removed; move it away, or use another {}",
            tree.location(),
            T::TERMS.elsewhere
        )));
    };
    let read = tree.read(&marker, MARKER_BYTES_MAX);
    let text = read.map_err(|e| tree.unable_to("read the marker in plimsoll-files", e))?;
    match M::parse(&text) {
        Ok(marker) => Ok(RootState::Ours(root, Some(marker))),
        Err(error) => Err(SetupError::Wrong(format!("{}: {error}", tree.location()))),
    }
}

/// Refuses data of another seed.
pub fn check_seed<T: Tree>(tree: &T, existing: u64, seed: u64) -> Result<(), SetupError> {
    if existing == seed {
        return Ok(());
    }
    let (what, it) = T::TERMS.subject;
    Err(SetupError::Wrong(format!(
        "{}: {ROOT} holds {what} of seed {existing}, not {seed}; use {it} with --set \
         workload.file_set_seed={existing}, or remove {it} with plimsoll clean",
        tree.location()
    )))
}

/// Our directory and its marker, as another host has brought them here.
pub fn prepared<T: Tree, M: Marker>(tree: &mut T) -> Result<(T::Root, M), SetupError> {
    match look(tree)? {
        RootState::Ours(root, Some(marker)) => Ok((root, marker)),
        RootState::Ours(_, None) | RootState::Absent => Err(not_prepared(tree)),
    }
}

/// What another host should have brought here is not all there.
pub fn not_prepared<T: Tree>(tree: &T) -> SetupError {
    SetupError::Unusable(format!(
        "{}: what the controller has brought into {ROOT} there is not what this agent finds; see \
         whether both reach the same server and {}",
        tree.location(),
        T::TERMS.elsewhere
    ))
}

/// Makes the directory where it is missing, and brings its marker to `marker`.
pub fn open<T: Tree, M: Marker + PartialEq>(
    tree: &mut T,
    state: RootState<T::Root, M>,
    marker: &M,
) -> Result<T::Root, SetupError> {
    let root = match state {
        RootState::Ours(root, Some(existing)) if existing == *marker => return Ok(root),
        RootState::Ours(root, _) => root,
        RootState::Absent => {
            tree.make_root().map_err(|e| tree.unable_to("make plimsoll-files", e))?
        }
    };
    write_marker(tree, &root, marker)?;
    Ok(root)
}

/// Records in the marker what is complete.
pub fn write_marker<T: Tree>(
    tree: &mut T,
    root: &T::Root,
    marker: &impl Marker,
) -> Result<(), SetupError> {
    tree.replace_marker(root, &marker.to_json())
        .map_err(|e| tree.unable_to("write the marker in plimsoll-files", e))
}

/// Tells the caller that operations are tried before any is measured.
pub fn report_validating(progress: &mut OnProgress<'_>) -> Result<(), SetupError> {
    let at = SetupProgress { doing: "validating", done: 0, total: 1, bytes: Bytes(0) };
    match progress(at) {
        GoOn::Yes => Ok(()),
        GoOn::No => Err(SetupError::Stopped),
    }
}

/// Blocks that a small file takes anyway.
const BLOCK_BYTES: u64 = 4096;

/// What is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes.
    pub bytes: u64,
    /// Files that can be made, where that is known.
    pub files: Option<u64>,
}

/// What data needs that is not there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Files.
    pub files: u64,
    /// Their bytes, as blocks.
    pub bytes: u64,
    /// What the run itself will write.
    pub growth: Bytes,
    /// Left free beyond: the file system's own needs, and other users of it.
    pub spare: u64,
}

impl Need {
    /// Is there room?
    pub fn fits(&self, space: &Space) -> bool {
        space.files.is_none_or(|free| free >= self.files) && space.bytes >= self.bytes_with_spare()
    }

    /// Refuses what would not fit.
    pub fn check<T: Tree>(&self, tree: &mut T) -> Result<(), SetupError> {
        if (self.files, self.bytes, self.growth.0) == (0, 0, 0) {
            return Ok(());
        }
        let space = space_of(tree)?;
        if self.fits(&space) {
            return Ok(());
        }
        let (needed, free) = (self.bytes_with_spare(), space.bytes);
        let what = if free < needed {
            let (needed, free) = (Bytes(needed), Bytes(free));
            format!("{} need {needed} more, {free} are free there", T::TERMS.needed)
        } else {
            let free = space.files.unwrap_or_default();
            format!("the file set needs {} more files, {free} can be made", self.files)
        };
        Err(SetupError::Unusable(format!(
            "{}: {what}; nothing was written; free some space, {}",
            tree.location(),
            T::TERMS.less
        )))
    }

    fn bytes_with_spare(&self) -> u64 {
        self.bytes.saturating_add(self.growth.0).saturating_add(self.spare)
    }
}

/// What is free there.
pub fn space_of<T: Tree>(tree: &mut T) -> Result<Space, SetupError> {
    tree.space().map_err(|e| tree.unable_to("see how much space is free", e))
}

/// Blocks that a file takes.
pub fn disk_bytes(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK_BYTES)
}
