//! Handles and attributes. RFC 1094 §2.3.

use std::fmt;

use crate::wire::xdr::{Decode, Encode, XdrError, XdrIn};

/// Bytes of every handle: `FHSIZE`. RFC 1094 §3.5
pub const HANDLE_BYTES: usize = 32;

/// Name of an object at its server, opaque to clients. RFC 1094 §2.3.3 `fhandle`
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle2(pub [u8; HANDLE_BYTES]);

impl fmt::Debug for Handle2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Encode for Handle2 {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

impl<'a> Decode<'a> for Handle2 {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        input.fixed().copied().map(Self)
    }
}

/// Data of a READ or WRITE, at most [`super::DATA_BYTES_MAX`]. RFC 1094 §2.2.7 `nfsdata`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data2<'a>(pub &'a [u8]);

impl Encode for Data2<'_> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl<'a> Decode<'a> for Data2<'a> {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        input.opaque(super::DATA_BYTES_MAX).map(Self)
    }
}

xdr_enum! {
    /// What an object is. RFC 1094 §2.3.2 `ftype`; the last three only in practice.
    pub enum FileKind2: "ftype" {
        /// NFNON: no file.
        None = 0,
        /// NFREG
        Regular = 1,
        /// NFDIR
        Directory = 2,
        /// NFBLK
        BlockDevice = 3,
        /// NFCHR
        CharacterDevice = 4,
        /// NFLNK
        Symlink = 5,
        /// NFSOCK
        Socket = 6,
        /// NFBAD
        Bad = 7,
        /// NFFIFO
        Fifo = 8,
    }
}

xdr_struct! {
    /// Time since 1970. RFC 1094 §2.3.4 `timeval`
    pub struct TimeVal2 {
        /// Whole seconds.
        seconds: u32,
        /// And microseconds; to many servers, a million in [`SetAttributes2`] means their own time.
        microseconds: u32,
    }
}

impl TimeVal2 {
    #[inline]
    fn to_be_bytes(self) -> [u8; 8] {
        (u64::from(self.seconds) << 32 | u64::from(self.microseconds)).to_be_bytes()
    }
}

/// Bytes of [`FileAttributes2`] on the wire.
pub const ATTRIBUTES2_BYTES: usize = 68;

xdr_fixed! {
    /// Attributes of an object. RFC 1094 §2.3.5 `fattr`
    pub struct FileAttributes2: ATTRIBUTES2_BYTES {
        /// What it is.
        kind: FileKind2,
        /// Type and permission bits as UNIX has them.
        mode: u32,
        /// Names it has.
        nlink: u32,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// Size in bytes.
        size: u32,
        /// Bytes of a block.
        block_bytes: u32,
        /// Of a device.
        device: u32,
        /// Blocks it takes on the disk.
        blocks: u32,
        /// File system.
        fsid: u32,
        /// Number within the file system.
        fileid: u32,
        /// Last access.
        atime: TimeVal2,
        /// Last change of the content.
        mtime: TimeVal2,
        /// Last change of the attributes.
        ctime: TimeVal2,
    }
}

impl<'a> Decode<'a> for FileAttributes2 {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        Self::decode_fields(input)
    }
}

/// Attributes to set; what is `None` stays, on the wire as −1. RFC 1094 §2.3.6 `sattr`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttributes2 {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Size in bytes.
    pub size: Option<u32>,
    /// Last access.
    pub atime: Option<TimeVal2>,
    /// Last change of the content.
    pub mtime: Option<TimeVal2>,
}

impl Encode for SetAttributes2 {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        for word in [self.mode, self.uid, self.gid, self.size] {
            word.unwrap_or(u32::MAX).encode(out);
        }
        let keep = TimeVal2 { seconds: u32::MAX, microseconds: u32::MAX };
        self.atime.unwrap_or(keep).encode(out);
        self.mtime.unwrap_or(keep).encode(out);
    }
}

impl<'a> Decode<'a> for SetAttributes2 {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        let word =
            |input: &mut XdrIn<'a>| input.u32().map(|word| (word != u32::MAX).then_some(word));
        let time = |input: &mut XdrIn<'a>| {
            let is_set = |t: &TimeVal2| t.seconds != u32::MAX && t.microseconds != u32::MAX;
            TimeVal2::decode(input).map(|time| Some(time).filter(is_set))
        };
        Ok(Self {
            mode: word(input)?,
            uid: word(input)?,
            gid: word(input)?,
            size: word(input)?,
            atime: time(input)?,
            mtime: time(input)?,
        })
    }
}
