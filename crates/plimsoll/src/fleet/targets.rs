//! Which of the run's servers the clients of an agent use, and whether they are within its reach.

use std::net::IpAddr;

use plimsoll_fleet::launcher::spec::TargetChoice;
use plimsoll_fleet::message::Greeting;
use plimsoll_model::target::TargetSpec;
use plimsoll_protocol::ResolvedTarget;

use crate::exit::Failure;
use crate::host_inventory::{boot_id, network};

/// Numbers of the servers that were chosen, from 0, in the order of the run; empty where all are
/// used.
pub(super) fn chosen(
    choices: &[TargetChoice],
    targets: &[TargetSpec],
) -> Result<Vec<usize>, String> {
    let mut numbers = Vec::new();
    for choice in choices {
        let found = found(choice, targets);
        if found.is_empty() {
            let names: Vec<String> =
                (1..).zip(targets).map(|(at, spec)| format!("{at} = {spec}")).collect();
            return Err(format!(
                "the run has no target {}; its targets are {}",
                choice_text(choice),
                names.join(", ")
            ));
        }
        numbers.extend(found);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// A server that is named twice is chosen twice: for twice the connections.
fn found(choice: &TargetChoice, targets: &[TargetSpec]) -> Vec<usize> {
    match choice {
        TargetChoice::Number(number) => {
            let index = (*number as usize).wrapping_sub(1);
            Some(index).filter(|index| *index < targets.len()).into_iter().collect()
        }
        TargetChoice::Url(text) => {
            // Without the password, which one of them may have left out.
            let wanted = TargetSpec::parse(text).ok().map(|spec| spec.to_string());
            let all = targets.iter().enumerate();
            let same = all.filter(|(_, spec)| Some(spec.to_string()) == wanted);
            same.map(|(index, _)| index).collect()
        }
    }
}

/// Nothing that may be a password.
fn choice_text(choice: &TargetChoice) -> String {
    match choice {
        TargetChoice::Number(number) => number.to_string(),
        TargetChoice::Url(text) => match TargetSpec::parse(text) {
            Ok(spec) => spec.to_string(),
            Err(_) => "of the URL that is given, which cannot be read".to_owned(),
        },
    }
}

/// How far an agent is from this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distance {
    /// Same host, same network: loopback is shared.
    Here,
    /// Same host, another network namespace: files are shared, and sockets among them.
    OwnNetwork,
    /// Another host.
    Elsewhere,
}

/// How far the agent of this greeting is.
pub(super) fn distance(greeting: &Greeting) -> Distance {
    match (greeting.boot_id == boot_id(), greeting.network == network()) {
        (true, true) => Distance::Here,
        (true, false) => Distance::OwnNetwork,
        (false, _) => Distance::Elsewhere,
    }
}

/// Where a server of the run is.
pub(crate) enum Whereabouts<'a> {
    /// It will be started, and listen on this address.
    Listens(&'a TargetSpec, IpAddr),
    /// It runs already.
    Runs(&'a ResolvedTarget),
}

/// Why the clients of an agent cannot reach it, and what to do; `None` where nothing is known
/// against it.
pub(super) fn out_of_reach(server: &Whereabouts<'_>, distance: Distance) -> Option<String> {
    let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
    match server {
        Whereabouts::Listens(spec, ip) if distance != Distance::Here && is_loopback(*ip) => {
            Some(format!(
                "it does not reach {spec}, which would listen on {ip}: loopback is each host's \
                 own; let the server listen on an address of this host that agents reach: \
                 --listen-on ADDR (`ip address` shows them)"
            ))
        }
        Whereabouts::Runs(target) if target.unix.is_some() => (distance == Distance::Elsewhere)
            .then(|| {
                format!(
                    "it does not reach {}: {} is a socket of this host; name an address, or \
                     agents of this host alone",
                    target.url,
                    target.place()
                )
            }),
        Whereabouts::Runs(target)
            if distance != Distance::Here && is_loopback(target.address.ip()) =>
        {
            Some(format!(
                "it does not reach {}: {} is loopback, which is each host's own; name the server \
                 by an address that agents reach",
                target.url,
                target.address.ip()
            ))
        }
        Whereabouts::Listens(..) | Whereabouts::Runs(_) => None,
    }
}

/// The first agent out of reach of a server that it is to use, in words.
pub(super) fn refuse_out_of_reach<'a>(
    agents: impl Iterator<Item = (&'a str, Distance, &'a [usize])>,
    servers: &[Whereabouts<'_>],
) -> Result<(), Failure> {
    for (name, distance, targets) in agents {
        let uses = |index: &usize| targets.is_empty() || targets.contains(index);
        let all = servers.iter().enumerate().filter(|(index, _)| uses(index));
        for (_, server) in all {
            if let Some(why) = out_of_reach(server, distance) {
                return Err(Failure::wrong(format!("agent {name}: {why}")));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use plimsoll_model::target::TargetUrl;

    use super::*;

    fn specs(texts: &[&str]) -> Vec<TargetSpec> {
        texts.iter().map(|text| TargetSpec::parse(text).unwrap()).collect()
    }

    #[test]
    fn targets_are_chosen_by_number_or_url() {
        let targets = specs(&["http://ann:pw@a/", "builtin:", "http://b/", "http://b/"]);
        let url = |text: &str| TargetChoice::Url(text.to_owned());
        for (choices, numbers) in [
            (vec![], &[][..]),
            (vec![TargetChoice::Number(4), TargetChoice::Number(1)], &[0, 3]),
            (vec![url("http://b/"), TargetChoice::Number(3)], &[2, 3]),
            (vec![url("http://ann@a/"), url("builtin:")], &[0, 1]),
        ] {
            assert_eq!(chosen(&choices, &targets).unwrap(), numbers, "{choices:?}");
        }
    }

    #[test]
    fn a_target_that_the_run_has_not_is_refused_with_those_it_has() {
        let targets = specs(&["http://ann:pw@a/", "http://b/"]);
        for (choice, part) in [
            (TargetChoice::Number(3), "no target 3; "),
            (TargetChoice::Number(0), "no target 0; "),
            (TargetChoice::Url("http://ann:pw@c/".to_owned()), "no target http://ann@c/; "),
            (TargetChoice::Url("pw pw".to_owned()), "cannot be read; "),
        ] {
            let refused = chosen(&[choice], &targets).unwrap_err();
            assert!(refused.contains(part), "{refused}");
            assert!(refused.ends_with("its targets are 1 = http://ann@a/, 2 = http://b/"));
            assert!(!refused.contains("pw"), "{refused}");
        }
    }

    #[test]
    fn loopback_and_sockets_of_this_host_are_out_of_reach_elsewhere() {
        let (spec, url) = (TargetSpec::Builtin, || TargetUrl::parse("http://a/").unwrap());
        let at = |ip: &str| ResolvedTarget::at(url(), (ip.parse::<IpAddr>().unwrap(), 80).into());
        let unix = ResolvedTarget { unix: Some("/run/a.sock".into()), ..at("127.0.0.1") };
        let check = |server: Whereabouts<'_>, refused: [Option<&str>; 2]| {
            assert_eq!(out_of_reach(&server, Distance::Here), None);
            for (distance, part) in [Distance::OwnNetwork, Distance::Elsewhere].iter().zip(refused)
            {
                let why = out_of_reach(&server, *distance);
                assert_eq!(why.is_some(), part.is_some(), "{why:?}");
                assert!(why.unwrap_or_default().contains(part.unwrap_or_default()));
            }
        };
        for loopback in ["127.0.0.1", "127.1.2.3", "::1"] {
            let ip = loopback.parse().unwrap();
            check(Whereabouts::Listens(&spec, ip), [Some("--listen-on ADDR"); 2]);
        }
        let mapped = at("::ffff:127.0.0.1");
        check(Whereabouts::Runs(&mapped), [Some("by an address that agents reach"); 2]);
        check(Whereabouts::Listens(&spec, "192.0.2.1".parse().unwrap()), [None; 2]);
        check(Whereabouts::Runs(&at("192.0.2.1")), [None; 2]);
        check(Whereabouts::Runs(&unix), [None, Some("agents of this host alone")]);
    }

    #[test]
    fn an_agent_needs_to_reach_the_targets_that_it_uses() {
        let url = || TargetUrl::parse("http://a/").unwrap();
        let near = ResolvedTarget::at(url(), ([127, 0, 0, 1], 80).into());
        let far = ResolvedTarget::at(url(), ([192, 0, 2, 1], 80).into());
        let servers = [Whereabouts::Runs(&near), Whereabouts::Runs(&far)];
        let agent =
            |targets: &'static [usize]| [("ssh://x", Distance::Elsewhere, targets)].into_iter();
        refuse_out_of_reach(agent(&[1]), &servers).unwrap();
        for targets in [&[][..], &[0, 1]] {
            let refused = refuse_out_of_reach(agent(targets), &servers).unwrap_err().to_string();
            assert!(refused.starts_with("agent ssh://x: it does not reach http://a/"), "{refused}");
        }
    }
}
