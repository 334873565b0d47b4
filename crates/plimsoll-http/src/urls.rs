//! Lists of URLs, from a file (`--urls`) or the suite. A line is `[weight] [method] URL`, where `#`
//! begins a comment, or a JSON object with `url` and optionally `method`, `weight`, `headers` and
//! `body`. A URL is a path, or absolute and on the target.

use std::collections::BTreeMap;

use plimsoll_model::target::{TargetUrl, shown_of_unreadable};
use serde::Deserialize;
use serde_json::Value;

use super::wire::request::{Method, RequestText, is_field};
use super::wire::template::{Template, TemplateError};

/// Longest list.
pub(crate) const URLS_MAX: usize = 100_000;
/// Largest weight.
const WEIGHT_MAX: u32 = 1_000_000;

/// One line of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UrlLine {
    /// Share among the others.
    pub weight: u32,
    /// The request.
    pub text: RequestText,
    /// Request target as written, for messages and names.
    pub shown: String,
}

/// A line of JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonLine {
    url: String,
    method: Option<String>,
    weight: Option<u64>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Text as it stands, or anything else as JSON.
    body: Option<Value>,
}

/// A mistake in a list of URLs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("URL list, line {line}: {problem}")]
pub struct UrlsError {
    /// From 1; zero for the list as a whole.
    pub line: usize,
    /// What is wrong, and the next move.
    pub problem: UrlProblem,
}

/// What can be wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlProblem {
    /// Not a list line.
    #[error("{0:?} is not \"[weight] [method] URL\"; write for example \"3 GET /index.html\"")]
    Shape(String),
    /// Not the JSON of a request. It may hold secrets and is not quoted.
    #[error(
        "column {0} is where this stops being a request in JSON; write for example \
         {{\"method\": \"POST\", \"url\": \"/items\", \"headers\": {{\"Accept\": \"text/html\"}}, \
         \"body\": {{\"id\": 1}}, \"weight\": 3}}"
    )]
    Json(usize),
    /// A name or value that no header field can have.
    #[error("header {0:?} has a name or a value that no header field can have")]
    Header(String),
    /// A malformed random part.
    #[error(transparent)]
    Random(#[from] TemplateError),
    /// The weight is zero, or too large.
    #[error("weight {0} is not a whole number from 1 to {WEIGHT_MAX}")]
    Weight(String),
    /// No method.
    #[error("method {0:?} is not one word such as GET, POST or PURGE")]
    Method(String),
    /// Neither a path nor a URL.
    #[error("{0:?} is neither a path like /index.html nor a URL; percent-encode spaces in it")]
    Url(String),
    /// Names and passwords in a URL would be stored with the list, and are not sent.
    #[error("{0} names a user, which is not sent; write a header instead")]
    User(Box<TargetUrl>),
    /// On another server.
    #[error("{0} is not on the target; load goes only to the target given")]
    Elsewhere(String),
    /// Nothing but comments.
    #[error("the list names no URL; write one a line")]
    Empty,
    /// More than [`URLS_MAX`].
    #[error("the list has more than {URLS_MAX} URLs; shorten it")]
    TooLong,
}

/// Reads a list for these targets; `default` is used for what a line lacks.
pub(crate) fn parse_list<'l>(
    lines: impl Iterator<Item = &'l str>,
    targets: &[&TargetUrl],
    default: &RequestText,
) -> Result<Vec<UrlLine>, UrlsError> {
    let mut list = Vec::new();
    for (index, line) in lines.enumerate() {
        let line_number = index + 1;
        let fail = |problem| UrlsError { line: line_number, problem };
        if list.len() == URLS_MAX {
            return Err(fail(UrlProblem::TooLong));
        }
        let parsed = match is_json(line) {
            true => parse_json(line, targets, default).map(Some),
            false => parse_line(line, targets, default),
        };
        list.extend(parsed.map_err(fail)?);
    }
    if list.is_empty() { Err(UrlsError { line: 0, problem: UrlProblem::Empty }) } else { Ok(list) }
}

/// A line in JSON, not in tokens.
pub(crate) fn is_json(line: &str) -> bool {
    line.trim_start().starts_with('{')
}

