//! The header of a reply, and where its body ends. RFC 9112 §4, §5, §6.3, §7.1. A server that speaks
//! HTTP/2 only answers with its settings, or that it goes away: RFC 9113 §3.4, §4.1.
//!
//! [`parse`] has two readers. The fast one takes a header of the usual shape in one pass (about 240
//! bytes and eight lines from nginx; estimate: 8 line searches of 5 ns and 120 name bytes of 0.5
//! ns). Whatever it does not recognise goes to `httparse`, which has the last word on what is
//! malformed. A header equal to the thread's last one, as most are if one file is requested
//! repeatedly, is not parsed at all.

use std::cell::RefCell;

use super::Malformed;

/// Longest header that is read; real ones are below 8 KiB, and servers limit requests alike.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Most header fields of one reply.
const FIELDS_MAX: usize = 256;

/// What this client needs to know of a reply's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes from the status line to the empty line, both included.
    pub bytes: usize,
    /// Status code, 100 or above.
    pub status: u16,
    /// The connection stays open after the reply.
    pub persistent: bool,
    /// `Content-Length`.
    pub content_length: Option<u64>,
    /// `Transfer-Encoding` ends in `chunked`.
    pub chunked: bool,
    /// A field goes on over several lines.
    pub folded: bool,
}

/// A header and its parsed form.
struct CachedHead {
    bytes: Vec<u8>,
    head: Head,
}

/// Longer ones are read each time.
const CACHED_BYTES_MAX: usize = 1024;

thread_local! {
    /// The last that was read. Each thread has its own: they share nothing while ops are measured.
    static LAST: RefCell<Option<CachedHead>> = const { RefCell::new(None) };
}

/// Reads a header from the start of `bytes`; `None` when its end has not arrived.
pub fn parse(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    LAST.with_borrow_mut(|last| {
        // A header ends at its empty line, whatever follows.
        if let Some(cached) = last.as_ref().filter(|cached| bytes.starts_with(&cached.bytes)) {
            return Ok(Some(cached.head));
        }
        let head = parse_anew(bytes)?;
        if let Some(head) = head.filter(|head| head.bytes <= CACHED_BYTES_MAX) {
            let cached = last.get_or_insert_with(|| CachedHead { bytes: Vec::new(), head });
            cached.bytes.clear();
            cached.bytes.extend_from_slice(&bytes[..head.bytes]);
            cached.head = head;
        }
        Ok(head)
    })
}

fn parse_anew(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    match parse_usual(bytes) {
        Usual::Head(head) if head.bytes <= HEAD_BYTES_MAX => return Ok(Some(head)),
        Usual::Head(_) => return Err(Malformed::HeadTooLong),
        Usual::Odd => {}
    }
    match find_end(bytes, 0)? {
        Some(end) => parse_any(&bytes[..end]).map(Some),
        None => Ok(None),
    }
}

/// Index just after the empty line that ends a header. Lines before `from` are not searched again:
/// pass the length that is known to contain no end.
pub fn find_end(bytes: &[u8], from: usize) -> Result<Option<usize>, Malformed> {
    const BEGIN: &[u8] = b"HTTP/1.";
    let compared = bytes.len().min(BEGIN.len());
    if bytes[..compared] != BEGIN[..compared] {
        return Err(if begins_http2(bytes) { Malformed::Http2 } else { Malformed::NotHttp });
    }
    // An end may begin up to two bytes before the new ones: LF, CR | LF.
    let mut at = from.saturating_sub(2);
    while let Some(step) = memchr::memchr(b'\n', &bytes[at..]) {
        at += step + 1;
        let end = match &bytes[at..] {
            [b'\n', ..] => at + 1,
            [b'\r', b'\n', ..] => at + 2,
            _ => continue,
        };
        return if end <= HEAD_BYTES_MAX { Ok(Some(end)) } else { Err(Malformed::HeadTooLong) };
    }
    if bytes.len() > HEAD_BYTES_MAX { Err(Malformed::HeadTooLong) } else { Ok(None) }
}

/// Result of the fast reader.
enum Usual {
    Head(Head),
    /// Incomplete, unusual or wrong.
    Odd,
}

fn parse_usual(bytes: &[u8]) -> Usual {
    let Some([minor @ (b'0' | b'1'), b' ', a, b, c, rest @ ..]) = bytes.strip_prefix(b"HTTP/1.")
    else {
        return Usual::Odd;
    };
    let digits = [a, b, c].map(|d| u16::from(d.wrapping_sub(b'0')));
    if digits.iter().any(|d| *d > 9) || digits[0] == 0 {
        return Usual::Odd;
    }
    let status = digits[0] * 100 + digits[1] * 10 + digits[2];
    let Some(reason) = take_line(rest) else { return Usual::Odd };
    if !matches!(rest[0], b' ' | b'\r') || !is_text(reason) {
        return Usual::Odd;
    }
    let mut fields = Fields::new(*minor == b'1');
    let mut at = reason.len() + 2;
    loop {
        let Some(line) = take_line(&rest[at..]) else { return Usual::Odd };
        at += line.len() + 2;
        if line.is_empty() {
            break;
        }
        let Some(colon) = name_length(line) else { return Usual::Odd };
        let value = &line[colon + 1..];
        if !is_text(value) || fields.add(&line[..colon], value).is_err() {
            return Usual::Odd;
        }
    }
    match fields.into_head(bytes.len() - rest.len() + at, status) {
        Ok(head) => Usual::Head(head),
        Err(_) => Usual::Odd,
    }
}

