//! One GET of an exporter's page. HTTP/1.0, so that the reply is neither kept alive nor chunked.

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

    /// The body, within `wait` in all, whatever the server does.
    pub(super) fn get(&self, wait: Duration) -> Result<Reply, Lost> {
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
        let question = format!(
            "GET {} HTTP/1.0\r\nHost: {}\r\nAccept: text/plain; version=0.0.4\r\n\
             User-Agent: plimsoll\r\n\r\n",
            self.path, self.host
        );
        limit(&stream).map_err(|e| lost("cannot limit the wait", &e))?;
        stream.write_all(question.as_bytes()).map_err(|e| lost("cannot ask", &e))?;
        let mut bytes = Vec::new();
        let mut first_byte_ns = None;
        let mut buffer = [0; 16 * 1024];
        loop {
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
        let text = body(&bytes)?;
        Ok(Reply { text, first_byte_ns: first_byte_ns.unwrap_or_default() })
    }
}

/// What follows the head of a reply that is good.
fn body(reply: &[u8]) -> Result<String, Lost> {
    let none = || Lost("does not answer in HTTP".to_owned());
    let head_part = &reply[..reply.len().min(HEAD_BYTES_MAX)];
    let end = head_part.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or_else(none)?;
    let head = String::from_utf8_lossy(&reply[..end]);
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split_whitespace();
    if !words.next().is_some_and(|version| version.starts_with("HTTP/1")) {
        return Err(none());
    }
    let status: u16 = words.next().and_then(|word| word.parse().ok()).ok_or_else(none)?;
    if status != 200 {
        return Err(Lost(format!("answers with status {status}")));
    }
    let body = &reply[end + 4..];
    let announced = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    if announced.is_some_and(|length| length > body.len()) {
        return Err(Lost("its answer broke off".to_owned()));
    }
    Ok(String::from_utf8_lossy(body).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_reply_with_status_200_has_a_body() {
        let read = |text: &str| body(text.as_bytes()).map_err(|Lost(why)| why);
        assert_eq!(read("HTTP/1.0 200 OK\r\nA: b\r\n\r\nx 1\n").unwrap(), "x 1\n");
        assert_eq!(read("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nx\n").unwrap(), "x\n");
        assert!(read("HTTP/1.0 404 Not Found\r\n\r\n").unwrap_err().contains("404"));
        assert!(read("HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nx").is_err());
        for odd in ["", "SSH-2.0-x\r\n\r\n", "HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK\r\nA: b\r\n"] {
            assert!(read(odd).is_err(), "{odd:?}");
        }
    }
}
