//! What was found of a limit, with its figures.

use serde::{Deserialize, Serialize};

use super::{Limit, LimitKind};
use crate::named::named;
use crate::units::Nanos;

/// What held a load point back, or why nothing is named. Ratios are parts of 1; figures are means
/// over the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "a field is the figure of its name")]
pub enum LimitFacts {
    /// Nothing is known of it: it was not judged, or by an older program.
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
        /// The server's part of that, where it is known.
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
    /// Threads waited for a disk of which no ceiling is known.
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
        way: Way,
        share_ratio: f64,
    },
    /// What the server had written waited for the network.
    Unsent { waiting_bytes: f64, interface: String, sent_bytes_per_s: f64 },
    /// All service threads that the server counts were busy.
    ServiceThreads { threads: f64, busy: f64, queued: f64 },
    /// All places in the batch of a server of language models were taken, and requests waited.
    Batch {
        running: f64,
        /// The most that were ever running: no server tells how many there can be.
        running_max: f64,
        waiting: f64,
    },
    /// Its memory for tokens had no room for one more request.
    KvCache {
        used_ratio: f64,
        waiting: f64,
        /// Requests that lost their place and had to begin again.
        preempted_per_s: Option<f64>,
    },
    /// A GPU was busy all the time.
    Gpu {
        /// Its number, as its exporter has it.
        gpu: String,
        busy_ratio: f64,
        /// Part of the time in which its memory was read or written, where that is told.
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
    /// Cores and storage took turns within a second: the cores.
    CoresByTurns {
        cores: ServerCores,
        /// Part of the samples in which they were full.
        full_ratio: f64,
    },
    /// The same: the storage.
    StorageByTurns {
        /// The busiest disk, where one is known.
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
    /// The generator.
    Generator,
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
    /// The load was held back, and nobody watched the server's host.
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
    /// The number of a single one, where it is known.
    pub number: Option<u32>,
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
    /// A direction of a link.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Way {
        /// From the server.
        Sent = "sent",
        /// To the server.
        Received = "received",
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
            Self::Generator => LimitKind::Generator,
            Self::Cap { .. } => LimitKind::Cap,
            Self::Followed | Self::NoneFull | Self::NoneTooMuch => LimitKind::None,
            Self::Unsaid
            | Self::ServerFailed
            | Self::NotWatched
            | Self::OtherPrograms
            | Self::NothingFull { .. }
            | Self::Swings { .. } => LimitKind::Unknown,
        }
    }
}
