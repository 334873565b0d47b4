//! The `[workload]` table of suites with `protocol = "nfs"`.

use std::collections::BTreeMap;

use plimsoll_model::suite::{SuiteError, TableReader};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fileset::BLOCK_BYTES;
pub use super::mix::{MixOp, NfsVersion};
use super::mix::{READ_BLOCKS, WRITE_BLOCKS, mean_rpcs};
use super::op::Stability;

/// The session numbers its calls with eight bits.
const OUTSTANDING_MAX: u64 = 256;
/// More groups than the files of a pattern cannot be equal.
const ACCESS_GROUPS_MAX: u64 = 100;
/// Larger than any weight needs to be, small enough that sums stay exact.
const WEIGHT_MAX: f64 = 1e6;

/// Parameters of an NFS workload, every default explicit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NfsWorkload {
    /// 2 or 3.
    #[schemars(with = "u8")]
    pub version: NfsVersion,
    /// What carries the calls; the query of a target's URL comes before it.
    pub transport: Transport,
    /// Ask from a port below 1024 when permitted.
    pub reserved_port: bool,
    /// Most RPCs in flight of one process.
    pub outstanding_max: u32,
    /// Most READs in flight of one process.
    pub reads_outstanding_max: u32,
    /// Most WRITEs in flight of one process.
    pub writes_outstanding_max: u32,
    /// Percent of READs of 1, 2, 4, 8, 16 blocks of 8 KiB; each block is an RPC.
    pub read_blocks: [u8; READ_BLOCKS.len()],
    /// Percent of WRITEs of less than a block, and of 1, 2, 4, 8, 16 blocks.
    pub write_blocks: [u8; WRITE_BLOCKS.len()],
    /// Percent of WRITEs that append.
    pub append_percent: u8,
    /// Of one READ in this many the content is compared; 1 is all.
    pub verify_one_in: u32,
    /// Size of the file set in MiB for each requested op/s.
    pub mib_per_op_per_s: f64,
    /// Seed of the content, where the server's file set does not say its own.
    pub file_set_seed: u64,
    /// Groups of equal size that the accessed tenth of the files is divided into.
    pub access_groups: u32,
    /// Mean of the Poisson distribution, truncated to the groups' numbers, that chooses a group.
    pub access_poisson_mean: f64,
    /// Weight of each op: its share of the RPCs, whatever they sum to.
    #[schemars(extend("propertyNames" = schemars::schema_for!(MixOp)))]
    pub mix: BTreeMap<MixOp, f64>,
}

/// What carries the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// One connection for each process.
    #[default]
    Tcp,
    /// One connected socket for each process.
    Udp,
}

impl Transport {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

impl NfsWorkload {
    /// The ops that occur, with their weights.
    pub fn ops(&self) -> impl Iterator<Item = (MixOp, f64)> {
        self.mix.iter().map(|(op, weight)| (*op, *weight)).filter(|(_, weight)| *weight > 0.0)
    }

    /// RPCs that one draw of `op` takes on average.
    pub fn mean_rpcs(&self, op: MixOp) -> f64 {
        match op {
            MixOp::Read => mean_rpcs(&READ_BLOCKS, &self.read_blocks),
            MixOp::Write => mean_rpcs(&WRITE_BLOCKS, &self.write_blocks),
            _ => 1.0,
        }
    }

    /// How often each op that occurs is drawn: the weights are shares of RPCs, and a draw of
    /// several blocks is as many RPCs.
    pub fn draw_weights(&self) -> Vec<f64> {
        self.ops().map(|(op, weight)| weight / self.mean_rpcs(op)).collect()
    }

    /// When the server may answer a WRITE: at once, where COMMITs follow.
    pub fn stability(&self) -> Stability {
        match self.ops().any(|(op, _)| op == MixOp::Commit) {
            true => Stability::Unstable,
            false => Stability::FileSync,
        }
    }

