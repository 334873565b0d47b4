//! The file system behind the server: objects by id, in memory.
//!
//! A store knows nothing of RPC. Whoever reaches the server may do everything: stores keep owner
//! and mode of objects and enforce neither. Set-id bits are never set.

pub mod memory;
mod objects;

pub use objects::*;

/// Longest name of a directory entry, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Longest text of a symbolic link, in bytes.
pub const LINK_BYTES_MAX: usize = 1024;
pub use plimsoll_servers::memory::FILE_BYTES_MAX;

/// Bits of a mode that can be set: permissions and sticky. A set-id bit that anybody on the network
/// may set would hand out the identity this server runs with.
pub const MODE_BITS_KEPT: u32 = 0o1777;

/// A file system. All methods may be called from many threads at once.
pub trait Store: Send + Sync {
    /// Goes into every handle; handles with another one are stale.
    fn instance(&self) -> u64;
    /// Changes when unstable writes may have been lost (RFC 1813 §3.3.7).
    fn write_verifier(&self) -> [u8; 8];
    /// The exported directory.
    fn root(&self) -> Object;
    /// GETATTR.
    fn attributes(&self, object: Object) -> Result<FileAttributes, Status3>;
    /// SETATTR; with `guard` only if that is when the object last changed.
    fn set(
        &self,
        object: Object,
        to: &SetAttributes,
        guard: Option<TimeSpec3>,
    ) -> Result<WccData, Status3>;
    /// LOOKUP; knows `.` and `..`, the latter of the root being the root.
    fn lookup(&self, place: Place<'_>) -> Result<(Object, FileAttributes), Status3>;
    /// READLINK; appends the text to `into`.
    fn read_link(&self, object: Object, into: &mut Vec<u8>) -> Result<(), Status3>;
    /// READ; appends at most `count` bytes to `into`.
    fn read(
        &self,
        object: Object,
        offset: u64,
        count: u32,
        into: &mut Vec<u8>,
    ) -> Result<ReadDone, Status3>;
    /// WRITE; all of `data` or nothing. May be more durable than asked, never less.
    fn write(
        &self,
        object: Object,
        offset: u64,
        data: &[u8],
        durability: StableHow,
    ) -> Result<WccData, Status3>;
    /// CREATE, MKDIR, SYMLINK, MKNOD.
    fn create(
        &self,
        place: Place<'_>,
        new: New<'_>,
        to: &SetAttributes,
        caller: Caller,
    ) -> Result<Created, Status3>;
    /// REMOVE and RMDIR.
    fn remove(&self, place: Place<'_>, doomed: Doomed) -> Result<WccData, Status3>;
    /// RENAME; what became of the two directories.
    fn rename(&self, from: Place<'_>, to: Place<'_>) -> Result<(WccData, WccData), Status3>;
    /// LINK; attributes of the object, and what became of the directory.
    fn link(&self, object: Object, place: Place<'_>) -> Result<(FileAttributes, WccData), Status3>;
    /// READDIR and READDIRPLUS: the entries after `cookie` (0: from the beginning).
    fn list(
        &self,
        directory: Object,
        cookie: u64,
        detail: Detail,
        each: &mut EachEntry<'_>,
    ) -> Result<ListEnd, Status3>;
    /// FSSTAT.
    fn space(&self) -> Result<Space, Status3>;
    /// COMMIT: everything written to the object is durable afterwards.
    fn commit(&self, object: Object) -> Result<(), Status3>;
}

/// Whether a store may look `name` up in the system: one component that goes nowhere else.
fn plain_name(name: &[u8]) -> Result<(), Status3> {
    match name {
        b"" | b"." | b".." => Err(Status3::INVAL),
        _ if name.len() > NAME_BYTES_MAX => Err(Status3::NAMETOOLONG),
        _ if name.iter().any(|byte| matches!(byte, b'/' | 0)) => Err(Status3::ACCES),
        _ => Ok(()),
    }
}

/// The same for names that are to be made: `.` and `..` exist everywhere.
fn new_name(name: &[u8]) -> Result<(), Status3> {
    match name {
        b"." | b".." => Err(Status3::EXIST),
        _ => plain_name(name),
    }
}
