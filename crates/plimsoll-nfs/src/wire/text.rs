//! Names and paths: bytes that are mostly text.

use std::fmt;

use super::xdr::{Decode, Encode, XdrError, XdrIn, encode_opaque};

/// Longest name of a file. RFC 1094 §3.5, and what file systems take.
pub const NAME_BYTES_MAX: usize = 255;
/// Longest name that is decoded: servers answer a name beyond [`NAME_BYTES_MAX`] with
/// `NAMETOOLONG`, and for that must be able to read it.
pub const NAME_BYTES_DECODED_MAX: u32 = 1024;
/// Longest path of an export or text of a symbolic link. RFC 1094 §3.5
pub const PATH_BYTES_MAX: u32 = 1024;

/// Name of a file within its directory, or of a host. Any bytes; what it must not hold (`/`,
/// nothing at all, more than [`NAME_BYTES_MAX`]) the server says. RFC 1813 §2.5 `filename3`
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
