//! What a host was in the run: the server's, the generator's, or both.

use plimsoll_model::disclosure::{Disclosure, TargetDisclosure};
use plimsoll_model::event::PointRecord;
use plimsoll_model::target::TargetUrl;

/// The names under which a run watches its servers begin with it.
pub(super) const SERVER: &str = "server";

/// What ran on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The server, and no generator.
    Server,
    /// Both.
    Shared,
    /// A generator.
    Generator,
    /// Neither, as far as is known.
    Other,
}

/// `None` of a host that was seen from elsewhere too.
pub(super) fn place_of(
    source: Option<&str>,
    sources: &[Option<&str>],
    record: &PointRecord,
    disclosure: Option<&Disclosure>,
) -> Option<Place> {
    let targets = disclosure.map(|it| it.targets.as_slice()).unwrap_or_default();
    let own_host = disclosure.and_then(|it| it.generator.name.as_deref());
    let agents = record.agents.as_slice();
    let has_server = || {
        let start = format!("process.{SERVER}");
        let mut resources = record.resources.iter();
        resources.any(|it| it.source.as_deref() == source && it.name.starts_with(&start))
    };
    let is_here = |target: &TargetDisclosure| target.same_host;
    let Some(source) = source else {
        let serves = targets.iter().any(is_here) || has_server();
        let generates = agents.is_empty() || agents.iter().any(|it| Some(&*it.host) == own_host);
        return Some(match (serves, generates) {
            (true, true) => Place::Shared,
            (true, false) => Place::Server,
            (false, true) => Place::Generator,
            (false, false) => Place::Other,
        });
    };
    if let Some(at) = agents.iter().position(|agent| agent.name == source) {
        let host = agents[at].host.as_str();
        let before = agents[..at].iter().any(|agent| agent.host == host);
        return (!before && own_host != Some(host)).then_some(Place::Generator);
    }
    let host = host_of_url(source);
    if let Some(target) = targets.iter().find(|target| names(target, host)) {
        return (!target.same_host).then_some(Place::Server);
    }
    let is_agent = |source: &str| agents.iter().any(|agent| agent.name == source);
    let alone = sources.iter().flatten().filter(|source| !is_agent(source)).count() == 1;
    match targets.iter().all(is_here) {
        // Its server is the one of this host.
        true if has_server() => None,
        true => Some(Place::Other),
        false if has_server() || alone => Some(Place::Server),
        false if agents.iter().any(|agent| agent.host == host) => Some(Place::Generator),
        false => Some(Place::Other),
    }
}

/// Is it the target's host?
fn names(target: &TargetDisclosure, host: &str) -> bool {
    let given = TargetUrl::parse(&target.target).ok().map(|url| url.host);
    let address = target.address.rsplit_once(':').map_or(target.address.as_str(), |it| it.0);
    given.as_deref() == Some(host) || address.trim_matches(['[', ']']) == host
}

/// Of a monitor's URL, as the user wrote it: `ssh://root@host:22`.
fn host_of_url(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |it| it.1);
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    let host = authority.rsplit_once('@').map_or(authority, |it| it.1);
    match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((address, _)) => address,
        None => host.split_once(':').map_or(host, |it| it.0),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::event::{AgentPoint, ResourceUse};
    use plimsoll_model::host::Host;

    use super::*;

    fn place(source: Option<&str>, same_host: bool, agents: &[(&str, &str)]) -> Option<Place> {
        let target = TargetDisclosure {
            target: "http://web:80/".to_owned(),
            address: "10.0.0.2:80".to_owned(),
            same_host,
            ..TargetDisclosure::default()
        };
        let generator = Host { name: Some("here".to_owned()), ..Host::default() };
        let disclosure = Disclosure { targets: vec![target], generator, ..Disclosure::default() };
        let mut record = crate::testing::PointBuilder::open(100.0).build().record;
        let agent = |(name, host): &(&str, &str)| AgentPoint {
            name: (*name).to_owned(),
            host: (*host).to_owned(),
            ..AgentPoint::default()
        };
        record.agents = agents.iter().map(agent).collect();
        let busy = ResourceUse::of_window("host.cpu_busy", "ratio", 0.5, 0.5);
        record.resources = vec![ResourceUse { source: source.map(str::to_owned), ..busy }];
        place_of(source, &[None, source, Some("snmp://switch")], &record, Some(&disclosure))
    }

    #[test]
    fn a_host_is_what_ran_on_it() {
        assert_eq!(place(None, true, &[]), Some(Place::Shared));
        assert_eq!(place(None, false, &[]), Some(Place::Generator));
        assert_eq!(place(None, true, &[("g1", "one")]), Some(Place::Server));
        assert_eq!(place(None, true, &[("g1", "here")]), Some(Place::Shared));
        assert_eq!(place(None, false, &[("g1", "one")]), Some(Place::Other), "a coordinator");
        assert_eq!(
            place(Some("g2"), true, &[("g1", "one"), ("g2", "two")]),
            Some(Place::Generator)
        );
        assert_eq!(place(Some("ssh://root@web:22"), false, &[]), Some(Place::Server));
        assert_eq!(place(Some("http://10.0.0.2:9100/metrics"), false, &[]), Some(Place::Server));
        assert_eq!(place(Some("snmp://[fe80::1]:161"), false, &[]), Some(Place::Other));
    }

    #[test]
    fn a_host_that_was_seen_twice_counts_once() {
        let agents = [("g1", "one"), ("g2", "one"), ("g3", "here")];
        assert_eq!(place(Some("g1"), false, &agents), Some(Place::Generator));
        assert_eq!(place(Some("g2"), false, &agents), None);
        assert_eq!(place(Some("g3"), false, &agents), None);
        assert_eq!(place(Some("ssh://web"), true, &[]), None, "watched as this host already");
    }
}
