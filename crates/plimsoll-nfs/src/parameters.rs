//! The `[workload]` table of suites with `protocol = "nfs"`, and the ops of its mix.

use std::collections::BTreeMap;

use plimsoll_model::suite::{Parameters, SuiteError, TableReader, percents, weights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::fileset::BLOCK_BYTES;
use super::op::Stability;

/// The session numbers its calls with eight bits.
const OUTSTANDING_MAX: u32 = 256;
/// Most slots of a session: what the Linux client asks for at most.
pub(crate) const SLOTS_MAX: u32 = 1_024;
/// Most connections of a session, as in mounts.
const CONNECTIONS_MAX: u32 = 16;
/// More groups than the files of a pattern cannot be equal.
const ACCESS_GROUPS_MAX: u32 = 100;

/// Parameters of an NFS workload, every default explicit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["version"]))]
pub struct NfsWorkload {
    /// 2, 3 or 4.1.
    #[schemars(with = "f64", extend("enum" = [2, 3, 4.1]))]
    pub version: NfsVersion,
    /// What carries the calls; the query of a target's URL comes before it.
    pub transport: Transport,
    /// Ask from a port below 1024 when permitted.
    pub reserved_port: bool,
    /// Most RPCs in flight of one process.
    #[schemars(range(min = 1, max = OUTSTANDING_MAX))]
    pub outstanding_max: u32,
    /// Most READs in flight of one process.
    #[schemars(range(min = 1, max = OUTSTANDING_MAX))]
    pub reads_outstanding_max: u32,
    /// Most WRITEs in flight of one process.
    #[schemars(range(min = 1, max = OUTSTANDING_MAX))]
    pub writes_outstanding_max: u32,
    /// Percent of READs of 1, 2, 4, 8, 16 blocks of 8 KiB; each block is an RPC.
    #[serde(deserialize_with = "percents")]
    pub read_blocks: [u8; READ_BLOCKS.len()],
    /// Percent of WRITEs of less than a block, and of 1, 2, 4, 8, 16 blocks.
    #[serde(deserialize_with = "percents")]
    pub write_blocks: [u8; WRITE_BLOCKS.len()],
    /// Percent of WRITEs that append.
    #[schemars(range(min = 0, max = 100))]
    pub append_percent: u8,
    /// The content of one READ in this many is compared; 1 means all.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub verify_one_in: u32,
    /// Size of the file set in MiB for each requested op/s.
    #[schemars(range(min = 0.001, max = 10_000.0))]
    pub mib_per_op_per_s: f64,
    /// Seed of the content, if the server's file set has none of its own.
    pub file_set_seed: u64,
    /// Groups of equal size that the accessed tenth of the files is divided into.
    #[schemars(range(min = 1, max = ACCESS_GROUPS_MAX))]
    pub access_groups: u32,
    /// Mean of the Poisson distribution, truncated to the groups' numbers, that chooses a group.
    #[schemars(range(min = 0.1, max = 50.0))]
    pub access_poisson_mean: f64,
    /// How files are opened (version 4.1).
    pub opens: Opens,
    /// Whether OPEN asks for delegations (version 4.1).
    pub delegations: bool,
    /// Slots asked for each session: most calls that the server executes at once of one process
    /// (version 4.1).
    #[schemars(range(min = 1, max = SLOTS_MAX))]
    pub slots: u32,
    /// Connections of each session (version 4.1).
    #[schemars(range(min = 1, max = CONNECTIONS_MAX))]
    pub connections: u32,
    /// Weight of each op: its share of the RPCs, whatever they sum to.
    #[schemars(extend("propertyNames" = schemars::schema_for!(MixOp)), transform = weights)]
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
    /// Its name in suites.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

plimsoll_model::named! {
    fn as_str;
    /// How files are opened in NFSv4.1.
    #[derive(
        Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        JsonSchema,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum Opens {
        /// Each READ and WRITE of some blocks opens its file and closes it.
        #[default]
        PerDraw = "per_draw",
        /// Never: READ and WRITE have the anonymous stateid.
        Anonymous = "anonymous",
        /// A file that is read or written is opened once by each process, and kept open.
        Held = "held",
    }
}

impl Opens {
    /// For the disclosure.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::PerDraw => "each READ and WRITE of some blocks opens and closes its file",
            Self::Anonymous => "none: READ and WRITE have the anonymous stateid",
            Self::Held => "a file is opened when it is first needed, and kept open",
        }
    }
}

impl Parameters for NfsWorkload {}

