//! Header blocks of requests, encoded when the site is made. RFC 7541 §6, RFC 9113 §8.3.1.
//!
//! As other clients do, a connection sends the fields that all requests of a site share once, and
//! then refers to them by their index; what differs is written in full and not kept by the server.
//! The table of a connection therefore has one of two states, and a block is three slices. Strings
//! are written without Huffman code.

use super::frame::{self, FrameHeader, HEADER_BYTES, flag, kind};
use super::hpack::TABLE_BYTES;
use super::static_table::{STATIC_COUNT, find_static, find_static_name};
use crate::wire::request::{Frame, RequestText, counts_body, fields};
use crate::wire::template::{Template, Variables};

/// Fields of HTTP/1.1's connections, which a request must not have. RFC 9113 §8.2.2
const OF_CONNECTIONS: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// Header of one request, but for the fields that all requests of its site share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// Method and scheme, and the path where it is fixed.
    start: Vec<u8>,
    /// With random parts.
    path: Option<Template>,
    /// Fields that are its own.
    own: Vec<u8>,
    /// The same, whose values have variables; their names are in lower case.
    drawn: Vec<(String, Template)>,
    /// It has the length of its body.
    is_counted: bool,
}

/// Fields that all requests of a site have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedFields {
    /// In full.
    plain: Vec<u8>,
    /// In full, to be kept by the server.
    kept: Vec<u8>,
    /// By the index that they have there.
    indexed: Vec<u8>,
    /// What they take in the server's table.
    table_bytes: u32,
}

/// The table of the server's decoder, as far as this side uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderTable {
    bytes_max: u32,
    /// The next block must announce that the table has become smaller.
    is_smaller: bool,
    /// It has the shared fields.
    is_filled: bool,
}

impl Default for EncoderTable {
    fn default() -> Self {
        Self { bytes_max: TABLE_BYTES, is_smaller: false, is_filled: false }
    }
}

impl EncoderTable {
    /// The server allows a table of this size.
    pub fn allow(&mut self, bytes: u32) {
        // A larger one is not used.
        if bytes < self.bytes_max {
            (self.bytes_max, self.is_smaller) = (bytes, true);
        }
    }
}

/// Requests of one site as they are on the wire.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// One for each request, in their order.
    pub heads: Vec<RequestHead>,
    /// What they share.
    pub shared: SharedFields,
}

/// A field as HPACK has it.
type OwnField = (String, String);

/// Encodes the requests of a site.
pub fn encode<'t>(
    frame: Frame<'_>,
    scheme: &str,
    requests: impl Iterator<Item = &'t RequestText> + Clone,
) -> Encoded {
    let lists: Vec<Vec<OwnField>> = requests.clone().map(|text| own_fields(frame, text)).collect();
    let shared: Vec<OwnField> = lists.first().map_or_else(Vec::new, |first| {
        let is_everywhere = |field: &&OwnField| lists.iter().all(|list| list.contains(field));
        first.iter().filter(is_everywhere).cloned().collect()
    });
    let heads = requests.zip(&lists).map(|(text, list)| {
        let own = list.iter().filter(|field| !shared.contains(field));
        RequestHead::new((frame, scheme), text, own)
    });
    Encoded { heads: heads.collect(), shared: SharedFields::new(&shared) }
}

/// Fields of a request but for its length: `:authority` first.
fn own_fields(frame: Frame<'_>, text: &RequestText) -> Vec<OwnField> {
    let mut list = Vec::new();
    for field in fields(frame, text) {
        let (name, value) = field.split_once(':').unwrap_or((&field, ""));
        let (name, value) = (name.to_ascii_lowercase(), value.trim().to_owned());
        match name.as_str() {
            "host" => list.insert(0, (":authority".to_owned(), value)),
            _ => list.push((name, value)),
        }
    }
    list
}

/// A field that HTTP/2 does not have, among those of a request.
pub fn foreign_field(frame: Frame<'_>, text: &RequestText) -> Option<String> {
    let drawn = text.drawn_headers.iter().map(|(name, _)| name.to_ascii_lowercase());
    let mut names = own_fields(frame, text).into_iter().map(|(name, _)| name).chain(drawn);
    names.find(|name| OF_CONNECTIONS.contains(&name.as_str()))
}

impl RequestHead {
    fn new<'f>(
        (frame, scheme): (Frame<'_>, &str),
        text: &RequestText,
        list: impl Iterator<Item = &'f OwnField>,
    ) -> Self {
        let (mut start, mut own) = (Vec::new(), Vec::new());
        write_field(":method", text.method.as_str(), &mut start);
        write_field(":scheme", scheme, &mut start);
        let path = match text.target.is_fixed() {
            false => Some(text.target.clone()),
            true => {
                let mut path = Vec::new();
                text.target.write(0, 0, &mut path);
                write_path(&path, &mut start);
                None
            }
        };
        list.for_each(|(name, value)| write_field(name, value, &mut own));
        let drawn = text.drawn_headers.iter();
        let drawn = drawn.map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
        Self { start, path, own, drawn, is_counted: counts_body(frame, text) }
    }

