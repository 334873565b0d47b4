//! One GET, before any load: is the server there, does TLS work, what does it hold. And a page of
//! a server under load, polled over connections apart from the load's, with the header fields and
//! the TLS settings of the run; the duration of such an exchange is bounded, whatever the server
//! does.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::files::HostFiles;
use plimsoll_protocol::host::reach::{self, Socket, unix_socket};
use plimsoll_protocol::host::{HostError, Target};
use plimsoll_servers::Bounded;
use plimsoll_servers::clock::Deadline;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, InvalidMessage, OtherError,
    StreamOwned,
};
use rustls_pki_types::ServerName;

use crate::h2::Exchange;
use crate::look::{HTTP2_ONLY, NOT_HTTP2};
use crate::parameters::{HttpVersion, HttpWorkload};
use crate::site::Version;
use crate::tls::{self, ALPN_HTTP1, ALPN_HTTP2, TlsError};
use crate::transport::{client_config, trust};
use crate::wire::reply::{Reply, ReplyReader, Unfinished};
use crate::wire::request::{Frame, Method, request};

/// Longest wait for each piece of the reply.
const REPLY_WAIT: Duration = Duration::from_secs(10);
/// Largest body that is read: a file set's description has some hundred bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Which server to ask, and how.
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
    pub fn new(workload: &'a HttpWorkload, target: &'a Target, name: &'a str) -> Self {
        let at = &target.resolved;
        Self { target: name, at, host_field: at.url.host_field(), workload }
    }

    /// Connects, and performs the TLS handshake if TLS is on; sends no request.
    pub fn greet(&self) -> Result<(), HostError> {
        self.open().map(drop)
    }

    /// Requests `path`.
    pub fn get(&self, path: &str) -> Result<Reply, HostError> {
        let (mut stream, version) = self.open()?;
        let frame = Frame { host: &self.host_field, headers: &[], close: true };
        let remedy = match version {
            Version::Http1 => "is it a web server?",
            Version::Http2 => NOT_HTTP2,
        };
        let broken = |what: &str| {
            HostError::unusable(format!("{}: GET {path}: {what}; {remedy}", self.target))
        };
        let reply = match version {
            Version::Http1 => {
                let bytes = request(frame, Method::GET, path);
                send(&mut *stream, &bytes)
                    .and_then(|()| read_reply(&mut *stream, BODY_BYTES_MAX).map_err(describe_error))
            }
            Version::Http2 => {
                let scheme = &self.at.url.scheme;
                let exchange = Exchange::new(Frame { close: false, ..frame }, scheme, path);
                talk(exchange, &mut *stream)
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
        let (target, endpoint) = (self.target, self.at.endpoint());
        let tls = why.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let why = match (tls, why.kind()) {
            (Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)), _) => {
                format!(
                    "{endpoint} does not speak TLS, its answer is no TLS message; write http:// instead \
                 of https://"
                )
            }
            (Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)), _) => {
                match self.workload.http {
                    HttpVersion::Http1 => format!(
                        "{endpoint} refuses HTTP/1.1 in the TLS handshake (ALPN): {HTTP2_ONLY}"
                    ),
                    HttpVersion::Http2 | HttpVersion::Auto => format!(
                        "{endpoint} refuses HTTP/2 in the TLS handshake (ALPN): leave out --http"
                    ),
                }
            }
            (Some(rustls::Error::InvalidCertificate(why)), _) => {
                let (why, advice) = judgement(why);
                format!(
                    "the certificate of {endpoint} is not good: {why}; {advice}, or take any with \
                     --insecure (suites other than web-url: --set workload.tls_ca_file=FILE, \
                     --set workload.tls_verify=false)"
                )
            }
            (None, io::ErrorKind::UnexpectedEof) => {
                format!("{endpoint} closed the connection in the TLS handshake; {SEE}")
            }
            (None, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                let wait = REPLY_WAIT.as_secs();
                format!("{endpoint} gave no answer to the TLS handshake within {wait} s; {SEE}")
            }
            _ => format!("the TLS handshake with {endpoint} failed: {why}; see what its log says"),
        };
        HostError::unusable(format!("{target}: {why}"))
    }
}

