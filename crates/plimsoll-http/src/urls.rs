//! Lists of URLs, from a file (`--urls`) or the suite: one `[weight] [GET|HEAD] URL` a line,
//! `#` begins a comment. A URL is a path, or absolute and on the target.

use plimsoll_model::target::{TargetUrl, shown_of_unreadable};

use super::wire::request::Method;

/// Longest list.
pub(crate) const URLS_MAX: usize = 100_000;
/// Largest weight.
const WEIGHT_MAX: u32 = 1_000_000;

/// One line of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UrlLine {
    /// Share among the others.
    pub weight: u32,
    /// Method.
    pub method: Method,
    /// Request target: path and query.
    pub target: String,
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
    #[error("{0:?} is not \"[weight] [GET|HEAD] URL\"; write for example \"3 GET /index.html\"")]
    Shape(String),
    /// The weight is zero, or too large.
    #[error("weight {0} is not a whole number from 1 to {WEIGHT_MAX}")]
    Weight(String),
    /// Another method.
    #[error("method {0:?} is not GET or HEAD; other methods change the server")]
    Method(String),
    /// Neither a path nor a URL.
    #[error("{0:?} is neither a path like /index.html nor a URL in plain ASCII; percent-encode it")]
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

/// Reads a list for these targets; `default_method` is used where a line names none.
pub(crate) fn parse_list<'l>(
    lines: impl Iterator<Item = &'l str>,
    targets: &[&TargetUrl],
    default_method: Method,
) -> Result<Vec<UrlLine>, UrlsError> {
    let mut list = Vec::new();
    for (index, line) in lines.enumerate() {
        let line_number = index + 1;
        let fail = |problem| UrlsError { line: line_number, problem };
        if list.len() == URLS_MAX {
            return Err(fail(UrlProblem::TooLong));
        }
        if let Some(parsed) = parse_line(line, targets, default_method).map_err(fail)? {
            list.push(parsed);
        }
    }
    match list.is_empty() {
        true => Err(UrlsError { line: 0, problem: UrlProblem::Empty }),
        false => Ok(list),
    }
}

fn parse_line(
    line: &str,
    targets: &[&TargetUrl],
    default_method: Method,
) -> Result<Option<UrlLine>, UrlProblem> {
    // A `#` within a URL is a fragment, which is not sent; so a comment needs no space before it.
    let content = line.split_once('#').map_or(line, |(before, _)| before);
    let words: Vec<&str> = content.split_whitespace().collect();
    let (weight, method, url) = match words[..] {
        [] => return Ok(None),
        [url] => (1, default_method, url),
        [first, url] if first.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            (read_weight(first)?, default_method, url)
        }
        [method, url] => (1, read_method(method)?, url),
        [weight, method, url] => (read_weight(weight)?, read_method(method)?, url),
        _ => return Err(UrlProblem::Shape(line.trim().to_owned())),
    };
    Ok(Some(UrlLine { weight, method, target: read_url(url, targets)? }))
}

fn read_weight(text: &str) -> Result<u32, UrlProblem> {
    match text.parse() {
        Ok(weight @ 1..=WEIGHT_MAX) => Ok(weight),
        _ => Err(UrlProblem::Weight(text.to_owned())),
    }
}

fn read_method(text: &str) -> Result<Method, UrlProblem> {
    match text {
        "GET" => Ok(Method::Get),
        "HEAD" => Ok(Method::Head),
        _ => Err(UrlProblem::Method(text.to_owned())),
    }
}

fn read_url(text: &str, targets: &[&TargetUrl]) -> Result<String, UrlProblem> {
    let unreadable = || UrlProblem::Url(text.to_owned());
    if text.starts_with('/') {
        return is_target(text).then(|| text.to_owned()).ok_or_else(unreadable);
    }
    let url = TargetUrl::parse(text).map_err(|_| UrlProblem::Url(shown_of_unreadable(text)))?;
    if url.user.is_some() || url.password.is_some() {
        return Err(UrlProblem::User(Box::new(url)));
    }
    let place = |u: &TargetUrl| {
        (u.scheme.clone(), u.host.to_ascii_lowercase(), u.port.or_else(|| default_port(&u.scheme)))
    };
    if !targets.iter().any(|target| place(target) == place(&url)) {
        return Err(UrlProblem::Elsewhere(url.to_string()));
    }
    request_target(&url).ok_or_else(unreadable)
}

fn default_port(scheme: &str) -> Option<u16> {
    super::PROTOCOL.schemes.iter().find(|(name, _)| *name == scheme).map(|(_, port)| *port)
}

/// Path and query of a URL; `None` when they are not plain ASCII.
pub(crate) fn request_target(url: &TargetUrl) -> Option<String> {
    let target = match &url.query {
        Some(query) => format!("{}?{query}", url.path),
        None => url.path.clone(),
    };
    is_target(&target).then_some(target)
}

fn is_target(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|b| b.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<UrlLine>, UrlsError> {
        let target = TargetUrl::parse("http://Server:80/").unwrap();
        parse_list(text.lines(), &[&target], Method::Get)
    }

    #[test]
    fn weights_methods_comments_and_both_forms_of_url_are_read() {
        let list =
            read("# all\n/a?b=c\n\n3 /d # three\nHEAD http://server/e#f\n2 GET /g\n").unwrap();
        let line = |weight, method, target: &str| UrlLine { weight, method, target: target.into() };
        assert_eq!(
            list,
            [
                line(1, Method::Get, "/a?b=c"),
                line(3, Method::Get, "/d"),
                line(1, Method::Head, "/e"),
                line(2, Method::Get, "/g"),
            ]
        );
    }

    #[test]
    fn mistakes_have_a_line_number_and_a_next_move() {
        let refusal = |text: &str| read(text).unwrap_err().to_string();
        assert!(refusal("/a\n0 /b").starts_with("URL list, line 2: weight 0 is not"));
        assert!(refusal("-1 /b").contains("weight -1"));
        assert!(refusal("POST /b").contains("not GET or HEAD"));
        assert!(refusal("index.html").contains("neither a path"));
        assert!(refusal("/ä").contains("percent-encode"));
        assert!(refusal("http://other/").contains("not on the target"));
        assert!(refusal("https://server/").contains("not on the target"));
        assert!(refusal("1 2 3 4").contains("3 GET /index.html"));
        assert!(refusal("# nothing").contains("names no URL"));
    }
}