    /// Bytes of the block up to the end of its path, if that is fixed.
    pub fn start_bytes(&self) -> usize {
        self.start.len()
    }

    /// Appends the header block of the request that `key` and `variables` draw; `room` is for what
    /// is drawn. Returns the offset in `out` at which the block's first field begins.
    pub fn write(
        &self,
        (key, body_bytes, variables): (u64, usize, &dyn Variables),
        (shared, table): (&SharedFields, &mut EncoderTable),
        room: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> usize {
        if std::mem::take(&mut table.is_smaller) {
            write_number(u64::from(table.bytes_max), 5, 0x20, out);
            table.is_filled &= shared.table_bytes <= table.bytes_max;
        }
        let start = out.len();
        out.extend_from_slice(&self.start);
        if let Some(drawn) = &self.path {
            room.clear();
            drawn.write_with(key, body_bytes, variables, room);
            write_path(room, out);
        }
        out.extend_from_slice(match table.is_filled {
            true => &shared.indexed,
            false if shared.table_bytes <= table.bytes_max => {
                table.is_filled = true;
                &shared.kept
            }
            false => &shared.plain,
        });
        out.extend_from_slice(&self.own);
        for (name, value) in &self.drawn {
            room.clear();
            value.write_with(key, body_bytes, variables, room);
            if !room.is_empty() {
                write_name(name, (4, 0), out);
                write_string(room, out);
            }
        }
        if self.is_counted {
            write_length(body_bytes, out);
        }
        start
    }
}

impl SharedFields {
    fn new(list: &[OwnField]) -> Self {
        let mut shared = Self::default();
        for ((name, value), at) in list.iter().zip(1..) {
            write_field(name, value, &mut shared.plain);
            write_literal(name, value, (6, 0x40), &mut shared.kept);
            // The newest has the lowest index.
            let index = STATIC_COUNT + 1 + list.len() - at;
            write_number(index as u64, 7, 0x80, &mut shared.indexed);
            let bytes = name.len() + value.len() + 32;
            shared.table_bytes = shared.table_bytes.saturating_add(bytes as u32);
        }
        shared
    }
}

/// Appends a header block as a HEADERS frame, and CONTINUATION frames where it is long.
pub fn write_headers(
    (stream, flags): (u32, u8),
    payload_bytes_max: u32,
    write_block: impl FnOnce(&mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let (start, room) = (out.len(), payload_bytes_max as usize);
    out.extend_from_slice(&[0; HEADER_BYTES]);
    write_block(out);
    let length = out.len() - start - HEADER_BYTES;
    let first = length.min(room);
    let more = if length > room { out.split_off(start + HEADER_BYTES + room) } else { Vec::new() };
    let ends = if more.is_empty() { flag::END_HEADERS } else { 0 };
    let header =
        FrameHeader { length: first as u32, kind: kind::HEADERS, flags: flags | ends, stream };
    out[start..start + HEADER_BYTES].copy_from_slice(&header.to_bytes());
    let mut rest = &more[..];
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.len().min(room));
        rest = after;
        let ends = if rest.is_empty() { flag::END_HEADERS } else { 0 };
        frame::write(kind::CONTINUATION, ends, stream, part, out);
    }
}

fn write_field(name: &str, value: &str, out: &mut Vec<u8>) {
    match find_static(name, value) {
        Some(index) => write_number(index as u64, 7, 0x80, out),
        None => write_literal(name, value, (4, 0), out),
    }
}

fn write_literal(name: &str, value: &str, prefix: (u8, u8), out: &mut Vec<u8>) {
    write_name(name, prefix, out);
    write_string(value.as_bytes(), out);
}

fn write_name(name: &str, (bits, pattern): (u8, u8), out: &mut Vec<u8>) {
    match find_static_name(name) {
        Some(index) => write_number(index as u64, bits, pattern, out),
        None => {
            write_number(0, bits, pattern, out);
            write_string(name.as_bytes(), out);
        }
    }
}

/// `:path`, without indexing.
fn write_path(path: &[u8], out: &mut Vec<u8>) {
    const PATH: u64 = 4;
    write_number(PATH, 4, 0, out);
    write_string(path, out);
}

/// `content-length`, without indexing.
fn write_length(bytes: usize, out: &mut Vec<u8>) {
    const CONTENT_LENGTH: u64 = 28;
    write_number(CONTENT_LENGTH, 4, 0, out);
    let digits = bytes.checked_ilog10().unwrap_or(0) + 1;
    write_number(u64::from(digits), 7, 0, out);
    for exponent in (0..digits).rev() {
        out.push(b'0' + (bytes / 10usize.pow(exponent) % 10) as u8);
    }
}

fn write_string(string: &[u8], out: &mut Vec<u8>) {
    write_number(string.len() as u64, 7, 0, out);
    out.extend_from_slice(string);
}

/// RFC 7541 §5.1
fn write_number(number: u64, prefix_bits: u8, pattern: u8, out: &mut Vec<u8>) {
    let prefix_max = (1u64 << prefix_bits) - 1;
    if number < prefix_max {
        return out.push(pattern | number as u8);
    }
    out.push(pattern | prefix_max as u8);
    let mut rest = number - prefix_max;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}
