//! What a journey takes from a reply into a variable: a value of JSON, a header field, a cookie, the
//! group of a regular expression, a field of a form.

use std::borrow::Cow;
use std::fmt;

use memchr::memmem;
use regex::bytes::Regex;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Longest value.
pub(crate) const VALUE_BYTES_MAX: usize = 64 * 1024;

/// Something that is taken from a reply.
#[derive(Clone, Debug)]
pub struct Take {
    /// Index of the variable.
    pub variable: u16,
    /// Where the value is.
    pub from: TakeSource,
}

/// Where a value is taken from.
#[derive(Clone, Debug)]
pub enum TakeSource {
    /// A text, number, `true` or `false` in JSON. RFC 6901
    Json(JsonPointer),
    /// The first header field of this name, in lower case.
    Header(String),
    /// A cookie that the reply sets.
    Cookie(String),
    /// The first group of the first match, or the match where there is no group.
    Regex(Regex),
    /// The value of the form field of this name.
    Field(String),
}

impl TakeSource {
    /// The body of the reply is needed.
    pub(crate) const fn reads_body(&self) -> bool {
        matches!(self, Self::Json(_) | Self::Regex(_) | Self::Field(_))
    }

    /// The value in a body; `None` where it is not there.
    pub(crate) fn value_in<'b>(&self, body: &'b [u8]) -> Option<Cow<'b, [u8]>> {
        let value = match self {
            Self::Json(pointer) => Cow::Owned(pointer.value_in(body)?),
            Self::Regex(regex) => {
                let captures = regex.captures(body)?;
                Cow::Borrowed(captures.get(1).or_else(|| captures.get(0))?.as_bytes())
            }
            Self::Field(name) => form_field(body, name)?,
            Self::Header(_) | Self::Cookie(_) => return None,
        };
        (value.len() <= VALUE_BYTES_MAX).then_some(value)
    }
}

impl fmt::Display for TakeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(pointer) => write!(f, "JSON value {:?}", pointer.text),
            Self::Header(name) => write!(f, "header field {name:?}"),
            Self::Cookie(name) => write!(f, "cookie {name:?}"),
            Self::Regex(regex) => write!(f, "match of {:?}", regex.as_str()),
            Self::Field(name) => write!(f, "form field {name:?}"),
        }
    }
}

/// A path to a value in JSON. RFC 6901
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPointer {
    text: String,
    tokens: Vec<String>,
}

impl JsonPointer {
    /// Reads a pointer; `None` if it is neither empty nor begins with a slash.
    pub fn parse(text: &str) -> Option<Self> {
        let tokens = match text.strip_prefix('/') {
            None if text.is_empty() => Vec::new(),
            None => return None,
            Some(rest) => {
                rest.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
            }
        };
        Some(Self { text: text.to_owned(), tokens })
    }

    /// Names of members and indexes of items, from the root.
    #[cfg(feature = "host")]
    pub(crate) fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// The value there. The rest of the document is read and not kept.
    fn value_in(&self, body: &[u8]) -> Option<Vec<u8>> {
        let mut json = serde_json::Deserializer::from_slice(body);
        Pointed(&self.tokens).deserialize(&mut json).ok().flatten()
    }
}

/// Reads what these tokens lead to.
struct Pointed<'p>(&'p [String]);

impl<'de> DeserializeSeed<'de> for Pointed<'_> {
    type Value = Option<Vec<u8>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Pointed<'_> {
    fn scalar<E>(&self, text: impl Into<Vec<u8>>) -> Result<Option<Vec<u8>>, E> {
        Ok(self.0.is_empty().then(|| text.into()))
    }
}

impl<'de> Visitor<'de> for Pointed<'_> {
    type Value = Option<Vec<u8>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        self.scalar(text)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        self.scalar(number.to_string())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        self.scalar(number.to_string())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        self.scalar(number.to_string())
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Self::Value, E> {
        self.scalar(truth.to_string())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut value = None;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match self.0 {
                [token, rest @ ..] if *token == key && value.is_none() => {
                    value = map.next_value_seed(Pointed(rest))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let (index, rest) = match self.0 {
            [token, rest @ ..] => (token.parse::<usize>().ok(), rest),
            [] => (None, &[][..]),
        };
        for at in 0.. {
            if index == Some(at) {
                let Some(value) = list.next_element_seed(Pointed(rest))? else { break };
                while list.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(value);
            }
            if list.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(None)
    }
}

/// The value of the first `input` of this name, with its character references resolved.
fn form_field<'b>(body: &'b [u8], name: &str) -> Option<Cow<'b, [u8]>> {
    let tags = memmem::find_iter(body, b"<").map(|start| &body[start + 1..]);
    for tag in tags {
        let Some(attributes) = tag.get(..5).filter(|start| start.eq_ignore_ascii_case(b"input"))
        else {
            continue;
        };
        let end = end_of_tag(tag)?;
        let attributes = &tag[attributes.len()..end];
        let value_of = |attribute: &str| {
            let mut all = Attributes(attributes);
            all.find(|(name, _)| name.eq_ignore_ascii_case(attribute.as_bytes())).map(|(_, v)| v)
        };
        if value_of("name").is_some_and(|its| unescaped(its) == name.as_bytes()) {
            return Some(unescaped(value_of("value").unwrap_or_default()));
        }
    }
    None
}

/// Where a tag ends; a `>` within quotes is none.
fn end_of_tag(tag: &[u8]) -> Option<usize> {
    let mut quote = None;
    tag.iter().position(|byte| {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(*byte),
            (None, b'>') => return true,
            (Some(open), byte) if open == *byte => quote = None,
            _ => {}
        }
        false
    })
}

/// Names and values of the attributes of a tag.
struct Attributes<'t>(&'t [u8]);

