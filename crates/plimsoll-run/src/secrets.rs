//! What must not be stored or shown: passwords, and values of header fields. `hidden` handles
//! command lines of servers that others started.

pub(crate) mod hidden;

pub(crate) use plimsoll_http::headers::HEADER_FACT;
use plimsoll_http::headers::{Header, HeaderValue, LEFT_OUT, is_public, shown_setting};
use plimsoll_http::parameters::HttpWorkload;
use plimsoll_http::wire::request::is_field;
use plimsoll_llm::parameters::LlmWorkload;
use plimsoll_model::suite::{Override, Suite, Workload};
use plimsoll_model::target::TargetSpec;
use plimsoll_monitor::{Community, MonitorUrl};

use crate::failure::Failure;
use crate::text_file;

/// Flags whose value is a header field.
const HEADER_FLAGS: [&str; 2] = ["-H", "--header"];
/// Flags whose value is or contains a secret.
const SECRET_FLAGS: [&str; 5] = ["-a", "--basic-auth", "-b", "--cookie", KEY_FLAG];
/// The one whose value may name the source of the secret instead.
const KEY_FLAG: &str = "--api-key";
/// Short flags without a value; other flags may follow in the same argument.
const SHORT_SWITCHES: char = 'k';
/// Fields whose value is a secret wherever they are named; lower case, with the colon.
const SECRET_FIELDS: [&str; 2] = ["authorization:", "cookie:"];

/// Header fields of a workload with the values that are sent. They are in no bundle and no message.
#[derive(Clone, Default)]
pub struct SecretHeaders(Option<Workload>);

impl SecretHeaders {
    /// The suite with the secret values, for those who make the requests.
    pub(crate) fn put_into(&self, suite: &Suite) -> Suite {
        let workload = self.0.as_ref().unwrap_or(&suite.workload).clone();
        Suite { workload, ..suite.clone() }
    }
}

impl std::fmt::Debug for SecretHeaders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretHeaders")
    }
}

/// Takes the values of header fields out of a suite, and reads those that it only refers to.
pub fn separate(mut suite: Suite) -> Result<(Suite, SecretHeaders), Failure> {
    let Some(sending) = with_headers(&suite.workload, &mut sent)? else {
        return Ok((suite, SecretHeaders::default()));
    };
    let shown = |field: &str| read(field).map(|header| header.shown());
    if let Some(kept) = with_headers(&suite.workload, &mut { shown })? {
        suite.workload = kept;
    }
    Ok((suite, SecretHeaders(Some(sending))))
}

/// The workload with its header fields changed, if it has any.
fn with_headers(
    workload: &Workload,
    change: &mut dyn FnMut(&str) -> Result<String, Failure>,
) -> Result<Option<Workload>, Failure> {
    if let Some(workload) = workload.get::<HttpWorkload>() {
        return Ok(Some(workload.with_headers(change)?.into()));
    }
    let Some(workload) = workload.get::<LlmWorkload>() else { return Ok(None) };
    let http = workload.http.with_headers(change)?;
    Ok(Some(LlmWorkload { http, ..workload.clone() }.into()))
}

fn read(field: &str) -> Result<Header<'_>, Failure> {
    Header::read(field).ok_or_else(|| Failure::wrong("workload.headers holds no field"))
}

fn sent(field: &str) -> Result<String, Failure> {
    let header = read(field)?;
    Ok(format!("{}: {}", header.name, value_of(&header)?))
}

