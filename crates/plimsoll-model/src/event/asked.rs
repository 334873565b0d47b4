//! What a run was asked for besides its suite: in the journal, so that the run can be resumed or
//! repeated.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::assignment::{Pacing, Priority};
use crate::server_profile::ProfileAt;
use crate::units::{Bytes, Nanos, span_text};

/// What a run was asked for besides its suite, profile, seed and targets. What the user left to
/// the program is here as the program settled it. Secrets are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Asked {
    /// Worker threads of the run; a load point of few clients has fewer. With agents, those of
    /// each as far as the user named a number.
    pub workers: Option<u32>,
    /// How workers wait.
    pub pacing: Pacing,
    /// Scheduling priority of the workers.
    pub priority: Priority,
    /// The file that the clients replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_file: Option<LoadFileAsked>,
    /// The run's position among several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_a_row: Option<InARow>,
    /// URLs of `--monitor`, without communities.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub monitors: Vec<String>,
    /// The load at which the server is profiled; absent where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile_server: Option<ProfileAt>,
    /// Who makes the load; absent where this program does it alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<AgentsAsked>,
    /// Address that the servers of the run listen on, where it is not loopback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen_on: Option<IpAddr>,
    /// Addresses that clients of this program connect from, in turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<IpAddr>,
    /// Limits of the servers that the run started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_limits: Option<ServerLimits>,
}

/// The agents of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentsAsked {
    /// Values of `--agents`.
    pub at: Vec<String>,
    /// The run begins with as few if the others are not there in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u32>,
    /// How long they may take to be there.
    #[serde(rename = "wait_ns")]
    pub wait: Nanos,
    /// The program is copied to hosts that do not have it.
    #[serde(default)]
    pub deploy: bool,
}

/// A load file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadFileAsked {
    /// Its absolute path.
    pub path: PathBuf,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
}

/// The position of a run among several that are made in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InARow {
    /// From 1.
    pub number: u32,
    /// How many runs there are.
    pub count: u32,
    /// How many of them condition the server and are not reported.
    pub unreported: u32,
}

impl fmt::Display for InARow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reported = match self.unreported {
            0 => "each is reported",
            _ => "the last is reported, those before it condition the server",
        };
        write!(f, "run {} of {}; {reported}", self.number, self.count)
    }
}

/// Limits of a server that Plimsoll starts. It may use as it likes what is absent here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerLimits {
    /// How many of the cores for servers it gets.
    pub cores: Option<u32>,
    /// CPU time per time: 0.5 is half of one core.
    pub quota_cores: Option<f64>,
    /// Memory, its part of the page cache included.
    pub memory_bytes: Option<u64>,
    /// Service threads.
    pub threads: Option<u32>,
    /// Extra work of a reference server for each request.
    #[serde(rename = "work_ns")]
    pub work: Option<Nanos>,
}

impl fmt::Display for ServerLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = match (self.cores, self.quota_cores) {
            (Some(1), Some(quota)) => Some(format!("{quota} of one core (quota)")),
            (Some(cores), Some(quota)) => Some(format!("{quota} of {cores} cores (quota)")),
            (Some(cores), None) => Some(format!("{cores} cores")),
            (None, quota) => quota.map(|quota| format!("{quota} cores (quota)")),
        };
        let memory = self.memory_bytes.map(|bytes| format!("{} of memory", Bytes(bytes)));
        let threads = self.threads.map(|threads| format!("{threads} service threads"));
        let work =
            self.work.map(|work| format!("{} of work besides on each request", span_text(work)));
        let parts: Vec<String> = [cores, memory, threads, work].into_iter().flatten().collect();
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_a_server_read_as_one_line() {
        let quarter =
            ServerLimits { cores: Some(1), quota_cores: Some(0.25), ..ServerLimits::default() };
        assert_eq!(quarter.to_string(), "0.25 of one core (quota)");
        let threads = ServerLimits { threads: Some(4), ..ServerLimits::default() };
        assert_eq!(threads.to_string(), "4 service threads");
    }
}
