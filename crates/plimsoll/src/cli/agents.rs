//! Flags of who makes the load.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use plimsoll_fleet::launcher::spec::{self, AGENTS_MAX};
use plimsoll_model::event::AgentsAsked;
use plimsoll_model::units::Nanos;

use super::Progress;
use super::values::parse_span_arg;

/// What packaging/Containerfile makes, with a tag of its own for each release.
const IMAGE: &str = concat!("plimsoll:", env!("CARGO_PKG_VERSION"));
/// The host's name of a pod is that of the job with its number, and a label of 63 characters at
/// most.
const JOB_NAME_CHARS_MAX: usize = 58;

/// Agents, and what is theirs.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentArgs {
    /// Where agents make the load: ssh://[user@]host[:port][*n], slurm:N,
    /// k8s:[NAMESPACE/]SELECTOR, exec:COMMAND, local, or a file NAME.toml that says more of each;
    /// may be given often [default: this program alone]
    #[arg(long, value_name = "WHERE")]
    pub agents: Vec<String>,
    /// Begin with as few as N agents if the others are not there in time [default: all]
    #[arg(long, value_name = "N", requires = "agents", value_parser = clap::value_parser!(u32).range(1..))]
    pub agents_min: Option<u32>,
    /// How long agents may take to be there
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = parse_span_arg)]
    pub agents_wait: Nanos,
    /// Copy this program to agents' hosts that do not have it
    #[arg(long, requires = "agents")]
    pub deploy: bool,
    /// Address of this host that a server started by this run listens on, so that agents reach it
    /// [default: loopback]
    #[arg(long, value_name = "ADDR")]
    pub listen_on: Option<IpAddr>,
    /// Addresses of this host that clients connect from, in turn [default: left to the system]
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "agents")]
    pub source: Vec<IpAddr>,
}

impl AgentArgs {
    /// What the journal keeps of them; `None` where this program makes the load alone.
    pub(crate) fn asked(&self) -> Option<AgentsAsked> {
        (!self.agents.is_empty()).then(|| AgentsAsked {
            at: self.agents.clone(),
            min: self.agents_min,
            wait: self.agents_wait,
            deploy: self.deploy,
        })
    }
}

/// `plimsoll agent`.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentServeArgs {
    /// File of what controllers may ask for: targets, rates, cores
    #[arg(long, value_name = "FILE")]
    pub allow: Option<PathBuf>,
}

/// `plimsoll agents`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum AgentsVerb {
    /// Start each agent, without any load, and print what it can use
    Check(AgentsCheckArgs),
    /// Print a job of Kubernetes, for kubectl apply -f -, whose pods wait for runs
    Manifest(AgentsManifestArgs),
}

/// `plimsoll agents check`.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentsCheckArgs {
    /// As for --agents
    #[arg(required = true, value_name = "WHERE")]
    pub agents: Vec<String>,
    /// How long agents may take to be there
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = parse_span_arg)]
    pub agents_wait: Nanos,
    /// Copy this program to agents' hosts that do not have it
    #[arg(long)]
    pub deploy: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// How to show progress
    #[arg(long, value_enum, default_value_t = Progress::Auto, value_name = "HOW")]
    pub progress: Progress,
}

/// `plimsoll agents manifest`.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentsManifestArgs {
    /// How many pods, each of which is an agent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(AGENTS_MAX)))]
    pub replicas: u32,
    /// Image with this release of plimsoll, or, for --deploy, any that has a shell
    #[arg(long, value_name = "IMAGE", default_value = IMAGE, value_parser = parse_image)]
    pub image: String,
    /// Name of the job
    #[arg(long, value_name = "NAME", default_value = "plimsoll", value_parser = parse_job_name)]
    pub name: String,
    /// Namespace of the job [default: left to kubectl]
    #[arg(long, value_name = "NS", value_parser = parse_namespace)]
    pub namespace: Option<String>,
    /// Cores that each pod asks for
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub cpus: u32,
}

fn parse_image(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    match begins && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("no image is called that; write for example registry/plimsoll:TAG".to_owned()),
    }
}

fn parse_namespace(text: &str) -> Result<String, String> {
    match spec::is_label(text) {
        true => Ok(text.to_owned()),
        false => Err("Kubernetes wants small letters, digits and -, 63 at most".to_owned()),
    }
}

fn parse_job_name(text: &str) -> Result<String, String> {
    match spec::is_label(text) && text.len() <= JOB_NAME_CHARS_MAX {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "Kubernetes wants small letters, digits and -, here {JOB_NAME_CHARS_MAX} at most"
        )),
    }
}

impl AgentsCheckArgs {
    /// The agents to start.
    pub(crate) fn asked(&self) -> AgentsAsked {
        let (at, wait, deploy) = (self.agents.clone(), self.agents_wait, self.deploy);
        AgentsAsked { at, wait, deploy, ..AgentsAsked::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_into_a_manifest_cannot_change_its_meaning() {
        for image in ["plimsoll:1.2.3", "r.example:5000/a/b@sha256:0a"] {
            assert!(parse_image(image).is_ok(), "{image}");
        }
        for image in ["", "-x", "a b", "a\"b", "a\nb", "é"] {
            assert!(parse_image(image).is_err(), "{image}");
        }
        for (name, is_one) in [("load-1", true), ("Load", false), ("a\nb", false), ("", false)] {
            assert_eq!(
                (parse_job_name(name).is_ok(), parse_namespace(name).is_ok()),
                (is_one, is_one)
            );
        }
        assert!(
            parse_job_name(&"a".repeat(59)).is_err() && parse_namespace(&"a".repeat(59)).is_ok()
        );
    }
}
