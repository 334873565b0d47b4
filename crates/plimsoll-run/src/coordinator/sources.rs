//! Other hosts that a run monitors (`--monitor`).

use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};

use plimsoll_model::monitored::{MonitoredSource, SourceRole};
use plimsoll_model::units::counted;
use plimsoll_monitor::{DiskTree, MonitorUrl, Source, SourceOptions};

use crate::failure::Failure;
use crate::secrets;
use plimsoll_protocol::host::Target;

/// A value of `--monitor`: a source, and its role if that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedMonitor {
    /// The source.
    pub url: MonitorUrl,
    /// `None` where the role is to be found.
    pub role: Option<SourceRole>,
}

impl fmt::Display for RequestedMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(role) = self.role {
            write!(f, "{}=", role.as_str())?;
        }
        self.url.fmt(f)
    }
}

/// Connects to every source, before servers are started and before there is any load. This host is
/// always monitored, and needs no connection.
pub(crate) fn open(monitors: &[RequestedMonitor]) -> Result<Vec<OpenedSource>, Failure> {
    let others = monitors.iter().filter(|monitor| monitor.url != MonitorUrl::Local);
    let open = |monitor: &RequestedMonitor| {
        let options = SourceOptions {
            community: secrets::community(&monitor.url)?,
            ..SourceOptions::default()
        };
        let source = Source::open(&monitor.url, &options)
            .map_err(|e| Failure::unusable(format!("--monitor {e}")))?;
        let (addresses, disks) = (source.addresses().to_vec(), source.disks().clone());
        let host = SourceHost { monitor: monitor.clone(), addresses, disks };
        Ok(OpenedSource { host, source })
    };
    others.map(open).collect()
}

/// A source that has answered, and its host.
pub(crate) struct OpenedSource {
    pub(crate) host: SourceHost,
    pub(crate) source: Source,
}

/// The host of a source.
#[derive(Clone, Debug)]
pub(crate) struct SourceHost {
    monitor: RequestedMonitor,
    addresses: Vec<IpAddr>,
    disks: DiskTree,
}

impl SourceHost {
    pub(crate) const fn url(&self) -> &MonitorUrl {
        &self.monitor.url
    }

    pub(crate) const fn disks(&self) -> &DiskTree {
        &self.disks
    }

    /// For the disclosure.
    pub(crate) fn disclosed(&self) -> MonitoredSource {
        MonitoredSource {
            source: self.url().name(),
            role: self.monitor.role,
            addresses: self.addresses.iter().map(ToString::to_string).collect(),
        }
    }

    /// Ports of the servers that run on the host: on other hosts another program may listen on
    /// them. Of a host that is the server's because the user says so, or whose name only ssh's
    /// configuration knows, all ports.
    pub(crate) fn ports(&self, targets: &[Target]) -> Vec<u16> {
        let MonitorUrl::Ssh { host, .. } = self.url() else { return Vec::new() };
        let resolved = (host.as_str(), 0).to_socket_addrs().ok();
        let named: Option<Vec<IpAddr>> = resolved.map(|all| all.map(|it| it.ip()).collect());
        let is_there = |target: &&Target| {
            let ip = target.resolved.address.ip();
            target.resolved.url.host == *host
                || self.addresses.contains(&ip)
                || named.as_ref().is_some_and(|named| named.contains(&ip))
        };
        let is_elsewhere = |target: &&Target| !target.resolved.address.ip().is_loopback();
        let mut there: Vec<&Target> = match self.monitor.role {
            None | Some(SourceRole::Server) => targets.iter().filter(is_there).collect(),
            Some(_) => return Vec::new(),
        };
        let is_certain = self.monitor.role.is_some();
        if there.is_empty() && (is_certain || named.is_none()) {
            there = targets.iter().filter(is_elsewhere).collect();
        }
        let mut ports: Vec<u16> =
            there.iter().map(|target| target.resolved.address.port()).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }
}

/// The value of `--monitor` that means the agents' hosts.
pub(crate) const AGENTS: &str = "agents";

/// The values of `--monitor` that mean the agents' hosts, and the others.
pub fn agents_apart(texts: &[String]) -> (Vec<String>, Vec<String>) {
    texts.iter().cloned().partition(|text| text == AGENTS)
}

/// Parses the flag's values, each once.
pub fn parse(texts: &[String]) -> Result<Vec<RequestedMonitor>, Failure> {
    let monitors = texts.iter().map(|text| parse_one(text)).collect::<Result<Vec<_>, _>>()?;
    refuse_twice(&monitors)?;
    Ok(monitors)
}

