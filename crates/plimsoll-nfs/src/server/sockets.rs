//! Sockets. TCP: one thread per connection, which answers all calls of one read with one write.
//! UDP: threads that share a socket, one datagram after the other.

use std::collections::HashMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_servers::{ServerError, Stop, cores};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

use super::delayed::{DelayedReplies, Recipient, lock};
use super::{Answered, BackChannel, Link, NfsCore, Peer};
use crate::wire::record::{self, Assembler};

/// Connections served at a time; more are closed at once. Each may hold one record and some
/// replies, 3 MB if it is malicious.
const CONNECTIONS_MAX: usize = 512;
/// Bytes of a read: some hundred small calls, or a dozen writes of 8 KiB.
const READ_BYTES: usize = 128 << 10;
/// Bytes of replies that are kept back for more. At most this and the longest reply is buffered.
const REPLIES_BYTES: usize = 256 << 10;
/// A connection without a call for this long is closed.
const IDLE_MAX: Duration = Duration::from_secs(600);
/// How long a client may not read its replies.
const WRITE_WAIT_MAX: Duration = Duration::from_secs(30);
/// How often to look whether to stop.
const STOP_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// How long to leave accept alone when the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Accepts and serves until `stop` is requested, then ends all connections.
pub(super) fn serve_streams(
    (core, delayed): (&NfsCore, Option<&DelayedReplies>),
    listeners: &[TcpListener],
    stop: &Stop,
) -> Result<(), ServerError> {
    let open = OpenConnections::default();
    std::thread::scope(|scope| {
        let mut number = 0_u64;
        let served = loop {
            if stop.is_requested() {
                break Ok(());
            }
            if let Err(source) = wait(listeners) {
                break Err(ServerError::System { doing: "watch the listening sockets", source });
            }
            for (stream, address) in listeners.iter().filter_map(next_connection) {
                number += 1;
                let Some(entry) = open.enter(number, &stream) else { continue };
                let peer = Peer { address, link: Link::Stream };
                let builder = std::thread::Builder::new().name(format!("nfs-tcp-{number}"));
                // Without a thread the connection closes, which the client sees.
                let _ = builder.spawn_scoped(scope, move || {
                    match delayed {
                        None => answer_all(core, &peer, stream),
                        Some(delayed) => answer_in_time(core, &peer, stream, delayed),
                    }
                    drop(entry);
                });
            }
        };
        open.end_all();
        served
    })
}

