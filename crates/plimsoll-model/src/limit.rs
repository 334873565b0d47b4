//! What limited a load point: a resource with its location and evidence, or why none is named.
//! `plimsoll-report` makes the sentence from the facts.

use serde::{Deserialize, Serialize};

use crate::consumers::CoreUser;
use crate::finding::WorkerCore;
use crate::monitored::MonitoredHost;
use crate::named::named;
use crate::units::{self, Nanos};

/// What limited a load point. Never absent: *not saturated* is [`LimitKind::None`]. Results of older
/// programs have no facts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Which kind of thing.
    pub kind: LimitKind,
    /// Where: `core 1`, `vda`, `veth0`, `service threads`; `None` where the kind is enough.
    pub place: Option<String>,
    /// The sentence, for people who read the file: empty until `plimsoll-report` fills it.
    pub text: String,
    /// What was observed.
    #[serde(default)]
    pub facts: LimitFacts,
    /// The figures it rests on.
    pub evidence: Vec<Evidence>,
    /// Other limits that were reached at the same load.
    pub also: Vec<Limit>,
    /// Of the suite's cap: the resource that was full behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<Box<Limit>>,
    /// The host, where it is not that of the only server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<MonitoredHost>,
    /// Who else had the server's cores, where that is a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OtherPrograms>,
    /// There is no other load: a higher one might bring more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_load: bool,
}

impl Limit {
    /// The limit that facts make, with the figures that show it.
    pub fn new(facts: LimitFacts, evidence: Vec<Evidence>) -> Self {
        Self { kind: facts.kind(), place: facts.location(), facts, evidence, ..Self::default() }
    }
}

/// Programs other than the server on the server's cores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherPrograms {
    /// Their share of the time of these cores.
    pub cores_ratio: f64,
    /// The one that used most CPU time, of those that may run there; absent where none explains
    /// that share.
    pub foremost: Option<CoreUser>,
}

/// A range of the ladder, by rising load, and what limited it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSpan {
    /// The lowest load of the stretch, on the ladder's axis.
    pub from: f64,
    /// As at that load, without its evidence.
    pub limit: Limit,
}

named! {
    /// Kinds of limits.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum LimitKind {
        /// All cores the server may use.
        Processor = "processor",
        /// One core: the only one the server may use, or the one of a busy thread.
        Core = "core",
        /// CPU time that a control group is allowed.
        Quota = "quota",
        /// A disk, or the rate it is limited to.
        Disk = "disk",
        /// A link, or the rate it is limited to.
        Network = "network",
        /// Memory: what does not fit is read again.
        Memory = "memory",
        /// Threads, processes or connections that serve: all at work while the hardware is idle.
        Pool = "pool",
        /// A lock in the server: its threads wait for each other while the hardware is idle.
        Lock = "lock",
        /// The batch of a language-model server: all its slots are taken.
        Batch = "batch",
        /// The memory of such a server for the tokens of requests under way.
        KvCache = "kv_cache",
        /// A GPU.
        Gpu = "gpu",
        /// The hypervisor kept the server's processors.
        Hypervisor = "hypervisor",
        /// The clients: more of them, or shorter think times, would bring more.
        Clients = "clients",
        /// The slots of the clients' sessions: more of them would bring more.
        Slots = "slots",
        /// The generator.
        Generator = "generator",
        /// The suite's cap on response time.
        Cap = "cap",
        /// The point was not limited: it is not saturated.
        None = "none",
        /// It was limited; the cause is unknown.
        #[default]
        Unknown = "unknown",
    }
}

impl LimitKind {
    /// It is a resource of the server or its host.
    pub const fn is_resource(self) -> bool {
        !matches!(
            self,
            Self::Clients | Self::Slots | Self::Generator | Self::Cap | Self::None | Self::Unknown
        )
    }
}

/// One figure that a limit rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Name of the resource, as in `points[].resources`, or of a figure of the load point.
    pub name: String,
    /// Mean over the window.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// What it cannot exceed, where known.
    pub ceiling: Option<f64>,
    /// The same at the lowest load, where there is a lower one.
    pub low_load_value: Option<f64>,
}