/// Refuses a source that is there twice, and two that write into one directory.
pub(crate) fn refuse_twice(monitors: &[RequestedMonitor]) -> Result<(), Failure> {
    for (at, monitor) in monitors.iter().enumerate() {
        let (name, directory) = (monitor.url.name(), monitor.url.directory());
        let mut earlier = monitors[..at].iter().map(|it| &it.url);
        if earlier.clone().any(|url| url.name() == name) {
            return Err(Failure::wrong(format!("--monitor {name} is given twice; leave one out")));
        }
        if let Some(other) = earlier.find(|url| url.directory() == directory) {
            return Err(Failure::wrong(format!(
                "--monitor {name} and {other} would write into one directory, {directory}; name one of \
                 them by its address"
            )));
        }
    }
    Ok(())
}

/// `URL` or `ROLE=URL`.
fn parse_one(text: &str) -> Result<RequestedMonitor, Failure> {
    let has_role = |(before, _): &(&str, &str)| !before.contains([':', '/']);
    let Some((word, url)) = text.split_once('=').filter(has_role) else {
        return Ok(RequestedMonitor { url: parse_url(text)?, role: None });
    };
    let Some(role) = SourceRole::from_given(word) else {
        let roles: Vec<&str> = SourceRole::given().map(SourceRole::as_str).collect();
        return Err(Failure::wrong(format!(
            "--monitor {word}=…: {word:?} is no role of a monitored host; write one of {}",
            roles.join(", ")
        )));
    };
    match parse_url(url)? {
        MonitorUrl::Local => Err(Failure::wrong(format!(
            "--monitor {word}=local: this host is always monitored, and its role is known; leave \
             it out"
        ))),
        url => Ok(RequestedMonitor { url, role: Some(role) }),
    }
}

fn parse_url(text: &str) -> Result<MonitorUrl, Failure> {
    MonitorUrl::parse(text).map_err(|e| Failure::wrong(e.to_string()))
}

/// Refuses more hosts of servers than there are servers.
pub(crate) fn refuse_more_servers_than_targets(
    monitors: &[RequestedMonitor],
    targets: usize,
) -> Result<(), Failure> {
    let servers = monitors.iter().filter(|it| it.role == Some(SourceRole::Server));
    let names: Vec<String> = servers.map(|it| it.url.name()).collect();
    match names.len() > targets {
        true => Err(Failure::wrong(format!(
            "--monitor: {} are given as hosts of servers, and the run has {}; leave out the role \
             of those that watch the same host once more",
            names.join(" and "),
            counted(targets, "target"),
        ))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(texts: &[&str]) -> Result<Vec<String>, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let urls = parse(&texts).map_err(|failure| failure.to_string())?;
        Ok(urls.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_source_is_named_once_and_has_a_directory_of_its_own() {
        let urls = parsed(&["local", "ssh://db", "snmp://s3cret@db"]).unwrap();
        assert_eq!(urls, ["local", "ssh://db", "snmp://(left out)@db"]);
        let twice = parsed(&["snmp://s3cret@db", "snmp://s4cret@db"]).unwrap_err();
        assert_eq!(twice, "--monitor snmp://db is given twice; leave one out");
        let roles = ["database=ssh://db2", "network=snmp://s3cret@switch"];
        assert_eq!(
            parsed(&roles).unwrap(),
            ["database=ssh://db2", "network=snmp://(left out)@switch"]
        );
        let same_directory = parsed(&["ssh://a-b", "ssh://a@b"]).unwrap_err();
        assert!(same_directory.contains("one directory, ssh-a-b"), "{same_directory}");
    }

    #[test]
    fn a_role_is_one_that_a_monitored_host_can_have() {
        for (text, parts) in [
            ("nas=ssh://nas", ["\"nas\" is no role", "server, database, network, client"]),
            ("other=ssh://nas", ["\"other\" is no role", "server, database, network, client"]),
            ("server=local", ["this host is always monitored", "leave it out"]),
            ("server=nas", ["names no source", "ssh://[user@]host[:port]"]),
        ] {
            let refusal = parsed(&[text]).unwrap_err();
            assert!(parts.iter().all(|part| refusal.contains(part)), "{text}: {refusal}");
        }
        let query = ["http://nas:9100/metrics?collect=cpu"];
        assert_eq!(parsed(&query).unwrap(), query, "an equals sign within a URL");
        let two = ["server=ssh://a".to_owned(), "server=ssh://b".to_owned()];
        let two = parse(&two).unwrap();
        assert!(refuse_more_servers_than_targets(&two, 2).is_ok());
        let refusal = refuse_more_servers_than_targets(&two, 1).unwrap_err().to_string();
        assert!(
            refusal.contains("ssh://a and ssh://b") && refusal.contains("1 target"),
            "{refusal}"
        );
    }
}
