//! Text with random parts, which follow from a key: the same op has the same parts in every run. In
//! journeys, text with variables of a user too.

use std::fmt;

use plimsoll_engine::rng;

/// Begins a random part.
const OPENING: &str = "{{";
/// Ends it.
const CLOSING: &str = "}}";

/// Text with random parts: `{{uuid}}`, `{{int 1 1000}}`, which a URL without spaces writes
/// `{{int,1,1000}}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// As it stands.
    Text(Vec<u8>),
    /// A random UUID, version 4. RFC 9562 §5.4
    Uuid,
    /// A whole number, both bounds included, all equally likely.
    Int {
        /// Smallest.
        from: u64,
        /// Largest.
        to: u64,
    },
    /// Bytes of the body, for a request's header.
    BodyBytes,
    /// The value that a variable has then.
    Variable {
        /// Its number.
        number: u16,
        /// How its value is written.
        encoding: Encoding,
    },
    /// A header field with its line end, unless its value is empty.
    Field {
        /// Its name.
        name: String,
        /// Its value.
        value: Template,
    },
}

/// How the value of a variable is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As it is.
    Plain,
    /// Percent-encoded but for letters, digits and `-._~`, for the fields of a form. RFC 3986 §2.3
    Component,
    /// Percent-encoded where no request target may have a byte.
    Target,
    /// Without bytes that no header field may have.
    Field,
}

/// The values of variables, for one request.
pub trait Variables: fmt::Debug {
    /// Appends the value of a variable.
    fn write(&self, number: u16, into: &mut Vec<u8>);
}

/// There are no variables.
#[derive(Clone, Copy, Debug)]
pub struct NoVariables;

impl Variables for NoVariables {
    fn write(&self, _: u16, _: &mut Vec<u8>) {}
}

impl Encoding {
    /// Encodes the bytes of `into` from `start` on.
    pub(crate) fn apply(self, start: usize, into: &mut Vec<u8>) {
        let is_kept = |byte: &u8| match self {
            Self::Plain => true,
            Self::Component => byte.is_ascii_alphanumeric() || b"-._~".contains(byte),
            Self::Target => byte.is_ascii_graphic(),
            Self::Field => *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f),
        };
        if into[start..].iter().all(is_kept) {
            return;
        }
        for byte in into.split_off(start) {
            match (is_kept(&byte), self) {
                (true, _) => into.push(byte),
                (false, Self::Field) => into.push(b' '),
                (false, _) => into.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            }
        }
    }
}

/// A random part that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{{{{{0}}}}} is no random part; write {{{{uuid}}}} or {{{{int 1 1000}}}}, or put a text that has \
     braces of its own into a file"
)]
pub struct TemplateError(pub String);

impl Template {
    /// Text without random parts, whatever it holds.
    pub fn fixed(text: &[u8]) -> Self {
        match text {
            [] => Self::default(),
            _ => Self(vec![Piece::Text(text.to_vec())]),
        }
    }

    /// Reads a text with random parts.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Self::parse_with(text, &mut |_| None)
    }

    /// The same; `resolve` gives the part of a text that is no random one.
    pub fn parse_with(
        text: &str,
        resolve: &mut dyn FnMut(&str) -> Option<Piece>,
    ) -> Result<Self, TemplateError> {
        let mut template = Self::default();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(OPENING) {
            template.append(&Self::fixed(before.as_bytes()));
            let (part, after) =
                after.split_once(CLOSING).map_or((after, None), |(a, b)| (a, Some(b)));
            let read = read_part(part).or_else(|| resolve(part.trim())).zip(after);
            let (piece, after) = read.ok_or_else(|| TemplateError(part.to_owned()))?;
            template.push(piece);
            rest = after;
        }
        template.append(&Self::fixed(rest.as_bytes()));
        Ok(template)
    }

    /// Nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its parts, in order.
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// It is the same for every key.
    pub fn is_fixed(&self) -> bool {
        self.0.iter().all(|piece| matches!(piece, Piece::Text(_) | Piece::BodyBytes))
    }

    /// Adds a piece.
    pub fn push(&mut self, piece: Piece) {
        match (self.0.last_mut(), piece) {
            (Some(Piece::Text(text)), Piece::Text(more)) => text.extend_from_slice(&more),
            (_, piece) => self.0.push(piece),
        }
    }

    /// Adds all of another one.
    pub fn append(&mut self, other: &Self) {
        other.0.iter().cloned().for_each(|piece| self.push(piece));
    }

    /// Appends the text of `key`, without allocation where `into` has room.
    pub fn write(&self, key: u64, body_bytes: usize, into: &mut Vec<u8>) {
        self.write_with(key, body_bytes, &NoVariables, into);
    }

    /// The same of a text with variables.
    pub fn write_with(
        &self,
        key: u64,
        body_bytes: usize,
        variables: &dyn Variables,
        into: &mut Vec<u8>,
    ) {
        for (piece, number) in self.0.iter().zip(0u64..) {
            let draw = |part: u64| rng::key(&[key, number, part]);
            match piece {
                Piece::Text(text) => into.extend_from_slice(text),
                Piece::Uuid => write_uuid(draw(0), draw(1), into),
                Piece::Int { from, to } => {
                    let drawn = match to.wrapping_sub(*from).checked_add(1) {
                        Some(count) => rng::below(draw(0), count),
                        None => draw(0),
                    };
                    write_decimal(from.wrapping_add(drawn), into);
                }
                Piece::BodyBytes => write_decimal(body_bytes as u64, into),
                Piece::Variable { number, encoding } => {
                    let start = into.len();
                    variables.write(*number, into);
                    encoding.apply(start, into);
                }
                Piece::Field { name, value } => {
                    let line = into.len();
                    into.extend_from_slice(name.as_bytes());
                    into.extend_from_slice(b": ");
                    let start = into.len();
                    value.write_with(draw(0), body_bytes, variables, into);
                    match into.len() == start {
                        true => into.truncate(line),
                        false => into.extend_from_slice(b"\r\n"),
                    }
                }
            }
        }
    }
}

