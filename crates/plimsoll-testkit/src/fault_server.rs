//! An HTTP server that misbehaves on purpose: per request, per connection, or as a whole.

mod reply;

use std::collections::HashMap;
use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{SockFilter, SockRef};

/// How often the accepting thread checks for a stop.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// What happens to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The right reply.
    None,
    /// This status, with a short body.
    Status(u16),
    /// The right status and length; one byte in the middle of the body is flipped.
    FlippedByte,
    /// A complete, well-formed reply whose body is this many bytes longer (or shorter) than right.
    WrongLength(i64),
    /// Announces the whole body and closes in its middle.
    Truncated,
    /// A first line that is not HTTP.
    MalformedStatusLine,
    /// `Content-Length: banana`.
    MalformedLength,
    /// The right reply after one header of this many bytes.
    HugeHeader(usize),
    /// The right body in chunks of this many bytes.
    Chunked(usize),
    /// A chunk whose size is not a number.
    BadChunkSize,
    /// The last chunk never comes; the connection closes instead.
    UnfinishedChunks,
    /// The right reply, `bytes` at a time with `pause` between.
    SlowDrip {
        /// Bytes per write.
        bytes: usize,
        /// Pause between writes.
        pause: Duration,
    },
    /// The right reply after a pause.
    Late(Duration),
    /// The right reply, its head and its body in a write each with this pause between.
    TwoWrites(Duration),
    /// No reply at all; the connection stays open.
    Silence,
    /// A TCP reset instead of a reply.
    ResetBeforeReply,
    /// A clean close instead of a reply, as a server does to an idle connection just then.
    CloseBeforeReply,
    /// The right reply without `Connection: close`, then a close.
    CloseAfterReply,
    /// The right reply with `Connection: close`, then a close.
    AnnouncedCloseAfterReply,
    /// The right reply, then these bytes after a pause, in which nothing else is answered on the
    /// connection. Without a pause they leave together with the reply.
    TrailingBytes {
        /// The unrequested bytes.
        bytes: Vec<u8>,
        /// How long after the reply.
        after: Duration,
    },
    /// 301 to this location.
    Redirect(String),
}

/// Which request a fault is decided for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFacts {
    /// From 0, over all connections.
    pub index: u64,
    /// From 0, in order of acceptance.
    pub connection: u64,
    /// From 0, on its connection.
    pub on_connection: u64,
    /// `GET`, `HEAD`, …
    pub method: String,
    /// As received.
    pub path: String,
}

/// Gives the right body of a path, if there is one; without one the reply is a 404.
pub type Content = dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync;
/// Decides what happens to a request.
pub type Plan = dyn Fn(&RequestFacts) -> Fault + Send + Sync;

/// A running server; stops when dropped.
pub struct FaultServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<Listening>,
}

struct Listening {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

struct Shared {
    content: Box<Content>,
    plan: Box<Plan>,
    requests: AtomicU64,
    accepted: AtomicU64,
    ignoring: Mutex<Ignore>,
    sockets: Mutex<Sockets>,
    open: Mutex<HashMap<u64, TcpStream>>,
}

impl FaultServer {
    /// Listens on a free port of 127.0.0.1; `content` is what is right, `plan` what happens.
    pub fn start(
        content: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static,
        plan: impl Fn(&RequestFacts) -> Fault + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            content: Box::new(content),
            plan: Box::new(plan),
            requests: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            ignoring: Mutex::new(Ignore::No),
            sockets: Mutex::new(Sockets::Sound),
            open: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let listening = Some(listen(listener, &shared));
        Self { address, shared, listening }
    }

    /// Every path holds the same `bytes` bytes.
    pub fn with_fixed_body(
        bytes: usize,
        plan: impl Fn(&RequestFacts) -> Fault + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |_| Some(vec![b'x'; bytes]), plan)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Requests read so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Connections accepted so far.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Whether new connections are left in the kernel's queue: they open and nothing answers. In
    /// force once this returns.
    pub fn ignore_new_connections(&self, ignore: Ignore) {
        *lock(&self.shared.ignoring) = ignore;
    }

    /// How connections are treated that are accepted from now on.
    pub fn prepare_sockets(&self, sockets: Sockets) {
        *lock(&self.shared.sockets) = sockets;
    }

