//! Access control, and the header fields of every answer.
//!
//! Any program of this host can reach a port of loopback, and so can any page in a browser of this
//! host. The token keeps both out: nobody else knows the path. The check that `Host` names loopback
//! keeps out pages whose own name resolves to this address (DNS rebinding), even if they learnt the
//! token.

use std::io;
use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_servers::process::random_hex;
use sha2::{Digest as _, Sha256};

/// 128 bits cannot be guessed.
const TOKEN_BYTES: usize = 16;
pub(super) const NOT_HERE: &str = "This page answers to the names of loopback only, as 127.0.0.1 and \
    localhost; from elsewhere it is reached through ssh -L.\n";

pub(super) struct Door {
    at: SocketAddr,
    token: String,
    fields: String,
}

impl Door {
    /// Draws a token for this run. Only the scripts and styles of `page` may ever be used.
    pub(super) fn new(at: SocketAddr, page: &str) -> io::Result<Self> {
        let token = random_hex(TOKEN_BYTES).map_err(io::Error::other)?;
        let fields = format!(
            "content-security-policy: {}\r\ncache-control: no-store\r\n\
             referrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\n\
             cross-origin-resource-policy: same-origin\r\n",
            policy(page)
        );
        Ok(Self { at, token, fields })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/{}/", self.at, self.token)
    }

    /// The first segment of every path that is answered.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Header fields of every answer, a line each.
    pub(super) fn fields(&self) -> &str {
        &self.fields
    }
}

/// Whether the field `Host` of a request is of this host. The port may differ: that of a tunnel.
pub(super) fn names_loopback(host: Option<&str>) -> bool {
    let Some(host) = host else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// Allows the page's own script and style by their hashes, its events, and nothing else.
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
    use plimsoll_servers::web::Head;

    use super::*;

    #[test]
    fn only_names_of_loopback_are_answered() {
        let named = |hosts: &[&str]| {
            let lines: String = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect();
            let head = Head::read(format!("GET / HTTP/1.1\r\n{lines}\r\n").as_bytes(), 0);
            head.is_ok_and(|head| names_loopback(head.unwrap().host.as_deref()))
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
        assert!(door().fields().contains(sum), "{}", door().fields());
    }
}