/// What limited a load point, or why nothing is named. Ratios are parts of 1; figures are means
/// over the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "a field is the figure of its name")]
pub enum LimitFacts {
    /// Unknown: it was not evaluated, or by an older program.
    #[default]
    Unsaid,
    /// The hypervisor kept the server's cores.
    Hypervisor {
        /// Part of their time that it kept.
        kept_ratio: f64,
        /// How many cores the server may use.
        cores: f64,
    },
    /// The CPU time of the control group was used up.
    Quota {
        /// CPU time of the server, in cores.
        used_cores: f64,
        quota_cores: f64,
        /// Time that the quota kept its threads from running.
        throttled_cores: f64,
    },
    /// The cores that the server may use were full.
    Cores {
        cores: ServerCores,
        /// How busy they were, with whatever ran there.
        busy_ratio: f64,
        /// The server's part of that, where known.
        own_ratio: Option<f64>,
        load: LoadShape,
    },
    /// One thread of the server was busy all the time, and the other cores were not.
    Thread {
        busy_ratio: f64,
        /// How many cores the server may use.
        cores: f64,
        cores_busy_ratio: f64,
    },
    /// A disk did what the control group allows.
    GroupRate { disk: String, rate: DiskRate, per_s: f64, limit_per_s: f64 },
    /// A disk had no time left.
    BusyDisk { disk: String, busy_ratio: f64, queued: f64 },
    /// Threads waited for a disk whose ceiling is unknown.
    WaitedDisk {
        disk: String,
        /// Part of the time in which somebody waited for storage.
        stalled_ratio: f64,
        busy_ratio: f64,
    },
    /// Memory was full, and pages without room were read again.
    Memory {
        /// Part of the memory that the control group used.
        used_ratio: f64,
        /// Memory that the control group may use.
        limit_bytes: f64,
        pages_per_op: f64,
        fills: Vec<Limit>,
    },
    /// A link carried all that it can.
    Link {
        /// `eth0`, or `server:veth1` in the namespace of the server.
        interface: String,
        way: LinkDirection,
        share_ratio: f64,
        /// Packets that the interface dropped that way, where it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dropped_per_s: Option<f64>,
    },
    /// Bytes that the server had written waited for the network.
    Unsent { waiting_bytes: f64, interface: String, sent_bytes_per_s: f64 },
    /// All service threads that the server counts were busy.
    ServiceThreads { threads: f64, busy: f64, queued: f64 },
    /// The batch of a language-model server was full, and requests waited.
    Batch {
        running: f64,
        /// The most that were ever running: no server reports how many there can be.
        running_max: f64,
        waiting: f64,
    },
    /// Its memory for tokens had no room for one more request.
    KvCache {
        used_ratio: f64,
        waiting: f64,
        /// Requests that were preempted and had to start again.
        preempted_per_s: Option<f64>,
    },
    /// A GPU was busy all the time.
    Gpu {
        /// Its number, as its exporter has it.
        gpu: String,
        busy_ratio: f64,
        /// Part of the time in which its memory was read or written, where that is reported.
        memory_busy_ratio: Option<f64>,
    },
    /// Threads waited for each other.
    Lock {
        /// How many, with an op to do.
        waiting: f64,
        threads: f64,
    },
    /// Requests lay unread in the server's sockets.
    Unread { unread_bytes: f64, not_accepted: f64 },
    /// Cores and storage were busy alternately within a second: the cores.
    CoresByTurns {
        cores: ServerCores,
        /// Part of the samples in which they were full.
        full_ratio: f64,
    },
    /// The same: the storage.
    StorageByTurns {
        /// The busiest disk, where known.
        disk: Option<String>,
        /// Part of the samples in which somebody waited for it.
        stalled_ratio: f64,
    },
    /// All clients of an open load were busy while the server was as fast as before.
    Clients {
        clients: u32,
        service_ns: Nanos,
        earlier_ns: Nanos,
        earlier: EarlierService,
        most_ops_per_s: f64,
    },
    /// Ops waited for a slot of their NFSv4.1 session while the server was as fast as before.
    Slots {
        /// Mean wait of an op.
        waited_ns: Nanos,
        /// Mean service time, from the slot on.
        service_ns: Nanos,
        earlier_ns: Nanos,
        earlier: EarlierService,
    },
    /// The generator.
    Generator,
    /// Others had a core that the generator needed: neither it nor the server was the limit.
    Disturbed { core: WorkerCore },
    /// The suite's cap on response time.
    Cap { cap_ms: f64 },
    /// Throughput followed the load.
    Followed,
    /// At the only load no resource was full.
    NoneFull,
    /// No load of a search was too much.
    NoneTooMuch,
    /// The server failed ops.
    ServerFailed,
    /// The load was limited, and no monitor watched the server's host.
    NotWatched,
    /// The same; other programs had the server's cores: see [`Limit::others`].
    OtherPrograms,
    /// The same; nothing that was watched was full with a queue.
    NothingFull {
        /// What came nearest to it.
        nearest: Option<NearlyFull>,
    },
    /// The same; throughput changed within a second, which averages do not show.
    Swings {
        /// In the slowest quarter of the time, and below in the fastest.
        slow_ops_per_s: f64,
        fast_ops_per_s: f64,
    },
}

