//! One RPC of the mix, as the script requests it and the session carries it out.
//!
//! Objects of the file set have numbers; [`super::fileset`] defines them, and [`super::handles`]
//! maps them to the server's handles.

use std::fmt;

use plimsoll_model::outcome::OpKind;

/// A file of the accessed tenth, by its index in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Accessed(pub u32);

/// A directory of the file set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DirNo(pub u32);

/// A symbolic link of the file set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkNo(pub u32);

/// A name that is created and removed during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotNo(pub u32);

/// A file that a client has open at the server (NFSv4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpenNo(pub(crate) u32);

/// A part of a file: one RPC of a READ or WRITE of one or more blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The file.
    pub file: Accessed,
    /// First byte.
    pub offset: u64,
    /// Bytes, one block at most.
    pub bytes: u32,
    /// Full blocks that follow this one, each an RPC of its own.
    pub blocks_left: u32,
}

/// One request to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NfsCall {
    /// Attributes of a file.
    GetAttr(Accessed),
    /// Sets a file's mode to what it is.
    SetAttr(Accessed),
    /// Looks an existing file up in its directory.
    Lookup(Accessed),
    /// What may be done with a file.
    Access(Accessed),
    /// Text of a symbolic link.
    ReadLink(LinkNo),
    /// Reads, and compares the content if it is to be verified.
    Read(Span, Verify),
    /// Writes the content the file has there by definition.
    Write(Span, Stability),
    /// Creates a name, whether it exists or not.
    Create(SlotNo),
    /// Removes a name.
    Remove(SlotNo, Presence),
    /// Lists a directory from its beginning.
    ReadDir(DirNo),
    /// Lists a directory with attributes and handles.
    ReadDirPlus(DirNo),
    /// State of the file system (NFSv2: STATFS).
    FsStat,
    /// Makes a file's unstable writes durable.
    Commit(Accessed),
    /// A call of set-up, to any service.
    Composed,
}

impl NfsCall {
    /// A second execution may have another result than the first.
    pub(crate) const fn changes_names(self) -> bool {
        matches!(self, Self::Create(_) | Self::Remove(..))
    }

    /// Name of the procedure. RFC 1813 §3.3; NFSv2 has the same, and STATFS for FSSTAT.
    fn name(self) -> &'static str {
        match self {
            Self::GetAttr(_) => "GETATTR",
            Self::SetAttr(_) => "SETATTR",
            Self::Lookup(_) => "LOOKUP",
            Self::Access(_) => "ACCESS",
            Self::ReadLink(_) => "READLINK",
            Self::Read(..) => "READ",
            Self::Write(..) => "WRITE",
            Self::Create(_) => "CREATE",
            Self::Remove(..) => "REMOVE",
            Self::ReadDir(_) => "READDIR",
            Self::ReadDirPlus(_) => "READDIRPLUS",
            Self::FsStat => "FSSTAT",
            Self::Commit(_) => "COMMIT",
            Self::Composed => "call of set-up",
        }
    }
}

/// The op and its object, as in `READ of dir00001/file0000193 at offset 8192`.
impl fmt::Display for NfsCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = self.name();
        match *self {
            Self::GetAttr(file)
            | Self::SetAttr(file)
            | Self::Lookup(file)
            | Self::Access(file)
            | Self::Commit(file) => write!(f, "{op} of {}", InSet(file)),
            Self::Read(span, _) | Self::Write(span, _) => {
                write!(f, "{op} of {} at offset {}", InSet(span.file), span.offset)
            }
            Self::ReadLink(link) => {
                write!(f, "{op} of {}/{}", link.directory().name(), link.name())
            }
            Self::Create(slot) | Self::Remove(slot, _) => {
                write!(f, "{op} of {}/{}", slot.directory().name(), slot.name())
            }
            Self::ReadDir(dir) | Self::ReadDirPlus(dir) => {
                write!(f, "{op} of {}", dir.name())
            }
            Self::FsStat | Self::Composed => f.write_str(op),
        }
    }
}

/// Whether the content of a READ is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Every byte.
    Content,
    /// Only length and status.
    Length,
}

/// When the server may answer a WRITE (RFC 1813 §3.3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// Before the data is durable; a COMMIT follows.
    Unstable,
    /// When data and attributes are durable.
    FileSync,
}

/// Whether a name should be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It exists.
    Exists,
    /// It does not exist: the op is expected to fail.
    Missing,
}

/// A call with the index of its name among the workload's ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NfsOp {
    /// Index among the op names.
    pub kind: OpKind,
    /// The call.
    pub call: NfsCall,
    /// The file is open already: a further block of the same draw (NFSv4.1).
    pub opened: Option<OpenNo>,
}

impl NfsOp {
    /// The first call of a draw.
    pub const fn first(kind: OpKind, call: NfsCall) -> Self {
        Self { kind, call, opened: None }
    }
}

/// Path of a file below the set's directory.
struct InSet(Accessed);

impl fmt::Display for InSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.0.file();
        write!(f, "{}/{}", file.directory().name(), file.name())
    }
}