    /// Dies like a process: all connections are closed, new ones are refused.
    pub fn go_down(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.stop.store(true, Ordering::SeqCst);
            // An error is a panic that its thread has reported already.
            let _ = listening.thread.join();
        }
        for stream in lock(&self.shared.open).values() {
            // An error means that the client was faster.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Comes back on the same port.
    pub fn come_back(&mut self) {
        if self.listening.is_none() {
            let listener = TcpListener::bind(self.address).unwrap();
            self.listening = Some(listen(listener, &self.shared));
        }
    }
}

/// Whether new connections are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignore {
    /// They are.
    Yes,
    /// They are served, also those that waited.
    No,
}

impl Drop for FaultServer {
    fn drop(&mut self) {
        self.go_down();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(listener: TcpListener, shared: &Arc<Shared>) -> Listening {
    listener.set_nonblocking(true).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (stop_requested, shared) = (Arc::clone(&stop), Arc::clone(shared));
    let thread = std::thread::spawn(move || {
        while !stop_requested.load(Ordering::SeqCst) {
            let events = match *lock(&shared.ignoring) {
                Ignore::Yes => PollFlags::empty(),
                Ignore::No => PollFlags::IN,
            };
            let mut watched = [PollFd::new(&listener, events)];
            let _ = poll(&mut watched, Some(&LOOK_AGAIN));
            // Checked again, under the lock: what comes after an order to ignore it is not
            // accepted.
            let ignoring = lock(&shared.ignoring);
            if *ignoring == Ignore::No
                && let Ok((stream, _)) = listener.accept()
            {
                take(stream, &shared);
            }
        }
    });
    Listening { stop, thread }
}

fn take(stream: TcpStream, shared: &Arc<Shared>) {
    let connection = shared.accepted.fetch_add(1, Ordering::SeqCst);
    stream.set_nonblocking(false).unwrap();
    lock(&shared.sockets).prepare(&stream);
    lock(&shared.open).insert(connection, stream.try_clone().unwrap());
    let for_thread = Arc::clone(shared);
    // Not joined: a thread in a long pause ends when it next touches its closed socket.
    std::thread::spawn(move || {
        // An error is the client's leaving, or ours by `go_down`.
        let _ = serve(stream, connection, &for_thread);
        lock(&for_thread.open).remove(&connection);
    });
}

fn serve(mut stream: TcpStream, connection: u64, shared: &Shared) -> std::io::Result<()> {
    let mut buffer = RequestBuffer::default();
    let mut bytes = [0; 4096];
    let mut on_connection = 0;
    loop {
        while let Some(head) = buffer.next() {
            let index = shared.requests.fetch_add(1, Ordering::SeqCst);
            let facts = RequestFacts {
                index,
                connection,
                on_connection,
                method: head.method,
                path: head.path,
            };
            on_connection += 1;
            let fault = (shared.plan)(&facts);
            let body = (shared.content)(&facts.path);
            let wants_close = head.wants_close;
            if reply::send(&mut stream, &facts, (&fault, body))? == reply::Then::Close
                || wants_close
            {
                return Ok(());
            }
        }
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            read => buffer.add(&bytes[..read]),
        }
    }
}

/// What is wrong with accepted sockets, or nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sockets {
    /// What is written leaves at once.
    Sound,
    /// Nagle's algorithm: a small write waits until the one before is acknowledged.
    WithNagle,
    /// The kernel drops this share of the segments that come in, and TCP recovers.
    Losing(f64),
}

/// Instructions of classic BPF, from `linux/filter.h`: load a word, jump if at least, return.
const LOAD_WORD: u16 = 0x20;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
/// Where a filter finds a random word.
const RANDOM: u32 = 0xffff_f000 + 56;
/// Returned to keep a whole segment; 0 drops it.
const KEEP: u32 = u32::MAX;

impl Sockets {
    /// Prepares a socket that was accepted.
    fn prepare(self, stream: &TcpStream) {
        stream.set_nodelay(self != Self::WithNagle).unwrap();
        if let Self::Losing(share) = self {
            let below = (share * f64::from(u32::MAX)) as u32;
            let drop_some = [
                SockFilter::new(LOAD_WORD, 0, 0, RANDOM),
                SockFilter::new(JUMP_IF_AT_LEAST, 0, 1, below),
                SockFilter::new(RETURN, 0, 0, KEEP),
                SockFilter::new(RETURN, 0, 0, 0),
            ];
            SockRef::from(stream).attach_filter(&drop_some).unwrap();
        }
    }
}

/// A longer head than any client of these tests sends.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A client's request. Requests with bodies are not supported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) wants_close: bool,
}

/// Bytes received and not yet understood.
#[derive(Debug, Default)]
pub(crate) struct RequestBuffer(Vec<u8>);

impl RequestBuffer {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        assert!(self.0.len() <= HEAD_BYTES_MAX, "a request head of more than 64 KiB");
    }

    /// The next complete request head.
    pub(crate) fn next(&mut self) -> Option<RequestHead> {
        let end = self.0.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let head: Vec<u8> = self.0.drain(..end).collect();
        let head = String::from_utf8_lossy(&head);
        let mut lines = head.lines();
        let mut first = lines.next().unwrap_or_default().split(' ');
        let wants_close = lines.any(|line| line.eq_ignore_ascii_case("connection: close"));
        let method = first.next().unwrap_or_default().to_owned();
        let path = first.next().unwrap_or_default().to_owned();
        Some(RequestHead { method, path, wants_close })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_in_pieces_and_two_heads_at_once_are_understood() {
        let mut buffer = RequestBuffer::default();
        buffer.add(b"GET /a HTTP/1.1\r\nHost: x\r\n");
        assert_eq!(buffer.next(), None);
        buffer.add(b"\r\nHEAD /b HTTP/1.1\r\nConnection: close\r\n\r\n");
        let (first, second) = (buffer.next().unwrap(), buffer.next().unwrap());
        assert_eq!((first.path.as_str(), first.wants_close), ("/a", false));
        assert_eq!((second.method.as_str(), second.wants_close), ("HEAD", true));
        assert_eq!(buffer.next(), None);
    }
}
