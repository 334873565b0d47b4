//! A page of a server under load, asked for again and again over connections apart from the load's,
//! with the header fields and the TLS settings of the run. An exchange has a bound in all, whatever
//! the server does.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::files::HostFiles;
use plimsoll_protocol::host::reach::{Socket, unix_socket};
use plimsoll_servers::clock::Deadline;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;

use super::fetch::read_reply;
use crate::parameters::HttpWorkload;
use crate::tls;
use crate::transport::client_config;
use crate::wire::request::{Frame, Method, request};

/// Figures of a server with hundreds of histograms have some 100 KB.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One page of one server.
pub struct Page {
    at: ResolvedTarget,
    question: Vec<u8>,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl Page {
    /// Says it in HTTP/1.1, whatever the load does; `None` where TLS with that server cannot be had.
    pub fn of(workload: &HttpWorkload, at: &ResolvedTarget, path: &str) -> Option<Self> {
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
        let plain = Bounded { socket: self.connect(until)?, until };
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
            None => Ok(TcpStream::connect_timeout(&self.at.address, left(until)?)?.into()),
        }
    }

    fn ask(&self, mut stream: impl Read + Write) -> io::Result<String> {
        stream.write_all(&self.question)?;
        let reply = read_reply(&mut stream, BODY_BYTES_MAX)?;
        match reply.status == 200 && reply.body.len() <= BODY_BYTES_MAX {
            true => Ok(String::from_utf8_lossy(&reply.body).into_owned()),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn left(until: Deadline) -> io::Result<Duration> {
    let left = until.left();
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// A socket on which nobody waits past a moment, however slowly the bytes come.
struct Bounded {
    socket: Socket,
    until: Deadline,
}

impl Read for Bounded {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(left(self.until)?))?;
        self.socket.read(bytes)
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(left(self.until)?))?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use plimsoll_model::target::TargetUrl;

    use super::*;

    /// A server whose one connection gets `answer`; the page of it, and what it was asked.
    fn served(answer: &'static [u8], path: &str) -> (Page, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = [0; 4096];
            let n = stream.read(&mut question).unwrap();
            stream.write_all(answer).unwrap();
            String::from_utf8_lossy(&question[..n]).into_owned()
        });
        let url = TargetUrl::parse(&format!("http://{address}/v1")).unwrap();
        let headers = vec!["Authorization: Bearer k".to_owned()];
        let workload = HttpWorkload { headers, ..HttpWorkload::default() };
        (Page::of(&workload, &ResolvedTarget::at(url, address), path).unwrap(), asked)
    }

    const WAIT: Duration = Duration::from_secs(10);

    #[test]
    fn a_page_is_asked_for_with_the_header_fields_of_the_run() {
        let (page, asked) =
            served(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\n", "/metrics");
        assert_eq!(page.get(WAIT).as_deref(), Some("a 1\n"));
        let asked = asked.join().unwrap();
        assert!(asked.starts_with("GET /metrics HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("\r\nAuthorization: Bearer k\r\n"), "{asked}");
    }

    #[test]
    fn other_answers_and_none_are_nothing() {
        for answer in [&b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"[..], b"SSH-2.0\r\n"]
        {
            let (page, asked) = served(answer, "/metrics");
            assert_eq!(page.get(WAIT), None);
            asked.join().unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let url = TargetUrl::parse(&format!("https://{address}/")).unwrap();
        let workload = HttpWorkload { tls_verify: false, ..HttpWorkload::default() };
        let page = Page::of(&workload, &ResolvedTarget::at(url, address), "/metrics").unwrap();
        assert_eq!(page.get(Duration::from_millis(30)), None, "it never shakes hands");
    }
}
