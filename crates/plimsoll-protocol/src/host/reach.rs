//! Finds the address of a target and whether anybody answers there, before a ladder starts.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use plimsoll_model::target::TargetUrl;

use super::HostError;

/// Longest wait for a first connection: a few retransmissions of the SYN.
const CONNECT_WAIT: Duration = Duration::from_secs(4);

/// The address of a URL's host.
pub fn resolve(url: &TargetUrl, default_port: u16) -> Result<SocketAddr, HostError> {
    let port = url.port.unwrap_or(default_port);
    let found = (url.host.as_str(), port).to_socket_addrs().map_err(|e| {
        HostError::unusable(format!(
            "{url}: the host name {:?} cannot be resolved: {e}; check its spelling and DNS, or \
             write an address",
            url.host
        ))
    })?;
    let all: Vec<SocketAddr> = found.collect();
    // IPv4 first: what most test networks route.
    all.iter()
        .find(|address| address.is_ipv4())
        .or_else(|| all.first())
        .copied()
        .ok_or_else(|| HostError::unusable(format!("{url}: the host name has no address")))
}

/// Opens one connection, and says exactly why it cannot.
pub fn connect(target: &str, address: SocketAddr) -> Result<TcpStream, HostError> {
    TcpStream::connect_timeout(&address, CONNECT_WAIT)
        .map_err(|e| HostError::unusable(format!("{target}: {}", why_unreachable(address, &e))))
}

fn why_unreachable(address: SocketAddr, error: &io::Error) -> String {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::ConnectionRefused => format!(
            "{address} refuses the connection: no server listens there; start it, or check the port"
        ),
        Kind::TimedOut | Kind::WouldBlock => format!(
            "{address} does not answer within {} s: the host is down or a firewall drops packets; \
             check the address and the rules",
            CONNECT_WAIT.as_secs()
        ),
        Kind::HostUnreachable | Kind::NetworkUnreachable => {
            format!(
                "{address} cannot be reached: {error}; check the address, the route and the link"
            )
        }
        Kind::ConnectionReset => format!(
            "{address} resets the connection at once: what listens there wants none or has reached \
             its limit; check what it is, its limits and who it lets in"
        ),
        _ => format!(
            "cannot connect to {address}: {error}; see whether the server runs there and this host \
             may connect to it"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(error: HostError) -> String {
        error.to_string()
    }

    #[test]
    fn a_refused_port_is_named_with_the_next_move() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let text = message(connect("http://t/", free).unwrap_err());
        assert!(text.starts_with(&format!("http://t/: {free} refuses")), "{text}");
        assert!(text.contains("check the port"), "{text}");
    }

    /// What, where, what it means and the next move.
    fn check_told(kind: io::ErrorKind, parts: &[&str]) {
        let address: SocketAddr = "192.0.2.17:8080".parse().unwrap();
        let text = why_unreachable(address, &kind.into());
        for part in [&["192.0.2.17:8080"], parts].concat() {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
    }

    #[test]
    fn every_way_not_to_connect_is_told_with_its_place_and_the_next_move() {
        use io::ErrorKind as Kind;
        let silence = ["does not answer within 4 s", "a firewall drops", "; check the address"];
        check_told(Kind::TimedOut, &silence);
        check_told(Kind::WouldBlock, &silence);
        let no_way = ["cannot be reached: ", "unreachable", "; check the address, the route"];
        check_told(Kind::HostUnreachable, &no_way);
        check_told(Kind::NetworkUnreachable, &no_way);
        let reset = ["resets the connection", "reached its limit", "; check what it is"];
        check_told(Kind::ConnectionReset, &reset);
        let refused = ["refuses", "no server listens there", "; start it, or check the port"];
        check_told(Kind::ConnectionRefused, &refused);
        let other = ["cannot connect to", "permission denied", "; see whether the server runs"];
        check_told(Kind::PermissionDenied, &other);
    }

    #[test]
    fn a_name_that_cannot_be_resolved_is_named() {
        let url = TargetUrl::parse("http://no-such-host.invalid/").unwrap();
        let failure = resolve(&url, 80).unwrap_err();
        assert_eq!(failure.kind, crate::host::HostErrorKind::Unusable);
        assert!(message(failure).contains("no-such-host.invalid"));
    }

    #[test]
    fn an_address_resolves_to_itself() {
        let url = TargetUrl::parse("http://[::1]:81/").unwrap();
        assert_eq!(resolve(&url, 80).unwrap(), "[::1]:81".parse().unwrap());
    }
}
