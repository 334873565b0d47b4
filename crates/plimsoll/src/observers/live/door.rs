//! Who may come in, and what every answer carries.
//!
//! Any program of this host can reach a port of loopback, and so can any page in a browser of this
//! host. The token keeps both out: nobody else knows the way. That `Host` names loopback keeps out
//! pages whose own name was made to lead here (DNS rebinding), even if they learnt the token.

use std::io;
use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_servers::process::random_hex;
use sha2::{Digest as _, Sha256};

/// Nobody guesses 128 bits.
const TOKEN_BYTES: usize = 16;
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");
const NOT_HERE: &str = "This page answers to the names of loopback only, as 127.0.0.1 and \
    localhost; from elsewhere it is reached through ssh -L.\n";

#[derive(Clone)]
pub(super) struct Door {
    at: SocketAddr,
    token: String,
    policy: HeaderValue,
}

impl Door {
    /// With a token drawn for this run. `page` is all that will ever run a script or be styled.
    pub(super) fn new(at: SocketAddr, page: &str) -> io::Result<Self> {
        let token = random_hex(TOKEN_BYTES).map_err(io::Error::other)?;
        let policy = HeaderValue::from_str(&policy(page)).map_err(io::Error::other)?;
        Ok(Self { at, token, policy })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/{}/", self.at, self.token)
    }

    /// A path below the token.
    pub(super) fn path(&self, name: &str) -> String {
        format!("/{}/{name}", self.token)
    }
}

/// Turns away who asks for another host, and puts the fields on every answer.
pub(super) async fn guard(State(door): State<Door>, request: Request, next: Next) -> Response {
    let mut response = match names_loopback(request.headers()) {
        true => next.run(request).await,
        false => (StatusCode::FORBIDDEN, NOT_HERE).into_response(),
    };
    let fields = response.headers_mut();
    fields.insert(CONTENT_SECURITY_POLICY, door.policy);
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    fields.insert(CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// The port may be another: that of a tunnel.
fn names_loopback(fields: &HeaderMap) -> bool {
    let mut hosts = fields.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next())
    else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// The page's own script and style by their sums, its events, and nothing else.
fn policy(page: &str) -> String {
    let sum_of = |tag: &str| {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        let inner = page.split_once(&open).and_then(|(_, rest)| rest.split_once(&close));
        STANDARD.encode(Sha256::digest(inner.map_or("", |(inner, _)| inner)))
    };
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        sum_of("script"),
        sum_of("style")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_loopback_are_answered() {
        let named = |hosts: &[&str]| {
            let mut fields = HeaderMap::new();
            for host in hosts {
                fields.append(HOST, HeaderValue::from_str(host).unwrap());
            }
            names_loopback(&fields)
        };
        for host in ["127.0.0.1", "127.0.0.1:80", "localhost:8000", "LocalHost", "[::1]:1", "[::1]"]
        {
            assert!(named(&[host]), "{host}");
        }
        for host in ["", "evil.example", "localhost.evil.example:80", "192.0.2.7", "127.0.0.1:x"] {
            assert!(!named(&[host]), "{host}");
        }
        assert!(!named(&[]));
        assert!(!named(&["localhost", "evil.example"]));
    }

    #[test]
    fn tokens_differ_and_the_policy_names_the_script_of_the_page() {
        let at = SocketAddr::from(([127, 0, 0, 1], 8000));
        let door = || Door::new(at, "<style>a{}</style><script>1</script>").unwrap();
        let url = door().url();
        assert_eq!(url.len(), "http://127.0.0.1:8000//".len() + 32, "{url}");
        assert_ne!(url, door().url());
        // printf 1 | openssl dgst -sha256 -binary | base64
        let sum = "script-src 'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s='";
        assert!(door().policy.to_str().unwrap().contains(sum), "{:?}", door().policy);
    }
}
