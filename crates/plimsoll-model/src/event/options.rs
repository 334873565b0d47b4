//! The first record of a journal: a run's options besides its suite, so that it can be resumed or
//! repeated.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::PageLimits;
use crate::assignment::{Pacing, Priority};
use crate::capacity::CapacityRequest;
use crate::consumers::ProfileAt;
use crate::gate::Gates;
use crate::load_shape::LoadShape;
use crate::method::Parameter;
use crate::outcome::OpNames;
use crate::recovery::RecoverRequest;
use crate::sessions::SessionsPlan;
use crate::units::{BITS_PER_MBIT, Bytes, Nanos, grouped, span_text};
use crate::until::Until;

/// The options of a run besides its suite, profile, seed and targets. Options that the user left
/// to the program have the program's value. Secrets are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// Worker threads of the run; a load point of few clients has fewer. With agents, those of
    /// each as far as the user named a number.
    pub workers: Option<u32>,
    /// How workers wait.
    pub pacing: Pacing,
    /// Scheduling priority of the workers.
    pub priority: Priority,
    /// The file that the clients replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_file: Option<RequestedLoadFile>,
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
    pub agents: Option<AgentOptions>,
    /// Address that the servers of the run listen on, where it is not loopback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen_on: Option<IpAddr>,
    /// Addresses that clients of this program connect from, round-robin.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<IpAddr>,
    /// The precision that load points are measured to; absent where windows have the profile's
    /// length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// Limits of the servers that the run started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_limits: Option<ServerLimits>,
    /// How the load changes; absent where each load point has one load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<LoadShape>,
    /// The load around a pulse, from which a peak that is searched gives the shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recover: Option<RecoverRequest>,
}

/// The agents of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentOptions {
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
pub struct RequestedLoadFile {
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

/// Limits of a server that Plimsoll starts. An absent one is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerLimits {
    /// How many of the cores for servers it gets.
    pub cores: Option<u32>,
    /// CPU time per time: 0.5 is half of one core.
    pub quota_cores: Option<f64>,
    /// Memory, its part of the page cache included.
    pub memory_bytes: Option<u64>,
    /// Bytes per second that it may read from each disk, and as many that it may write.
    pub disk_bytes_per_s: Option<u64>,
    /// Transfers per second, likewise.
    pub disk_transfers_per_s: Option<u64>,
    /// Bits per second of its link, in each direction.
    pub link_bits_per_s: Option<u64>,
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
        let disk_rate = self.disk_bytes_per_s.map(|rate| format!("{}/s of each disk", Bytes(rate)));
        let disk_transfers =
            self.disk_transfers_per_s.map(|rate| format!("{rate} transfers/s of each disk"));
        let link = self
            .link_bits_per_s
            .map(|rate| format!("a link of {} Mbit/s", grouped(rate as f64 / BITS_PER_MBIT)));
        let threads = self.threads.map(|threads| format!("{threads} service threads"));
        let work =
            self.work.map(|work| format!("{} of work besides on each request", span_text(work)));
        let parts: Vec<String> = [cores, memory, disk_rate, disk_transfers, link, threads, work]
            .into_iter()
            .flatten()
            .collect();
        f.write_str(&parts.join(", "))
    }
}

/// What a run is, written once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStarted {
    /// Version of the journal format.
    pub format: u32,
    /// Version of the program.
    pub version: String,
    /// The program was built with debug assertions: its figures are not a measurement.
    pub debug_build: bool,
    /// Profile name.
    pub profile: String,
    /// Run seed.
    pub seed: u64,
    /// Targets as given, without passwords.
    pub targets: Vec<String>,
    /// Loads of the ladder; absent while a search has to find them.
    pub ladder: Option<Vec<f64>>,
    /// Names of the workload's ops.
    pub op_names: OpNames,
    /// Shares the method requires, same order as `op_names`; absent when the mix is not fixed.
    pub op_shares: Option<Vec<f64>>,
    /// Of pages, same order as `op_names`; empty where no page has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub page_limits: Vec<PageLimits>,
    /// How the clients open the sessions that they keep; absent where they keep none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionsPlan>,
    /// Every parameter that deviates from the published method, for a person.
    pub departures: Vec<String>,
    /// Every parameter of the run and the method's; empty in bundles of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub method: Vec<Parameter>,
    /// The command line, without passwords.
    pub command: Vec<String>,
    /// The search for a capacity that the run is; absent in others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacityRequest>,
    /// Conditions under which the run fails.
    #[serde(default, skip_serializing_if = "Gates::is_empty")]
    pub gates: Gates,
    /// Further options of the run; absent in bundles of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Box<RunOptions>>,
    /// Nanoseconds since the Unix epoch.
    pub at_unix_ns: u64,
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
