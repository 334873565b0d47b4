//! Just enough HTTP/1.1 to find out what a client asks for.

/// A longer head than any client of these tests sends.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// What a client asks for. Requests with bodies are not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) wants_close: bool,
}

/// Bytes received and not yet understood.
#[derive(Debug, Default)]
pub(crate) struct RequestBuffer(Vec<u8>);

impl RequestBuffer {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        assert!(self.0.len() <= HEAD_BYTES_MAX, "a request head of more than 64 KiB");
    }

    /// The next complete request head.
    pub(crate) fn next(&mut self) -> Option<RequestHead> {
        let end = self.0.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let head: Vec<u8> = self.0.drain(..end).collect();
        let head = String::from_utf8_lossy(&head);
        let mut lines = head.lines();
        let mut first = lines.next().unwrap_or_default().split(' ');
        let wants_close = lines.any(|line| line.eq_ignore_ascii_case("connection: close"));
        let method = first.next().unwrap_or_default().to_owned();
        let path = first.next().unwrap_or_default().to_owned();
        Some(RequestHead { method, path, wants_close })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_in_pieces_and_two_heads_at_once_are_understood() {
        let mut buffer = RequestBuffer::default();
        buffer.add(b"GET /a HTTP/1.1\r\nHost: x\r\n");
        assert_eq!(buffer.next(), None);
        buffer.add(b"\r\nHEAD /b HTTP/1.1\r\nConnection: close\r\n\r\n");
        let (first, second) = (buffer.next().unwrap(), buffer.next().unwrap());
        assert_eq!((first.path.as_str(), first.wants_close), ("/a", false));
        assert_eq!((second.method.as_str(), second.wants_close), ("HEAD", true));
        assert_eq!(buffer.next(), None);
    }
}
