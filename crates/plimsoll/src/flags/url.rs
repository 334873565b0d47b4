//! Flags of suite `web-url` and the values of the suite that they set. Language model suites have
//! some of them.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use clap::builder::TypedValueParser;
use plimsoll_model::suite::{OPS_MAX, Override, Peak, ProfileName, ThinkDistribution};
use plimsoll_model::units::{Nanos, parse_span, span_text};
use plimsoll_protocol::host::arguments::parse_count;
use plimsoll_run::text_file;
use toml::Value;

use super::values::{one_of, parse_rate, parse_span_arg, parse_span_or_none_arg};
use crate::exit::Failure;

/// The suite that has these flags.
pub(crate) const URL_SUITE: &str = "web-url";
/// The suite of users, who have some of them.
pub(crate) const USERS_SUITE: &str = "web-users";
/// Suites whose users follow a journey: one of a file, or that of a published method.
const JOURNEY_SUITES: [&str; 4] = [USERS_SUITE, "web-banking", "web-shopping", "web-support"];
/// Flags that other suites for web servers have too.
pub(crate) const OF_WEB: [&str; 2] = ["http", "streams"];
/// Flags about the request itself or about how its connection is kept.
pub(super) const OF_REQUESTS: [&str; 5] = ["hold", "method", "data", "urls", "stream"];
/// Flags of users and their journeys alone.
pub(super) const OF_JOURNEYS: [&str; 2] = ["journey", "sessions"];
/// Flags about what the pages of a journey say themselves.
pub(super) const OF_PAGES: [&str; 6] =
    ["rate", "hold_rate", "hold_every", "think", "no_check", "new_connection"];
/// Clients of the suite.
const CLIENTS_DEFAULT: u32 = 64;
/// Longest time for a number of requests.
const REQUESTS_WITHIN: Nanos = Nanos::from_secs(3_600);
/// Time between the requests of a connection that is kept open.
const HOLD_EVERY: Nanos = Nanos::from_secs(30);
/// Prefix of a file's name in place of a text.
const FILE_PREFIX: char = '@';
/// Holds the password of `--basic-auth`, if the flag does not.
const PASSWORD_VARIABLE: &str = "PLIMSOLL_PASSWORD";

