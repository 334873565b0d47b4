//! Header fields as a suite writes them: where their values come from, and which may be shown.

use serde_json::Value as Json;
use toml::Value;

use super::urls::is_json;
use super::wire::request::is_field;

/// Name of the facts that list the header fields that are sent.
pub const HEADER_FACT: &str = "header";

/// What a bundle has instead of a value that may be a secret.
pub const LEFT_OUT: &str = "(left out)";
/// Where a suite has header fields, and a list of URLs whose lines may have some.
const HEADERS: &str = "workload.headers";
const URLS: &str = "workload.urls";
/// Begins a value that is read from the environment.
const VARIABLE_PREFIX: &str = "env:";
/// Begins a value that is read from a file.
const FILE_PREFIX: char = '@';
/// May stand before these in an `Authorization` field: the scheme of tokens, as of API keys.
const BEARER: &str = "Bearer ";
/// Where suites whose messages travel in HTTP have the keys of its transport.
const TRANSPORT: &str = "workload.http.";

/// A header field of a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Its name, as written.
    pub name: &'a str,
    /// The prefix of a value that is read from elsewhere.
    pub scheme: &'static str,
    /// Where its value comes from.
    pub value: HeaderValue<'a>,
}

/// Where the value of a header field comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HeaderValue<'a> {
    /// The suite itself.
    Literal(&'a str),
    /// This environment variable (`env:NAME`).
    Variable(&'a str),
    /// This file (`@FILE`).
    File(&'a str),
    /// Nowhere any more: a bundle was written without it.
    LeftOut,
}

impl<'a> Header<'a> {
    /// Reads `Name: value`; `None` where that is no header field.
    pub fn read(field: &'a str) -> Option<Self> {
        let (name, value) = field.split_once(':').filter(|_| is_field(field))?;
        let value = value.trim();
        let token = value.strip_prefix(BEARER).map(str::trim_start);
        let token = token.filter(|token| {
            let is_elsewhere = token.starts_with(VARIABLE_PREFIX) || token.starts_with(FILE_PREFIX);
            is_elsewhere && name.to_ascii_lowercase().ends_with("authorization")
        });
        let scheme = if token.is_some() { BEARER } else { "" };
        let value = token.unwrap_or(value);
        let value = match value.strip_prefix(VARIABLE_PREFIX) {
            Some(variable) => HeaderValue::Variable(variable),
            None => match value.strip_prefix(FILE_PREFIX) {
                Some(file) => HeaderValue::File(file),
                None if value == LEFT_OUT => HeaderValue::LeftOut,
                None => HeaderValue::Literal(value),
            },
        };
        Some(Self { name, scheme, value })
    }

    /// The field with a literal value left out, unless that is known to contain no secret.
    pub fn shown(&self) -> String {
        let Self { name, scheme, value } = self;
        match value {
            HeaderValue::Literal(text) if is_public(name) => format!("{name}: {text}"),
            HeaderValue::Variable(variable) => {
                format!("{name}: {scheme}{VARIABLE_PREFIX}{variable}")
            }
            HeaderValue::File(file) => format!("{name}: {scheme}{FILE_PREFIX}{file}"),
            HeaderValue::Literal(_) | HeaderValue::LeftOut => format!("{name}: {LEFT_OUT}"),
        }
    }
}

/// A literal value may be a secret.
impl std::fmt::Debug for HeaderValue<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Literal(_) => f.write_str("Literal"),
            Self::Variable(name) => f.debug_tuple("Variable").field(name).finish(),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::LeftOut => f.write_str("LeftOut"),
        }
    }
}

/// The values of header fields of this name hold no secret.
pub fn is_public(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    name == "accept"
        || name.starts_with("accept-")
        || matches!(name.as_str(), "user-agent" | "content-type")
}

/// A value of `--set` as bundles keep it, where it may hold header fields; else `None`.
pub fn shown_setting(path: &str, value: &Value) -> Option<String> {
    let below = path.strip_prefix(TRANSPORT).map(|key| format!("workload.{key}"));
    let path = below.as_deref().unwrap_or(path);
    let field = |field: &Value| Some(Value::from(Header::read(field.as_str()?)?.shown()));
    let fields = value.as_array().filter(|_| path == HEADERS);
    if let Some(shown) = fields.and_then(|fields| fields.iter().map(field).collect()) {
        return Some(Value::Array(shown).to_string());
    }
    let may_hold_some = matches!(path, "workload" | "workload.http")
        || path.starts_with(HEADERS)
        || (path.starts_with(URLS) && value.to_string().contains("headers"));
    may_hold_some.then(|| LEFT_OUT.to_owned())
}

/// A line of a list of URLs with each of its header fields (`Name: value`) changed. Lines without
/// are left alone.
pub(crate) fn with_headers<E>(
    line: &str,
    change: &mut dyn FnMut(&str) -> Result<String, E>,
) -> Result<String, E> {
    let json = is_json(line).then(|| serde_json::from_str::<Json>(line).ok()).flatten();
    let Some(mut json) = json else { return Ok(line.to_owned()) };
    let Some(Json::Object(headers)) = json.get_mut("headers") else { return Ok(line.to_owned()) };
    for (name, value) in headers.iter_mut() {
        let Some(text) = value.as_str() else { continue };
        let field = change(&format!("{name}: {text}"))?;
        let changed = field.split_once(':').map_or("", |(_, value)| value.trim());
        *value = Json::from(changed);
    }
    Ok(json.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(field: &str) -> String {
        Header::read(field).unwrap().shown()
    }

    #[test]
    fn only_values_known_to_be_harmless_are_shown() {
        for kept in ["Accept: text/html", "accept-encoding: br", "User-Agent: me", "A: env:T"] {
            assert_eq!(shown(kept), kept);
        }
        assert_eq!(shown("Content-Type:text/plain"), "Content-Type: text/plain");
        assert_eq!(shown("X-Key: @/run/key"), "X-Key: @/run/key");
        for kept in ["Authorization: Bearer env:KEY", "authorization: Bearer @/run/key"] {
            assert_eq!(shown(kept), kept);
        }
        assert_eq!(shown("Authorization: Bearer abc"), "Authorization: (left out)");
        for secret in ["X-Key: abc", "X-Key:abc", "X-Key: Bearer env:T", "X-Key: (left out)"] {
            assert_eq!(shown(secret), "X-Key: (left out)");
        }
        assert_eq!(shown("Accepted: abc"), "Accepted: (left out)");
        assert_eq!(Header::read("no field"), None);
    }

    #[test]
    fn header_values_of_a_line_can_be_changed_and_nothing_else() {
        let mut star = |field: &str| Ok::<_, ()>(field.replace("s3cret", "*"));
        let line = "{\"url\": \"/s3cret\", \"headers\": {\"X\": \"s3cret\"}}";
        let changed = with_headers(line, &mut star).unwrap();
        assert!(changed.contains("\"X\":\"*\"") && changed.contains("/s3cret"), "{changed}");
        assert_eq!(with_headers("3 GET /s3cret", &mut star).unwrap(), "3 GET /s3cret");
    }
}
