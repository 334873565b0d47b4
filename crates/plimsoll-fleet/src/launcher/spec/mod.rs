//! The values of `--agents`.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use plimsoll_model::target::{TargetUrl, shown_of_unreadable};
use thiserror::Error;

use super::command_line::{self, SplitError};

mod table;

/// More agents than any machine has been shown to control.
pub const AGENTS_MAX: u32 = 1_024;

const FORMS: &str = "ssh://[user@]host[:port][*n], slurm:N, k8s:[NAMESPACE/]SELECTOR, \
                     exec:COMMAND, local or FILE.toml";
const SCHEMES: [&str; 4] = ["ssh://", "slurm:", "k8s:", "exec:"];
/// These take the rest of a value, commas too.
const GREEDY: [&str; 2] = ["k8s:", "exec:"];

/// Everything that `--agents` requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestedAgents {
    /// Agents, in the order given.
    pub agents: Vec<AgentSpec>,
    /// Pods still to be queried; each that runs is one more agent.
    pub pods: Vec<PodQuery>,
}

/// An agent to start.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSpec {
    /// For people, unlike that of every other agent: `ssh://a`, or `ssh://a#2` where `ssh://a` has
    /// several.
    pub name: String,
    /// What starts it.
    pub launcher: Launcher,
    /// Its settings from a file.
    pub settings: Settings,
}

/// What starts an agent. Its text is what a person typed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Launcher {
    /// This program, on this host.
    Local,
    /// The system's ssh.
    Ssh {
        /// The user to log on as; `None` leaves it to ssh.
        user: Option<String>,
        /// Name, address, or alias in ssh's configuration.
        host: String,
        /// Port; `None` leaves it to ssh.
        port: Option<u16>,
    },
    /// Slurm's srun, once an agent.
    Slurm {
        /// Agents requested together.
        agents: u32,
    },
    /// `kubectl exec`.
    Pod {
        /// Its namespace; `None` leaves it to kubectl.
        namespace: Option<String>,
        /// Its name.
        pod: String,
    },
    /// Any command that runs the arguments after its own.
    Exec {
        /// Its own.
        command: Vec<String>,
    },
}

/// Pods of a cluster, of which each that runs becomes an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct PodQuery {
    /// Their namespace; `None` leaves it to kubectl.
    pub namespace: Option<String>,
    /// What their labels must be.
    pub selector: String,
    /// Their settings from a file.
    pub settings: Settings,
}

/// An agent's settings from a file; the controller chooses absent values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Path of the program there.
    pub program: Option<String>,
    /// Options for ssh, srun or kubectl.
    pub options: Vec<String>,
    /// Cores that its workers may use.
    pub cores: Vec<u32>,
    /// Worker threads.
    pub workers: Option<u32>,
    /// Addresses that its clients connect from.
    pub sources: Vec<IpAddr>,
    /// Servers that its clients connect to.
    pub targets: Vec<TargetChoice>,
}

/// One of the run's servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetChoice {
    /// The first of the command line is 1.
    Number(u32),
    /// As on the command line.
    Url(String),
}