fn wait(listeners: &[TcpListener]) -> std::io::Result<()> {
    let mut watched: Vec<PollFd<'_>> =
        listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)).collect();
    match poll(&mut watched, Some(&STOP_LOOK)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn next_connection(listener: &TcpListener) -> Option<(TcpStream, IpAddr)> {
    match listener.accept() {
        Ok((stream, peer)) => {
            let set_up = stream
                .set_nonblocking(false)
                .and_then(|()| stream.set_nodelay(true))
                .and_then(|()| stream.set_read_timeout(Some(IDLE_MAX)))
                .and_then(|()| stream.set_write_timeout(Some(WRITE_WAIT_MAX)));
            set_up.ok().map(|()| (stream, peer.ip()))
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        // Out of descriptors, or a client that left while queueing: the server goes on.
        Err(_) => {
            std::thread::sleep(ACCEPT_PAUSE);
            None
        }
    }
}

/// Serves one connection to its end.
fn answer_all(core: &NfsCore, peer: &Peer, mut stream: TcpStream) {
    let Some((writing, back)) = writer(&stream) else { return };
    let mut received = vec![0; READ_BYTES];
    let mut assembler = Assembler::new();
    let mut replies = Vec::new();
    loop {
        let Some(bytes) = read(&mut stream, &mut received) else { return };
        let mut rest = &received[..bytes];
        loop {
            match assembler.take(&mut rest) {
                Ok(Some(record)) => answer((core, peer, &back), record, &mut replies),
                Ok(None) => break,
                // The start of the next record is lost.
                Err(_) => return,
            }
            if replies.len() >= REPLIES_BYTES && !send(&mut lock(&writing), &mut replies) {
                return;
            }
        }
        if !send(&mut lock(&writing), &mut replies) {
            return;
        }
    }
}

/// Some bytes; `None` at the end of the connection, however it came.
fn read(stream: &mut TcpStream, into: &mut [u8]) -> Option<usize> {
    loop {
        match stream.read(into) {
            Ok(0) => return None,
            Ok(bytes) => return Some(bytes),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Serves one connection to its end, with replies that wait for their instants.
fn answer_in_time(core: &NfsCore, peer: &Peer, mut stream: TcpStream, delayed: &DelayedReplies) {
    let Some((writing, back)) = writer(&stream) else { return };
    let mut received = vec![0; READ_BYTES];
    let mut assembler = Assembler::new();
    loop {
        let Some(bytes) = read(&mut stream, &mut received) else { return };
        let mut rest = &received[..bytes];
        loop {
            let record = match assembler.take(&mut rest) {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(_) => return,
            };
            let passage = delayed.arrive(record);
            let mut reply = Vec::new();
            answer((core, peer, &back), record, &mut reply);
            match passage {
                Some(passage) => {
                    delayed.hold(passage, reply, Recipient::Stream(Arc::clone(&writing)));
                }
                None if !send(&mut lock(&writing), &mut reply) => return,
                None => {}
            }
        }
    }
}

/// What writes to a connection: the thread that answers its calls, and those that call its client.
fn writer(stream: &TcpStream) -> Option<(Arc<Mutex<TcpStream>>, Arc<BackChannel>)> {
    let writing = Arc::new(Mutex::new(stream.try_clone().ok()?));
    let to_client = Arc::clone(&writing);
    let back = BackChannel::new(move |message| {
        let mut record = Vec::new();
        let at = record::begin(&mut record);
        record.extend_from_slice(message);
        record::finish(&mut record, at);
        // A client that is gone is called again over its next connection.
        let _ = lock(&to_client).write_all(&record);
    });
    Some((writing, Arc::new(back)))
}

fn answer(
    (core, peer, back): (&NfsCore, &Peer, &Arc<BackChannel>),
    request: &[u8],
    replies: &mut Vec<u8>,
) {
    let at = record::begin(replies);
    match core.answer_on(peer, Some(back), request, replies) {
        Answered::Replied => record::finish(replies, at),
        Answered::NoCall => replies.truncate(at),
    }
}

/// False: the client is gone.
fn send(stream: &mut TcpStream, replies: &mut Vec<u8>) -> bool {
    let sent = replies.is_empty() || stream.write_all(replies).is_ok();
    replies.clear();
    replies.shrink_to(2 * REPLIES_BYTES);
    sent
}

/// The connections being served, so that they can be ended.
#[derive(Default)]
struct OpenConnections(Mutex<HashMap<u64, TcpStream>>);

impl OpenConnections {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, TcpStream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: there are too many.
    fn enter(&self, number: u64, stream: &TcpStream) -> Option<Entry<'_>> {
        let mut open = self.lock();
        if open.len() >= CONNECTIONS_MAX {
            return None;
        }
        open.insert(number, stream.try_clone().ok()?);
        Some(Entry { open: self, number })
    }

    fn end_all(&self) {
        for stream in self.lock().values() {
            // An error means that it has ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

struct Entry<'a> {
    open: &'a OpenConnections,
    number: u64,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.open.lock().remove(&self.number);
    }
}

/// Longest datagram.
const DATAGRAM_BYTES_MAX: usize = 64 << 10;
/// Longest reply: what a datagram over IPv4 carries, and a margin.
const REPLY_BYTES_MAX: usize = 60_000;
/// How often to look whether to stop when nothing comes.
const DATAGRAM_STOP_LOOK: Duration = Duration::from_millis(50);
/// Calls that the kernel may keep while all threads are busy; it may give less.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// Answers datagrams until `stop` is requested.
pub(super) fn serve_datagrams(
    (core, delayed): (&NfsCore, Option<&DelayedReplies>),
    socket: &UdpSocket,
    pin: &[u32],
    stop: &Stop,
) -> Result<(), ServerError> {
    cores::pin_current_thread(pin)
        .map_err(|source| ServerError::Pin { cores: cores::list(pin), source })?;
    // Less of a buffer loses calls under bursts, which clients send again.
    let _ = sockopt::set_socket_recv_buffer_size(socket, SOCKET_BUFFER_BYTES);
    let _ = sockopt::set_socket_send_buffer_size(socket, SOCKET_BUFFER_BYTES);
    socket
        .set_read_timeout(Some(DATAGRAM_STOP_LOOK))
        .map_err(|source| ServerError::System { doing: "set up a socket", source })?;
    let mut request = vec![0; DATAGRAM_BYTES_MAX];
    let mut reply = Vec::new();
    while !stop.is_requested() {
        let (bytes, from) = match socket.recv_from(&mut request) {
            Ok(received) => received,
            Err(error) if is_nothing(error.kind()) => continue,
            Err(source) => {
                stop.request();
                return Err(ServerError::System { doing: "receive datagrams", source });
            }
        };
        let peer = Peer { address: from.ip(), link: Link::Datagram };
        reply.clear();
        let passage = delayed.and_then(|delayed| delayed.arrive(&request[..bytes]));
        let answered = core.answer(&peer, &request[..bytes], &mut reply);
        if answered != Answered::Replied || reply.len() > REPLY_BYTES_MAX {
            continue;
        }
        if let (Some(delayed), Some(passage)) = (delayed, passage) {
            let socket = socket
                .try_clone()
                .map_err(|source| ServerError::System { doing: "share a socket", source })?;
            delayed.hold(passage, std::mem::take(&mut reply), Recipient::Datagram(socket, from));
        } else {
            // A reply that cannot be sent is like one that was lost: the client asks again.
            let _ = socket.send_to(&reply, from);
        }
    }
    Ok(())
}

/// No datagram yet, or an earlier reply reached nobody.
fn is_nothing(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
    )
}
