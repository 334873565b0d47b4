//! JSON as a stream of tokens that the caller pulls. RFC 8259. Builds no tree and allocates
//! nothing; what is passed over is checked as what is read.

use std::str::Chars;

/// Deepest nesting that is read. Real events have six levels.
pub const DEPTH_MAX: u32 = 128;

/// Why a text is not JSON, or too deep; where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Bytes that are not UTF-8.
    #[error("bytes that are not UTF-8")]
    Utf8,
    /// Something else than the grammar allows.
    #[error("no JSON from byte {at}")]
    Syntax {
        /// Offset of the first byte that cannot be there.
        at: u32,
    },
    /// More than [`DEPTH_MAX`] levels.
    #[error("JSON nested more than {DEPTH_MAX} levels deep")]
    Depth,
}

/// A string as it stands in JSON, with its escapes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text<'a> {
    raw: &'a str,
    is_escaped: bool,
}

impl<'a> Text<'a> {
    /// Text that has no escapes.
    pub const fn plain(raw: &'a str) -> Self {
        Self { raw, is_escaped: false }
    }

    /// No character.
    pub const fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// Unicode scalar values; a pair of surrogates is one.
    pub fn characters(self) -> u64 {
        let count = if self.is_escaped { self.chars().count() } else { self.raw.chars().count() };
        count as u64
    }

    /// Without the escapes. Half a pair of surrogates, which JSON's grammar allows, is U+FFFD.
    pub fn chars(self) -> impl Iterator<Item = char> + 'a {
        Unescaped(self.raw.chars())
    }

    /// As it stands; equal to the text where it has no escapes.
    pub const fn raw(self) -> &'a str {
        self.raw
    }
}

/// The characters of a string whose escapes have been checked.
struct Unescaped<'a>(Chars<'a>);

impl Iterator for Unescaped<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self.0.next()? {
            '\\' => {}
            plain => return Some(plain),
        }
        Some(match self.0.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => self.unit(),
            same => same,
        })
    }
}

impl Unescaped<'_> {
    /// A character of one or two `\uXXXX`.
    fn unit(&mut self) -> char {
        let first = self.hex();
        if (0xd800..0xdc00).contains(&first) {
            let mut ahead = Unescaped(self.0.clone());
            if (ahead.0.next(), ahead.0.next()) == (Some('\\'), Some('u')) {
                let second = ahead.hex();
                if (0xdc00..0xe000).contains(&second) {
                    self.0 = ahead.0;
                    let pair = 0x1_0000 + ((first - 0xd800) << 10 | (second - 0xdc00));
                    return char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER);
                }
            }
        }
        char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    fn hex(&mut self) -> u32 {
        let digits = self.0.by_ref().take(4).filter_map(|c| c.to_digit(16));
        digits.fold(0, |sum, digit| sum << 4 | digit)
    }
}

