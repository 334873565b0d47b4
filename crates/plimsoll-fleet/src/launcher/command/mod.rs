//! From a value of `--agents` to the command that starts the agent.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use thiserror::Error;

use super::command_line;
use super::spec::{AgentSpec, Launcher, PodQuery};

/// The default program: found by the `PATH` there.
const PROGRAM: &str = "plimsoll";
/// What an agent is started with.
const VERB: &str = "agent";
/// Variables of this program: an agent reads none, and one may be a password, which srun would
/// carry to its host.
const OWN_VARIABLES: &str = "PLIMSOLL_";

/// The stream needs these: no prompts, no shared connection of the user's, no terminal that changes
/// bytes. They precede the user's, so that they win.
const SSH_FIRM: [&str; 8] = [
    "BatchMode=yes",
    "ControlMaster=no",
    "ControlPath=none",
    "RequestTTY=no",
    "EscapeChar=none",
    "RemoteCommand=none",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
];
/// A host that vanishes is noticed. Options of the user precede them, and win.
const SSH_LIVELY: [&str; 3] =
    ["ServerAliveInterval=2", "ServerAliveCountMax=3", "ConnectTimeout=10"];
/// One task of one node. Without `-u` standard output is held back until a line ends; `-Q` prints
/// nothing while it waits; `-X` ends at one interrupt; `--exact` takes no more of an allocation
/// than it needs.
const SRUN: [&str; 6] = ["-N1", "-n1", "-u", "-Q", "-X", "--exact"];
/// One line a pod: name, phase, and when its deletion was requested.
const POD_COLUMNS: &str = "-o=jsonpath={range .items[*]}{.metadata.name}{\"\\t\"}{.status.phase}\
                           {\"\\t\"}{.metadata.deletionTimestamp}{\"\\n\"}{end}";

/// A program to start, without a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchCommand {
    /// Its path, or its name for `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables that it has in addition to those of this process.
    pub environment: Vec<(OsString, OsString)>,
}

/// Why no pod of a selector can be an agent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PodsError {
    /// Nothing has these labels.
    #[error("no pod has these labels; look with `{look}`")]
    None {
        /// The command that shows them.
        look: String,
    },
    /// Some have, and none runs.
    #[error("none of {pods} pods runs ({example}); look with `{look}`")]
    NoneRuns {
        /// Pods with these labels.
        pods: usize,
        /// The first of them and its phase.
        example: String,
        /// The command that shows them.
        look: String,
    },
}

impl LaunchCommand {
    /// Starts the agent; `own_program` is the path of this program, for launchers of this host.
    pub fn agent(spec: &AgentSpec, own_program: &Path) -> Self {
        Self::verb(spec, own_program, &[VERB])
    }

    /// Runs the program where the agent would run, with these arguments.
    pub fn verb(spec: &AgentSpec, own_program: &Path, arguments: &[&str]) -> Self {
        let own = || own_program.as_os_str().to_owned();
        let named = spec.settings.program.as_ref().map(OsString::from);
        let program = match spec.launcher {
            Launcher::Local | Launcher::Exec { .. } => named.unwrap_or_else(own),
            _ => named.unwrap_or_else(|| PROGRAM.into()),
        };
        Self::from_spec(spec, program, arguments)
    }

    /// Runs a script of the POSIX shell where the agent would run.
    pub fn script(spec: &AgentSpec, script: &str) -> Self {
        Self::from_spec(spec, "sh".into(), &["-c", script])
    }

    fn from_spec(spec: &AgentSpec, program: OsString, arguments: &[&str]) -> Self {
        let options = &spec.settings.options;
        let tokens =
            || std::iter::once(program.clone()).chain(arguments.iter().map(OsString::from));
        match &spec.launcher {
            Launcher::Local => Self::new(program.clone(), arguments.iter().map(OsString::from)),
            Launcher::Exec { command: own } => {
                let (first, rest) =
                    own.split_first().map_or(("", own.as_slice()), |(first, rest)| (first, rest));
                Self::new(first, rest.iter().map(OsString::from).chain(tokens()))
            }
            Launcher::Ssh { user, host, port } => {
                let mut all = ssh_options(options);
                if let Some(port) = port {
                    all.extend(["-p".into(), port.to_string()]);
                }
                if let Some(user) = user {
                    all.extend(["-l".into(), user.clone()]);
                }
                all.extend(["--".into(), host.clone(), for_shell(&program, arguments)]);
                Self::new("ssh", all).with_c_locale()
            }
            Launcher::Slurm { .. } => {
                let own = SRUN.iter().map(OsString::from);
                let all = own.chain(options.iter().map(OsString::from)).chain(tokens());
                Self::new("srun", all).with_c_locale()
            }
            Launcher::Pod { namespace, pod } => {
                let mut all: Vec<OsString> = vec!["exec".into(), "-i".into()];
                all.extend(of_namespace(namespace.as_deref()));
                all.extend(options.iter().map(OsString::from));
                all.extend([pod.into(), "--".into()]);
                all.extend(tokens());
                Self::new("kubectl", all).with_c_locale()
            }
        }
    }

