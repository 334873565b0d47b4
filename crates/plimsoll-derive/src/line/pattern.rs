//! Formats of text: nginx's `log_format` and Apache's `LogFormat`, compiled to fields and the texts
//! between them.

use std::borrow::Cow;

use plimsoll_model::units::Nanos;

use super::stamp::{number, read_common, read_rfc3339, read_seconds};
use super::{LogLine, Stamped, StampedInstant, UnreadableLine};

/// A format of text.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Text before the first field.
    prefix: String,
    /// Each field with the text that follows it.
    fields: Vec<(Field, String)>,
    instant: StampedInstant,
}

/// A format that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Neither a name nor a pattern.
    #[error(
        "{0:?} is no format of a log; write combined, common, apache-combined or json, nginx's \
         log_format such as '$remote_addr [$time_local] \"$request\" $status', or Apache's LogFormat"
    )]
    NoFormat(String),
    /// Two fields without text between them.
    #[error(
        "the format has two fields without text between them; their values cannot be separated"
    )]
    Adjacent,
    /// Without what a load needs.
    #[error("the format has no {0}; a load cannot be made of such a log")]
    Lacks(&'static str),
}

/// What a field of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Client,
    /// A user, or a cookie of a session: stands for the client where it is not `-`.
    User,
    Agent,
    /// `10/Oct/2000:13:55:36 -0700`.
    Common,
    /// The same in brackets, as `%t` writes it.
    Bracketed,
    Rfc3339,
    /// Seconds with a fraction.
    Seconds,
    Millis,
    Micros,
    /// `GET /path HTTP/1.1`.
    Request,
    Method,
    Target,
    /// Appended to the path; begins with `?` for Apache.
    Query,
    Status,
    Bytes,
    DurationSeconds,
    DurationMillis,
    DurationMicros,
    /// Anything else.
    Skipped,
}

impl Field {
    const fn is_stamp(self) -> bool {
        use Field::{Bracketed, Common, Micros, Millis, Rfc3339, Seconds};
        matches!(self, Common | Bracketed | Rfc3339 | Seconds | Millis | Micros)
    }

    /// Of a variable of nginx. <https://nginx.org/en/docs/varindex.html>
    fn from_nginx(name: &str) -> Self {
        match name {
            "remote_addr" | "realip_remote_addr" => Self::Client,
            "remote_user" => Self::User,
            "http_user_agent" => Self::Agent,
            "time_local" => Self::Common,
            "time_iso8601" => Self::Rfc3339,
            "msec" => Self::Seconds,
            "request" => Self::Request,
            "request_method" => Self::Method,
            "request_uri" | "uri" | "document_uri" => Self::Target,
            "status" => Self::Status,
            "body_bytes_sent" | "bytes_sent" => Self::Bytes,
            "request_time" => Self::DurationSeconds,
            name if name.starts_with("cookie_") => Self::User,
            _ => Self::Skipped,
        }
    }

    /// Of a directive of Apache, and whether that is a stamp of the end.
    /// <https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#formats>
    fn from_apache(letter: char, argument: &str) -> (Self, StampedInstant) {
        let (instant, unit) = match argument.split_once(':') {
            Some(("end", unit)) => (StampedInstant::End, unit),
            Some(("begin", unit)) => (StampedInstant::Begin, unit),
            _ => (StampedInstant::Begin, argument),
        };
        let field = match (letter, argument) {
            ('h' | 'a', _) => Self::Client,
            ('u', _) | ('C', _) => Self::User,
            ('i', name) if name.eq_ignore_ascii_case("user-agent") => Self::Agent,
            ('t', _) => match unit {
                "" => Self::Bracketed,
                "sec" => Self::Seconds,
                "msec" => Self::Millis,
                "usec" => Self::Micros,
                _ => Self::Skipped,
            },
            ('r', _) => Self::Request,
            ('m', _) => Self::Method,
            ('U', _) => Self::Target,
            ('q', _) => Self::Query,
            ('s', _) => Self::Status,
            ('b' | 'B' | 'O', _) => Self::Bytes,
            ('D', _) | ('T', "us") => Self::DurationMicros,
            ('T', "ms") => Self::DurationMillis,
            ('T', _) => Self::DurationSeconds,
            _ => Self::Skipped,
        };
        (field, instant)
    }
}

