//! A line of an access log, and the formats in which servers write it.

mod json;
mod pattern;
mod stamp;

use std::borrow::Cow;

use plimsoll_model::units::Nanos;

use pattern::Pattern;
pub use pattern::PatternError;

/// What a line of an access log reports of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogLine<'l> {
    /// When the server stamped it, since the Unix epoch.
    pub stamp: Nanos,
    /// What the stamp is.
    pub stamped: Stamped,
    /// From begin to end, where the format has it.
    pub duration: Option<Nanos>,
    /// Such as `GET`.
    pub method: Cow<'l, str>,
    /// Path and query as the client sent them.
    pub target: Cow<'l, str>,
    /// Of the reply.
    pub status: u16,
    /// Bytes of the body that were sent.
    pub bytes: Option<u64>,
    /// Who sent it: address, user or session cookie.
    pub client: Cow<'l, str>,
    /// `User-Agent`.
    pub agent: Cow<'l, str>,
}

/// What the stamp of a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamped {
    /// The request's begin or its end.
    pub instant: StampedInstant,
    /// Two instants closer than this may have the same stamp.
    pub resolution: Nanos,
}

/// Which instant of a request a server writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StampedInstant {
    /// When the request arrived.
    Begin,
    /// When the last byte of the reply was handed to the kernel.
    #[default]
    End,
}

/// Why a line is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum UnreadableLine {
    /// It ends before the format does.
    #[error("the line ends before its format does")]
    Half,
    /// Other text than the format has.
    #[error("the line has another format")]
    OtherFormat,
    /// A stamp that is no time.
    #[error("the stamp is no time")]
    Stamp,
    /// A stamp later than now.
    #[error("the stamp lies in the future")]
    Future,
    /// No request: a probe that sent none, or no HTTP.
    #[error("the line has no HTTP request")]
    NoRequest,
    /// Bytes that are no text.
    #[error("the line is not text")]
    NotText,
    /// Longer than any line of a log.
    #[error("the line is longer than 64 KiB")]
    TooLong,
}

/// A format of access logs.
#[derive(Clone, Debug)]
pub enum LogFormat {
    /// Tokens and texts between them: nginx's `log_format`, Apache's `LogFormat`.
    Pattern(Pattern),
    /// An object a line, with the keys of Caddy, Traefik or Envoy.
    Json,
}

/// `LogFormat "…" common` of Apache, which nginx can be told to write too.
const COMMON: &str = r#"%h %l %u %t "%r" %>s %b"#;
/// The default of nginx. <https://nginx.org/en/docs/http/ngx_http_log_module.html>
const NGINX_COMBINED: &str = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#;
/// `LogFormat "…" combined` of Apache. <https://httpd.apache.org/docs/2.4/logs.html>
const APACHE_COMBINED: &str = r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i""#;

impl LogFormat {
    /// Reads a format: a name (`combined`, `common`, `apache-combined`, `json`), nginx's
    /// `log_format` (has `$`), or Apache's `LogFormat` (has `%`).
    ///
    /// # Errors
    /// No such name; a pattern without stamp or request.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let pattern = match text {
            "json" => return Ok(Self::Json),
            "combined" | "nginx-combined" => NGINX_COMBINED,
            "apache-combined" => APACHE_COMBINED,
            "common" => COMMON,
            pattern => pattern,
        };
        Pattern::parse(pattern).map(Self::Pattern)
    }

    /// The format of a log whose first lines are these, and its name; `None` for none of those that
    /// can be recognised.
    pub fn recognise(lines: &[&[u8]]) -> Option<(Self, &'static str)> {
        // A body of no bytes is `-` for Apache, 0 for nginx.
        let has_dash = |line: &&&[u8]| memchr::memmem::find(line, b" - \"").is_some();
        let combined = match lines.iter().any(|line| has_dash(&line)) {
            true => "apache-combined",
            false => "combined",
        };
        let read = |format: &Self| lines.iter().filter(|line| format.read(line).is_ok()).count();
        let formats = ["json", combined, "common"].into_iter().filter_map(|name| {
            let format = Self::parse(name).ok()?;
            Some((read(&format), format, name))
        });
        // Of equal ones the first.
        let (lines, format, name) = formats.rev().max_by_key(|(lines, ..)| *lines)?;
        (lines > 0).then_some((format, name))
    }

    /// Reads a line without its line end.
    ///
    /// # Errors
    /// Why it is no line of this format.
    pub fn read<'l>(&self, line: &'l [u8]) -> Result<LogLine<'l>, UnreadableLine> {
        if line.contains(&0) {
            return Err(UnreadableLine::NotText);
        }
        let text = std::str::from_utf8(line).map_err(|_| UnreadableLine::NotText)?;
        let text = text.strip_suffix('\r').unwrap_or(text);
        let mut read = match self {
            Self::Pattern(pattern) => pattern.read(text)?,
            Self::Json => json::read(text)?,
        };
        if !read.target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            read.target = encoded(&read.target).into();
        }
        let is_method = |c: u8| c.is_ascii_uppercase() || c == b'-' || c == b'_';
        let is_request = !read.method.is_empty()
            && read.method.bytes().all(is_method)
            && read.target.starts_with('/')
            && read.target.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_request {
            return Err(UnreadableLine::NoRequest);
        }
        if !(100..=599).contains(&read.status) {
            Err(UnreadableLine::OtherFormat)
        } else {
            Ok(read)
        }
    }
}

/// Percent-encoded outside ASCII, as browsers send it, and where the server wrote `\xC3` for a byte.
/// Other bytes are no part of a request and stay. RFC 3987 §3.1
fn encoded(target: &str) -> String {
    let mut encoded = String::with_capacity(target.len() + 16);
    let mut rest = target;
    while let Some(c) = rest.chars().next() {
        let escape = rest.strip_prefix("\\x").and_then(|after| after.get(..2));
        match escape.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit())) {
            Some(digits) => {
                encoded.push('%');
                encoded.push_str(digits);
                rest = &rest[4..];
                continue;
            }
            None if c.is_ascii() && c != '\\' => encoded.push(c),
            None => {
                let mut bytes = [0; 4];
                let bytes = c.encode_utf8(&mut bytes).bytes();
                encoded.extend(bytes.map(|byte| format!("%{byte:02X}")));
            }
        }
        rest = &rest[c.len_utf8()..];
    }
    encoded
}

/// Of a stamp with this many digits after the point.
fn resolution_of(digits: usize) -> Nanos {
    Nanos(10_u64.pow(9 - digits.min(9) as u32))
}

#[cfg(test)]
mod tests;
