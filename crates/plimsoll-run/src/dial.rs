//! Real sockets for set-up: blocking, with a timeout on every step.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

use plimsoll_protocol::host::reach;
use plimsoll_protocol::net::{
    Caller, Channel, ChannelError, Dial, LinkKind, NonconformityLog, Secret, SourcePort,
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::clock::unix_ns;
use crate::signals::Signals;

/// May hold a password that should not be in a URL.
const PASSWORD_VARIABLE: &str = "PLIMSOLL_PASSWORD";
/// Longest wait for a connection: a few retransmissions of the SYN.
const CONNECT_WAIT: Duration = Duration::from_secs(4);
/// Longest wait for a server that accepts no bytes.
const SEND_WAIT: Duration = Duration::from_secs(30);
/// Ports that a client with privileges is expected to come from. The lower half of the range
/// belongs to services.
const RESERVED_PORTS: std::ops::RangeInclusive<u16> = 600..=1023;
/// Bytes read at once.
const READ_BYTES: usize = 256 * 1024;

/// Connects set-up to servers.
#[derive(Clone, Debug)]
pub struct SystemDial {
    signals: Signals,
    nonconformities: NonconformityLog,
}

impl SystemDial {
    /// Waits end on Ctrl-C.
    pub fn new(signals: Signals) -> Self {
        Self { signals, nonconformities: NonconformityLog::default() }
    }
}

impl Dial for SystemDial {
    fn dial(
        &self,
        address: SocketAddr,
        kind: LinkKind,
        source: SourcePort,
    ) -> Result<Box<dyn Channel>, ChannelError> {
        let socket = connected(address, kind, source).map_err(channel_error)?;
        Ok(match kind {
            LinkKind::Stream => {
                socket.set_tcp_nodelay(true).map_err(ChannelError::Failed)?;
                stream(socket)?
            }
            LinkKind::Datagram => {
                let buffer = vec![0; READ_BYTES];
                Box::new(Datagrams { socket: UdpSocket::from(socket), buffer, wait: None })
            }
        })
    }

    fn dial_unix(&self, path: &Path) -> Result<Box<dyn Channel>, ChannelError> {
        stream(reach::unix_socket(path).map_err(channel_error)?)
    }

    fn caller(&self) -> Caller {
        Caller {
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            may_reserve_ports: may_reserve_ports(),
            nonce: unix_ns(),
            password: std::env::var(PASSWORD_VARIABLE).ok().map(Secret),
        }
    }

    fn stop(&self) -> Arc<AtomicBool> {
        self.signals.flag()
    }

    fn nonconformities(&self) -> NonconformityLog {
        self.nonconformities.clone()
    }
}

fn stream(socket: Socket) -> Result<Box<dyn Channel>, ChannelError> {
    socket.set_write_timeout(Some(SEND_WAIT)).map_err(ChannelError::Failed)?;
    Ok(Box::new(Stream { stream: socket, buffer: vec![0; READ_BYTES], wait: None }))
}

fn connected(address: SocketAddr, kind: LinkKind, source: SourcePort) -> io::Result<Socket> {
    if source == SourcePort::Any {
        let socket = unconnected(address, kind)?;
        socket.connect_timeout(&address.into(), CONNECT_WAIT)?;
        return Ok(socket);
    }
    // Ports of connections that were closed a minute ago are still blocked: begin with a port that
    // was not used lately.
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let count = RESERVED_PORTS.end() - RESERVED_PORTS.start() + 1;
    for _ in 0..count {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = RESERVED_PORTS.end() - (step.wrapping_add(std::process::id() as u16)) % count;
        let socket = unconnected(address, kind)?;
        // Otherwise every port of a connection closed within the last minute would be refused, and
        // a run with many load points would soon find none.
        socket.set_reuse_address(kind == LinkKind::Stream)?;
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let bound = socket.bind(&SocketAddr::new(any, port).into());
        match bound.and_then(|()| socket.connect_timeout(&address.into(), CONNECT_WAIT)) {
            Ok(()) => return Ok(socket),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                return connected(address, kind, SourcePort::Any);
            }
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable
                ) => {}
            Err(e) => return Err(e),
        }
    }
    connected(address, kind, SourcePort::Any)
}

fn unconnected(address: SocketAddr, kind: LinkKind) -> io::Result<Socket> {
    let (kind, protocol) = match kind {
        LinkKind::Stream => (Type::STREAM, Protocol::TCP),
        LinkKind::Datagram => (Type::DGRAM, Protocol::UDP),
    };
    Socket::new(Domain::for_address(address), kind, Some(protocol))
}

