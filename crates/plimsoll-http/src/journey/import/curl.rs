//! Command lines of curl, in the quoting of a shell or of Windows' command prompt. Nothing is run.

use super::{ImportError, Record, RecordedRequest};
use crate::wire::template::Encoding;

/// Options with a value that change nothing that a journey sends.
const WITH_VALUE: [&str; 12] = [
    "-o",
    "--output",
    "-m",
    "--max-time",
    "--connect-timeout",
    "-x",
    "--proxy",
    "--cacert",
    "--cert",
    "--key",
    "--resolve",
    "-w",
];

/// Reads every command.
pub(super) fn read(text: &str) -> Result<Record, ImportError> {
    let mut record = Record::default();
    let mut commands = 0;
    for command in commands_of(text) {
        if command.first().is_none_or(|word| word != "curl" && word != "curl.exe") {
            continue;
        }
        commands += 1;
        match request_of(&command[1..], &mut record.notes) {
            Some(mut request) => {
                request.page = commands.to_string();
                record.requests.push(request);
            }
            None => record.notes.push(format!("left out: curl command {commands} names no URL")),
        }
    }
    if commands == 0 { Err(ImportError::NoCurl) } else { Ok(record) }
}

fn request_of(arguments: &[String], notes: &mut Vec<String>) -> Option<RecordedRequest> {
    let mut request = RecordedRequest::default();
    let (mut url, mut data, mut is_get, mut method) = (None, Vec::new(), false, None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let (option, joined) = match argument.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value.to_owned())),
            _ => (argument.as_str(), None),
        };
        let mut value = || joined.clone().or_else(|| rest.next().cloned()).unwrap_or_default();
        match option {
            "-X" | "--request" => method = Some(value()),
            "-H" | "--header" => {
                if let Some((name, value)) = value().split_once(':') {
                    request.headers.push((name.trim().to_owned(), value.trim().to_owned()));
                }
            }
            "-A" | "--user-agent" => request.headers.push(("User-Agent".to_owned(), value())),
            "-e" | "--referer" => request.headers.push(("Referer".to_owned(), value())),
            "-d" | "--data" | "--data-raw" | "--data-ascii" | "--data-binary" => data.push(value()),
            "--data-urlencode" => data.push(url_encoded(&value())),
            "--json" => {
                data.push(value());
                request.headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            }
            "-G" | "--get" => is_get = true,
            "-I" | "--head" => method = Some("HEAD".to_owned()),
            "--compressed" => {
                request.headers.push(("Accept-Encoding".to_owned(), "gzip".to_owned()))
            }
            "--url" => url = Some(value()),
            "-b" | "--cookie" => {
                value();
                notes.push("left out: cookies; users get theirs from the server".to_owned());
            }
            "-u" | "--user" => {
                value();
                notes.push(
                    "left out: user and password of -u; write headers.Authorization".to_owned(),
                );
            }
            "-F" | "--form" => {
                value();
                notes.push("left out: a form with files (-F); write its body yourself".to_owned());
            }
            other if WITH_VALUE.contains(&other) => drop(value()),
            other if other.starts_with('-') && other.len() > 1 => {}
            plain => url = url.or_else(|| Some(plain.to_owned())),
        }
    }
    let (origin, path) = split_url(&url?)?;
    (request.origin, request.path) = (origin, path);
    let body = data.join("&");
    match (data.is_empty(), is_get) {
        (true, _) => {}
        (false, true) => {
            let separator = if request.path.contains('?') { '&' } else { '?' };
            request.path = format!("{}{separator}{body}", request.path);
        }
        (false, false) => request.body = Some(body),
    }
    let default = if request.body.is_some() { "POST" } else { "GET" };
    request.method = method.unwrap_or_else(|| default.to_owned());
    Some(request)
}

/// Scheme, host and port, then path and query; `None` for what is no http URL.
pub(super) fn split_url(url: &str) -> Option<(String, String)> {
    let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let url = url.split('#').next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    if !matches!(scheme.as_str(), "http" | "https") {
        return None;
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    (!host.is_empty()).then(|| (format!("{scheme}://{host}"), path))
}

fn url_encoded(text: &str) -> String {
    let (name, value) = text.split_once('=').map_or(("", text), |(name, value)| (name, value));
    let mut encoded = value.as_bytes().to_vec();
    Encoding::Component.apply(0, &mut encoded);
    let encoded = String::from_utf8_lossy(&encoded);
    if name.is_empty() { encoded.into_owned() } else { format!("{name}={encoded}") }
}

/// The words of each command. `^` quotes where there is one before a quotation mark or a line's end,
/// as in Windows' command prompt.
fn commands_of(text: &str) -> Vec<Vec<String>> {
    let escape = if text.contains("^\"") || text.contains("^\n") { '^' } else { '\\' };
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut chars = text.replace("\r\n", "\n").chars().collect::<Vec<_>>().into_iter().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' if escape == '\\' => {
                let quoted = chars.by_ref().take_while(|c| *c != '\'');
                word.get_or_insert_default().extend(quoted);
            }
            '$' if escape == '\\' && chars.peek() == Some(&'\'') => {
                chars.next();
                word.get_or_insert_default().push_str(&ansi_c(&mut chars));
            }
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    match c == '\\' || c == escape {
                        true => word.extend(chars.next()),
                        false => word.push(c),
                    }
                }
            }
            c if c == escape => match chars.next() {
                Some('\n') | None => {}
                Some('"') if escape == '^' => {
                    let word = word.get_or_insert_default();
                    word.push_str(&until_caret_quote(&mut chars));
                }
                Some(c) => word.get_or_insert_default().push(c),
            },
            ' ' | '\t' | '\n' | ';' | '&' => {
                let last = commands.len() - 1;
                commands[last].extend(word.take());
                if !matches!(c, ' ' | '\t') && !commands[last].is_empty() {
                    commands.push(Vec::new());
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    let last = commands.len() - 1;
    commands[last].extend(word);
    commands
}

/// What stands between `^"` and the next one; `^` before any other character stands for it.
fn until_caret_quote(chars: &mut impl Iterator<Item = char>) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next() {
        match c {
            '^' => match chars.next() {
                Some('"') | None => break,
                // A quotation mark within: ^\^"
                Some('\\') => text.extend(chars.by_ref().find(|c| *c != '^')),
                Some(c) => text.push(c),
            },
            c => text.push(c),
        }
    }
    text
}

/// The rest of `$'…'`.
fn ansi_c(chars: &mut impl Iterator<Item = char>) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next().filter(|c| *c != '\'') {
        if c != '\\' {
            text.push(c);
            continue;
        }
        let hex = |chars: &mut dyn Iterator<Item = char>, digits: usize| {
            let digits: String = chars.take(digits).collect();
            u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).unwrap_or('\u{fffd}')
        };
        match chars.next() {
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('u') => text.push(hex(chars, 4)),
            Some('U') => text.push(hex(chars, 8)),
            Some('x') => text.push(hex(chars, 2)),
            Some(other) => text.push(other),
            None => break,
        }
    }
    text
}
