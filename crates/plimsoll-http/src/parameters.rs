//! The `[workload]` table of suites with `protocol = "http"`.

use plimsoll_model::suite::{SuiteError, TableReader};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fileset::{CLASSES, DIRECTORIES_MAX};
use super::wire::request::{Method, is_field};

/// Parameters of an HTTP workload, every default explicit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpWorkload {
    /// What the requests ask for.
    pub requests: RequestSource,
    /// Kept or made anew.
    pub connections: Connections,
    /// Method, where a list of URLs names none.
    pub method: Method,
    /// Further header fields, each `Name: value`, `Name: env:VARIABLE` or `Name: @FILE`.
    pub headers: Vec<String>,
    /// Statuses of a good reply: codes (`"200"`) and classes (`"2xx"`).
    pub expect: Vec<String>,
    /// Check the server's certificate (`https`).
    pub tls_verify: bool,
    /// Certificates to trust besides the public ones, a PEM file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_ca_file: Option<String>,
    /// Whether a connection may take up the TLS session of an earlier one.
    pub tls_resumption: TlsResumption,
    /// One reply in this many is compared with the file set; 1 is all. Only with a file set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_one_in: Option<u32>,
    /// Lines `[weight] [method] URL`; empty means the target's own URL. Only with `urls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub urls: Option<Vec<String>>,
    /// Only with a file set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_set: Option<FileSetParameters>,
}

/// What the requests ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestSource {
    /// Files of the generated file set.
    FileSet,
    /// The target's URL or a weighted list.
    Urls,
}

/// What happens to a connection after its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// It carries the client's next request.
    KeepAlive,
    /// The server closes it; every op makes a new one.
    PerRequest,
}

/// Whether a connection may take up the TLS session of an earlier one (`https`). Resuming spares
/// the server most of the handshake's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TlsResumption {
    /// Every connection makes a full handshake.
    #[default]
    Off,
    /// Each worker keeps what its connections need to resume, for one load point.
    On,
}

/// The file set and how it is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSetParameters {
    /// Path below the target's own where the file set lies; empty or ending with a slash.
    pub path_prefix: String,
    /// Seed of the content, where the server's file set does not say its own.
    pub seed: u64,
    /// Fixed number of directories; absent means the method's formula.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directories: Option<u32>,
    /// Percent of ops per class, whole numbers that sum to 100.
    pub class_percent: [u8; CLASSES as usize],
    /// Mean of the Poisson distribution, truncated to 1..9, that chooses the file in its class.
    pub poisson_mean: f64,
}

/// Statuses of a good reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses(Vec<(u16, u16)>);

impl Statuses {
    /// Reads codes and classes; the first that is neither is the error.
    pub fn parse(texts: &[String]) -> Result<Self, String> {
        let ranges = texts.iter().map(|text| read_status(text).ok_or_else(|| text.clone()));
        ranges.collect::<Result<_, _>>().map(Self)
    }

    /// The status is among them.
    pub fn holds(&self, status: u16) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&status))
    }
}

fn read_status(text: &str) -> Option<(u16, u16)> {
    if let Some(class) = text.strip_suffix("xx") {
        let class: u16 = class.parse().ok().filter(|c| (1..=9).contains(c))?;
        return Some((class * 100, class * 100 + 99));
    }
    let code = text.parse().ok().filter(|c| (100..=999).contains(c))?;
    Some((code, code))
}

/// Reads the table, every default explicit.
pub fn read(table: &TableReader<'_>) -> Result<toml::Table, SuiteError> {
    let workload = read_typed(table)?;
    Ok(toml::Table::try_from(workload).expect("numbers, strings and lists are always TOML"))
}

fn read_typed(table: &TableReader<'_>) -> Result<HttpWorkload, SuiteError> {
    let requests = table
        .choice("requests", &[("file_set", RequestSource::FileSet), ("urls", RequestSource::Urls)])?
        .ok_or_else(|| table.missing("requests").with_help("write \"file_set\" or \"urls\""))?;
    let with_files = requests == RequestSource::FileSet;
    Ok(HttpWorkload {
        requests,
        connections: table
            .choice(
                "connections",
                &[("keep-alive", Connections::KeepAlive), ("per-request", Connections::PerRequest)],
            )?
            .unwrap_or(Connections::KeepAlive),
        method: table
            .choice("method", &[("GET", Method::Get), ("HEAD", Method::Head)])?
            .unwrap_or_default(),
        headers: read_headers(table)?,
        expect: read_expect(table, requests)?,
        tls_verify: table.flag("tls_verify")?.unwrap_or(true),
        tls_ca_file: table.text("tls_ca_file")?,
        tls_resumption: table
            .choice("tls_resumption", &[("off", TlsResumption::Off), ("on", TlsResumption::On)])?
            .unwrap_or_default(),
        verify_one_in: match with_files {
            true => Some(table.count("verify_one_in", 1..=1_000_000)?.unwrap_or(64) as u32),
            false => None,
        },
        urls: match with_files {
            true => None,
            false => Some(table.texts("urls")?.unwrap_or_default()),
        },
        file_set: match with_files {
            true => Some(read_file_set(&table.table("file_set")?)?),
            false => None,
        },
    })
}