/// Flags of the web-url suite. Language model suites have those of load, time and transport too.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of web-url, some of them also of llm-chat and its like")]
pub(crate) struct UrlArgs {
    /// Closed load: N clients; each sends its next request after the reply
    #[arg(long, visible_alias = "users", value_name = "N", conflicts_with_all = ["rate", "points", "peak", "steps"], value_parser = parse_clients)]
    pub clients: Option<u32>,
    /// Open load: this many requests per second, whatever the server does; several make a ladder;
    /// 2.5k and 1M are accepted
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["points", "peak", "steps"], value_parser = parse_rate)]
    pub rate: Vec<f64>,
    /// Open load of suite web-users: this many sessions begin per second, whatever the server does;
    /// several make a ladder; 0.5 is accepted
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["clients", "rate", "points", "peak", "steps"], value_parser = parse_rate)]
    pub sessions: Vec<f64>,
    /// Number of connections to open one after the other and keep open, with an occasional request
    /// on each; one that the server closes is lost
    #[arg(long, value_name = "N", conflicts_with_all = ["clients", "rate", "points", "peak", "steps", "requests", "new_connection"], value_parser = parse_clients)]
    pub hold: Option<u32>,
    /// With --hold: connections opened a second [default: 200]
    #[arg(long, value_name = "N", requires = "hold", value_parser = parse_rate)]
    pub hold_rate: Option<f64>,
    /// With --hold: time between the requests of a connection, on average [default: 30s]
    #[arg(long, value_name = "SPAN", requires = "hold", value_parser = parse_span_arg)]
    pub hold_every: Option<Nanos>,
    /// Pause of a client between a reply and its next request: 5s is exponential around 5 s, as
    /// people pause; constant:5s is always the same
    #[arg(long, value_name = "[LAW:]SPAN", conflicts_with_all = ["rate", "hold"], value_parser = parse_think)]
    pub think: Option<ThinkArg>,
    /// Maximum number of connections of an open load, or of sessions at a time
    #[arg(long, value_name = "N", value_parser = parse_clients)]
    pub connections: Option<u32>,
    /// Arrivals of an open load: a Poisson process, as independent users make (the default), or
    /// evenly spaced
    #[arg(long, alias = "gaps", value_name = "HOW", value_parser = arrivals())]
    pub arrivals: Option<&'static str>,
    /// Total number of requests, without warm-up unless --warm-up is given; the window is as long
    /// as they take, --for at most
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_requests)]
    pub requests: Option<u64>,
    /// Length of the measurement
    #[arg(long = "for", value_name = "SPAN", value_parser = parse_span_arg)]
    pub length: Option<Nanos>,
    /// Time under load before measuring; 0s for none
    #[arg(long, value_name = "SPAN", value_parser = parse_span_or_none_arg)]
    pub warm_up: Option<Nanos>,
    /// A request without a reply after this long has failed
    #[arg(long, value_name = "SPAN", value_parser = parse_span_arg)]
    pub timeout: Option<Nanos>,
    /// Method of the requests [default: GET, or POST with --data]
    #[arg(short, long, value_name = "METHOD")]
    pub method: Option<String>,
    /// Body of the requests; @FILE sends a file unchanged. In a text, {{uuid}} and {{int 1 1000}}
    /// are drawn anew for each request, as in URLs
    #[arg(short, long, value_name = "TEXT|@FILE")]
    pub data: Option<String>,
    /// Header field, for example "Accept: text/html"; "Name: env:VARIABLE" and "Name: @FILE" take
    /// the value from there; may be given often
    #[arg(short = 'H', long, value_name = "FIELD")]
    pub header: Vec<String>,
    /// File with one header field per line
    #[arg(long, value_name = "FILE")]
    pub header_file: Option<PathBuf>,
    /// User of basic authentication; PLIMSOLL_PASSWORD may hold the password
    #[arg(short = 'a', long, value_name = "USER[:PASSWORD]")]
    pub basic_auth: Option<String>,
    /// Cookie, for example "session=abc"; may be given often
    #[arg(short = 'b', long, value_name = "NAME=VALUE")]
    pub cookie: Vec<String>,
    /// File of requests (- for standard input): "[weight] [method] URL" a line, or JSON with url,
    /// method, weight, headers, body
    #[arg(long, value_name = "FILE")]
    pub urls: Option<PathBuf>,
    /// File with the pages that the users of suite web-users request (docs/users.md)
    #[arg(long, value_name = "FILE")]
    pub journey: Option<PathBuf>,
    /// Time replies chunk by chunk (server-sent events and other streams): the first chunk of the
    /// body, and the time between chunks
    #[arg(long)]
    pub stream: bool,
    /// Skip the request that checks the server's answer before any load
    #[arg(long)]
    pub no_check: bool,
    /// Connect to this address, whatever host the URL names
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "unix")]
    pub connect_to: Option<String>,
    /// Use each address of the URL's host that answers as a target of its own, not only the first
    #[arg(long, conflicts_with_all = ["connect_to", "unix"])]
    pub all_addresses: bool,
    /// Connect to a Unix socket
    #[arg(long, value_name = "PATH")]
    pub unix: Option<PathBuf>,
    /// A new connection for each request
    #[arg(long, conflicts_with_all = ["http", "streams"])]
    pub new_connection: bool,
    /// Version of HTTP, also of web-static: 2 by ALPN over TLS, otherwise with prior knowledge;
    /// auto is what the server agrees on over TLS [default: 1.1]
    #[arg(long, value_name = "VERSION", value_parser = http_versions())]
    pub http: Option<&'static str>,
    /// With --http 2: requests in flight on a connection at a time; clients share connections
    /// [default: 1]
    #[arg(long, value_name = "N", requires = "http", value_parser = parse_clients)]
    pub streams: Option<u32>,
    /// Do not check the server's certificate
    #[arg(short = 'k', long)]
    pub insecure: bool,
    /// Certificates to trust besides the public ones, a PEM file
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// The client's own certificate, a PEM file
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// Its private key, if it is in another file
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}

/// The load of a suite is made by users on their journeys.
pub(crate) fn has_users(suite: &str) -> bool {
    JOURNEY_SUITES.contains(&suite)
}