impl Default for NfsWorkload {
    /// Our choices where the published mix leaves them open; a suite sets its version and its mix.
    fn default() -> Self {
        Self {
            version: NfsVersion::V3,
            transport: Transport::default(),
            reserved_port: true,
            outstanding_max: 32,
            reads_outstanding_max: 8,
            writes_outstanding_max: 8,
            read_blocks: [85, 8, 4, 2, 1],
            write_blocks: [49, 36, 8, 4, 2, 1],
            append_percent: 70,
            verify_one_in: 64,
            mib_per_op_per_s: 10.0,
            file_set_seed: 1,
            access_groups: 10,
            access_poisson_mean: 5.0,
            opens: Opens::default(),
            delegations: false,
            slots: 64,
            connections: 1,
            mix: BTreeMap::new(),
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

    /// Bytes by which one RPC makes the file set grow, on average; determines the space a run
    /// needs.
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
pub fn read(table: &TableReader<'_>) -> Result<NfsWorkload, SuiteError> {
    let mut workload: NfsWorkload = table.read()?;
    let outstanding_max = workload.outstanding_max;
    for (key, bound) in [
        ("reads_outstanding_max", &mut workload.reads_outstanding_max),
        ("writes_outstanding_max", &mut workload.writes_outstanding_max),
    ] {
        if !table.has(key) {
            *bound = outstanding_max.min(*bound);
        } else if *bound > outstanding_max {
            return Err(table
                .error_at(key, format!("`workload.{key}` is {bound}"))
                .with_help(format!("it must be from 1 to {outstanding_max}, outstanding_max")));
        }
    }
    complete_mix(table, &mut workload)?;
    Ok(workload)
}

/// Every op of the version, and none that it does not have.
fn complete_mix(table: &TableReader<'_>, workload: &mut NfsWorkload) -> Result<(), SuiteError> {
    let (version, mix) = (workload.version, &mut workload.mix);
    for op in MixOp::ALL {
        if op.is_in(version) {
            mix.entry(op).or_insert(0.0);
        } else if mix.remove(&op).is_some_and(|weight| weight > 0.0) {
            let message = format!("NFS version {} has no {}", version.number(), op.name());
            return Err(table
                .error_at(&format!("mix.{}", op.name()), message)
                .with_help("remove the op, or write version = 3"));
        }
    }
    if mix.values().sum::<f64>() > 0.0 {
        return Ok(());
    }
    Err(table
        .error_at("mix", "no op of the mix has a weight")
        .with_help("write for example lookup = 27 and read = 18 under [workload.mix]"))
}

plimsoll_model::named! {
    fn name;
    /// An op of the mix.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "lowercase")]
    pub enum MixOp {
        /// LOOKUP.
        Lookup = "lookup",
        /// READ.
        Read = "read",
        /// WRITE.
        Write = "write",
        /// GETATTR.
        GetAttr = "getattr",
        /// READLINK.
        ReadLink = "readlink",
        /// READDIR.
        ReadDir = "readdir",
        /// CREATE.
        Create = "create",
        /// REMOVE.
        Remove = "remove",
        /// FSSTAT; in version 2 STATFS.
        FsStat = "fsstat",
        /// SETATTR.
        SetAttr = "setattr",
        /// READDIRPLUS.
        ReadDirPlus = "readdirplus",
        /// ACCESS.
        Access = "access",
        /// COMMIT.
        Commit = "commit",
    }
}

impl MixOp {
    /// The version has it.
    pub const fn is_in(self, version: NfsVersion) -> bool {
        match version {
            NfsVersion::V2 => !matches!(self, Self::ReadDirPlus | Self::Access | Self::Commit),
            NfsVersion::V3 | NfsVersion::V4_1 => true,
        }
    }
}

/// Version of the NFS protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "f64")]
pub enum NfsVersion {
    /// RFC 1094.
    V2,
    /// RFC 1813.
    V3,
    /// RFC 8881.
    V4_1,
}

impl NfsVersion {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::V2, Self::V3, Self::V4_1];

    /// Its number, in suites, URLs and messages.
    pub const fn number(self) -> &'static str {
        match self {
            Self::V2 => "2",
            Self::V3 => "3",
            Self::V4_1 => "4.1",
        }
    }

    /// The version of that number.
    pub fn parse(number: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.number() == number)
    }
}

impl Serialize for NfsVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::V2 => serializer.serialize_u8(2),
            Self::V3 => serializer.serialize_u8(3),
            Self::V4_1 => serializer.serialize_f64(4.1),
        }
    }
}

impl TryFrom<f64> for NfsVersion {
    type Error = String;

    fn try_from(number: f64) -> Result<Self, String> {
        Self::parse(&number.to_string())
            .ok_or_else(|| format!("NFS version {number} is not 2, 3 or 4.1"))
    }
}

/// Blocks of a READ, by the index of their percentage in a suite.
pub(crate) const READ_BLOCKS: [u32; 5] = [1, 2, 4, 8, 16];
/// Blocks of a WRITE, by the index of their percentage in a suite; 0 is a part of one.
pub(crate) const WRITE_BLOCKS: [u32; 6] = [0, 1, 2, 4, 8, 16];

/// RPCs that a draw takes on average: one for each block, or part of one.
///
/// The mix is defined by RPCs, and a read of sixteen blocks is sixteen RPCs. The weights of reads
/// and writes are therefore divided by this mean, and each further block is a follow-on op of the
/// session.
pub(crate) fn mean_rpcs(blocks: &[u32], percents: &[u8]) -> f64 {
    let rpcs = blocks.iter().map(|n| f64::from((*n).max(1)));
    rpcs.zip(percents).map(|(n, percent)| n * f64::from(*percent) / 100.0).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::suite::{Override, Suite};

    const SUITES: [(&str, &str); 5] = [
        ("nfs-v2", include_str!("../suites/nfs-v2.toml")),
        ("nfs-v3", include_str!("../suites/nfs-v3.toml")),
        ("nfs-v3-2008", include_str!("../suites/nfs-v3-2008.toml")),
        ("nfs-v4.1", include_str!("../suites/nfs-v4.1.toml")),
        ("nfs-v4.1-open", include_str!("../suites/nfs-v4.1-open.toml")),
    ];

    fn suite(at: usize, set: &[&str]) -> Result<Suite, SuiteError> {
        let overrides: Vec<Override> = set.iter().map(|s| Override::parse(s).unwrap()).collect();
        Suite::parse(SUITES[at].0, SUITES[at].1, &overrides, &|_, table| read(table))
    }

    fn typed(at: usize, set: &[&str]) -> NfsWorkload {
        suite(at, set).unwrap().workload.parameters::<NfsWorkload>().clone()
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
        let expected = 9.0 / 99.0 * 0.7 * 9.96 * 1_024.0 / 1.49;
        assert!((typed(1, &[]).append_bytes_per_op() - expected).abs() < 0.01);
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
        assert!(refusal(1, "workload.version=4").contains("not 2, 3 or 4.1"));
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
