//! The `[workload]` table of suites with `protocol = "http"`.

mod statuses;

use std::fmt;

use plimsoll_model::suite::{AsTable as _, Parameters, SuiteError, TableReader, percents};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fileset::{CLASSES, DIRECTORIES_MAX};
use super::h2::windows::{H2Settings, ReceiveWindows};
use super::headers::{Header, LEFT_OUT, with_headers};
use super::wire::request::{Method, is_field};
use super::wire::template::Template;

pub use self::statuses::Statuses;

/// The default: ten thousand connections in 50 s.
const OPENED_PER_S: f64 = 200.0;
/// Bounds the wait for the next connection.
const OPENED_PER_S_MIN: f64 = 0.01;
/// Speeds of a replay.
const SPEED_MIN: f64 = 0.001;
const SPEED_MAX: f64 = 1_000.0;
/// More than a server accepts.
const OPENED_PER_S_MAX: f64 = 1_000_000.0;

/// Servers allow a hundred or a few hundred.
pub const STREAMS_MAX: u32 = 10_000;
/// RFC 9113 §6.9.1
const WINDOW_BYTES_MAX: u32 = 0x7fff_ffff;
/// Large enough that no server waits for a client.
const WINDOW_BYTES: u32 = 1 << 30;

/// Parameters of an HTTP workload, every default explicit.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["requests"]))]
pub struct HttpWorkload {
    /// What the requests ask for.
    pub requests: RequestSource,
    /// Version of HTTP.
    pub http: HttpVersion,
    /// Requests in flight on a connection at a time; absent means 1. Only with HTTP/2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = STREAMS_MAX))]
    pub streams: Option<u32>,
    /// What the server may send on a stream before the client says that it has taken it. Only with
    /// HTTP/2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = WINDOW_BYTES_MAX))]
    pub stream_window_bytes: Option<u32>,
    /// The same for all streams of a connection together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 65_535, max = WINDOW_BYTES_MAX))]
    pub connection_window_bytes: Option<u32>,
    /// Kept or made anew.
    pub connections: Connections,
    /// With `held` connections: connections opened a second, one after the other. Only of `urls`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = OPENED_PER_S_MIN, max = OPENED_PER_S_MAX))]
    pub opened_per_s: Option<f64>,
    /// Method, where a list of URLs names none.
    pub method: Method,
    /// Further header fields, each `Name: value`, `Name: env:VARIABLE` or `Name: @FILE`.
    pub headers: Vec<String>,
    /// Statuses of a good reply: codes (`"200"`) and classes (`"2xx"`).
    #[schemars(with = "Vec<String>")]
    pub expect: Statuses,
    /// Send one request before any load, and end where its answer is no good one. Only of `urls`.
    pub first_check: bool,
    /// Time replies chunk by chunk: the first chunk of the body, and the intervals between chunks.
    pub stream: bool,
    /// `HOST:PORT` or `unix:PATH` to connect to, instead of what the target's URL names;
    /// `all-addresses`: each address of the URL's host that answers, as a target of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_to: Option<String>,
    /// Check the server's certificate (`https`).
    pub tls_verify: bool,
    /// Certificates to trust in addition to the public ones, a PEM file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_ca_file: Option<String>,
    /// The client's own certificate, a PEM file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_certificate_file: Option<String>,
    /// Its private key, a PEM file; absent means that of the certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key_file: Option<String>,
    /// Whether a connection may take up the TLS session of an earlier one.
    pub tls_resumption: TlsResumption,
    /// One reply in this many is compared with the file set; 1 is all. Only with a file set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub verify_one_in: Option<u32>,
    /// Body of the requests, where a list of URLs names none; may have random parts. Only with
    /// `urls`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// File with the body, as it stands; read when a run begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_file: Option<String>,
    /// Lines `[weight] [method] URL`, or JSON; empty means the target's own URL. Only with `urls`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urls: Option<Vec<String>>,
    /// File of a journey: pages that users request one after the other; relative to the suite's
    /// file. Only with `journey`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journey_file: Option<String>,
    /// File with the requests of a log, each at its time; relative to the suite's file. Only with
    /// `replay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_file: Option<String>,
    /// How many times as fast as recorded. Only with `replay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = SPEED_MIN, max = SPEED_MAX))]
    pub speed: Option<f64>,
    /// Paths are hashes: only servers that the run starts have them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hashed: bool,
    /// Only with a file set.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// Pages of a journey, requested by users.
    Journey,
    /// The requests of a log, each at its time.
    Replay,
}

