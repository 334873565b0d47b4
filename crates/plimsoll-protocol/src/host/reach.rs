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

/// In place of `HOST:PORT`: each address of the URL's host that answers is a separate target.
const ALL_ADDRESSES: &str = "all-addresses";

/// The address of a URL's host: the first that answers. If none does, the first: a server may take
/// datagrams, or only a portmapper may know its port.
pub fn resolve(url: &TargetUrl, default_port: u16) -> Result<ResolvedTarget, HostError> {
    let all = addresses(url, default_port)?;
    let reached = if all.len() == 1 { None } else { answering(url, &all, 1).ok() };
    Ok(one_of(url, &all, reached.and_then(|reached| reached.first().copied()).unwrap_or(all[0])))
}

/// The same, but fails if none of several addresses answers.
pub fn resolve_answering(url: &TargetUrl, default_port: u16) -> Result<ResolvedTarget, HostError> {
    let all = addresses(url, default_port)?;
    let reached = if all.len() == 1 { all.clone() } else { answering(url, &all, 1)? };
    Ok(one_of(url, &all, reached[0]))
}

fn one_of(url: &TargetUrl, all: &[SocketAddr], address: SocketAddr) -> ResolvedTarget {
    let others = all.iter().copied().filter(|other| *other != address).collect();
    ResolvedTarget { others, ..ResolvedTarget::new(url.clone(), address) }
}

/// Each address of a URL's host that answers, with the silent ones as `others`.
fn resolve_each(url: &TargetUrl, default_port: u16) -> Result<Vec<ResolvedTarget>, HostError> {
    let all = addresses(url, default_port)?;
    let reached = if all.len() == 1 { all.clone() } else { answering(url, &all, all.len())? };
    let is_silent = |address: &SocketAddr| !reached.contains(address);
    let others: Vec<SocketAddr> = all.iter().copied().filter(is_silent).collect();
    let target = |address: &SocketAddr| ResolvedTarget {
        others: others.clone(),
        is_one_of_several: reached.len() > 1,
        ..ResolvedTarget::new(url.clone(), *address)
    };
    Ok(reached.iter().map(target).collect())
}