/// Whether this program may bind ports below 1024.
fn may_reserve_ports() -> bool {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    RESERVED_PORTS.rev().any(|port| {
        let socket = unconnected(any, LinkKind::Datagram);
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        socket.and_then(|socket| socket.bind(&at.into())).is_ok()
    })
}

#[derive(Debug)]
struct Stream {
    stream: Socket,
    buffer: Vec<u8>,
    wait: Option<Duration>,
}

impl Channel for Stream {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.stream.write_all(bytes).map_err(channel_error)
    }

    fn receive(&mut self, into: &mut Vec<u8>, wait: Duration) -> Result<(), ChannelError> {
        if self.wait.replace(wait) != Some(wait) {
            self.stream.set_read_timeout(Some(wait)).map_err(channel_error)?;
        }
        match self.stream.read(&mut self.buffer).map_err(channel_error)? {
            0 => Err(ChannelError::Closed),
            length => {
                into.extend_from_slice(&self.buffer[..length]);
                Ok(())
            }
        }
    }
}

#[derive(Debug)]
struct Datagrams {
    socket: UdpSocket,
    buffer: Vec<u8>,
    wait: Option<Duration>,
}

impl Channel for Datagrams {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.socket.send(bytes).map(drop).map_err(channel_error)
    }

    fn receive(&mut self, into: &mut Vec<u8>, wait: Duration) -> Result<(), ChannelError> {
        if self.wait.replace(wait) != Some(wait) {
            self.socket.set_read_timeout(Some(wait)).map_err(channel_error)?;
        }
        let length = self.socket.recv(&mut self.buffer).map_err(channel_error)?;
        into.extend_from_slice(&self.buffer[..length]);
        Ok(())
    }
}

fn channel_error(error: io::Error) -> ChannelError {
    match error.kind() {
        // A wait that a signal interrupted (Ctrl-C, or fg after Ctrl-Z) has no result. Other code
        // checks whether set-up must end.
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {
            ChannelError::Timeout
        }
        io::ErrorKind::UnexpectedEof => ChannelError::Closed,
        _ => ChannelError::Failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dial() -> SystemDial {
        SystemDial::new(Signals::unheard())
    }

    #[test]
    fn a_stream_carries_bytes_both_ways_and_says_when_it_ends() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let peer = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut four = [0; 4];
            stream.read_exact(&mut four).unwrap();
            stream.write_all(&four).unwrap();
        });
        let mut channel = dial().dial(address, LinkKind::Stream, SourcePort::Any).unwrap();
        channel.send(b"ping").unwrap();
        let mut heard = Vec::new();
        while heard.len() < 4 {
            channel.receive(&mut heard, Duration::from_secs(5)).unwrap();
        }
        assert_eq!(heard, b"ping");
        let end = channel.receive(&mut heard, Duration::from_secs(5));
        assert!(matches!(end, Err(ChannelError::Closed)), "{end:?}");
        peer.join().unwrap();
    }

    #[test]
    fn silence_is_a_timeout_and_a_dead_port_an_error() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let mut channel = dial().dial(address, LinkKind::Datagram, SourcePort::Any).unwrap();
        let mut heard = Vec::new();
        let silence = channel.receive(&mut heard, Duration::from_millis(10));
        assert!(matches!(silence, Err(ChannelError::Timeout)), "{silence:?}");
        drop(server);
        channel.send(b"x").unwrap();
        let dead = channel.receive(&mut heard, Duration::from_secs(5));
        assert!(matches!(dead, Err(ChannelError::Failed(_))), "{dead:?}");
    }

    #[test]
    fn a_signal_during_a_wait_is_no_fault_of_the_network() {
        let cut_short = channel_error(io::ErrorKind::Interrupted.into());
        assert!(matches!(cut_short, ChannelError::Timeout), "{cut_short:?}");
    }

    #[test]
    fn a_reserved_port_is_taken_where_it_is_permitted() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let mut channel = dial().dial(address, LinkKind::Datagram, SourcePort::Reserved).unwrap();
        channel.send(b"x").unwrap();
        let (_, from) = server.recv_from(&mut [0; 8]).unwrap();
        assert_eq!(from.port() < 1024, may_reserve_ports(), "{from}");
    }
}
