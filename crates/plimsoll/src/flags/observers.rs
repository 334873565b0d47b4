//! Flags of observers: who watches a run live.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
use plimsoll_run::observers::{ExportUrl, ObserverOptions};

use crate::exit::Failure;

#[derive(Clone, Debug, Args)]
pub(crate) struct ObserverArgs {
    /// Show the run live on a page of this host, on a loopback address [default: 127.0.0.1 and a
    /// free port]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:0", value_parser = parse_live)]
    pub live: Option<SocketAddr>,
    /// Send each second and each finished load point to a collector: otlp=https://HOST:4318
    /// (OpenTelemetry, protobuf over HTTP), or otlp-delta=… if it takes only deltas; may be given
    /// often. OTEL_EXPORTER_OTLP_HEADERS holds header fields, OTEL_EXPORTER_OTLP_CERTIFICATE the
    /// name of a PEM file with certificates to trust
    #[arg(long, value_name = "otlp=URL")]
    pub export: Vec<String>,
}

impl ObserverArgs {
    /// The requested observers.
    pub(crate) fn options(&self) -> Result<ObserverOptions, Failure> {
        Ok(ObserverOptions { live: self.live, exports: ExportUrl::parse_all(&self.export)? })
    }
}

/// `127.0.0.1:8000`, `localhost:8000`, `[::1]:8000`, a port, or an address.
fn parse_live(text: &str) -> Result<SocketAddr, String> {
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    let named = text.strip_prefix("localhost:").unwrap_or(text);
    let address = named.parse::<SocketAddr>().ok();
    let address = address.or_else(|| Some(SocketAddr::new(here, named.parse().ok()?)));
    let address = address.or_else(|| Some(SocketAddr::new(named.parse().ok()?, 0)));
    let address = address.ok_or(
        "not an address; write ADDRESS:PORT, for example --live 127.0.0.1:8000, or put --live \
         last to have a free port",
    )?;
    if !address.ip().is_loopback() {
        return Err(format!(
            "{} is not an address of loopback: whoever reaches it would see the run, over a \
             connection that is not encrypted. Leave it out, and look from elsewhere through \
             ssh -L 8000:127.0.0.1:PORT HOST",
            address.ip()
        ));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_shown_on_loopback_alone() {
        for (text, address) in [
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("127.9.9.9:80", "127.9.9.9:80"),
            ("[::1]:8000", "[::1]:8000"),
            ("localhost:8000", "127.0.0.1:8000"),
            ("8000", "127.0.0.1:8000"),
            ("::1", "[::1]:0"),
        ] {
            assert_eq!(parse_live(text).unwrap().to_string(), address, "{text}");
        }
        for open in ["0.0.0.0:8000", "[::]:8000", "192.0.2.7:80", "10.0.0.1"] {
            let why = parse_live(open).unwrap_err();
            assert!(why.contains("ssh -L") && why.contains("not encrypted"), "{why}");
        }
        assert!(parse_live("web-static").unwrap_err().contains("put --live last"));
    }
}
