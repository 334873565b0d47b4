//! External data representation, with names and paths: bytes that are mostly text. RFC 4506.

mod lists;

use std::fmt;

use super::flaws::{Flaw, Flaws};

pub use self::lists::{List, ListIter, U32List};

/// Most data bytes of one READ or WRITE that are taken: what servers offer at most today.
pub const DATA_BYTES_MAX: u32 = 1024 * 1024;

/// Why bytes are not the message they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XdrError {
    /// The message ends too early.
    #[error("the message ends too early")]
    Truncated,
    /// A length beyond what is allowed there.
    #[error("a length of {bytes} is more than the {max} allowed there")]
    TooLong {
        /// As on the wire.
        bytes: u32,
        /// Limit.
        max: u32,
    },
    /// A value that its type does not have.
    #[error("{value} is no value of {what}")]
    Value {
        /// The type.
        what: &'static str,
        /// As on the wire.
        value: u32,
    },
    /// Bytes after the end of the message.
    #[error("{bytes} bytes follow the end of the message")]
    Excess {
        /// How many.
        bytes: usize,
    },
}

/// What can be put on the wire.
pub trait Encode {
    /// Appends itself.
    fn encode(&self, out: &mut Vec<u8>);
}

/// What can be read from the wire.
pub trait Decode<'a>: Sized {
    /// Takes itself from the front of `input`.
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError>;

    /// The same where it may be left out. RFC 4506 §4.19
    #[inline]
    fn decode_optional(input: &mut XdrIn<'a>) -> Result<Option<Self>, XdrError> {
        if input.bool()? { Self::decode(input).map(Some) } else { Ok(None) }
    }
}

/// Bytes being read.
#[derive(Clone, Copy, Debug)]
pub struct XdrIn<'a> {
    rest: &'a [u8],
    reading: Reading,
    flaws: Flaws,
}

/// What is done about what differs from the specification and means the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// It is an error.
    Strict,
    /// It is noted.
    Tolerant,
}

impl<'a> XdrIn<'a> {
    /// Reads strictly from the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, reading: Reading::Strict, flaws: Flaws::NONE }
    }

    /// Reads what a server sent from the start of `bytes`: what differs from its specification and
    /// means the same is noted ([`XdrIn::into_flaws`]).
    #[inline]
    pub fn tolerant(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, reading: Reading::Tolerant, flaws: Flaws::NONE }
    }

    /// Notes a flaw; false where none is tolerated.
    #[inline]
    pub(crate) fn tolerates(&mut self, flaw: Flaw) -> bool {
        let tolerates = self.reading == Reading::Tolerant;
        if tolerates {
            self.flaws.note(flaw);
        }
        tolerates
    }

    /// Takes what `part` takes from `bytes`, a part of this message.
    #[inline]
    pub(crate) fn within<T>(
        &mut self,
        bytes: &'a [u8],
        part: impl FnOnce(&mut Self) -> Result<T, XdrError>,
    ) -> Result<T, XdrError> {
        let mut within = Self { rest: bytes, ..*self };
        let taken = part(&mut within);
        self.flaws = within.flaws;
        taken
    }

    /// Goes `bytes` further, or to the end.
    #[inline]
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or(&[]);
    }

    /// What has not been read.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// What was noted so far.
    #[inline]
    pub(crate) fn flaws(&self) -> Flaws {
        self.flaws
    }

    /// Everything has been read, or an error.
    #[inline]
    pub fn finish(self) -> Result<(), XdrError> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(XdrError::Excess { bytes }),
        }
    }

    /// The flaws noted in a message, once every field of its type has been read.
    #[inline]
    pub fn into_flaws(mut self) -> Flaws {
        if !self.rest.is_empty() {
            self.flaws.note(Flaw::TrailingBytes);
        }
        self.flaws
    }

    /// `N` bytes; a multiple of 4, as no padding is skipped.
    #[inline]
    pub fn fixed<const N: usize>(&mut self) -> Result<&'a [u8; N], XdrError> {
        const { assert!(N.is_multiple_of(4), "fixed opaque data without padding") };
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(XdrError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Unsigned integer. RFC 4506 §4.2
    #[inline]
    pub fn u32(&mut self) -> Result<u32, XdrError> {
        self.fixed().copied().map(u32::from_be_bytes)
    }

    /// Unsigned hyper integer. RFC 4506 §4.5
    #[inline]
    pub fn u64(&mut self) -> Result<u64, XdrError> {
        self.fixed().copied().map(u64::from_be_bytes)
    }

    /// Boolean. RFC 4506 §4.4
    #[inline]
    pub fn bool(&mut self) -> Result<bool, XdrError> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ if self.tolerates(Flaw::Boolean) => Ok(true),
            value => Err(XdrError::Value { what: "bool", value }),
        }
    }

    /// Opaque data or a string of at most `max` bytes. RFC 4506 §4.10, §4.11.
    #[inline]
    pub fn opaque(&mut self, max: u32) -> Result<&'a [u8], XdrError> {
        let bytes = self.u32()?;
        if bytes > max {
            return Err(XdrError::TooLong { bytes, max });
        }
        let bytes = bytes as usize;
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(XdrError::Truncated)?;
        match rest.split_at_checked(padding(bytes)) {
            Some((padding, rest)) => {
                self.rest = rest;
                if padding.iter().any(|byte| *byte != 0) {
                    // Accepted of calls too, as ever.
                    self.flaws.note(Flaw::NonzeroPadding);
                }
            }
            None if self.tolerates(Flaw::MissingPadding) => self.rest = &[],
            None => return Err(XdrError::Truncated),
        }
        Ok(taken)
    }
}

