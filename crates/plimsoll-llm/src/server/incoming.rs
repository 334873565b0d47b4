//! A request over HTTP/1.1, out of bytes as they come.

use super::reply::{Refusal, Status};

/// Longest head.
pub(super) const HEAD_BYTES_MAX: usize = 64 << 10;
/// Longest body: a prompt of some millions of words.
pub(super) const BODY_BYTES_MAX: usize = 32 << 20;
const FIELDS_MAX: usize = 100;

/// What the head says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    /// What follows `Bearer`.
    pub(super) key: Option<String>,
    /// The client wants the connection to end with the reply.
    pub(super) closes: bool,
    /// It waits for `100 Continue` before it sends the body.
    pub(super) expects_continue: bool,
    /// Bytes of the head, and of the body after it.
    pub(super) head_bytes: usize,
    pub(super) body_bytes: usize,
}

impl Head {
    /// Reads a head; `None` while it is not whole.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, Refusal> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        let head_bytes = match request.parse(bytes) {
            Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
            Ok(httparse::Status::Partial) => {
                return Err(Refusal::new(Status::HeadTooLarge, "the head is too long"));
            }
            Err(e) => return Err(Refusal::bad(&format!("this is no HTTP/1.1: {e}"))),
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
        Ok(Some(head))
    }

    fn take(&mut self, name: &str, value: &[u8]) -> Result<(), Refusal> {
        let value = String::from_utf8_lossy(value);
        let value = value.trim();
        let is = |of: &str| name.eq_ignore_ascii_case(of);
        if is("content-length") {
            let wrong = || Refusal::bad("content-length is no number");
            self.body_bytes = value.parse().map_err(|_| wrong())?;
            if self.body_bytes > BODY_BYTES_MAX {
                return Err(Refusal::new(Status::TooLarge, "the body is too long"));
            }
        } else if is("transfer-encoding") {
            let message = "send the body with content-length; this server reads no chunked ones";
            return Err(Refusal::new(Status::LengthRequired, message));
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

#[cfg(test)]
mod tests {
    use super::*;

    const POST: &str = "POST /v1/completions?x=1 HTTP/1.1\r\nhost: h\r\nContent-Length: 7\r\n\
                        Authorization: Bearer k\r\n\r\n";

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        for end in 0..POST.len() {
            assert_eq!(Head::read(&POST.as_bytes()[..end]), Ok(None), "{end}");
        }
        let head = Head::read(POST.as_bytes()).unwrap().unwrap();
        assert_eq!((head.method.as_str(), head.path.as_str()), ("POST", "/v1/completions"));
        assert_eq!((head.head_bytes, head.body_bytes), (POST.len(), 7));
        assert_eq!((head.key.as_deref(), head.closes), (Some("k"), false));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_status() {
        let status = |text: &str| Head::read(text.as_bytes()).unwrap_err().status;
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
    }

    #[test]
    fn the_connection_ends_where_the_client_wants_it() {
        let closes = |text: &str| Head::read(text.as_bytes()).unwrap().unwrap().closes;
        assert!(closes("GET / HTTP/1.0\r\n\r\n"));
        assert!(!closes("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"));
        assert!(closes("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n"));
    }
}
