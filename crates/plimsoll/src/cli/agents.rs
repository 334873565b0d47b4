//! Flags of who makes the load.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use plimsoll_model::event::AgentsAsked;
use plimsoll_model::units::Nanos;

use super::Progress;
use super::values::parse_span_arg;

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
    /// How to show progress
    #[arg(long, value_enum, default_value_t = Progress::Auto, value_name = "HOW")]
    pub progress: Progress,
}

impl AgentsCheckArgs {
    /// The agents to start.
    pub(crate) fn asked(&self) -> AgentsAsked {
        let (at, wait) = (self.agents.clone(), self.agents_wait);
        AgentsAsked { at, wait, ..AgentsAsked::default() }
    }
}
