//! The file system behind the server: objects by id, in memory or below a directory.
//!
//! A store knows nothing of RPC. Whoever reaches the server may do everything: stores keep owner
//! and mode of objects and enforce neither.

pub mod directory;
pub mod memory;

/// Longest name of a directory entry, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Longest text of a symbolic link, in bytes.
pub const LINK_BYTES_MAX: usize = 1024;
/// Largest size of a file, in bytes: what an `off_t` holds.
pub const FILE_BYTES_MAX: u64 = i64::MAX as u64;

/// An object, as handles carry it. Ids are used again after a removal, with another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// What the store calls it; also its file id.
    pub id: u64,
    /// Tells objects apart that had the same id one after the other.
    pub generation: u64,
    /// Where it was found, for stores that search for it there.
    pub parent: u64,
}

/// A name in a directory.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The directory.
    pub directory: Object,
    /// The name, as received.
    pub name: &'a [u8],
}

/// Kinds of objects (RFC 1813 §2.5, ftype3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Regular file.
    File,
    /// Directory.
    Directory,
    /// Symbolic link.
    Link,
    /// Block device.
    Block,
    /// Character device.
    Character,
    /// Socket.
    Socket,
    /// Named pipe.
    Fifo,
}

/// Time since 1970, as NFSv3 carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Whole seconds.
    pub seconds: u32,
    /// The rest.
    pub nanoseconds: u32,
}

/// Attributes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its kind.
    pub kind: Kind,
    /// Permission bits, with set-uid, set-gid and sticky.
    pub mode: u32,
    /// Names it has.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes it holds.
    pub size: u64,
    /// Bytes it takes.
    pub used: u64,
    /// Major and minor number of a device.
    pub device: (u32, u32),
    /// The file system it is in.
    pub file_system: u64,
    /// Its number in that file system.
    pub file_id: u64,
    /// Last access. The memory store leaves it alone when it reads.
    pub accessed: Time,
    /// Last change of content.
    pub modified: Time,
    /// Last change of anything.
    pub changed: Time,
}

/// What SETATTR and the creating calls set; `None` keeps what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Bytes; shorter cuts off, longer fills with zeros.
    pub size: Option<u64>,
    /// Last access.
    pub accessed: SetTime,
    /// Last change of content.
    pub modified: SetTime,
}

/// What becomes of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetTime {
    /// It stays.
    #[default]
    Keep,
    /// The server's clock.
    Now,
    /// The client's wish.
    To(Time),
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
    Special(Kind, (u32, u32)),
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

/// When a WRITE is durable (RFC 1813 §3.3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After a COMMIT.
    Unstable,
    /// When answered: data, and attributes needed to read it.
    DataSync,
    /// When answered: data and attributes.
    FileSync,
}

/// Attributes before and after, for a client's cache. `before` only where both are of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Size, modified and changed before.
    pub before: Option<(u64, Time, Time)>,
    /// Attributes after.
    pub after: Option<Attributes>,
}

/// Answer to a creation.
#[derive(Clone, Copy, Debug)]
pub struct Created {
    /// The object.
    pub object: Object,
    /// Its attributes.
    pub attributes: Attributes,
    /// What became of the directory.
    pub directory: Change,
}

/// Answer to a READ; the bytes were appended to the caller's buffer.
#[derive(Clone, Copy, Debug)]
pub struct ReadDone {
    /// Whether the last byte read is the last of the file, or lies behind it.
    pub at_end: bool,
    /// Attributes, read with the data.
    pub attributes: Attributes,
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
    /// With [`Detail::Attributes`], where they could be had.
    pub found: Option<(Object, Attributes)>,
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
    /// Bytes that this user may take.
    pub available_bytes: u64,
    /// Objects in all.
    pub total_files: u64,
    /// Objects that can still be made.
    pub free_files: u64,
}

