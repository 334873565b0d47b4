//! Which of the run's servers the clients of an agent use, and whether they are within its reach.

use std::net::IpAddr;

use plimsoll_fleet::launcher::spec::TargetChoice;
use plimsoll_fleet::message::Greeting;
use plimsoll_model::target::TargetSpec;
use plimsoll_protocol::ResolvedTarget;

use crate::failure::Failure;
use crate::host_inventory::{boot_id, network};

/// Numbers of the chosen servers, from 0, in the order of the run; empty if all are used.
pub(super) fn chosen(
    choices: &[TargetChoice],
    targets: &[TargetSpec],
) -> Result<Vec<usize>, String> {
    let mut numbers = Vec::new();
    for choice in choices {
        let matched = matching_targets(choice, targets);
        if matched.is_empty() {
            let names: Vec<String> =
                (1..).zip(targets).map(|(at, spec)| format!("{at} = {spec}")).collect();
            return Err(format!(
                "the run has no target {}; its targets are {}",
                choice_text(choice),
                names.join(", ")
            ));
        }
        numbers.extend(matched);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// Refuses a server that no agent uses: its requested load would be missing.
pub(super) fn refuse_unused(choices: &[Vec<usize>], targets: &[TargetSpec]) -> Result<(), Failure> {
    let uses = |index: &usize| choices.iter().any(|all| all.is_empty() || all.contains(index));
    match (0..targets.len()).find(|index| !uses(index)) {
        None => Ok(()),
        Some(index) => Err(Failure::wrong(format!(
            "no agent uses target {} = {}: give it to one of them (`targets` in the agents' file), \
             or leave it out of the run",
            index + 1,
            targets[index]
        ))),
    }
}

/// A server that is named twice is chosen twice, and gets twice the connections.
fn matching_targets(choice: &TargetChoice, targets: &[TargetSpec]) -> Vec<usize> {
    match choice {
        TargetChoice::Number(number) => {
            let index = (*number as usize).wrapping_sub(1);
            Some(index).filter(|index| *index < targets.len()).into_iter().collect()
        }
        TargetChoice::Url(text) => {
            // Without the password, which one of them may omit.
            let requested = TargetSpec::parse(text).ok().map(|spec| spec.to_string());
            let all = targets.iter().enumerate();
            let same = all.filter(|(_, spec)| Some(spec.to_string()) == requested);
            same.map(|(index, _)| index).collect()
        }
    }
}

/// The choice as text, without possible passwords.
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

/// The distance of the agent with this greeting.
pub(super) fn distance(greeting: &Greeting) -> Distance {
    match (greeting.boot_id == boot_id(), greeting.network == network()) {
        (true, true) => Distance::Here,
        (true, false) => Distance::OwnNetwork,
        (false, _) => Distance::Elsewhere,
    }
}

/// The endpoint of a server of the run.
pub(crate) enum ServerEndpoint<'a> {
    /// It will be started, and listen on this address.
    Listens(&'a TargetSpec, IpAddr),
    /// It runs already.
    Runs(&'a ResolvedTarget),
}

/// Why the clients of an agent cannot reach it, and what to do; `None` if no obstacle is known.
pub(super) fn out_of_reach(server: &ServerEndpoint<'_>, distance: Distance) -> Option<String> {
    let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
    match server {
        ServerEndpoint::Listens(spec, ip) if distance != Distance::Here && is_loopback(*ip) => {
            Some(format!(
                "it does not reach {spec}, which would listen on {ip}: loopback is each host's \
                 own; let the server listen on an address of this host that agents reach: \
                 --listen-on ADDR (`ip address` shows them)"
            ))
        }
        ServerEndpoint::Runs(target) if target.unix.is_some() => (distance == Distance::Elsewhere)
            .then(|| {
                format!(
                    "it does not reach {}: {} is a socket of this host; name an address, or \
                     agents of this host alone",
                    target.url,
                    target.endpoint()
                )
            }),
        ServerEndpoint::Runs(target)
            if distance != Distance::Here && is_loopback(target.address.ip()) =>
        {
            Some(format!(
                "it does not reach {}: {} is loopback, which is each host's own; name the server \
                 by an address that agents reach",
                target.url,
                target.address.ip()
            ))
        }
        ServerEndpoint::Listens(..) | ServerEndpoint::Runs(_) => None,
    }
}

/// Refuses the first agent that cannot reach a server it should use.
pub(super) fn refuse_out_of_reach<'a>(
    agents: impl Iterator<Item = (&'a str, Distance, &'a [usize])>,
    servers: &[ServerEndpoint<'_>],
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
mod tests;