/// The line at the start of `bytes` without its CR LF; `None` without both.
fn take_line(bytes: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b'\n', bytes)?;
    bytes[..end].strip_suffix(b"\r")
}

/// Length of the field name before a colon; `None` when it is not a token (RFC 9110 §5.6.2).
fn name_length(line: &[u8]) -> Option<usize> {
    let end = line.iter().position(|b| !IS_TOKEN[usize::from(*b)])?;
    (end > 0 && line[end] == b':').then_some(end)
}

/// No control characters except tabs.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.iter().fold(false, |bad, b| bad | ((*b < 0x20) & (*b != b'\t')) | (*b == 0x7f))
}

static IS_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0usize;
    while b < 256 {
        let c = b as u8;
        table[b] = c.is_ascii_alphanumeric()
            || matches!(
                c,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            );
        b += 1;
    }
    table
};

/// A field that is folded over several lines is one value, each fold of it space: RFC 9112 §5.2
/// obliges a user agent to read it so.
fn parse_any(bytes: &[u8]) -> Result<Head, Malformed> {
    let mut storage = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut storage);
    let mut parser = httparse::ParserConfig::default();
    parser.allow_obsolete_multiline_headers_in_responses(true);
    let end = match parser.parse_response(&mut response, bytes).map_err(Malformed::Head)? {
        httparse::Status::Complete(end) => end,
        httparse::Status::Partial => return Err(Malformed::Head(httparse::Error::NewLine)),
    };
    let status = response.code.ok_or(Malformed::StatusCode)?;
    if status < 100 {
        return Err(Malformed::StatusCode);
    }
    let mut fields = Fields::new(response.version == Some(1));
    let begins_with_space = |at: usize| matches!(bytes.get(at + 1), Some(b' ' | b'\t'));
    fields.folded = memchr::memchr_iter(b'\n', bytes).any(begins_with_space);
    for header in response.headers.iter() {
        fields.add(header.name.as_bytes(), header.value)?;
    }
    fields.into_head(end, status)
}

/// Hands the fields of a whole header over, in their order. A header that [`parse`] has taken has no
/// others.
pub fn each_field(header: &[u8], mut take: impl FnMut(&[u8], &[u8])) {
    let mut storage = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut storage);
    let mut parser = httparse::ParserConfig::default();
    parser.allow_obsolete_multiline_headers_in_responses(true);
    if parser.parse_response(&mut response, header).is_ok() {
        response.headers.iter().for_each(|field| take(field.name.as_bytes(), field.value));
    }
}

/// The fields this client looks at, gathered line by line.
struct Fields {
    http_1_1: bool,
    content_length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    folded: bool,
}

impl Fields {
    fn new(http_1_1: bool) -> Self {
        Self {
            http_1_1,
            content_length: None,
            chunked: false,
            close: false,
            keep_alive: false,
            folded: false,
        }
    }

    #[inline]
    fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
        // The three names differ in length, so most fields cost one comparison of a number.
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                if self.content_length.is_some() {
                    return Err(Malformed::Framing);
                }
                self.content_length = Some(decimal(value.trim_ascii())?);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if self.chunked {
                    return Err(Malformed::Framing);
                }
                let last = value.rsplit(|b| *b == b',').next().unwrap_or_default();
                if !last.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(Malformed::TransferEncoding);
                }
                self.chunked = true;
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                for word in value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
                    self.close |= word.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= word.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn into_head(self, bytes: usize, status: u16) -> Result<Head, Malformed> {
        if self.chunked && (self.content_length.is_some() || !self.http_1_1) {
            return Err(Malformed::Framing);
        }
        Ok(Head {
            bytes,
            status,
            persistent: !self.close && (self.http_1_1 || self.keep_alive),
            content_length: self.content_length,
            chunked: self.chunked,
            folded: self.folded,
        })
    }
}

fn decimal(digits: &[u8]) -> Result<u64, Malformed> {
    if digits.is_empty() {
        return Err(Malformed::ContentLength);
    }
    digits.iter().try_fold(0u64, |sum, b| {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return Err(Malformed::ContentLength);
        }
        sum.checked_mul(10)
            .and_then(|n| n.checked_add(u64::from(digit)))
            .ok_or(Malformed::ContentLength)
    })
}

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
    pub fn from_head(head: &Head, method: super::request::Method) -> Self {
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

/// Bytes of a frame's header.
const HEADER_BYTES: usize = 9;
/// RFC 9113 §6.5; each setting has six bytes.
const SETTINGS: u8 = 4;
const SETTING_BYTES: u32 = 6;
/// RFC 9113 §6.8; a stream and an error code at least.
const GOAWAY: u8 = 7;
const GOAWAY_BYTES_MIN: u32 = 8;
/// A peer must not send a longer frame before the settings allow it (§4.2).
const FRAME_BYTES_MAX: u32 = 16_384;
/// The stream's number is that of the connection; its first bit is reserved.
const STREAM_MASK: u32 = 0x7fff_ffff;

/// The bytes begin with a frame with which a server of HTTP/2 may begin.
fn begins_http2(bytes: &[u8]) -> bool {
    let Some((header, _)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return false };
    let [a, b, c, kind, _flags, stream @ ..] = *header;
    let length = u32::from_be_bytes([0, a, b, c]);
    let is_of_connection = u32::from_be_bytes(stream) & STREAM_MASK == 0;
    let fits = match kind {
        SETTINGS => length.is_multiple_of(SETTING_BYTES),
        GOAWAY => length >= GOAWAY_BYTES_MIN,
        _ => false,
    };
    fits && is_of_connection && length <= FRAME_BYTES_MAX
}

#[cfg(test)]
mod tests;