/// Bytes that fill up the last word of opaque data.
#[inline]
fn padding(bytes: usize) -> usize {
    bytes.wrapping_neg() % 4
}

/// Appends opaque data with its length.
#[inline]
pub fn encode_opaque(bytes: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(bytes.len()).expect("no part of a message has 4 GiB");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(&[0; 3][..padding(bytes.len())]);
}

/// Bytes that opaque data of a length takes on the wire.
#[inline]
pub const fn opaque_bytes(length: usize) -> usize {
    4 + length.next_multiple_of(4)
}

macro_rules! primitive {
    ($type:ty, $read:ident, $value:ident => $bytes:expr) => {
        impl Encode for $type {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                let $value = *self;
                out.extend_from_slice(&$bytes);
            }
        }
        impl<'a> Decode<'a> for $type {
            #[inline]
            fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
                input.$read()
            }
        }
    };
}

primitive!(u32, u32, v => v.to_be_bytes());
primitive!(u64, u64, v => v.to_be_bytes());
primitive!(bool, bool, v => u32::from(v).to_be_bytes());

/// Void. RFC 4506 §4.16
impl Encode for () {
    #[inline]
    fn encode(&self, _out: &mut Vec<u8>) {}
}

impl<'a> Decode<'a> for () {
    #[inline]
    fn decode(_input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        Ok(())
    }
}

/// Fixed opaque data. RFC 4506 §4.9
impl<const N: usize> Encode for [u8; N] {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        const { assert!(N.is_multiple_of(4), "fixed opaque data without padding") };
        out.extend_from_slice(self);
    }
}

impl<'a, const N: usize> Decode<'a> for [u8; N] {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        input.fixed().copied()
    }
}

/// Data of a READ or WRITE, at most [`DATA_BYTES_MAX`].
impl Encode for &[u8] {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        encode_opaque(self, out);
    }
}

impl<'a> Decode<'a> for &'a [u8] {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        input.opaque(DATA_BYTES_MAX)
    }
}

/// Optional data. RFC 4506 §4.19
impl<T: Encode> Encode for Option<T> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Option<T> {
    #[inline]
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        T::decode_optional(input)
    }
}

/// Longest name of a file. RFC 1094 §3.5, and what file systems take.
pub const NAME_BYTES_MAX: usize = 255;
/// Longest name that is decoded: servers answer a name beyond [`NAME_BYTES_MAX`] with
/// `NAMETOOLONG`, and for that must be able to read it.
pub const NAME_BYTES_DECODED_MAX: u32 = 1024;
/// Longest path of an export or text of a symbolic link. RFC 1094 §3.5
pub const PATH_BYTES_MAX: u32 = 1024;

/// Name of a file within its directory, or of a host. Any bytes; the server refuses invalid ones
/// (`/`, nothing at all, more than [`NAME_BYTES_MAX`]). RFC 1813 §2.5 `filename3`
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name<'a>(pub &'a [u8]);

/// Path of an export, or text of a symbolic link. RFC 1813 §2.5 `nfspath3`
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path<'a>(pub &'a [u8]);

macro_rules! text {
    ($name:ident, $max:expr) => {
        impl Encode for $name<'_> {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                encode_opaque(self.0, out);
            }
        }
        impl<'a> Decode<'a> for $name<'a> {
            #[inline]
            fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
                input.opaque($max).map(Self)
            }
        }
        impl fmt::Display for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0.escape_ascii())
            }
        }
        impl fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "\"{self}\"")
            }
        }
        impl<'a> From<&'a str> for $name<'a> {
            fn from(text: &'a str) -> Self {
                Self(text.as_bytes())
            }
        }
    };
}

text!(Name, NAME_BYTES_DECODED_MAX);
text!(Path, PATH_BYTES_MAX);
