//! Connections to servers outside the load: probes at their start, pages and figures during it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;

use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::clock::Deadline;

/// A connection whose waits end at a fixed instant, however slowly the bytes come.
pub struct Bounded<S> {
    stream: S,
    /// When they end.
    pub deadline: Deadline,
}

impl<S> Bounded<S> {
    /// Bounds the waits of a connection.
    pub fn new(stream: S, deadline: Deadline) -> Self {
        Self { stream, deadline }
    }
}

impl Bounded<TcpStream> {
    /// Connects. What is written is sent at once.
    pub fn connect(address: SocketAddr, deadline: Deadline) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, deadline.remaining()?)?;
        stream.set_nodelay(true)?;
        Ok(Self::new(stream, deadline))
    }
}

impl<S: Read + AsFd> Read for Bounded<S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        set_socket_timeout(&self.stream, Timeout::Recv, Some(self.deadline.remaining()?))?;
        self.stream.read(bytes)
    }
}

impl<S: Write + AsFd> Write for Bounded<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        set_socket_timeout(&self.stream, Timeout::Send, Some(self.deadline.remaining()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_server_that_sends_a_byte_now_and_then_prolongs_no_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            while stream.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        let deadline = Deadline::after(Duration::from_millis(300));
        let mut stream = Bounded::connect(address, deadline).unwrap();
        let kind = stream.read_to_end(&mut Vec::new()).unwrap_err().kind();
        assert!(matches!(kind, io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{kind}");
        drop(stream);
        server.join().unwrap();
    }
}
