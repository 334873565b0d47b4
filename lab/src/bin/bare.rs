//! The least a program can do to exchange HTTP, or application transactions, with a server: epoll,
//! a fixed request, a reply known by its length. No parsing, no checks, no histograms. It measures
//! how much of a generator's cost is the kernel's.
//!
//! `bare closed|poll|discard|spin|precise|app ADDRESS PATH CONNECTIONS SECONDS [RATE]`
//!
//! `closed`, `poll` and `discard` keep every connection busy; `poll` never sleeps, `discard` lets
//! the kernel drop the replies.
//! `spin` and `precise` send at absolute due times, evenly spaced, and time from due to done.
//! `app` is `closed` with client/server transactions; its PATH is `REQUEST/REPLY`, the bytes of
//! both, headers included.
//!
//! `bare work CORES SECONDS` does what a processor transaction does, on each of the cores of the
//! list at the same time: how much of it the host can do at most.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer command talks to the developer's terminal"
)]

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use plimsoll_app::wire::work_checksum;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Large enough that a reply of 100 KB needs few calls.
const BUFFER_BYTES: usize = 256 * 1024;
const EVENTS_MAX: usize = 256;
/// Room for times of a closed load; more are kept too, at the price of a copy.
const CLOSED_PER_S_MAX: usize = 300_000;
const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Units of work of a processor transaction of the suite.
const WORK_UNITS: u32 = 100;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let tokens: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["work", cores, seconds] = tokens.as_slice() {
        return work(cores, Duration::from_secs(seconds.parse()?));
    }
    let [mode, address, path, connections, seconds, rest @ ..] = tokens.as_slice() else {
        return Err(
            "usage: bare closed|poll|discard|spin|precise|app ADDRESS PATH CONNECTIONS SECONDS [RATE]"
                .into(),
        );
    };
    let (address, connections) = (address.parse()?, connections.parse()?);
    let mut exchange = match *mode {
        "app" => Exchange::open_app(address, path, connections)?,
        _ => Exchange::open(address, path, connections)?,
    };
    let span = Duration::from_secs(seconds.parse()?);
    let rate: u64 = rest.first().map_or(Ok(0), |rate| rate.parse())?;
    match *mode {
        "closed" | "app" => exchange.closed(span, RecvFlags::empty(), Wait::Precise),
        "poll" => exchange.closed(span, RecvFlags::empty(), Wait::Spin),
        "discard" => exchange.closed(span, RecvFlags::TRUNC, Wait::Precise),
        "spin" if rate > 0 => exchange.scheduled(span, rate, Wait::Spin),
        "precise" if rate > 0 => exchange.scheduled(span, rate, Wait::Precise),
        other => Err(format!("{other}: no such mode, or it needs a rate").into()),
    }
}

/// Units of work a second, of one thread on each core.
fn work(cores: &str, span: Duration) -> Result<String> {
    let cores: Vec<usize> =
        cores.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
    let started = now();
    let threads: Vec<_> = cores
        .into_iter()
        .map(|core| {
            std::thread::spawn(move || -> rustix::io::Result<u32> {
                let mut set = CpuSet::new();
                set.set(core);
                sched_setaffinity(None, &set)?;
                let mut units = 0;
                while started.elapsed() < span {
                    black_box(work_checksum(units, WORK_UNITS));
                    units += WORK_UNITS;
                }
                Ok(units)
            })
        })
        .collect();
    let mut units = 0.0;
    for thread in threads {
        units += f64::from(thread.join().map_err(|_| "a thread panicked")??);
    }
    Ok(format!("units_per_s={:.0}", units / started.elapsed().as_secs_f64()))
}

/// How a scheduled load waits for its next due time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Spin,
    Precise,
}

struct Connection {
    stream: TcpStream,
    /// Bytes of the reply that are still to come; 0 means idle.
    missing: usize,
    /// When the request in flight was due, from the start.
    due_ns: u64,
}

struct Exchange {
    poll: rustix::fd::OwnedFd,
    connections: Vec<Connection>,
    request: Vec<u8>,
    reply_bytes: usize,
    buffer: Vec<u8>,
}

