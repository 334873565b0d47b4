//! The client's side of one connection: settings, streams, windows. RFC 9113 §3.4, §5, §6.
//!
//! It takes the bytes that arrive and returns events; output collects in [`Connection::out`]. An
//! error of a stream ends that stream; an error of the connection is a [`Fault`].

use super::event::{Event, Fault, GoingAway, Tag, Wrong};
use super::fields::LIST_BYTES_MAX;
use super::frame::{
    self, Code, FrameHeader, HEADER_BYTES, NUMBER_MAX, PREFACE, WINDOW_BYTES, flag, kind, setting,
};
use super::hpack::{Decoder, TABLE_BYTES};
use super::reader::{Cut, Data, FrameReader, without_padding};
use super::request::{EncoderTable, write_headers};
use super::windows::{PeerSettings, ReceiveWindow, ReceiveWindows, SendWindow, Stream, Streams};

/// Frames in a row that bring no reply further: pings, settings, empty data. Real servers send a
/// few.
const IDLE_FRAMES_MAX: u32 = 4_096;
/// Frames that one header block may come in.
const BLOCK_FRAMES_MAX: u32 = 128;

/// Streams that may be open before the server has sent its limit: RFC 9113 §6.5.2 recommends no
/// fewer, and other clients begin with as many.
const STREAMS_BEFORE_SETTINGS: u32 = 100;

/// The result of a frame other than DATA.
type Happened = Result<Option<Event<'static>>, Fault>;

/// One connection.
#[derive(Debug)]
pub struct Connection {
    /// To be sent; the sender clears it.
    pub out: Vec<u8>,
    reader: FrameReader,
    decoder: Decoder,
    table: EncoderTable,
    peer: PeerSettings,
    stream_window_bytes: u32,
    receiving: ReceiveWindow,
    sending: SendWindow,
    streams: Streams,
    block: Option<Block>,
    is_ready: bool,
    going_away: Option<GoingAway>,
    is_retired: bool,
    idle_frames: u32,
}

/// A header block that comes in several frames.
#[derive(Debug)]
struct Block {
    header: FrameHeader,
    bytes: Vec<u8>,
    frames: u32,
}

