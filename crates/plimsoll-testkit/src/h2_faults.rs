//! A server of HTTP/2 without TLS that does to each request what a test specifies, and checks what
//! the client sends. RFC 9113.
//!
//! It shares no code with the client: frames are written and read here once more. Header blocks of
//! requests are not decoded: foreign servers and tshark do that.

pub mod frames;

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use frames::{
    Header, PREFACE, ack, code, flag, go_away, kind, number, setting, settings, window_update,
};

/// Window of a connection, and of a stream unless the settings change it. §6.9.2
const WINDOW_BYTES: i64 = 65_535;
/// Longest payload that a client may send, as the settings keep the default. §4.2
const PAYLOAD_BYTES_MAX: u32 = 16_384;

/// A request that has come in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// From 0, over all connections.
    pub index: u64,
    /// Its stream.
    pub stream: u32,
}

/// What the server does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Sends GOAWAY with this code, having processed nothing above the request's stream; what comes
    /// above it is ignored.
    GoAway(u32),
    /// Closes the connection.
    Close,
}

/// What the server sends before any request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It takes a hundred streams at a time, and opens its windows as bytes come.
    Sound,
    /// It takes this many bytes of each stream, and opens no window again.
    ShutWindows(u32),
    /// It takes no stream.
    NoStreams,
    /// It goes away at once, and has processed nothing.
    GoesAway,
}

impl Manner {
    /// What it writes first.
    fn first(self) -> Vec<u8> {
        match self {
            Self::Sound => settings(&[(setting::MAX_CONCURRENT_STREAMS, 100)]),
            Self::ShutWindows(bytes) => settings(&[(setting::INITIAL_WINDOW_SIZE, bytes)]),
            Self::NoStreams => settings(&[(setting::MAX_CONCURRENT_STREAMS, 0)]),
            Self::GoesAway => [settings(&[]), go_away(0, code::ENHANCE_YOUR_CALM)].concat(),
        }
    }

    /// Window of a new stream.
    fn window(self) -> i64 {
        match self {
            Self::ShutWindows(bytes) => i64::from(bytes),
            Self::Sound | Self::NoStreams | Self::GoesAway => WINDOW_BYTES,
        }
    }
}

/// What was received, over all connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Connections that sent anything.
    pub connections: u64,
    /// Requests that came in full and were acted upon.
    pub requests: u64,
    /// Requests above the last stream of GOAWAY.
    pub ignored: u64,
    /// Of bodies.
    pub body_bytes: u64,
    /// SETTINGS that were acknowledged.
    pub settings_acks: u64,
    /// PING that were acknowledged, with their own eight bytes.
    pub ping_acks: u64,
    /// Codes of the client's RST_STREAM.
    pub resets: Vec<u32>,
    /// Codes of its GOAWAY.
    pub goaways: Vec<u32>,
    /// What the client did that RFC 9113 does not allow.
    pub wrong: Vec<String>,
}

type Plan = dyn Fn(&ReceivedRequest) -> Vec<Act> + Send + Sync;

/// The server; it listens until the test's process ends.
pub struct H2FaultServer {
    url: String,
    shared: Arc<Shared>,
}

struct Shared {
    plan: Box<Plan>,
    manner: Manner,
    counts: Mutex<ServerCounts>,
}

impl H2FaultServer {
    /// Does what `plan` returns to each request.
    pub fn start(plan: impl Fn(&ReceivedRequest) -> Vec<Act> + Send + Sync + 'static) -> Self {
        Self::with(Manner::Sound, plan)
    }

    /// The same in this manner.
    pub fn with(
        manner: Manner,
        plan: impl Fn(&ReceivedRequest) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let shared = Arc::new(Shared { plan: Box::new(plan), manner, counts: Mutex::default() });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&accepting);
                // An error is the client's leaving.
                std::thread::spawn(move || Connection::new(stream, &shared).serve());
            }
        });
        Self { url, shared }
    }

    /// `http://127.0.0.1:PORT/`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What was received so far.
    pub fn counts(&self) -> ServerCounts {
        self.shared.lock_counts().clone()
    }
}

impl Shared {
    fn lock_counts(&self) -> MutexGuard<'_, ServerCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    Close,
}

struct Connection<'s> {
    stream: TcpStream,
    shared: &'s Shared,
    /// Requests that are still coming, by their streams, with the rest of their windows.
    coming: HashMap<u32, i64>,
    /// Of the client's streams so far.
    highest: u32,
    /// Of GOAWAY.
    last: Option<u32>,
    window: i64,
    /// The client has acknowledged the settings; until then the default windows hold. §6.9.3
    is_agreed: bool,
    /// A header block that goes on.
    block: Option<Header>,
}

impl<'s> Connection<'s> {
    fn new(stream: TcpStream, shared: &'s Shared) -> Self {
        Self {
            stream,
            shared,
            coming: HashMap::new(),
            highest: 0,
            last: None,
            window: WINDOW_BYTES,
            is_agreed: false,
            block: None,
        }
    }

    fn serve(mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        self.stream.write_all(&self.shared.manner.first())?;
        let mut preface = [0; PREFACE.len()];
        self.stream.read_exact(&mut preface)?;
        self.shared.lock_counts().connections += 1;
        self.demand(preface == *PREFACE, "the preface is another");
        let mut is_first = true;
        loop {
            let mut header = [0; 9];
            self.stream.read_exact(&mut header)?;
            let header = Header::read(header);
            if header.length > PAYLOAD_BYTES_MAX {
                self.demand(false, "a frame is too long");
                return Ok(());
            }
            let mut payload = vec![0; header.length as usize];
            self.stream.read_exact(&mut payload)?;
            let is_settings = header.kind == kind::SETTINGS && !header.has(flag::ACK);
            self.demand(!is_first || is_settings, "the first frame is not SETTINGS");
            is_first = false;
            if self.take(header, &payload)? == Then::Close {
                // Unread bytes would turn it into a reset.
                self.stream.shutdown(Shutdown::Write)?;
                return io::copy(&mut self.stream, &mut io::sink()).map(drop);
            }
        }
    }