impl Exchange {
    fn open(address: SocketAddr, path: &str, connections: usize) -> Result<Self> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes();
        let mut reply_bytes = 0;
        let connections = connect(address, connections, |index, stream| {
            if index == 0 {
                reply_bytes = measure_reply(stream, &request)?;
            }
            Ok(())
        })?;
        Self::from_streams(connections, request, reply_bytes)
    }

    /// Client/server transactions; `docs/app-protocol.md` has the frames.
    fn open_app(address: SocketAddr, sizes: &str, connections: usize) -> Result<Self> {
        const REQUEST_HEADER_BYTES: usize = 40;
        const REPLY_HEADER_BYTES: usize = 24;
        let (request_bytes, reply_bytes) =
            sizes.split_once('/').ok_or("sizes are REQUEST/REPLY")?;
        let (request_bytes, reply_bytes): (usize, usize) =
            (request_bytes.parse()?, reply_bytes.parse()?);
        let payload = request_bytes.checked_sub(REQUEST_HEADER_BYTES).ok_or("request too short")?;
        let size = reply_bytes.checked_sub(REPLY_HEADER_BYTES).ok_or("reply too short")?;
        let mut request = vec![0; request_bytes];
        request[..4].copy_from_slice(&u32::try_from(payload)?.to_be_bytes());
        request[4] = 1;
        request[12..16].copy_from_slice(&u32::try_from(size)?.to_be_bytes());
        let connections = connect(address, connections, |index, stream| {
            greet_app(stream, u32::try_from(index)?)
        })?;
        Self::from_streams(connections, request, reply_bytes)
    }

    fn from_streams(streams: Vec<TcpStream>, request: Vec<u8>, reply_bytes: usize) -> Result<Self> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut open = Vec::with_capacity(streams.len());
        for (index, stream) in streams.into_iter().enumerate() {
            stream.set_nonblocking(true)?;
            let data = epoll::EventData::new_u64(index as u64);
            epoll::add(&poll, &stream, data, epoll::EventFlags::IN)?;
            open.push(Connection { stream, missing: 0, due_ns: 0 });
        }
        let buffer = vec![0; BUFFER_BYTES];
        Ok(Self { poll, connections: open, request, reply_bytes, buffer })
    }

    /// Every connection sends its next request as soon as its reply is complete.
    fn closed(&mut self, span: Duration, flags: RecvFlags, how: Wait) -> Result<String> {
        let mut times_ns: Vec<u64> = Vec::with_capacity(span.as_secs() as usize * CLOSED_PER_S_MAX);
        let start = now();
        let since_start = || start.elapsed().as_nanos() as u64;
        let timeout = match how {
            Wait::Spin => Duration::ZERO,
            Wait::Precise => Duration::from_millis(100),
        };
        for index in 0..self.connections.len() {
            self.send(index, 0)?;
        }
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS_MAX);
        while start.elapsed() < span {
            events.clear();
            wait(&self.poll, &mut events, Some(timeout))?;
            for event in &events {
                let index = event.data.u64() as usize;
                if self.receive(index, flags)? {
                    let done = since_start();
                    times_ns.push(done - self.connections[index].due_ns);
                    self.send(index, done)?;
                }
            }
        }
        Ok(summary(times_ns, start.elapsed()))
    }

    /// Requests leave at absolute due times, on whichever connection is idle.
    fn scheduled(&mut self, span: Duration, rate: u64, how: Wait) -> Result<String> {
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let total = rate * span.as_secs();
        let mut times_ns: Vec<u64> = Vec::with_capacity(total as usize);
        let mut idle: Vec<usize> = (0..self.connections.len()).collect();
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS_MAX);
        let due_of = |index: u64| index * NANOS_PER_SECOND / rate;
        let start = now();
        let since_start = || start.elapsed().as_nanos() as u64;
        let mut next = 0u64;
        while (times_ns.len() as u64) < total {
            let instant = since_start();
            while next < total && due_of(next) <= instant {
                let Some(index) = idle.pop() else { break };
                self.send(index, due_of(next))?;
                next += 1;
            }
            let blocked = idle.is_empty() || next == total;
            let timeout = match how {
                Wait::Spin => Some(Duration::ZERO),
                Wait::Precise if blocked => Some(Duration::from_millis(100)),
                Wait::Precise => {
                    Some(Duration::from_nanos(due_of(next).saturating_sub(since_start())))
                }
            };
            events.clear();
            wait(&self.poll, &mut events, timeout)?;
            for event in &events {
                let index = event.data.u64() as usize;
                if self.receive(index, RecvFlags::empty())? {
                    times_ns.push(since_start() - self.connections[index].due_ns);
                    idle.push(index);
                }
            }
        }
        Ok(summary(times_ns, start.elapsed()))
    }

    fn send(&mut self, index: usize, due_ns: u64) -> Result<()> {
        let connection = &mut self.connections[index];
        let sent = send(&connection.stream, &self.request, SendFlags::NOSIGNAL)?;
        if sent != self.request.len() {
            return Err("the socket took part of a request only".into());
        }
        connection.missing = self.reply_bytes;
        connection.due_ns = due_ns;
        Ok(())
    }

    /// True when the reply is complete.
    fn receive(&mut self, index: usize, flags: RecvFlags) -> Result<bool> {
        let connection = &mut self.connections[index];
        let bytes = match recv(&connection.stream, &mut self.buffer[..], flags) {
            Ok((_, 0)) => return Err("the server closed a connection".into()),
            Ok((_, bytes)) => bytes,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        connection.missing = connection
            .missing
            .checked_sub(bytes)
            .ok_or("a reply is longer than the first one was")?;
        Ok(connection.missing == 0)
    }
}

