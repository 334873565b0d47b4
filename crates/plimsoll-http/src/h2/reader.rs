//! Bytes from a server, cut into frames. RFC 9113 §4.
//!
//! DATA, of which there may be much, is handed on as it comes and never kept. Any other frame is
//! handed on whole; it is kept only where it came in parts, and is at most
//! [`PAYLOAD_BYTES_MAX`] long.

use super::event::Fault;
use super::frame::{FrameHeader, HEADER_BYTES, PAYLOAD_BYTES_MAX, flag, kind};

/// Cuts the bytes of one connection.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// Start of a frame that came in parts.
    kept: Vec<u8>,
    /// The DATA frame that is being read.
    data: Option<OpenData>,
}

#[derive(Clone, Copy, Debug)]
struct OpenData {
    stream: u32,
    payload_left: u32,
    padding_left: u32,
    /// Has not been reported yet.
    flow_bytes: u32,
    ends_stream: bool,
}

/// What the bytes hold next.
#[derive(Debug)]
pub enum Cut<'i> {
    /// Some of a DATA frame.
    Data(Data<'i>),
    /// Another frame, whole.
    Frame(FrameHeader, &'i [u8]),
    /// The same of a frame that came in parts, with its payload.
    Kept(FrameHeader, Vec<u8>),
    /// Nothing until more bytes come.
    More,
}

/// Some of a DATA frame.
#[derive(Debug)]
pub struct Data<'i> {
    /// Its stream.
    pub stream: u32,
    /// Of the body.
    pub payload: &'i [u8],
    /// What the whole frame takes of the windows; reported once.
    pub flow_bytes: u32,
    /// Neither this frame nor another of the stream has more.
    pub ends_stream: bool,
}

impl FrameReader {
    /// Takes what comes next from the front of `input`.
    pub fn next<'i>(&mut self, input: &mut &'i [u8]) -> Result<Cut<'i>, Fault> {
        if self.data.is_none() {
            let start = if self.kept.is_empty() { open(input)? } else { self.open_kept(input)? };
            match start {
                Start::More => {
                    self.kept.extend_from_slice(input);
                    *input = &[];
                    return Ok(Cut::More);
                }
                Start::Data(data) => self.data = Some(data),
                Start::Frame(header) => {
                    let whole = HEADER_BYTES + header.length as usize;
                    if self.kept.is_empty() {
                        let (frame, rest) = input.split_at(whole);
                        *input = rest;
                        return Ok(Cut::Frame(header, &frame[HEADER_BYTES..]));
                    }
                    return Ok(Cut::Kept(header, std::mem::take(&mut self.kept)));
                }
            }
        }
        Ok(self.take_data(input))
    }

    /// Heap bytes in use.
    pub fn heap_bytes(&self) -> usize {
        self.kept.capacity()
    }

    /// The same for a frame whose start was kept: takes the bytes that it lacks.
    fn open_kept(&mut self, input: &mut &[u8]) -> Result<Start, Fault> {
        loop {
            let mut kept = &self.kept[..];
            let missing = match open(&mut kept)? {
                Start::Data(data) => {
                    self.kept.clear();
                    return Ok(Start::Data(data));
                }
                whole @ Start::Frame(_) => return Ok(whole),
                Start::More => missing_bytes(&self.kept),
            };
            let (part, rest) = input.split_at(input.len().min(missing));
            if part.is_empty() {
                return Ok(Start::More);
            }
            self.kept.extend_from_slice(part);
            *input = rest;
        }
    }

    fn take_data<'i>(&mut self, input: &mut &'i [u8]) -> Cut<'i> {
        let Some(open) = self.data.as_mut() else { return Cut::More };
        let payload = take(input, &mut open.payload_left);
        if open.payload_left == 0 {
            take(input, &mut open.padding_left);
        }
        let is_whole = open.payload_left == 0 && open.padding_left == 0;
        let flow_bytes = std::mem::take(&mut open.flow_bytes);
        if payload.is_empty() && !is_whole && flow_bytes == 0 {
            return Cut::More;
        }
        let ends_stream = is_whole && open.ends_stream;
        let data = Data { stream: open.stream, payload, flow_bytes, ends_stream };
        if is_whole {
            self.data = None;
        }
        Cut::Data(data)
    }
}

enum Start {
    /// Incomplete.
    More,
    /// A DATA frame, taken from the input up to its payload.
    Data(OpenData),
    /// A whole frame, still in the input.
    Frame(FrameHeader),
}

/// Bytes that a frame lacks whose start is `kept`: of its header, or of the whole frame.
fn missing_bytes(kept: &[u8]) -> usize {
    let Some(header) = kept.first_chunk() else { return HEADER_BYTES - kept.len() };
    let header = FrameHeader::read(*header);
    let needed = match header.kind {
        kind::DATA => HEADER_BYTES + 1,
        _ => HEADER_BYTES + header.length as usize,
    };
    needed - kept.len()
}

fn open(input: &mut &[u8]) -> Result<Start, Fault> {
    let Some((header, rest)) = input.split_first_chunk() else { return Ok(Start::More) };
    let header = FrameHeader::read(*header);
    if header.length > PAYLOAD_BYTES_MAX {
        return Err(Fault::FrameTooLong { bytes: header.length });
    }
    if header.kind != kind::DATA {
        let is_whole = rest.len() >= header.length as usize;
        return Ok(if is_whole { Start::Frame(header) } else { Start::More });
    }
    let (padding_left, payload_left, rest) = match (header.has(flag::PADDED), rest) {
        (false, _) => (0, header.length, rest),
        (true, _) if header.length == 0 => return Err(Fault::Padding),
        (true, []) => return Ok(Start::More),
        (true, [padding, rest @ ..]) => {
            let padding = u32::from(*padding);
            let payload = (header.length - 1).checked_sub(padding).ok_or(Fault::Padding)?;
            (padding, payload, rest)
        }
    };
    *input = rest;
    let ends_stream = header.has(flag::END_STREAM);
    let FrameHeader { stream, length: flow_bytes, .. } = header;
    Ok(Start::Data(OpenData { stream, payload_left, padding_left, flow_bytes, ends_stream }))
}

/// Takes up to `left` bytes from the front.
fn take<'i>(input: &mut &'i [u8], left: &mut u32) -> &'i [u8] {
    let (taken, rest) = input.split_at(input.len().min(*left as usize));
    *left -= taken.len() as u32;
    *input = rest;
    taken
}

/// What a frame's padding and priority leave of its payload. RFC 9113 §6.2
pub fn without_padding(header: FrameHeader, payload: &[u8]) -> Result<&[u8], Fault> {
    /// A stream and a weight.
    const PRIORITY_BYTES: usize = 5;
    let (padding, payload) = match header.has(flag::PADDED) {
        false => (0, payload),
        true => {
            let (padding, payload) = payload.split_first().ok_or(Fault::Padding)?;
            (usize::from(*padding), payload)
        }
    };
    let end = payload.len().checked_sub(padding).ok_or(Fault::Padding)?;
    let start = if header.has(flag::PRIORITY) { PRIORITY_BYTES } else { 0 };
    payload.get(start..end).ok_or(Fault::Padding)
}