fn value_of(header: &Header<'_>) -> Result<String, Failure> {
    let name = header.name;
    let (value, source) = match header.value {
        HeaderValue::Literal(text) => return Ok(text.to_owned()),
        HeaderValue::LeftOut => {
            return Err(Failure::wrong(format!(
                "header {name}: its value is a secret and was left out of the bundle; in the \
                 suite.toml there write \"{name}: env:VARIABLE\" or \"{name}: @FILE\" in its place, \
                 which is read at every start, or begin a new run"
            )));
        }
        HeaderValue::Variable(variable) => {
            let value = std::env::var(variable).map_err(|e| {
                let what = match e {
                    std::env::VarError::NotPresent => "is not set",
                    std::env::VarError::NotUnicode(_) => "is not text",
                };
                Failure::wrong(format!(
                    "header {name}: the environment variable {variable} {what}; set it to the \
                     header's value, or write \"{name}: @FILE\""
                ))
            })?;
            (value, format!("the environment variable {variable}"))
        }
        HeaderValue::File(file) => {
            let value = text_file::read(file.as_ref()).map_err(|e| {
                Failure::wrong(format!(
                    "header {name}: cannot read its value from the file {file:?}: {e}; name a file \
                     that holds it, or write \"{name}: env:VARIABLE\""
                ))
            })?;
            (value, format!("the file {file:?}"))
        }
    };
    let value = value.trim();
    match !value.is_empty() && is_field(&format!("{name}: {value}")) {
        true => Ok(format!("{}{value}", header.scheme)),
        false => Err(Failure::wrong(format!(
            "header {name}: what {source} holds cannot be its value; it must be one line of \
             printable text"
        ))),
    }
}

/// The header fields of a suite that went through [`separate`].
pub(crate) fn kept_headers(suite: &Suite) -> &[String] {
    let of_llm = || suite.workload.get::<LlmWorkload>().map(|workload| &workload.http);
    suite.workload.get::<HttpWorkload>().or_else(of_llm).map_or(&[], |workload| &workload.headers)
}

/// Holds the community of an SNMP agent, if its URL does not.
const COMMUNITY_VARIABLE: &str = "PLIMSOLL_SNMP_COMMUNITY";
const SNMP: &str = "snmp://";

/// The community of an SNMP agent, if the source is one and a community was given.
pub(crate) fn community(url: &MonitorUrl) -> Result<Option<String>, Failure> {
    let MonitorUrl::Snmp { community, .. } = url else { return Ok(None) };
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    match community {
        Community::Given(community) => Ok(Some(community.clone())),
        Community::NotGiven => Ok(variable(COMMUNITY_VARIABLE)),
        Community::Variable(name) => variable(name).map(Some).ok_or_else(|| {
            Failure::wrong(format!(
                "--monitor {url}: the environment variable {name} holds no text; set it to the \
                 agent's community"
            ))
        }),
        Community::LeftOut => variable(COMMUNITY_VARIABLE).map(Some).ok_or_else(|| {
            Failure::wrong(format!(
                "--monitor {url}: its community is a secret and was left out of the bundle; set \
                 the environment variable {COMMUNITY_VARIABLE} to it"
            ))
        }),
    }
}

/// The command line as typed, without possible secrets.
pub fn command_line() -> Vec<String> {
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once("plimsoll".to_owned()).chain(kept_arguments(arguments)).collect()
}

/// Whether a secret was left out of these arguments.
pub fn holds_left_out(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| argument.contains(LEFT_OUT))
}

/// The arguments of the command line as bundles keep them.
fn kept_arguments(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut before = String::new();
    for argument in arguments {
        kept.push(match kept_value(&before, &argument) {
            Some(value) => value,
            None => kept_flag(&argument).unwrap_or_else(|| kept_argument(&argument)),
        });
        before = argument;
    }
    kept
}

/// What is kept of the value of the flag that `before` ends with, if that may be a secret.
fn kept_value(before: &str, value: &str) -> Option<String> {
    let flag = match short_flag(before) {
        Some((flag, "")) => flag,
        _ => before,
    };
    if HEADER_FLAGS.contains(&flag) {
        return Some(Header::read(value).map_or(LEFT_OUT.to_owned(), |header| header.shown()));
    }
    let is_elsewhere = flag == KEY_FLAG && (value.starts_with("env:") || value.starts_with('@'));
    (SECRET_FLAGS.contains(&flag) && !is_elsewhere).then(|| LEFT_OUT.to_owned())
}

