//! Requests status figures from servers that report any, over a connection separate from the
//! load's: servers whose protocol has a request for it, and servers started by this run with a
//! status page on a Unix socket.

use std::time::Duration;

use plimsoll_model::suite::Suite;
use plimsoll_monitor::{NginxStatus, ServerProbe, has_server_figures};
use plimsoll_protocol::host::{AskStatus, Registration, Target};

/// Longest wait for the answers of all targets, connecting included. They are requested one after
/// the other, samples are a second apart, and a server whose processors are busy needs a part of
/// it.
const ANSWER_WAIT: Duration = Duration::from_millis(700);

/// The servers of a run, and the suite with the header fields that are sent to them.
#[derive(Clone, Copy)]
pub(super) struct Served<'a> {
    pub(super) protocol: &'a Registration,
    pub(super) suite: &'a Suite,
    pub(super) targets: &'a [Target],
}

/// The targets that answer, for the monitors. A single one needs no name; of several each has its
/// number among the targets.
pub(super) fn probes(served: Served<'_>) -> Vec<ServerProbe> {
    let targets = served.targets;
    let answering: Vec<(String, StatusSource)> = (1u32..)
        .zip(targets)
        .filter_map(|(number, target)| {
            let mut client = StatusSource::for_target(served, target)?;
            client.ask(ANSWER_WAIT).filter(|text| has_server_figures(text))?;
            let key = if targets.len() > 1 { number.to_string() } else { String::new() };
            Some((key, client))
        })
        .collect();
    let wait = share_of_wait(answering.len());
    let probe =
        |(key, mut client): (String, StatusSource)| ServerProbe::new(key, move || client.ask(wait));
    answering.into_iter().map(probe).collect()
}

/// The source of a server's status figures.
enum StatusSource {
    Protocol(Box<dyn AskStatus>),
    Nginx(NginxStatus),
}

impl StatusSource {
    fn for_target(served: Served<'_>, target: &Target) -> Option<Self> {
        let socket = target.process.as_ref().and_then(|process| process.status.clone());
        let nginx = socket.map(|socket| Self::Nginx(NginxStatus::at_socket(socket)));
        let status = || (served.protocol.status?.of)(served.suite, &target.resolved);
        nginx.or_else(|| status().map(Self::Protocol))
    }

    fn ask(&mut self, wait: Duration) -> Option<String> {
        match self {
            Self::Protocol(client) => client.ask(wait),
            Self::Nginx(status) => status.ask(wait),
        }
    }
}

/// Longest wait for each of several servers: silent ones together delay a sample no more than a
/// single one would.
fn share_of_wait(servers: usize) -> Duration {
    ANSWER_WAIT / u32::try_from(servers.max(1)).unwrap_or(u32::MAX)
}

/// The figures that remain unknown for targets that do not answer.
pub(super) fn not_reported(served: Served<'_>) -> Vec<String> {
    let Some(status) = served.protocol.status else { return Vec::new() };
    let is_silent = |target: &&Target| {
        let text =
            (status.of)(served.suite, &target.resolved).and_then(|mut it| it.ask(ANSWER_WAIT));
        !text.is_some_and(|text| has_server_figures(&text))
    };
    let silent = served.targets.iter().filter(is_silent);
    silent.map(|target| format!("{}: {}", target.name(), status.unknown)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_share_the_time_that_one_may_take() {
        assert_eq!(share_of_wait(0), ANSWER_WAIT);
        assert_eq!(share_of_wait(1), ANSWER_WAIT);
        for servers in [2, 7, 100] {
            assert!(share_of_wait(servers) * servers as u32 <= ANSWER_WAIT, "{servers}");
        }
    }
}
