//! What an op costs the hosts that take part: figures of one load point, from what the monitors saw
//! in its window, over the ops that were done in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::condition::LimitUnit;
use crate::named::named;

named! {
    /// A figure of the cost of a load point.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum CostFigure {
        /// CPU time in nanoseconds.
        CpuPerOp = "cpu_per_op",
        /// Context switches: of a host all of them, of processes how often their threads got a
        /// core.
        ContextSwitchesPerOp = "context_switches_per_op",
        /// Reads and writes of disks.
        DiskTransfersPerOp = "disk_transfers_per_op",
        /// Bytes read from disks and written to them.
        DiskBytesPerOp = "disk_bytes_per_op",
        /// Packets received and sent.
        NicPacketsPerOp = "nic_packets_per_op",
        /// Bytes received and sent, with the headers of every layer that the interface counts.
        NicBytesPerOp = "nic_bytes_per_op",
        /// Share of the processors' time that was used: of a host of all its processors, of
        /// processes of the cores that they may use.
        CpuBusy = "cpu_busy",
        /// Of the CPU time, the part in the kernel, interrupts included.
        SystemShare = "system_share",
        /// Share of the time with a request, mean over the disks that are counted.
        DiskBusy = "disk_busy",
        /// The same of the disks with the files that the server serves.
        DataDisksBusy = "data_disks_busy",
        /// The same of those with its logs.
        LogDisksBusy = "log_disks_busy",
        /// The same of those with its database.
        DatabaseDisksBusy = "database_disks_busy",
        /// Bytes in use: of a host without what the kernel can reclaim at once, of processes
        /// resident.
        Memory = "memory",
        /// Bytes of files that the kernel keeps in memory.
        PageCache = "page_cache",
    }
}

impl CostFigure {
    /// In what a condition writes its limit.
    pub const fn unit(self) -> LimitUnit {
        match self {
            Self::CpuPerOp => LimitUnit::Time,
            Self::CpuBusy | Self::SystemShare | Self::DiskBusy => LimitUnit::Share,
            it if it.is_of_disk_role() => LimitUnit::Share,
            _ => LimitUnit::Number,
        }
    }

    /// It is of disks that have one role.
    pub const fn is_of_disk_role(self) -> bool {
        matches!(self, Self::DataDisksBusy | Self::LogDisksBusy | Self::DatabaseDisksBusy)
    }

    /// A share of something: figures of several hosts do not add up, the highest counts.
    pub const fn is_share(self) -> bool {
        matches!(self.unit(), LimitUnit::Share)
    }
}

named! {
    /// Whose cost it is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum CostOf {
        /// A host of the server with all that ran on it, the kernel and the monitors included.
        ServerHost = "server_host",
        /// The server's processes and their descendants, without the kernel's own threads.
        ServerProcesses = "server_processes",
        /// The host of server and generator: its disks and interfaces carried what both did.
        SharedHost = "shared_host",
        /// A host that made load.
        GeneratorHost = "generator_host",
        /// Another host that was watched.
        OtherHost = "other_host",
    }
}

impl CostOf {
    /// The server's, the one to rely on first: a host that is the server's alone has all of its
    /// cost, the kernel's part included.
    pub const SERVERS: [Self; 3] = [Self::ServerHost, Self::ServerProcesses, Self::SharedHost];

    /// Those whose figure is the server's, in order. Its disks may be those of a database's host.
    pub fn with_figure_of_server(figure: CostFigure) -> impl Iterator<Item = Self> {
        let elsewhere = figure.is_of_disk_role().then_some(Self::OtherHost);
        Self::SERVERS.into_iter().chain(elsewhere)
    }
}

/// What a host, or the server's processes on it, spent on a load point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostCost {
    /// Where it was read: a monitor as given, or the name of an agent; absent for this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whose cost it is.
    pub of: CostOf,
    /// Processors that its share is of; absent where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<f64>,
    /// Disks that are counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<String>,
    /// Network interfaces that are counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
    /// The figures; those that could not be read are absent.
    pub figures: BTreeMap<CostFigure, Cost>,
}

/// A figure of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Over the window: nanoseconds, a count, bytes or a share.
    pub value: f64,
    /// 95 % interval, from how it varies within the window; absent where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

impl Cost {
    fn plus(self, other: Self) -> Self {
        let ends = self.interval.zip(other.interval);
        Self {
            value: self.value + other.value,
            interval: ends.map(|(a, b)| [a[0] + b[0], a[1] + b[1]]),
        }
    }
}

/// A figure over all hosts of a kind: shares of the one with the highest, others summed.
pub fn cost_of(hosts: &[HostCost], of: CostOf, figure: CostFigure) -> Option<Cost> {
    let hosts = hosts.iter().filter(|host| host.of == of);
    let costs = hosts.filter_map(|host| host.figures.get(&figure).copied());
    costs.reduce(|sum, next| match figure.is_share() {
        true if next.value > sum.value => next,
        true => sum,
        false => sum.plus(next),
    })
}

/// What the server spent, and whose figure that is: the first that has it.
pub fn server_cost(hosts: &[HostCost], figure: CostFigure) -> Option<(CostOf, Cost)> {
    let mut all = CostOf::with_figure_of_server(figure);
    all.find_map(|of| Some((of, cost_of(hosts, of, figure)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(of: CostOf, figures: &[(CostFigure, f64)]) -> HostCost {
        let cost = |value: f64| Cost { value, interval: Some([value - 1.0, value + 1.0]) };
        let figures = figures.iter().map(|(figure, value)| (*figure, cost(*value))).collect();
        let (disks, interfaces) = (Vec::new(), Vec::new());
        HostCost { source: None, of, cores: None, disks, interfaces, figures }
    }

    #[test]
    fn hosts_of_the_server_add_up_and_of_shares_the_highest_counts() {
        let figures = |cpu, busy| [(CostFigure::CpuPerOp, cpu), (CostFigure::DiskBusy, busy)];
        let cost = vec![
            host(CostOf::ServerHost, &figures(20.0, 0.4)),
            host(CostOf::ServerProcesses, &figures(9.0, 0.1)),
            host(CostOf::ServerHost, &figures(30.0, 0.3)),
            host(CostOf::GeneratorHost, &figures(70.0, 0.9)),
        ];
        let (of, cpu) = server_cost(&cost, CostFigure::CpuPerOp).unwrap();
        assert_eq!((of, cpu.value, cpu.interval), (CostOf::ServerHost, 50.0, Some([48.0, 52.0])));
        assert_eq!(server_cost(&cost, CostFigure::DiskBusy).unwrap().1.value, 0.4);
        assert_eq!(server_cost(&cost, CostFigure::Memory), None);
    }

    #[test]
    fn costs_are_written_by_name_and_read_again() {
        let one = host(CostOf::SharedHost, &[(CostFigure::DiskBytesPerOp, 4_096.0)]);
        let text = serde_json::to_string(&one).unwrap();
        assert!(text.contains(r#""figures":{"disk_bytes_per_op":{"value":4096.0"#), "{text}");
        assert_eq!(serde_json::from_str::<HostCost>(&text).unwrap(), one);
        for figure in CostFigure::ALL {
            let name = serde_json::to_string(&figure).unwrap();
            assert_eq!(name, format!("{:?}", figure.as_str()));
        }
    }
}
