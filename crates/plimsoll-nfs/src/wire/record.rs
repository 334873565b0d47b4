//! Record marking: messages on a stream. RFC 5531 §11.
//!
//! A record is one or more fragments, each behind four bytes: the top bit says it is the last,
//! the other 31 bits how long it is.

use std::mem;

/// Longest record that is taken: twice the most data of a READ, so with room for the rest.
pub const RECORD_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Bytes before a fragment.
pub(crate) const MARK_BYTES: usize = 4;

const LAST: u32 = 1 << 31;

/// The stream cannot be read on: a record, of which these bytes are announced, is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record of {bytes} bytes or more; at most {RECORD_BYTES_MAX} are read")]
pub struct RecordTooLong {
    /// At least so long.
    pub bytes: u64,
}

/// Reserves the four bytes before a record; answers with where it begins, for [`finish`].
#[inline]
pub fn begin(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    at
}

/// Ends the record that [`begin`] began at `at`: everything since is one fragment, the last.
#[inline]
pub fn finish(out: &mut [u8], at: usize) {
    let bytes = u32::try_from(out.len() - at - 4).expect("a record is shorter than 2 GiB");
    out[at..at + 4].copy_from_slice(&(bytes | LAST).to_be_bytes());
}

/// Finds the records in a stream of bytes. A record that arrives whole and in one fragment is
/// handed on where it lies; others are put together here.
#[derive(Debug, Default)]
pub struct Assembler {
    /// Fragments of a record so far.
    record: Vec<u8>,
    /// The record was handed on with the last call.
    handed_on: bool,
    /// Header bytes of the next fragment so far.
    header: [u8; 4],
    header_bytes: usize,
    /// To come of the present fragment; `None` while its header is read.
    left: Option<usize>,
    /// The present fragment is the last.
    last: bool,
}

impl Assembler {
    /// Between records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every record that was begun has been handed on.
    pub const fn is_between_records(&self) -> bool {
        self.left.is_none() && self.header_bytes == 0 && (self.handed_on || self.record.is_empty())
    }

    /// Bytes of incomplete records held.
    pub fn held_bytes(&self) -> usize {
        if self.handed_on { 0 } else { self.record.len() + self.header_bytes }
    }

    /// Forgets what has arrived, for a new connection. Keeps the memory.
    pub fn reset(&mut self) {
        *self = Self { record: mem::take(&mut self.record), ..Self::default() };
        self.record.clear();
    }