fn parse_line(
    line: &str,
    targets: &[&TargetUrl],
    default: &RequestText,
) -> Result<Option<UrlLine>, UrlProblem> {
    // A `#` within a URL is a fragment, which is not sent; so a comment needs no space before it.
    let content = line.split_once('#').map_or(line, |(before, _)| before);
    // Random parts may have spaces.
    let (tokens, url) = match content.find(['/', '{']) {
        Some(at) => {
            let start = content[..at].rfind(char::is_whitespace).map_or(0, |space| space + 1);
            (&content[..start], content[start..].trim())
        }
        None => content.trim().rsplit_once(char::is_whitespace).unwrap_or(("", content.trim())),
    };
    let tokens: Vec<&str> = tokens.split_whitespace().collect();
    let starts_with_weight = tokens
        .first()
        .is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
    let (weight, method) = match tokens[..] {
        [] if url.is_empty() => return Ok(None),
        [] => (1, default.method),
        [weight] if starts_with_weight => (read_weight(weight)?, default.method),
        [method] => (1, read_method(method)?),
        [weight, method] => (read_weight(weight)?, read_method(method)?),
        _ => return Err(UrlProblem::Shape(line.trim().to_owned())),
    };
    let shown = read_url(url, targets)?;
    let target = Template::parse(&shown)?;
    Ok(Some(UrlLine { weight, text: RequestText { method, target, ..default.clone() }, shown }))
}

fn parse_json(
    line: &str,
    targets: &[&TargetUrl],
    default: &RequestText,
) -> Result<UrlLine, UrlProblem> {
    let json: JsonLine =
        serde_json::from_str(line.trim()).map_err(|e| UrlProblem::Json(e.column()))?;
    let weight = json.weight.map_or(Ok(1), |weight| read_weight(&weight.to_string()))?;
    let mut headers: Vec<String> =
        json.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    if let Some((name, _)) = json.headers.iter().zip(&headers).find(|(_, f)| !is_field(f)) {
        return Err(UrlProblem::Header(name.0.clone()));
    }
    let body = match &json.body {
        None => default.body.clone(),
        Some(Value::String(text)) => Template::parse(text)?,
        Some(other) => {
            if !json.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")) {
                headers.push("Content-Type: application/json".to_owned());
            }
            Template::parse(&other.to_string())?
        }
    };
    let method = match &json.method {
        Some(method) => read_method(method)?,
        None if json.body.is_some() && default.method == Method::GET => Method::POST,
        None => default.method,
    };
    let shown = read_url(&json.url, targets)?;
    let target = Template::parse(&shown)?;
    let plain = RequestText::plain(method, "");
    Ok(UrlLine { weight, text: RequestText { target, headers, body, ..plain }, shown })
}

fn read_weight(text: &str) -> Result<u32, UrlProblem> {
    match text.parse() {
        Ok(weight @ 1..=WEIGHT_MAX) => Ok(weight),
        _ => Err(UrlProblem::Weight(text.to_owned())),
    }
}

fn read_method(text: &str) -> Result<Method, UrlProblem> {
    Method::parse(text).ok_or_else(|| UrlProblem::Method(text.to_owned()))
}

fn read_url(text: &str, targets: &[&TargetUrl]) -> Result<String, UrlProblem> {
    let unreadable = || UrlProblem::Url(text.to_owned());
    if text.starts_with('/') {
        return Some(encoded(text)).filter(|text| is_target_text(text)).ok_or_else(unreadable);
    }
    let url = TargetUrl::parse(text).map_err(|_| UrlProblem::Url(shown_of_unreadable(text)))?;
    if url.user.is_some() || url.password.is_some() {
        return Err(UrlProblem::User(Box::new(url)));
    }
    let endpoint = |u: &TargetUrl| {
        (u.scheme.clone(), u.host.to_ascii_lowercase(), u.port.or_else(|| default_port(&u.scheme)))
    };
    if !targets.iter().any(|target| endpoint(target) == endpoint(&url)) {
        return Err(UrlProblem::Elsewhere(url.to_string()));
    }
    request_target(&url).ok_or_else(unreadable)
}

fn default_port(scheme: &str) -> Option<u16> {
    super::PROTOCOL.schemes.iter().find(|(name, _)| *name == scheme).map(|(_, port)| *port)
}

/// Path and query of a URL as they are sent; `None` if they contain what no URL may.
pub(crate) fn request_target(url: &TargetUrl) -> Option<String> {
    let target = match &url.query {
        Some(query) => format!("{}?{query}", url.path),
        None => url.path.clone(),
    };
    Some(encoded(&target)).filter(|target| is_target_text(target))
}

/// Percent-encoded outside ASCII, as browsers send it. RFC 3987 §3.1
pub(crate) fn encoded(text: &str) -> String {
    let encode = |c: char| match c.is_ascii() {
        true => String::from(c),
        false => c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")).collect(),
    };
    text.chars().map(encode).collect()
}