/// What is wrong with a certificate, and what to do.
fn judgement(why: &CertificateError) -> (String, &'static str) {
    use CertificateError as E;
    let inner = match why {
        E::Other(OtherError(inner)) => inner.downcast_ref::<webpki::Error>(),
        _ => None,
    };
    let trust = "trust it with --cacert FILE";
    match (why, inner) {
        (_, Some(webpki::Error::CaUsedAsEndEntity)) => {
            let what = "it says that it is an authority's (CA:TRUE), not a server's";
            (what.to_owned(), "trust this very certificate with --cacert FILE")
        }
        (_, Some(webpki::Error::UnsupportedCertVersion)) => {
            let what = "it is of X.509 version 1, which has no names to check";
            (what.to_owned(), "make one of version 3 (openssl x509 -req -extfile FILE)")
        }
        (E::Expired | E::ExpiredContext { .. }, _)
        | (E::NotValidYet | E::NotValidYetContext { .. }, _) => {
            (why.to_string(), "renew it, or set this host's clock")
        }
        (E::NotValidForName | E::NotValidForNameContext { .. }, _) => {
            (why.to_string(), "use a name that it has (--connect-to HOST:PORT says where)")
        }
        (_, Some(inner)) => (format!("{inner:?}"), trust),
        _ => (why.to_string(), trust),
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
        let n = read_some(stream, &mut buffer).map_err(describe_error)?;
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
fn describe_error(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::Other => error.to_string(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("no reply within {} s", REPLY_WAIT.as_secs())
        }
        _ => format!("cannot receive: {error}"),
    }
}

/// Figures of a server with hundreds of histograms have some 100 KB.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One page of one server.
pub struct Page {
    at: ResolvedTarget,
    question: Vec<u8>,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl Page {
    /// Always uses HTTP/1.1; `None` if TLS with that server is impossible.
    pub fn new(workload: &HttpWorkload, at: &ResolvedTarget, path: &str) -> Option<Self> {
        let url = &at.url;
        let config = || client_config(workload, &HostFiles::default()).ok();
        let tls = match url.scheme.as_str() {
            "https" => Some((config()?, tls::server_name(&url.host).ok()?)),
            _ => None,
        };
        let frame = Frame { host: &url.host_field(), headers: &workload.headers, close: true };
        let question = request(frame, Method::GET, path);
        Some(Self { at: at.clone(), question, tls })
    }

    /// Its text, where it comes with status 200 within `wait`.
    pub fn get(&self, wait: Duration) -> Option<String> {
        self.exchange(Deadline::after(wait)).ok()
    }

    fn exchange(&self, until: Deadline) -> io::Result<String> {
        let plain = Bounded::new(self.connect(until)?, until);
        match &self.tls {
            None => self.ask(plain),
            Some((config, name)) => {
                let connection = ClientConnection::new(config.clone(), name.clone());
                let connection = connection.map_err(io::Error::other)?;
                self.ask(StreamOwned::new(connection, plain))
            }
        }
    }

    fn connect(&self, until: Deadline) -> io::Result<Socket> {
        match &self.at.unix {
            Some(path) => unix_socket(path),
            None => Ok(TcpStream::connect_timeout(&self.at.address, until.remaining()?)?.into()),
        }
    }

    fn ask(&self, mut stream: impl Read + Write) -> io::Result<String> {
        stream.write_all(&self.question)?;
        let reply = read_reply(&mut stream, PAGE_BYTES_MAX)?;
        match reply.status == 200 && reply.body.len() <= PAGE_BYTES_MAX {
            true => Ok(String::from_utf8_lossy(&reply.body).into_owned()),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use plimsoll_model::target::TargetUrl;

    use super::*;

    /// A server whose one connection gets `answer`; its page, and the request that it received.
    fn served(answer: &'static [u8], path: &str) -> (Page, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = [0; 4096];
            let n = stream.read(&mut question).unwrap();
            stream.write_all(answer).unwrap();
            String::from_utf8_lossy(&question[..n]).into_owned()
        });
        let url = TargetUrl::parse(&format!("http://{address}/v1")).unwrap();
        let headers = vec!["Authorization: Bearer k".to_owned()];
        let workload = HttpWorkload { headers, ..HttpWorkload::default() };
        (Page::new(&workload, &ResolvedTarget::new(url, address), path).unwrap(), received)
    }

    const WAIT: Duration = Duration::from_secs(10);

    #[test]
    fn a_page_is_asked_for_with_the_header_fields_of_the_run() {
        let (page, received) =
            served(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\n", "/metrics");
        assert_eq!(page.get(WAIT).as_deref(), Some("a 1\n"));
        let received = received.join().unwrap();
        assert!(received.starts_with("GET /metrics HTTP/1.1\r\n"), "{received}");
        assert!(received.contains("\r\nAuthorization: Bearer k\r\n"), "{received}");
    }

    #[test]
    fn other_answers_and_none_are_nothing() {
        for answer in [&b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"[..], b"SSH-2.0\r\n"]
        {
            let (page, received) = served(answer, "/metrics");
            assert_eq!(page.get(WAIT), None);
            received.join().unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let url = TargetUrl::parse(&format!("https://{address}/")).unwrap();
        let workload = HttpWorkload { tls_verify: false, ..HttpWorkload::default() };
        let page = Page::new(&workload, &ResolvedTarget::new(url, address), "/metrics").unwrap();
        assert_eq!(page.get(Duration::from_millis(30)), None, "it never shakes hands");
    }
}
