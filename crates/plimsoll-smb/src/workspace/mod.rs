//! What lies on the share: numbering, sizes, names, content.
//!
//! Everything is below one directory, [`ROOT`], with the marker file [`MARKER`] in it: a directory
//! for each client ([`Home::Client`]) with its seed files and the files its script makes, one that
//! all clients read ([`Home::Shared`]), the file of the `nic` suite and the root of replays. What
//! of it a suite needs is a list of places. All functions are pure.

mod marker;
mod place;

use std::fmt::Write as _;

pub use marker::ShareMarker;
pub(crate) use place::{Place, Wanted};
pub use plimsoll_protocol::content::{ContentTable, SLICE_BYTES_MAX};
pub use plimsoll_protocol::data_set::{MARKER, ROOT};

use super::op::{Content, PathText};
use plimsoll_engine::rng;

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

/// A seed file of a home: there before a load point, never removed, its content never changes.
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

/// Where a file of that name lies in our directory itself.
pub(crate) fn root_path(name: &str) -> PathText {
    path(format_args!("{ROOT}\\{name}"))
}

/// Directory below which the paths of a load file are meant.
pub fn replay_root() -> PathText {
    path(format_args!("{ROOT}\\replay"))
}

fn path(text: std::fmt::Arguments<'_>) -> PathText {
    let mut path = PathText::EMPTY;
    path.write_fmt(text).expect("our own names are far shorter than a path may be");
    path
}

#[cfg(test)]
mod tests;
