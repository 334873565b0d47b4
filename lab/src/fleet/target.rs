//! A web server that records the sender and the instant of each request.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use plimsoll_monitor::ClockReading;
use xtask::verb::Result;

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/// Connections of a few dozen clients have a thread each.
const STACK_BYTES: usize = 128 * 1024;

/// A request that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it was there whole, nanoseconds since the Unix epoch.
    pub at_ns: u64,
    pub from: IpAddr,
}

type RequestLog = Arc<Mutex<Vec<Request>>>;

/// The server. Ended when dropped; its connections end with their clients.
pub struct Target {
    pub address: SocketAddr,
    requests: RequestLog,
    ended: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Target {
    /// Listens on a free port of this address.
    pub fn start(at: IpAddr) -> Result<Self> {
        let wrong = |e: std::io::Error| format!("cannot listen on {at}: {e}");
        let listener = TcpListener::bind((at, 0)).map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let (requests, ended) = (RequestLog::default(), Arc::new(AtomicBool::new(false)));
        let (to_write, stop) = (Arc::clone(&requests), Arc::clone(&ended));
        let accepting = thread::spawn(move || accept(&listener, &to_write, &stop));
        Ok(Self { address, requests, ended, accepting: Some(accepting) })
    }

    /// Requests since the last call, in the order of arrival.
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        if TcpStream::connect(self.address).is_ok() {
            self.accepting.take().map(JoinHandle::join);
        }
    }
}

fn accept(listener: &TcpListener, requests: &RequestLog, ended: &AtomicBool) {
    for client in listener.incoming().flatten() {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let requests = Arc::clone(requests);
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        // Without a thread the client finds its connection closed.
        let _ = thread.spawn(move || serve(&client, &requests));
    }
}

/// Until the client goes.
fn serve(client: &TcpStream, requests: &RequestLog) -> Option<()> {
    client.set_nodelay(true).ok()?;
    let from = client.peer_addr().ok()?.ip();
    let (mut reader, mut line) = (BufReader::new(client), String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            let request = Request { at_ns: ClockReading::now().unix_ns, from };
            requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
            (&mut &*client).write_all(REPLY).ok()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn each_request_is_written_down_with_its_client() {
        let target = Target::start([127, 0, 0, 1].into()).unwrap();
        let mut client = TcpStream::connect(target.address).unwrap();
        let mut reply = vec![0; REPLY.len()];
        for _ in 0..2 {
            client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            client.read_exact(&mut reply).unwrap();
            assert_eq!(reply, REPLY);
        }
        let requests = target.take();
        assert_eq!(requests.len(), 2);
        assert!(requests[0].at_ns <= requests[1].at_ns && requests[0].from.is_loopback());
        assert!(target.take().is_empty());
    }
}