/// The same for a flag and its value in one argument: `--header=…`, `-H…`, `-kH…`.
fn kept_flag(argument: &str) -> Option<String> {
    let (flag, value) = match argument.split_once('=') {
        Some((flag, value)) if argument.starts_with("--") => (flag, value),
        _ => short_flag(argument).filter(|(_, value)| !value.is_empty())?,
    };
    let kept = kept_value(flag, value)?;
    Some(format!("{}{kept}", &argument[..argument.len() - value.len()]))
}

/// The first flag with a value among short ones written together, and what follows it.
fn short_flag(argument: &str) -> Option<(&'static str, &str)> {
    let letters = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    let letters = letters.trim_start_matches(SHORT_SWITCHES);
    let all = HEADER_FLAGS.iter().chain(&SECRET_FLAGS);
    all.filter_map(|flag| Some((*flag, flag.strip_prefix('-')?)))
        .find_map(|(flag, letter)| Some((flag, letters.strip_prefix(letter)?)))
}

/// An argument of the command line as bundles keep it.
fn kept_argument(text: &str) -> String {
    if let Some((flag, agent)) = text.split_once(SNMP) {
        let kept = MonitorUrl::parse(&format!("{SNMP}{agent}"));
        return format!(
            "{flag}{}",
            kept.map_or(format!("{SNMP}{LEFT_OUT}"), |url| url.to_string())
        );
    }
    let (flag, setting) = match text.strip_prefix("--set=") {
        Some(setting) => ("--set=", setting),
        None => ("", text),
    };
    if let Some(Override { path, value }) = Override::parse(setting)
        && let Some(kept) = shown_setting(&path, &value)
    {
        return format!("{flag}{path}={kept}");
    }
    match TargetSpec::parse(text) {
        Ok(TargetSpec::Url(url)) if text.contains(['@', '#']) => url.to_string(),
        Ok(_) => text.to_owned(),
        Err(_) if text.contains("://") && text.contains('@') => without_user_info(text),
        Err(_) => without_secrets(text),
    }
}

/// `text` without the part between `://` and the last `@`.
fn without_user_info(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(start), Some(end)) if start < end => {
            without_secrets(&format!("{}{LEFT_OUT}{}", &text[..start + 3], &text[end..]))
        }
        _ => without_secrets(text),
    }
}

/// `text`, with everything from the value of a secret header field on left out. The name may end
/// a longer one (`Proxy-Authorization`, `Set-Cookie`).
fn without_secrets(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let ends = SECRET_FIELDS.iter().filter_map(|field| Some(lower.find(field)? + field.len()));
    ends.min().map_or_else(|| text.to_owned(), |end| format!("{} {LEFT_OUT}", &text[..end]))
}

/// A suite file as a message may quote it: values of header fields in quotes are starred out, with
/// all byte offsets unchanged.
pub fn starred(text: &str) -> String {
    let line = |line: &str| {
        let mut kept = String::new();
        let mut rest = line;
        while let Some(at) = rest.find(['"', '\'']) {
            let (before, quoted) = rest.split_at(at + 1);
            let quote = before.chars().next_back().unwrap_or('"');
            let end = quoted.find(quote).unwrap_or(quoted.len());
            let (inside, after) = quoted.split_at(end);
            kept.push_str(before);
            kept.push_str(&starred_field(inside));
            let (closing, after) = after.split_at(after.len().min(1));
            kept.push_str(closing);
            rest = after;
        }
        kept.push_str(rest);
        kept
    };
    text.split_inclusive('\n').map(line).collect()
}

