//! Streams, one pair of threads per connection.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::lock;

/// How often the accepting thread checks for a stop.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
const CHUNK_BYTES: usize = 64 << 10;

/// Transforms what arrived into what is passed on: appends to the second argument.
pub type Filter = Box<dyn FnMut(&[u8], &mut Vec<u8>) + Send>;
/// Makes the filters of one connection: to the server, to the client.
pub type Filters = dyn Fn() -> (Filter, Filter) + Send + Sync;

/// A listener that passes every connection on. Stops when dropped.
pub struct TcpRelay {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<Listening>,
}

struct Listening {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

struct Shared {
    server: Mutex<SocketAddr>,
    filters: Box<Filters>,
    accepted: AtomicU64,
    open: Mutex<HashMap<u64, [TcpStream; 2]>>,
}

impl TcpRelay {
    /// Listens on a free port of 127.0.0.1 for clients of `server`.
    pub fn start(server: SocketAddr, filters: Box<Filters>) -> Self {
        let shared = Arc::new(Shared {
            server: Mutex::new(server),
            filters,
            accepted: AtomicU64::new(0),
            open: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let listening = Some(listen(listener, &shared));
        Self { address, shared, listening }
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections so far.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Cuts every connection; new ones are refused.
    pub fn go_down(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.stop.store(true, Ordering::SeqCst);
            // An error is a panic that its thread has reported already.
            let _ = listening.thread.join();
        }
        for streams in lock(&self.shared.open).values() {
            for stream in streams {
                // An error means that the peer was faster.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }

    /// Takes connections again, for the server that is at `server` now.
    pub fn come_back_at(&mut self, server: SocketAddr) {
        *lock(&self.shared.server) = server;
        self.come_back();
    }

    /// Takes connections again.
    pub fn come_back(&mut self) {
        if self.listening.is_none() {
            let listener = TcpListener::bind(self.address).unwrap();
            self.listening = Some(listen(listener, &self.shared));
        }
    }
}

impl Drop for TcpRelay {
    fn drop(&mut self) {
        self.go_down();
    }
}

fn listen(listener: TcpListener, shared: &Arc<Shared>) -> Listening {
    listener.set_nonblocking(true).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (stop_requested, shared) = (Arc::clone(&stop), Arc::clone(shared));
    let thread = std::thread::spawn(move || {
        while !stop_requested.load(Ordering::SeqCst) {
            let _ = poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&LOOK_AGAIN));
            if let Ok((client, _)) = listener.accept() {
                // An error is the server's refusal; dropping the stream passes it on.
                let _ = take(client, &shared);
            }
        }
    });
    Listening { stop, thread }
}

fn take(client: TcpStream, shared: &Arc<Shared>) -> std::io::Result<()> {
    let connection = shared.accepted.fetch_add(1, Ordering::SeqCst);
    let address = *lock(&shared.server);
    let server = TcpStream::connect(address)?;
    client.set_nonblocking(false)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    lock(&shared.open).insert(connection, [client.try_clone()?, server.try_clone()?]);
    let (to_server, to_client) = (shared.filters)();
    let (back_from, back_to) = (server.try_clone()?, client.try_clone()?);
    let for_thread = Arc::clone(shared);
    // Not joined: both end when their sockets do, which `go_down` sees to.
    std::thread::spawn(move || {
        let back = std::thread::spawn(move || pass(back_from, back_to, to_client));
        pass(client, server, to_server);
        let _ = back.join();
        lock(&for_thread.open).remove(&connection);
    });
    Ok(())
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut filter: Filter) {
    let mut bytes = vec![0; CHUNK_BYTES];
    let mut out = Vec::new();
    // The end and an error are the same to the other side: nothing more comes.
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        out.clear();
        filter(&bytes[..read], &mut out);
        if to.write_all(&out).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
