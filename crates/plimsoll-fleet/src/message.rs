//! Messages between controller and agent.
//!
//! Times are nanoseconds of the sender's monotonic clock, unless a field's documentation differs.
//! Values of secrets (passwords, header fields) travel in [`PlanOrder`] only, and no type here that
//! contains one implements `Debug`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use plimsoll_model::assignment::Assignment;
use plimsoll_model::bundle::PackedSlice;
use plimsoll_model::event::{
    CoarseTimes, CoreUser, Phase, ResourceUse, SecondRecord, WorkerHealth, WorkerTotals,
};
use plimsoll_model::host::Host;
use plimsoll_model::outcome::ErrorSample;
use plimsoll_model::suite::ProfileName;
use plimsoll_model::units::Nanos;
use serde::{Deserialize, Serialize};

/// From the controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToAgent {
    /// The first message. An agent of another version answers with its own greeting and ends.
    Hello {
        /// Version of the controller's program.
        version: String,
    },
    /// Requests the agent's clock.
    Clock {
        /// When it was sent, by the controller's clock.
        sent_ns: u64,
    },
    /// What to make workloads from. Answered by [`FromAgent::Planned`] or [`FromAgent::Refused`].
    Plan(Box<PlanOrder>),
    /// A load point to get ready for. Answered by [`FromAgent::Ready`] or [`FromAgent::Refused`].
    Point(Box<Assignment>),
    /// The instant at which the point's clock starts.
    Start {
        /// By the agent's clock.
        at_ns: u64,
    },
    /// End the load of this point now; a report is still due.
    Stop,
    /// The controller lives.
    Alive,
    /// There is nothing more to do.
    Goodbye,
}

/// From an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FromAgent {
    /// The first message, without a request: it shows that the stream is clean.
    Hello(Box<Greeting>),
    /// The agent's clock.
    Clock {
        /// As in the question.
        sent_ns: u64,
        /// When the question was read, by the agent's clock.
        at_ns: u64,
    },
    /// The plan can be worked on.
    Planned {
        /// To each server of the order.
        routes: Vec<NetworkRoute>,
    },
    /// The load point can start.
    Ready {
        /// Of the load point.
        ordinal: u32,
    },
    /// The last request cannot be carried out.
    Refused {
        /// Why and what to do next, for a person.
        reason: String,
    },
    /// A second of the load point has passed.
    Second(Box<SecondTotals>),
    /// A failure worth showing.
    Sample(ErrorSample),
    /// A client gave up and left the load point.
    ClientLost {
        /// Its number over all agents.
        client: u32,
        /// Why.
        reason: String,
        /// When, from the start of the load point.
        at: Nanos,
    },
    /// Histograms of the load point, after its load, in order of time.
    Slices(Vec<PackedSlice>),
    /// The load point has ended, and all its slices were sent.
    Finished(Box<PointReport>),
    /// The agent lives.
    Alive,
    /// The agent ends on request. A stream that ends without it is a loss.
    Goodbye,
}

/// Who an agent is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Greeting {
    /// Version of its program.
    pub version: String,
    /// SHA-256 of its program's file, in hexadecimal; empty where the file cannot be read.
    pub program_sha256: String,
    /// Name of its host.
    pub host: String,
    /// Identifies the boot of its host's kernel: agents with the same one share cores.
    pub boot_id: String,
    /// Identifies its network namespace on that kernel: processes in the same one share loopback.
    /// `None` if the kernel does not report it.
    pub network: Option<u64>,
    /// Kernel release and machine: `6.18.0 x86_64`.
    pub system: String,
    /// Cores that it may use.
    pub cores: Vec<u32>,
    /// Hard limit of open files; `None` where there is none.
    pub open_files_max: Option<u64>,
    /// It may bind ports below 1024.
    pub reserves_ports: bool,
    /// Its host, for the disclosure.
    pub inventory: Host,
}

