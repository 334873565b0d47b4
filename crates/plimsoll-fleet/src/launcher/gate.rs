//! How many agents may start at once. An sshd turns connections away while ten of them are not yet
//! logged on (`MaxStartups`). On this host each start takes CPU time from those that have started
//! and answer clock requests.

use std::collections::HashMap;

use super::spec::{AgentSpec, Launcher};

/// Starts of ssh to one host at once.
pub const SSH_STARTS_MAX: u32 = 8;
/// Starts on this host at once. Each takes some 50 ms of a core.
pub const OWN_STARTS_MAX: u32 = 16;
/// Who shares the limit of this host.
const OWN_HOST: &str = "";

/// Which agents of a run may start now.
#[derive(Debug)]
pub struct StartGate {
    agents: Vec<GateEntry>,
    /// Starts in progress, by host.
    starting: HashMap<String, u32>,
}

#[derive(Debug)]
struct GateEntry {
    /// The host that shares the limit, and the limit; `None` if there is none.
    limit: Option<(String, u32)>,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Waiting,
    Starting,
    Settled,
}

impl StartGate {
    /// For these agents, all of which wait.
    pub fn new(agents: &[AgentSpec]) -> Self {
        let entry =
            |agent: &AgentSpec| GateEntry { limit: limit(&agent.launcher), step: Step::Waiting };
        Self { agents: agents.iter().map(entry).collect(), starting: HashMap::new() }
    }

    /// Agents, by their index, that are to be started now; each is named once.
    pub fn start(&mut self) -> Vec<usize> {
        let mut now = Vec::new();
        for (index, entry) in self.agents.iter_mut().enumerate() {
            if entry.step != Step::Waiting {
                continue;
            }
            if let Some((host, most)) = &entry.limit {
                let starting = self.starting.entry(host.clone()).or_default();
                if *starting >= *most {
                    continue;
                }
                *starting += 1;
            }
            entry.step = Step::Starting;
            now.push(index);
        }
        now
    }

    /// An agent has greeted or ended: another may start. Further calls change nothing.
    pub fn settle(&mut self, index: usize) {
        let Some(entry) = self.agents.get_mut(index) else { return };
        let was = std::mem::replace(&mut entry.step, Step::Settled);
        if was == Step::Starting
            && let Some((host, _)) = &entry.limit
            && let Some(starting) = self.starting.get_mut(host)
        {
            *starting -= 1;
        }
    }
}

fn limit(launcher: &Launcher) -> Option<(String, u32)> {
    match launcher {
        Launcher::Ssh { host, port, .. } => Some((format!("{host} {port:?}"), SSH_STARTS_MAX)),
        Launcher::Local | Launcher::Exec { .. } => Some((OWN_HOST.to_owned(), OWN_STARTS_MAX)),
        // They wait in a queue, and must all be in it.
        Launcher::Slurm { .. } | Launcher::Pod { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::spec;
    use super::*;

    fn gate(values: &[&str]) -> StartGate {
        let nothing = |_: &Path| Err(std::io::Error::other("no file"));
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        StartGate::new(&spec::parse(&values, &nothing).unwrap().agents)
    }

    #[test]
    fn sixteen_start_at_once_on_this_host_whatever_starts_them() {
        let mut gate = gate(&[&["local", "exec:env"].repeat(10)[..], &["slurm:30"]].concat());
        let expected: Vec<usize> = (0..16).chain(20..50).collect();
        assert_eq!(gate.start(), expected);
        gate.settle(30);
        assert!(gate.start().is_empty());
        gate.settle(7);
        assert_eq!(gate.start(), [16]);
    }

    #[test]
    fn eight_start_at_once_at_a_host() {
        let mut gate = gate(&["ssh://a*10,ssh://b*2,ssh://a:22*9,slurm:20"]);
        let now = gate.start();
        let expected: Vec<usize> = (0..8).chain(10..12).chain(12..20).chain(21..41).collect();
        assert_eq!(now, expected);
        assert!(gate.start().is_empty());
        gate.settle(3);
        gate.settle(3);
        assert_eq!(gate.start(), [8]);
        gate.settle(12);
        assert_eq!(gate.start(), [20]);
        gate.settle(1_000);
        for index in 0..9 {
            gate.settle(index);
        }
        assert_eq!(gate.start(), [9]);
    }
}