fn read_headers(table: &TableReader<'_>) -> Result<Vec<String>, SuiteError> {
    let wrong = |message: String| unquoted(table.error_at("headers", message));
    let shape = |_| wrong("`workload.headers` is not a list of strings".to_owned());
    let headers = table.texts("headers").map_err(shape)?.unwrap_or_default();
    match headers.iter().position(|h| !is_field(h)) {
        None => Ok(headers),
        Some(at) => {
            let message = format!("`workload.headers`: string {} is not a header field", at + 1);
            Err(wrong(message).with_help("write for example \"Accept: text/html\""))
        }
    }
}

/// Without the text in question, which may hold a secret.
fn unquoted(mut error: SuiteError) -> SuiteError {
    if let Some(span) = error.span.clone()
        && let Some(value) = error.text.get(span.clone())
    {
        let stars: String = value
            .chars()
            .map(|c| if c == '\n' { "\n".into() } else { "*".repeat(c.len_utf8()) })
            .collect();
        error.text.replace_range(span, &stars);
    }
    error
}

fn read_expect(
    table: &TableReader<'_>,
    requests: RequestSource,
) -> Result<Vec<String>, SuiteError> {
    let default: &[&str] = match requests {
        RequestSource::FileSet => &["200"],
        RequestSource::Urls => &["2xx"],
    };
    let given = table.texts("expect")?;
    let expect = given.unwrap_or_else(|| default.iter().map(|s| (*s).to_owned()).collect());
    match Statuses::parse(&expect) {
        Ok(_) if !expect.is_empty() => Ok(expect),
        Ok(_) => Err(table
            .error_at("expect", "no status is a good one")
            .with_help("write for example [\"200\"] or [\"2xx\"]")),
        Err(bad) => Err(table
            .error_at("expect", format!("{bad:?} is not an HTTP status"))
            .with_help("write a code like \"200\" or a class like \"2xx\"")),
    }
}

fn read_file_set(table: &TableReader<'_>) -> Result<FileSetParameters, SuiteError> {
    let path_prefix = table.text("path_prefix")?.unwrap_or_default();
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#');
    let wrong_end = !path_prefix.is_empty() && !path_prefix.ends_with('/');
    if path_prefix.starts_with('/') || wrong_end || !path_prefix.chars().all(plain) {
        return Err(table
            .error_at("path_prefix", format!("{path_prefix:?} is not a relative path"))
            .with_help("write a path without leading and with closing slash, like \"files/\""));
    }
    let value = FileSetParameters {
        path_prefix,
        seed: table.count("seed", 0..=i64::MAX as u64)?.unwrap_or(1),
        directories: table.count("directories", 1..=u64::from(DIRECTORIES_MAX))?.map(|n| n as u32),
        class_percent: read_class_percent(table)?,
        poisson_mean: table.number_in("poisson_mean", 0.1..=50.0)?.unwrap_or(5.0),
    };
    table.finish()?;
    Ok(value)
}

fn read_class_percent(table: &TableReader<'_>) -> Result<[u8; CLASSES as usize], SuiteError> {
    let Some(given) = table.numbers("class_percent")? else { return Ok([35, 50, 14, 1]) };
    let whole = given.iter().all(|p| p.fract() == 0.0 && (0.0..=100.0).contains(p));
    let percent: Vec<u8> = given.iter().map(|p| *p as u8).collect();
    match <[u8; CLASSES as usize]>::try_from(percent) {
        Ok(percent) if whole && percent.iter().map(|p| u32::from(*p)).sum::<u32>() == 100 => {
            Ok(percent)
        }
        _ => Err(table
            .error_at("class_percent", format!("the class shares are {given:?}"))
            .with_help("write four whole numbers that sum to 100, like [35, 50, 14, 1]")),
    }
}
