//! Attributes: a bitmap says which, and their values follow in the order of their numbers.
//! RFC 8881 §5

use super::{Handle4, Status4};
use crate::wire::v3::TimeSpec3;
use crate::wire::xdr::{Decode, Encode, Name, XdrError, XdrIn, encode_opaque};

/// Numbers of a bitmap that are kept; the attributes of today are in the first three.
const LENGTH: usize = 3;
/// Most numbers of a bitmap on the wire.
const LENGTH_MAX: u32 = 8;
/// Longest values of a list of attributes.
const VALUES_BYTES_MAX: u32 = 64 * 1_024;

/// A set of attributes. RFC 8881 §3.2 `bitmap4`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bitmap([u32; LENGTH]);

impl Bitmap {
    /// The attributes of these numbers.
    pub const fn from_numbers(attributes: &[u32]) -> Self {
        let mut bits = [0; LENGTH];
        let mut at = 0;
        while at < attributes.len() {
            bits[(attributes[at] / 32) as usize] |= 1 << (attributes[at] % 32);
            at += 1;
        }
        Self(bits)
    }

    /// The attribute is in the set.
    #[inline]
    pub const fn has(self, attribute: u32) -> bool {
        self.0[(attribute / 32) as usize] & (1 << (attribute % 32)) != 0
    }

    /// Those that are in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        Self([a[0] & b[0], a[1] & b[1], a[2] & b[2]])
    }

    /// Those of either set.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        Self([a[0] | b[0], a[1] | b[1], a[2] | b[2]])
    }

    fn add(&mut self, attribute: u32) {
        self.0[(attribute / 32) as usize] |= 1 << (attribute % 32);
    }
}

impl Encode for Bitmap {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        let length = LENGTH - self.0.iter().rev().take_while(|word| **word == 0).count();
        (length as u32).encode(out);
        self.0[..length].iter().for_each(|word| word.encode(out));
    }
}

impl<'a> Decode<'a> for Bitmap {
    /// Attributes beyond the numbers that are kept are left out.
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        let count = input.u32()?;
        if count > LENGTH_MAX {
            return Err(XdrError::TooLong { bytes: count, max: LENGTH_MAX });
        }
        let mut bits = [0; LENGTH];
        for at in 0..count as usize {
            let number = input.u32()?;
            if let Some(kept) = bits.get_mut(at) {
                *kept = number;
            }
        }
        Ok(Self(bits))
    }
}

xdr_enum! {
    /// What an object is. RFC 8881 §3.2 `nfs_ftype4`
    pub enum FileKind4: "nfs_ftype4" {
        /// NF4REG
        Regular = 1,
        /// NF4DIR
        Directory = 2,
        /// NF4BLK
        BlockDevice = 3,
        /// NF4CHR
        CharacterDevice = 4,
        /// NF4LNK
        Symlink = 5,
        /// NF4SOCK
        Socket = 6,
        /// NF4FIFO
        Fifo = 7,
        /// NF4ATTRDIR
        AttributeDirectory = 8,
        /// NF4NAMEDATTR
        NamedAttribute = 9,
    }
}

xdr_struct! {
    /// Time since 1970. RFC 8881 §3.3.1 `nfstime4`
    pub struct Time4 {
        /// Whole seconds.
        seconds: u64,
        /// The rest.
        nanoseconds: u32,
    }

    /// Number of a device. RFC 8881 §3.3.4 `specdata4`
    pub struct Pair32 {
        /// The first.
        major: u32,
        /// The second.
        minor: u32,
    }

    /// Number of a file system. RFC 8881 §3.3.5 `fsid4`
    pub struct FsId4 {
        /// The first half.
        major: u64,
        /// The second half.
        minor: u64,
    }
}

impl From<TimeSpec3> for Time4 {
    fn from(TimeSpec3 { seconds, nanoseconds }: TimeSpec3) -> Self {
        Self { seconds: u64::from(seconds), nanoseconds }
    }
}

/// Numbers of attributes. RFC 8881 §5.6, §5.7
pub mod attribute {
    use super::Bitmap;

