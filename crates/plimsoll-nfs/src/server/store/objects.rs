//! What the store and the server say to each other of objects, in the words of NFSv3.

pub use crate::wire::v3::{
    Device, FileAttributes, FileKind, SetAttributes, SetTime, Status3, TimeSpec3, WccAttributes,
    WccData,
};

/// An object, as handles carry it. Ids are used again after a removal, with another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// What the store calls it; also its file id.
    pub id: u64,
    /// Tells objects apart that had the same id one after the other.
    pub generation: u64,
}

/// A name in a directory.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The directory.
    pub directory: Object,
    /// The name, as received.
    pub name: &'a [u8],
}

/// Who asks, for the owner of new objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// What to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum New<'a> {
    /// A regular file.
    File(Creation),
    /// A directory.
    Directory,
    /// A symbolic link with this text.
    Link(&'a [u8]),
    /// A named pipe, socket or device with its major and minor number.
    Special(FileKind, Device),
}

/// What CREATE does with a name that exists (RFC 1813 §3.3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// Takes the file as it is; a size that is set cuts it.
    Unchecked,
    /// Fails.
    Guarded,
    /// Fails unless the file was made with the same verifier.
    Exclusive([u8; 8]),
}

/// What a removal is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doomed {
    /// Anything but a directory.
    File,
    /// An empty directory.
    Directory,
}

/// Answer to a creation.
#[derive(Clone, Copy, Debug)]
pub struct Created {
    /// The object.
    pub object: Object,
    /// Its attributes.
    pub attributes: FileAttributes,
    /// What became of the directory.
    pub directory: WccData,
}

/// Answer to a READ; the bytes were appended to the caller's buffer.
#[derive(Clone, Copy, Debug)]
pub struct ReadDone {
    /// Whether the last byte read is the last of the file, or lies behind it.
    pub at_end: bool,
    /// Attributes, read with the data.
    pub attributes: FileAttributes,
}

/// How much a listing should tell of each entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Name and file id.
    Names,
    /// Attributes as well.
    Attributes,
}

/// One entry of a listing.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    /// Goes on after this entry. Below 2³¹, so that NFSv2 can carry it.
    pub cookie: u64,
    /// Its name.
    pub name: &'a [u8],
    /// Its file id.
    pub file_id: u64,
    /// With [`Detail::Attributes`], unless it was removed since.
    pub found: Option<(Object, FileAttributes)>,
}

/// Whether a listing is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListEnd {
    /// The last entry was delivered.
    Complete,
    /// The receiver wanted no more.
    Interrupted,
}

/// Gets one entry after the other; false: no room for this one.
pub type EachEntry<'a> = dyn FnMut(&Listed<'_>) -> bool + 'a;

/// Space of the store, in bytes and objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes in all.
    pub total_bytes: u64,
    /// Bytes free.
    pub free_bytes: u64,
    /// Objects in all.
    pub total_files: u64,
    /// Objects that can still be made.
    pub free_files: u64,
}

impl From<plimsoll_servers::memory::Full> for Status3 {
    fn from(full: plimsoll_servers::memory::Full) -> Self {
        match full {
            plimsoll_servers::memory::Full::TooBig => Self::FBIG,
            plimsoll_servers::memory::Full::NoSpace => Self::NOSPC,
        }
    }
}

pub(crate) fn now() -> TimeSpec3 {
    let since = plimsoll_servers::clock::since_1970();
    let seconds = u32::try_from(since.as_secs()).unwrap_or(u32::MAX);
    TimeSpec3 { seconds, nanoseconds: since.subsec_nanos() }
}
