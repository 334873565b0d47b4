//! Names and listings: CREATE, REMOVE, RENAME, READDIR. RFC 8881 §18.4, §18.23, §18.25, §18.26

use super::{Attributes4, Bitmap, ChangeInfo, FileKind4, Verifier};
use crate::wire::xdr::{Decode, Encode, List, Name, Path, XdrError, XdrIn};

/// What CREATE makes; files are made by OPEN. RFC 8881 §18.4 `createtype4`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateKind<'a> {
    /// A directory.
    Directory,
    /// A symbolic link with this text.
    Link(Path<'a>),
    /// Anything else. The number of a device is not kept; 0, 0 is written.
    Other(FileKind4),
}

/// Has the number of a device behind its kind.
const fn is_device(kind: FileKind4) -> bool {
    matches!(kind, FileKind4::BlockDevice | FileKind4::CharacterDevice)
}

impl Encode for CreateKind<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Directory => FileKind4::Directory.encode(out),
            Self::Link(text) => {
                FileKind4::Symlink.encode(out);
                text.encode(out);
            }
            Self::Other(kind) => {
                kind.encode(out);
                if is_device(*kind) {
                    0_u64.encode(out);
                }
            }
        }
    }
}

impl<'a> Decode<'a> for CreateKind<'a> {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        match FileKind4::decode(input)? {
            FileKind4::Directory => Ok(Self::Directory),
            FileKind4::Symlink => Path::decode(input).map(Self::Link),
            other => {
                if is_device(other) {
                    input.u64()?;
                }
                Ok(Self::Other(other))
            }
        }
    }
}

xdr_struct! {
    /// Arguments of CREATE. RFC 8881 §18.4
    pub struct CreateArgs4<'a> {
        /// What.
        kind: CreateKind<'a>,
        /// Its name in the current directory.
        name: Name<'a>,
        /// Its attributes.
        attributes: Attributes4<'a>,
    }

    /// What CREATE answers.
    pub struct CreateOk4 {
        /// The directory.
        change: ChangeInfo,
        /// Attributes that were set.
        set: Bitmap,
    }

    /// Arguments of RENAME: from a name in the saved directory to one in the current directory.
    /// RFC 8881 §18.26
    pub struct RenameArgs4<'a> {
        /// The old name.
        from: Name<'a>,
        /// The new one.
        to: Name<'a>,
    }

    /// What RENAME answers.
    pub struct RenameOk4 {
        /// The saved directory.
        from: ChangeInfo,
        /// The current one.
        to: ChangeInfo,
    }

    /// Arguments of READDIR. RFC 8881 §18.23
    pub struct ReadDirArgs4 {
        /// Where to go on; 0: at the beginning.
        cookie: u64,
        /// That cookies are still valid.
        verifier: Verifier,
        /// Most bytes of names and cookies.
        dir_bytes: u32,
        /// Most bytes of the whole.
        bytes_max: u32,
        /// Attributes of each entry.
        attributes: Bitmap,
    }

    /// A name in a directory. RFC 8881 §18.23 `entry4`
    pub struct Entry4<'a> {
        /// Goes on after it.
        cookie: u64,
        /// The name.
        name: Name<'a>,
        /// Its attributes.
        attributes: Attributes4<'a>,
    }

    /// What READDIR answers.
    pub struct ReadDirOk4<'a> {
        /// That cookies are still valid.
        verifier: Verifier,
        /// The entries, without `.` and `..`.
        entries: List<'a, Entry4<'a>>,
        /// There are no more.
        eof: bool,
    }
}
