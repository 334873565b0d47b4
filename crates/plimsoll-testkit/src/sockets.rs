//! Real sockets for set-up.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use plimsoll_protocol::net::{Channel, ChannelError, Dial, LinkKind, SourcePort};

/// Plain sockets of this host.
#[derive(Debug)]
pub struct Sockets;

impl Dial for Sockets {
    fn dial(
        &self,
        address: SocketAddr,
        kind: LinkKind,
        _: SourcePort,
    ) -> Result<Box<dyn Channel>, ChannelError> {
        let open = || -> io::Result<Box<dyn Channel>> {
            Ok(match kind {
                LinkKind::Stream => {
                    let stream = TcpStream::connect(address)?;
                    stream.set_nodelay(true)?;
                    Box::new(Stream(stream))
                }
                LinkKind::Datagram => {
                    let socket = UdpSocket::bind("127.0.0.1:0")?;
                    socket.connect(address)?;
                    Box::new(Datagrams(socket))
                }
            })
        };
        open().map_err(failed)
    }
}

struct Stream(TcpStream);
struct Datagrams(UdpSocket);

impl Channel for Stream {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.0.write_all(bytes).map_err(failed)
    }

    fn receive(&mut self, into: &mut Vec<u8>, wait: Duration) -> Result<(), ChannelError> {
        self.0.set_read_timeout(Some(wait)).map_err(failed)?;
        let mut buffer = vec![0; 65_536];
        match self.0.read(&mut buffer).map_err(failed)? {
            0 => Err(ChannelError::Closed),
            length => {
                into.extend_from_slice(&buffer[..length]);
                Ok(())
            }
        }
    }
}

impl Channel for Datagrams {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.0.send(bytes).map(drop).map_err(failed)
    }

    fn receive(&mut self, into: &mut Vec<u8>, wait: Duration) -> Result<(), ChannelError> {
        self.0.set_read_timeout(Some(wait)).map_err(failed)?;
        let mut buffer = vec![0; 65_536];
        let length = self.0.recv(&mut buffer).map_err(failed)?;
        into.extend_from_slice(&buffer[..length]);
        Ok(())
    }
}

fn failed(error: io::Error) -> ChannelError {
    match error.kind() {
        // A signal (a server's child ended) interrupts a wait that has a limit.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {
            ChannelError::Timeout
        }
        _ => ChannelError::Failed(error),
    }
}
