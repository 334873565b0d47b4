//! What lies on the share: numbering, sizes, names, content.
//!
//! Everything is below one directory, [`ROOT`], with the marker file [`MARKER`] in it: a directory
//! for each client ([`Home::Client`]) with its seed files and the files its script makes, one that
//! all clients read ([`Home::Shared`]), the file of the `nic` suite and the root of replays. What a
//! suite needs is a list of layouts. All functions are pure.

use std::fmt::Write as _;

use plimsoll_engine::rng;
use plimsoll_protocol::marker::Marker;
use serde::{Deserialize, Serialize};

use super::op::{Content, PathText};

pub use plimsoll_protocol::content::{ContentTable, SLICE_BYTES_MAX};
pub use plimsoll_protocol::data_set::{MARKER, ROOT};

/// Most clients that names and marker have room for.
pub const CLIENTS_MAX: u32 = 100_000;

/// The method's sizes are those of a workspace of this size.
const METHOD_MIB: f64 = 20.0;
/// Sizes are multiples of this, like the method's.
const SECTOR_BYTES: f64 = 512.0;
/// Keeps the keys of different homes apart; client numbers are below.
const SHARED_HOME: u64 = 1 << 32;
const NIC_HOME: u64 = SHARED_HOME + 1;
/// Keeps the files a script makes apart from the seed files.
const MADE_FILES: u64 = 1 << 32;

/// Seed files of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SizeClass {
    files: u32,
    /// At scale 1 in 20 MiB.
    bytes: u32,
    /// However small the scale.
    bytes_min: u32,
}

/// The method's files. The last eight keep room for the largest read, whatever the scale.
const SIZE_CLASSES: [SizeClass; 4] = [
    SizeClass { files: 48, bytes: 260_096, bytes_min: 4_096 },
    SizeClass { files: 6, bytes: 1_048_576, bytes_min: 65_536 },
    SizeClass { files: 1, bytes: 327_680, bytes_min: 65_536 },
    SizeClass { files: 1, bytes: 1_867_776, bytes_min: 65_536 },
];

/// Seed files of a home.
pub const SEED_FILES: u32 = 56;
/// The first of the eight that have room for the largest read at any scale.
pub const FIRST_LARGE: SeedFile = SeedFile(48);

/// Whose seed files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Home {
    /// Those of a client.
    Client(u32),
    /// Those that all clients read and nobody writes.
    Shared,
}

/// A seed file of a home: it exists before a load point, is never removed, and its content never
/// changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeedFile(pub u32);

/// A file that a client's script made: its number, and how often it was renamed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MadeFile {
    /// From 0, never used again in a load point.
    pub number: u32,
    /// Renames so far.
    pub renames: u32,
}

impl SeedFile {
    /// Index in [`SIZE_CLASSES`].
    fn class(self) -> usize {
        let mut end = 0;
        let within = |class: &SizeClass| {
            end += class.files;
            self.0 < end
        };
        SIZE_CLASSES.iter().position(within).unwrap_or(SIZE_CLASSES.len() - 1)
    }
}

/// The seed files of one home: how large they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Of each class.
    bytes: [u32; SIZE_CLASSES.len()],
}

impl Workspace {
    /// A workspace of about `mib` MiB (the method: 20) times `scale` (the method: 1).
    pub fn new(mib: f64, scale: f64) -> Self {
        let factor = mib / METHOD_MIB * scale;
        let bytes = SIZE_CLASSES.map(|class| {
            let sectors = (f64::from(class.bytes) * factor / SECTOR_BYTES).round();
            // A float becomes the nearest number there is.
            ((sectors * SECTOR_BYTES) as u32).max(class.bytes_min)
        });
        Self { bytes }
    }

    /// The files, in order.
    pub fn files(self) -> impl Iterator<Item = SeedFile> {
        (0..SEED_FILES).map(SeedFile)
    }

    /// Size of one file.
    pub fn bytes_of(self, file: SeedFile) -> u32 {
        self.bytes[file.class()]
    }

    /// Size of all files.
    pub fn bytes(self) -> u64 {
        self.files().map(|file| u64::from(self.bytes_of(file))).sum()
    }
}

/// Directory of a home.
pub fn home_path(home: Home) -> PathText {
    match home {
        Home::Client(client) => path(format_args!("{ROOT}\\client{client:05}")),
        Home::Shared => path(format_args!("{ROOT}\\shared")),
    }
}

/// Directory of a home's seed files.
pub fn seed_directory(home: Home) -> PathText {
    match home {
        Home::Client(_) => path(format_args!("{}\\seed", home_path(home))),
        Home::Shared => home_path(home),
    }
}

/// Where a seed file lies.
pub fn path_of(home: Home, file: SeedFile) -> PathText {
    path(format_args!("{}\\{}", seed_directory(home), seed_name(file)))
}

/// Its name in its directory.
pub fn seed_name(file: SeedFile) -> PathText {
    path(format_args!("file{:02}.dat", file.0))
}

/// What a seed file holds.
pub fn content(seed: u64, home: Home, file: SeedFile) -> Content {
    let home = match home {
        Home::Client(client) => u64::from(client),
        Home::Shared => SHARED_HOME,
    };
    Content { key: rng::key(&[seed, home, u64::from(file.0)]) }
}