    macro_rules! numbers {
        ($( $(#[$doc:meta])* $name:ident = $number:literal; )*) => {
            $( $(#[$doc])* pub const $name: u32 = $number; )*
        };
    }

    numbers! {
        /// supported_attrs
        SUPPORTED = 0;
        /// type
        KIND = 1;
        /// fh_expire_type
        FH_EXPIRE_TYPE = 2;
        /// change
        CHANGE = 3;
        /// size
        SIZE = 4;
        /// link_support
        LINK_SUPPORT = 5;
        /// symlink_support
        SYMLINK_SUPPORT = 6;
        /// named_attr
        NAMED_ATTRIBUTES = 7;
        /// fsid
        FSID = 8;
        /// unique_handles
        UNIQUE_HANDLES = 9;
        /// lease_time
        LEASE_TIME = 10;
        /// rdattr_error
        RDATTR_ERROR = 11;
        /// filehandle
        FILEHANDLE = 19;
        /// fileid
        FILE_ID = 20;
        /// files_avail
        FILES_AVAILABLE = 21;
        /// files_free
        FILES_FREE = 22;
        /// files_total
        FILES_TOTAL = 23;
        /// maxread
        READ_MAX = 30;
        /// maxwrite
        WRITE_MAX = 31;
        /// mode
        MODE = 33;
        /// numlinks
        LINKS = 35;
        /// owner
        OWNER = 36;
        /// owner_group
        OWNER_GROUP = 37;
        /// rawdev
        RAW_DEVICE = 41;
        /// space_avail
        SPACE_AVAILABLE = 42;
        /// space_free
        SPACE_FREE = 43;
        /// space_total
        SPACE_TOTAL = 44;
        /// space_used
        SPACE_USED = 45;
        /// time_access
        TIME_ACCESS = 47;
        /// time_metadata
        TIME_METADATA = 52;
        /// time_modify
        TIME_MODIFY = 53;
        /// mounted_on_fileid
        MOUNTED_ON_FILE_ID = 55;
    }

    /// What the Linux client asks of a file, as far as the server has it.
    pub const OF_FILES: Bitmap = Bitmap::from_numbers(&[
        KIND,
        CHANGE,
        SIZE,
        FSID,
        FILE_ID,
        MODE,
        LINKS,
        OWNER,
        OWNER_GROUP,
        RAW_DEVICE,
        SPACE_USED,
        TIME_ACCESS,
        TIME_METADATA,
        TIME_MODIFY,
        MOUNTED_ON_FILE_ID,
    ]);
    /// What FSSTAT is in NFSv3.
    pub const OF_SPACE: Bitmap = Bitmap::from_numbers(&[
        FILES_AVAILABLE,
        FILES_FREE,
        FILES_TOTAL,
        SPACE_AVAILABLE,
        SPACE_FREE,
        SPACE_TOTAL,
    ]);
    /// What is asked of the root of an export, once.
    pub const OF_EXPORT: Bitmap =
        Bitmap::from_numbers(&[SUPPORTED, KIND, FH_EXPIRE_TYPE, LEASE_TIME, READ_MAX, WRITE_MAX]);
}

/// Values of attributes as they came: `fattr4`. RFC 8881 §3.3.7
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawAttributes<'a> {
    /// Which.
    pub mask: Bitmap,
    /// One behind the other.
    pub values: &'a [u8],
}

impl Encode for RawAttributes<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.mask.encode(out);
        encode_opaque(self.values, out);
    }
}

impl<'a> Decode<'a> for RawAttributes<'a> {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        Ok(Self { mask: Bitmap::decode(input)?, values: input.opaque(VALUES_BYTES_MAX)? })
    }
}