impl Pattern {
    /// Reads a format.
    pub(super) fn parse(text: &str) -> Result<Self, PatternError> {
        let (prefix, fields, instant) = match (text.contains('$'), text.contains('%')) {
            (true, _) => fields_of_nginx(text),
            (false, true) => fields_of_apache(text),
            (false, false) => return Err(PatternError::NoFormat(text.to_owned())),
        };
        let has = |is: &dyn Fn(Field) -> bool| fields.iter().any(|(field, _)| is(*field));
        let has_request =
            has(&|field| field == Field::Request) || has(&|field| field == Field::Target);
        let needs = [
            (has(&Field::is_stamp), "stamp of time ($time_local, %t)"),
            (has_request, "request ($request, %r)"),
            (has(&|field| field == Field::Status), "status ($status, %>s)"),
        ];
        let is_adjacent =
            |pair: &[(Field, String)]| pair[0].1.is_empty() && pair[1].0 != Field::Target;
        if fields.windows(2).any(is_adjacent) {
            return Err(PatternError::Adjacent);
        }
        match needs.into_iter().find(|(has, _)| !has) {
            Some((_, what)) => Err(PatternError::Lacks(what)),
            None => Ok(Self { prefix, fields, instant }),
        }
    }

    /// Reads a line.
    pub(super) fn read<'l>(&self, line: &'l str) -> Result<LogLine<'l>, UnreadableLine> {
        use UnreadableLine::{Half, OtherFormat};
        let mut rest = line.strip_prefix(self.prefix.as_str()).ok_or(OtherFormat)?;
        let mut read = LogLine { method: "GET".into(), ..LogLine::default() };
        read.stamped.instant = self.instant;
        for (index, (field, separator)) in self.fields.iter().enumerate() {
            let length = match separator.as_str() {
                "" if index + 1 == self.fields.len() => rest.len(),
                // A scheme and a host before a path.
                "" => rest.find('/').ok_or(Half)?,
                separator => end_of_field(rest, separator).ok_or(Half)?,
            };
            let (value, after) = rest.split_at(length);
            rest = after.get(separator.len()..).ok_or(Half)?;
            read.insert(*field, value)?;
        }
        if rest.is_empty() { Ok(read) } else { Err(OtherFormat) }
    }
}

impl<'l> LogLine<'l> {
    fn insert(&mut self, field: Field, value: &'l str) -> Result<(), UnreadableLine> {
        use UnreadableLine::{NoRequest, OtherFormat, Stamp};
        let present = Some(value).filter(|value| !matches!(*value, "-" | ""));
        match field {
            Field::Client if self.client.is_empty() => self.client = value.into(),
            Field::User => {
                self.client = present.map_or(std::mem::take(&mut self.client), Cow::from)
            }
            Field::Agent => self.agent = value.into(),
            Field::Common => self.set_stamp(read_common(value).map(|stamp| (stamp, 0)))?,
            Field::Bracketed => {
                let inner = value.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
                self.set_stamp(inner.and_then(read_common).map(|stamp| (stamp, 0)))?;
            }
            Field::Rfc3339 => self.set_stamp(read_rfc3339(value))?,
            Field::Seconds => self.set_stamp(read_seconds(value))?,
            Field::Millis => self.set_stamp(scaled(value, 1_000_000).map(|stamp| (stamp, 3)))?,
            Field::Micros => self.set_stamp(scaled(value, 1_000).map(|stamp| (stamp, 6)))?,
            Field::Request => {
                let mut tokens = value.split(' ');
                self.method = tokens.next().unwrap_or_default().into();
                self.target = tokens.next().ok_or(NoRequest)?.into();
            }
            Field::Method => self.method = value.into(),
            Field::Target => self.target = value.into(),
            Field::Query => {
                if let Some(query) = present {
                    self.target = format!("{}{query}", self.target).into();
                }
            }
            Field::Status => {
                let status = number(value.as_bytes()).and_then(|status| u16::try_from(status).ok());
                self.status = status.ok_or(OtherFormat)?;
            }
            Field::Bytes => {
                let bytes = |value: &str| number(value.as_bytes()).ok_or(OtherFormat);
                self.bytes = Some(present.map_or(Ok(0), bytes)?);
            }
            Field::DurationSeconds => {
                self.duration = present.and_then(read_seconds).map(|(span, _)| span);
            }
            Field::DurationMillis => self.duration = present.and_then(|it| scaled(it, 1_000_000)),
            Field::DurationMicros => self.duration = present.and_then(|it| scaled(it, 1_000)),
            Field::Client | Field::Skipped => {}
        }
        if field.is_stamp() && self.stamp == Nanos::ZERO { Err(Stamp) } else { Ok(()) }
    }