impl UrlArgs {
    /// Sets an open load, if a rate or a search for the peak requests it. A peak is searched in
    /// requests per second. `was_open`: the suite's own load is.
    pub(super) fn set_load(
        &self,
        (peak, was_open): (Option<Peak>, bool),
        set: &mut Set,
    ) -> Result<(), Failure> {
        if was_open && self.clients.is_some() {
            set.to("load.mode", "closed");
        }
        let is_open =
            !self.rate.is_empty() || !self.sessions.is_empty() || peak == Some(Peak::Auto);
        let of_open_loads = [
            (self.connections.is_some(), "--connections"),
            (self.arrivals.is_some(), "--arrivals"),
        ];
        let is_closed = !is_open && !was_open;
        if let Some((_, flag)) = of_open_loads.iter().find(|(given, _)| *given && is_closed) {
            return Err(Failure::wrong(format!(
                "{flag} belongs to an open load: write --rate N beside it, or --peak auto (for suite \
                 {USERS_SUITE} --sessions N); the number of connections of a closed load is that of \
                 its clients (--clients)"
            )));
        }
        if is_open {
            set.to("load.mode", "open");
            set.to("load.arrivals", if self.sessions.is_empty() { "shared" } else { "sessions" });
        }
        let loads = if self.sessions.is_empty() { &self.rate } else { &self.sessions };
        if !loads.is_empty() {
            set.to("ladder.kind", "points");
            set.to("ladder.points", loads.clone());
        }
        self.set_connections(set);
        set.given("load.gaps", self.arrivals);
        Ok(())
    }

    /// Sets the connections of an open load.
    pub(super) fn set_connections(&self, set: &mut Set) {
        // Clients are requests in flight: each connection carries several.
        let streams = i64::from(self.streams.unwrap_or(1));
        set.given("load.clients", self.connections.map(|n| i64::from(n).saturating_mul(streams)));
    }

    /// Sets the clients of suite web-url, or the connections that it keeps open.
    pub(super) fn set_clients(&self, set: &mut Set) -> Result<(), Failure> {
        set.given("ladder.points", self.clients()?.map(|clients| vec![f64::from(clients)]));
        self.hold_connections(set);
        Ok(())
    }

    /// Clients of a closed load, if the suite leaves their number open. With fewer requests than
    /// clients some would be idle.
    fn clients(&self) -> Result<Option<u32>, Failure> {
        let is_closed = self.rate.is_empty() && self.sessions.is_empty();
        match (self.clients, self.requests.filter(|_| is_closed)) {
            (Some(clients), Some(requests)) if requests < u64::from(clients) => {
                Err(Failure::wrong(format!(
                    "--requests {requests} --clients {clients}: each client sends one request at \
                     least; write --clients {requests} or fewer"
                )))
            }
            (None, Some(requests)) if requests < u64::from(CLIENTS_DEFAULT) => {
                Ok(u32::try_from(requests).ok())
            }
            (clients, _) => Ok(clients),
        }
    }

    /// Connections that are kept open: their requests come at random, since a common rhythm of all
    /// would be a load of its own.
    fn hold_connections(&self, set: &mut Set) {
        let Some(connections) = self.hold else { return };
        set.to("ladder.points", vec![f64::from(connections)]);
        set.to("workload.connections", "held");
        set.given("workload.opened_per_s", self.hold_rate);
        set.to("load.start_delay", "0s");
        set.to("load.think.mean", span_text(self.hold_every.unwrap_or(HOLD_EVERY)));
        set.to("load.think.distribution", "exponential");
    }

    /// Sets the think time. Without a distribution of its own it is exponential for suite web-url, else
    /// that of the suite.
    pub(super) fn set_think(&self, is_url: bool, set: &mut Set) {
        let Some(think) = self.think else { return };
        let distribution = think.distribution.or(is_url.then_some(ThinkDistribution::Exponential));
        set.to("load.think.mean", span_text(think.mean));
        set.given("load.think.distribution", distribution.map(ThinkDistribution::as_str));
    }

    /// Sets warm-up, length and end of the measurement.
    pub(super) fn set_timings(&self, profile: ProfileName, set: &mut Set) {
        let profile = profile.as_str();
        let counted = self.requests.is_some();
        let length = self.length.or(counted.then_some(REQUESTS_WITHIN));
        let warm_up = self.warm_up.or(counted.then_some(Nanos::ZERO));
        set.given(
            &format!("profiles.{profile}.ops"),
            self.requests.map(|requests| requests as i64),
        );
        set.given(&format!("profiles.{profile}.measure"), length.map(span_text));
        set.given(&format!("profiles.{profile}.warm_up"), warm_up.map(span_text));
        set.given("op_timeout", self.timeout.map(span_text));
    }