/// Version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HttpVersion {
    /// One request at a time on a connection.
    #[default]
    #[serde(rename = "1.1")]
    Http1,
    /// Over TLS by ALPN, else without asking first (prior knowledge).
    #[serde(rename = "2")]
    Http2,
    /// What the servers agree on by ALPN: 2 where all of them do; 1.1 without TLS.
    #[serde(rename = "auto")]
    Auto,
}

/// What happens to a connection after its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// It carries the client's next request.
    #[default]
    KeepAlive,
    /// The server closes it; every op makes a new one.
    PerRequest,
    /// It stays open to the end: a client whose connection is closed leaves the load.
    Held,
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

/// The file set and how it is requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileSetParameters {
    /// Path below the target's own where the file set lies; empty or ending with a slash.
    pub path_prefix: String,
    /// Seed of the content, where the server's file set does not say its own.
    pub seed: u64,
    /// Fixed number of directories; absent means the method's formula.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = DIRECTORIES_MAX))]
    pub directories: Option<u32>,
    /// Percent of ops per class, whole numbers that sum to 100.
    #[serde(deserialize_with = "percents")]
    pub class_percent: [u8; CLASSES as usize],
    /// Mean of the Poisson distribution, truncated to 1..9, that chooses the file in its class.
    #[schemars(range(min = 0.1, max = 50.0))]
    pub poisson_mean: f64,
}

impl HttpWorkload {
    /// This workload with each of its header fields (`Name: value`) changed, those of `urls` too.
    pub fn with_headers<E>(
        &self,
        change: &mut dyn FnMut(&str) -> Result<String, E>,
    ) -> Result<Self, E> {
        let headers = self.headers.iter().map(|field| change(field)).collect::<Result<_, _>>()?;
        let urls = self.urls.as_ref().map(|lines| {
            lines.iter().map(|line| with_headers(line, change)).collect::<Result<_, _>>()
        });
        Ok(Self { headers, urls: urls.transpose()?, ..self.clone() })
    }
}

impl HttpWorkload {
    /// How a client uses a connection of HTTP/2.
    pub fn h2_settings(&self) -> H2Settings {
        H2Settings {
            streams: self.streams.unwrap_or(1),
            windows: ReceiveWindows {
                stream_bytes: self.stream_window_bytes.unwrap_or(WINDOW_BYTES),
                connection_bytes: self.connection_window_bytes.unwrap_or(WINDOW_BYTES),
            },
        }
    }
}

impl Parameters for HttpWorkload {
    fn has_journeys(&self) -> bool {
        self.requests == RequestSource::Journey
    }

    fn is_recorded(&self) -> bool {
        self.requests == RequestSource::Replay
    }

    fn adjacent_files(&self) -> Vec<(&'static str, &str)> {
        let files = [("journey_file", &self.journey_file), ("replay_file", &self.replay_file)];
        files.into_iter().filter_map(|(key, name)| Some((key, name.as_deref()?))).collect()
    }
}

/// Values of header fields may be secrets.
impl fmt::Debug for HttpWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |field: &str| Header::read(field).map_or(LEFT_OUT.into(), |one| one.shown());
        let shown = self.with_headers(&mut |field| Ok(shown(field)))?;
        f.debug_tuple("HttpWorkload").field(&shown.as_table()).finish()
    }
}

