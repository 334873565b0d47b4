//! Values that a reply brought and a later request sent: the variables of a journey.

use plimsoll_protocol::percent_decoded;
use serde_json::Value;

use super::{RecordedReply, RecordedRequest, first_free, quoted, variable_name};

/// Shorter values may be the same by chance.
const VALUE_BYTES_MIN: usize = 8;
/// Shorter values do not look random.
const RANDOM_CHARS_MIN: usize = 16;

/// A variable, and the request whose reply brings it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Correlation {
    pub(super) name: String,
    /// Index of the request.
    pub(super) from: usize,
    /// As a journey writes it: `{ json = "/token" }`.
    pub(super) source: String,
}

/// A value that a request sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SentValue {
    /// Of the field, or a guess.
    pub(super) name: String,
    /// As it was sent.
    sent: String,
    /// Decoded.
    value: String,
    /// It is a value of a form or of a query.
    is_encoded: bool,
}

impl SentValue {
    /// The text with a variable in its place.
    pub(super) fn replaced(&self, text: &str, variable: &str) -> String {
        if !self.is_encoded {
            return text.replace(&self.sent, &format!("{{{{{variable}}}}}"));
        }
        // The whole value of its own field.
        let pair = |text: &str| format!("{}={text}", self.name);
        text.replacen(&pair(&self.sent), &pair(&format!("{{{{urlencode {variable}}}}}")), 1)
    }
}

/// Puts variables in the place of values that earlier replies brought, the nearest one first.
pub(super) fn correlate(
    requests: &mut [RecordedRequest],
    notes: &mut Vec<String>,
) -> Vec<Correlation> {
    let mut taken: Vec<Correlation> = Vec::new();
    for at in 0..requests.len() {
        let sent = sent_values(&requests[at]);
        for value in sent.iter().filter(|value| value.value.len() >= VALUE_BYTES_MIN) {
            let source = (0..at).rev().find_map(|from| {
                let reply = requests[from].reply.as_ref()?;
                Some((from, source_of(reply, &value.value)?))
            });
            let Some((from, source)) = source else {
                if looks_random(&value.value) && !value.value.contains("{{") {
                    notes.push(format!(
                        "{} {} sends a {:?} that no reply has: is it a secret, or made anew each time?",
                        requests[at].method, without_query(&requests[at].path), value.name
                    ));
                }
                continue;
            };
            let name = name_of(&taken, value, from, &source);
            if !taken.iter().any(|it| it.name == name && it.from == from) {
                notes.push(format!(
                    "guessed: {name} is taken from the reply to {} {}",
                    requests[from].method,
                    without_query(&requests[from].path)
                ));
                taken.push(Correlation { name: name.clone(), from, source });
            }
            replace(&mut requests[at], value, &name);
        }
    }
    taken
}

fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

/// The same value has one name, another one of its own.
fn name_of(taken: &[Correlation], value: &SentValue, from: usize, source: &str) -> String {
    let base = variable_name(&value.name);
    let fits = |name: &str| {
        taken.iter().all(|it| it.name != name || it.source == source || it.from < from)
    };
    first_free(&base, "", fits)
}

fn replace(request: &mut RecordedRequest, value: &SentValue, name: &str) {
    request.path = value.replaced(&request.path, name);
    request.body = request.body.as_ref().map(|body| value.replaced(body, name));
    for (field, text) in &mut request.headers {
        if !field.eq_ignore_ascii_case("cookie") && !value.is_encoded {
            *text = value.replaced(text, name);
        }
    }
}

/// Values of the query, of path segments, of header fields and of the body.
fn sent_values(request: &RecordedRequest) -> Vec<SentValue> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let mut values = form_values(query);
    let segments = path.split('/').filter(|segment| !segment.contains('.'));
    values.extend(segments.filter(|it| looks_random(it)).map(|it| plain("id", it)));
    for (name, value) in &request.headers {
        let lower = name.to_ascii_lowercase();
        let token = value.rsplit(' ').next().unwrap_or_default();
        if lower == "authorization" {
            values.push(plain("token", token));
        } else if lower.starts_with("x-") || lower.contains("token") || lower.contains("csrf") {
            values.push(plain(lower.trim_start_matches("x-"), value));
        }
    }
    values.extend(request.body.as_deref().map(body_values).unwrap_or_default());
    values.retain(|value| !value.value.contains("{{"));
    values
}

fn plain(name: &str, value: &str) -> SentValue {
    let (sent, value) = (value.to_owned(), value.to_owned());
    SentValue { name: name.to_owned(), sent, value, is_encoded: false }
}