/// All addresses of a URL's host, each once; IPv4 first: what most test networks route.
fn addresses(url: &TargetUrl, default_port: u16) -> Result<Vec<SocketAddr>, HostError> {
    let port = url.port.unwrap_or(default_port);
    let resolved = (url.host.as_str(), port).to_socket_addrs().map_err(|e| {
        HostError::unusable(format!(
            "{url}: the host name {:?} cannot be resolved: {e}; check its spelling and DNS, or \
             write an address",
            url.host
        ))
    })?;
    let mut all: Vec<SocketAddr> = Vec::new();
    for address in resolved {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    all.sort_by_key(SocketAddr::is_ipv6);
    match all.is_empty() {
        true => Err(HostError::unusable(format!("{url}: the host name has no address"))),
        false => Ok(all),
    }
}

/// The first addresses that answer, up to `most`; one at least.
fn answering(
    url: &TargetUrl,
    all: &[SocketAddr],
    most: usize,
) -> Result<Vec<SocketAddr>, HostError> {
    let (mut reached, mut silent) = (Vec::new(), Vec::new());
    for address in all {
        match TcpStream::connect_timeout(address, CONNECT_WAIT) {
            Ok(_) => reached.push(*address),
            Err(error) => silent.push(format!("{address} ({error})")),
        }
        if reached.len() == most {
            break;
        }
    }
    if !reached.is_empty() {
        return Ok(reached);
    }
    Err(HostError::unusable(format!(
        "{url}: none of the addresses of {:?} answers: {}; start the server, or check the port and \
         what the name stands for",
        url.host,
        silent.join(", ")
    )))
}

/// Where a suite has its clients connect in place of what `url` names.
pub fn resolve_instead(
    endpoint: &str,
    url: &TargetUrl,
    default_port: u16,
) -> Result<Vec<ResolvedTarget>, HostError> {
    if endpoint == ALL_ADDRESSES {
        return resolve_each(url, default_port);
    }
    if let Some(path) = endpoint.strip_prefix(UNIX) {
        let unix = Some(PathBuf::from(path));
        let target = ResolvedTarget::new(url.clone(), (Ipv4Addr::LOCALHOST, 0).into());
        return Ok(vec![ResolvedTarget { unix, ..target }]);
    }
    let wrong = || {
        HostError::wrong(format!(
            "{endpoint:?} is no endpoint; write HOST:PORT, or unix:PATH for a Unix socket"
        ))
    };
    let named = TargetUrl::parse(&format!("{}://{endpoint}", url.scheme)).map_err(|_| wrong())?;
    if named.path != "/" || named.user.is_some() {
        return Err(wrong());
    }
    Ok(vec![ResolvedTarget { url: url.clone(), ..resolve_answering(&named, default_port)? }])
}

/// Opens one connection, or reports exactly why it cannot. No read or write of it takes longer than
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
        HostError::unusable(format!("{name}: {}", why_unreachable(&target.endpoint(), &e)))
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
    /// What limits its resources; removed after it has ended.
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
        let resolved = ResolvedTarget::new(url, process.address);
        Ok(Self { spec, resolved, is_here: true, process: Some(process), confined: None, files })
    }

    /// As the user wrote it, without the password; with its address where others are targets too.
    pub fn name(&self) -> String {
        match self.resolved.is_one_of_several {
            true => format!("{} at {}", self.spec, self.resolved.address),
            false => self.spec.to_string(),
        }
    }

    /// Holds a server of ours to a share of the processors and a size of memory.
    pub fn hold(&mut self, confinement: &Confinement) -> Result<(), HostError> {
        if let Some(process) = self.process.as_ref().filter(|_| !confinement.is_none()) {
            confinement.hold(process, self.confined.insert(Confined::default()))?;
        }
        Ok(())
    }

    /// The directory it serves, if known.
    pub fn serves(&self) -> Option<&Path> {
        let shared = self.process.as_ref().and_then(|process| process.shared.as_deref());
        shared.or_else(|| self.files.as_ref().map(TempDir::path))
    }

    /// Ids of the server's processes, when it is ours or was found by the socket it listens on.
    pub fn pids(&self) -> Vec<u32> {
        match &self.process {
            Some(process) => vec![process.pid()],
            None => who_listens(&self.resolved).map(|listening| listening.pids).unwrap_or_default(),
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
        let target = ResolvedTarget::new(TargetUrl::parse("http://t/").unwrap(), free);
        let text = message(connect("http://t/", &target, CONNECT_WAIT).unwrap_err());
        assert!(text.starts_with(&format!("http://t/: {free} refuses")), "{text}");
        assert!(text.contains("check the port"), "{text}");
    }

    /// What failed, where, what it means and what to do next.
    fn check_message(kind: io::ErrorKind, parts: &[&str]) {
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
        check_message(Kind::TimedOut, &silence);
        check_message(Kind::WouldBlock, &silence);
        let no_route = ["cannot be reached: ", "unreachable", "; check the address, the route"];
        check_message(Kind::HostUnreachable, &no_route);
        check_message(Kind::NetworkUnreachable, &no_route);
        let reset = ["resets the connection", "reached its limit", "; check what it is"];
        check_message(Kind::ConnectionReset, &reset);
        let refused = ["refuses", "no server listens there", "; start it, or check the port"];
        check_message(Kind::ConnectionRefused, &refused);
        let other = ["cannot connect to", "permission denied", "; see whether the server runs"];
        check_message(Kind::PermissionDenied, &other);
    }

    #[test]
    fn a_name_that_cannot_be_resolved_is_named() {
        let url = TargetUrl::parse("http://no-such-host.invalid/").unwrap();
        let failure = resolve(&url, 80).unwrap_err();
        assert_eq!(failure.kind, crate::host::HostErrorKind::Unusable);
        assert!(message(failure).contains("no-such-host.invalid"));
    }

    #[test]
    fn of_several_addresses_the_first_that_answers_is_taken_and_silence_is_told_of_each() {
        let listener = std::net::TcpListener::bind("127.0.0.3:0").unwrap();
        let there = listener.local_addr().unwrap();
        let at = |ip: &str| SocketAddr::new(ip.parse().unwrap(), there.port());
        let (first, last) = (at("127.0.0.2"), at("127.0.0.4"));
        let url = TargetUrl::parse("http://three/").unwrap();
        assert_eq!(answering(&url, &[first, there, last], 1).unwrap(), [there]);
        let also = std::net::TcpListener::bind(last).unwrap();
        assert_eq!(answering(&url, &[there, first, last], 3).unwrap(), [there, last]);
        drop((listener, also));
        let failure = answering(&url, &[first, last], 1).unwrap_err();
        assert_eq!(failure.kind, crate::host::HostErrorKind::Unusable);
        let text = message(failure);
        let named = format!("none of the addresses of \"three\" answers: {first} (");
        assert!(text.contains(&named) && text.contains(&format!(", {last} (")), "{text}");
    }

    #[test]
    fn all_addresses_may_be_asked_for_and_one_alone_is_the_target_itself() {
        let url = TargetUrl::parse("http://127.0.0.1:81/").unwrap();
        let one = resolve_instead(ALL_ADDRESSES, &url, 80).unwrap();
        assert_eq!((one.len(), one[0].is_one_of_several), (1, false));
        let target = Target::running(
            TargetSpec::Url(url.clone()),
            ResolvedTarget { is_one_of_several: true, ..one[0].clone() },
        );
        assert_eq!(target.name(), "http://127.0.0.1:81/ at 127.0.0.1:81");
    }

    #[test]
    fn an_address_resolves_to_itself() {
        let url = TargetUrl::parse("http://[::1]:81/").unwrap();
        for resolved in [resolve(&url, 80).unwrap(), resolve_answering(&url, 80).unwrap()] {
            assert_eq!(resolved.address, "[::1]:81".parse().unwrap());
            assert!(resolved.others.is_empty());
        }
    }
}