/// Why agents cannot be read. What could be a password is not shown.
#[derive(Debug, Error)]
pub enum SpecError {
    /// No launcher is called that.
    #[error("--agents {0:?} names no launcher; write {FORMS}")]
    Unknown(String),
    /// It holds nothing.
    #[error("--agents is empty; write {FORMS}")]
    Empty,
    /// A host that ssh cannot be given.
    #[error("--agents {shown:?}: {what}")]
    Ssh {
        /// What may be shown of it.
        shown: String,
        /// What is wrong, and what to write.
        what: &'static str,
    },
    /// A number of agents.
    #[error("--agents {shown:?}: {number:?} is no number of agents from 1 to {AGENTS_MAX}")]
    Count {
        /// What may be shown of it.
        shown: String,
        /// What stands for the number.
        number: String,
    },
    /// No pods are selected.
    #[error(
        "--agents {0:?} selects no pods; write k8s:[NAMESPACE/]SELECTOR, for example \
         k8s:job-name=plimsoll"
    )]
    Selector(String),
    /// No command.
    #[error("--agents exec: names no command; write for example \"exec:ip netns exec A\"")]
    NoCommand,
    /// The command cannot be split into tokens.
    #[error("--agents {shown:?}: {source}; it is split into words as a shell does, without one")]
    CommandLine {
        /// As typed.
        shown: String,
        /// Why.
        source: SplitError,
    },
    /// All values together.
    #[error("--agents asks for more than {AGENTS_MAX} agents")]
    TooMany,
    /// A file that cannot be read.
    #[error("--agents {path}: {source}")]
    Unreadable {
        /// Where it lies.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file with an impossible setting.
    #[error("--agents {path}: {what}")]
    File {
        /// Where it lies.
        path: PathBuf,
        /// What, where in it, and what to write.
        what: String,
    },
    /// An agent of a file.
    #[error("{source} (agent {number} of {path})")]
    InFile {
        /// Where the file lies.
        path: PathBuf,
        /// The first is 1.
        number: u32,
        /// Why it cannot be read.
        source: Box<SpecError>,
    },
}

/// Reads the values of `--agents`; `read_file` reads the files that they name.
pub fn parse(
    values: &[String],
    read_file: &dyn Fn(&Path) -> io::Result<String>,
) -> Result<RequestedAgents, SpecError> {
    let mut requested = RequestedAgents::default();
    for value in values {
        for item in items(value) {
            if is_file(item) {
                table::read(Path::new(item), read_file, &mut requested)?;
            } else {
                add(item, &Settings::default(), &mut requested)?;
            }
        }
    }
    name_apart(&mut requested.agents);
    Ok(requested)
}

fn is_file(item: &str) -> bool {
    item.ends_with(".toml") && !SCHEMES.iter().any(|scheme| item.starts_with(scheme))
}

/// A comma separates only where a launcher follows.
fn items(value: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let mut begin = 0;
    let is_greedy = |from: usize| GREEDY.iter().any(|scheme| value[from..].starts_with(scheme));
    for (comma, _) in value.match_indices(',') {
        let next = &value[comma + 1..];
        let follows = SCHEMES.iter().any(|scheme| next.starts_with(scheme))
            || next.split(',').next() == Some("local");
        if follows && !is_greedy(begin) {
            items.push(&value[begin..comma]);
            begin = comma + 1;
        }
    }
    items.push(&value[begin..]);
    items
}

/// Adds what one launcher starts.
fn add(item: &str, settings: &Settings, requested: &mut RequestedAgents) -> Result<(), SpecError> {
    let (launcher, count) = if let Some(rest) = item.strip_prefix("ssh://") {
        let (_, number) = rest.split_once('*').unwrap_or((rest, "1"));
        (ssh(item)?, count(item, number)?)
    } else if let Some(number) = item.strip_prefix("slurm:") {
        let agents = count(item, number)?;
        (Launcher::Slurm { agents }, agents)
    } else if let Some(rest) = item.strip_prefix("k8s:") {
        requested.pods.push(pods(rest, settings)?);
        return Ok(());
    } else if let Some(rest) = item.strip_prefix("exec:") {
        (exec(rest)?, 1)
    } else {
        match item {
            "local" => (Launcher::Local, 1),
            "" => return Err(SpecError::Empty),
            _ => return Err(SpecError::Unknown(shown_of_unreadable(item))),
        }
    };
    if requested.agents.len() + count as usize > AGENTS_MAX as usize {
        return Err(SpecError::TooMany);
    }
    let agent = AgentSpec { name: launcher.to_string(), launcher, settings: settings.clone() };
    requested.agents.extend(std::iter::repeat_n(agent, count as usize));
    Ok(())
}

fn count(item: &str, number: &str) -> Result<u32, SpecError> {
    let read = number.parse().ok().filter(|number| (1..=AGENTS_MAX).contains(number));
    read.ok_or_else(|| SpecError::Count {
        shown: shown_of_unreadable(item),
        number: number.to_owned(),
    })
}

