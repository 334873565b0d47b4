//! One GET, before any load: is the server there, does TLS work, what does it hold.

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use crate::look::HTTP2_ONLY;
use crate::parameters::HttpWorkload;
use crate::tls::{self, Trust};
use crate::wire::reply::{Reply, ReplyReader};
use crate::wire::request::{Frame, Method, request};
use rustls::{AlertDescription, ClientConnection, InvalidMessage, StreamOwned};

use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::files::HostFiles;
use plimsoll_protocol::host::reach::{self, Socket};
use plimsoll_protocol::host::{HostError, Target};

/// Longest wait for each piece of the reply.
const REPLY_WAIT: Duration = Duration::from_secs(10);
/// Largest body that is read: a file set's description has some hundred bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Whom and how to ask.
#[derive(Clone, Debug)]
pub struct Server<'a> {
    /// As the user named it, for messages.
    target: &'a str,
    /// Where it listens.
    at: &'a ResolvedTarget,
    /// Host of the URL.
    host: &'a str,
    /// Value of the `Host` field.
    pub(super) host_field: String,
    /// Encryption, when wanted.
    tls: Option<Trusted<'a>>,
}

/// Which certificates are good.
#[derive(Clone, Copy, Debug)]
struct Trusted<'a> {
    /// Check the certificate.
    verify: bool,
    /// Authorities besides the public ones.
    ca_file: Option<&'a Path>,
}

/// A connection, encrypted or not.
trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

impl<'a> Server<'a> {
    /// The server of a target, called `name` in messages.
    pub fn of(workload: &'a HttpWorkload, target: &'a Target, name: &'a str) -> Self {
        let url = &target.resolved.url;
        let tls = (url.scheme == "https").then(|| Trusted {
            verify: workload.tls_verify,
            ca_file: workload.tls_ca_file.as_deref().map(Path::new),
        });
        let host_field = match url.port {
            Some(port) => url.authority(port),
            None if url.host.contains(':') => format!("[{}]", url.host),
            None => url.host.clone(),
        };
        Self { target: name, at: &target.resolved, host: &url.host, host_field, tls }
    }

    /// Connects, and shakes hands when TLS is wanted; sends no request.
    pub fn greet(&self) -> Result<(), HostError> {
        self.open().map(drop)
    }

    /// Asks for `path`.
    pub fn get(&self, path: &str) -> Result<Reply, HostError> {
        let mut stream = self.open()?;
        let frame = Frame { host: &self.host_field, headers: &[], close: true };
        let asked = request(frame, Method::GET, path);
        let broken = |what: &str| {
            HostError::unusable(format!("{}: GET {path}: {what}; is it a web server?", self.target))
        };
        stream.write_all(&asked).map_err(|e| broken(&format!("cannot send: {e}")))?;
        read_reply(&mut *stream).map_err(|what| broken(&what))
    }

    fn open(&self) -> Result<Box<dyn Stream>, HostError> {
        let stream = reach::connect(self.target, self.at, REPLY_WAIT)?;
        match self.tls {
            None => Ok(Box::new(stream)),
            Some(trusted) => Ok(Box::new(self.shake_hands(stream, trusted)?)),
        }
    }

    fn shake_hands(
        &self,
        stream: Socket,
        trusted: Trusted<'_>,
    ) -> Result<StreamOwned<ClientConnection, Socket>, HostError> {
        let trust =
            if trusted.verify { Trust::Authorities(trusted.ca_file) } else { Trust::Anyone };
        let config = tls::client_config(trust, None, &HostFiles::default())
            .map_err(|e| HostError::unusable(e.to_string()))?;
        let name = tls::server_name(self.host).map_err(|e| HostError::unusable(e.to_string()))?;
        let connection =
            ClientConnection::new(config, name).map_err(|e| self.refused(&io::Error::other(e)))?;
        let mut stream = StreamOwned::new(connection, stream);
        while stream.conn.is_handshaking() {
            match stream.conn.complete_io(&mut stream.sock) {
                Ok((0, 0)) => return Err(self.refused(&io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(e) => return Err(self.refused(&e)),
            }
        }
        Ok(stream)
    }

    /// Why there is no TLS with the server, and what to do.
    fn refused(&self, why: &io::Error) -> HostError {
        const SEE: &str = "write http:// if it does not speak TLS, or see what its log says";
        let (target, place) = (self.target, self.at.place());
        let tls = why.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let why = match (tls, why.kind()) {
            (Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)), _) => {
                format!(
                    "{place} does not speak TLS, its answer is no TLS message; write http:// instead \
                 of https://"
                )
            }
            (Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)), _) => {
                format!("{place} refuses HTTP/1.1 in the TLS handshake (ALPN): {HTTP2_ONLY}")
            }
            (Some(rustls::Error::InvalidCertificate(why)), _) => format!(
                "the certificate of {place} is not good: {why}; trust it with --cacert FILE, or \
                 take any with --insecure (suites other than web-url: --set \
                 workload.tls_ca_file=FILE, --set workload.tls_verify=false)"
            ),
            (None, io::ErrorKind::UnexpectedEof) => {
                format!("{place} closed the connection in the TLS handshake; {SEE}")
            }
            (None, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                let wait = REPLY_WAIT.as_secs();
                format!("{place} gave no answer to the TLS handshake within {wait} s; {SEE}")
            }
            _ => format!("the TLS handshake with {place} failed: {why}; see what its log says"),
        };
        HostError::unusable(format!("{target}: {why}"))
    }
}

fn read_reply(stream: &mut dyn Stream) -> Result<Reply, String> {
    let mut reader = ReplyReader::new(BODY_BYTES_MAX);
    let mut buffer = [0; 4096];
    while !reader.is_whole() {
        match read_some(stream, &mut buffer)? {
            0 => break,
            n => reader.take(&buffer[..n]).map_err(|e| e.to_string())?,
        }
    }
    reader.end().map_err(|e| e.to_string())
}

/// Bytes of the reply; none when it has ended.
fn read_some(stream: &mut dyn Stream, buffer: &mut [u8]) -> Result<usize, String> {
    stream.read(buffer).or_else(|e| match e.kind() {
        // Servers that skip close_notify end the stream all the same.
        io::ErrorKind::UnexpectedEof => Ok(0),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            Err(format!("no reply within {} s", REPLY_WAIT.as_secs()))
        }
        _ => Err(format!("cannot receive: {e}")),
    })
}