/// The cores that a server may use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "a field is the figure of its name")]
pub struct ServerCores {
    pub count: f64,
    /// The number of a single one, where known.
    pub number: Option<u32>,
    /// They are all of its host: which of them its process may use was not seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_host: bool,
}

/// How the load came to a full core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadShape {
    /// Evenly: the core was always busy.
    Steady,
    /// In bursts: the core was idle between them, and ops waited in them.
    Bursts,
}

named! {
    /// A rate to which a control group can limit a disk.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[expect(missing_docs, reason = "the names without a comment say it")]
    pub enum DiskRate {
        Reads = "reads",
        Writes = "writes",
        Read = "read",
        Written = "written",
    }
}

named! {
    /// A direction of a link, as seen from the host or device with the interface.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum LinkDirection {
        /// From it.
        Sent = "sent",
        /// To it.
        Received = "received",
    }
}

impl LinkDirection {
    /// Columns of the table `network` that count packets dropped that way.
    pub const fn drops(self) -> &'static [&'static str] {
        match self {
            Self::Sent => &["send_drops"],
            Self::Received => &["receive_drops", "receive_overruns"],
        }
    }
}

/// When a server was as fast as it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlierService {
    /// At the lowest load.
    LowLoad,
    /// At the first ops of the only load.
    FirstOps,
}

/// Cores that were nearly full.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "a field is the figure of its name")]
pub struct NearlyFull {
    pub cores: ServerCores,
    pub busy_ratio: f64,
    /// From here on they count as full.
    pub full_ratio: f64,
    /// Threads of the server that waited for them.
    pub waiting_threads: f64,
}

impl LimitFacts {
    /// The kind of limit that they show.
    pub const fn kind(&self) -> LimitKind {
        match self {
            Self::Hypervisor { .. } => LimitKind::Hypervisor,
            Self::Quota { .. } => LimitKind::Quota,
            Self::Cores { cores, .. } | Self::CoresByTurns { cores, .. } => match cores.count {
                count if count > 1.0 => LimitKind::Processor,
                _ => LimitKind::Core,
            },
            Self::Thread { .. } => LimitKind::Core,
            Self::GroupRate { .. }
            | Self::BusyDisk { .. }
            | Self::WaitedDisk { .. }
            | Self::StorageByTurns { .. } => LimitKind::Disk,
            Self::Memory { .. } => LimitKind::Memory,
            Self::Link { .. } | Self::Unsent { .. } => LimitKind::Network,
            Self::ServiceThreads { .. } | Self::Unread { .. } => LimitKind::Pool,
            Self::Batch { .. } => LimitKind::Batch,
            Self::KvCache { .. } => LimitKind::KvCache,
            Self::Gpu { .. } => LimitKind::Gpu,
            Self::Lock { .. } => LimitKind::Lock,
            Self::Clients { .. } => LimitKind::Clients,
            Self::Slots { .. } => LimitKind::Slots,
            Self::Generator => LimitKind::Generator,
            Self::Cap { .. } => LimitKind::Cap,
            Self::Followed | Self::NoneFull | Self::NoneTooMuch => LimitKind::None,
            Self::Unsaid
            | Self::Disturbed { .. }
            | Self::ServerFailed
            | Self::NotWatched
            | Self::OtherPrograms
            | Self::NothingFull { .. }
            | Self::Swings { .. } => LimitKind::Unknown,
        }
    }

    /// Where the limit is; `None` where the kind is enough.
    fn location(&self) -> Option<String> {
        Some(match self {
            Self::Quota { quota_cores, .. } => units::cores(*quota_cores),
            Self::Cores { cores, .. } | Self::CoresByTurns { cores, .. } => cores.label(),
            Self::Thread { .. } => "one thread of the server".to_owned(),
            Self::GroupRate { disk, .. }
            | Self::BusyDisk { disk, .. }
            | Self::WaitedDisk { disk, .. } => disk.clone(),
            Self::StorageByTurns { disk, .. } => disk.clone()?,
            Self::Link { interface, .. } | Self::Unsent { interface, .. } => {
                interface.rsplit(':').next().unwrap_or(interface).to_owned()
            }
            Self::ServiceThreads { .. } => "service threads".to_owned(),
            Self::Gpu { gpu, .. } => format!("GPU {gpu}"),
            Self::Unread { .. } => "threads or processes of the server".to_owned(),
            _ => return None,
        })
    }
}

impl ServerCores {
    /// `4 cores`, `core 1`; `one core` where its number is unknown.
    pub fn label(self) -> String {
        match self.number {
            _ if self.count > 1.0 => units::cores(self.count),
            Some(number) => format!("core {number}"),
            None => "one core".to_owned(),
        }
    }
}
