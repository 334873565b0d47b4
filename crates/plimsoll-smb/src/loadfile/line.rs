//! One line of a load file: `[seconds] VERB arguments STATUS`.

use std::borrow::Cow;
use std::fmt;

use plimsoll_model::suite::nearest;

use super::grammar::{ARGUMENTS_MAX, Argument, Status, Verb};
use super::problem::Problem;
use super::{TRANSFER_BYTES_MAX, levels, names};

/// Dispositions are numbered from 0 to this.
const DISPOSITION_MAX: u64 = 5;

/// A line, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'t> {
    /// The operation.
    pub verb: Verb,
    /// As many as the verb has, the rest zero.
    pub values: [Value<'t>; ARGUMENTS_MAX],
    /// What the server should answer.
    pub status: Status,
    /// It began with a number of seconds.
    pub timestamp: bool,
}

/// One argument's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'t> {
    /// Without leading separators, with backslashes.
    Text(Cow<'t, str>),
    /// A number, within the bounds of its argument.
    Number(u64),
}

impl Value<'_> {
    /// The number; a name has none.
    pub const fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Text(_) => 0,
        }
    }

    /// The name; a number has none.
    pub fn text(&self) -> &str {
        match self {
            Self::Number(_) => "",
            Self::Text(text) => text,
        }
    }
}

/// Reads a line; `None` if it is empty or a comment.
pub(crate) fn parse(text: &str) -> Result<Option<Line<'_>>, Problem> {
    let mut tokens = Tokens { rest: text };
    let Some(mut word) = tokens.next()? else { return Ok(None) };
    let timestamp = word.starts_with(|c: char| c.is_ascii_digit());
    if timestamp {
        let seconds: Option<f64> = word.parse().ok();
        if !seconds.is_some_and(f64::is_finite) {
            return Err(Problem::Timestamp(word.to_owned()));
        }
        match tokens.next()? {
            Some(next) => word = next,
            None => return Ok(None),
        }
    }
    let verb = Verb::named(word).ok_or_else(|| unknown_verb(word))?;
    let missing = |missing| Problem::Missing { missing, usage: verb.usage() };
    let mut values = [const { Value::Number(0) }; ARGUMENTS_MAX];
    for (value, argument) in values.iter_mut().zip(verb.arguments()) {
        let word = tokens.next()?.ok_or_else(|| missing(argument.name()))?;
        *value = read(verb, *argument, word)?;
    }
    let status = match tokens.next()? {
        Some(word) => Status::parse(word).ok_or_else(|| unknown_status(word))?,
        None if verb == Verb::Sleep => Status::OK,
        None => return Err(missing("status")),
    };
    if let Some(word) = tokens.next()? {
        return Err(Problem::TooMuch { word: word.to_owned(), usage: verb.usage() });
    }
    let line = Line { verb, values, status, timestamp };
    check_removal(&line)?;
    Ok(Some(line))
}

/// A tree that belongs to all clients must not be removed by one of them.
fn check_removal(line: &Line<'_>) -> Result<(), Problem> {
    let name = line.values[0].text();
    if line.verb != Verb::Deltree || names::is_own(name) {
        return Ok(());
    }
    Err(Problem::Name {
        name: name.to_owned(),
        why: "is the tree of all clients, not of one; Deltree a name with client1 in it",
    })
}

fn read<'t>(verb: Verb, argument: Argument, word: &'t str) -> Result<Value<'t>, Problem> {
    let max = match argument {
        Argument::Path(_) | Argument::Mask => {
            return names::read(verb, argument, word).map(Value::Text);
        }
        Argument::Handle | Argument::Word(_) => u64::from(u32::MAX),
        Argument::Long(_) => u64::MAX,
        Argument::Transfer(_) => TRANSFER_BYTES_MAX,
        Argument::Disposition => DISPOSITION_MAX,
        Argument::Level => u64::from(u16::MAX),
    };
    let number = number(word).filter(|number| *number <= max).ok_or_else(|| Problem::Number {
        what: argument.name(),
        word: word.to_owned(),
        max,
        usage: verb.usage(),
    })?;
    if argument == Argument::Level && !levels::is_supported(verb, number) {
        let supported = levels::supported(verb);
        return Err(Problem::Level { verb: verb.name(), level: number, supported });
    }
    Ok(Value::Number(number))
}

/// Decimal, or hexadecimal after `0x`. No signs.
fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
    u64::from_str_radix(digits, radix).ok().filter(|_| plain)
}

fn unknown_verb(word: &str) -> Problem {
    let operation = word.to_owned();
    if word.starts_with("SMB") {
        return Problem::Dbench1(operation);
    }
    let names = || Verb::ALL.iter().map(|verb| verb.name());
    let same = names().find(|name| name.eq_ignore_ascii_case(word));
    let help = match same.or_else(|| nearest(word, names())) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("known operations: {}", names().collect::<Vec<_>>().join(", ")),
    };
    Problem::Verb { operation, help }
}

fn unknown_status(word: &str) -> Problem {
    let help = match nearest(word, Status::names()) {
        Some(near) => format!("did you mean {near}? Others are written as a number, 0xC0000034"),
        None => "expected: NT_STATUS_…, 0x… (an NTSTATUS), SUCCESS, ERROR or *".to_owned(),
    };
    Problem::Status { word: word.to_owned(), help }
}

/// The tokens of a line; a quoted one may contain spaces. `#` at the start of a token begins a
/// comment.
struct Tokens<'t> {
    rest: &'t str,
}

impl<'t> Tokens<'t> {
    fn next(&mut self) -> Result<Option<&'t str>, Problem> {
        let text = self.rest.trim_ascii_start();
        if text.is_empty() || text.starts_with('#') {
            self.rest = "";
            return Ok(None);
        }
        let Some(quoted) = text.strip_prefix('"') else {
            // Half a million lines are read before a run: bytes, not characters.
            let end = text.bytes().position(|b| b.is_ascii_whitespace()).unwrap_or(text.len());
            self.rest = &text[end..];
            return Ok(Some(&text[..end]));
        };
        let (word, rest) =
            quoted.split_once('"').ok_or_else(|| Problem::OpenQuote(quoted.to_owned()))?;
        if rest.bytes().next().is_some_and(|b| !b.is_ascii_whitespace()) {
            return Err(Problem::AfterQuote(rest.to_owned()));
        }
        self.rest = rest;
        Ok(Some(word))
    }
}

/// As a load file writes it, without the timestamp.
impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb.name())?;
        for (argument, value) in self.verb.arguments().iter().zip(&self.values) {
            match (argument, value) {
                (_, Value::Text(text)) => write!(f, " \"\\{text}\"")?,
                (Argument::Word("options" | "attributes") | Argument::Disposition, number) => {
                    write!(f, " 0x{:x}", number.number())?;
                }
                (_, number) => write!(f, " {}", number.number())?,
            }
        }
        write!(f, " {}", self.status)
    }
}
