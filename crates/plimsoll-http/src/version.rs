//! Which version of HTTP a run speaks, and the TLS below it: decided once, before any load.

use std::time::Duration;

use plimsoll_model::disclosure::Setting;
use plimsoll_model::target::TargetUrl;
use plimsoll_model::units::grouped;
use plimsoll_protocol::net::SetupError;
use plimsoll_protocol::{PlanError, PlanRequest};

use super::error::HttpPlanError;
use super::h2::hpack::TABLE_BYTES;
use super::h2::windows::{H2Settings, PeerSettings};
use super::parameters::{HttpVersion, HttpWorkload};
use super::tls::{self, ALPN_HTTP1, ALPN_HTTP2};
use super::transport::{TlsLoad, tls_load};
use super::warm::channel;
use super::workload::HttpLoad;

/// What is spoken.
pub struct Spoken {
    /// Of HTTP/2, where that is spoken.
    pub h2: Option<H2Settings>,
    /// For `https` targets.
    pub tls: Option<TlsLoad>,
    /// Facts for the report; none for HTTP/1.1 if no other version was requested.
    pub facts: Vec<Setting>,
}

impl Spoken {
    /// Negotiates with the servers if the suite leaves the version to them and `decided` has no
    /// result: agents use the version that their controller has decided.
    pub fn new(
        workload: &HttpWorkload,
        secure: bool,
        request: &PlanRequest<'_>,
        decided: Option<HttpVersion>,
    ) -> Result<Self, PlanError> {
        let mut tls =
            if secure { Some(tls_load(workload, request.targets, request.files)?) } else { None };
        let (is_http2, how) = match (decided.unwrap_or(workload.http), &tls) {
            (HttpVersion::Http1, _) => return Ok(Self { h2: None, tls, facts: Vec::new() }),
            (HttpVersion::Http2, None) => (true, "2, by prior knowledge"),
            (HttpVersion::Http2, Some(_)) => (true, "2, by ALPN"),
            (HttpVersion::Auto, None) => (false, "1.1, as no server without TLS is asked for 2"),
            (HttpVersion::Auto, Some(load)) => match agree_on_http2(load, request)? {
                true => (true, "2, on which the servers agree (ALPN)"),
                false => (false, "1.1, as not all servers agree on 2 (ALPN)"),
            },
        };
        let mut facts = vec![Setting::new("HTTP version", how)];
        if !is_http2 {
            return Ok(Self { h2: None, tls, facts });
        }
        if let Some(load) = &mut tls {
            load.config = tls::offering(&load.config, &[ALPN_HTTP2]);
        }
        let settings = workload.h2_settings();
        facts.extend(own_facts(settings));
        Ok(Self { h2: Some(settings), tls, facts })
    }

    /// What is spoken, for agents.
    pub fn version(&self) -> HttpVersion {
        if self.h2.is_some() { HttpVersion::Http2 } else { HttpVersion::Http1 }
    }
}

fn own_facts(settings: H2Settings) -> [Setting; 3] {
    let H2Settings { streams, windows } = settings;
    [
        Setting::new(
            "streams a connection",
            format!("up to {streams} at a time, where the server allows them"),
        ),
        Setting::new(
            "client's windows",
            format!(
                "{} bytes a stream, {} bytes a connection",
                grouped(windows.stream_bytes.into()),
                grouped(windows.connection_bytes.into())
            ),
        ),
        Setting::new(
            "header compression",
            format!("HPACK with tables of {} bytes", grouped(TABLE_BYTES.into())),
        ),
    ]
}

/// HTTP/2 in a certificate of calibration, which has each version on its own.
pub(crate) const HTTP2: &str = "http over HTTP/2";

/// What a certificate must have for this load, if the protocol's name does not say it.
pub(crate) fn spoken_name(load: &HttpLoad) -> Option<&'static str> {
    load.h2.is_some().then_some(HTTP2)
}

/// A server's settings as a fact.
pub fn peer_fact(peer: PeerSettings) -> Setting {
    let streams = match peer.streams_max {
        u32::MAX => "streams without limit".to_owned(),
        streams => format!("up to {streams} streams at a time"),
    };
    let window = grouped(peer.window_bytes.into());
    let settings = format!("{streams}, windows of {window} bytes a stream");
    Setting::new("server's settings", format!("{settings}; as it said before the load"))
}

/// Refuses a run whose requests would wait in the client.
pub fn check_streams(
    target: &TargetUrl,
    peer: PeerSettings,
    own: H2Settings,
) -> Result<(), HttpPlanError> {
    if own.streams <= peer.streams_max {
        return Ok(());
    }
    let (target, allowed, requested) = (target.to_string(), peer.streams_max, own.streams);
    Err(HttpPlanError::TooManyStreams { target, allowed, requested })
}

/// All targets agree on HTTP/2 when they may choose.
fn agree_on_http2(load: &TlsLoad, request: &PlanRequest<'_>) -> Result<bool, SetupError> {
    let timeout = Duration::from_nanos(request.suite.op_timeout.0);
    for (target, tls) in request.targets.iter().zip(load.sites()) {
        let mut channel = channel(target, request.dial)?;
        let names = [ALPN_HTTP2, ALPN_HTTP1];
        let agreed = tls.agreed(&names, &mut *channel, &request.dial.stop(), timeout);
        if agreed.as_deref() != Some(ALPN_HTTP2) {
            return Ok(false);
        }
    }
    Ok(true)
}