    /// Sets the requests.
    pub(super) fn set_requests(&self, set: &mut Set) -> Result<(), Failure> {
        let method = self.method.as_deref().or(self.data.as_deref().map(|_| "POST"));
        set.given("workload.method", method);
        if let Some(data) = &self.data {
            match data.strip_prefix(FILE_PREFIX) {
                Some(file) => set.to("workload.body_file", absolute(Path::new(file))),
                None => set.to("workload.body", refuse_span(data)?),
            }
        }
        set.given("workload.journey_file", self.journey.as_deref().map(absolute));
        let headers = self.headers()?;
        set.of_transport("headers", Some(headers).filter(|headers| !headers.is_empty()));
        if let Some(file) = &self.urls {
            set.to("workload.urls", lines(file, "the URLs")?);
        }
        Ok(())
    }

    /// Header fields that the flags set.
    pub(super) fn headers(&self) -> Result<Vec<String>, Failure> {
        let mut headers = self.header.clone();
        if let Some(file) = &self.header_file {
            headers
                .extend(lines(file, "header fields")?.into_iter().filter(|line| !line.is_empty()));
        }
        if let Some(user) = &self.basic_auth {
            headers.push(format!("Authorization: Basic {}", STANDARD.encode(credentials(user)?)));
        }
        if !self.cookie.is_empty() {
            headers.push(format!("Cookie: {}", self.cookie.join("; ")));
        }
        Ok(headers)
    }

    /// Sets how connections are made and used.
    pub(super) fn set_transport(&self, set: &mut Set) {
        let connect_to = self.unix.as_deref().map(|path| format!("unix:{}", absolute(path)));
        let connect_to = connect_to.or(self.all_addresses.then(|| "all-addresses".to_owned()));
        set.given("workload.stream", self.stream.then_some(true));
        set.given("workload.first_check", self.no_check.then_some(false));
        set.of_transport("connect_to", self.connect_to.clone().or(connect_to));
        set.of_transport("http", self.http);
        set.of_transport("streams", self.streams.map(i64::from));
        set.of_transport("connections", self.new_connection.then_some("per-request"));
        set.of_transport("tls_verify", self.insecure.then_some(false));
        set.of_transport("tls_ca_file", self.cacert.as_deref().map(absolute));
        set.of_transport("tls_certificate_file", self.cert.as_deref().map(absolute));
        set.of_transport("tls_key_file", self.key.as_deref().map(absolute));
    }
}

/// Values of a suite that flags set.
pub(super) struct Set {
    pub(super) values: Vec<Override>,
    /// Table with the keys of the transport.
    transport: &'static str,
}

impl Set {
    /// No values yet; `transport` is the table with the keys of the transport.
    pub(super) fn new(transport: &'static str) -> Self {
        Self { values: Vec::new(), transport }
    }

    pub(super) fn to(&mut self, path: &str, value: impl Into<Value>) {
        self.values.push(Override { path: path.to_owned(), value: value.into() });
    }

    /// Sets the value of a flag, if the flag is given.
    pub(super) fn given(&mut self, path: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.to(path, value);
        }
    }

    /// Sets a key of the transport, if the flag is given.
    pub(super) fn of_transport(&mut self, key: &str, value: Option<impl Into<Value>>) {
        self.given(&format!("{}.{key}", self.transport), value);
    }
}

/// A think time, and its distribution if one is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThinkArg {
    pub mean: Nanos,
    pub distribution: Option<ThinkDistribution>,
}

/// `5s`, `constant:5s`.
fn parse_think(text: &str) -> Result<ThinkArg, String> {
    let Some((law, span)) = text.split_once(':') else {
        return Ok(ThinkArg { mean: parse_span_arg(text)?, distribution: None });
    };
    let matched = ThinkDistribution::ALL.into_iter().find(|matched| matched.as_str() == law);
    let distribution = matched.ok_or_else(|| {
        let laws = ThinkDistribution::ALL.map(ThinkDistribution::as_str).join(", ");
        format!("{law} is no distribution; write a span alone, or with one of {laws}: constant:5s")
    })?;
    Ok(ThinkArg { mean: parse_span_arg(span)?, distribution: Some(distribution) })
}

/// Version of HTTP: the key `workload.http` of a suite.
fn http_versions() -> impl TypedValueParser<Value = &'static str> {
    one_of([
        (&["1.1", "1"], "One request at a time on a connection", "1.1"),
        (&["2"], "Several", "2"),
        (&["auto"], "What the server agrees on", "auto"),
    ])
}

/// Arrivals of an open load: the key `load.gaps` of a suite.
fn arrivals() -> impl TypedValueParser<Value = &'static str> {
    const POISSON: &str = "A Poisson process, as independent users make";
    one_of([
        (&["poisson", "exponential"], POISSON, "exponential"),
        (&["uniform"], "Evenly spaced", "uniform"),
    ])
}

