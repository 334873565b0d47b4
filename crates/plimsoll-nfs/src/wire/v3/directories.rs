//! Names and directories: new objects (CREATE, MKDIR, SYMLINK, MKNOD), names that go or move
//! (REMOVE, RMDIR, RENAME, LINK), listings (READDIR, READDIRPLUS). RFC 1813 §3.3.8 to §3.3.17.

use super::{
    ATTRIBUTES_BYTES, Device, FileKind, Handle, PostOpAttr, PostOpHandle, Reply3, SetAttributes,
    Verifier, WccData,
};
use crate::wire::xdr::{Decode, Encode, List, Name, Path, XdrError, XdrIn, opaque_bytes};

/// What CREATE does when the name exists. RFC 1813 §3.3.8 `createhow3`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateHow {
    /// UNCHECKED: sets the attributes of what is there.
    Unchecked(SetAttributes),
    /// GUARDED: fails.
    Guarded(SetAttributes),
    /// EXCLUSIVE: fails, unless this very call created it.
    Exclusive(Verifier),
}

impl Encode for CreateHow {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Unchecked(attributes) => {
                0u32.encode(out);
                attributes.encode(out);
            }
            Self::Guarded(attributes) => {
                1u32.encode(out);
                attributes.encode(out);
            }
            Self::Exclusive(verifier) => {
                2u32.encode(out);
                verifier.encode(out);
            }
        }
    }
}

impl<'a> Decode<'a> for CreateHow {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        match input.u32()? {
            0 => SetAttributes::decode(input).map(Self::Unchecked),
            1 => SetAttributes::decode(input).map(Self::Guarded),
            2 => Verifier::decode(input).map(Self::Exclusive),
            value => Err(XdrError::Value { what: "createmode3", value }),
        }
    }
}

/// What MKNOD makes. RFC 1813 §3.3.11 `mknoddata3`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MkNodData {
    /// NF3CHR
    CharacterDevice(SetAttributes, Device),
    /// NF3BLK
    BlockDevice(SetAttributes, Device),
    /// NF3SOCK
    Socket(SetAttributes),
    /// NF3FIFO
    Fifo(SetAttributes),
    /// What MKNOD does not make; servers answer `BADTYPE`. Not one of the above.
    Other(FileKind),
}

impl MkNodData {
    /// What is made.
    pub fn kind(&self) -> FileKind {
        match self {
            Self::CharacterDevice(..) => FileKind::CharacterDevice,
            Self::BlockDevice(..) => FileKind::BlockDevice,
            Self::Socket(_) => FileKind::Socket,
            Self::Fifo(_) => FileKind::Fifo,
            Self::Other(kind) => *kind,
        }
    }
}

impl Encode for MkNodData {
    fn encode(&self, out: &mut Vec<u8>) {
        self.kind().encode(out);
        match self {
            Self::CharacterDevice(attributes, device) | Self::BlockDevice(attributes, device) => {
                attributes.encode(out);
                device.encode(out);
            }
            Self::Socket(attributes) | Self::Fifo(attributes) => attributes.encode(out),
            Self::Other(_) => {}
        }
    }
}

impl<'a> Decode<'a> for MkNodData {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        let kind = FileKind::decode(input)?;
        Ok(match kind {
            FileKind::CharacterDevice => {
                Self::CharacterDevice(Decode::decode(input)?, Decode::decode(input)?)
            }
            FileKind::BlockDevice => {
                Self::BlockDevice(Decode::decode(input)?, Decode::decode(input)?)
            }
            FileKind::Socket => Self::Socket(Decode::decode(input)?),
            FileKind::Fifo => Self::Fifo(Decode::decode(input)?),
            FileKind::Regular | FileKind::Directory | FileKind::Symlink => Self::Other(kind),
        })
    }
}

xdr_struct! {
    /// Arguments of CREATE. RFC 1813 §3.3.8
    pub struct CreateArgs<'a> {
        /// Where.
        dir: Handle<'a>,
        /// Name of the file.
        name: Name<'a>,
        /// What when it exists, and its attributes.
        how: CreateHow,
    }

    /// Arguments of MKDIR. RFC 1813 §3.3.9
    pub struct MkDirArgs<'a> {
        /// Where.
        dir: Handle<'a>,
        /// Name of the directory.
        name: Name<'a>,
        /// Its attributes.
        attributes: SetAttributes,
    }

    /// Arguments of SYMLINK. RFC 1813 §3.3.10
    pub struct SymlinkArgs<'a> {
        /// Where.
        dir: Handle<'a>,
        /// Name of the link.
        name: Name<'a>,
        /// Its attributes.
        attributes: SetAttributes,
        /// Its text.
        path: Path<'a>,
    }

    /// Arguments of MKNOD. RFC 1813 §3.3.11
    pub struct MkNodArgs<'a> {
        /// Where.
        dir: Handle<'a>,
        /// Name of the object.
        name: Name<'a>,
        /// What it is.
        what: MkNodData,
    }

    /// What CREATE, MKDIR, SYMLINK and MKNOD answer. RFC 1813 §3.3.8
    pub struct CreateOk<'a> {
        /// The new object.
        object: PostOpHandle<'a>,
        /// Its attributes.
        attributes: PostOpAttr,
        /// Of the directory.
        dir_wcc: WccData,
    }
}

