//! New objects: CREATE, MKDIR, SYMLINK, MKNOD. RFC 1813 §3.3.8 to §3.3.11.

use super::{
    Device, FileKind, Handle, PostOpAttr, PostOpHandle, Reply3, SetAttributes, Verifier, WccData,
};
use crate::wire::text::{Name, Path};
use crate::wire::xdr::{Decode, Encode, XdrError, XdrIn};

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
