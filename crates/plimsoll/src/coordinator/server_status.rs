//! Servers that tell figures of their own are asked for them, over a connection apart from the
//! load's: those whose protocol has a way to ask, and servers of ours with a status page on a Unix
//! socket.

use std::time::Duration;

use plimsoll_model::suite::Suite;
use plimsoll_monitor::{NginxStatus, ServerProbe, tells_of_server};
use plimsoll_protocol::host::{AskStatus, Registration, Target};

/// Longest wait for the answers of all targets, connecting included: they are asked one after the
/// other, samples are a second apart, and a server whose processors are full needs a part of it.
const ANSWER_WAIT: Duration = Duration::from_millis(700);

/// The servers of a run, and the suite with the header fields that are sent to them.
#[derive(Clone, Copy)]
pub(super) struct Served<'a> {
    pub(super) protocol: &'a Registration,
    pub(super) suite: &'a Suite,
    pub(super) targets: &'a [Target],
}

/// The targets that answer, for the monitors. A single one needs no name, of several each has its
/// number among the targets.
pub(super) fn probes(served: Served<'_>) -> Vec<ServerProbe> {
    let targets = served.targets;
    let answering: Vec<(String, Asked)> = (1u32..)
        .zip(targets)
        .filter_map(|(number, target)| {
            let mut client = Asked::of(served, target)?;
            client.ask(ANSWER_WAIT).filter(|text| tells_of_server(text))?;
            let key = if targets.len() > 1 { number.to_string() } else { String::new() };
            Some((key, client))
        })
        .collect();
    let wait = share_of_wait(answering.len());
    let probe =
        |(key, mut client): (String, Asked)| ServerProbe::new(key, move || client.ask(wait));
    answering.into_iter().map(probe).collect()
}

/// A server that tells of itself, in its own way.
enum Asked {
    Protocol(Box<dyn AskStatus>),
    Nginx(NginxStatus),
}

impl Asked {
    fn of(served: Served<'_>, target: &Target) -> Option<Self> {
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

/// How long each of several servers may take, so that no number of silent ones delays a sample by more
/// than a single one would.
fn share_of_wait(servers: usize) -> Duration {
    ANSWER_WAIT / u32::try_from(servers.max(1)).unwrap_or(u32::MAX)
}

/// What cannot be known of targets that do not answer.
pub(super) fn not_told(served: Served<'_>) -> Vec<String> {
    let Some(status) = served.protocol.status else { return Vec::new() };
    let is_silent = |target: &&Target| {
        let text =
            (status.of)(served.suite, &target.resolved).and_then(|mut it| it.ask(ANSWER_WAIT));
        !text.is_some_and(|text| tells_of_server(&text))
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
