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
        /// And microseconds; a million in [`SetAttributes2`] asks many servers for their time.
        microseconds: u32,
    }
}

/// Attributes of an object. RFC 1094 §2.3.5 `fattr`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAttributes2 {
    /// What it is.
    pub kind: FileKind2,
    /// Type and permission bits as UNIX has them.
    pub mode: u32,
    /// Names it has.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes.
    pub size: u32,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Of a device.
    pub device: u32,
    /// Blocks it takes on the disk.
    pub blocks: u32,
    /// File system.
    pub fsid: u32,
    /// Number within the file system.
    pub fileid: u32,
    /// Last access.
    pub atime: TimeVal2,
    /// Last change of the content.
    pub mtime: TimeVal2,
    /// Last change of the attributes.
    pub ctime: TimeVal2,
}

/// Bytes of [`FileAttributes2`] on the wire.
pub const ATTRIBUTES2_BYTES: usize = 68;

impl Encode for FileAttributes2 {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        let words: [u32; ATTRIBUTES2_BYTES / 4] = [
            self.kind.number(),
            self.mode,
            self.nlink,
            self.uid,
            self.gid,
            self.size,
            self.block_bytes,
            self.device,
            self.blocks,
            self.fsid,
            self.fileid,
            self.atime.seconds,
            self.atime.microseconds,
            self.mtime.seconds,
            self.mtime.microseconds,
            self.ctime.seconds,
            self.ctime.microseconds,
        ];
        out.extend_from_slice(words.map(u32::to_be_bytes).as_flattened());
    }
}

impl<'a> Decode<'a> for FileAttributes2 {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        // One look at the length instead of 17: that of an array is known.
        let bytes = input.fixed::<ATTRIBUTES2_BYTES>()?;
        input.within(bytes, |input| {
            Ok(Self {
                kind: FileKind2::decode(input)?,
                mode: input.u32()?,
                nlink: input.u32()?,
                uid: input.u32()?,
                gid: input.u32()?,
                size: input.u32()?,
                block_bytes: input.u32()?,
                device: input.u32()?,
                blocks: input.u32()?,
                fsid: input.u32()?,
                fileid: input.u32()?,
                atime: TimeVal2::decode(input)?,
                mtime: TimeVal2::decode(input)?,
                ctime: TimeVal2::decode(input)?,
            })
        })
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
