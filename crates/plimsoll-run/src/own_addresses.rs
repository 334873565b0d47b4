//! Addresses that clients connect from, if the user chose them (`--source`, and `sources` of an
//! agent).

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use plimsoll_model::assignment::Endpoint;
use plimsoll_protocol::ResolvedTarget;

use crate::failure::Failure;

/// First and last local port of connections.
const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// The discard protocol's port, for a socket that sends nothing.
const ANY_PORT: u16 = 9;

/// Refuses addresses that are not of this host, or have no route to one of these targets.
pub(crate) fn check(sources: &[IpAddr], targets: &[ResolvedTarget]) -> Result<(), Failure> {
    for source in sources {
        bound(*source).map_err(|error| not_here(*source, &error))?;
        for target in targets {
            if target.unix.is_some() {
                return Err(Failure::wrong(format!(
                    "source address {source}: {} is a Unix socket, which is reached without one; \
                     leave the source addresses out",
                    target.endpoint()
                )));
            }
            check_route(*source, target.address)?;
        }
    }
    Ok(())
}

/// Refuses more connections than this host has ports for: each own address has one range of ports
/// towards each address of a server.
pub(crate) fn check_ports(
    connections: u32,
    sources: &[IpAddr],
    endpoints: &[Endpoint],
) -> Result<(), Failure> {
    let range = std::fs::read_to_string(PORT_RANGE).unwrap_or_default();
    let mut ends = range.split_whitespace().filter_map(|end| end.parse::<u64>().ok());
    let (Some(first), Some(last)) = (ends.next(), ends.next()) else { return Ok(()) };
    let ports = (last + 1).saturating_sub(first);
    let ip_endpoints = endpoints.iter().filter(|endpoint| endpoint.unix.is_none());
    let servers: BTreeSet<SocketAddr> = ip_endpoints.map(|endpoint| endpoint.address).collect();
    let own = sources.len().max(1);
    let room = ports * (own * servers.len()) as u64;
    if servers.is_empty() || u64::from(connections) <= room {
        return Ok(());
    }
    Err(Failure::unusable(format!(
        "{connections} connections need as many local ports, and this host has {room}: {ports} \
         ({PORT_RANGE}) from each of {own} own addresses to each of {} addresses of servers; \
         connect from more addresses (--source ADDR,ADDR…), widen the range, or ask for fewer \
         clients",
        servers.len()
    )))
}

/// Refuses an address without a route to a server at `to`. Sends nothing.
pub(crate) fn check_route(source: IpAddr, to: SocketAddr) -> Result<(), Failure> {
    // The port of a server that is not started yet is 0.
    let port = if to.port() == 0 { ANY_PORT } else { to.port() };
    // Connecting a datagram socket only looks up a route.
    let routed = bound(source).and_then(|socket| socket.connect((to.ip(), port)));
    routed.map_err(|error| {
        Failure::wrong(format!(
            "source address {source}: there is no way from it to {}: {error}; name an address of \
             a network that leads there (`ip route get {} from {source}` looks for one)",
            to.ip(),
            to.ip()
        ))
    })
}

/// The address that this host chooses for connections to `to`; `None` without a route.
pub(crate) fn towards(to: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(to).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

fn bound(source: IpAddr) -> io::Result<UdpSocket> {
    if source.is_unspecified() || source.is_multicast() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it names no single host"));
    }
    UdpSocket::bind((source, 0))
}

fn not_here(source: IpAddr, error: &io::Error) -> Failure {
    Failure::wrong(format!(
        "source address {source}: clients cannot connect from it: {error}; name addresses of the \
         host that makes the load (`ip address` shows them, `ip address add` makes more)"
    ))
}

#[cfg(test)]
mod tests {
    use plimsoll_model::target::TargetUrl;

    use super::*;

    fn checked(source: &str, to: &str) -> Result<(), String> {
        let address: SocketAddr = to.parse().unwrap();
        let target = ResolvedTarget::new(TargetUrl::parse("http://a/").unwrap(), address);
        check(&[source.parse().unwrap()], &[target]).map_err(|failure| failure.to_string())
    }

    #[test]
    fn addresses_of_this_host_that_lead_to_the_server_are_taken() {
        assert_eq!(checked("127.0.0.1", "127.0.0.1:80"), Ok(()));
        assert_eq!(checked("127.9.8.7", "127.0.0.1:0"), Ok(()));
    }

    #[test]
    fn other_addresses_are_refused_with_the_next_move() {
        for (source, to, parts) in [
            // RFC 5737: an address of no host.
            ("203.0.113.9", "127.0.0.1:80", ["203.0.113.9: clients cannot", "`ip address` shows"]),
            ("0.0.0.0", "127.0.0.1:80", ["no single host", "`ip address` shows"]),
            ("ff02::1", "127.0.0.1:80", ["no single host", "`ip address` shows"]),
            ("127.0.0.1", "[::1]:80", ["no way from it to ::1", "`ip route get ::1 from"]),
            ("127.0.0.1", "203.0.113.9:80", ["no way from it to 203.0.113.9", "leads there"]),
        ] {
            let refused = checked(source, to).unwrap_err();
            for part in parts {
                assert!(refused.contains(part), "{part:?} is not in: {refused}");
            }
        }
    }

    #[test]
    fn the_systems_own_choice_is_known() {
        let to = "127.0.0.1:80".parse().unwrap();
        assert_eq!(towards(to), Some(to.ip()));
    }

    #[test]
    fn a_unix_socket_is_reached_from_no_address() {
        let url = TargetUrl::parse("http://a/").unwrap();
        let unix = Some("/run/web.sock".into());
        let target =
            ResolvedTarget { unix, ..ResolvedTarget::new(url, ([127, 0, 0, 1], 0).into()) };
        let refused = check(&["127.0.0.1".parse().unwrap()], &[target]).unwrap_err().to_string();
        assert!(refused.contains("/run/web.sock is a Unix socket"), "{refused}");
    }

    #[test]
    fn connections_beyond_the_ports_of_this_host_are_refused_with_both_numbers() {
        let at = |address: &str, unix: bool| Endpoint {
            target: "http://h/".to_owned(),
            address: address.parse().unwrap(),
            unix: unix.then(|| "/run/a.sock".into()),
        };
        let (one, other) = (at("192.0.2.1:80", false), at("192.0.2.2:80", false));
        let sources = ["127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap()];
        let refused = |n, sources: &[IpAddr], to: &[Endpoint]| check_ports(n, sources, to).is_err();
        assert!(!refused(1_000, &[], std::slice::from_ref(&one)));
        // There are fewer ports than 65,536 in any range.
        assert!(refused(65_536, &[], &[one.clone(), one.clone()]));
        assert!(refused(4 * 65_536, &sources, &[one.clone(), other]));
        assert!(!refused(u32::MAX, &[], &[at("127.0.0.1:0", true)]));
        let text = check_ports(70_000, &[], &[one]).unwrap_err().to_string();
        assert!(text.contains("70000 connections") && text.contains("--source"), "{text}");
    }
}
