//! Collectors that load points are sent to (`--export`), and the header fields that authenticate.

use std::fmt;
use std::path::PathBuf;

use plimsoll_model::target::{TargetUrl, shown_of_unreadable};
use plimsoll_monitor::PostTls;
use plimsoll_protocol::percent_decoded;

use super::wire::{CUMULATIVE, DELTA};
use crate::failure::Failure;

/// Collectors of one run; each has a thread and a queue.
const EXPORTS_MAX: usize = 8;
/// Default port of collectors for OTLP over HTTP.
const PORT: u16 = 4318;
const METRICS_PATH: &str = "/v1/metrics";
/// Prefixes of the flag's value, each with the label of counts and distributions. Cumulative ones
/// are OpenTelemetry's default, and all that Prometheus takes.
const KINDS: [(&str, i32); 2] = [("otlp=", CUMULATIVE), ("otlp-delta=", DELTA)];
/// Holds `NAME=VALUE,…`, as every exporter of OpenTelemetry reads it.
const FIELDS_VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// PEM files of certificates to trust, of the client's own and of its key, as above.
const TRUSTED_VARIABLE: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";
const OWN_VARIABLE: &str = "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE";
const KEY_VARIABLE: &str = "OTEL_EXPORTER_OTLP_CLIENT_KEY";
/// Fields that frame a request, or that this program sets itself.
const FRAMING: [&str; 7] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "user-agent",
];

/// A collector's URL. It holds no secret: those go into header fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportUrl {
    pub(super) temporality: i32,
    pub(super) secure: bool,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) path: String,
}

impl ExportUrl {
    /// Parses the flag's values, each once.
    pub fn parse_all(texts: &[String]) -> Result<Vec<Self>, Failure> {
        let mut urls: Vec<Self> = Vec::new();
        for text in texts {
            let url = Self::parse(text)?;
            if urls.contains(&url) {
                return Err(Failure::wrong(format!(
                    "--export {url} is given twice; leave one out"
                )));
            }
            urls.push(url);
        }
        if urls.len() > EXPORTS_MAX {
            return Err(Failure::wrong(format!(
                "--export is given {} times (limit {EXPORTS_MAX}); a collector can pass on to \
                 others",
                urls.len()
            )));
        }
        Ok(urls)
    }

    /// The error message leaves out possible passwords.
    fn parse(text: &str) -> Result<Self, Failure> {
        let example = "write otlp=https://HOST:4318, or otlp-delta=… for a collector that takes \
                       only deltas";
        let mut kinds = KINDS.iter().filter_map(|kind| Some((*kind, text.strip_prefix(kind.0)?)));
        let Some(((kind, temporality), url)) = kinds.next() else {
            let shown = shown_of_unreadable(text);
            return Err(Failure::wrong(format!(
                "--export {shown:?} names no way to export that is known; {example}"
            )));
        };
        let shown = format!("{kind}{}", shown_of_unreadable(url));
        let wrong = |what: &str| Failure::wrong(format!("--export {shown:?}: {what}"));
        let url = TargetUrl::parse(url)
            .map_err(|_| wrong(&format!("no URL with a host can be read in it; {example}")))?;
        let secure = url.scheme == "https";
        if !secure && url.scheme != "http" {
            return Err(wrong(&format!(
                "only OTLP over HTTP is spoken, with protobuf bodies; {example}"
            )));
        }
        if url.user.is_some() || url.password.is_some() || url.query.is_some() {
            return Err(wrong(&format!(
                "names, passwords and queries are not sent to a collector; leave them out, and put \
                 what lets this host in into the environment variable {FIELDS_VARIABLE}, as \
                 NAME=VALUE"
            )));
        }
        let path = if url.path == "/" { METRICS_PATH.to_owned() } else { url.path };
        Ok(Self { temporality, secure, host: url.host, port: url.port.unwrap_or(PORT), path })
    }
}

impl fmt::Display for ExportUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { temporality, secure, host, port, path } = self;
        let kind = KINDS.iter().find(|(_, of)| of == temporality).map_or("", |(kind, _)| kind);
        let scheme = if *secure { "https" } else { "http" };
        match host.contains(':') {
            true => write!(f, "{kind}{scheme}://[{host}]:{port}{path}"),
            false => write!(f, "{kind}{scheme}://{host}:{port}{path}"),
        }
    }
}

/// Settings of TLS. The environment names the files of certificates.
pub(super) fn tls_of_environment() -> Result<PostTls, Failure> {
    let file = |name| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let (trusted, own, key) = (file(TRUSTED_VARIABLE), file(OWN_VARIABLE), file(KEY_VARIABLE));
    if own.is_some() != key.is_some() {
        return Err(Failure::wrong(format!(
            "one of {OWN_VARIABLE} and {KEY_VARIABLE} is not set; set both, or neither"
        )));
    }
    PostTls::new(trusted.as_deref(), own.as_deref().zip(key.as_deref())).map_err(|why| {
        Failure::wrong(format!("--export: {why}; see {TRUSTED_VARIABLE} and {OWN_VARIABLE}"))
    })
}

