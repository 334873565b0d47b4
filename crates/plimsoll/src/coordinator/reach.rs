//! Finds the address of a target and whether anybody answers there, before a ladder starts.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use plimsoll_model::target::TargetUrl;

use crate::exit::Failure;

/// Longest wait for a first connection: a few retransmissions of the SYN.
const CONNECT_WAIT: Duration = Duration::from_secs(4);

/// The address of a URL's host.
pub fn resolve(url: &TargetUrl, default_port: u16) -> Result<SocketAddr, Failure> {
    let port = url.port.unwrap_or(default_port);
    let found = (url.host.as_str(), port).to_socket_addrs().map_err(|e| {
        Failure::unusable(format!(
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
        .ok_or_else(|| Failure::unusable(format!("{url}: the host name has no address")))
}

/// Opens one connection, and says exactly why it cannot.
pub fn connect(target: &str, address: SocketAddr) -> Result<TcpStream, Failure> {
    TcpStream::connect_timeout(&address, CONNECT_WAIT)
        .map_err(|e| Failure::unusable(format!("{target}: {}", why_unreachable(address, &e))))
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
            format!("{address} cannot be reached: {error}; check routing and the address")
        }
        Kind::ConnectionReset => format!(
            "{address} resets the connection at once; check what listens there and its limits"
        ),
        _ => format!("cannot connect to {address}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(failure: Failure) -> String {
        match failure {
            Failure::Other { message, .. } => message,
            Failure::Suite(error) => error.to_string(),
        }
    }

    #[test]
    fn a_refused_port_is_named_with_the_next_move() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let text = message(connect("http://t/", free).unwrap_err());
        assert!(text.starts_with(&format!("http://t/: {free} refuses")), "{text}");
        assert!(text.contains("check the port"), "{text}");
    }

    #[test]
    fn a_name_that_cannot_be_resolved_is_named() {
        let url = TargetUrl::parse("http://no-such-host.invalid/").unwrap();
        let failure = resolve(&url, 80).unwrap_err();
        assert_eq!(failure.exit(), crate::exit::Exit::Unusable);
        assert!(message(failure).contains("no-such-host.invalid"));
    }

    #[test]
    fn an_address_resolves_to_itself() {
        let url = TargetUrl::parse("http://[::1]:81/").unwrap();
        assert_eq!(resolve(&url, 80).unwrap(), "[::1]:81".parse().unwrap());
    }
}