/// Values of a form or of JSON.
pub(super) fn body_values(body: &str) -> Vec<SentValue> {
    match serde_json::from_str::<Value>(body) {
        Ok(json @ (Value::Object(_) | Value::Array(_))) => {
            let mut values = Vec::new();
            each_text(&json, &mut String::new(), &mut |pointer, text| {
                let name = pointer.rsplit('/').next().unwrap_or_default();
                values.push(plain(name, text));
            });
            values
        }
        _ => form_values(body),
    }
}

fn form_values(text: &str) -> Vec<SentValue> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, sent)| {
            let value = percent_decoded(&sent.replace('+', " "));
            let value = String::from_utf8_lossy(&value).into_owned();
            SentValue { name: name.to_owned(), sent: sent.to_owned(), value, is_encoded: true }
        })
        .collect()
}

/// Where a reply has a value, as a journey takes it from there.
fn source_of(reply: &RecordedReply, value: &str) -> Option<String> {
    if let Ok(json) = serde_json::from_str::<Value>(&reply.body) {
        let mut pointer = None;
        each_text(&json, &mut String::new(), &mut |path, text| {
            if text == value && pointer.is_none() {
                pointer = Some(path.to_owned());
            }
        });
        return Some(format!("{{ json = {} }}", quoted(&pointer?)));
    }
    let field = reply
        .headers
        .iter()
        .find(|(name, text)| text == value && !name.eq_ignore_ascii_case("set-cookie"));
    if let Some((name, _)) = field {
        return Some(format!("{{ header = {} }}", quoted(name)));
    }
    if let Some(cookie) = cookie_with(reply, value) {
        return Some(format!("{{ cookie = {} }}", quoted(cookie)));
    }
    form_field_with(&reply.body, value)
        .map(|name| format!("{{ field = {} }}", quoted(&name)))
        .or_else(|| {
            let regex = regex_around(&reply.body, value)?;
            Some(format!("{{ regex = {} }}", quoted(&regex)))
        })
}

fn cookie_with<'r>(reply: &'r RecordedReply, value: &str) -> Option<&'r str> {
    let set = reply.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    let mut pairs = set.filter_map(|(_, field)| field.split(';').next()?.split_once('='));
    pairs.find(|(_, its)| its.trim() == value).map(|(name, _)| name.trim())
}

/// The name of the form field that has this value.
fn form_field_with(body: &str, value: &str) -> Option<String> {
    let escaped = value.replace('&', "&amp;");
    let at = [value, &escaped].into_iter().find_map(|text| body.find(&format!("\"{text}\"")))?;
    let start = body[..at].rfind('<')?;
    let tag = &body[start..];
    let tag = &tag[..tag.find('>')?];
    let is_input = tag.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("<input"));
    let (_, after) = tag.split_once("name=").filter(|_| is_input)?;
    let name = after.trim_start_matches(['"', '\'']);
    let name = name.split(['"', '\'', ' ', '>']).next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Characters before a value that find it again.
const CONTEXT_CHARS: usize = 16;

/// A regular expression that finds the value by what stands before it.
fn regex_around(body: &str, value: &str) -> Option<String> {
    let at = body.find(value)?;
    let before: Vec<char> = body[..at].chars().rev().take(CONTEXT_CHARS).collect();
    let before: String = before.into_iter().rev().collect();
    let before = before.rsplit('\n').next().unwrap_or_default();
    let end = body[at + value.len()..].chars().next().unwrap_or('\n');
    let group = match end {
        '"' | '\'' | '<' | '&' | ';' | ',' | ')' => format!("([^{end}]+)"),
        _ => r"([\w\-.~+/=]+)".to_owned(),
    };
    (!before.trim().is_empty()).then(|| format!("{}{group}", regex::escape(before)))
}

/// Every text and number of a document, by its pointer.
fn each_text(json: &Value, path: &mut String, take: &mut dyn FnMut(&str, &str)) {
    let length = path.len();
    match json {
        Value::String(text) => take(path, text),
        Value::Number(number) => take(path, &number.to_string()),
        Value::Object(members) => {
            for (name, value) in members {
                path.push('/');
                path.push_str(&name.replace('~', "~0").replace('/', "~1"));
                each_text(value, path, take);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                path.push_str(&format!("/{at}"));
                each_text(value, path, take);
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn looks_random(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let is_token = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.~+/=".contains(c));
    text.len() >= RANDOM_CHARS_MIN && is_token && digits >= 3
}
