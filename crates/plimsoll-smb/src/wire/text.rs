//! Names and paths: UTF-16LE on the wire, UTF-8 where we make them.

use std::fmt;

use super::bytes::{Tail, WireError, since};

/// A text to write, or as it came.
#[derive(Clone, Copy)]
pub enum Text<'a> {
    /// Ours; converted as it is written.
    Utf8(&'a str),
    /// From the wire, UTF-16LE; an odd last byte is ignored.
    Utf16(&'a [u8]),
}

impl<'a> Text<'a> {
    /// Nothing.
    pub const EMPTY: Self = Self::Utf8("");

    /// Appends it as UTF-16LE.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Utf8(text) if text.is_ascii() => {
                out.extend(text.bytes().flat_map(|byte| [byte, 0]));
            }
            Self::Utf8(text) => out.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
            Self::Utf16(bytes) => out.extend_from_slice(&bytes[..bytes.len() & !1]),
        }
    }

    /// Bytes of it on the wire.
    pub fn wire_bytes(&self) -> usize {
        match self {
            Self::Utf8(text) => text.encode_utf16().count() * 2,
            Self::Utf16(bytes) => bytes.len() & !1,
        }
    }

    /// Has no characters.
    pub fn is_empty(&self) -> bool {
        self.wire_bytes() == 0
    }

    /// Its characters; half a surrogate pair becomes U+FFFD.
    pub fn chars(self) -> impl Iterator<Item = char> + 'a {
        char::decode_utf16(self.units()).map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Its UTF-16 units.
    pub fn units(self) -> impl Iterator<Item = u16> + 'a {
        let (utf8, utf16): (&str, &[u8]) = match self {
            Self::Utf8(text) => (text, &[]),
            Self::Utf16(bytes) => ("", bytes),
        };
        let (pairs, _) = utf16.as_chunks::<2>();
        utf8.encode_utf16().chain(pairs.iter().map(|pair| u16::from_le_bytes(*pair)))
    }
}

impl<'a> Tail<'a> for Text<'a> {
    #[inline]
    fn from_wire(bytes: &'a [u8], _count: u32) -> Result<Self, WireError> {
        Ok(Self::Utf16(bytes))
    }

    #[inline]
    fn append(self, out: &mut Vec<u8>) -> u32 {
        let at = out.len();
        self.encode(out);
        since(out, at)
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::Utf8(text)
    }
}

impl Default for Text<'_> {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// The same text, however it is stored.
impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.units().eq(other.units())
    }
}

impl Eq for Text<'_> {}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        *self == Text::Utf8(other)
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == Text::Utf8(other)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chars().try_for_each(|char| fmt::Write::write_char(f, char))
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}