/// Header fields with their values, which are secrets. They are in no bundle and no message.
pub(super) fn fields_of_environment() -> Result<Vec<(String, String)>, Failure> {
    match std::env::var(FIELDS_VARIABLE) {
        Ok(text) => fields(&text),
        Err(std::env::VarError::NotPresent) => Ok(Vec::new()),
        Err(std::env::VarError::NotUnicode(_)) => Err(Failure::wrong(format!(
            "the environment variable {FIELDS_VARIABLE} is not text; set it to NAME=VALUE,…"
        ))),
    }
}

/// `NAME=VALUE,…`, values percent-encoded.
fn fields(text: &str) -> Result<Vec<(String, String)>, Failure> {
    let items = text.split(',').map(str::trim).enumerate();
    items.filter(|(_, item)| !item.is_empty()).map(|(at, item)| field(at + 1, item)).collect()
}

fn field(number: usize, item: &str) -> Result<(String, String), Failure> {
    let wrong = |what: &str| {
        Failure::wrong(format!(
            "the environment variable {FIELDS_VARIABLE}, item {number}: {what}; write \
             NAME=VALUE,NAME=VALUE with % codes for what is not printable, a comma among it"
        ))
    };
    let (name, value) = item.split_once('=').ok_or_else(|| wrong("it holds no ="))?;
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let name = name.trim();
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(wrong("what stands before = is no name of a header field"));
    }
    if FRAMING.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(wrong("that header field is set by this program"));
    }
    let value = String::from_utf8(percent_decoded(value.trim()))
        .ok()
        .filter(|value| value.chars().all(|c| !c.is_control()))
        .ok_or_else(|| wrong("its value is no line of text"))?;
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(texts: &[&str]) -> Result<Vec<String>, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let urls = ExportUrl::parse_all(&texts).map_err(|failure| failure.to_string())?;
        Ok(urls.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_collector_listens_on_the_usual_port_and_path_unless_said_otherwise() {
        let typed =
            ["otlp=http://h", "otlp-delta=https://[::1]:80/", "otlp=HTTPS://h/otlp/v1/metrics"];
        let read = [
            "otlp=http://h:4318/v1/metrics",
            "otlp-delta=https://[::1]:80/v1/metrics",
            "otlp=https://h:4318/otlp/v1/metrics",
        ];
        assert_eq!(parsed(&typed).unwrap(), read);
        assert!(parsed(&["otlp=http://h", "otlp=http://h:4318/"]).unwrap_err().contains("twice"));
        let many: Vec<String> = (1..10).map(|port| format!("otlp=http://h:{port}")).collect();
        assert!(ExportUrl::parse_all(&many).unwrap_err().to_string().contains("limit 8"));
    }

    #[test]
    fn what_names_no_collector_is_refused_with_the_next_move_and_no_secret() {
        for (bad, message) in [
            ("", "write otlp=https://"),
            ("s3cret@h", "write otlp=https://"),
            ("http://u:s3cret@h", "write otlp=https://"),
            ("prometheus=http://h", "write otlp=https://"),
            ("otlp=h:4318", "write otlp=https://"),
            ("otlp=http://", "write otlp=https://"),
            ("otlp=http://h:s3cret", "write otlp=https://"),
            ("otlp=http://u:s3cret/@h", "write otlp=https://"),
            ("otlp=grpc://h:4317", "over HTTP"),
            ("otlp=https://u:s3cret@h", "OTEL_EXPORTER_OTLP_HEADERS"),
            ("otlp=http://u:s3cret@h", "OTEL_EXPORTER_OTLP_HEADERS"),
            ("otlp=http://h/?key=s3cret", "OTEL_EXPORTER_OTLP_HEADERS"),
        ] {
            let error = parsed(&[bad]).unwrap_err();
            assert!(error.starts_with("--export") && error.contains(message), "{bad}: {error}");
            assert!(!error.contains("s3cret"), "{bad}: {error}");
        }
    }

    #[test]
    fn header_fields_are_read_as_other_exporters_read_them() {
        let read = fields("api-key=a%20b%2Cc, X-Scope = team=1 ,,").unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read, [pair("api-key", "a b,c"), pair("X-Scope", "team=1")]);
        assert_eq!(fields("").unwrap(), []);
        for bad in ["s3cret", "a=1,s3 cret=1", "=s3cret", "k=s3cret%0d%0aX: y", "Host=s3cret"] {
            let error = fields(bad).unwrap_err().to_string();
            assert!(error.contains("OTEL_EXPORTER_OTLP_HEADERS, item "), "{error}");
            assert!(!error.contains("cret"), "{error}");
        }
    }
}
