//! Monitored hosts, and the part of each in what is measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::named::named;

/// A source of resources, as far as it tells whose host it watches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MonitoredSource {
    /// As resources name it.
    pub source: String,
    /// As the user gave it (`--monitor ROLE=URL`); absent where it is to be found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<SourceRole>,
    /// Addresses of its host, those of the loopback interface left out: all that a host lists
    /// (ssh), else those that the name in the URL stands for.
    pub addresses: Vec<String>,
}

named! {
    /// The part of a monitored host in what is measured.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    pub enum SourceRole {
        /// It answers the requests.
        Server = "server",
        /// The server stores its data there.
        Database = "database",
        /// It carries the load between clients and server.
        Network = "network",
        /// It makes load.
        Client = "client",
        /// None of these, as far as is known. Never given.
        Other = "other",
    }
}

impl SourceRole {
    /// Those that a user can give, in order.
    pub fn given() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|role| *role != Self::Other)
    }

    /// The role of this name, if a user can give it.
    pub fn from_given(name: &str) -> Option<Self> {
        Self::given().find(|role| role.as_str() == name)
    }
}

/// A monitored host with its role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MonitoredHost {
    /// As resources name it; absent for the host of the program that coordinates the run.
    pub source: Option<String>,
    /// Its role.
    pub role: SourceRole,
    /// What its role rests on.
    pub basis: RoleBasis,
}

named! {
    /// What the role of a monitored host rests on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum RoleBasis {
        /// The user gave it.
        Given = "given",
        /// A target's address is one of the host's, or its URL names the same host.
        Address = "address",
        /// Processes of a target were found there.
        Process = "process",
        /// An agent runs there.
        Agent = "agent",
        /// It has interfaces and no processors.
        NoProcessors = "no_processors",
        /// No other host can be the server.
        Assumed = "assumed",
        /// Nothing shows a role.
        Nothing = "nothing",
    }
}