    fn new(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { program: program.into(), arguments, environment: Vec::new() }
    }

    /// Its messages are those that [`super::explain`] knows.
    fn with_c_locale(mut self) -> Self {
        self.environment.push(("LC_ALL".into(), "C".into()));
        self
    }

    /// Ready to be started; variables of this program stay here.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(self.environment.iter().cloned());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with(OWN_VARIABLES) {
                command.env_remove(name);
            }
        }
        command
    }
}

impl PodQuery {
    /// Queries the pods; its output is for [`Self::agents`].
    pub fn command(&self) -> LaunchCommand {
        let mut all: Vec<OsString> = vec!["get".into(), "pods".into()];
        all.extend(of_namespace(self.namespace.as_deref()));
        all.extend(without_container(&self.settings.options).into_iter().map(OsString::from));
        all.extend([format!("--selector={}", self.selector).into(), POD_COLUMNS.into()]);
        LaunchCommand::new("kubectl", all).with_c_locale()
    }

    /// An agent for each pod that runs.
    pub fn agents(&self, printed: &str) -> Result<Vec<AgentSpec>, PodsError> {
        let pods: Vec<Vec<&str>> = printed
            .lines()
            .map(|line| line.split('\t').collect())
            .filter(|columns: &Vec<&str>| columns.len() == 3)
            .collect();
        let runs = |columns: &&Vec<&str>| columns[1] == "Running" && columns[2].is_empty();
        let agents: Vec<AgentSpec> =
            pods.iter().filter(runs).map(|columns| self.agent(columns[0])).collect();
        match pods.first() {
            Some(_) if !agents.is_empty() => Ok(agents),
            Some(first) => Err(PodsError::NoneRuns {
                pods: pods.len(),
                example: format!("{}: {}", first[0], first[1]),
                look: self.look(),
            }),
            None => Err(PodsError::None { look: self.look() }),
        }
    }

    fn agent(&self, pod: &str) -> AgentSpec {
        let launcher = Launcher::Pod { namespace: self.namespace.clone(), pod: pod.to_owned() };
        AgentSpec { name: launcher.to_string(), launcher, settings: self.settings.clone() }
    }

    fn look(&self) -> String {
        let namespace = self.namespace.as_ref().map(|name| format!(" -n {name}"));
        let selector = command_line::quote(&self.selector);
        format!("kubectl get pods{} -l {selector}", namespace.unwrap_or_default())
    }
}

/// ssh takes the first value of an option that it is given.
fn ssh_options(own: &[String]) -> Vec<String> {
    let spelt = |options: &[&str]| -> Vec<String> {
        options.iter().flat_map(|option| ["-o".to_owned(), (*option).to_owned()]).collect()
    };
    [spelt(&SSH_FIRM), own.to_vec(), spelt(&SSH_LIVELY)].concat()
}

/// One line for the login shell there. `exec` drops that shell, so that the end of the connection
/// is the end of the agent's input. The home directory is the user's there.
fn for_shell(program: &OsString, arguments: &[&str]) -> String {
    let program = program.to_string_lossy();
    let program = match program.strip_prefix("~/") {
        Some(path) => format!("~/{}", command_line::quote(path)),
        None => command_line::quote(&program),
    };
    format!("exec {program} {}", command_line::join(arguments))
}

fn of_namespace(namespace: Option<&str>) -> Option<OsString> {
    namespace.map(|name| format!("--namespace={name}").into())
}

/// `kubectl get` has no containers to choose from.
fn without_container(options: &[String]) -> Vec<&String> {
    let mut kept = Vec::new();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match option.as_str() {
            "-c" | "--container" => drop(options.next()),
            joined if joined.starts_with("-c") || joined.starts_with("--container=") => {}
            _ => kept.push(option),
        }
    }
    kept
}

#[cfg(test)]
mod tests;