/// Directory of what a client's script makes and removes; empty when a load point begins.
pub fn work_directory(client: u32) -> PathText {
    path(format_args!("{}\\work", home_path(Home::Client(client))))
}

/// Where a made file lies.
pub fn made_path(client: u32, file: MadeFile) -> PathText {
    let MadeFile { number, renames } = file;
    path(format_args!("{}\\made{number:06}-{renames}.dat", work_directory(client)))
}

/// What a made file holds where its script has written.
pub fn made_content(seed: u64, client: u32, number: u32) -> Content {
    Content { key: rng::key(&[seed, u64::from(client), MADE_FILES + u64::from(number)]) }
}

/// A name that no home and no made file has.
pub fn missing_name(number: u32) -> PathText {
    path(format_args!("none{number:06}.dat"))
}

/// Where the file of the `nic` suite lies.
pub fn nic_path() -> PathText {
    path(format_args!("{ROOT}\\nic.dat"))
}

/// What the file of the `nic` suite holds.
pub fn nic_content(seed: u64) -> Content {
    Content { key: rng::key(&[seed, NIC_HOME]) }
}

/// Path of a file of that name in our directory itself.
pub(crate) fn root_path(name: &str) -> PathText {
    path(format_args!("{ROOT}\\{name}"))
}

/// Directory that the paths of a load file are relative to.
pub fn replay_root() -> PathText {
    path(format_args!("{ROOT}\\replay"))
}

fn path(text: std::fmt::Arguments<'_>) -> PathText {
    let mut path = PathText::EMPTY;
    path.write_fmt(text).expect("our own names are far shorter than a path may be");
    path
}

/// A file that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedFile {
    /// Its path.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// What it holds.
    pub content: Content,
}

/// A part of what must be there; one channel at a time works on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Directories below our own, each after the one it lies in.
    pub dirs: Vec<String>,
    /// Files in them, or in our own.
    pub files: Vec<ExpectedFile>,
    /// The one of the directories that must be empty.
    pub empty: Option<String>,
}

impl Layout {
    /// A client's workspace, with nothing where its script makes files.
    pub(crate) fn of_client(seed: u64, client: u32, workspace: Workspace) -> Self {
        let home = Home::Client(client);
        let empty = work_directory(client).to_string();
        let seeds = seed_directory(home).to_string();
        Self {
            dirs: vec![home_path(home).to_string(), seeds, empty.clone()],
            files: seed_files(seed, home, workspace),
            empty: Some(empty),
        }
    }

    /// What all clients read.
    pub(crate) fn shared(seed: u64, workspace: Workspace) -> Self {
        Self {
            dirs: vec![seed_directory(Home::Shared).to_string()],
            files: seed_files(seed, Home::Shared, workspace),
            empty: None,
        }
    }

    /// The file of the `nic` suite.
    pub(crate) fn nic(seed: u64, bytes: u32) -> Self {
        let file = ExpectedFile {
            path: nic_path().to_string(),
            bytes: u64::from(bytes),
            content: nic_content(seed),
        };
        Self { files: vec![file], ..Self::default() }
    }

    /// Where load files are replayed: an empty directory.
    pub(crate) fn replay() -> Self {
        let root = replay_root().to_string();
        Self { dirs: vec![root.clone()], files: Vec::new(), empty: Some(root) }
    }
}

fn seed_files(seed: u64, home: Home, workspace: Workspace) -> Vec<ExpectedFile> {
    let expected = |file| ExpectedFile {
        path: path_of(home, file).to_string(),
        bytes: u64::from(workspace.bytes_of(file)),
        content: content(seed, home, file),
    };
    workspace.files().map(expected).collect()
}

/// Text of [`MARKER`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareMarker {
    /// Seed of the content.
    seed: u64,
    /// Size of one client's seed files; those of the shared directory take as much.
    workspace_bytes: u64,
    /// Clients whose workspaces are complete, shared directory and `nic.dat` included; 0 while
    /// the first are being made.
    clients: u32,
}

impl ShareMarker {
    /// The marker of a share on which the workspaces of the first `clients` are complete.
    pub fn new(seed: u64, workspace: Workspace, clients: u32) -> Self {
        Self { seed, workspace_bytes: workspace.bytes(), clients }
    }

    /// Seed of the content.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Clients whose workspaces are complete; none while the first are being made.
    pub fn clients(&self) -> u32 {
        self.clients
    }

    /// The seed files are those of `seed` and `workspace`; more clients can be added.
    pub fn is_of(&self, seed: u64, workspace: Workspace) -> bool {
        // Sizes rise and fall together, so equal sums are equal files.
        self.seed == seed && self.workspace_bytes == workspace.bytes()
    }
}

impl Marker for ShareMarker {
    const TITLE: &'static str = "the share's marker";
    const REMEDY: &'static str = "remove plimsoll-files and prepare it again";

    fn excess(&self) -> Option<String> {
        let Self { clients, .. } = self;
        (*clients > CLIENTS_MAX).then(|| format!("{clients} clients, at most {CLIENTS_MAX} can be"))
    }
}

#[cfg(test)]
mod tests;