    /// Bytes by which one RPC makes the file set grow, on average: for the space a run needs.
    pub fn append_bytes_per_op(&self) -> f64 {
        let rpcs = mean_rpcs(&WRITE_BLOCKS, &self.write_blocks);
        // A part of a block is half of one, on average.
        let under = f64::from(self.write_blocks[0]) / 100.0 / 2.0;
        let bytes_per_rpc = f64::from(BLOCK_BYTES) * (rpcs - under) / rpcs;
        let total: f64 = self.ops().map(|(_, weight)| weight).sum();
        let writes = self.mix.get(&MixOp::Write).copied().unwrap_or_default() / total;
        writes * f64::from(self.append_percent) / 100.0 * bytes_per_rpc
    }
}

/// Names of the ops that occur; the index of each is its kind.
pub fn op_names(workload: &NfsWorkload) -> Vec<String> {
    workload.ops().map(|(op, _)| op.name().to_owned()).collect()
}

/// Shares of the RPCs, in the order of [`op_names`].
pub fn op_shares(workload: &NfsWorkload) -> Vec<f64> {
    let total: f64 = workload.ops().map(|(_, weight)| weight).sum();
    workload.ops().map(|(_, weight)| weight / total).collect()
}

/// RPCs that one draw brings on average.
pub fn ops_per_arrival(workload: &NfsWorkload) -> f64 {
    let rpcs: f64 = workload.ops().map(|(_, weight)| weight).sum();
    rpcs / workload.draw_weights().iter().sum::<f64>()
}

/// Reads the table, every default explicit.
pub fn read(table: &TableReader<'_>) -> Result<toml::Table, SuiteError> {
    let workload = read_typed(table)?;
    Ok(toml::Table::try_from(workload).expect("numbers, words and lists are always TOML"))
}

/// Reads the table.
pub fn read_typed(table: &TableReader<'_>) -> Result<NfsWorkload, SuiteError> {
    let version = table.count("version", 2..=3)?.ok_or_else(|| table.missing("version"))?;
    let version = if version == 2 { NfsVersion::V2 } else { NfsVersion::V3 };
    let outstanding_max = table.count("outstanding_max", 1..=OUTSTANDING_MAX)?.unwrap_or(32) as u32;
    let bound = |key: &'static str| {
        let given = table.count(key, 1..=u64::from(outstanding_max))?;
        Ok::<_, SuiteError>(given.map_or(outstanding_max.min(8), |n| n as u32))
    };
    Ok(NfsWorkload {
        version,
        transport: table
            .choice("transport", &[("tcp", Transport::Tcp), ("udp", Transport::Udp)])?
            .unwrap_or_default(),
        reserved_port: table.flag("reserved_port")?.unwrap_or(true),
        outstanding_max,
        reads_outstanding_max: bound("reads_outstanding_max")?,
        writes_outstanding_max: bound("writes_outstanding_max")?,
        read_blocks: read_percents(table, "read_blocks", [85, 8, 4, 2, 1])?,
        write_blocks: read_percents(table, "write_blocks", [49, 36, 8, 4, 2, 1])?,
        append_percent: table.count("append_percent", 0..=100)?.unwrap_or(70) as u8,
        verify_one_in: table.count("verify_one_in", 1..=1_000_000)?.unwrap_or(64) as u32,
        mib_per_op_per_s: table.number_in("mib_per_op_per_s", 0.001..=10_000.0)?.unwrap_or(10.0),
        file_set_seed: table.count("file_set_seed", 0..=i64::MAX as u64)?.unwrap_or(1),
        access_groups: table.count("access_groups", 1..=ACCESS_GROUPS_MAX)?.unwrap_or(10) as u32,
        access_poisson_mean: table.number_in("access_poisson_mean", 0.1..=50.0)?.unwrap_or(5.0),
        mix: read_mix(&table.table("mix")?, version)?,
    })
}

fn read_mix(
    table: &TableReader<'_>,
    version: NfsVersion,
) -> Result<BTreeMap<MixOp, f64>, SuiteError> {
    let mut mix = BTreeMap::new();
    for op in MixOp::ALL {
        let weight = table.number_in(op.name(), 0.0..=WEIGHT_MAX)?.unwrap_or(0.0);
        if op.is_in(version) {
            mix.insert(op, weight);
        } else if weight > 0.0 {
            let message = format!("NFS version {} has no {}", version.number(), op.name());
            return Err(table
                .error_at(op.name(), message)
                .with_help("remove the op, or write version = 3"));
        }
    }
    table.finish()?;
    if mix.values().sum::<f64>() > 0.0 {
        return Ok(mix);
    }
    Err(table
        .error_at("", "no op of the mix has a weight")
        .with_help("write for example lookup = 27 and read = 18 under [workload.mix]"))
}

