//! Addresses that clients connect from, where the user chose them (`--source`, and `sources` of an
//! agent).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use plimsoll_protocol::ResolvedTarget;

use crate::exit::Failure;

/// The discard protocol's port, for a socket that sends nothing.
const ANY_PORT: u16 = 9;

/// Refuses what is no address of this host, and what leads to none of these targets.
pub(crate) fn check(sources: &[IpAddr], targets: &[ResolvedTarget]) -> Result<(), Failure> {
    for source in sources {
        bound(*source).map_err(|error| not_here(*source, &error))?;
        for target in targets {
            if target.unix.is_some() {
                return Err(Failure::wrong(format!(
                    "source address {source}: {} is a Unix socket, which is reached without one; \
                     leave the source addresses out",
                    target.place()
                )));
            }
            check_way(*source, target.address)?;
        }
    }
    Ok(())
}

/// Refuses an address from which there is no way to a server at `to`, without sending anything.
pub(crate) fn check_way(source: IpAddr, to: SocketAddr) -> Result<(), Failure> {
    // The port of a server that is not started yet is 0.
    let port = if to.port() == 0 { ANY_PORT } else { to.port() };
    // To connect a datagram socket is to look for a route, and no more.
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

/// The address that this host chooses for connections to `to`; `None` where there is no way.
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
        let target = ResolvedTarget::at(TargetUrl::parse("http://a/").unwrap(), address);
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
            // RFC 5737: nobody's.
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
        let target = ResolvedTarget { unix, ..ResolvedTarget::at(url, ([127, 0, 0, 1], 0).into()) };
        let refused = check(&["127.0.0.1".parse().unwrap()], &[target]).unwrap_err().to_string();
        assert!(refused.contains("/run/web.sock is a Unix socket"), "{refused}");
    }
}