impl<'t> Iterator for Attributes<'t> {
    type Item = (&'t [u8], &'t [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'/';
        let start = self.0.iter().position(|byte| !is_between(byte))?;
        let rest = &self.0[start..];
        let end = rest.iter().position(|b| is_between(b) || *b == b'=').unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end.max(1));
        let Some(value) = rest.trim_ascii_start().strip_prefix(b"=") else {
            self.0 = rest;
            return Some((name, b""));
        };
        let value = value.trim_ascii_start();
        let (value, rest) = match value {
            [quote @ (b'"' | b'\''), rest @ ..] => {
                let end = memchr::memchr(*quote, rest).unwrap_or(rest.len());
                (&rest[..end], rest.get(end + 1..).unwrap_or_default())
            }
            plain => {
                let end = plain.iter().position(u8::is_ascii_whitespace).unwrap_or(plain.len());
                plain.split_at(end)
            }
        };
        self.0 = rest;
        Some((name, value))
    }
}

/// Named character references that values of form fields have.
const REFERENCES: [(&[u8], &str); 6] = [
    (b"amp", "&"),
    (b"lt", "<"),
    (b"gt", ">"),
    (b"quot", "\""),
    (b"apos", "'"),
    (b"nbsp", "\u{a0}"),
];

/// Resolves character references; unknown ones stay as they are.
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'&', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = memchr::memchr(b'&', rest) {
        plain.extend_from_slice(&rest[..start]);
        let after = &rest[start + 1..];
        let resolved = memchr::memchr(b';', after).and_then(|end| {
            let character = resolve(&after[..end])?;
            Some((character, &after[end + 1..]))
        });
        match resolved {
            Some((character, after)) => {
                plain.extend_from_slice(character.as_bytes());
                rest = after;
            }
            None => {
                plain.push(b'&');
                rest = after;
            }
        }
    }
    plain.extend_from_slice(rest);
    Cow::Owned(plain)
}

fn resolve(reference: &[u8]) -> Option<String> {
    if let Some((_, text)) = REFERENCES.iter().find(|(name, _)| *name == reference) {
        return Some((*text).to_owned());
    }
    let number = std::str::from_utf8(reference.strip_prefix(b"#")?).ok()?;
    let number = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    char::from_u32(number).map(String::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(pointer: &str, body: &str) -> Option<String> {
        let value = JsonPointer::parse(pointer).unwrap().value_in(body.as_bytes());
        value.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_pointer_leads_to_a_text_or_a_number() {
        let body = r#"{"a": {"b/c": [1, {"token": "x\ny"}, true, null, 2.5]}, "token": "other"}"#;
        for (pointer, value) in [
            ("/a/b~1c/1/token", Some("x\ny")),
            ("/a/b~1c/0", Some("1")),
            ("/a/b~1c/2", Some("true")),
            ("/a/b~1c/4", Some("2.5")),
            ("/a/b~1c/3", None),
            ("/a/b~1c/9", None),
            ("/a", None),
            ("/token", Some("other")),
            ("/token/x", None),
        ] {
            assert_eq!(json(pointer, body).as_deref(), value, "{pointer}");
        }
        assert_eq!(json("", "\"all\"").as_deref(), Some("all"));
        assert_eq!((json("/a", "{\"a\": 1"), json("/a", "")), (None, None));
        assert_eq!(JsonPointer::parse("a"), None);
    }

    fn field(body: &str, name: &str) -> Option<String> {
        form_field(body.as_bytes(), name).map(|v| String::from_utf8(v.into_owned()).unwrap())
    }

    #[test]
    fn a_form_field_is_taken_however_its_tag_is_written() {
        let page = "<form><input type=hidden name=\"csrf\" value='a>b&amp;&#34;&#x4e;&unknown;'/>\n\
                    <INPUT VALUE = x2 NAME = next disabled><input name=empty></form>";
        assert_eq!(field(page, "csrf").as_deref(), Some("a>b&\"N&unknown;"));
        assert_eq!(field(page, "next").as_deref(), Some("x2"));
        assert_eq!(field(page, "empty").as_deref(), Some(""));
        assert_eq!(field(page, "missing"), None);
        assert_eq!(field("<input name=\"csrf", "csrf"), None);
    }

    #[test]
    fn a_match_gives_its_first_group() {
        let take = |regex: &str, body: &'static [u8]| {
            let source = TakeSource::Regex(Regex::new(regex).unwrap());
            source.value_in(body).map(Cow::into_owned)
        };
        assert_eq!(take(r"t=(\w+)", b"at=ab1;"), Some(b"ab1".to_vec()));
        assert_eq!(take(r"\d+", b"a12b"), Some(b"12".to_vec()));
        assert_eq!(take(r"t=(\w+)", b"none"), None);
    }

    proptest! {
        #[test]
        fn no_body_is_too_strange(body: Vec<u8>, tail in "[<>a-z=\"'&;# /]{0,40}") {
            let body = [&body[..], b"<input ", tail.as_bytes()].concat();
            drop(form_field(&body, "a").map(Cow::into_owned));
            drop(JsonPointer::parse("/a/0").unwrap().value_in(&body));
        }

        #[test]
        fn every_pointer_agrees_with_another_reader(
            keys in proptest::collection::vec("[a-c]{1,2}", 1..4),
            value in "[a-z]{0,5}",
        ) {
            let mut document = serde_json::Value::String(value);
            for key in keys.iter().rev() {
                document = serde_json::json!({ key.as_str(): document, "other": [1, 2] });
            }
            let pointer = format!("/{}", keys.join("/"));
            let expected = document.pointer(&pointer).and_then(|v| v.as_str().map(str::to_owned));
            prop_assert_eq!(json(&pointer, &document.to_string()), expected);
        }
    }
}
