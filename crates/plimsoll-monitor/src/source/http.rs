//! One exchange with a server that is no target: a request for an exporter's page, or an upload.
//! Bounded in total time, whatever the server does.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_http::tls::{HostFiles, Identity, Trust, client_config, server_name};
use plimsoll_http::wire::reply::{Reply, ReplyReader};
use plimsoll_http::wire::request::{Frame, Method, request};
use rustls::{ClientConfig, ClientConnection, Error, InvalidMessage, StreamOwned};

use super::Lost;
use crate::clock;

/// A page of a host with 256 processors has 2 MB.
const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The first address of a host.
pub(super) fn resolve(host: &str, port: u16) -> Result<SocketAddr, Lost> {
    let mut addresses =
        (host, port).to_socket_addrs().map_err(|e| Lost(format!("cannot resolve: {e}")))?;
    addresses.next().ok_or_else(|| Lost("has no address".to_owned()))
}

/// A page and the server to request it from.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) endpoint: Endpoint,
    /// Value of the `Host` field.
    pub(super) host: String,
    pub(super) path: String,
}

/// Where a page is served.
#[derive(Clone, Debug)]
pub(super) enum Endpoint {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Endpoint {
    /// Both kinds need only reading, writing and bounded waits, which are the same calls.
    fn open(&self, wait: Duration) -> Result<BoundedStream, Lost> {
        let until_ns = clock::monotonic_ns().saturating_add(wait.as_nanos() as u64);
        let stream = match self {
            Self::Tcp(address) => TcpStream::connect_timeout(address, wait)
                .map(|stream| UnixStream::from(OwnedFd::from(stream))),
            Self::Unix(path) => UnixStream::connect(path),
        };
        let stream = stream.map_err(|e| lost("cannot connect", &e, wait))?;
        Ok(BoundedStream { stream, until_ns })
    }
}

/// The text of a page, and when its first byte came, on the monotonic clock.
#[derive(Debug)]
pub(super) struct PageText {
    pub(super) text: String,
    pub(super) first_byte_ns: u64,
}

impl Page {
    /// A page by the name of its host.
    pub(super) fn resolve(host: &str, port: u16, path: &str) -> Result<Self, Lost> {
        let address = resolve(host, port)?;
        let named = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let (endpoint, host) = (Endpoint::Tcp(address), format!("{named}:{port}"));
        Ok(Self { endpoint, host, path: path.to_owned() })
    }

    /// The body, within `wait` in all.
    pub(super) fn get(&self, wait: Duration) -> Result<PageText, Lost> {
        let accept = ["Accept: text/plain; version=0.0.4".to_owned()];
        let question = request(self.frame(&accept), Method::GET, &self.path);
        let (reply, first_byte_ns) =
            exchange(&mut self.endpoint.open(wait)?, &[&question], &[200], wait)?;
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        Ok(PageText { text, first_byte_ns })
    }

    fn frame<'a>(&'a self, headers: &'a [String]) -> Frame<'a> {
        Frame { host: &self.host, headers, close: true }
    }
}

/// A connection whose waits end at a fixed instant.
struct BoundedStream {
    stream: UnixStream,
    until_ns: u64,
}

impl BoundedStream {
    /// At least a nanosecond: zero would be no limit.
    fn left(&self) -> Option<Duration> {
        let left_ns = self.until_ns.saturating_sub(clock::monotonic_ns());
        Some(Duration::from_nanos(left_ns.max(1)))
    }
}

impl Read for BoundedStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left())?;
        self.stream.read(bytes)
    }
}

impl Write for BoundedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left())?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn lost(what: &str, error: &io::Error, wait: Duration) -> Lost {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref());
    Lost(match (tls, error.kind()) {
        (Some(Error::InvalidCertificate(why)), _) => format!("its certificate is refused: {why}"),
        (Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)), _) => {
            "does not speak TLS; write http://".to_owned()
        }
        (_, ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            format!("no whole answer within {:.0} s", wait.as_secs_f64())
        }
        _ => format!("{what}: {error}"),
    })
}

