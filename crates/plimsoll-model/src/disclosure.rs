//! What must be known to repeat a run. The sections follow the source reports: server hardware,
//! file system, network, software and tuning, clients, who ran it, what was not verified.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::certificate::CertificateNote;
use crate::disks::DiskSet;
use crate::host::{ConfigurationFile, DeclaredFacts, SystemInventory};
pub use crate::host::{Disk, FileSystem, Host, KernelSetting, Network, Setting, Tool};
use crate::monitored::MonitoredSource;

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
    /// Monitored hosts besides this one and those of agents (`--monitor`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub monitored: Vec<MonitoredSource>,
    /// Disks whose role is known, from the testbed or from what lies on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disk_sets: Vec<DiskSet>,
    /// Hosts of agents, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_hosts: Vec<AgentHost>,
    /// The agents, each with its route to the servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentDisclosure>,
    /// Inventories of other hosts (`--system FILE.json`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub systems: Vec<SystemInventory>,
    /// What only the user can state (`--system FILE.toml`), given or not; absent in older bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated: Option<DeclaredFacts>,
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
    /// Addresses that its clients connect from, round-robin; empty where its host chose.
    pub sources: Vec<String>,
    /// The servers that its clients use.
    pub ways: Vec<RouteDisclosure>,
}

/// An agent's route to a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteDisclosure {
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
    /// Speed of that link; absent where the interface reports none.
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
    /// Software and version, when the program started it or the server reports it.
    pub software: Option<String>,
    /// Configuration, when the program wrote it. Bundles of version 0.1.0 also have that of servers
    /// which somebody else started.
    pub configuration: Option<String>,
    /// Configuration file of a server that somebody else started on this host; absent where
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_file: Option<ConfigurationFile>,
    /// Cores the server was pinned to.
    pub cores: Vec<u32>,
    /// Same host as the generator.
    pub same_host: bool,
    /// Further facts.
    pub facts: Vec<Setting>,
}

impl TargetDisclosure {
    /// Name and version of the software: `nginx 1.22.1` of `nginx version: nginx/1.22.1 (Ubuntu)`.
    /// `None` where one of them is unknown.
    pub fn system(&self) -> Option<String> {
        /// Words that servers put between their name and their version.
        const FILLERS: [&str; 7] = ["version", "version:", "server", "release", "ver", "=", "-"];
        let is_filler = |word: &&str| FILLERS.contains(&word.to_lowercase().as_str());
        let version = |word: &str| {
            let word = word.trim_start_matches("v=").trim_start_matches(['v', 'V']);
            word.starts_with(|c: char| c.is_ascii_digit()).then(|| word.to_owned())
        };
        let mut name: Vec<&str> = Vec::new();
        for word in self.software.as_deref()?.split_whitespace() {
            match (word.split_once('/'), version(word)) {
                (Some((name, of)), _) if version(of).is_some() => {
                    return Some(format!("{name} {}", version(of)?));
                }
                (_, Some(version)) if !name.is_empty() => {
                    return Some(format!("{} {version}", name.join(" ")));
                }
                (_, None) if !is_filler(&word) => name.push(word),
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_the_name_and_the_version_of_its_software() {
        let system = |software: &str| {
            let software = Some(software.to_owned());
            TargetDisclosure { software, ..TargetDisclosure::default() }.system()
        };
        for (software, name) in [
            ("nginx version: nginx/1.22.1", "nginx 1.22.1"),
            ("nginx/1.22.1", "nginx 1.22.1"),
            ("Caddy 2.6.2", "Caddy 2.6.2"),
            ("Caddy v2.7.6 h1:w0NymbG2m9PcvKWsrXO6EEkY9Ru4FJK8uQbYcev1p3A=", "Caddy 2.7.6"),
            ("Server version: Apache/2.4.62 (Debian)", "Apache 2.4.62"),
            (
                "HAProxy version 2.6.12-1+deb12u1 2023/12/16 - https://haproxy.org/",
                "HAProxy 2.6.12-1+deb12u1",
            ),
            ("NFS-Ganesha Release = V4.3", "NFS-Ganesha 4.3"),
            ("lighttpd/1.4.69 (ssl) - a light and fast webserver", "lighttpd 1.4.69"),
            ("Samba Version 4.17.12-Debian", "Samba 4.17.12-Debian"),
        ] {
            assert_eq!(system(software).as_deref(), Some(name), "{software}");
        }
        for unknown in ["", "2.6.2", "Caddy", "v1"] {
            assert_eq!(system(unknown), None, "{unknown}");
        }
    }
}
