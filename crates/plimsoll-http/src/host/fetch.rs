//! One GET, before any load: is the server there, does TLS work, what does it hold.

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use crate::look::HTTP2_ONLY;
use crate::tls::{self, Trust};
use crate::wire::body::Framing;
use crate::wire::head;
use crate::wire::request::{Frame, Method, request};
use rustls::{AlertDescription, ClientConnection, InvalidMessage, StreamOwned};

use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::host::HostError;
use plimsoll_protocol::host::reach::{self, Socket};

/// Longest wait for each piece of the reply.
const REPLY_WAIT: Duration = Duration::from_secs(10);
/// Largest body that is read: a file set's description has some hundred bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Whom and how to ask.
#[derive(Clone, Debug)]
pub(super) struct Server<'a> {
    /// As the user named it, for messages.
    pub target: &'a str,
    /// Where it listens.
    pub at: &'a ResolvedTarget,
    /// Host of the URL.
    pub host: &'a str,
    /// Value of the `Host` field.
    pub host_field: String,
    /// Encryption, when wanted.
    pub tls: Option<Trusted<'a>>,
}

/// Which certificates are good.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trusted<'a> {
    /// Check the certificate.
    pub verify: bool,
    /// Authorities besides the public ones.
    pub ca_file: Option<&'a Path>,
}

/// A reply in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// Status code.
    pub status: u16,
    /// Value of the `Server` field.
    pub software: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// A connection, encrypted or not.
trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

impl Server<'_> {
    /// Connects, and shakes hands when TLS is wanted; sends no request.
    pub(super) fn greet(&self) -> Result<(), HostError> {
        self.open().map(drop)
    }

    /// Asks for `path`.
    pub(super) fn get(&self, path: &str) -> Result<Reply, HostError> {
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
        let config =
            tls::client_config(trust, None).map_err(|e| HostError::unusable(e.to_string()))?;
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
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(head) = head::parse(&bytes).map_err(|e| e.to_string())? {
            break head;
        }
        if read_more(stream, &mut bytes)? == 0 {
            return Err("the server closed the connection before its reply was complete".into());
        }
    };
    let software = server_field(&bytes[..head.bytes]);
    let mut framing = Framing::of(&head, Method::GET);
    let mut body = Vec::new();
    let mut at = head.bytes;
    while !framing.is_complete() {
        if at == bytes.len() && read_more(stream, &mut bytes)? == 0 {
            match framing {
                Framing::UntilClose => break,
                _ => return Err("the reply broke off before its announced end".into()),
            }
        }
        let (taken, payload) = framing.take(&bytes[at..]).map_err(|e| e.to_string())?;
        body.extend_from_slice(payload);
        at += taken;
        if body.len() > BODY_BYTES_MAX {
            break;
        }
    }
    Ok(Reply { status: head.status, software, body })
}

fn read_more(stream: &mut dyn Stream, bytes: &mut Vec<u8>) -> Result<usize, String> {
    let mut buffer = [0; 4096];
    let n = stream.read(&mut buffer).map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("no reply within {} s", REPLY_WAIT.as_secs())
        }
        // Servers that skip close_notify end the stream all the same.
        io::ErrorKind::UnexpectedEof => String::new(),
        _ => format!("cannot receive: {e}"),
    });
    match n {
        Ok(n) => {
            bytes.extend_from_slice(&buffer[..n]);
            Ok(n)
        }
        Err(text) if text.is_empty() => Ok(0),
        Err(text) => Err(text),
    }
}

fn server_field(head: &[u8]) -> Option<String> {
    String::from_utf8_lossy(head).lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let value: String = value.trim().chars().filter(|c| !c.is_control()).take(200).collect();
        name.eq_ignore_ascii_case("server").then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reply: &str) -> Result<Reply, String> {
        let mut stream = io::Cursor::new(reply.as_bytes().to_vec());
        read_reply(&mut stream)
    }

    #[test]
    fn replies_of_each_framing_are_read_in_full() {
        let body = |text: &str| read(text).unwrap().body;
        assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhixx"), b"hi");
        assert_eq!(body("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi"), b"hi");
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        assert_eq!(body(chunked), b"hi");
        assert!(read("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi").is_err());
        assert!(read("SSH-2.0-x\r\n").is_err());
    }

    #[test]
    fn the_software_is_what_the_server_says() {
        let head = b"HTTP/1.1 200 OK\r\nserver: nginx/1.22\r\n\r\n";
        assert_eq!(server_field(head).as_deref(), Some("nginx/1.22"));
    }
}
