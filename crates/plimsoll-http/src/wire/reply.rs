//! A whole reply, put together from bytes as they arrive: for requests that are no load.

use super::Malformed;
use super::head::{self, Framing};
use super::request::Method;

/// Of a `Server` field; no real name is longer.
const SOFTWARE_CHARS_MAX: usize = 200;

/// A reply with its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// Value of the `Server` field.
    pub software: Option<String>,
    /// The body; longer than the limit where the server sends more.
    pub body: Vec<u8>,
}

/// Why a connection that has ended left no reply behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfinished {
    /// The header did not end.
    #[error("the server closed the connection before its reply was complete")]
    Head,
    /// The body is shorter than the header says.
    #[error("the reply broke off before its announced end")]
    Body,
}

/// Assembles the reply to a request other than HEAD.
#[derive(Debug)]
pub struct ReplyReader {
    head: Vec<u8>,
    framing: Option<Framing>,
    reply: Reply,
    body_bytes_max: usize,
}

impl ReplyReader {
    /// A body is read up to this limit, and by what came with its last bytes beyond it.
    pub fn new(body_bytes_max: usize) -> Self {
        Self { head: Vec::new(), framing: None, reply: Reply::default(), body_bytes_max }
    }

    /// Takes bytes in as they come from the server.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        if self.framing.is_some() {
            return self.take_body(bytes);
        }
        self.head.extend_from_slice(bytes);
        let Some(head) = head::parse(&self.head)? else { return Ok(()) };
        let body = self.head.split_off(head.bytes);
        self.reply.status = head.status;
        self.reply.software = server_field(&self.head);
        self.framing = Some(Framing::from_head(&head, Method::GET));
        self.take_body(&body)
    }

    fn take_body(&mut self, mut bytes: &[u8]) -> Result<(), Malformed> {
        let Some(framing) = &mut self.framing else { return Ok(()) };
        while !bytes.is_empty() && !framing.is_complete() {
            let (taken, payload) = framing.take(bytes)?;
            self.reply.body.extend_from_slice(payload);
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Nothing more needs to be read: the reply has ended, or its body is over the limit.
    pub fn is_whole(&self) -> bool {
        let too_long = self.reply.body.len() > self.body_bytes_max;
        too_long || self.framing.as_ref().is_some_and(Framing::is_complete)
    }

    /// The reply, when it is whole or its connection has ended.
    pub fn end(self) -> Result<Reply, Unfinished> {
        let is_whole = self.is_whole();
        match self.framing {
            None => Err(Unfinished::Head),
            Some(Framing::UntilClose) => Ok(self.reply),
            Some(_) if is_whole => Ok(self.reply),
            Some(_) => Err(Unfinished::Body),
        }
    }
}

fn server_field(head: &[u8]) -> Option<String> {
    String::from_utf8_lossy(head).lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let value = value.trim().chars().filter(|c| !c.is_control());
        name.eq_ignore_ascii_case("server").then(|| value.take(SOFTWARE_CHARS_MAX).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY_BYTES_MAX: usize = 8;

    /// What a server sends before it closes the connection, in parts of some length.
    fn read_in(text: &str, part_bytes: usize) -> Result<Reply, String> {
        let mut reader = ReplyReader::new(BODY_BYTES_MAX);
        for part in text.as_bytes().chunks(part_bytes) {
            if reader.is_whole() {
                break;
            }
            reader.take(part).map_err(|e| e.to_string())?;
        }
        reader.end().map_err(|e| e.to_string())
    }

    #[track_caller]
    fn read(text: &str) -> Result<Reply, String> {
        let whole = read_in(text, text.len().max(1));
        assert_eq!(read_in(text, 1), whole, "a byte at a time");
        whole
    }

    #[test]
    fn replies_of_each_framing_are_read_in_full() {
        let body = |text: &str| read(text).unwrap().body;
        assert_eq!(body("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhixx"), b"hi");
        assert_eq!(body("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi"), b"hi");
        assert_eq!(body("HTTP/1.0 404 No\r\nA: b\r\n\r\nx 1\n"), b"x 1\n");
        assert_eq!(body("HTTP/1.1 204 No Content\r\n\r\n"), b"");
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        assert_eq!(body(chunked), b"hi");
    }

    #[test]
    fn what_is_no_reply_or_broke_off_is_none() {
        for (odd, message) in [
            ("", "before its reply was complete"),
            ("HTTP/1.0 200 OK\r\nA: b\r\n", "before its reply was complete"),
            ("HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nx", "before its announced end"),
            ("SSH-2.0-x\r\n\r\n", "does not begin with HTTP"),
        ] {
            let why = read(odd).unwrap_err();
            assert!(why.contains(message), "{odd:?}: {why}");
        }
    }

    #[test]
    fn a_body_beyond_the_limit_is_read_no_further() {
        let mut reader = ReplyReader::new(BODY_BYTES_MAX);
        reader.take(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n12345678").unwrap();
        assert!(!reader.is_whole());
        reader.take(b"9").unwrap();
        assert!(reader.is_whole());
        assert_eq!(reader.end().unwrap().body, b"123456789");
    }

    #[test]
    fn the_software_is_what_the_server_says() {
        let head = b"HTTP/1.1 200 OK\r\nserver: nginx/1.22\r\n\r\n";
        assert_eq!(server_field(head).as_deref(), Some("nginx/1.22"));
    }
}
