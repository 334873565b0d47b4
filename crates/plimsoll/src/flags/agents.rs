//! Flags for the agents that make the load.

use std::net::IpAddr;

use clap::Args;
use plimsoll_model::event::AgentOptions;
use plimsoll_model::units::Nanos;

use super::values::parse_span_arg;
use crate::exit::Failure;

/// Flags for agents and their options.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentArgs {
    /// Where agents make the load: ssh://[user@]host[:port][*n], slurm:N, k8s:[NAMESPACE/]SELECTOR,
    /// exec:COMMAND, local, or a file NAME.toml with more settings of each; may be given often
    /// [default: this program alone]
    #[arg(long, value_name = "WHERE")]
    pub agents: Vec<String>,
    /// Begin with N agents if the others have not arrived in time [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub agents_min: Option<u32>,
    /// How long to wait for agents to arrive
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = parse_span_arg)]
    pub agents_wait: Nanos,
    /// Copy this program to agents' hosts that do not have it
    #[arg(long)]
    pub deploy: bool,
    /// Address of this host that a server started by this run listens on, so that agents reach it
    /// [default: loopback]
    #[arg(long, value_name = "ADDR")]
    pub listen_on: Option<IpAddr>,
    /// Addresses of this host that clients connect from, in rotation [default: left to the system]
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "agents")]
    pub source: Vec<IpAddr>,
}

impl AgentArgs {
    /// What the journal keeps of the agents, which are `at` (those of a testbed included); `None`
    /// if this program makes the load alone.
    pub(crate) fn options(&self, at: Vec<String>) -> Result<Option<AgentOptions>, Failure> {
        let flags = [("--agents-min", self.agents_min.is_some()), ("--deploy", self.deploy)];
        match flags.iter().find(|(_, given)| at.is_empty() && *given) {
            Some((flag, _)) => {
                Err(Failure::wrong(format!("{flag}: there are no agents; name them with --agents")))
            }
            None => Ok((!at.is_empty()).then_some(AgentOptions {
                at,
                min: self.agents_min,
                wait: self.agents_wait,
                deploy: self.deploy,
            })),
        }
    }
}
