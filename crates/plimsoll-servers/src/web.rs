//! What small web servers on the loop of [`crate::timed`] share: a client's bytes, requests over
//! HTTP/1.1 out of them, and replies back.

use std::borrow::Cow;
use std::io::ErrorKind::{Interrupted, WouldBlock};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes of replies that may wait for a client that does not take them.
const OUTPUT_BYTES_MAX: usize = 16 << 20;
/// What a connection that waits keeps of its buffers.
const KEPT_BYTES: usize = 16 << 10;
/// Bytes that [`WebClient::exchange`] reads at once.
const ROOM_BYTES: usize = 16 << 10;
/// Longest head.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
const FIELDS_MAX: usize = 100;

/// A client.
pub struct WebClient {
    stream: TcpStream,
    body_bytes_max: usize,
    /// When it connected.
    pub accepted_ns: u64,
    /// Read, and not yet a whole request.
    input: Vec<u8>,
    head: Option<Head>,
    /// To be sent, from `sent` on.
    pub output: Vec<u8>,
    sent: usize,
    /// It ends once `output` is gone.
    pub closes: bool,
    /// The rest of a reply follows; no request is taken until then.
    pub is_streaming: bool,
}

/// A request, and its body.
pub struct Request {
    /// Its head.
    pub head: Head,
    /// Its body.
    pub body: Vec<u8>,
}

/// The connection is over.
#[derive(Debug)]
pub struct Closed;

impl AsFd for WebClient {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl WebClient {
    /// A client that connected at `accepted_ns`; a request with a longer body is refused.
    pub fn new(stream: TcpStream, body_bytes_max: usize, accepted_ns: u64) -> Self {
        Self {
            stream,
            body_bytes_max,
            accepted_ns,
            input: Vec::new(),
            head: None,
            output: Vec::new(),
            sent: 0,
            closes: false,
            is_streaming: false,
        }
    }

    /// Takes what was read from its socket.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        if self.input.len() + bytes.len() > HEAD_BYTES_MAX + self.body_bytes_max {
            return Err(Closed);
        }
        self.input.extend_from_slice(bytes);
        Ok(())
    }

    /// The next request, once it is whole.
    pub fn next_request(&mut self) -> Result<Option<Request>, BadRequest> {
        if self.is_streaming || self.closes || self.input.is_empty() {
            return Ok(None);
        }
        if self.head.is_none() {
            self.head = Head::read(&self.input, self.body_bytes_max)?;
            if self.head.as_ref().is_some_and(|head| head.expects_continue) {
                self.output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
        }
        let whole = self.head.take_if(|head| self.input.len() >= head.head_bytes + head.body_bytes);
        let Some(head) = whole else { return Ok(None) };
        let after = self.input.split_off(head.head_bytes + head.body_bytes);
        let mut body = std::mem::replace(&mut self.input, after);
        body.drain(..head.head_bytes);
        Ok(Some(Request { head, body }))
    }

    /// Is something waiting to be sent?
    pub fn has_output(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Sends as much as the socket takes. Is everything gone?
    pub fn flush(&mut self) -> Result<bool, Closed> {
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => return Err(Closed),
                Ok(count) => self.sent += count,
                Err(e) if e.kind() == Interrupted => {}
                Err(e) if e.kind() == WouldBlock => {
                    let waits = self.output.len() - self.sent;
                    return if waits > OUTPUT_BYTES_MAX { Err(Closed) } else { Ok(false) };
                }
                Err(_) => return Err(Closed),
            }
        }
        self.sent = 0;
        self.output.clear();
        self.output.shrink_to(KEPT_BYTES);
        Ok(true)
    }

    /// Reads once, and sends a reply to each request that is whole, for as long as the socket takes
    /// them. Is there perhaps more to read? For sockets that are watched edge-triggered.
    pub fn exchange<'a>(
        &mut self,
        mut reply: impl FnMut(&Head) -> Reply<'a>,
    ) -> Result<bool, Closed> {
        if !self.flush()? {
            return Ok(false);
        }
        let mut room = [0; ROOM_BYTES];
        let count = match self.stream.read(&mut room) {
            Ok(0) => return Err(Closed),
            Ok(count) => count,
            Err(e) if e.kind() == WouldBlock => 0,
            Err(e) if e.kind() == Interrupted => return Ok(true),
            Err(_) => return Err(Closed),
        };
        self.take(&room[..count])?;
        while self.flush()? {
            match self.next_request() {
                Ok(Some(Request { head, .. })) => {
                    let reply = reply(&head);
                    self.closes = head.closes;
                    let has_body = head.method != "HEAD";
                    self.is_streaming = has_body && reply.body.is_none();
                    match has_body {
                        true => reply.write(&mut self.output),
                        false => reply.write_head(&mut self.output),
                    }
                }
                Ok(None) if self.closes && !self.is_streaming => return Err(Closed),
                Ok(None) => return Ok(count == ROOM_BYTES),
                Err(BadRequest { status, message }) => {
                    self.closes = true;
                    Reply::text(status, message).write(&mut self.output);
                }
            }
        }
        Ok(false)
    }

    /// Ends it after its last reply. Whatever the client sends now is refused by the kernel.
    pub fn end(self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

/// Why the bytes of a client are no request that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRequest {
    /// Status of the reply.
    pub status: Status,
    /// What is wrong.
    pub message: String,
}

