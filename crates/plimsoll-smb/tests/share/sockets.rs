//! Real sockets for set-up.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_protocol::net::{Channel, ChannelError, Dial, LinkKind, SourcePort};

/// TCP of this host.
#[derive(Debug)]
pub struct Sockets;

struct Stream(TcpStream);

impl Dial for Sockets {
    fn dial(
        &self,
        address: SocketAddr,
        _: LinkKind,
        _: SourcePort,
    ) -> Result<Box<dyn Channel>, ChannelError> {
        let stream = TcpStream::connect(address).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        Ok(Box::new(Stream(stream)))
    }
}

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

fn failed(error: io::Error) -> ChannelError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ChannelError::Timeout,
        _ => ChannelError::Failed(error),
    }
}