impl Default for HttpWorkload {
    /// The target's own URL; a suite sets what it requests.
    fn default() -> Self {
        Self {
            requests: RequestSource::Urls,
            http: HttpVersion::default(),
            streams: None,
            stream_window_bytes: None,
            connection_window_bytes: None,
            connections: Connections::default(),
            opened_per_s: None,
            method: Method::default(),
            headers: Vec::new(),
            expect: Statuses(vec![Statuses::SUCCESS]),
            first_check: true,
            stream: false,
            connect_to: None,
            tls_verify: true,
            tls_ca_file: None,
            tls_certificate_file: None,
            tls_key_file: None,
            tls_resumption: TlsResumption::default(),
            verify_one_in: None,
            body: None,
            body_file: None,
            urls: None,
            journey_file: None,
            replay_file: None,
            speed: None,
            hashed: false,
            file_set: None,
        }
    }
}

impl Default for FileSetParameters {
    /// The method's.
    fn default() -> Self {
        Self {
            path_prefix: String::new(),
            seed: 1,
            directories: None,
            class_percent: [35, 50, 14, 1],
            poisson_mean: 5.0,
        }
    }
}

/// Reads the table, every default explicit.
pub fn read(table: &TableReader<'_>) -> Result<HttpWorkload, SuiteError> {
    let mut workload: HttpWorkload = table.read().map_err(|error| match &*error.key {
        "workload.headers" => not_quoted(error),
        _ => error,
    })?;
    complete(table, &mut workload)?;
    complete_http2(table, "", &mut workload)?;
    complete_long_lived(table, &mut workload)?;
    check_headers(table, "headers", &workload.headers)?;
    if let Some(error) = workload.body.as_deref().and_then(|body| Template::parse(body).err()) {
        return Err(table.error_at("body", error.to_string()));
    }
    if let Some(file_set) = &workload.file_set {
        check_prefix(table, &file_set.path_prefix)?;
    }
    Ok(workload)
}

/// The keys and their defaults depend on what is requested.
fn complete(table: &TableReader<'_>, workload: &mut HttpWorkload) -> Result<(), SuiteError> {
    let (good, foreign, theirs): (_, &[&str], _) = match workload.requests {
        RequestSource::FileSet => {
            workload.verify_one_in.get_or_insert(64);
            workload.file_set.get_or_insert_default();
            (Statuses::OK, &["urls", "body", "body_file"], "urls")
        }
        RequestSource::Urls => {
            workload.urls.get_or_insert_default();
            (Statuses::SUCCESS, &["verify_one_in", "file_set"], "file_set")
        }
        RequestSource::Journey | RequestSource::Replay => {
            (Statuses::SUCCESS, &["verify_one_in", "file_set", "urls", "body", "body_file"], "urls")
        }
    };
    if !table.has("expect") {
        workload.expect = Statuses(vec![good]);
    }
    let of_own = match workload.requests {
        RequestSource::Journey => Some("a journey"),
        RequestSource::Replay => Some("a replay"),
        RequestSource::FileSet | RequestSource::Urls => None,
    };
    if let Some(what) = of_own {
        let is_journey = workload.requests == RequestSource::Journey;
        let differs = [
            ("method", workload.method != Method::GET),
            ("expect", workload.expect != Statuses(vec![Statuses::SUCCESS])),
            ("stream", workload.stream),
            ("streams", is_journey && workload.streams.is_some_and(|streams| streams != 1)),
            ("connections", is_journey && workload.connections != Connections::KeepAlive),
        ];
        if let Some((key, _)) = differs.into_iter().find(|(_, differs)| *differs) {
            return Err(table
                .error_at(key, format!("`workload.{key}` does not go with {what}"))
                .with_help("leave it out; its file says what is sent and expected"));
        }
    }
    let of_others = [
        ("journey_file", RequestSource::Journey, "journey"),
        ("replay_file", RequestSource::Replay, "replay"),
        ("speed", RequestSource::Replay, "replay"),
    ];
    let is_other = |(key, requests, _): &&(&str, RequestSource, &str)| {
        table.has(key) && workload.requests != *requests
    };
    if let Some((key, _, theirs)) = of_others.iter().find(is_other) {
        return Err(table
            .error_at(key, format!("`workload.{key}` goes with requests = \"{theirs}\""))
            .with_help("leave it out, or write that"));
    }
    match foreign.iter().find(|key| table.has(key)) {
        None if workload.body.is_some() && workload.body_file.is_some() => Err(table
            .error_at("body_file", "a request has one body")
            .with_help("leave out body or body_file")),
        None => Ok(()),
        Some(key) => Err(table
            .error_at(key, format!("`workload.{key}` goes with requests = \"{theirs}\""))
            .with_help("leave it out, or write that")),
    }
}

