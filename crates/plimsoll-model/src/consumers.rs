//! Where the processor time of a host and of a server went in the window of a load point: as read,
//! for the journal, and as rates and shares, for the result.

use serde::{Deserialize, Serialize};

/// What was read of a host at both ends of a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostWork {
    /// Where it was read; absent on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Time between the two readings. The first is shortly before the window, the second at its
    /// end.
    pub elapsed_ns: u64,
    /// Processors that were online.
    pub processors: u32,
    /// CPU time in which a processor was not idle, interrupts included, over all processors.
    pub busy_ns: u64,
    /// Part of it in hard interrupts.
    pub irq_ns: u64,
    /// Part of it in soft interrupts.
    pub softirq_ns: u64,
    /// Processes and threads that were started; `None` where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forks: Option<u64>,
    /// The largest consumers, the largest first.
    pub consumers: Vec<ConsumerWork>,
    /// All others that used CPU time together; their name is empty.
    pub others: ConsumerWork,
    /// Soft, then hard interrupts, the most frequent first.
    pub interrupts: Vec<InterruptCount>,
}

/// CPU time of the processes of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsumerWork {
    /// As the kernel calls the processes. Threads of the kernel that differ by a number or by their
    /// present work have one name: `kworker`.
    pub name: String,
    /// Whose they are.
    pub kind: CoreUserKind,
    /// It is the work of children that ended within the window; the name is that of their parents.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// Processes that used CPU time and were there at the second reading. Zero for ended children.
    pub processes: u32,
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
}

impl ConsumerWork {
    /// CPU time.
    pub const fn cpu_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }
}

/// How often an interrupt was served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptCount {
    /// Kind of a soft interrupt; device or kind of a hard one. Queues of a device are summed.
    pub name: String,
    /// Soft or hard.
    pub kind: InterruptKind,
    /// Over all processors.
    pub count: u64,
}

/// Soft or hard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptKind {
    /// Work that the kernel defers from an interrupt.
    Soft,
    /// A device's, a timer's, or one processor's to another.
    Hard,
}

/// Where the processor time of a host went: of a load point of a result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConsumers {
    /// Where it was read; absent on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Time between the two readings.
    pub seconds: f64,
    /// Processors that were online.
    pub processors: u32,
    /// CPU time in which a processor was not idle, interrupts included.
    pub busy_s: f64,
    /// Part of it in hard interrupts.
    pub irq_s: f64,
    /// Part of it in soft interrupts.
    pub softirq_s: f64,
    /// Busy time that is in none of the consumers: processes that began and ended between the
    /// readings without a parent that waited for them, and interrupts of an idle processor.
    pub not_seen_s: f64,
    /// Processes and threads started, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forks_per_s: Option<f64>,
    /// The largest, the largest first.
    pub consumers: Vec<Consumer>,
    /// All others together; the name is empty.
    pub others: Consumer,
    /// Soft, then hard interrupts, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<InterruptRate>,
}

/// CPU time of the processes of one name; see [`ConsumerWork`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consumer {
    /// As the kernel calls the processes.
    pub name: String,
    /// Whose they are.
    pub kind: CoreUserKind,
    /// It is the work of children of these processes that ended within the window.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// How many used CPU time and were there at the second reading.
    pub processes: u32,
    /// CPU time in user mode.
    pub user_s: f64,
    /// CPU time in the kernel.
    pub system_s: f64,
    /// Share of what all processors of the host could do.
    pub share_ratio: f64,
}

/// How often an interrupt was served; see [`InterruptCount`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptRate {
    /// Kind of a soft interrupt; device or kind of a hard one.
    pub name: String,
    /// Soft or hard.
    pub kind: InterruptKind,
    /// Between the two readings.
    pub count: u64,
    /// Per second.
    pub per_s: f64,
    /// Per op; `null` where no op was done.
    pub per_op: Option<f64>,
}

/// A process that used a core in a load point's window while a worker or the server needed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreUser {
    /// As the kernel calls it.
    pub name: String,
    /// Process id.
    pub pid: u32,
    /// On a worker's core: CPU time of its threads that were last seen there. On the server's: of
    /// all its threads, on any core.
    pub cpu_ns: u64,
    /// It is this program: another thread than a worker.
    pub own: bool,
    /// It belongs to the server that is measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub server: bool,
    /// It is a thread of the kernel (`PF_KTHREAD`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel: bool,
}

/// Whose a [`CoreUser`] is: what can be done about it differs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CoreUserKind {
    /// This program's, another thread than a worker.
    Own,
    /// The server's that is measured, one within the kernel included.
    Server,
    /// The kernel's.
    Kernel,
    /// Another program's.
    #[default]
    Other,
}

impl CoreUser {
    /// Whose it is.
    pub const fn kind(&self) -> CoreUserKind {
        match self {
            Self { own: true, .. } => CoreUserKind::Own,
            Self { server: true, .. } => CoreUserKind::Server,
            Self { kernel: true, .. } => CoreUserKind::Kernel,
            _ => CoreUserKind::Other,
        }
    }
}

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
    /// Its name, or its module in brackets where the name is unknown.
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
