//! Other hosts that a run watches (`--monitor`).

use std::net::{IpAddr, ToSocketAddrs};

use plimsoll_monitor::{MonitorUrl, Source, SourceWish};

use crate::exit::Failure;
use crate::secrets;
use plimsoll_protocol::host::Target;

/// Reaches every source, before servers are started and before there is any load. This host is
/// always watched, and needs no reaching.
pub(crate) fn open(urls: &[MonitorUrl]) -> Result<Vec<Source>, Failure> {
    let others = urls.iter().filter(|url| **url != MonitorUrl::Local);
    let open = |url| {
        let wish = SourceWish { community: secrets::community(url)?, ..SourceWish::default() };
        Source::open(url, &wish).map_err(|e| Failure::unusable(format!("--monitor {e}")))
    };
    others.map(open).collect()
}

/// The value of `--monitor` that means the agents' hosts.
pub(crate) const AGENTS: &str = "agents";

/// The values of `--monitor` that mean the agents' hosts, and the others.
pub(crate) fn agents_apart(texts: &[String]) -> (Vec<String>, Vec<String>) {
    texts.iter().cloned().partition(|text| text == AGENTS)
}

/// What the user typed, each once.
pub(crate) fn parse(texts: &[String]) -> Result<Vec<MonitorUrl>, Failure> {
    let mut urls: Vec<MonitorUrl> = Vec::new();
    for text in texts {
        let url = MonitorUrl::parse(text).map_err(|e| Failure::wrong(e.to_string()))?;
        let (name, place) = (url.name(), url.directory());
        if urls.iter().any(|known| known.name() == name) {
            return Err(Failure::wrong(format!("--monitor {name} is given twice; leave one out")));
        }
        if let Some(other) = urls.iter().find(|known| known.directory() == place) {
            return Err(Failure::wrong(format!(
                "--monitor {name} and {other} would write into one directory, {place}; name one of \
                 them by its address"
            )));
        }
        urls.push(url);
    }
    Ok(urls)
}

/// Ports of the servers that run on a source's host: elsewhere somebody else may listen on them.
/// A host that only ssh's configuration knows by its name may have any of them.
pub(crate) fn ports_on(url: &MonitorUrl, targets: &[Target]) -> Vec<u16> {
    let MonitorUrl::Ssh { host, .. } = url else { return Vec::new() };
    let addresses: Option<Vec<IpAddr>> = (host.as_str(), 0)
        .to_socket_addrs()
        .ok()
        .map(|addresses| addresses.map(|address| address.ip()).collect());
    let is_there = |target: &&Target| match &addresses {
        Some(addresses) => {
            target.resolved.url.host == *host || addresses.contains(&target.resolved.address.ip())
        }
        None => !target.resolved.address.ip().is_loopback(),
    };
    let mut ports: Vec<u16> =
        targets.iter().filter(is_there).map(|target| target.resolved.address.port()).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
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
        let one_place = parsed(&["ssh://a-b", "ssh://a@b"]).unwrap_err();
        assert!(one_place.contains("one directory, ssh-a-b"), "{one_place}");
    }
}
