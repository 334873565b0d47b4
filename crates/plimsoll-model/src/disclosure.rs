//! What must be known to repeat a run. The places follow the source reports: server hardware,
//! file system, network, software and tuning, clients, who ran it, what was not verified.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::certificate::CertificateNote;
pub use crate::host::{Disk, FileSystem, Host, KernelSetting, Network, Setting, Tool};
use crate::inventory::{ConfigurationFile, Stated, SystemInventory};

/// `disclosure.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Disclosure {
    /// Version of this format.
    pub format: u32,
    /// The program.
    pub tool: Tool,
    /// The host that generates the load.
    pub generator: Host,
    /// The servers, in the order of the targets.
    pub targets: Vec<TargetDisclosure>,
    /// How the generator was set up.
    pub setup: Vec<Setting>,
    /// Statements the user made (`--set disclosure.KEY=VALUE`): who ran it, availability dates.
    pub statements: Vec<Setting>,
    /// What this program could not see for itself.
    pub not_verified: Vec<String>,
    /// The latest certificate of calibration of this host; absent where none was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateNote>,
    /// Which host does what, at which addresses, over which links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topology: Vec<Setting>,
    /// Hosts of agents, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_hosts: Vec<AgentHost>,
    /// The agents, each with its way to the servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentDisclosure>,
    /// Inventories of other hosts (`--system FILE.json`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub systems: Vec<SystemInventory>,
    /// What can only be stated (`--system FILE.toml`), given or not; absent in older bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated: Option<Stated>,
}

/// A host on which agents make load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentHost {
    /// Names of its agents.
    pub agents: Vec<String>,
    /// The host.
    pub host: Host,
    /// The latest certificate of calibration of the host; absent where none was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateNote>,
}

/// An agent: what it may use, and what its clients connect to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentDisclosure {
    /// Its name.
    pub agent: String,
    /// Name of its host.
    pub host: String,
    /// Worker threads.
    pub workers: u32,
    /// Cores of the workers.
    pub cores: Vec<u32>,
    /// Addresses that its clients connect from, in turn; empty where its host chose.
    pub sources: Vec<String>,
    /// The servers that its clients use.
    pub ways: Vec<WayDisclosure>,
}

/// An agent's way to a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WayDisclosure {
    /// The server, as given, without password.
    pub target: String,
    /// Address that the clients use.
    pub address: String,
    /// Address that the agent's host chooses for connections to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Network interface of the agent's host that leads to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Speed of that link; absent where the interface does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_mbit_per_s: Option<u64>,
}

/// One server as far as the program or its user knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetDisclosure {
    /// As given, without password.
    pub target: String,
    /// Address the clients used.
    pub address: String,
    /// Software and version, when the program started it or the server says so.
    pub software: Option<String>,
    /// Configuration, when the program wrote it. Bundles of version 0.1.0 also have that of servers
    /// which somebody else started.
    pub configuration: Option<String>,
    /// Configuration file of a server that somebody else started on this host; absent where it is
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_file: Option<ConfigurationFile>,
    /// Cores the server was held to.
    pub cores: Vec<u32>,
    /// Same host as the generator.
    pub same_host: bool,
    /// Further facts.
    pub facts: Vec<Setting>,
}
