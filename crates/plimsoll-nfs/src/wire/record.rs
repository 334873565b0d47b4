//! Record marking: messages on a stream. RFC 5531 §11.
//!
//! A record is one or more fragments, each behind four bytes: the top bit says it is the last,
//! the other 31 bits how long it is.

use plimsoll_protocol::assembler::{self, MARK_BYTES, Marks, Part};

pub use plimsoll_protocol::assembler::begin;

/// Longest record that is taken: twice the most data of a READ, so with room for the rest.
pub const RECORD_BYTES_MAX: usize = 2 * 1024 * 1024;

const LAST: u32 = 1 << 31;

/// The stream cannot be read on: a record, of which these bytes are announced, is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record of {bytes} bytes or more; at most {RECORD_BYTES_MAX} are read")]
pub struct RecordTooLong {
    /// At least so long.
    pub bytes: u64,
}

/// Ends the record that [`begin`] began at `at`: everything since is one fragment, the last.
#[inline]
pub fn finish(out: &mut [u8], at: usize) {
    let bytes = u32::try_from(out.len() - at - 4).expect("a record is shorter than 2 GiB");
    out[at..at + 4].copy_from_slice(&(bytes | LAST).to_be_bytes());
}

/// Finds the records in a stream of bytes.
pub type Assembler = assembler::Assembler<Fragments>;

/// A record is one or more fragments.
#[derive(Debug, Default)]
pub struct Fragments;

impl Marks for Fragments {
    type Error = RecordTooLong;

    #[inline]
    fn read(mark: [u8; MARK_BYTES], before: usize) -> Result<Part, RecordTooLong> {
        let mark = u32::from_be_bytes(mark);
        let bytes = (mark & !LAST) as usize;
        let too_long = RecordTooLong { bytes: (before + bytes) as u64 };
        let part = Part { bytes, is_last: mark & LAST != 0 };
        if bytes > RECORD_BYTES_MAX - before { Err(too_long) } else { Ok(part) }
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
            assembler.push(piece, |record| {
                records.push(record.to_vec());
                Ok(())
            })?;
            rest = after;
        }
        assert_eq!(assembler.buffered_bytes(), 0);
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
            let error = assembler.push(&header.to_be_bytes(), |_| panic!("a record"));
            assert_eq!(error, Err(RecordTooLong { bytes: u64::from(header & !LAST) }));
            assert!(assembler.buffered_bytes() <= 4);
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
            assembler.push(&stream[..cut], |_| Ok::<_, RecordTooLong>(())).unwrap();
            assembler.reset();
            let mut received = Vec::new();
            let each = |record: &[u8]| {
                received.push(record.to_vec());
                Ok::<_, RecordTooLong>(())
            };
            assembler.push(&stream, each).unwrap();
            assert_eq!(received, records);
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