/// Why a store refuses; the statuses of RFC 1813 §2.6 that a store has a use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// EPERM.
    NotOwner,
    /// No such name.
    NoEntry,
    /// A device failed.
    Io,
    /// EACCES, or a name that may not be.
    Access,
    /// The name exists.
    Exists,
    /// Across file systems.
    CrossDevice,
    /// Not a directory.
    NotDirectory,
    /// A directory.
    IsDirectory,
    /// Not for this kind of object, or a value that makes no sense.
    Invalid,
    /// Larger than files may be.
    TooBig,
    /// No space left.
    NoSpace,
    /// Read-only file system.
    ReadOnly,
    /// Too many names for one object.
    TooManyLinks,
    /// A name longer than [`NAME_BYTES_MAX`].
    NameTooLong,
    /// The directory has entries.
    NotEmpty,
    /// Quota used up.
    Quota,
    /// The object is gone, or of another server.
    Stale,
    /// The handle is not one of ours.
    BadHandle,
    /// SETATTR's guard does not hold.
    NotSync,
    /// Not supported here.
    NotSupported,
    /// The reply would not hold a single entry.
    TooSmall,
    /// Something that should not happen.
    ServerFault,
}

/// A file system. All methods may be called from many threads at once.
pub trait Store: Send + Sync {
    /// Goes into every handle; handles with another one are stale.
    fn instance(&self) -> u64;
    /// Changes when unstable writes may have been lost (RFC 1813 §3.3.7).
    fn write_verifier(&self) -> [u8; 8];
    /// The exported directory.
    fn root(&self) -> Object;
    /// GETATTR.
    fn attributes(&self, object: Object) -> Result<Attributes, Fault>;
    /// SETATTR; with `guard` only if that is when the object last changed.
    fn set(&self, object: Object, to: &Settings, guard: Option<Time>) -> Result<Change, Fault>;
    /// LOOKUP; knows `.` and `..`, the latter of the root being the root.
    fn lookup(&self, place: Place<'_>) -> Result<(Object, Attributes), Fault>;
    /// READLINK; appends the text to `into`.
    fn read_link(&self, object: Object, into: &mut Vec<u8>) -> Result<(), Fault>;
    /// READ; appends at most `count` bytes to `into`.
    fn read(
        &self,
        object: Object,
        offset: u64,
        count: u32,
        into: &mut Vec<u8>,
    ) -> Result<ReadDone, Fault>;
    /// WRITE; all of `data` or nothing. May be more durable than asked, never less.
    fn write(
        &self,
        object: Object,
        offset: u64,
        data: &[u8],
        durability: Durability,
    ) -> Result<Change, Fault>;
    /// CREATE, MKDIR, SYMLINK, MKNOD.
    fn create(
        &self,
        place: Place<'_>,
        new: New<'_>,
        to: &Settings,
        caller: Caller,
    ) -> Result<Created, Fault>;
    /// REMOVE and RMDIR.
    fn remove(&self, place: Place<'_>, doomed: Doomed) -> Result<Change, Fault>;
    /// RENAME; what became of the two directories.
    fn rename(&self, from: Place<'_>, to: Place<'_>) -> Result<(Change, Change), Fault>;
    /// LINK; attributes of the object, and what became of the directory.
    fn link(&self, object: Object, place: Place<'_>) -> Result<(Attributes, Change), Fault>;
    /// READDIR and READDIRPLUS: the entries after `cookie` (0: from the beginning).
    fn list(
        &self,
        directory: Object,
        cookie: u64,
        detail: Detail,
        each: &mut EachEntry<'_>,
    ) -> Result<ListEnd, Fault>;
    /// FSSTAT.
    fn space(&self) -> Result<Space, Fault>;
    /// COMMIT: everything written to the object is durable afterwards.
    fn commit(&self, object: Object) -> Result<(), Fault>;
}

/// Whether a store may look `name` up in the system: one component that goes nowhere else.
fn plain_name(name: &[u8]) -> Result<(), Fault> {
    match name {
        b"" | b"." | b".." => Err(Fault::Invalid),
        _ if name.len() > NAME_BYTES_MAX => Err(Fault::NameTooLong),
        _ if name.iter().any(|byte| matches!(byte, b'/' | 0)) => Err(Fault::Access),
        _ => Ok(()),
    }
}

/// The same for names that are to be made: `.` and `..` exist everywhere.
fn new_name(name: &[u8]) -> Result<(), Fault> {
    match name {
        b"." | b".." => Err(Fault::Exists),
        _ => plain_name(name),
    }
}
