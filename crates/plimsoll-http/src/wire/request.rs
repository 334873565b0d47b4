//! Requests as bytes. RFC 9112 §3.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use plimsoll_model::units::read_text;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::template::{Piece, Template};

/// Longest name of a method.
const METHOD_BYTES_MAX: usize = 32;

/// Request method: any token. RFC 9110 §9.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Method(&'static str);

/// Names of methods that are not among [`Method::STANDARD`].
static OTHERS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl Method {
    /// The whole reply.
    pub const GET: Self = Self("GET");
    /// The header only.
    pub const HEAD: Self = Self("HEAD");
    /// The default method of a request with a body.
    pub const POST: Self = Self("POST");
    /// Those of RFC 9110 and RFC 5789 that requests of a list may use.
    const STANDARD: [Self; 7] = [
        Self::GET,
        Self::HEAD,
        Self::POST,
        Self("PUT"),
        Self("PATCH"),
        Self("DELETE"),
        Self("OPTIONS"),
    ];

    /// The method of that name, upper case as RFC 9110 has it. `None` if that is no token, or
    /// requests a tunnel.
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(standard) =
            Self::STANDARD.iter().find(|standard| standard.0.eq_ignore_ascii_case(name))
        {
            return Some(*standard);
        }
        let is_token = !name.is_empty() && name.bytes().all(is_token_byte);
        if !is_token || name.len() > METHOD_BYTES_MAX || name.eq_ignore_ascii_case("CONNECT") {
            return None;
        }
        let mut others = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(existing) = others.get(name) {
            return Some(Self(existing));
        }
        // A process sees few of them, and keeps each once.
        let kept: &'static str = Box::leak(name.into());
        others.insert(kept);
        Some(Self(kept))
    }

    /// As on the wire.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// Doing it twice is doing it once. RFC 9110 §9.2.2
    pub fn is_idempotent(self) -> bool {
        !matches!(self.0, "POST" | "PATCH") && Self::STANDARD.contains(&self)
    }

    /// A server may wait for a body. RFC 9110 §8.6
    fn expects_body(self) -> bool {
        matches!(self.0, "POST" | "PUT" | "PATCH")
    }
}

impl Default for Method {
    fn default() -> Self {
        Self::GET
    }
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Method {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a method such as \"GET\", \"POST\" or \"PURGE\"";
        read_text(deserializer, expected, Method::parse)
    }
}

impl JsonSchema for Method {
    fn schema_name() -> Cow<'static, str> {
        "Method".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "examples": ["GET", "HEAD", "POST", "PURGE"] })
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

/// What one request adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestText {
    /// Method.
    pub method: Method,
    /// Path and query; may have random parts.
    pub target: Template,
    /// Fields of this request, checked by [`is_field`]; they replace those of the frame.
    pub headers: Vec<String>,
    /// Further ones, by name, whose values have variables; none of the same name is above.
    pub drawn_headers: Vec<(String, Template)>,
    /// Body; may have random parts.
    pub body: Template,
}

impl RequestText {
    /// A request without fields or body of its own.
    pub fn plain(method: Method, target: &str) -> Self {
        let target = Template::fixed(target.as_bytes());
        let (headers, drawn_headers) = (Vec::new(), Vec::new());
        Self { method, target, headers, drawn_headers, body: Template::default() }
    }
}

/// Fields of a request but for the length of its body, each `Name: value`. A `Host`, `User-Agent`
/// or `Content-Type` among those that were given replaces the default one.
pub fn fields<'a>(frame: Frame<'a>, text: &'a RequestText) -> Vec<Cow<'a, str>> {
    let own = |name: &str| {
        let drawn = text.drawn_headers.iter().any(|(drawn, _)| drawn.eq_ignore_ascii_case(name));
        drawn || text.headers.iter().any(|field| is_named(field, name))
    };
    let has = |name: &str| own(name) || frame.headers.iter().any(|field| is_named(field, name));
    let mut fields: Vec<Cow<'a, str>> = Vec::new();
    if !has("host") {
        fields.push(format!("Host: {}", frame.host).into());
    }
    if !has("user-agent") {
        fields.push(concat!("User-Agent: plimsoll/", env!("CARGO_PKG_VERSION")).into());
    }
    let of_frame = frame.headers.iter().filter(|field| !own(name_of(field)));
    fields.extend(of_frame.chain(&text.headers).map(Cow::from));
    if !text.body.is_empty() && !has("content-type") {
        // As curl sends for --data.
        fields.push("Content-Type: application/x-www-form-urlencoded".into());
    }
    if frame.close {
        fields.push("Connection: close".into());
    }
    fields
}