fn starred_field(text: &str) -> String {
    let token = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    match text.split_once(':') {
        Some((name, value)) if token(name) && !is_public(name) && !value.starts_with("//") => {
            let stars: String = value
                .bytes()
                .map(|b| if matches!(b, b'\n' | b'\r') { b as char } else { '*' })
                .collect();
            format!("{name}:{stars}")
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_argument_holds_no_secret() {
        for (typed, kept) in [
            ("smb://ann:pw@h/s", "smb://ann@h/s"),
            (
                "workload.headers=[\"X-Key: abc\", \"Accept: a\", \"K: env:T\"]",
                "workload.headers=[\"X-Key: (left out)\", \"Accept: a\", \"K: env:T\"]",
            ),
            (
                "--set=workload.headers=['X-Key: abc']",
                "--set=workload.headers=[\"X-Key: (left out)\"]",
            ),
            ("workload.headers = abc", "workload.headers=(left out)"),
            ("workload.urls=['http://u:pw@h/x']", "workload.urls=['http://(left out)@h/x']"),
            ("X=\"Proxy-Authorization: Basic Zm9v\"", "X=\"Proxy-Authorization: (left out)"),
            ("COOKIE:a=b", "COOKIE: (left out)"),
            ("snmp://s3cret@sw1", "snmp://(left out)@sw1"),
            ("--monitor=snmp://s3:cret@sw1:1161", "--monitor=snmp://(left out)@sw1:1161"),
            ("--monitor=snmp://env:NAME@sw1", "--monitor=snmp://env:NAME@sw1"),
            ("snmp://s3 cret@sw1", "snmp://(left out)"),
            ("ssh://ann@db:22", "ssh://ann@db:22/"),
            ("otlp=http://ann:pw@h", "otlp=http://(left out)@h"),
            ("--export=otlp=http://ann:pw@h", "--export=otlp=http://(left out)@h"),
            ("otlp=http://h:4318/v1/metrics", "otlp=http://h:4318/v1/metrics"),
            ("--points", "--points"),
            ("builtin:", "builtin:"),
            ("disclosure.tester=Ada", "disclosure.tester=Ada"),
        ] {
            assert_eq!(kept_argument(typed), kept);
        }
    }

    #[test]
    fn a_kept_flag_holds_no_secret() {
        let typed = [
            "run",
            "-H",
            "X-Key: abc",
            "-HAccept: a",
            "--header=X: abc",
            "-a",
            "ann:pw",
            "-aann:pw",
            "--basic-auth=ann:pw",
            "-b",
            "s=1",
            "--cookie",
            "s=1",
            "-H",
            "K: env:T",
            "-d",
            "a=1",
            "--api-key",
            "env:KEY",
            "--api-key=sk-1",
        ];
        let kept = [
            "run",
            "-H",
            "X-Key: (left out)",
            "-HAccept: a",
            "--header=X: (left out)",
            "-a",
            "(left out)",
            "-a(left out)",
            "--basic-auth=(left out)",
            "-b",
            "(left out)",
            "--cookie",
            "(left out)",
            "-H",
            "K: env:T",
            "-d",
            "a=1",
            "--api-key",
            "env:KEY",
            "--api-key=(left out)",
        ];
        assert_eq!(kept_arguments(typed.iter().map(|text| (*text).to_owned())), kept);
    }

    #[test]
    fn short_flags_written_together_hide_no_secret() {
        let kept = |typed: &[&str]| kept_arguments(typed.iter().map(|text| (*text).to_owned()));
        assert_eq!(kept(&["-kH", "X: abc"]), ["-kH", "X: (left out)"]);
        assert_eq!(
            kept(&["-kHX: abc", "-ka", "ann:pw"]),
            ["-kHX: (left out)", "-ka", "(left out)"]
        );
        assert_eq!(kept(&["-H=X: abc", "-a=ann:pw"]), ["-H(left out)", "-a(left out)"]);
        assert_eq!(kept(&["-d", "a=1", "--help", "-k", "x"]), ["-d", "a=1", "--help", "-k", "x"]);
    }

    #[test]
    fn a_quoted_suite_file_shows_no_header_value() {
        let text = "headers = [\"X-Key: abc\", 'Accept: a', \"Y:b\"]\nurls = [\"http://h/\"]\n";
        let starred = starred(text);
        assert_eq!(
            starred,
            "headers = [\"X-Key:****\", 'Accept: a', \"Y:*\"]\nurls = [\"http://h/\"]\n"
        );
        assert_eq!(starred.len(), text.len());
    }
}