/// Streams and windows are those of HTTP/2. The keys stand `below` this, which ends with a dot
/// where it is no table of its own.
pub fn complete_http2(
    table: &TableReader<'_>,
    below: &str,
    workload: &mut HttpWorkload,
) -> Result<(), SuiteError> {
    const KEYS: [&str; 3] = ["streams", "stream_window_bytes", "connection_window_bytes"];
    let path = |key: &str| format!("{below}{key}");
    if workload.http != HttpVersion::Http1 {
        if workload.connections != Connections::KeepAlive {
            return Err(table
                .error_at(&path("connections"), "connections of HTTP/2 are kept and shared")
                .with_help("write connections = \"keep-alive\", or http = \"1.1\""));
        }
        workload.streams.get_or_insert(1);
        workload.stream_window_bytes.get_or_insert(WINDOW_BYTES);
        workload.connection_window_bytes.get_or_insert(WINDOW_BYTES);
        return Ok(());
    }
    match KEYS.iter().map(|key| path(key)).find(|key| table.has(key)) {
        None => Ok(()),
        Some(key) => Err(table
            .error_at(&key, "only HTTP/2 has streams and windows")
            .with_help("leave it out, or write http = \"2\"")),
    }
}

/// Long-lived connections are opened at a rate.
fn complete_long_lived(
    table: &TableReader<'_>,
    workload: &mut HttpWorkload,
) -> Result<(), SuiteError> {
    match (workload.connections, workload.requests) {
        (Connections::Held, RequestSource::Urls) => {
            workload.opened_per_s.get_or_insert(OPENED_PER_S);
            Ok(())
        }
        (Connections::Held, _) => Err(table
            .error_at("connections", "connections that are held go with requests = \"urls\"")
            .with_help("write connections = \"keep-alive\", or that")),
        (_, _) if workload.opened_per_s.is_some() => Err(table
            .error_at("opened_per_s", "only connections that are held are opened at a rate")
            .with_help("leave it out, or write connections = \"held\"")),
        (_, _) => Ok(()),
    }
}

/// Refuses what is no header field at `key`, without a word of it, which may be a secret.
pub fn check_headers(
    table: &TableReader<'_>,
    key: &str,
    headers: &[String],
) -> Result<(), SuiteError> {
    let Some(at) = headers.iter().position(|header| !is_field(header)) else { return Ok(()) };
    let message = format!("`workload.{key}`: string {} is not a header field", at + 1);
    let error = table.error_at(key, message);
    Err(unquoted(error).with_help("write for example \"Accept: text/html\""))
}

fn not_quoted(mut error: SuiteError) -> SuiteError {
    error.message = "`workload.headers` is not a list of strings".to_owned();
    unquoted(error)
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
        error.text = [&error.text[..span.start], &stars, &error.text[span.end..]].concat().into();
    }
    error
}

fn check_prefix(table: &TableReader<'_>, path_prefix: &str) -> Result<(), SuiteError> {
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#');
    let wrong_end = !path_prefix.is_empty() && !path_prefix.ends_with('/');
    if path_prefix.starts_with('/') || wrong_end || !path_prefix.chars().all(plain) {
        return Err(table
            .error_at("file_set.path_prefix", format!("{path_prefix:?} is not a relative path"))
            .with_help("write a path without leading and with closing slash, like \"files/\""));
    }
    Ok(())
}