/// Result of CREATE, MKDIR, SYMLINK and MKNOD; in failure with attributes of the directory.
pub type CreateRes<'a> = Reply3<CreateOk<'a>, WccData>;

xdr_struct! {
    /// Arguments of RENAME. RFC 1813 §3.3.14
    pub struct RenameArgs<'a> {
        /// Where it is.
        from_dir: Handle<'a>,
        /// Its name.
        from_name: Name<'a>,
        /// Where it goes.
        to_dir: Handle<'a>,
        /// Its new name.
        to_name: Name<'a>,
    }

    /// What RENAME answers, in failure too. RFC 1813 §3.3.14
    pub struct RenameWcc {
        /// Of the directory it was in.
        from_dir_wcc: WccData,
        /// Of the directory it is in.
        to_dir_wcc: WccData,
    }

    /// Arguments of LINK. RFC 1813 §3.3.15
    pub struct LinkArgs<'a> {
        /// What gets another name.
        file: Handle<'a>,
        /// Where.
        dir: Handle<'a>,
        /// The name.
        name: Name<'a>,
    }

    /// What LINK answers, in failure too. RFC 1813 §3.3.15
    pub struct LinkWcc {
        /// Of the file.
        attributes: PostOpAttr,
        /// Of the directory.
        dir_wcc: WccData,
    }
}

/// Result of REMOVE and RMDIR, of the directory. RFC 1813 §3.3.12, §3.3.13
pub type RemoveRes = Reply3<WccData, WccData>;
/// Result of RENAME.
pub type RenameRes = Reply3<RenameWcc, RenameWcc>;
/// Result of LINK.
pub type LinkRes = Reply3<LinkWcc, LinkWcc>;

xdr_struct! {
    /// Arguments of READDIR. RFC 1813 §3.3.16
    pub struct ReadDirArgs<'a> {
        /// The directory.
        dir: Handle<'a>,
        /// Of the entry behind which to begin; 0: at the beginning.
        cookie: u64,
        /// As the server gave it with the cookie; 0 at the beginning.
        verifier: Verifier,
        /// Most bytes of the result.
        count: u32,
    }

    /// What READDIR answers. RFC 1813 §3.3.16
    pub struct ReadDirOk<'a> {
        /// Of the directory.
        dir_attributes: PostOpAttr,
        /// To be given with the cookies.
        verifier: Verifier,
        /// Some entries.
        entries: List<'a, Entry<'a>>,
        /// There are no more.
        eof: bool,
    }

    /// An entry of a directory. RFC 1813 §3.3.16 `entry3`
    pub struct Entry<'a> {
        /// Number of the object.
        fileid: u64,
        /// Its name.
        name: Name<'a>,
        /// Where to go on behind it.
        cookie: u64,
    }

    /// Arguments of READDIRPLUS. RFC 1813 §3.3.17
    pub struct ReadDirPlusArgs<'a> {
        /// The directory.
        dir: Handle<'a>,
        /// Of the entry behind which to begin; 0: at the beginning.
        cookie: u64,
        /// As the server gave it with the cookie; 0 at the beginning.
        verifier: Verifier,
        /// Most bytes of names, numbers and cookies.
        dir_count: u32,
        /// Most bytes of the result.
        max_count: u32,
    }

    /// What READDIRPLUS answers. RFC 1813 §3.3.17
    pub struct ReadDirPlusOk<'a> {
        /// Of the directory.
        dir_attributes: PostOpAttr,
        /// To be given with the cookies.
        verifier: Verifier,
        /// Some entries.
        entries: List<'a, EntryPlus<'a>>,
        /// There are no more.
        eof: bool,
    }

    /// An entry of a directory, with what LOOKUP would answer. RFC 1813 §3.3.17 `entryplus3`
    pub struct EntryPlus<'a> {
        /// Number of the object.
        fileid: u64,
        /// Its name.
        name: Name<'a>,
        /// Where to go on behind it.
        cookie: u64,
        /// Its attributes.
        attributes: PostOpAttr,
        /// Its handle.
        object: PostOpHandle<'a>,
    }
}

impl Entry<'_> {
    /// Bytes that it takes in a list.
    pub const fn bytes(&self) -> usize {
        4 + 8 + opaque_bytes(self.name.0.len()) + 8
    }
}

impl EntryPlus<'_> {
    /// Bytes that it takes in a list.
    pub const fn bytes(&self) -> usize {
        let attributes = if self.attributes.is_some() { ATTRIBUTES_BYTES } else { 0 };
        let object = match self.object {
            Some(object) => opaque_bytes(object.bytes().len()),
            None => 0,
        };
        4 + 8 + opaque_bytes(self.name.0.len()) + 8 + 4 + attributes + 4 + object
    }
}

/// Result of READDIR.
pub type ReadDirRes<'a> = Reply3<ReadDirOk<'a>, PostOpAttr>;
/// Result of READDIRPLUS.
pub type ReadDirPlusRes<'a> = Reply3<ReadDirPlusOk<'a>, PostOpAttr>;