impl Connection {
    /// A connection that has just been opened.
    pub fn new(windows: ReceiveWindows) -> Self {
        let connection_bytes = windows.connection_bytes.max(WINDOW_BYTES);
        let mut out = PREFACE.to_vec();
        let settings = [
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, windows.stream_bytes),
            (setting::MAX_HEADER_LIST_SIZE, LIST_BYTES_MAX),
        ];
        const { assert!(TABLE_BYTES == 4_096, "the default, which is not said") };
        frame::write_settings(&settings, &mut out);
        if connection_bytes > WINDOW_BYTES {
            frame::write_window_update(0, connection_bytes - WINDOW_BYTES, &mut out);
        }
        Self {
            out,
            reader: FrameReader::default(),
            decoder: Decoder::default(),
            table: EncoderTable::default(),
            peer: PeerSettings::default(),
            stream_window_bytes: windows.stream_bytes,
            receiving: ReceiveWindow::new(connection_bytes),
            sending: SendWindow::new(WINDOW_BYTES),
            streams: Streams::default(),
            block: None,
            is_ready: false,
            going_away: None,
            is_retired: false,
            idle_frames: 0,
        }
    }

    /// The same, which keeps the fields of each reply's header.
    pub fn keeping_fields(mut self) -> Self {
        self.decoder.keep_texts();
        self
    }

    /// Names and values of the fields of the header that came last, if they are kept.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.decoder.texts()
    }

    /// The server's settings, once they have come.
    pub fn peer(&self) -> Option<PeerSettings> {
        self.is_ready.then_some(self.peer)
    }

    /// The content of the server's GOAWAY.
    pub fn going_away(&self) -> Option<GoingAway> {
        self.going_away
    }

    /// The server accepts one more stream, as far as known: requests may be sent before its
    /// settings have arrived (RFC 9113 §3.4), and some servers send them only then (cmux #22).
    pub fn has_room(&self) -> bool {
        let max = if self.is_ready { self.peer.streams_max } else { STREAMS_BEFORE_SETTINGS };
        self.takes_more() && self.streams.len() < max as usize
    }

    /// It will take streams again once others have ended.
    pub fn takes_more(&self) -> bool {
        self.going_away.is_none() && !self.is_retired && !self.streams.is_used_up()
    }

    /// Opens no more streams; those that are open go on.
    pub fn retire(&mut self) {
        self.is_retired = true;
    }

    /// It was retired, and has no stream any more.
    pub fn is_done(&self) -> bool {
        self.is_retired && self.streams.len() == 0
    }

    /// Open streams.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// It never had a stream.
    pub fn is_unused(&self) -> bool {
        self.streams.next_number() == 1
    }

    /// Heap bytes in use.
    pub fn heap_bytes(&self) -> usize {
        let block = self.block.as_ref().map_or(0, |block| block.bytes.capacity());
        let read = self.reader.heap_bytes() + self.decoder.heap_bytes();
        self.out.capacity() + read + block + self.streams.heap_bytes()
    }

    /// Opens a stream and sends the header of a request, with a body to follow or not. Answers
    /// with its number. Only while there [is room](Self::has_room).
    pub fn open(
        &mut self,
        tag: Tag,
        has_body: bool,
        write_block: impl FnOnce(&mut EncoderTable, &mut Vec<u8>),
    ) -> u32 {
        let number = self.streams.next_number();
        let flags = if has_body { 0 } else { flag::END_STREAM };
        let (table, room) = (&mut self.table, self.peer.payload_bytes_max);
        write_headers((number, flags), room, |out| write_block(table, out), &mut self.out);
        let sending = SendWindow::new(self.peer.window_bytes);
        let receiving = ReceiveWindow::new(self.stream_window_bytes);
        let is_sent = !has_body;
        self.streams.open(Stream { number, tag, sending, receiving, is_sent, has_head: false });
        number
    }

    /// Sends what the windows allow of the rest of a request's body, and its end with the last
    /// byte. Answers with the bytes sent.
    pub fn send_body(&mut self, number: u32, rest: &[u8]) -> usize {
        let Some(stream) = self.streams.find(number) else { return 0 };
        let room = self.sending.room().min(stream.sending.room());
        let whole = rest.len().min(room);
        let mut left = &rest[..whole];
        let is_last = whole == rest.len();
        while !left.is_empty() {
            let (part, after) = left.split_at(left.len().min(self.peer.payload_bytes_max as usize));
            left = after;
            let flags = if is_last && left.is_empty() { flag::END_STREAM } else { 0 };
            frame::write(kind::DATA, flags, number, part, &mut self.out);
        }
        stream.sending.use_up(whole);
        self.sending.use_up(whole);
        stream.is_sent |= is_last;
        whole
    }

    /// Ends a stream whose reply is no longer needed.
    pub fn cancel(&mut self, number: u32) {
        if self.streams.remove(number).is_some() {
            frame::write_reset(number, Code::CANCEL, &mut self.out);
        }
    }

    /// Sends the reason for which the connection is given up.
    pub fn send_goaway(&mut self, why: Fault) {
        frame::write_goaway(why.code(), &mut self.out);
    }

    /// The next of the streams that the server declared unprocessed; it is closed.
    pub fn take_unprocessed(&mut self) -> Option<Tag> {
        let last = self.going_away?.last_stream;
        self.streams.pop_above(last).map(|stream| stream.tag)
    }

    /// The next of the streams that are open; it is closed without notice to the server.
    pub fn take_any(&mut self) -> Option<Tag> {
        self.streams.pop_above(0).map(|stream| stream.tag)
    }

    /// Takes what has happened from the front of `input`; `None` when all of it is used.
    pub fn next<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Event<'i>>, Fault> {
        loop {
            let cut = self.reader.next(input).map_err(|fault| self.explained(fault))?;
            let event = match cut {
                Cut::More => return Ok(None),
                Cut::Data(data) => self.on_data(data)?,
                Cut::Frame(header, payload) => self.on_frame(header, payload)?,
                Cut::Kept(header, kept) => self.on_frame(header, &kept[HEADER_BYTES..])?,
            };
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// A fault at the very start comes of bytes that are no frames.
    fn explained(&self, fault: Fault) -> Fault {
        /// `HTT` as the length of a frame.
        const HTTP1: u32 = u32::from_be_bytes([0, b'H', b'T', b'T']);
        match fault {
            Fault::FrameTooLong { bytes: HTTP1 } if !self.is_ready => Fault::Http1,
            _ if !self.is_ready => Fault::NotHttp2,
            other => other,
        }
    }

    fn on_data<'i>(&mut self, data: Data<'i>) -> Result<Option<Event<'i>>, Fault> {
        if !self.is_ready {
            return Err(Fault::NotHttp2);
        }
        if self.block.is_some() {
            return Err(Fault::Continuation);
        }
        let Data { stream: number, payload, flow_bytes, ends_stream } = data;
        if let Some(bytes) = self.receiving.take(flow_bytes)? {
            frame::write_window_update(0, bytes, &mut self.out);
        }
        let Some(stream) = self.streams.find(number) else {
            self.streams.check_closed(number, kind::DATA)?;
            return Ok(None);
        };
        if !stream.has_head {
            return Ok(self.wrong(number, Wrong::NoHead));
        }
        let tag = stream.tag;
        if let Some(bytes) = stream.receiving.take(flow_bytes)?
            && !ends_stream
        {
            frame::write_window_update(number, bytes, &mut self.out);
        }
        match (payload, ends_stream) {
            ([], false) => {
                self.count_idle()?;
                return Ok(None);
            }
            (_, true) => self.end(number),
            (_, false) => {}
        }
        self.idle_frames = 0;
        Ok(Some(Event::Data { tag, payload, ends: ends_stream }))
    }

    fn on_frame(&mut self, header: FrameHeader, payload: &[u8]) -> Happened {
        if !self.is_ready && (header.kind != kind::SETTINGS || header.has(flag::ACK)) {
            return Err(Fault::NotHttp2);
        }
        if self.block.is_some() != (header.kind == kind::CONTINUATION) {
            return Err(Fault::Continuation);
        }
        match header.kind {
            kind::HEADERS => {
                let block = without_padding(header, payload)?;
                match header.has(flag::END_HEADERS) {
                    true => self.on_block(header, block),
                    false => {
                        self.block = Some(Block { header, bytes: block.to_vec(), frames: 1 });
                        Ok(None)
                    }
                }
            }
            kind::CONTINUATION => self.on_continuation(header, payload),
            kind::SETTINGS => self.on_settings(header, payload),
            kind::WINDOW_UPDATE => self.on_window_update(header, payload),
            kind::RST_STREAM => self.on_reset(header, payload),
            kind::PING => self.on_ping(header, payload),
            kind::GOAWAY => self.on_goaway(header, payload),
            kind::PUSH_PROMISE => Err(Fault::Push),
            // RFC 9113 §4.1: unknown ones are ignored; PRIORITY means nothing to a client.
            _ => self.count_idle().map(|()| None),
        }
    }

    fn on_continuation(&mut self, header: FrameHeader, payload: &[u8]) -> Happened {
        let Some(mut block) = self.block.take() else { return Err(Fault::Continuation) };
        if block.header.stream != header.stream {
            return Err(Fault::Continuation);
        }
        block.frames += 1;
        let bytes = block.bytes.len() + payload.len();
        if bytes > LIST_BYTES_MAX as usize || block.frames > BLOCK_FRAMES_MAX {
            return Err(Fault::BlockTooLong);
        }
        block.bytes.extend_from_slice(payload);
        if header.has(flag::END_HEADERS) {
            return self.on_block(block.header, &block.bytes);
        }
        self.block = Some(block);
        Ok(None)
    }

    /// A header block is whole. It is read even if its reply is not needed: it may change the
    /// table.
    fn on_block(&mut self, header: FrameHeader, block: &[u8]) -> Happened {
        let fields = self.decoder.read(block).map_err(Fault::Block)?;
        let number = header.stream;
        let Some(stream) = self.streams.find(number) else {
            self.streams.check_closed(number, kind::HEADERS)?;
            return Ok(None);
        };
        let (tag, ends) = (stream.tag, header.has(flag::END_STREAM));
        if stream.has_head {
            return Ok(match fields.check_trailer() {
                Ok(()) if ends => {
                    self.end(number);
                    Some(match fields.grpc_error() {
                        Some(code) => Event::CallFailed(tag, code),
                        None => Event::Data { tag, payload: &[], ends },
                    })
                }
                Ok(()) => self.wrong(number, Wrong::Trailer),
                Err(why) => self.wrong(number, Wrong::Header(why)),
            });
        }
        let (status, length) = match fields.reply() {
            Ok((101, _)) => return Ok(self.wrong(number, Wrong::Upgrade)),
            Ok((100..200, _)) if ends => return Ok(self.wrong(number, Wrong::Interim)),
            Ok((100..200, _)) => return self.count_idle().map(|()| None),
            Ok(reply) => reply,
            Err(why) => return Ok(self.wrong(number, Wrong::Header(why))),
        };
        stream.has_head = true;
        self.idle_frames = 0;
        if ends {
            self.end(number);
        }
        Ok(Some(match fields.grpc_error().filter(|_| ends && status == 200) {
            Some(code) => Event::CallFailed(tag, code),
            None => Event::Head { tag, status, length, ends },
        }))
    }

    fn on_settings(&mut self, header: FrameHeader, payload: &[u8]) -> Happened {
        of_connection(header)?;
        if header.has(flag::ACK) {
            let is_empty = payload.is_empty();
            return if is_empty { Ok(None) } else { Err(Fault::FrameLength(header.kind)) };
        }
        self.count_idle()?;
        let before = i64::from(self.peer.window_bytes);
        self.peer.read(payload, &mut self.table)?;
        let growth = i64::from(self.peer.window_bytes) - before;
        self.streams.grow(growth)?;
        self.is_ready = true;
        frame::write(kind::SETTINGS, flag::ACK, 0, &[], &mut self.out);
        Ok(Some(Event::Settings))
    }

    fn on_window_update(&mut self, header: FrameHeader, payload: &[u8]) -> Happened {
        let increment = i64::from(number(header, payload)? & NUMBER_MAX);
        if increment == 0 {
            return Err(Fault::WindowUpdate);
        }
        if header.stream == 0 {
            self.sending.grow(increment)?;
        } else if let Some(stream) = self.streams.find(header.stream) {
            stream.sending.grow(increment)?;
        } else {
            self.streams.check_closed(header.stream, header.kind)?;
            return Ok(None);
        }
        Ok(Some(Event::Window))
    }

    fn on_reset(&mut self, header: FrameHeader, payload: &[u8]) -> Happened {
        let code = Code(number(header, payload)?);
        match self.streams.remove(header.stream) {
            Some(stream) => Ok(Some(Event::Reset(stream.tag, code))),
            None => self.streams.check_closed(header.stream, header.kind).map(|()| None),
        }
    }

    fn on_ping(&mut self, header: FrameHeader, payload: &[u8]) -> Happened {
        const PING_BYTES: usize = 8;
        of_connection(header)?;
        if payload.len() != PING_BYTES {
            return Err(Fault::FrameLength(header.kind));
        }
        self.count_idle()?;
        if !header.has(flag::ACK) {
            frame::write(kind::PING, flag::ACK, 0, payload, &mut self.out);
        }
        Ok(None)
    }

    fn on_goaway(&mut self, header: FrameHeader, payload: &[u8]) -> Happened {
        of_connection(header)?;
        let Some(([last @ .., a, b, c, d], _)) = payload.split_first_chunk::<8>() else {
            return Err(Fault::FrameLength(header.kind));
        };
        self.count_idle()?;
        let last_stream = u32::from_be_bytes(*last) & NUMBER_MAX;
        let code = Code(u32::from_be_bytes([*a, *b, *c, *d]));
        self.going_away = Some(GoingAway { last_stream, code });
        Ok(Some(Event::GoAway))
    }

    /// The reply is whole; a request that is not is broken off. RFC 9113 §8.1
    fn end(&mut self, number: u32) {
        if self.streams.remove(number).is_some_and(|stream| !stream.is_sent) {
            frame::write_reset(number, Code::CANCEL, &mut self.out);
        }
    }

    /// Ends a stream that is out of order.
    fn wrong(&mut self, number: u32, why: Wrong) -> Option<Event<'static>> {
        let stream = self.streams.remove(number)?;
        frame::write_reset(number, Code::PROTOCOL_ERROR, &mut self.out);
        Some(Event::Wrong(stream.tag, why))
    }

    fn count_idle(&mut self) -> Result<(), Fault> {
        self.idle_frames += 1;
        if self.idle_frames > IDLE_FRAMES_MAX { Err(Fault::Flood) } else { Ok(()) }
    }
}

fn of_connection(header: FrameHeader) -> Result<(), Fault> {
    if header.stream == 0 { Ok(()) } else { Err(Fault::FrameStream(header.kind)) }
}

/// The payload of a frame that has one number.
fn number(header: FrameHeader, payload: &[u8]) -> Result<u32, Fault> {
    let number = payload.try_into().map_err(|_| Fault::FrameLength(header.kind))?;
    Ok(u32::from_be_bytes(number))
}
