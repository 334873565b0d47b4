//! Names of the set without an allocation.

use std::fmt;

/// "slot" and the ten digits of the largest number.
const NAME_BYTES_MAX: usize = 14;
const DIGITS_MAX: usize = 10;

/// The name of a directory entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EntryName {
    bytes: [u8; NAME_BYTES_MAX],
    length: u8,
}

impl EntryName {
    /// `prefix` (four letters at most) and `number` with at least `digits` digits.
    pub(super) fn numbered(prefix: &str, number: u32, digits: usize) -> Self {
        let mut reversed = [b'0'; DIGITS_MAX];
        let mut rest = number;
        let mut used = 0;
        while rest > 0 {
            reversed[used] = b'0' + (rest % 10) as u8;
            rest /= 10;
            used += 1;
        }
        let used = used.max(digits.min(DIGITS_MAX));
        let mut bytes = [0; NAME_BYTES_MAX];
        bytes[..prefix.len()].copy_from_slice(prefix.as_bytes());
        let places = bytes[prefix.len()..].iter_mut();
        for (place, digit) in places.zip(reversed[..used].iter().rev()) {
            *place = *digit;
        }
        Self { bytes, length: (prefix.len() + used) as u8 }
    }

    /// As it goes over the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("letters and digits are always UTF-8")
    }
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl AsRef<[u8]> for EntryName {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}
