//! `--deploy` in a run: sends the program once to each host where a launcher starts agents, before
//! any agent is started.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use plimsoll_fleet::launcher::deploy::{DeployError, Deployed, Parcel, Patience, deploy};
use plimsoll_fleet::launcher::gate::SSH_STARTS_MAX;
use plimsoll_fleet::launcher::spec::{AgentSpec, Launcher};
use plimsoll_model::units::{Nanos, counted};

use crate::failure::Failure;
use crate::progress::RunProgress;
use crate::signals::Signals;

/// Longest wait for an event.
const LOOK_UP: Duration = Duration::from_millis(50);
/// Hosts served at once: all may be one sshd under several names, and each takes a part of the
/// link.
const AT_ONCE_MAX: usize = SSH_STARTS_MAX as usize;
/// This program, even if its file was replaced since it started.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// What `--deploy` means for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It starts an existing program.
    NotRequested,
    /// It starts the program with this SHA-256, which was sent.
    Sent { sha256: String },
    /// It has no program, for this reason.
    Failed(String),
}

/// Sends this program to all hosts but this one, for the agents there to start. Does not change
/// agents with a program that the user has named.
pub(super) fn deliver(
    specs: &mut [AgentSpec],
    wait: Nanos,
    signals: &Signals,
    live: &mut dyn RunProgress,
) -> Result<Vec<Delivery>, Failure> {
    let (sites, of_agents) = sites(specs);
    if sites.is_empty() {
        return Ok(vec![Delivery::NotRequested; specs.len()]);
    }
    let parcel = Parcel::read(Path::new(OWN_PROGRAM), env!("CARGO_PKG_VERSION")).map_err(|e| {
        Failure::unusable(format!("--deploy: cannot read this program's file: {e}"))
    })?;
    let outcomes = send_all(&sites, &parcel, (wait, signals), live)?;
    let sent = outcomes.iter().flatten().filter(|deployed| deployed.was_sent).count();
    if sent > 0 {
        live.line(&format!("--deploy: the program was sent to {}", counted(sent, "host")));
    }
    let deliveries = specs.iter_mut().zip(of_agents).map(|(spec, site)| {
        match site.map(|site| &outcomes[site]) {
            None => Delivery::NotRequested,
            Some(Ok(deployed)) => {
                spec.settings.program = Some(deployed.program.clone());
                Delivery::Sent { sha256: parcel.sha256().to_owned() }
            }
            Some(Err(error)) => Delivery::Failed(format!("--deploy: {error}")),
        }
    });
    Ok(deliveries.collect())
}

/// One agent for each launcher that needs the program, and for each agent the index of that one.
fn sites(specs: &[AgentSpec]) -> (Vec<AgentSpec>, Vec<Option<usize>>) {
    let mut sites: Vec<AgentSpec> = Vec::new();
    let of_agent = |spec: &AgentSpec| {
        if spec.launcher == Launcher::Local || spec.settings.program.is_some() {
            return None;
        }
        let same = |site: &AgentSpec| {
            site.launcher == spec.launcher && site.settings.options == spec.settings.options
        };
        Some(sites.iter().position(same).unwrap_or_else(|| {
            sites.push(spec.clone());
            sites.len() - 1
        }))
    };
    let of_agents = specs.iter().map(of_agent).collect();
    (sites, of_agents)
}

type Outcome = Result<Deployed, DeployError>;

/// The outcome at each site.
fn send_all(
    sites: &[AgentSpec],
    parcel: &Parcel,
    (wait, signals): (Nanos, &Signals),
    live: &mut dyn RunProgress,
) -> Result<Vec<Outcome>, Failure> {
    let stop = signals.flag();
    let patience = Patience { answer: Duration::from_nanos(wait.0), stop: &stop };
    let next = AtomicUsize::new(0);
    let (ended, heard) = channel();
    let serve = |ended: &Sender<(usize, Outcome)>| {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(site) = sites.get(index) else { return };
            // The receiver waits for the last site.
            let _ = ended.send((index, deploy(site, parcel, patience)));
        }
    };
    let mut outcomes: Vec<Option<Outcome>> = sites.iter().map(|_| None).collect();
    thread::scope(|scope| -> Result<(), Failure> {
        for _ in 0..sites.len().min(AT_ONCE_MAX) {
            let ended = ended.clone();
            let builder = thread::Builder::new().name("plimsoll-deploy".into());
            builder
                .spawn_scoped(scope, move || serve(&ended))
                .map_err(|e| Failure::unusable(format!("cannot start a thread: {e}")))?;
        }
        drop(ended);
        loop {
            match heard.recv_timeout(LOOK_UP) {
                Ok((index, outcome)) => outcomes[index] = Some(outcome),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            let done = outcomes.iter().flatten().count();
            live.passing(&format!("--deploy: {done} of {} hosts have the program", sites.len()));
        }
    })?;
    match signals.is_stop_requested() {
        true => Err(Failure::interrupted("while the program was sent to the agents' hosts")),
        false => {
            Ok(outcomes.into_iter().map(|it| it.unwrap_or(Err(DeployError::Stopped))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_fleet::launcher::spec;

    use super::*;

    #[test]
    fn agents_of_one_launcher_share_what_is_sent() {
        let nothing = |_: &Path| Err(std::io::Error::other("no file"));
        let values = ["ssh://a*2,ssh://b,local,slurm:2", "exec:env"].map(str::to_owned);
        let mut specs = spec::parse(&values, &nothing).unwrap().agents;
        specs[1].settings.cores = vec![1];
        specs[2].settings.program = Some("/opt/plimsoll".to_owned());
        let (sites, of_agents) = sites(&specs);
        let names: Vec<&str> = sites.iter().map(|site| site.name.as_str()).collect();
        assert_eq!(names, ["ssh://a#1", "slurm:2#1", "exec:env"]);
        assert_eq!(of_agents, [Some(0), Some(0), None, None, Some(1), Some(1), Some(2)]);
    }
}