/// Reads one JSON text from its front.
#[derive(Debug)]
pub struct Json<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Json<'a> {
    /// At the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(bytes).map_err(|_| Malformed::Utf8)?;
        Ok(Self { text, at: 0 })
    }

    /// The first byte of the next token; zero, with which none begins, at the end.
    pub fn peek(&mut self) -> u8 {
        loop {
            match self.byte() {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return byte,
            }
        }
    }

    /// Nothing but white space is left.
    pub fn end(mut self) -> Result<(), Malformed> {
        self.peek();
        if self.at == self.text.len() { Ok(()) } else { Err(self.wrong()) }
    }

    /// The members of an object: calls `member` with each name, which must take the value. Passes
    /// over a value that is no object.
    pub fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Text<'a>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        if self.peek() != b'{' {
            return self.skip();
        }
        self.at += 1;
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            let name = self.name()?;
            member(self, name)?;
            if self.eat(b'}') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    /// The items of an array: calls `item` before each, which must take it. Passes over a value
    /// that is no array.
    pub fn array(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        if self.peek() != b'[' {
            return self.skip();
        }
        self.at += 1;
        if self.eat(b']') {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.eat(b']') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    /// A string; `None` for a value that is none.
    pub fn text(&mut self) -> Result<Option<Text<'a>>, Malformed> {
        match self.peek() {
            b'"' => self.string().map(Some),
            _ => self.skip().map(|()| None),
        }
    }

    /// A count; `None` for a value that is none.
    pub fn count(&mut self) -> Result<Option<u64>, Malformed> {
        Ok(self.raw(Self::skip)?.parse().ok())
    }

    /// The text of the value that `take` takes.
    pub fn raw(
        &mut self,
        take: impl FnOnce(&mut Self) -> Result<(), Malformed>,
    ) -> Result<&'a str, Malformed> {
        self.peek();
        let start = self.at;
        take(self)?;
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    /// Passes over a value, of any depth without recursion.
    pub fn skip(&mut self) -> Result<(), Malformed> {
        let mut open = Open::default();
        loop {
            match self.peek() {
                b'{' => {
                    self.at += 1;
                    if !self.eat(b'}') {
                        self.name()?;
                        open.push(b'}')?;
                        continue;
                    }
                }
                b'[' => {
                    self.at += 1;
                    if !self.eat(b']') {
                        open.push(b']')?;
                        continue;
                    }
                }
                b'"' => {
                    self.string()?;
                }
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => self.number()?,
            }
            if !self.leave(&mut open)? {
                return Ok(());
            }
        }
    }

    /// Behind a value: ends what ends here; says whether another value follows.
    fn leave(&mut self, open: &mut Open) -> Result<bool, Malformed> {
        while let Some(end) = open.last() {
            if !self.eat(end) {
                self.expect(b',')?;
                if end == b'}' {
                    self.name()?;
                }
                return Ok(true);
            }
            open.depth -= 1;
        }
        Ok(false)
    }

    /// The name of a member and the colon.
    fn name(&mut self) -> Result<Text<'a>, Malformed> {
        if self.peek() != b'"' {
            return Err(self.wrong());
        }
        let name = self.string()?;
        self.expect(b':')?;
        Ok(name)
    }

    /// From the opening quotation mark behind the closing one.
    fn string(&mut self) -> Result<Text<'a>, Malformed> {
        self.at += 1;
        let start = self.at;
        let mut is_escaped = false;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            self.at += plain_bytes(rest);
            match self.byte() {
                b'"' => {
                    let raw = self.text.get(start..self.at).unwrap_or_default();
                    self.at += 1;
                    return Ok(Text { raw, is_escaped });
                }
                b'\\' => {
                    is_escaped = true;
                    self.escape()?;
                }
                _ => return Err(self.wrong()),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Malformed> {
        self.at += 1;
        let kind = self.byte();
        self.at += 1;
        match kind {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => {
                for _ in 0..4 {
                    if !self.byte().is_ascii_hexdigit() {
                        return Err(self.wrong());
                    }
                    self.at += 1;
                }
                Ok(())
            }
            _ => {
                self.at -= 1;
                Err(self.wrong())
            }
        }
    }

    fn number(&mut self) -> Result<(), Malformed> {
        self.at += usize::from(self.byte() == b'-');
        match self.byte() {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.byte() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), b'e' | b'E') {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), b'+' | b'-'));
            self.digits()?;
        }
        Ok(())
    }

    /// One or more.
    fn digits(&mut self) -> Result<(), Malformed> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        match rest.iter().take_while(|byte| byte.is_ascii_digit()).count() {
            0 => Err(self.wrong()),
            n => {
                self.at += n;
                Ok(())
            }
        }
    }

    fn word(&mut self, word: &str) -> Result<(), Malformed> {
        match self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            true => {
                self.at += word.len();
                Ok(())
            }
            false => Err(self.wrong()),
        }
    }

    /// Zero at the end.
    fn byte(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or_default()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == byte;
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.eat(byte) { Ok(()) } else { Err(self.wrong()) }
    }

    fn wrong(&self) -> Malformed {
        Malformed::Syntax { at: u32::try_from(self.at).unwrap_or(u32::MAX) }
    }
}

/// How many bytes from the front of `rest` stand for themselves in a string: eight are looked at
/// at once.
fn plain_bytes(rest: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const TOPS: u64 = ONES << 7;
    let is = |word: u64, byte: u8| {
        let differs = word ^ (ONES * u64::from(byte));
        differs.wrapping_sub(ONES) & !differs
    };
    let (chunks, tail) = rest.as_chunks::<8>();
    for (n, word) in chunks.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        // The lowest bit that is set is right; those above may be the borrow of one below.
        let hits = (is(word, b'"') | is(word, b'\\') | control) & TOPS;
        if hits != 0 {
            return n * 8 + hits.trailing_zeros() as usize / 8;
        }
    }
    let plain = tail.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20));
    chunks.len() * 8 + plain.count()
}

/// The objects and arrays around a value: a bit each, set for an object.
#[derive(Default)]
struct Open {
    bits: u128,
    depth: u32,
}

impl Open {
    fn push(&mut self, end: u8) -> Result<(), Malformed> {
        if self.depth == DEPTH_MAX {
            return Err(Malformed::Depth);
        }
        let bit = 1 << self.depth;
        self.bits = if end == b'}' { self.bits | bit } else { self.bits & !bit };
        self.depth += 1;
        Ok(())
    }

    fn last(&self) -> Option<u8> {
        let top = self.depth.checked_sub(1)?;
        Some(if self.bits >> top & 1 == 1 { b'}' } else { b']' })
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
