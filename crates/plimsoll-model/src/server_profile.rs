//! Which functions a server's processor time went to, as `perf` sampled it.

use serde::{Deserialize, Serialize};

/// The load at which the server is to be profiled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileAt {
    /// The load point with the highest throughput.
    Peak,
    /// This load.
    Load(f64),
}

/// A profile of the server, made at a load point of its own that is in no figure of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerProfile {
    /// Stem of its load point.
    pub stem: String,
    /// Load of the point, on the axis.
    pub requested: f64,
    /// Ops finished without error per second at that point; set by analysis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_ops_per_s: Option<f64>,
    /// Folded stacks, within the bundle.
    pub file: String,
    /// Host that was profiled; absent for this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What was profiled there.
    pub scope: ProfileScope,
    /// What perf sampled by: `cycles`, or `cpu-clock` where the machine counts no cycles.
    pub sampled_by: String,
    /// How long.
    pub seconds: u32,
    /// Samples of work.
    pub samples: u64,
    /// Samples of idle processors, which are in no stack.
    pub idle_samples: u64,
    /// Samples whose stacks there was no room for; they count for the functions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out_samples: u64,
    /// Functions with the most samples of their own.
    pub functions: Vec<ProfiledFunction>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What was profiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileScope {
    /// The server's processes and their children.
    Processes,
    /// Everything on the host.
    #[default]
    Host,
}

/// A function, and its shares of the samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfiledFunction {
    /// Its name, or its module in brackets where that is not known.
    pub name: String,
    /// `kernel`, or the file name of the program or library.
    pub module: String,
    /// Samples in the function itself.
    pub self_samples: u64,
    /// Share of all samples in the function itself.
    pub self_ratio: f64,
    /// Share of all samples in it or in what it called.
    pub total_ratio: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::JournalRecord;

    #[test]
    fn the_journal_gives_a_profile_back() {
        let function = ProfiledFunction { name: "main".to_owned(), ..ProfiledFunction::default() };
        let profile = ServerProfile { functions: vec![function], ..ServerProfile::default() };
        let record = JournalRecord::ServerProfiled(Box::new(profile));
        let line = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<JournalRecord>(&line).unwrap(), record, "{line}");
    }
}
