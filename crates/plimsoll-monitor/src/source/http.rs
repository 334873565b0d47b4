//! One exchange with a server that is no target: an exporter's page asked for, or something handed
//! over. Within a bound in all, whatever the server does.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use super::Lost;
use crate::clock;

/// A page of a host with 256 processors has 2 MB.
const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// What is asked for, and of whom.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) place: Place,
    /// Value of the `Host` field.
    pub(super) host: String,
    pub(super) path: String,
}

/// Where a page is served.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Place {
    /// Of either kind only reading, writing and bounded waits are used, which are the same calls.
    fn connect(&self, wait: Duration) -> std::io::Result<UnixStream> {
        match self {
            Self::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, wait)?;
                Ok(OwnedFd::from(stream).into())
            }
            Self::Unix(path) => UnixStream::connect(path),
        }
    }
}

/// A reply, and when its first byte came, on the monotonic clock.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) first_byte_ns: u64,
}

impl Page {
    /// A page by the name of its host.
    pub(super) fn at(host: &str, port: u16, path: &str) -> Result<Self, Lost> {
        let mut addresses =
            (host, port).to_socket_addrs().map_err(|e| Lost(format!("cannot resolve: {e}")))?;
        let address = addresses.next().ok_or_else(|| Lost("has no address".to_owned()))?;
        let named = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let (place, host) = (Place::Tcp(address), format!("{named}:{port}"));
        Ok(Self { place, host, path: path.to_owned() })
    }

    /// The body, within `wait` in all. HTTP/1.0, so that the reply is neither kept alive nor
    /// chunked.
    pub(super) fn get(&self, wait: Duration) -> Result<Reply, Lost> {
        let question = format!(
            "GET {} HTTP/1.0\r\nHost: {}\r\nAccept: text/plain; version=0.0.4\r\n\
             User-Agent: plimsoll\r\n\r\n",
            self.path, self.host
        );
        let (bytes, first_byte_ns) = self.exchange(&[question.as_bytes()], wait)?;
        let text = String::from_utf8_lossy(body(&bytes, &[200])?).into_owned();
        Ok(Reply { text, first_byte_ns })
    }

    /// Sends the parts of a question; the reply up to the end it announces or the connection has,
    /// and when its first byte came.
    fn exchange(&self, question: &[&[u8]], wait: Duration) -> Result<(Vec<u8>, u64), Lost> {
        let until_ns = clock::monotonic_ns().saturating_add(wait.as_nanos() as u64);
        let lost = |what: &str, e: &std::io::Error| match e.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                Lost(format!("no whole answer within {:.0} s", wait.as_secs_f64()))
            }
            _ => Lost(format!("{what}: {e}")),
        };
        let mut stream = self.place.connect(wait).map_err(|e| lost("cannot connect", &e))?;
        let limit = |stream: &UnixStream| {
            let left_ns = until_ns.saturating_sub(clock::monotonic_ns());
            // Zero would be no limit.
            let left = Some(Duration::from_nanos(left_ns.max(1)));
            stream.set_read_timeout(left).and_then(|()| stream.set_write_timeout(left))
        };
        for mut part in question.iter().copied() {
            while !part.is_empty() {
                limit(&stream).map_err(|e| lost("cannot limit the wait", &e))?;
                let sent = stream.write(part).map_err(|e| lost("cannot ask", &e))?;
                part = &part[sent..];
            }
        }
        let mut bytes = Vec::new();
        let mut first_byte_ns = None;
        let mut buffer = [0; 16 * 1024];
        while !is_whole(&bytes) {
            limit(&stream).map_err(|e| lost("cannot limit the wait", &e))?;
            let n = stream.read(&mut buffer).map_err(|e| lost("cannot receive", &e))?;
            first_byte_ns.get_or_insert_with(clock::monotonic_ns);
            bytes.extend_from_slice(&buffer[..n]);
            if n == 0 {
                break;
            }
            if bytes.len() > REPLY_BYTES_MAX {
                return Err(Lost(format!("answers with more than {REPLY_BYTES_MAX} bytes")));
            }
        }
        Ok((bytes, first_byte_ns.unwrap_or_default()))
    }
}

/// Something handed to a server over HTTP/1.1, unencrypted.
#[derive(Clone, Debug)]
pub struct Post<'a> {
    /// Name or address; asked of DNS each time.
    pub host: &'a str,
    /// Port.
    pub port: u16,
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
        let page = Page::at(self.host, self.port, self.path)?;
        let fields: String =
            self.fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: plimsoll\r\nConnection: close\r\n\
             Content-Type: {}\r\nContent-Length: {}\r\n{fields}\r\n",
            page.path,
            page.host,
            self.content_type,
            self.body.len()
        );
        let (bytes, _) = page.exchange(&[head.as_bytes(), self.body], wait)?;
        Ok(body(&bytes, &TAKEN)?.to_vec())
    }
}

/// Where the head of a reply ends.
fn head_end(reply: &[u8]) -> Option<usize> {
    let head_part = &reply[..reply.len().min(HEAD_BYTES_MAX)];
    head_part.windows(4).position(|bytes| bytes == b"\r\n\r\n")
}

/// Length of the body, where the head says it.
fn announced_bytes(head: &str) -> Option<usize> {
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })
}

/// Nothing more is to come, whether the server closes the connection or not.
fn is_whole(reply: &[u8]) -> bool {
    head_end(reply).is_some_and(|end| {
        let announced = announced_bytes(&String::from_utf8_lossy(&reply[..end]));
        announced.is_some_and(|length| reply.len() - end - 4 >= length)
    })
}

/// What follows the head of a reply with one of the statuses that are good.
fn body<'a>(reply: &'a [u8], good: &[u16]) -> Result<&'a [u8], Lost> {
    let none = || Lost("does not answer in HTTP".to_owned());
    let end = head_end(reply).ok_or_else(none)?;
    let head = String::from_utf8_lossy(&reply[..end]);
    let mut words = head.lines().next().unwrap_or_default().split_whitespace();
    if !words.next().is_some_and(|version| version.starts_with("HTTP/1")) {
        return Err(none());
    }
    let status: u16 = words.next().and_then(|word| word.parse().ok()).ok_or_else(none)?;
    if !good.contains(&status) {
        return Err(Lost(format!("answers with status {status}")));
    }
    let body = &reply[end + 4..];
    if announced_bytes(&head).is_some_and(|length| length > body.len()) {
        return Err(Lost("its answer broke off".to_owned()));
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_reply_with_status_200_has_a_body() {
        let read = |text: &'static str| body(text.as_bytes(), &[200]).map_err(|Lost(why)| why);
        assert_eq!(read("HTTP/1.0 200 OK\r\nA: b\r\n\r\nx 1\n").unwrap(), b"x 1\n");
        assert_eq!(read("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nx\n").unwrap(), b"x\n");
        assert!(read("HTTP/1.0 404 Not Found\r\n\r\n").unwrap_err().contains("404"));
        assert!(read("HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nx").is_err());
        for odd in ["", "SSH-2.0-x\r\n\r\n", "HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK\r\nA: b\r\n"] {
            assert!(read(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn a_reply_ends_where_it_says_or_with_its_connection() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
        assert!(is_whole(format!("{head}xy").as_bytes()));
        for open in ["", "HTTP/1.1 200 OK\r\n", &format!("{head}x"), "HTTP/1.0 200 OK\r\n\r\nxy"] {
            assert!(!is_whole(open.as_bytes()), "{open:?}");
        }
    }
}