fn read_percents<const N: usize>(
    table: &TableReader<'_>,
    key: &'static str,
    default: [u8; N],
) -> Result<[u8; N], SuiteError> {
    let Some(given) = table.numbers(key)? else { return Ok(default) };
    let whole = given.iter().all(|p| p.fract() == 0.0 && (0.0..=100.0).contains(p));
    let percents: Vec<u8> = given.iter().map(|p| *p as u8).collect();
    match <[u8; N]>::try_from(percents) {
        Ok(percents) if whole && percents.iter().map(|p| u32::from(*p)).sum::<u32>() == 100 => {
            Ok(percents)
        }
        _ => Err(table
            .error_at(key, format!("`{key}` is {given:?}"))
            .with_help(format!("write {N} whole numbers that sum to 100, like {default:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::suite::{Override, Suite};

    const SUITES: [(&str, &str); 3] = [
        ("nfs-v2", include_str!("../suites/nfs-v2.toml")),
        ("nfs-v3", include_str!("../suites/nfs-v3.toml")),
        ("nfs-v3-2008", include_str!("../suites/nfs-v3-2008.toml")),
    ];

    fn suite(at: usize, set: &[&str]) -> Result<Suite, SuiteError> {
        let overrides: Vec<Override> = set.iter().map(|s| Override::parse(s).unwrap()).collect();
        Suite::parse(SUITES[at].0, SUITES[at].1, &overrides, &|_, table| read(table))
    }

    fn typed(at: usize, set: &[&str]) -> NfsWorkload {
        suite(at, set).unwrap().workload.try_into().unwrap()
    }

    #[test]
    fn the_suites_read_back_as_they_were_written_out() {
        for (at, (name, _)) in SUITES.iter().enumerate() {
            let suite = suite(at, &[]).unwrap();
            assert_eq!(suite.name, *name);
            let text = suite.to_toml();
            assert_eq!(Suite::parse(name, &text, &[], &|_, t| read(t)).unwrap(), suite);
        }
    }

    #[test]
    fn weights_are_shares_of_rpcs() {
        let v3 = typed(1, &[]);
        assert_eq!(op_names(&v3)[..3], ["lookup", "read", "write"]);
        assert!((op_shares(&v3)[0] - 27.0 / 99.0).abs() < 1e-12);
        assert!((v3.mean_rpcs(MixOp::Read) - 1.49).abs() < 1e-12);
        assert!((v3.mean_rpcs(MixOp::Write) - 1.49).abs() < 1e-12);
        // 99 RPCs from 72 draws of one RPC and 27 / 1.49 of several.
        assert!((ops_per_arrival(&v3) - 99.0 / (72.0 + 27.0 / 1.49)).abs() < 1e-12);
        let single = ["workload.read_blocks=[100, 0, 0, 0, 0]", "workload.mix.write=0"];
        assert_eq!(ops_per_arrival(&typed(1, &single)), 1.0);
        assert_eq!(op_names(&typed(0, &[])).len(), 10);
    }

    #[test]
    fn writes_are_stable_where_no_commit_follows() {
        let stability = [0, 1, 2].map(|at| typed(at, &[]).stability());
        assert_eq!(stability, [Stability::FileSync, Stability::Unstable, Stability::FileSync]);
    }

    #[test]
    fn appends_make_the_set_grow_by_what_they_write() {
        // 9 of 99 RPCs, 70 % of them; 9.96 KiB a draw of 1.49 RPCs.
        let wanted = 9.0 / 99.0 * 0.7 * 9.96 * 1_024.0 / 1.49;
        assert!((typed(1, &[]).append_bytes_per_op() - wanted).abs() < 0.01);
        assert_eq!(typed(1, &["workload.append_percent=0"]).append_bytes_per_op(), 0.0);
    }

    #[test]
    fn wrong_workloads_are_refused_with_a_next_move() {
        let refusal = |at: usize, set: &str| {
            let error = suite(at, &[set]).unwrap_err();
            format!("{error} | {}", error.help.as_deref().unwrap_or_default())
        };
        assert!(refusal(1, "workload.mix.raed=3").contains("did you mean `read`?"));
        let lacking = refusal(0, "workload.mix.commit=5");
        assert!(lacking.contains("NFS version 2 has no commit") && lacking.contains("version = 3"));
        assert!(refusal(1, "workload.mix.read=-1").contains("from 0 to"));
        assert!(refusal(1, "workload.version=4").contains("from 2 to 3"));
        assert!(refusal(1, "workload.transport=tcpp").contains("did you mean \"tcp\"?"));
        assert!(refusal(1, "workload.read_blocks=[85, 8, 4, 2, 2]").contains("sum to 100"));
        assert!(refusal(1, "workload.write_blocks=[100]").contains("6 whole numbers"));
        assert!(refusal(1, "workload.outstanding_max=4").contains("reads_outstanding_max"));
        assert!(refusal(1, "workload.verify=1").contains("did you mean `verify_one_in`?"));
        let none = MixOp::ALL.map(|op| format!("workload.mix.{}=0", op.name()));
        let none: Vec<&str> = none.iter().map(String::as_str).collect();
        assert!(suite(1, &none).unwrap_err().message.contains("no op of the mix has a weight"));
    }

    #[test]
    fn the_schema_names_every_key_and_op() {
        let schema = schemars::schema_for!(NfsWorkload).as_value().to_string();
        for key in ["version", "mix", "verify_one_in", "readdirplus", "access_poisson_mean"] {
            assert!(schema.contains(key), "{key}");
        }
    }
}