/// Everything that an agent makes workloads from. It reads no file and no variable for them.
#[derive(Clone, Serialize, Deserialize)]
pub struct PlanOrder {
    /// The suite as a TOML text, with the values of header fields.
    pub suite: String,
    /// Timings and scale.
    pub profile: ProfileName,
    /// Schedule and data follow from it.
    pub seed: u64,
    /// Highest load of the run in ops/s; `None` while the peak is searched.
    pub highest_ops_per_s: Option<f64>,
    /// The servers that the agent's clients use, in the order of its endpoints.
    pub targets: Vec<OrderedTarget>,
    /// URLs of all servers of the run, in order, with passwords.
    pub run_urls: Vec<String>,
    /// Addresses that the agent's clients are to connect from; empty leaves it to the system.
    pub sources: Vec<IpAddr>,
    /// Seed and directories of the file set on the servers, if they reported it.
    pub file_set: Option<(u64, u32)>,
    /// Files that the suite names, with their bytes.
    pub files: Vec<OrderedFile>,
    /// The file to replay.
    pub load_file: Option<OrderedFile>,
    /// What the controller's plan has learnt of the servers.
    pub learnt: Option<String>,
    /// The user's password.
    pub password: Option<String>,
    /// User and group that are sent to file servers: those that wrote the files.
    pub user: (u32, u32),
}

impl fmt::Debug for PlanOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlanOrder")
    }
}

/// A server.
#[derive(Clone, Serialize, Deserialize)]
pub struct OrderedTarget {
    /// Its URL with the password.
    pub url: String,
    /// Where to connect.
    pub address: SocketAddr,
    /// Unix socket of the agent's host to connect to instead.
    pub unix: Option<PathBuf>,
}

/// How an agent's clients get to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkRoute {
    /// Network interface; `None` if the routing table does not name it.
    pub interface: Option<String>,
    /// Address that its host chooses for connections that request none.
    pub source: Option<IpAddr>,
}

/// A file and its content.
#[derive(Clone, Serialize, Deserialize)]
pub struct OrderedFile {
    /// As the suite or the user names it.
    pub name: String,
    /// Its bytes.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

/// What an agent's workers did in one second, for live views. Figures of the result come from the
/// slices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondTotals {
    /// 0, 1, 2 … from the start of the load point.
    pub second: u32,
    /// Phase.
    pub phase: Phase,
    /// Start, from the start of the load point.
    pub start: Nanos,
    /// End, from the start of the load point.
    pub end: Nanos,
    /// For how long it was counted: a second, or the part of it that a phase fills.
    pub length: Nanos,
    /// Ops that ended.
    pub done: u64,
    /// Ops of these that failed.
    pub errors: u64,
    /// Application bytes moved, both ways.
    pub bytes: u64,
    /// Chunks of streamed replies that came.
    pub chunks: u64,
    /// Response times.
    pub response: CoarseTimes,
    /// The busiest worker's share of the second at work.
    pub busy_ratio_max: f64,
}

impl SecondTotals {
    /// Adds the same second of another agent.
    pub fn add(&mut self, other: &Self) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        self.length = self.length.max(other.length);
        self.done += other.done;
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.chunks += other.chunks;
        self.response.add(&other.response);
        self.busy_ratio_max = self.busy_ratio_max.max(other.busy_ratio_max);
    }
}

/// Everything of a load point's window that an agent counted, histograms apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointReport {
    /// When the point's clock started, by the agent's monotonic clock.
    pub started_ns: u64,
    /// The same instant by its wall clock, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Sums over its workers per second and phase.
    pub seconds: Vec<SecondRecord>,
    /// Health of its workers, a list of intervals each.
    pub workers: Vec<Vec<WorkerHealth>>,
    /// Sums over its workers.
    pub totals: WorkerTotals,
    /// A worker panicked; the message.
    pub panic: Option<String>,
    /// CPU time of its process in the window.
    pub process_cpu_ns: u64,
    /// CPU time of its monitors in the window.
    pub monitor_cpu_ns: u64,
    /// Its wall clock moved by this much against the monotonic one during the point.
    pub clock_step_ns: i64,
    /// What its monitors saw of its host in the window.
    pub resources: Vec<ResourceUse>,
    /// Other programs that used its workers' cores; `None` if this was not checked.
    pub core_users: Option<Vec<CoreUser>>,
    /// The same of the later windows of a load that changes.
    pub later: Vec<Self>,
}