/// The request needs a length of its body that none of its fields has.
pub fn counts_body(frame: Frame<'_>, text: &RequestText) -> bool {
    let mut given = text.headers.iter().chain(frame.headers);
    let is_declared = given
        .any(|field| is_named(field, "content-length") || is_named(field, "transfer-encoding"));
    (!text.body.is_empty() || text.method.expects_body()) && !is_declared
}

/// Header of a request.
pub fn head(frame: Frame<'_>, text: &RequestText) -> Template {
    let mut head = Template::fixed(format!("{} ", text.method.as_str()).as_bytes());
    head.append(&text.target);
    let mut lines = " HTTP/1.1\r\n".to_owned();
    for field in fields(frame, text) {
        lines.push_str(&field);
        lines.push_str("\r\n");
    }
    head.append(&Template::fixed(lines.as_bytes()));
    for (name, value) in &text.drawn_headers {
        head.push(Piece::Field { name: name.clone(), value: value.clone() });
    }
    if counts_body(frame, text) {
        head.append(&Template::fixed(b"Content-Length: "));
        head.push(Piece::BodyBytes);
        head.append(&Template::fixed(b"\r\n"));
    }
    head.append(&Template::fixed(b"\r\n"));
    head
}

/// A whole request without random parts.
pub fn request(frame: Frame<'_>, method: Method, target: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    head(frame, &RequestText::plain(method, target)).write(0, 0, &mut bytes);
    bytes
}

fn name_of(field: &str) -> &str {
    field.split_once(':').map_or(field, |(name, _)| name.trim())
}

fn is_named(field: &str, name: &str) -> bool {
    name_of(field).eq_ignore_ascii_case(name)
}

/// `Name: value` with a name and a value that RFC 9110 §5 allows.
pub fn is_field(text: &str) -> bool {
    let Some((name, value)) = text.split_once(':') else { return false };
    !name.is_empty()
        && name.bytes().all(is_token_byte)
        && value.bytes().all(|b| b == b'\t' || (b >= 0x20 && b != 0x7f))
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(frame: Frame<'_>, text: &RequestText) -> String {
        let (mut body, mut bytes) = (Vec::new(), Vec::new());
        text.body.write(7, 0, &mut body);
        head(frame, text).write(7, body.len(), &mut bytes);
        bytes.extend_from_slice(&body);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_body_has_its_type_and_its_length() {
        let frame = Frame { host: "h", headers: &["X: 1".to_owned()], close: false };
        let post = RequestText {
            body: Template::parse("a={{int 10 99}}").unwrap(),
            ..RequestText::plain(Method::POST, "/")
        };
        let encoded = bytes(frame, &post);
        assert!(
            encoded.contains("Content-Type: application/x-www-form-urlencoded\r\n"),
            "{encoded}"
        );
        assert!(encoded.contains("Content-Length: 4\r\n\r\na="), "{encoded}");
        let headers = vec!["content-type: application/json".to_owned(), "x: 2".to_owned()];
        let json = RequestText { headers, ..post };
        let encoded = bytes(frame, &json);
        assert!(!encoded.contains("urlencoded") && !encoded.contains("X: 1"), "{encoded}");
        let empty = RequestText::plain(Method::POST, "/");
        assert!(bytes(frame, &empty).contains("Content-Length: 0\r\n"));
        assert!(!bytes(frame, &RequestText::plain(Method::GET, "/")).contains("Content-Length"));
    }

    #[test]
    fn any_token_but_connect_is_a_method() {
        assert_eq!(Method::parse("get"), Some(Method::GET));
        let purge = Method::parse("PURGE").unwrap();
        assert_eq!((purge.as_str(), Method::parse("PURGE")), ("PURGE", Some(purge)));
        assert!(Method::parse("DELETE").unwrap().is_idempotent() && !purge.is_idempotent());
        for bad in ["", "A B", "CONNECT", "GET\r\n", &"X".repeat(33)] {
            assert_eq!(Method::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_request_is_these_bytes() {
        let headers = ["Accept: */*".to_owned(), "user-agent: me".to_owned()];
        let frame = Frame { host: "h:8080", headers: &headers, close: true };
        assert_eq!(
            String::from_utf8(request(frame, Method::HEAD, "/a?b")).unwrap(),
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