fn summary(mut times_ns: Vec<u64>, span: Duration) -> String {
    times_ns.sort_unstable();
    let count = times_ns.len();
    let at = |share: f64| times_ns.get((count as f64 * share) as usize).copied().unwrap_or(0);
    format!(
        "requests={count} seconds={:.6} p50_ns={} p99_ns={} p999_ns={}",
        span.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(0.999)
    )
}

/// Waits with a nanosecond timeout and fills the list.
fn wait(
    poll: &rustix::fd::OwnedFd,
    events: &mut Vec<epoll::Event>,
    timeout: Option<Duration>,
) -> Result<()> {
    let timeout = timeout
        .map(|t| Timespec { tv_sec: t.as_secs() as i64, tv_nsec: i64::from(t.subsec_nanos()) });
    match epoll::wait(poll, spare_capacity(events), timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Opens the connections and lets `begin` send on each what precedes the first request.
fn connect(
    address: SocketAddr,
    connections: usize,
    mut begin: impl FnMut(usize, &mut TcpStream) -> Result<()>,
) -> Result<Vec<TcpStream>> {
    let open = |index| {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        begin(index, &mut stream)?;
        Ok(stream)
    };
    (0..connections).map(open).collect()
}

/// Greets without asking for a data segment.
fn greet_app(stream: &mut TcpStream, client: u32) -> Result<()> {
    let mut hello = [0; 24];
    hello[..6].copy_from_slice(b"PLMS\x00\x01");
    hello[8..12].copy_from_slice(&client.to_be_bytes());
    stream.write_all(&hello)?;
    let mut welcome = [0; 32];
    stream.read_exact(&mut welcome)?;
    match &welcome[..8] {
        b"PLMS\x00\x01\x00\x00" => Ok(()),
        other => Err(format!("the server answered {other:02x?} to the greeting").into()),
    }
}

/// Sends one request and counts the bytes of the whole reply, head and body.
fn measure_reply(stream: &mut TcpStream, request: &[u8]) -> Result<usize> {
    stream.write_all(request)?;
    let mut reply = Vec::new();
    let mut chunk = [0; 4096];
    let head_bytes = loop {
        let bytes = stream.read(&mut chunk)?;
        if bytes == 0 {
            return Err("the server closed before its reply was complete".into());
        }
        reply.extend_from_slice(&chunk[..bytes]);
        if let Some(at) = reply.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let head = String::from_utf8_lossy(&reply[..head_bytes]).to_lowercase();
    if !head.starts_with("http/1.1 200") {
        return Err(format!("the server answered {}", head.lines().next().unwrap_or("?")).into());
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let body_bytes: usize = length.ok_or("the reply has no content length")?.trim().parse()?;
    let total = head_bytes + body_bytes;
    let rest = total.saturating_sub(reply.len());
    let mut rest_of_body = vec![0; rest];
    stream.read_exact(&mut rest_of_body)?;
    Ok(total)
}

#[allow(clippy::disallowed_methods, reason = "this program is a clock and a socket")]
fn now() -> Instant {
    Instant::now()
}
