//! The targets of a run: the address of each, whether anybody answers there before a ladder starts,
//! and the process of its server where the run started it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_model::target::{TargetSpec, TargetUrl};
use plimsoll_servers::listener::{self, Listening};
use plimsoll_servers::{Confined, Confinement, ServerProcess};
pub use socket2::Socket;
use socket2::{Domain, SockAddr, Type};
use tempfile::TempDir;

use super::{HostError, Started};
use crate::ResolvedTarget;

/// Longest wait for a first connection: a few retransmissions of the SYN.
const CONNECT_WAIT: Duration = Duration::from_secs(4);
/// Begins the path of a Unix socket.
const UNIX: &str = "unix:";

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

/// Where a suite has its clients connect in place of what `url` names.
pub fn resolve_instead(
    place: &str,
    url: &TargetUrl,
    default_port: u16,
) -> Result<ResolvedTarget, HostError> {
    if let Some(path) = place.strip_prefix(UNIX) {
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let unix = Some(PathBuf::from(path));
        return Ok(ResolvedTarget { url: url.clone(), address, unix });
    }
    let wrong = || {
        HostError::wrong(format!(
            "{place:?} is no place to connect to; write HOST:PORT, or unix:PATH for a Unix socket"
        ))
    };
    let named = TargetUrl::parse(&format!("{}://{place}", url.scheme)).map_err(|_| wrong())?;
    if named.path != "/" || named.user.is_some() {
        return Err(wrong());
    }
    Ok(ResolvedTarget::at(url.clone(), resolve(&named, default_port)?))
}

/// Opens one connection, and says exactly why it cannot. No read or write of it takes longer than
/// `wait`.
pub fn connect(name: &str, target: &ResolvedTarget, wait: Duration) -> Result<Socket, HostError> {
    let open = || {
        let socket = match &target.unix {
            Some(path) => unix_socket(path)?,
            None => TcpStream::connect_timeout(&target.address, CONNECT_WAIT)?.into(),
        };
        socket.set_read_timeout(Some(wait))?;
        socket.set_write_timeout(Some(wait))?;
        Ok(socket)
    };
    open().map_err(|e: io::Error| {
        HostError::unusable(format!("{name}: {}", why_unreachable(&target.place(), &e)))
    })
}

/// A connection to a Unix socket of this host.
pub fn unix_socket(path: &Path) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.connect(&SockAddr::unix(path)?)?;
    Ok(socket)
}

fn why_unreachable(address: &str, error: &io::Error) -> String {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound => format!(
            "{address} is not there: no server has made it; start the server, or check the path"
        ),
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

/// A target of a run.
#[derive(Debug)]
pub struct Target {
    /// As the user wrote it.
    pub spec: TargetSpec,
    /// Where it is.
    pub resolved: ResolvedTarget,
    /// It is on this host, in a network namespace of its own or not.
    pub is_here: bool,
    /// Its process, when this run started it.
    pub process: Option<ServerProcess>,
    /// What holds it to less than it could have; removed after it has ended.
    confined: Option<Confined>,
    /// Its file set, when this run wrote it.
    files: Option<TempDir>,
}

impl Target {
    /// A server that somebody else has started.
    pub fn running(spec: TargetSpec, resolved: ResolvedTarget) -> Self {
        let is_here = is_here(&resolved);
        Self { spec, resolved, is_here, process: None, confined: None, files: None }
    }

    /// A server that this run has started.
    pub fn started(spec: TargetSpec, started: Started) -> Result<Self, HostError> {
        let Started { process, url, files } = started;
        let url = TargetUrl::parse(&url).map_err(|e| HostError::wrong(e.to_string()))?;
        let resolved = ResolvedTarget::at(url, process.address);
        Ok(Self { spec, resolved, is_here: true, process: Some(process), confined: None, files })
    }

    /// As the user wrote it, without the password.
    pub fn name(&self) -> String {
        self.spec.to_string()
    }

    /// Holds a server of ours to a share of the processors and a size of memory.
    pub fn hold(&mut self, confinement: &Confinement) -> Result<(), HostError> {
        if let Some(process) = self.process.as_ref().filter(|_| !confinement.is_none()) {
            self.confined = Some(confinement.hold(process)?);
        }
        Ok(())
    }

    /// The directory it serves, where that is known.
    pub fn serves(&self) -> Option<&Path> {
        let shared = self.process.as_ref().and_then(|process| process.shared.as_deref());
        shared.or_else(|| self.files.as_ref().map(TempDir::path))
    }

    /// Ids of the server's processes, when it is ours or was found by the socket it listens on.
    pub fn pids(&self) -> Vec<u32> {
        match &self.process {
            Some(process) => vec![process.pid()],
            None => who_listens(&self.resolved).map(|found| found.pids).unwrap_or_default(),
        }
    }
}

/// Is its server on this host?
pub fn is_here(target: &ResolvedTarget) -> bool {
    target.unix.is_some() || listener::is_here(target.address)
}

/// The processes of this host that listen where the target is.
pub fn who_listens(target: &ResolvedTarget) -> Option<Listening> {
    match &target.unix {
        Some(path) => listener::on_unix(path),
        None => listener::on(target.address),
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
        let target = ResolvedTarget::at(TargetUrl::parse("http://t/").unwrap(), free);
        let text = message(connect("http://t/", &target, CONNECT_WAIT).unwrap_err());
        assert!(text.starts_with(&format!("http://t/: {free} refuses")), "{text}");
        assert!(text.contains("check the port"), "{text}");
    }

    /// What, where, what it means and the next move.
    fn check_told(kind: io::ErrorKind, parts: &[&str]) {
        let address: SocketAddr = "192.0.2.17:8080".parse().unwrap();
        let text = why_unreachable(&address.to_string(), &kind.into());
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