impl BadRequest {
    fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

/// The content of the head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// `GET`, `POST` ….
    pub method: String,
    /// Without the query.
    pub path: String,
    /// The field `Host`.
    pub host: Option<String>,
    /// What follows `Bearer`.
    pub key: Option<String>,
    /// The client requests that the connection end with the reply.
    pub closes: bool,
    /// It waits for `100 Continue` before it sends the body.
    expects_continue: bool,
    /// Bytes of the head, and of the body after it.
    head_bytes: usize,
    body_bytes: usize,
}

impl Head {
    /// Reads a head; `None` while it is not whole.
    pub fn read(bytes: &[u8], body_bytes_max: usize) -> Result<Option<Self>, BadRequest> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        let head_bytes = match request.parse(bytes) {
            Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
            Ok(httparse::Status::Partial) => {
                return Err(BadRequest::new(Status::HeadTooLarge, "the head is too long"));
            }
            Err(e) => {
                let message = format!("this is no HTTP/1.1: {e}");
                return Err(BadRequest::new(Status::BadRequest, message));
            }
        };
        let target = request.path.unwrap_or_default();
        let mut head = Self {
            method: request.method.unwrap_or_default().to_owned(),
            path: target.split('?').next().unwrap_or_default().to_owned(),
            closes: request.version == Some(0),
            head_bytes,
            ..Self::default()
        };
        request.headers.iter().try_for_each(|field| head.take(field.name, field.value))?;
        if head.body_bytes > body_bytes_max {
            return Err(BadRequest::new(Status::TooLarge, "the body is too long"));
        }
        Ok(Some(head))
    }

    fn take(&mut self, name: &str, value: &[u8]) -> Result<(), BadRequest> {
        let value = String::from_utf8_lossy(value);
        let value = value.trim();
        let is = |of: &str| name.eq_ignore_ascii_case(of);
        if is("content-length") {
            let wrong = |_| BadRequest::new(Status::BadRequest, "content-length is no number");
            self.body_bytes = value.parse().map_err(wrong)?;
        } else if is("transfer-encoding") {
            let message = "send the body with content-length; this server reads no chunked ones";
            return Err(BadRequest::new(Status::LengthRequired, message));
        } else if is("host") {
            // RFC 9112 3.2
            if self.host.replace(value.to_owned()).is_some() {
                return Err(BadRequest::new(Status::BadRequest, "there are two fields Host"));
            }
        } else if is("authorization") {
            self.key = value.strip_prefix("Bearer ").map(|key| key.trim().to_owned());
        } else if is("connection") {
            self.closes = value.eq_ignore_ascii_case("close")
                || self.closes && !value.eq_ignore_ascii_case("keep-alive");
        } else if is("expect") {
            self.expects_continue = value.eq_ignore_ascii_case("100-continue");
        }
        Ok(())
    }
}

/// Status lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the lines say it")]
pub enum Status {
    Ok,
    PermanentRedirect,
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    LengthRequired,
    TooLarge,
    HeadTooLarge,
    ServiceUnavailable,
}

impl Status {
    /// Code and reason.
    pub const fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::PermanentRedirect => "308 Permanent Redirect",
            Self::BadRequest => "400 Bad Request",
            Self::Unauthorized => "401 Unauthorized",
            Self::Forbidden => "403 Forbidden",
            Self::NotFound => "404 Not Found",
            Self::MethodNotAllowed => "405 Method Not Allowed",
            Self::LengthRequired => "411 Length Required",
            Self::TooLarge => "413 Content Too Large",
            Self::HeadTooLarge => "431 Request Header Fields Too Large",
            Self::ServiceUnavailable => "503 Service Unavailable",
        }
    }
}

/// A reply.
pub struct Reply<'a> {
    /// Its status.
    pub status: Status,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Lines of other fields, with their line ends.
    pub fields: Cow<'a, str>,
    /// `None`: it follows as a stream of chunks.
    pub body: Option<Cow<'a, [u8]>>,
}

impl<'a> Reply<'a> {
    /// A reply without other fields.
    pub fn new(status: Status, content_type: &'static str, body: impl Into<Cow<'a, [u8]>>) -> Self {
        Self { status, content_type, fields: "".into(), body: Some(body.into()) }
    }

    /// A text for people, or for Prometheus: its type names Prometheus' format.
    pub fn text(status: Status, text: impl Into<Vec<u8>>) -> Self {
        Self::new(status, "text/plain; version=0.0.4; charset=utf-8", text.into())
    }

