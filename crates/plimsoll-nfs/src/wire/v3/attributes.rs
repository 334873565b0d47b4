//! Handles, attributes, and what else many procedures share. RFC 1813 §2.5, §2.6.

use std::fmt;

use crate::wire::flaws::Flaw;
use crate::wire::xdr::{Decode, Encode, XdrError, XdrIn, encode_opaque};

/// Longest handle: `NFS3_FHSIZE`. RFC 1813 §2.4
pub const HANDLE_BYTES_MAX: u32 = 64;

/// Name of an object at its server, opaque to clients. At most [`HANDLE_BYTES_MAX`] bytes.
/// RFC 1813 §2.6 `nfs_fh3`
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle<'a>(&'a [u8]);

impl<'a> Handle<'a> {
    /// A handle of these bytes.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, XdrError> {
        match u32::try_from(bytes.len()).unwrap_or(u32::MAX) {
            0..=HANDLE_BYTES_MAX => Ok(Self(bytes)),
            bytes => Err(XdrError::TooLong { bytes, max: HANDLE_BYTES_MAX }),
        }
    }

    /// Its bytes.
    #[inline]
    pub const fn bytes(self) -> &'a [u8] {
        self.0
    }
}

impl fmt::Debug for Handle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Encode for Handle<'_> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        encode_opaque(self.0, out);
    }
}

impl<'a> Decode<'a> for Handle<'a> {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        input.opaque(HANDLE_BYTES_MAX).map(Self)
    }
}

/// Of a directory's listing, of an exclusive creation, of a server's run.
/// RFC 1813 §2.5 `cookieverf3`, `createverf3`, `writeverf3`
pub type Verifier = [u8; 8];

xdr_enum! {
    /// What an object is. RFC 1813 §2.5 `ftype3`
    pub enum FileKind: "ftype3" {
        /// NF3REG
        Regular = 1,
        /// NF3DIR
        Directory = 2,
        /// NF3BLK
        BlockDevice = 3,
        /// NF3CHR
        CharacterDevice = 4,
        /// NF3LNK
        Symlink = 5,
        /// NF3SOCK
        Socket = 6,
        /// NF3FIFO
        Fifo = 7,
    }
}

xdr_struct! {
    /// Time since 1970. RFC 1813 §2.5 `nfstime3`
    pub struct TimeSpec3 {
        /// Whole seconds.
        seconds: u32,
        /// And nanoseconds.
        nanoseconds: u32,
    }

    /// Numbers of a device. RFC 1813 §2.5 `specdata3`
    pub struct Device {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    }

    /// Attributes before an operation. RFC 1813 §2.6 `wcc_attr`
    pub struct WccAttributes {
        /// Size in bytes.
        size: u64,
        /// Last change of the content.
        mtime: TimeSpec3,
        /// Last change of the attributes.
        ctime: TimeSpec3,
    }

    /// Attributes before and after an operation that changed an object: weak cache consistency.
    /// RFC 1813 §2.6 `wcc_data`
    pub struct WccData {
        /// Before.
        before: Option<WccAttributes>,
        /// After.
        after: PostOpAttr,
    }
}

impl TimeSpec3 {
    #[inline]
    fn to_be_bytes(self) -> [u8; 8] {
        (u64::from(self.seconds) << 32 | u64::from(self.nanoseconds)).to_be_bytes()
    }
}

impl Device {
    #[inline]
    fn to_be_bytes(self) -> [u8; 8] {
        (u64::from(self.major) << 32 | u64::from(self.minor)).to_be_bytes()
    }
}

impl WccData {
    /// No attributes.
    pub const NONE: Self = Self { before: None, after: None };
}

/// Attributes, where the server gives them. RFC 1813 §2.6 `post_op_attr`
pub type PostOpAttr = Option<FileAttributes>;
/// A handle, where the server gives it. RFC 1813 §2.6 `post_op_fh3`
pub type PostOpHandle<'a> = Option<Handle<'a>>;

/// Bits that a mode may have. RFC 1813 §2.5 `mode3`
const MODE_BITS: u32 = 0o7777;
/// Bytes of [`FileAttributes`] on the wire.
pub const ATTRIBUTES_BYTES: usize = 84;

xdr_fixed! {
    /// Attributes of an object. RFC 1813 §2.5 `fattr3`
    pub struct FileAttributes: ATTRIBUTES_BYTES {
        /// What it is.
        kind: FileKind,
        /// Permission bits.
        mode: u32,
        /// Names it has.
        nlink: u32,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// Size in bytes.
        size: u64,
        /// Bytes it takes on the disk.
        used: u64,
        /// Of a device.
        device: Device,
        /// File system.
        fsid: u64,
        /// Number within the file system.
        fileid: u64,
        /// Last access.
        atime: TimeSpec3,
        /// Last change of the content.
        mtime: TimeSpec3,
        /// Last change of the attributes.
        ctime: TimeSpec3,
    }
}

impl<'a> Decode<'a> for FileAttributes {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        let attributes = Self::decode_fields(input)?;
        if attributes.mode & !MODE_BITS != 0 {
            input.tolerates(Flaw::Mode);
        }
        Ok(attributes)
    }

    /// Attributes of a type that does not exist do not describe the object.
    #[inline]
    fn decode_optional(input: &mut XdrIn<'a>) -> Result<Option<Self>, XdrError> {
        if !input.bool()? {
            return Ok(None);
        }
        match Self::decode(input) {
            Err(XdrError::Value { .. }) if input.tolerates(Flaw::FileType) => Ok(None),
            attributes => attributes.map(Some),
        }
    }
}

xdr_struct! {
    /// Attributes to set; what is `None` stays. RFC 1813 §2.6 `sattr3`
    #[derive(Default)]
    pub struct SetAttributes {
        /// Permission bits.
        mode: Option<u32>,
        /// Owner.
        uid: Option<u32>,
        /// Group.
        gid: Option<u32>,
        /// Size in bytes.
        size: Option<u64>,
        /// Last access.
        atime: SetTime,
        /// Last change of the content.
        mtime: SetTime,
    }
}

/// A time to set. RFC 1813 §2.6 `set_atime`, `set_mtime`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetTime {
    /// DONT_CHANGE
    #[default]
    Keep,
    /// SET_TO_SERVER_TIME
    ServerTime,
    /// SET_TO_CLIENT_TIME
    To(TimeSpec3),
}

impl Encode for SetTime {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Keep => 0u32.encode(out),
            Self::ServerTime => 1u32.encode(out),
            Self::To(time) => {
                2u32.encode(out);
                time.encode(out);
            }
        }
    }
}

impl<'a> Decode<'a> for SetTime {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        match input.u32()? {
            0 => Ok(Self::Keep),
            1 => Ok(Self::ServerTime),
            2 => TimeSpec3::decode(input).map(Self::To),
            value => Err(XdrError::Value { what: "time_how", value }),
        }
    }
}
