//! How many agents may start at once. An sshd turns connections away while ten of them are not yet
//! logged on (`MaxStartups`).

use std::collections::HashMap;

use super::spec::{AgentSpec, Launcher};

/// Starts of ssh to one host at once.
pub const SSH_STARTS_MAX: u32 = 8;

/// Whose turn it is, of the agents of a run.
#[derive(Debug)]
pub struct StartGate {
    agents: Vec<Turn>,
    /// Starts under way, by host.
    starting: HashMap<String, u32>,
}

#[derive(Debug)]
struct Turn {
    /// Who shares the limit; `None` where there is none.
    host: Option<String>,
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
        let turn = |agent: &AgentSpec| Turn { host: host(&agent.launcher), step: Step::Waiting };
        Self { agents: agents.iter().map(turn).collect(), starting: HashMap::new() }
    }

    /// Agents, by their index, that are to be started now; each is named once.
    pub fn start(&mut self) -> Vec<usize> {
        let mut now = Vec::new();
        for (index, turn) in self.agents.iter_mut().enumerate() {
            if turn.step != Step::Waiting {
                continue;
            }
            if let Some(host) = &turn.host {
                let starting = self.starting.entry(host.clone()).or_default();
                if *starting >= SSH_STARTS_MAX {
                    continue;
                }
                *starting += 1;
            }
            turn.step = Step::Starting;
            now.push(index);
        }
        now
    }

    /// An agent has greeted or ended: another may start. To say so again changes nothing.
    pub fn settle(&mut self, index: usize) {
        let Some(turn) = self.agents.get_mut(index) else { return };
        let was = std::mem::replace(&mut turn.step, Step::Settled);
        if was == Step::Starting
            && let Some(starting) = turn.host.as_ref().and_then(|host| self.starting.get_mut(host))
        {
            *starting -= 1;
        }
    }
}

fn host(launcher: &Launcher) -> Option<String> {
    match launcher {
        Launcher::Ssh { host, port, .. } => Some(format!("{host} {port:?}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::spec;
    use super::*;

    fn gate(value: &str) -> StartGate {
        let nothing = |_: &Path| Err(std::io::Error::other("no file"));
        StartGate::new(&spec::parse(&[value.to_owned()], &nothing).unwrap().agents)
    }

    #[test]
    fn eight_start_at_once_at_a_host() {
        let mut gate = gate("ssh://a*10,ssh://b*2,ssh://a:22*9,slurm:20");
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