/// Plain ASCII, but that random parts may have spaces.
fn is_target_text(text: &str) -> bool {
    let mut outside = text.split("{{").enumerate().map(|(number, piece)| match number {
        0 => piece,
        _ => piece.split_once("}}").map_or("", |(_, after)| after),
    });
    text.starts_with('/') && outside.all(|piece| piece.bytes().all(|b| b.is_ascii_graphic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<UrlLine>, UrlsError> {
        let target = TargetUrl::parse("http://Server:80/").unwrap();
        parse_list(text.lines(), &[&target], &RequestText::plain(Method::GET, "/"))
    }

    #[test]
    fn weights_methods_comments_and_both_forms_of_url_are_read() {
        let list =
            read("# all\n/a?b=c\n\n3 /d # three\nHEAD http://server/e#f\n2 GET /g\n").unwrap();
        let line = |weight, method, target: &str| UrlLine {
            weight,
            text: RequestText::plain(method, target),
            shown: target.to_owned(),
        };
        assert_eq!(
            list,
            [
                line(1, Method::GET, "/a?b=c"),
                line(3, Method::GET, "/d"),
                line(1, Method::HEAD, "/e"),
                line(2, Method::GET, "/g"),
            ]
        );
    }

    #[test]
    fn mistakes_have_a_line_number_and_a_next_move() {
        let refusal = |text: &str| read(text).unwrap_err().to_string();
        assert!(refusal("/a\n0 /b").starts_with("URL list, line 2: weight 0 is not"));
        assert!(refusal("-1 /b").contains("weight -1"));
        assert!(refusal("P\u{f6}ST /b").contains("not one word"));
        assert!(refusal("index.html").contains("neither a path"));
        assert!(refusal("/a b").contains("percent-encode"));
        assert!(refusal("http://other/").contains("not on the target"));
        assert!(refusal("https://server/").contains("not on the target"));
        assert!(refusal("1 2 3 4").contains("3 GET /index.html"));
        assert!(refusal("# nothing").contains("names no URL"));
    }

    #[test]
    fn what_is_not_ascii_is_sent_percent_encoded() {
        let list = read(
            "/\u{e4}\n2 PUT /\u{65e5}?q=\u{e9}&r={{int 1 9}}\n\
                         {\"url\": \"http://server/%41\u{1f600}\"}",
        );
        let shown: Vec<String> = list.unwrap().into_iter().map(|line| line.shown).collect();
        let sent = ["/%C3%A4", "/%E6%97%A5?q=%C3%A9&r={{int 1 9}}", "/%41%F0%9F%98%80"];
        assert_eq!(shown, sent);
        let url = TargetUrl::parse("http://h/\u{e4}?\u{fc}=1").unwrap();
        assert_eq!(request_target(&url).as_deref(), Some("/%C3%A4?%C3%BC=1"));
    }

    #[test]
    fn requests_in_json_have_fields_and_bodies() {
        let list = read(
            "{\"url\": \"/a\", \"body\": {\"id\": \"{{uuid}}\"}, \"weight\": 3}\n\
             {\"url\": \"/b\", \"method\": \"put\", \"headers\": {\"X\": \"1\"}, \"body\": \"t\"}\n\
             {\"url\": \"/c/{{int 1 9}}\"}\nPURGE /d?x={{int 1 9}}\n",
        )
        .unwrap();
        let [a, b, c, d] = &list[..] else { panic!("{list:?}") };
        assert_eq!((a.weight, a.text.method), (3, Method::POST));
        assert_eq!(a.text.headers, ["Content-Type: application/json"]);
        assert!(!a.text.body.is_fixed());
        assert_eq!(
            (b.text.method.as_str(), &b.text.headers[..]),
            ("PUT", &["X: 1".to_owned()][..])
        );
        assert_eq!(b.text.body, Template::fixed(b"t"));
        assert_eq!((c.text.method, c.shown.as_str()), (Method::GET, "/c/{{int 1 9}}"));
        assert_eq!((d.text.method.as_str(), d.shown.as_str()), ("PURGE", "/d?x={{int 1 9}}"));
        let refusal = |text: &str| read(text).unwrap_err().to_string();
        assert!(refusal("{\"url\": \"/a\", \"hedaers\": {\"X\": \"s3cret\"}}").contains("column"));
        assert!(!refusal("{\"url\": \"/a\", \"headers\": [\"s3cret\"]}").contains("s3cret"));
        assert!(
            refusal("{\"url\": \"/a\", \"headers\": {\"X\": \"a\\nb\"}}").contains("header \"X\"")
        );
        assert!(refusal("/a/{{uid}}").contains("no random part"));
    }
}
