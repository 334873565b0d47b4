//! The `[workload]` table of suites with `protocol = "app"`.

use plimsoll_model::suite::{Parameters, SuiteError, TableReader, weights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::op::AppKind;
use super::wire::{PAYLOAD_BYTES_MAX, REPLY_HEADER_BYTES, REQUEST_HEADER_BYTES, WORK_MAX};

/// A sector of a disk.
const ACCESS_BYTES_MIN: u32 = 512;
/// Sixty-four segments of it fill a disk of a terabyte.
const SEGMENT_MIB_MAX: f64 = 16_384.0;
/// Below it a segment is one block.
const ACCESS_RATIO_MIN: f64 = 0.001;

/// Parameters of a workload of application transactions, every default explicit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AppWorkload {
    /// Bytes of the whole request of a client/server transaction, header included.
    #[schemars(range(min = REQUEST_HEADER_BYTES, max = REQUEST_HEADER_BYTES + PAYLOAD_BYTES_MAX as usize))]
    pub request_bytes: u32,
    /// Bytes of the whole reply of a client/server transaction, header included.
    #[schemars(range(min = REPLY_HEADER_BYTES, max = REPLY_HEADER_BYTES + PAYLOAD_BYTES_MAX as usize))]
    pub reply_bytes: u32,
    /// Bytes that a server/client transaction brings.
    #[schemars(range(min = 1, max = PAYLOAD_BYTES_MAX))]
    pub server_client_bytes: u32,
    /// Bytes of a read, write or append.
    #[schemars(range(min = ACCESS_BYTES_MIN, max = PAYLOAD_BYTES_MAX))]
    pub access_bytes: u32,
    /// Size of a client's data segment in MiB, before the profile's scale.
    #[schemars(range(min = 0.01, max = SEGMENT_MIB_MAX))]
    pub segment_mib: f64,
    /// Share of the segment that is read and written, from its beginning.
    #[schemars(range(min = ACCESS_RATIO_MIN, max = 1.0))]
    pub segment_access_ratio: f64,
    /// Units of work of a processor transaction: checksums over 64 KiB.
    #[schemars(range(min = 1, max = WORK_MAX))]
    pub work: u32,
    /// The body of one reply in this many is compared if it is known in advance; 1: of all.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub verify_one_in: u32,
    /// Seed of the segments' content.
    pub file_set_seed: u64,
    /// How often each kind of transaction occurs.
    pub mix: AppMix,
}

/// Weight of each kind of transaction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = weights)]
#[expect(missing_docs, reason = "each is the weight of the transaction of its name")]
pub struct AppMix {
    pub client_server: f64,
    pub processor: f64,
    pub server_client: f64,
    pub random_read: f64,
    pub random_write: f64,
    pub sequential_read: f64,
    pub sequential_write: f64,
    pub append: f64,
}

impl Parameters for AppWorkload {}

impl Default for AppWorkload {
    /// The method's segment; what it leaves open (sizes, work, weights) is ours.
    fn default() -> Self {
        Self {
            request_bytes: 128,
            reply_bytes: 1_024,
            server_client_bytes: 16 * 1_024,
            access_bytes: 8 * 1_024,
            segment_mib: 16.0,
            segment_access_ratio: 1.0,
            work: 100,
            verify_one_in: 16,
            file_set_seed: 1,
            mix: AppMix::default(),
        }
    }
}

impl Default for AppMix {
    /// The five kinds of the method, equally often.
    fn default() -> Self {
        Self {
            client_server: 0.2,
            processor: 0.2,
            server_client: 0.2,
            random_read: 0.2,
            random_write: 0.2,
            sequential_read: 0.0,
            sequential_write: 0.0,
            append: 0.0,
        }
    }
}

impl AppMix {
    /// The weights in the order of [`AppKind::ALL`].
    pub const fn weights(&self) -> [f64; AppKind::ALL.len()] {
        [
            self.client_server,
            self.processor,
            self.server_client,
            self.random_read,
            self.random_write,
            self.sequential_read,
            self.sequential_write,
            self.append,
        ]
    }

    /// The shares in the order of [`AppKind::ALL`].
    pub fn shares(&self) -> Vec<f64> {
        let weights = self.weights();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / total).collect()
    }

    /// Kinds that occur.
    pub fn kinds(&self) -> impl Iterator<Item = AppKind> {
        let weights = self.weights();
        AppKind::ALL.into_iter().filter(move |kind| weights[*kind as usize] > 0.0)
    }
}

/// Names of the ops; the index of each is its kind.
pub fn op_names() -> Vec<String> {
    AppKind::ALL.iter().map(|kind| kind.name().to_owned()).collect()
}

/// Reads the table, every default explicit.
pub fn read(table: &TableReader<'_>) -> Result<AppWorkload, SuiteError> {
    let workload: AppWorkload = table.read()?;
    if workload.mix.kinds().next().is_none() {
        return Err(table
            .error_at("mix.client_server", "no transaction has a weight above 0")
            .with_help("write for example client_server = 1"));
    }
    Ok(workload)
}

#[cfg(test)]
mod tests {
    use plimsoll_model::suite::Suite;
    use plimsoll_testkit::suites::small_suite;

    use super::*;

    fn suite(set: &[&str]) -> Result<Suite, SuiteError> {
        small_suite(("app", ""), set, read)
    }

    fn typed(set: &[&str]) -> AppWorkload {
        suite(set).unwrap().workload.parameters::<AppWorkload>().clone()
    }

    #[test]
    fn an_empty_table_is_the_methods_mix() {
        let workload = typed(&[]);
        assert_eq!(workload, AppWorkload::default());
        assert_eq!(workload.mix.shares(), [0.2, 0.2, 0.2, 0.2, 0.2, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn weights_are_relative_and_any_kind_may_be_alone() {
        let zero = ["client_server", "processor", "server_client", "random_read", "random_write"]
            .map(|key| format!("workload.mix.{key}=0"));
        let mut set: Vec<&str> = zero.iter().map(String::as_str).collect();
        set.push("workload.mix.append=7");
        let mix = typed(&set).mix;
        assert_eq!(mix.kinds().collect::<Vec<_>>(), [AppKind::Append]);
        assert_eq!(mix.shares()[AppKind::Append as usize], 1.0);
        set.pop();
        assert!(suite(&set).unwrap_err().to_string().contains("no transaction has a weight"));
    }

    #[test]
    fn wrong_workloads_are_refused_with_a_next_move() {
        let refusal = |set: &str| {
            let error = suite(&[set]).unwrap_err();
            format!("{error} | {}", error.help.as_deref().unwrap_or_default())
        };
        assert!(refusal("workload.request_bytes=39").contains("from 40 to 65576"));
        assert!(refusal("workload.reply_bytes=70000").contains("from 24 to 65560"));
        assert!(refusal("workload.access_bytes=100").contains("from 512 to 65536"));
        assert!(refusal("workload.work=0").contains("from 1 to"));
        assert!(refusal("workload.segment_access_ratio=1.5").contains("from 0.001 to 1"));
        assert!(refusal("workload.mix.procesor=3").contains("did you mean `processor`?"));
        assert!(refusal("workload.verify=3").contains("verify_one_in"));
    }

    #[test]
    fn the_schema_names_every_key() {
        let schema = schemars::schema_for!(AppWorkload).as_value().to_string();
        for key in ["request_bytes", "segment_access_ratio", "sequential_write", "file_set_seed"] {
            assert!(schema.contains(key), "{key}");
        }
    }
}
