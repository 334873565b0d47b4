//! A client that never stops asking how the server is, and reads whatever comes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_app::wire::{PAYLOAD_BYTES_MAX, RequestHeader, RequestType};
use plimsoll_testkit::clock::now;

/// A server that stops serving others must fail its test instead of blocking it.
const LASTS_MAX: Duration = Duration::from_secs(40);
/// Requests sent together: far more than one read of a server takes.
const TOGETHER: usize = 16_384;
/// Full frames sent before them, by which the kernel learns to keep more for the server than one
/// of its reads takes.
const FULL_FRAMES: usize = 100;

/// One connection in use until this is dropped.
pub struct Flood {
    stream: TcpStream,
    read_bytes: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

/// Begins on a connection that has been greeted; returns once replies flow.
pub fn of_status_requests(stream: TcpStream) -> Flood {
    let of = |kind, payload_bytes| {
        RequestHeader { payload_bytes, kind, id: 1, size: 0, offset: 0, seed: 0, work: 0 }.encode()
    };
    let full = of(RequestType::ClientServer, PAYLOAD_BYTES_MAX);
    let full = [&full[..], &[0; PAYLOAD_BYTES_MAX as usize]].concat().repeat(FULL_FRAMES);
    let requests = of(RequestType::Status, 0).repeat(TOGETHER);
    let read_bytes = Arc::new(AtomicU64::new(0));
    let (mut sender, mut reader) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
    let count = Arc::clone(&read_bytes);
    let until = now() + LASTS_MAX;
    let sending = std::thread::spawn(move || {
        let _ = sender.write_all(&full);
        while now() < until && sender.write_all(&requests).is_ok() {}
        let _ = sender.shutdown(Shutdown::Both);
    });
    let reading = std::thread::spawn(move || {
        let mut replies = vec![0; 1 << 20];
        while let Ok(read @ 1..) = reader.read(&mut replies) {
            count.fetch_add(read as u64, Ordering::Relaxed);
        }
    });
    let flood = Flood { stream, read_bytes, threads: vec![sending, reading] };
    while flood.read_bytes.load(Ordering::Relaxed) < 1 << 18 {
        assert!(now() < until, "no replies come");
        std::thread::sleep(Duration::from_millis(2));
    }
    flood
}

impl Drop for Flood {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
