//! Where a reply's body ends. RFC 9112 §6.3, §7.1.

use super::Malformed;
use super::head::Head;

/// Longest chunk-size line with its extensions.
const CHUNK_LINE_BYTES_MAX: u32 = 4 * 1024;
/// All trailer fields together; same as the header.
const TRAILER_BYTES_MAX: u32 = 64 * 1024;

/// How the end of a body is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// This many bytes are still to come.
    Length(u64),
    /// Chunks.
    Chunked(Chunks),
    /// The server closes the connection.
    UntilClose,
}

impl Framing {
    /// Framing of the body that follows `head`, the reply to a HEAD request or another.
    pub fn of(head: &Head, method: super::request::Method) -> Self {
        if method == super::request::Method::HEAD || matches!(head.status, 100..=199 | 204 | 304) {
            return Self::Length(0);
        }
        match (head.chunked, head.content_length) {
            (true, _) => Self::Chunked(Chunks::default()),
            (false, Some(length)) => Self::Length(length),
            (false, None) => Self::UntilClose,
        }
    }

    /// The body has ended.
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunks { state: ChunkState::Done, .. }))
    }

    /// Takes bytes from the front of `input`: how many, and which of them are payload. Takes
    /// nothing only when the body is complete or `input` is empty.
    pub fn take<'b>(&mut self, input: &'b [u8]) -> Result<(usize, &'b [u8]), Malformed> {
        match self {
            Self::UntilClose => Ok((input.len(), input)),
            Self::Length(left) => {
                let n = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                *left -= n as u64;
                Ok((n, &input[..n]))
            }
            Self::Chunked(chunks) => chunks.take(input),
        }
    }
}

/// Reader of the chunked coding, one piece at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    state: ChunkState,
    /// Bytes of the current line, or of the trailer, so far.
    line_bytes: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkState {
    /// Before the first hexadecimal digit.
    #[default]
    Start,
    /// Among the digits.
    Size(u64),
    /// After the digits: extensions up to CR.
    Extension(u64),
    /// LF of the size line.
    SizeEnd(u64),
    /// This much of the chunk is to come.
    Data(u64),
    /// CR after the data.
    DataCr,
    /// LF after the data.
    DataLf,
    /// Start of a trailer line.
    TrailerStart,
    /// Within a trailer line.
    Trailer,
    /// LF of a trailer line.
    TrailerLf,
    /// LF of the empty line.
    LastLf,
    Done,
}

impl Chunks {
    fn take<'b>(&mut self, input: &'b [u8]) -> Result<(usize, &'b [u8]), Malformed> {
        let mut at = 0;
        while at < input.len() && self.state != ChunkState::Done {
            if let ChunkState::Data(left) = self.state {
                let rest = &input[at..];
                let n = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
                let left = left - n as u64;
                self.state = if left == 0 { ChunkState::DataCr } else { ChunkState::Data(left) };
                return Ok((at + n, &rest[..n]));
            }
            self.state = self.step(input[at])?;
            at += 1;
        }
        Ok((at, &[]))
    }

    fn step(&mut self, byte: u8) -> Result<ChunkState, Malformed> {
        use ChunkState as S;
        self.count_line_byte()?;
        Ok(match (self.state, byte) {
            (S::Start, _) => S::Size(hex_digit(byte)?),
            (S::Size(size) | S::Extension(size), b'\r') => S::SizeEnd(size),
            (S::Size(size), b';' | b' ' | b'\t') => S::Extension(size),
            (S::Size(size), _) => {
                if size >> 60 != 0 {
                    return Err(Malformed::ChunkSize);
                }
                S::Size(size << 4 | hex_digit(byte)?)
            }
            (S::Extension(_), b'\n') => return Err(Malformed::ChunkSize),
            (S::Extension(size), _) => S::Extension(size),
            (S::SizeEnd(size), b'\n') => {
                self.line_bytes = 0;
                if size == 0 { S::TrailerStart } else { S::Data(size) }
            }
            (S::SizeEnd(_), _) => return Err(Malformed::ChunkSize),
            (S::DataCr, b'\r') => S::DataLf,
            (S::DataLf, b'\n') => {
                self.line_bytes = 0;
                S::Start
            }
            (S::TrailerStart, b'\r') => S::LastLf,
            (S::TrailerStart | S::Trailer, b'\n') => return Err(Malformed::ChunkEnd),
            (S::Trailer, b'\r') => S::TrailerLf,
            (S::TrailerStart | S::Trailer, _) => S::Trailer,
            (S::TrailerLf, b'\n') => S::TrailerStart,
            (S::LastLf, b'\n') => S::Done,
            _ => return Err(Malformed::ChunkEnd),
        })
    }

    fn count_line_byte(&mut self) -> Result<(), Malformed> {
        use ChunkState as S;
        self.line_bytes += 1;
        let in_trailer =
            matches!(self.state, S::TrailerStart | S::Trailer | S::TrailerLf | S::LastLf);
        match in_trailer {
            true if self.line_bytes > TRAILER_BYTES_MAX => Err(Malformed::TrailerTooLong),
            false if self.line_bytes > CHUNK_LINE_BYTES_MAX => Err(Malformed::ChunkSize),
            _ => Ok(()),
        }
    }
}

fn hex_digit(byte: u8) -> Result<u64, Malformed> {
    char::from(byte).to_digit(16).map(u64::from).ok_or(Malformed::ChunkSize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads `input` in pieces of the given length: the payload, and what follows the body.
    fn read(input: &[u8], piece: usize) -> Result<(Vec<u8>, Vec<u8>), Malformed> {
        let mut framing = Framing::Chunked(Chunks::default());
        let mut payload = Vec::new();
        let mut after = Vec::new();
        for mut part in input.chunks(piece) {
            while !part.is_empty() && !framing.is_complete() {
                let (taken, data) = framing.take(part)?;
                payload.extend_from_slice(data);
                part = &part[taken..];
            }
            after.extend_from_slice(part);
        }
        Ok((payload, after))
    }

    #[test]
    fn chunks_with_extensions_and_trailers_are_read_at_any_fragmentation() {
        let input = b"4;a=\"b\"\r\nWiki\r\n6 \r\npedia \r\n\
            E\r\nin \r\n\r\nchunks.\r\n0\r\nX: y\r\n\r\nrest";
        for piece in 1..=input.len() {
            let (payload, after) = read(input, piece).unwrap();
            assert_eq!(payload, b"Wikipedia in \r\n\r\nchunks.");
            assert_eq!(after, b"rest");
        }
    }

    #[test]
    fn wrong_chunks_are_malformed() {
        for bad in ["\r\n", "x\r\n", "5\nhello", "1\r\nab\r\n", "11111111111111111\r\n", "-1\r\n"] {
            assert!(read(bad.as_bytes(), 3).is_err(), "{bad:?}");
        }
        let endless = format!("5;{}", "x".repeat(5_000));
        assert_eq!(read(endless.as_bytes(), 100), Err(Malformed::ChunkSize));
        let endless = format!("0\r\n{}", "a: b\r\n".repeat(20_000));
        assert_eq!(read(endless.as_bytes(), 1_000), Err(Malformed::TrailerTooLong));
    }

    proptest! {
        #[test]
        fn arbitrary_chunk_bytes_never_panic(
            input in prop::collection::vec(
                prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'1'), any::<u8>()],
                0..200,
            ),
            piece in 1usize..20,
        ) {
            let _ = read(&input, piece);
        }
    }
}