    /// Writes head and body.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_head(out);
        out.extend_from_slice(self.body.as_deref().unwrap_or_default());
    }

    /// Writes the head; the caller writes what follows.
    pub fn write_head(&self, out: &mut Vec<u8>) {
        let Self { status, content_type, fields, body } = self;
        let (line, version) = (status.line(), env!("CARGO_PKG_VERSION"));
        let length = match body {
            Some(body) => format!("content-length: {}", body.len()),
            None => "transfer-encoding: chunked".to_owned(),
        };
        let _ = write!(
            out,
            "HTTP/1.1 {line}\r\nserver: plimsoll/{version}\r\ncontent-type: {content_type}\r\n\
             {fields}{length}\r\n\r\n"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client and its other end.
    fn pair() -> (WebClient, TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (WebClient::new(listener.accept().unwrap().0, 0, 0), peer)
    }

    #[test]
    fn requests_sent_ahead_are_answered_in_order_until_one_closes() {
        let (mut client, mut peer) = pair();
        peer.write_all(b"GET /a HTTP/1.1\r\n\r\nHEAD /b HTTP/1.1\r\n\r\n").unwrap();
        peer.write_all(b"GET /c HTTP/1.1\r\nConnection: close\r\n\r\nGET /d HTTP/1.1\r\n\r\n")
            .unwrap();
        let echo = |head: &Head| Reply::text(Status::Ok, head.path.clone());
        while client.exchange(echo).is_ok() {}
        client.end();
        let mut text = String::new();
        peer.read_to_string(&mut text).unwrap();
        let bodies: Vec<_> = text.split("HTTP/1.1 200 OK\r\n").collect();
        let ends = ["", "content-length: 2\r\n\r\n/a", "content-length: 2\r\n\r\n", "\r\n\r\n/c"];
        assert_eq!(bodies.len(), ends.len(), "{text}");
        bodies.iter().zip(ends).for_each(|(reply, end)| assert!(reply.ends_with(end), "{text}"));
    }

    #[test]
    fn no_request_is_taken_before_a_stream_has_ended() {
        let (mut client, mut peer) = pair();
        let stream = |_: &Head| Reply { body: None, ..Reply::text(Status::Ok, "") };
        peer.write_all(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
        assert!(matches!(client.exchange(stream), Ok(false)) && client.is_streaming);
        peer.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert!(matches!(client.exchange(|_| unreachable!("a stream")), Ok(false)));
        drop(peer);
        assert!(client.exchange(stream).is_err(), "it has gone");
    }

    #[test]
    fn what_is_no_request_gets_its_status_and_the_connection_ends() {
        let (mut client, mut peer) = pair();
        peer.write_all(b"POST / HTTP/1.1\r\ncontent-length: 1\r\n\r\nx").unwrap();
        assert!(client.exchange(|_| unreachable!("its body is too long")).is_err());
        client.end();
        let mut start = [0; 12];
        peer.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"HTTP/1.1 413");
    }

    const POST: &str = "POST /v1/completions?x=1 HTTP/1.1\r\nhost: h\r\nContent-Length: 7\r\n\
                        Authorization: Bearer k\r\n\r\n";
    const BODY_BYTES_MAX: usize = 1 << 20;

    fn read(text: &str) -> Result<Option<Head>, BadRequest> {
        Head::read(text.as_bytes(), BODY_BYTES_MAX)
    }

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        for end in 0..POST.len() {
            assert_eq!(read(&POST[..end]), Ok(None), "{end}");
        }
        let head = read(POST).unwrap().unwrap();
        assert_eq!((head.method.as_str(), head.path.as_str()), ("POST", "/v1/completions"));
        assert_eq!((head.head_bytes, head.body_bytes), (POST.len(), 7));
        assert_eq!((head.key.as_deref(), head.closes), (Some("k"), false));
        assert_eq!(head.host.as_deref(), Some("h"));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_status() {
        let status = |text: &str| read(text).unwrap_err().status;
        assert_eq!(status("POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n"), Status::BadRequest);
        let chunked = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
        assert_eq!(status(chunked), Status::LengthRequired);
        let long = format!("POST / HTTP/1.1\r\ncontent-length: {}\r\n\r\n", BODY_BYTES_MAX + 1);
        assert_eq!(status(&long), Status::TooLarge);
        assert_eq!(
            status(&format!("GET / HTTP/1.1\r\na: {}", "b".repeat(HEAD_BYTES_MAX))),
            Status::HeadTooLarge
        );
        assert_eq!(status("\u{1}\r\n\r\n"), Status::BadRequest);
        assert_eq!(status("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"), Status::BadRequest);
    }

    #[test]
    fn the_connection_ends_where_the_client_wants_it() {
        let closes = |text: &str| read(text).unwrap().unwrap().closes;
        assert!(closes("GET / HTTP/1.0\r\n\r\n"));
        assert!(!closes("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"));
        assert!(closes("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n"));
    }
}