fn read_part(part: &str) -> Option<Piece> {
    let is_between = |c: char| c.is_whitespace() || c == ',';
    let tokens: Vec<&str> = part.split(is_between).filter(|word| !word.is_empty()).collect();
    match tokens[..] {
        ["uuid"] => Some(Piece::Uuid),
        ["int", from, to] => {
            let (from, to) = (from.parse().ok()?, to.parse().ok()?);
            (from <= to).then_some(Piece::Int { from, to })
        }
        _ => None,
    }
}

fn write_uuid(high: u64, low: u64, into: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let high = (high & !0xf000) | 0x4000;
    let low = (low >> 2) | (1 << 63);
    let bits = (u128::from(high) << 64) | u128::from(low);
    for digit in 0..32 {
        if matches!(digit, 8 | 12 | 16 | 20) {
            into.push(b'-');
        }
        into.push(DIGITS[(bits >> (124 - 4 * digit)) as usize & 0xf]);
    }
}

/// Appends a number in decimal digits, without allocation.
pub fn write_decimal(mut number: u64, into: &mut Vec<u8>) {
    let start = into.len();
    loop {
        into.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    into[start..].reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(template: &str, key: u64) -> String {
        let mut bytes = Vec::new();
        Template::parse(template).unwrap().write(key, 0, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_key_always_gives_the_same_text_and_another_key_another() {
        let template = "/a/{{int 1 1000000}}?id={{uuid}}&other={{ uuid }}";
        assert_eq!(text(template, 5), text(template, 5));
        assert_ne!(text(template, 5), text(template, 6));
        let rendered = text("{{uuid}} {{uuid}}", 9);
        let (one, other) = rendered.split_once(' ').unwrap();
        assert_ne!(one, other);
        assert_eq!((one.len(), &one[14..15]), (36, "4"));
        assert!(matches!(&one[19..20], "8" | "9" | "a" | "b"), "{one}");
    }

    #[test]
    fn numbers_are_within_their_bounds_and_reach_them() {
        let drawn: Vec<u64> =
            (0..200).map(|key| text("{{int 3 6}}", key).parse().unwrap()).collect();
        assert!((3..=6).all(|n| drawn.contains(&n)) && drawn.iter().all(|n| (3..=6).contains(n)));
        assert_eq!(
            (text("{{int 0 0}}", 1), text("{{int,7,7}}", 1)),
            ("0".to_owned(), "7".to_owned())
        );
        assert!(text("{{int 0 18446744073709551615}}", 1).parse::<u64>().is_ok());
    }

    #[derive(Debug)]
    struct Value(&'static [u8]);

    impl Variables for Value {
        fn write(&self, _: u16, into: &mut Vec<u8>) {
            into.extend_from_slice(self.0);
        }
    }

    #[test]
    fn a_variable_is_written_as_its_part_of_a_request_allows() {
        let encoded = |encoding, value| {
            let mut template = Template::fixed(b"<");
            template.push(Piece::Variable { number: 0, encoding });
            let mut bytes = Vec::new();
            template.write_with(0, 0, &Value(value), &mut bytes);
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(encoded(Encoding::Plain, b"a b\r\n"), "<a b\r\n");
        assert_eq!(encoded(Encoding::Component, b"a/b=\xc3\xa4~"), "<a%2Fb%3D%C3%A4~");
        assert_eq!(encoded(Encoding::Target, b"/a?b=c d\r\nX: y"), "</a?b=c%20d%0D%0AX:%20y");
        assert_eq!(encoded(Encoding::Field, b"a\r\nX: y"), "<a  X: y");
    }

    #[test]
    fn a_field_without_a_value_is_left_out() {
        let value = |value: &[u8]| Piece::Field { name: "X".into(), value: Template::fixed(value) };
        let mut template = Template::default();
        template.push(value(b""));
        template.push(value(b"1"));
        let mut bytes = Vec::new();
        template.write(0, 0, &mut bytes);
        assert_eq!(bytes, b"X: 1\r\n");
    }

    #[test]
    fn what_is_no_random_part_is_refused() {
        for bad in ["{{}}", "{{int}}", "{{int 2 1}}", "{{uid}}", "a {{uuid", "{{int 1 x}}"] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
        assert!(Template::parse("{\"a\": {\"b\": 1}}").unwrap().is_fixed());
    }
}
