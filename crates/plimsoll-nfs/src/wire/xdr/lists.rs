//! Linked lists and arrays. They are read where they lie.

use std::fmt;

use super::{Decode, Encode, XdrError, XdrIn};

/// A linked list (RFC 4506 §4.19: each entry behind a `true`, a `false` at the end). To send,
/// made from a slice; received, every entry has been checked and is decoded again on the way.
#[derive(Clone, Copy)]
pub struct List<'a, T> {
    source: ListSource<'a, T>,
}

#[derive(Clone, Copy)]
enum ListSource<'a, T> {
    Values(&'a [T]),
    /// As on the wire, the last `false` included.
    Encoded(&'a [u8]),
}

impl<'a, T: Copy> List<'a, T> {
    /// A list to send.
    pub fn new(values: &'a [T]) -> Self {
        Self { source: ListSource::Values(values) }
    }

    /// The entries in order.
    pub fn iter(&self) -> ListIter<'a, T> {
        ListIter { source: self.source }
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
pub struct ListIter<'a, T> {
    source: ListSource<'a, T>,
}

impl<T> ListIter<'_, T> {
    /// There are no more; decodes nothing.
    pub(crate) fn is_empty(&self) -> bool {
        match self.source {
            ListSource::Values(values) => values.is_empty(),
            // As `XdrIn::bool` reads a server's booleans.
            ListSource::Encoded(bytes) => bytes.is_empty() || bytes.starts_with(&[0; 4]),
        }
    }
}

impl<'a, T: Copy + Decode<'a>> Iterator for ListIter<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match &mut self.source {
            ListSource::Values(values) => {
                let (first, rest) = values.split_first()?;
                *values = rest;
                Some(*first)
            }
            ListSource::Encoded(bytes) => {
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
        match self.source {
            ListSource::Values(values) => {
                for value in values {
                    true.encode(out);
                    value.encode(out);
                }
                false.encode(out);
            }
            ListSource::Encoded(bytes) => out.extend_from_slice(bytes),
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for List<'a, T> {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        let start = input.rest();
        while Option::<T>::decode(input)?.is_some() {}
        let bytes = &start[..start.len() - input.rest().len()];
        Ok(Self { source: ListSource::Encoded(bytes) })
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

/// A counted array of numbers. RFC 4506 §4.13
#[derive(Clone, Copy)]
pub struct Words<'a> {
    source: WordsSource<'a>,
}

#[derive(Clone, Copy)]
enum WordsSource<'a> {
    Values(&'a [u32]),
    /// As on the wire, without the count.
    Encoded(&'a [[u8; 4]]),
}

impl<'a> Words<'a> {
    /// An array to send.
    pub const fn new(values: &'a [u32]) -> Self {
        Self { source: WordsSource::Values(values) }
    }

    /// The numbers in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + 'a {
        let (values, encoded): (&[u32], &[[u8; 4]]) = match self.source {
            WordsSource::Values(values) => (values, &[]),
            WordsSource::Encoded(encoded) => (&[], encoded),
        };
        values.iter().copied().chain(encoded.iter().map(|word| u32::from_be_bytes(*word)))
    }

    /// Takes an array of at most `max` numbers.
    pub fn decode(input: &mut XdrIn<'a>, max: u32) -> Result<Self, XdrError> {
        let count = input.u32()?;
        if count > max {
            return Err(XdrError::TooLong { bytes: count, max });
        }
        let (words, _) = input.rest().as_chunks::<4>();
        let words = words.get(..count as usize).ok_or(XdrError::Truncated)?;
        input.skip(words.len() * 4);
        Ok(Self { source: WordsSource::Encoded(words) })
    }
}

impl Encode for Words<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        let count = self.iter().count();
        u32::try_from(count).expect("no array has 4 Gi words").encode(out);
        self.iter().for_each(|word| word.encode(out));
    }
}

impl PartialEq for Words<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Words<'_> {}

impl fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