/// Clients or connections.
fn parse_clients(text: &str) -> Result<u32, String> {
    const CLIENTS_MAX: u32 = 100_000;
    let count = u32::try_from(parse_count(text)?).ok().filter(|count| *count <= CLIENTS_MAX);
    count.ok_or_else(|| format!("write a number up to {CLIENTS_MAX}"))
}

fn parse_requests(text: &str) -> Result<u64, String> {
    let count = parse_count(text)?;
    (count <= OPS_MAX).then_some(count).ok_or_else(|| format!("write a number up to {OPS_MAX}"))
}

/// Refuses a duration as data: `-d` is the length of a run in other tools.
fn refuse_span(data: &str) -> Result<&str, Failure> {
    match parse_span(data).filter(|span| *span > Nanos::ZERO) {
        None => Ok(data),
        Some(_) => Err(Failure::wrong(format!(
            "--data {data}: this is the body of the requests; write --for {data} for the length of \
             the measurement, or put the body into a file and write --data @FILE"
        ))),
    }
}

fn credentials(user: &str) -> Result<String, Failure> {
    if user.contains(':') {
        return Ok(user.to_owned());
    }
    let password = std::env::var(PASSWORD_VARIABLE).map_err(|_| {
        Failure::wrong(format!(
            "--basic-auth {user}: no password; set the environment variable {PASSWORD_VARIABLE}, \
             or write --basic-auth {user}:PASSWORD"
        ))
    })?;
    Ok(format!("{user}:{password}"))
}

/// An absolute path, so that a resumed run finds the file.
pub(super) fn absolute(file: &Path) -> String {
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned()).display().to_string()
}

/// Lines of a file, or of standard input.
fn lines(file: &Path, what: &str) -> Result<Vec<String>, Failure> {
    let text = match file.as_os_str() == "-" {
        true => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).and_then(|_| text_file::text(bytes))
        }
        false => text_file::read(file),
    };
    let text =
        text.map_err(|e| Failure::wrong(format!("{}: cannot read {what}: {e}", file.display())))?;
    Ok(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use plimsoll_model::suite::Ladder;

    use super::*;
    use crate::suite_source;

    #[test]
    fn every_listed_flag_is_one_of_the_group() {
        let group = UrlArgs::augment_args(clap::Command::new(""));
        let ids: Vec<&str> = group.get_arguments().map(|flag| flag.get_id().as_str()).collect();
        assert!(OF_WEB.iter().chain(&OF_REQUESTS).chain(&["think"]).all(|id| ids.contains(id)));
    }

    #[test]
    fn few_requests_are_held_against_the_clients_of_the_suite() {
        let suite = suite_source::find("web-url", &[]).unwrap();
        assert_eq!(suite.ladder, Ladder::Points { points: vec![f64::from(CLIENTS_DEFAULT)] });
    }

    #[test]
    fn a_length_in_the_place_of_a_body_is_told_apart() {
        for length in ["30s", "500ms", "2m"] {
            let Err(Failure::Other { message, .. }) = refuse_span(length) else {
                panic!("{length}")
            };
            assert!(message.contains(&format!("--for {length}")), "{message}");
        }
        for body in ["a=1", "30", "s", "0s", ""] {
            assert_eq!(refuse_span(body).ok(), Some(body));
        }
    }

    /// gatling #3544: Windows editors write U+FEFF first, and end lines with CR LF.
    #[test]
    fn lists_of_windows_are_read_as_any_and_utf16_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |bytes: &[u8]| {
            std::fs::write(file.path(), bytes).unwrap();
            lines(file.path(), "the URLs").map_err(|failure| failure.to_string())
        };
        let one = |line: &str| Ok(vec![line.to_owned()]);
        assert_eq!(read(b"\xef\xbb\xbfX-Key: 1\r\n"), one("X-Key: 1"));
        assert_eq!(read(b"\xef\xbb\xbf{\"url\": \"/a\"}\r\n"), one("{\"url\": \"/a\"}"));
        assert_eq!(read(b"\xef\xbb\xbf# mine\r\n3 /b").unwrap(), ["# mine", "3 /b"]);
        let refused = read(b"\xff\xfe/\0a\0\r\0\n\0").unwrap_err();
        assert!(refused.contains("cannot read the URLs: it is in UTF-16"), "{refused}");
    }
}
