//! Access logs as JSON, an object a line: Caddy (`http.log.access`), Traefik (`accessLog` with
//! `format: json`) and Envoy (`json_format` with the names of its documentation).

use std::borrow::Cow;

use plimsoll_model::units::{NANOS_PER_SECOND, Nanos};
use serde::Deserialize;

use super::stamp::read_rfc3339;
use super::{LogLine, Stamped, StampedInstant, UnreadableLine};

/// The keys of all three that matter here.
#[derive(Deserialize)]
struct Written<'l> {
    /// Caddy: end, in seconds, or a text where `time_format` says so.
    ts: Option<Moment>,
    #[serde(borrow)]
    request: Option<CaddyRequest<'l>>,
    /// Caddy: seconds. Envoy: milliseconds.
    duration: Option<f64>,
    size: Option<u64>,
    status: Option<u16>,
    /// Traefik: begin.
    #[serde(borrow, rename = "StartUTC")]
    start_utc: Option<Cow<'l, str>>,
    /// Nanoseconds.
    #[serde(rename = "Duration")]
    traefik_duration: Option<u64>,
    #[serde(borrow, rename = "RequestMethod")]
    request_method: Option<Cow<'l, str>>,
    #[serde(borrow, rename = "RequestPath")]
    request_path: Option<Cow<'l, str>>,
    #[serde(rename = "DownstreamStatus")]
    downstream_status: Option<u16>,
    #[serde(rename = "DownstreamContentSize")]
    downstream_content_size: Option<u64>,
    #[serde(borrow, rename = "ClientHost")]
    client_host: Option<Cow<'l, str>>,
    #[serde(borrow, rename = "request_User-Agent")]
    traefik_agent: Option<Cow<'l, str>>,
    /// Envoy: begin.
    #[serde(borrow)]
    start_time: Option<Cow<'l, str>>,
    #[serde(borrow)]
    method: Option<Cow<'l, str>>,
    #[serde(borrow)]
    path: Option<Cow<'l, str>>,
    response_code: Option<u16>,
    bytes_sent: Option<u64>,
    #[serde(borrow)]
    downstream_remote_address: Option<Cow<'l, str>>,
    #[serde(borrow)]
    user_agent: Option<Cow<'l, str>>,
}

/// A time as a number or as text.
enum Moment {
    Seconds(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl serde::de::Visitor<'_> for Either {
            type Value = Moment;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a time as seconds or as text")
            }

            fn visit_f64<E>(self, seconds: f64) -> Result<Self::Value, E> {
                Ok(Moment::Seconds(seconds))
            }

            fn visit_u64<E>(self, seconds: u64) -> Result<Self::Value, E> {
                Ok(Moment::Seconds(seconds as f64))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Moment::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[derive(Deserialize)]
struct CaddyRequest<'l> {
    #[serde(borrow)]
    remote_ip: Option<Cow<'l, str>>,
    #[serde(borrow)]
    client_ip: Option<Cow<'l, str>>,
    #[serde(borrow)]
    method: Cow<'l, str>,
    #[serde(borrow)]
    uri: Cow<'l, str>,
    #[serde(borrow, default)]
    headers: CaddyHeaders<'l>,
}

#[derive(Default, Deserialize)]
struct CaddyHeaders<'l> {
    #[serde(borrow, rename = "User-Agent", default)]
    user_agent: Vec<Cow<'l, str>>,
}

const MICROSECOND: Nanos = Nanos(1_000);

/// Reads a line.
pub(super) fn read(text: &str) -> Result<LogLine<'_>, UnreadableLine> {
    if !text.starts_with('{') {
        return Err(UnreadableLine::OtherFormat);
    }
    let written: Written<'_> = serde_json::from_str(text).map_err(|e| match e.is_eof() {
        true => UnreadableLine::Half,
        false => UnreadableLine::OtherFormat,
    })?;
    if written.request.is_some() {
        read_caddy(written)
    } else if written.start_utc.is_some() {
        read_traefik(written)
    } else if written.start_time.is_some() {
        read_envoy(written)
    } else {
        // Servers write other events into the same file.
        Err(UnreadableLine::NoRequest)
    }
}

fn read_caddy(written: Written<'_>) -> Result<LogLine<'_>, UnreadableLine> {
    let request = written.request.ok_or(UnreadableLine::NoRequest)?;
    let (stamp, resolution) = match written.ts.ok_or(UnreadableLine::Stamp)? {
        // A float of today's seconds has a quarter of a microsecond.
        Moment::Seconds(seconds) => (from_seconds(seconds)?, MICROSECOND),
        Moment::Text(text) => from_text(&text)?,
    };
    let agent = request.headers.user_agent.into_iter().next();
    Ok(LogLine {
        stamp,
        stamped: Stamped { instant: StampedInstant::End, resolution },
        duration: written.duration.map(from_seconds).transpose()?,
        method: request.method,
        target: request.uri,
        status: written.status.unwrap_or(0),
        bytes: written.size,
        client: request.client_ip.or(request.remote_ip).unwrap_or_default(),
        agent: agent.unwrap_or_default(),
    })
}

fn read_traefik(written: Written<'_>) -> Result<LogLine<'_>, UnreadableLine> {
    let (stamp, resolution) = from_text(&written.start_utc.unwrap_or_default())?;
    Ok(LogLine {
        stamp,
        stamped: Stamped { instant: StampedInstant::Begin, resolution },
        duration: written.traefik_duration.map(Nanos),
        method: written.request_method.unwrap_or_default(),
        target: written.request_path.unwrap_or_default(),
        status: written.downstream_status.unwrap_or(0),
        bytes: written.downstream_content_size,
        client: written.client_host.unwrap_or_default(),
        agent: written.traefik_agent.unwrap_or_default(),
    })
}

fn read_envoy(written: Written<'_>) -> Result<LogLine<'_>, UnreadableLine> {
    let (stamp, resolution) = from_text(&written.start_time.unwrap_or_default())?;
    let duration = written.duration.map(|millis| from_seconds(millis / 1e3)).transpose()?;
    // Without the port, which each connection has of its own.
    let client = written.downstream_remote_address.unwrap_or_default();
    let end = client.rfind(':').unwrap_or(client.len());
    let client = match client {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
        Cow::Owned(text) => Cow::Owned(text[..end].to_owned()),
    };
    Ok(LogLine {
        stamp,
        stamped: Stamped { instant: StampedInstant::Begin, resolution },
        duration,
        method: written.method.unwrap_or_default(),
        target: written.path.unwrap_or_default(),
        status: written.response_code.unwrap_or(0),
        bytes: written.bytes_sent,
        client,
        agent: written.user_agent.unwrap_or_default(),
    })
}

/// The instant, and the resolution that its digits have.
fn from_text(text: &str) -> Result<(Nanos, Nanos), UnreadableLine> {
    let (stamp, digits) = read_rfc3339(text).ok_or(UnreadableLine::Stamp)?;
    Ok((stamp, super::resolution_of(digits)))
}

fn from_seconds(seconds: f64) -> Result<Nanos, UnreadableLine> {
    let is_time = (0.0..1.6e10).contains(&seconds);
    match is_time {
        true => Ok(Nanos((seconds * NANOS_PER_SECOND as f64) as u64)),
        false => Err(UnreadableLine::Stamp),
    }
}