fn ssh(item: &str) -> Result<Launcher, SpecError> {
    let shown = shown_of_unreadable(item);
    let refused = |what| SpecError::Ssh { shown: shown.clone(), what };
    let host = item.split_once('*').map_or(item, |(host, _)| host);
    let url = TargetUrl::parse(host).map_err(|_| {
        refused("no host and port can be read in it; write ssh://[user@]host[:port]")
    })?;
    if url.password.is_some() {
        return Err(refused(
            "ssh is asked for no password here; make a key, with ssh-copy-id, and leave the \
             password out",
        ));
    }
    if url.path != "/" || url.query.is_some() {
        return Err(refused("a host has no path; write ssh://[user@]host[:port][*n]"));
    }
    if url.host.contains(',') {
        return Err(refused("a comma separates only before a launcher; write ssh://a,ssh://b"));
    }
    // Both become arguments of ssh, which takes one that begins with `-` for an option.
    if url.host.starts_with('-') || !is_name(&url.host, "-._:%") {
        return Err(refused(
            "the host's name holds what no name does; give it an alias in ssh's \
                            configuration",
        ));
    }
    if url.user.as_deref().is_some_and(|user| user.starts_with('-') || !is_name(user, "-._\\@+$")) {
        return Err(refused(
            "the user's name holds what no name does; give it in ssh's \
                            configuration",
        ));
    }
    Ok(Launcher::Ssh { user: url.user, host: url.host, port: url.port })
}

fn is_name(text: &str, also: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || also.contains(c))
}

fn pods(text: &str, settings: &Settings) -> Result<PodQuery, SpecError> {
    // The name of a label may hold a slash too, after a domain, which has a dot.
    let (namespace, selector) = match text.split_once('/') {
        Some((namespace, selector)) if is_label(namespace) => (Some(namespace), selector),
        _ => (None, text),
    };
    let is_selector = !selector.trim().is_empty() && !selector.contains(char::is_control);
    if !is_selector {
        return Err(SpecError::Selector(format!("k8s:{text}")));
    }
    let namespace = namespace.map(str::to_owned);
    Ok(PodQuery { namespace, selector: selector.to_owned(), settings: settings.clone() })
}

/// A label of RFC 1123, as Kubernetes requires for names.
pub fn is_label(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty()
        && text.len() <= 63
        && text.chars().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn exec(text: &str) -> Result<Launcher, SpecError> {
    let shown = format!("exec:{text}");
    let command =
        command_line::split(text).map_err(|source| SpecError::CommandLine { shown, source })?;
    match command.first() {
        Some(program) if !program.is_empty() => Ok(Launcher::Exec { command }),
        _ => Err(SpecError::NoCommand),
    }
}

/// Agents of one launcher are numbered where there are several.
pub fn name_apart(agents: &mut [AgentSpec]) {
    let mut totals: HashMap<String, u32> = HashMap::new();
    for agent in &*agents {
        *totals.entry(agent.launcher.to_string()).or_default() += 1;
    }
    totals.retain(|_, total| *total > 1);
    let mut numbers: HashMap<String, u32> = HashMap::new();
    for agent in agents {
        let base = agent.launcher.to_string();
        if totals.contains_key(&base) {
            let number = numbers.entry(base.clone()).or_default();
            *number += 1;
            agent.name = format!("{base}#{number}");
        }
    }
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Ssh { user, host, port } => {
                f.write_str("ssh://")?;
                if let Some(user) = user {
                    write!(f, "{user}@")?;
                }
                let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
                write!(f, "{open}{host}{close}")?;
                port.map_or(Ok(()), |port| write!(f, ":{port}"))
            }
            Self::Slurm { agents } => write!(f, "slurm:{agents}"),
            Self::Pod { namespace, pod } => {
                f.write_str("k8s:")?;
                if let Some(namespace) = namespace {
                    write!(f, "{namespace}/")?;
                }
                f.write_str(pod)
            }
            Self::Exec { command } => write!(f, "exec:{}", command_line::join(command)),
        }
    }
}

impl fmt::Display for PodQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("k8s:")?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.selector)
    }
}

#[cfg(test)]
mod tests;
