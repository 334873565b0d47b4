//! The header of a reply: status line and fields. RFC 9112 §4, §5.
//!
//! [`parse`] has two readers. The fast one takes a header of the usual shape in one pass (about
//! 240 bytes and eight lines from nginx; estimate: 8 line searches of 5 ns and 120 name bytes of
//! 0.5 ns). Whatever it does not recognise goes to `httparse`, which has the last word on what
//! is malformed. A header equal to the thread's last one, as most are where one file is asked for
//! again and again, is not read at all.

use std::cell::RefCell;

use super::{Malformed, http2};

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
}

/// A header and what it says.
struct Known {
    bytes: Vec<u8>,
    head: Head,
}

/// Longer ones are read each time.
const KNOWN_BYTES_MAX: usize = 1024;

thread_local! {
    /// The last that was read. Each thread has its own: they share nothing while ops are measured.
    static LAST: RefCell<Option<Known>> = const { RefCell::new(None) };
}

/// Reads a header from the start of `bytes`; `None` when its end has not arrived.
pub fn parse(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    LAST.with_borrow_mut(|last| {
        // A header ends where it says so, whatever follows.
        if let Some(known) = last.as_ref().filter(|known| bytes.starts_with(&known.bytes)) {
            return Ok(Some(known.head));
        }
        let head = parse_anew(bytes)?;
        if let Some(head) = head.filter(|head| head.bytes <= KNOWN_BYTES_MAX) {
            let known = last.get_or_insert_with(|| Known { bytes: Vec::new(), head });
            known.bytes.clear();
            known.bytes.extend_from_slice(&bytes[..head.bytes]);
            known.head = head;
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

/// Index just after the empty line that ends a header. Lines before `from` are not searched
/// again: pass the length that was known to hold no end.
pub fn find_end(bytes: &[u8], from: usize) -> Result<Option<usize>, Malformed> {
    const BEGIN: &[u8] = b"HTTP/1.";
    let known = bytes.len().min(BEGIN.len());
    if bytes[..known] != BEGIN[..known] {
        return Err(if http2::begins(bytes) { Malformed::Http2 } else { Malformed::NotHttp });
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

fn parse_any(bytes: &[u8]) -> Result<Head, Malformed> {
    let mut storage = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut storage);
    let end = match response.parse(bytes).map_err(Malformed::Head)? {
        httparse::Status::Complete(end) => end,
        httparse::Status::Partial => return Err(Malformed::Head(httparse::Error::NewLine)),
    };
    let status = response.code.ok_or(Malformed::StatusCode)?;
    if status < 100 {
        return Err(Malformed::StatusCode);
    }
    let mut fields = Fields::new(response.version == Some(1));
    for header in response.headers.iter() {
        fields.add(header.name.as_bytes(), header.value)?;
    }
    fields.into_head(end, status)
}

/// The fields this client looks at, gathered line by line.
struct Fields {
    http_1_1: bool,
    content_length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn new(http_1_1: bool) -> Self {
        Self { http_1_1, content_length: None, chunked: false, close: false, keep_alive: false }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NGINX: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx/1.26.3\r\n\
        Date: Sat, 21 Nov 2026 20:00:00 GMT\r\nContent-Type: application/octet-stream\r\n\
        Content-Length: 1024\r\nLast-Modified: Sat, 21 Nov 2026 19:00:00 GMT\r\n\
        Connection: keep-alive\r\nETag: \"67400000-400\"\r\nAccept-Ranges: bytes\r\n\r\n";

    fn head(text: &str) -> Result<Option<Head>, Malformed> {
        parse(text.as_bytes())
    }

    #[test]
    fn the_usual_header_takes_the_fast_path() {
        let Usual::Head(head) = parse_usual(NGINX) else { panic!("not recognised") };
        assert_eq!((head.bytes, head.status, head.persistent), (NGINX.len(), 200, true));
        assert_eq!((head.content_length, head.chunked), (Some(1024), false));
        assert_eq!(parse_any(NGINX), Ok(head));
    }

    #[test]
    fn a_header_in_the_making_is_awaited() {
        for end in 0..NGINX.len() {
            assert_eq!(parse(&NGINX[..end]), Ok(None), "{end}");
        }
    }

    #[test]
    fn persistence_follows_version_and_connection() {
        let persistent = |text: &str| head(text).unwrap().unwrap().persistent;
        assert!(persistent("HTTP/1.1 204 No Content\r\n\r\n"));
        assert!(!persistent("HTTP/1.1 200 OK\r\nConnection: foo, Close\r\n\r\n"));
        assert!(!persistent("HTTP/1.0 200 OK\r\n\r\n"));
        assert!(persistent("HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\n\r\n"));
    }

    #[test]
    fn bare_line_feeds_and_a_missing_reason_are_read() {
        assert_eq!(head("HTTP/1.1 200\r\n\r\n").unwrap().unwrap().status, 200);
        let it = head("HTTP/1.1 404 Nope\nContent-Length: 3\n\n").unwrap().unwrap();
        assert_eq!((it.status, it.content_length), (404, Some(3)));
    }

    #[test]
    fn doubtful_headers_are_malformed() {
        let wrong = |fields: &str| head(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n"));
        assert_eq!(wrong("Content-Length: 5\r\nContent-Length: 5"), Err(Malformed::Framing));
        assert_eq!(wrong("Content-Length: 5\r\nContent-Length: 6"), Err(Malformed::Framing));
        assert_eq!(
            wrong("Content-Length: 5\r\nTransfer-Encoding: chunked"),
            Err(Malformed::Framing)
        );
        for bad in ["-1", "", "5 5", "0x5", "18446744073709551616", "5, 5"] {
            assert_eq!(wrong(&format!("Content-Length: {bad}")), Err(Malformed::ContentLength));
        }
        assert_eq!(wrong("Transfer-Encoding: gzip"), Err(Malformed::TransferEncoding));
        assert!(matches!(wrong("A: b\r\n folded"), Err(Malformed::Head(_))));
        assert!(matches!(wrong("na me: b"), Err(Malformed::Head(_))));
        assert!(matches!(wrong("A: b\0c"), Err(Malformed::Head(_))));
        assert_eq!(head("HTTP/1.1 099 X\r\n\r\n"), Err(Malformed::StatusCode));
        assert_eq!(head("SSH-2.0-x"), Err(Malformed::NotHttp));
        assert_eq!(head("\r\nHTTP/1.1 200 OK\r\n\r\n"), Err(Malformed::NotHttp));
    }

    #[test]
    fn a_header_of_a_megabyte_is_refused_whole_or_in_part() {
        let text = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(1 << 20));
        assert_eq!(head(&text), Err(Malformed::HeadTooLong));
        assert_eq!(head(&text[..HEAD_BYTES_MAX]), Ok(None));
        assert_eq!(head(&text[..=HEAD_BYTES_MAX]), Err(Malformed::HeadTooLong));
    }

    fn any_head() -> impl Strategy<Value = Vec<u8>> {
        let field = prop_oneof![
            Just("Content-Length: 12".to_owned()),
            Just("content-length:7".to_owned()),
            Just("Transfer-Encoding: chunked".to_owned()),
            Just("Connection: close".to_owned()),
            "[A-Za-z-]{1,16}: ?[ -~]{0,40}",
        ];
        ("[01]", 0u16..1000, "[ -~]{0,12}", prop::collection::vec(field, 0..8)).prop_map(
            |(minor, status, reason, fields)| {
                let mut text = format!("HTTP/1.{minor} {status:03} {reason}\r\n");
                for field in fields {
                    text.push_str(&field);
                    text.push_str("\r\n");
                }
                text.push_str("\r\n");
                text.into_bytes()
            },
        )
    }

    proptest! {
        #[test]
        fn the_fast_reader_agrees_with_httparse_where_it_decides(
            mut bytes in any_head(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        ) {
            for (index, byte) in changes {
                let at = index.index(bytes.len());
                bytes[at] = byte;
            }
            if let Usual::Head(head) = parse_usual(&bytes) {
                prop_assert_eq!(parse_any(&bytes), Ok(head));
            }
        }

        #[test]
        fn what_was_read_before_changes_nothing(
            heads in prop::collection::vec(any_head(), 2),
            order in prop::collection::vec((0usize..2, any::<prop::sample::Index>()), 1..8),
        ) {
            for (which, cut) in order {
                let bytes = &heads[which];
                for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
                    prop_assert_eq!(parse(bytes), parse_anew(bytes));
                }
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
            let _ = parse(&[b"HTTP/1.1 200 ".as_slice(), &bytes].concat());
        }
    }
}