    /// Hands every record that `bytes` completes to `each`. After an error the stream is of no
    /// use any more.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), RecordTooLong> {
        while let Some(record) = self.take(&mut bytes)? {
            each(record);
        }
        Ok(())
    }

    /// The next record that is complete, taking its bytes from the front of `bytes`; when there
    /// is none, all of `bytes` has been taken.
    #[inline]
    pub fn take<'r, 'b: 'r>(
        &'r mut self,
        bytes: &mut &'b [u8],
    ) -> Result<Option<&'r [u8]>, RecordTooLong> {
        if mem::take(&mut self.handed_on) {
            self.record.clear();
        }
        if let Some((header, rest)) = bytes.split_first_chunk::<4>()
            && self.is_between_records()
        {
            let header = u32::from_be_bytes(*header);
            let length = (header & !LAST) as usize;
            if header & LAST != 0 && length <= RECORD_BYTES_MAX && length <= rest.len() {
                let (record, rest) = rest.split_at(length);
                *bytes = rest;
                return Ok(Some(record));
            }
        }
        self.assemble(bytes)
    }

    fn assemble(&mut self, bytes: &mut &[u8]) -> Result<Option<&[u8]>, RecordTooLong> {
        loop {
            let left = match self.left {
                Some(left) => left,
                None => match self.read_header(bytes)? {
                    Some(left) => left,
                    None => return Ok(None),
                },
            };
            let (taken, rest) = bytes.split_at(left.min(bytes.len()));
            self.record.extend_from_slice(taken);
            *bytes = rest;
            if taken.len() < left {
                self.left = Some(left - taken.len());
                return Ok(None);
            }
            self.left = None;
            if self.last {
                self.handed_on = true;
                return Ok(Some(&self.record));
            }
        }
    }

    /// Length of the fragment that begins; `None` when its header is incomplete.
    fn read_header(&mut self, bytes: &mut &[u8]) -> Result<Option<usize>, RecordTooLong> {
        let missing = 4 - self.header_bytes;
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.header[self.header_bytes..][..taken.len()].copy_from_slice(taken);
        self.header_bytes += taken.len();
        *bytes = rest;
        if self.header_bytes < 4 {
            return Ok(None);
        }
        let header = u32::from_be_bytes(self.header);
        let length = (header & !LAST) as usize;
        if length > RECORD_BYTES_MAX - self.record.len() {
            return Err(RecordTooLong { bytes: (self.record.len() + length) as u64 });
        }
        self.header_bytes = 0;
        self.left = Some(length);
        self.last = header & LAST != 0;
        Ok(Some(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The records in `stream` when it arrives in pieces of these lengths, then all the rest.
    fn assemble(stream: &[u8], pieces: &[usize]) -> Result<Vec<Vec<u8>>, RecordTooLong> {
        let mut assembler = Assembler::new();
        let mut records = Vec::new();
        let mut rest = stream;
        for piece in pieces.iter().chain([&stream.len()]) {
            let (piece, after) = rest.split_at((*piece).min(rest.len()));
            assembler.push(piece, |record| records.push(record.to_vec()))?;
            rest = after;
        }
        assert_eq!(assembler.held_bytes(), 0);
        Ok(records)
    }

    fn fragment(bytes: &[u8], last: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&(bytes.len() as u32 | last).to_be_bytes());
        out.extend_from_slice(bytes);
    }

    /// Two records, the second in three fragments of which one is empty, and a third.
    fn stream() -> (Vec<u8>, Vec<Vec<u8>>) {
        let mut out = Vec::new();
        let at = begin(&mut out);
        out.extend_from_slice(b"whole");
        finish(&mut out, at);
        fragment(b"in ", 0, &mut out);
        fragment(b"", 0, &mut out);
        fragment(b"parts", LAST, &mut out);
        fragment(b"", LAST, &mut out);
        fragment(b"", 0, &mut out);
        fragment(b"end", LAST, &mut out);
        (out, [&b"whole"[..], b"in parts", b"", b"end"].map(<[u8]>::to_vec).to_vec())
    }

    #[test]
    fn records_are_found_at_every_split() {
        let (stream, records) = stream();
        for first in 0..=stream.len() {
            for second in 0..=stream.len() - first {
                assert_eq!(assemble(&stream, &[first, second]), Ok(records.clone()));
            }
        }
        assert_eq!(assemble(&stream, &vec![1; stream.len()]), Ok(records));
    }

    #[test]
    fn a_whole_record_is_handed_on_where_it_lies() {
        let (stream, _) = stream();
        let mut bytes = &stream[..];
        let mut assembler = Assembler::new();
        let record = assembler.take(&mut bytes).unwrap().unwrap();
        assert!(std::ptr::eq(record, &stream[4..9]));
    }

    #[test]
    fn a_record_too_long_is_refused_before_it_arrives() {
        let too_long = RECORD_BYTES_MAX as u32 + 1;
        for header in [too_long, too_long | LAST, u32::MAX, LAST - 1] {
            let mut assembler = Assembler::new();
            let error = assembler.push(&header.to_be_bytes(), |_| panic!("no record"));
            assert_eq!(error, Err(RecordTooLong { bytes: u64::from(header & !LAST) }));
            assert!(assembler.held_bytes() <= 4);
        }
        let mut stream = Vec::new();
        fragment(&vec![7; RECORD_BYTES_MAX - 1], 0, &mut stream);
        fragment(b"x", 0, &mut stream);
        let mut full = stream.clone();
        fragment(b"", LAST, &mut full);
        assert_eq!(assemble(&full, &[]).unwrap()[0].len(), RECORD_BYTES_MAX);
        fragment(b"y", LAST, &mut stream);
        let error = RecordTooLong { bytes: RECORD_BYTES_MAX as u64 + 1 };
        assert_eq!(assemble(&stream, &[]), Err(error));
    }

    #[test]
    fn a_new_connection_begins_between_records() {
        let (stream, records) = stream();
        let mut assembler = Assembler::new();
        for cut in 0..stream.len() {
            assembler.push(&stream[..cut], |_| {}).unwrap();
            assembler.reset();
            let mut found = Vec::new();
            assembler.push(&stream, |record| found.push(record.to_vec())).unwrap();
            assert_eq!(found, records);
            assembler.reset();
        }
    }

    proptest! {
        #[test]
        fn any_fragments_in_any_pieces_give_the_records(
            records in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..4),
                0..8,
            ),
            pieces in prop::collection::vec(0usize..40, 0..20),
        ) {
            let mut stream = Vec::new();
            for fragments in &records {
                for (n, bytes) in fragments.iter().enumerate() {
                    let last = if n + 1 == fragments.len() { LAST } else { 0 };
                    fragment(bytes, last, &mut stream);
                }
            }
            let whole: Vec<Vec<u8>> = records.iter().map(|fragments| fragments.concat()).collect();
            prop_assert_eq!(assemble(&stream, &pieces), Ok(whole));
        }
    }
}