    /// Notes it where the client does what it must not.
    fn demand(&self, is_right: bool, otherwise: &str) {
        if !is_right {
            self.shared.lock_counts().wrong.push(otherwise.to_owned());
        }
    }

    fn take(&mut self, header: Header, payload: &[u8]) -> io::Result<Then> {
        let is_continued = header.kind == kind::CONTINUATION;
        self.demand(self.block.is_some() == is_continued, "a header block is interrupted");
        let is_of_connection = matches!(header.kind, kind::SETTINGS | kind::PING | kind::GOAWAY);
        let is_free = header.kind == kind::WINDOW_UPDATE;
        let fits = is_free || is_of_connection == (header.stream == 0);
        self.demand(fits, "a frame is on a wrong stream");
        match header.kind {
            kind::HEADERS => return self.on_headers(header),
            kind::CONTINUATION => return self.on_block(header),
            kind::DATA => return self.on_data(header, payload.len()),
            kind::SETTINGS => self.on_settings(header, payload)?,
            kind::PING if header.has(flag::ACK) => {
                self.demand(payload == frames::PING, "an answer to a ping has other bytes");
                self.shared.lock_counts().ping_acks += 1;
            }
            kind::RST_STREAM => {
                self.demand(header.stream <= self.highest, "RST_STREAM of a stream not opened");
                self.coming.remove(&header.stream);
                self.shared.lock_counts().resets.push(number(payload));
            }
            kind::GOAWAY => {
                self.shared.lock_counts().goaways.push(number(payload.get(4..8).unwrap()))
            }
            kind::WINDOW_UPDATE => self.demand(number(payload) > 0, "a window opens by nothing"),
            _ => self.demand(false, "a frame that no client needs"),
        }
        Ok(Then::GoOn)
    }

    fn on_settings(&mut self, header: Header, payload: &[u8]) -> io::Result<()> {
        self.demand(payload.len().is_multiple_of(6), "SETTINGS of a wrong length");
        match header.has(flag::ACK) {
            true => {
                self.shared.lock_counts().settings_acks += 1;
                if !std::mem::replace(&mut self.is_agreed, true) {
                    let growth = self.shared.manner.window() - WINDOW_BYTES;
                    self.coming.values_mut().for_each(|window| *window += growth);
                }
            }
            false => self.stream.write_all(&ack(kind::SETTINGS, &[]))?,
        }
        Ok(())
    }

    fn on_headers(&mut self, header: Header) -> io::Result<Then> {
        let is_new = header.stream % 2 == 1 && header.stream > self.highest;
        self.demand(is_new, "a stream's number is not odd and higher than those before");
        self.highest = self.highest.max(header.stream);
        let window = if self.is_agreed { self.shared.manner.window() } else { WINDOW_BYTES };
        self.coming.insert(header.stream, window);
        self.block = Some(header);
        self.on_block(header)
    }

    /// A part of a header block.
    fn on_block(&mut self, part: Header) -> io::Result<Then> {
        let Some(first) = self.block else { return Ok(Then::Close) };
        self.demand(part.stream == first.stream, "a header block goes on on another stream");
        if !part.has(flag::END_HEADERS) {
            return Ok(Then::GoOn);
        }
        self.block = None;
        match first.has(flag::END_STREAM) {
            true => self.act(first.stream),
            false => Ok(Then::GoOn),
        }
    }

    fn on_data(&mut self, header: Header, bytes: usize) -> io::Result<Then> {
        self.window -= bytes as i64;
        self.demand(self.window >= 0, "more data than the connection's window has");
        let Some(window) = self.coming.get_mut(&header.stream) else {
            self.demand(header.stream <= self.highest, "DATA of a stream not opened");
            return Ok(Then::GoOn);
        };
        *window -= bytes as i64;
        let fits = *window >= 0;
        self.demand(fits, "more data than the stream's window has");
        self.shared.lock_counts().body_bytes += bytes as u64;
        let ends = header.has(flag::END_STREAM);
        if self.shared.manner == Manner::Sound && bytes > 0 {
            self.window += bytes as i64;
            self.stream.write_all(&window_update(0, bytes as u32))?;
            if let Some(window) = self.coming.get_mut(&header.stream).filter(|_| !ends) {
                *window += bytes as i64;
                self.stream.write_all(&window_update(header.stream, bytes as u32))?;
            }
        }
        if ends { self.act(header.stream) } else { Ok(Then::GoOn) }
    }

    /// A request has come in full.
    fn act(&mut self, stream: u32) -> io::Result<Then> {
        if self.coming.remove(&stream).is_none() {
            return Ok(Then::GoOn);
        }
        if self.last.is_some_and(|last| stream > last) {
            self.shared.lock_counts().ignored += 1;
            return Ok(Then::GoOn);
        }
        let index = self.next_index();
        for act in (self.shared.plan)(&ReceivedRequest { index, stream }) {
            match act {
                Act::Write(bytes) => self.stream.write_all(&bytes)?,
                Act::GoAway(code) => {
                    self.last = Some(stream);
                    self.stream.write_all(&go_away(stream, code))?;
                }
                Act::Close => return Ok(Then::Close),
            }
        }
        Ok(Then::GoOn)
    }

    fn next_index(&self) -> u64 {
        let mut counts = self.shared.lock_counts();
        counts.requests += 1;
        counts.requests - 1
    }
}
