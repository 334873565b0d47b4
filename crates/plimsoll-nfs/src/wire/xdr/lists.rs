//! Linked lists and arrays. They are read where they lie.

use std::fmt;

use super::{Decode, Encode, XdrError, XdrIn};

/// A linked list (RFC 4506 §4.19: each entry behind a `true`, a `false` at the end). To send,
/// made from a slice; received, every entry has been checked and is decoded again on the way.
#[derive(Clone, Copy)]
pub enum List<'a, T> {
    /// To send.
    Values(&'a [T]),
    /// As on the wire, the last `false` included.
    Encoded(&'a [u8]),
}

impl<'a, T: Copy> List<'a, T> {
    /// A list to send.
    pub fn new(values: &'a [T]) -> Self {
        Self::Values(values)
    }

    /// The entries in order.
    pub fn iter(&self) -> ListIter<'a, T> {
        ListIter(*self)
    }
}

impl<'a, T: Copy + Decode<'a>> IntoIterator for List<'a, T> {
    type Item = T;
    type IntoIter = ListIter<'a, T>;
    fn into_iter(self) -> ListIter<'a, T> {
        self.iter()
    }
}

/// Entries of a [`List`].
#[derive(Clone, Copy)]
pub struct ListIter<'a, T>(List<'a, T>);

impl<T> ListIter<'_, T> {
    /// There are no more; decodes nothing.
    pub(crate) fn is_empty(&self) -> bool {
        match self.0 {
            List::Values(values) => values.is_empty(),
            // As `XdrIn::bool` reads a server's booleans.
            List::Encoded(bytes) => bytes.is_empty() || bytes.starts_with(&[0; 4]),
        }
    }
}

impl<'a, T: Copy + Decode<'a>> Iterator for ListIter<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            List::Values(values) => {
                let (first, rest) = values.split_first()?;
                *values = rest;
                Some(*first)
            }
            List::Encoded(bytes) => {
                // Decoding has shown that there is no error in here, and noted the flaws.
                let mut input = XdrIn::tolerant(bytes);
                let entry = Option::decode(&mut input).ok().flatten();
                *bytes = input.rest();
                entry
            }
        }
    }
}

impl<T: Encode> Encode for List<'_, T> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Values(values) => {
                for value in *values {
                    true.encode(out);
                    value.encode(out);
                }
                false.encode(out);
            }
            Self::Encoded(bytes) => out.extend_from_slice(bytes),
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for List<'a, T> {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        let start = input.rest();
        while Option::<T>::decode(input)?.is_some() {}
        let bytes = &start[..start.len() - input.rest().len()];
        Ok(Self::Encoded(bytes))
    }
}

impl<'a, T: Copy + Decode<'a> + PartialEq> PartialEq for List<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: Copy + Decode<'a> + Eq> Eq for List<'a, T> {}

impl<'a, T: Copy + Decode<'a> + fmt::Debug> fmt::Debug for List<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A counted array of at most `MAX` numbers. RFC 4506 §4.13
#[derive(Clone, Copy)]
pub enum U32List<'a, const MAX: u32> {
    /// To send.
    Values(&'a [u32]),
    /// As on the wire, without the count.
    Encoded(&'a [[u8; 4]]),
}

impl<'a, const MAX: u32> U32List<'a, MAX> {
    /// The numbers in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + 'a {
        let (values, encoded): (&[u32], &[[u8; 4]]) = match *self {
            Self::Values(values) => (values, &[]),
            Self::Encoded(encoded) => (&[], encoded),
        };
        values.iter().copied().chain(encoded.iter().map(|word| u32::from_be_bytes(*word)))
    }
}

impl<const MAX: u32> Encode for U32List<'_, MAX> {
    fn encode(&self, out: &mut Vec<u8>) {
        let count = self.iter().count();
        u32::try_from(count).expect("no array has 4 Gi words").encode(out);
        self.iter().for_each(|word| word.encode(out));
    }
}

impl<'a, const MAX: u32> Decode<'a> for U32List<'a, MAX> {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        let count = input.u32()?;
        if count > MAX {
            return Err(XdrError::TooLong { bytes: count, max: MAX });
        }
        let (numbers, _) = input.rest().as_chunks::<4>();
        let numbers = numbers.get(..count as usize).ok_or(XdrError::Truncated)?;
        input.skip(numbers.len() * 4);
        Ok(Self::Encoded(numbers))
    }
}

impl<const MAX: u32> PartialEq for U32List<'_, MAX> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<const MAX: u32> Eq for U32List<'_, MAX> {}

impl<const MAX: u32> fmt::Debug for U32List<'_, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
