//! One GET, before any load: is the server there, does TLS work, what does it hold.

use std::fmt;
use std::io::{self, Read, Write};
use std::time::Duration;

use crate::h2::exchange::Exchange;
use crate::look::HTTP2_ONLY;
use crate::parameters::{HttpVersion, HttpWorkload};
use crate::site::Version;
use crate::tls::{self, ALPN_HTTP1, ALPN_HTTP2, TlsError};
use crate::transport::trust;
use crate::wire::reply::{Reply, ReplyReader, Unfinished};
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
    /// Value of the `Host` field.
    pub(super) host_field: String,
    /// TLS, and the version of HTTP.
    workload: &'a HttpWorkload,
}

/// A connection, encrypted or not.
trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

impl<'a> Server<'a> {
    /// The server of a target, called `name` in messages.
    pub fn of(workload: &'a HttpWorkload, target: &'a Target, name: &'a str) -> Self {
        let at = &target.resolved;
        Self { target: name, at, host_field: at.url.host_field(), workload }
    }

    /// Connects, and shakes hands when TLS is wanted; sends no request.
    pub fn greet(&self) -> Result<(), HostError> {
        self.open().map(drop)
    }

    /// Asks for `path`.
    pub fn get(&self, path: &str) -> Result<Reply, HostError> {
        let (mut stream, version) = self.open()?;
        let frame = Frame { host: &self.host_field, headers: &[], close: true };
        let broken = |what: &str| {
            HostError::unusable(format!("{}: GET {path}: {what}; is it a web server?", self.target))
        };
        let reply = match version {
            Version::Http1 => {
                let asked = request(frame, Method::GET, path);
                send(&mut *stream, &asked)
                    .and_then(|()| read_reply(&mut *stream, BODY_BYTES_MAX).map_err(said))
            }
            Version::Http2 => {
                let scheme = &self.at.url.scheme;
                let asked = Exchange::new(Frame { close: false, ..frame }, scheme, path);
                talk(asked, &mut *stream)
            }
        };
        reply.map_err(|what| broken(&what))
    }

    /// A connection, and what is spoken on it.
    fn open(&self) -> Result<(Box<dyn Stream>, Version), HostError> {
        let stream = reach::connect(self.target, self.at, REPLY_WAIT)?;
        if self.at.url.scheme != "https" {
            let is_http2 = self.workload.http == HttpVersion::Http2;
            let version = if is_http2 { Version::Http2 } else { Version::Http1 };
            return Ok((Box::new(stream), version));
        }
        let stream = self.shake_hands(stream)?;
        let version = match stream.conn.alpn_protocol() {
            Some(ALPN_HTTP2) => Version::Http2,
            _ => Version::Http1,
        };
        Ok((Box::new(stream), version))
    }

    fn shake_hands(
        &self,
        stream: Socket,
    ) -> Result<StreamOwned<ClientConnection, Socket>, HostError> {
        let unusable = |e: TlsError| HostError::unusable(e.to_string());
        let config = tls::client_config(trust(self.workload), None, &HostFiles::default());
        let config = config.map_err(unusable)?;
        let config = match self.workload.http {
            HttpVersion::Http1 => config,
            HttpVersion::Http2 => tls::offering(&config, &[ALPN_HTTP2]),
            HttpVersion::Auto => tls::offering(&config, &[ALPN_HTTP2, ALPN_HTTP1]),
        };
        let name = tls::server_name(&self.at.url.host).map_err(unusable)?;
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
                match self.workload.http {
                    HttpVersion::Http1 => format!(
                        "{place} refuses HTTP/1.1 in the TLS handshake (ALPN): {HTTP2_ONLY}"
                    ),
                    HttpVersion::Http2 | HttpVersion::Auto => format!(
                        "{place} refuses HTTP/2 in the TLS handshake (ALPN): leave out --http"
                    ),
                }
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

fn send(stream: &mut dyn Stream, bytes: &[u8]) -> Result<(), String> {
    stream.write_all(bytes).map_err(|e| format!("cannot send: {e}"))
}

/// The same over HTTP/2.
fn talk(mut exchange: Exchange, stream: &mut dyn Stream) -> Result<Reply, String> {
    let mut buffer = [0; 4096];
    loop {
        send(stream, &exchange.take_out())?;
        let n = read_some(stream, &mut buffer).map_err(said)?;
        if let Some(reply) = exchange.take(&buffer[..n], BODY_BYTES_MAX)? {
            return Ok(reply);
        }
        if n == 0 {
            return Err(Unfinished::Head.to_string());
        }
    }
}

/// What comes until the reply is whole, or longer than this.
pub(super) fn read_reply(stream: &mut dyn Read, body_bytes_max: usize) -> io::Result<Reply> {
    let mut reader = ReplyReader::new(body_bytes_max);
    let mut buffer = [0; 16 * 1024];
    while !reader.is_whole() {
        match read_some(stream, &mut buffer)? {
            0 => break,
            n => reader.take(&buffer[..n]).map_err(odd)?,
        }
    }
    reader.end().map_err(odd)
}

fn odd(why: impl fmt::Display) -> io::Error {
    io::Error::other(why.to_string())
}

/// Bytes of the reply; none when it has ended.
fn read_some(stream: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    match stream.read(buffer) {
        // Servers that skip close_notify end the stream all the same.
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        read => read,
    }
}

/// For a message.
fn said(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::Other => error.to_string(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("no reply within {} s", REPLY_WAIT.as_secs())
        }
        _ => format!("cannot receive: {error}"),
    }
}
