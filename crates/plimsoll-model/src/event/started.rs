//! The first record of a journal.

use serde::{Deserialize, Serialize};

use super::asked::Asked;
use crate::capacity::CapacityAsked;
use crate::gate::Gates;
use crate::method::Parameter;
use crate::outcome::OpNames;
use crate::sessions::SessionsPlan;

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
    /// Shares the method wants, same order as `op_names`; absent when the mix is not fixed.
    pub op_shares: Option<Vec<f64>>,
    /// How the clients open the sessions that they keep; absent where they keep none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionsPlan>,
    /// Every parameter that departs from the published method, for a person.
    pub departures: Vec<String>,
    /// Every parameter of the run beside the method's; empty in bundles of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub method: Vec<Parameter>,
    /// The command line, without passwords.
    pub command: Vec<String>,
    /// The search for a capacity that the run is; absent in others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacityAsked>,
    /// Conditions under which the run fails.
    #[serde(default, skip_serializing_if = "Gates::is_empty")]
    pub gates: Gates,
    /// What else the run was asked for; absent in bundles of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Box<Asked>>,
    /// Nanoseconds since the Unix epoch.
    pub at_unix_ns: u64,
}
