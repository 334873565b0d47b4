//! Requests as bytes. RFC 9112 §3.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Request method.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Method {
    /// The whole reply.
    #[default]
    #[serde(rename = "GET")]
    Get,
    /// The header only.
    #[serde(rename = "HEAD")]
    Head,
}

impl Method {
    /// As on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
        }
    }
}

/// What all requests to one server share.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Value of `Host`.
    pub host: &'a str,
    /// Further fields as `Name: value`, checked by [`is_field`].
    pub headers: &'a [String],
    /// Ask the server to close the connection after its reply.
    pub close: bool,
}

/// A whole request for `target` (path and query). A `Host` or `User-Agent` among the headers
/// replaces the one written otherwise.
pub fn request(frame: Frame<'_>, method: Method, target: &str) -> Vec<u8> {
    let has = |name: &str| {
        frame
            .headers
            .iter()
            .any(|h| h.split_once(':').is_some_and(|(n, _)| n.trim().eq_ignore_ascii_case(name)))
    };
    let mut text = format!("{} {target} HTTP/1.1\r\n", method.as_str());
    if !has("host") {
        text.push_str(&format!("Host: {}\r\n", frame.host));
    }
    if !has("user-agent") {
        text.push_str(concat!("User-Agent: plimsoll/", env!("CARGO_PKG_VERSION"), "\r\n"));
    }
    for header in frame.headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    if frame.close {
        text.push_str("Connection: close\r\n");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

/// `Name: value` with a name and a value that RFC 9110 §5 allows.
pub fn is_field(text: &str) -> bool {
    let Some((name, value)) = text.split_once(':') else { return false };
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty()
        && name.bytes().all(token)
        && value.bytes().all(|b| b == b'\t' || (b >= 0x20 && b != 0x7f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_these_bytes() {
        let headers = ["Accept: */*".to_owned(), "user-agent: me".to_owned()];
        let frame = Frame { host: "h:8080", headers: &headers, close: true };
        assert_eq!(
            String::from_utf8(request(frame, Method::Head, "/a?b")).unwrap(),
            "HEAD /a?b HTTP/1.1\r\nHost: h:8080\r\nAccept: */*\r\nuser-agent: me\r\n\
             Connection: close\r\n\r\n"
        );
    }

    #[test]
    fn fields_that_would_break_a_request_are_refused() {
        assert!(is_field("X-A: b c"));
        for bad in ["", ":", "no colon", "a b: c", "a: b\r\nc: d", "a: \0"] {
            assert!(!is_field(bad), "{bad:?}");
        }
    }
}