/// Sends the parts of a request; returns the reply, which must have one of the statuses that are
/// good, and when its first byte came.
fn exchange(
    stream: &mut (impl Read + Write),
    question: &[&[u8]],
    good: &[u16],
    wait: Duration,
) -> Result<(Reply, u64), Lost> {
    let lost = |what: &str, error: &io::Error| lost(what, error, wait);
    let sent = question.iter().try_for_each(|part| stream.write_all(part));
    sent.and_then(|()| stream.flush()).map_err(|e| lost("cannot ask", &e))?;
    let mut reader = ReplyReader::new(REPLY_BYTES_MAX);
    let mut first_byte_ns = None;
    let mut buffer = [0; 16 * 1024];
    while !reader.is_whole() {
        let n = match stream.read(&mut buffer) {
            // Servers that skip close_notify end the stream all the same.
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => 0,
            read => read.map_err(|e| lost("cannot receive", &e))?,
        };
        first_byte_ns.get_or_insert_with(clock::monotonic_ns);
        if n == 0 {
            break;
        }
        let taken = reader.take(&buffer[..n]);
        taken.map_err(|e| Lost(format!("does not answer in HTTP: {e}")))?;
    }
    let reply = reader.end().map_err(|e| Lost(e.to_string()))?;
    if !good.contains(&reply.status) {
        return Err(Lost(format!("answers with status {}", reply.status)));
    }
    if reply.body.len() > REPLY_BYTES_MAX {
        return Err(Lost(format!("answers with more than {REPLY_BYTES_MAX} bytes")));
    }
    Ok((reply, first_byte_ns.unwrap_or_default()))
}

/// Settings of TLS with a server that is no target.
#[derive(Clone, Debug)]
pub struct PostTls(Arc<ClientConfig>);

impl PostTls {
    /// Trusts the public authorities and the certificates of a PEM file, and shows a certificate of
    /// the client's own, if there is one (file, file of its key).
    pub fn new(trusted: Option<&Path>, own: Option<(&Path, &Path)>) -> Result<Self, Lost> {
        let own = own.map(|(certificate, key)| Identity { certificate, key });
        let config = client_config(Trust::Authorities(trusted), own, &HostFiles::default());
        Ok(Self(config.map_err(|e| Lost(e.to_string()))?))
    }
}

/// Something handed to a server over HTTP/1.1.
#[derive(Clone, Debug)]
pub struct Post<'a> {
    /// Name or address; resolved by DNS each time.
    pub host: &'a str,
    /// Port.
    pub port: u16,
    /// Settings of TLS, if it is spoken.
    pub tls: Option<&'a PostTls>,
    /// Path with its leading slash.
    pub path: &'a str,
    /// Header fields besides those of any request, none of them about its framing.
    pub fields: &'a [(String, String)],
    /// What the body is.
    pub content_type: &'a str,
    /// The body.
    pub body: &'a [u8],
}

impl Post<'_> {
    /// Hands it over and answers with the body of a reply whose status is 200 to 202 or 204. But
    /// for DNS it takes no longer than `wait`.
    pub fn send(&self, wait: Duration) -> Result<Vec<u8>, Lost> {
        const TAKEN: [u16; 4] = [200, 201, 202, 204];
        let page = Page::resolve(self.host, self.port, self.path)?;
        let own = [
            format!("Content-Type: {}", self.content_type),
            format!("Content-Length: {}", self.body.len()),
        ];
        let fields = self.fields.iter().map(|(name, value)| format!("{name}: {value}"));
        let fields: Vec<String> = own.into_iter().chain(fields).collect();
        let head = request(page.frame(&fields), Method::POST, &page.path);
        let question = [&*head, self.body];
        let mut stream = page.endpoint.open(wait)?;
        let (reply, _) = match self.tls {
            None => exchange(&mut stream, &question, &TAKEN, wait)?,
            Some(PostTls(config)) => {
                let name = server_name(self.host);
                let connection =
                    name.and_then(|name| Ok(ClientConnection::new(config.clone(), name)?));
                let connection = connection.map_err(|e| Lost(e.to_string()))?;
                exchange(&mut StreamOwned::new(connection, stream), &question, &TAKEN, wait)?
            }
        };
        Ok(reply.body)
    }
}