/// The struct of all attributes that are known here, and how they lie on the wire: in the order of
/// their numbers, which is the order of the list.
macro_rules! attribute_values {
    ($( $(#[$doc:meta])* $field:ident: $type:ty = $number:ident; )*) => {
        /// Values of attributes, those that are there.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Attributes4<'a> {
            $( $(#[$doc])* pub $field: Option<$type>, )*
        }

        impl<'a> Attributes4<'a> {
            const KNOWN: Bitmap = Bitmap::from_numbers(&[$( attribute::$number, )*]);

            /// Those of a set; the others left out.
            #[must_use]
            pub fn only(mut self, set: Bitmap) -> Self {
                $( if !set.has(attribute::$number) { self.$field = None; } )*
                self
            }

            /// Which of them are there.
            pub fn mask(&self) -> Bitmap {
                let mut mask = Bitmap::default();
                $( if self.$field.is_some() { mask.add(attribute::$number); } )*
                mask
            }

            fn encode_values(&self, out: &mut Vec<u8>) {
                $( if let Some(value) = &self.$field { value.encode(out); } )*
            }

            #[inline]
            fn decode_values(mask: Bitmap, input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
                let mut attributes = Self::default();
                $(
                    if mask.has(attribute::$number) {
                        attributes.$field = Some(<$type>::decode(input)?);
                    }
                )*
                Ok(attributes)
            }

            #[cfg(test)]
            pub(crate) fn sample_values(draw: &mut crate::wire::tests::Draw<'a>) -> Self {
                Self { $( $field: crate::wire::tests::Sample::sample(draw), )* }
            }
        }
    };
}

attribute_values! {
    /// Attributes that the server has.
    supported: Bitmap = SUPPORTED;
    /// What it is.
    kind: FileKind4 = KIND;
    /// Whether handles may expire; 0: they do not. RFC 8881 §4.2.3
    fh_expire_type: u32 = FH_EXPIRE_TYPE;
    /// Another value after every change.
    change: u64 = CHANGE;
    /// In bytes.
    size: u64 = SIZE;
    /// There can be hard links.
    link_support: bool = LINK_SUPPORT;
    /// There can be symbolic links.
    symlink_support: bool = SYMLINK_SUPPORT;
    /// It has attributes of other names.
    named_attributes: bool = NAMED_ATTRIBUTES;
    /// File system.
    fsid: FsId4 = FSID;
    /// No object has two handles.
    unique_handles: bool = UNIQUE_HANDLES;
    /// Seconds after which an idle client is forgotten.
    lease_time_s: u32 = LEASE_TIME;
    /// Why an entry of a listing has no attributes.
    error: Status4 = RDATTR_ERROR;
    /// Its handle.
    handle: Handle4<'a> = FILEHANDLE;
    /// Its number in the file system.
    file_id: u64 = FILE_ID;
    /// Files that the caller can still make.
    files_available: u64 = FILES_AVAILABLE;
    /// Files that can still be made.
    files_free: u64 = FILES_FREE;
    /// Files there can be.
    files_total: u64 = FILES_TOTAL;
    /// Most bytes of a READ.
    read_bytes_max: u64 = READ_MAX;
    /// Most bytes of a WRITE.
    write_bytes_max: u64 = WRITE_MAX;
    /// Permissions.
    mode: u32 = MODE;
    /// Its names.
    links: u32 = LINKS;
    /// Its owner, as text.
    owner: Name<'a> = OWNER;
    /// Its group, as text.
    owner_group: Name<'a> = OWNER_GROUP;
    /// Of a device.
    raw_device: Pair32 = RAW_DEVICE;
    /// Bytes free for the caller.
    space_available: u64 = SPACE_AVAILABLE;
    /// Bytes free.
    space_free: u64 = SPACE_FREE;
    /// Bytes in all.
    space_total: u64 = SPACE_TOTAL;
    /// Bytes it takes.
    space_used: u64 = SPACE_USED;
    /// Of its last reading.
    time_access: Time4 = TIME_ACCESS;
    /// Of its last change of any kind.
    time_metadata: Time4 = TIME_METADATA;
    /// Of the last change of its content.
    time_modify: Time4 = TIME_MODIFY;
    /// Its number in the file system that it is mounted on.
    mounted_on_file_id: u64 = MOUNTED_ON_FILE_ID;
}

impl Encode for Attributes4<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.mask().encode(out);
        let at = out.len();
        0_u32.encode(out);
        self.encode_values(out);
        // Every value is a whole number of words.
        let bytes = u32::try_from(out.len() - at - 4).expect("attributes are short");
        out[at..at + 4].copy_from_slice(&bytes.to_be_bytes());
    }
}

impl<'a> Decode<'a> for Attributes4<'a> {
    /// An attribute that is unknown here cannot be skipped, and is an error. So are bytes behind the
    /// last value.
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        let RawAttributes { mask, values } = RawAttributes::decode(input)?;
        if mask.and(Self::KNOWN) != mask {
            return Err(XdrError::Value { what: "the attributes that were asked for", value: 0 });
        }
        input.within(values, |input| {
            let attributes = Self::decode_values(mask, input)?;
            input.finish().map(|()| attributes)
        })
    }
}