    /// Of several stamps the finest counts.
    fn set_stamp(&mut self, stamp: Option<(Nanos, usize)>) -> Result<(), UnreadableLine> {
        let (stamp, digits) = stamp.ok_or(UnreadableLine::Stamp)?;
        let resolution = super::resolution_of(digits);
        if self.stamp == Nanos::ZERO || resolution < self.stamped.resolution {
            self.stamp = stamp;
            self.stamped = Stamped { resolution, ..self.stamped };
        }
        Ok(())
    }
}

/// A whole number of units, each this many nanoseconds.
fn scaled(value: &str, unit_ns: u64) -> Option<Nanos> {
    number(value.as_bytes())?.checked_mul(unit_ns).filter(|ns| *ns < 1 << 63).map(Nanos)
}

/// Where the field ends: before the text that follows it. A quotation mark that the server escaped
/// belongs to the field.
fn end_of_field(text: &str, separator: &str) -> Option<usize> {
    let (first, others) = separator.as_bytes().split_first()?;
    // Fields are short: a finder of the whole separator would take longer to make.
    let ends = memchr::memchr_iter(*first, text.as_bytes());
    let mut ends = ends.filter(|end| text.as_bytes()[end + 1..].starts_with(others));
    ends.find(|end| {
        let before = text.as_bytes()[..*end].iter().rev();
        *first != b'"' || before.take_while(|byte| **byte == b'\\').count() % 2 == 0
    })
}

type Fields = (String, Vec<(Field, String)>, StampedInstant);

/// Text between fields, without fields that follow each other directly: one that is skipped absorbs
/// what is behind it.
fn push(fields: &mut [(Field, String)], prefix: &mut String, text: &str) {
    match fields.last_mut() {
        Some((_, separator)) => separator.push_str(text),
        None => prefix.push_str(text),
    }
}

/// nginx stamps the end of a request.
fn fields_of_nginx(text: &str) -> Fields {
    let (mut prefix, mut fields) = (String::new(), Vec::new());
    let mut pieces = text.split('$');
    push(&mut fields, &mut prefix, pieces.next().unwrap_or_default());
    for piece in pieces {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, after) = match piece.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            Some(braced) => braced,
            None => piece.split_at(piece.find(|c| !is_name(c)).unwrap_or(piece.len())),
        };
        fields.push((Field::from_nginx(name), after.to_owned()));
    }
    (prefix, fields, StampedInstant::End)
}

/// Apache stamps the begin, unless a directive names the end.
fn fields_of_apache(text: &str) -> Fields {
    let (mut prefix, mut fields) = (String::new(), Vec::new());
    let mut instant = StampedInstant::Begin;
    let mut rest = text;
    while let Some((before, directive)) = rest.split_once('%') {
        push(&mut fields, &mut prefix, before);
        // Conditions on statuses and < or > before the letter.
        let directive =
            directive.trim_start_matches(|c: char| c.is_ascii_digit() || "!,<>".contains(c));
        let (argument, after) = match directive.strip_prefix('{').and_then(|it| it.split_once('}'))
        {
            Some(braced) => braced,
            None => ("", directive),
        };
        let mut letters = after.chars();
        match letters.next() {
            Some('%') => push(&mut fields, &mut prefix, "%"),
            Some(letter) => {
                let (field, stamped) = Field::from_apache(letter, argument);
                if field.is_stamp() {
                    instant = stamped;
                }
                // `%U%q` is the path and the query of one target.
                let is_query = field == Field::Query
                    && matches!(fields.last(), Some((Field::Target, text)) if text.is_empty());
                if !is_query {
                    fields.push((field, String::new()));
                }
            }
            None => {}
        }
        rest = letters.as_str();
    }
    push(&mut fields, &mut prefix, rest);
    (prefix, fields, instant)
}
