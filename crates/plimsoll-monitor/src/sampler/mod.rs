//! One sample of everything that is watched, as rows of tables with units.
//!
//! Files below `/proc` are opened once and read again in place. A sample costs about a millisecond
//! of CPU (release build, two processors, twenty processes watched), nearly all of it the kernel
//! writing the texts; [`crate::Monitor::cpu_ns`] is the actual cost.

mod devices;
mod groups;
mod host;
mod models;
mod processes;
mod servers;
mod sockets;
mod table;
mod tree;

use std::collections::BTreeMap;

use plimsoll_model::units::NANOS_PER_SECOND;

use crate::clock::{self, ClockReading};
use crate::parse::{DiskCounters, NetworkCounters};
use crate::process::WatchedProcess;
use crate::root::Root;
pub(crate) use host::{HostCounters, PAGING, TCP_EXT, UDP};
pub(crate) use models::exporter_name;
pub(crate) use servers::SERVER_TEXT;
pub use servers::{ServerProbe, has_server_figures};
pub use table::{Column, Row, Rows, Table, Unit};

/// Tables of a sample.
pub const TABLES: usize = 12;

/// Everything seen at one instant. Rates are over the time since the sample before, those of
/// servers over the time between their answers.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When.
    pub at: ClockReading,
    /// Time since the sample before; zero for the first, whose rates are absent.
    pub elapsed_ns: u64,
    /// Processors together, memory, paging, TCP, pressure, throttling.
    pub host: Rows,
    /// Each processor.
    pub cpus: Rows,
    /// Each whole disk.
    pub disks: Rows,
    /// Each network interface.
    pub networks: Rows,
    /// Each process that is watched.
    pub processes: Rows,
    /// Control groups of each watched server.
    pub groups: Rows,
    /// Transfers of those groups, by device.
    pub storage: Rows,
    /// Queues of the sockets of each watched server.
    pub sockets: Rows,
    /// Each server that reports its own figures and answered.
    pub servers: Rows,
    /// The kernel's NFS server, where it runs.
    pub nfsd: Rows,
    /// Each server of language models that answered.
    pub models: Rows,
    /// Each GPU that an exporter reports.
    pub gpus: Rows,
}

impl Sample {
    pub(crate) fn empty() -> Self {
        Self {
            at: ClockReading::default(),
            elapsed_ns: 0,
            host: Rows::new(&host::HOST),
            cpus: Rows::new(&host::CPUS),
            disks: Rows::new(&devices::DISKS),
            networks: Rows::new(&devices::NETWORKS),
            processes: Rows::new(&processes::PROCESSES),
            groups: Rows::new(&groups::GROUPS),
            storage: Rows::new(&groups::STORAGE),
            sockets: Rows::new(&sockets::SOCKETS),
            servers: Rows::new(&servers::SERVERS),
            nfsd: Rows::new(&servers::NFSD),
            models: Rows::new(&models::MODELS),
            gpus: Rows::new(&models::GPUS),
        }
    }

    /// The tables, always in this order.
    pub fn tables(&self) -> [&Rows; TABLES] {
        [
            &self.host,
            &self.cpus,
            &self.disks,
            &self.networks,
            &self.processes,
            &self.groups,
            &self.storage,
            &self.sockets,
            &self.servers,
            &self.nfsd,
            &self.models,
            &self.gpus,
        ]
    }
}

/// What a host without texts of `/proc` reports at one instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostFigures {
    pub(crate) host: HostCounters,
    pub(crate) disks: Vec<DiskCounters>,
    pub(crate) networks: Vec<NetworkCounters>,
    /// Capacity one way of interfaces, in megabits per second, where known.
    pub(crate) speeds_mbit: BTreeMap<String, u64>,
}

/// Reads the counters of one host, again and again.
#[derive(Debug)]
pub struct Sampler {
    host: host::HostSource,
    disks: devices::DiskSource,
    networks: devices::NetworkSource,
    processes: processes::ProcessSource,
    groups: groups::GroupSource,
    sockets: sockets::SocketSource,
    servers: servers::ServerSource,
    nfsd: servers::NfsdSource,
    sample: Sample,
    sampled: bool,
}

impl Sampler {
    /// Opens the files that exist; a missing one leaves its columns empty.
    pub fn new(root: &Root, processes: Vec<WatchedProcess>) -> Self {
        Self {
            host: host::HostSource::open(root),
            disks: devices::DiskSource::open(root),
            networks: devices::NetworkSource::open(root),
            processes: processes::ProcessSource::new(root.clone(), processes),
            groups: groups::GroupSource::new(root.clone()),
            sockets: sockets::SocketSource::new(root.clone()),
            servers: servers::ServerSource::new(servers::of_frame(root)),
            nfsd: servers::NfsdSource::open(root),
            sample: Sample::empty(),
            sampled: false,
        }
    }

    /// Asks these servers too.
    pub fn asking(mut self, probes: Vec<ServerProbe>) -> Self {
        self.servers = servers::ServerSource::new(probes);
        self
    }

    /// Watches one more process from the next sample on.
    pub fn watch(&mut self, process: WatchedProcess) {
        self.processes.watch(process);
    }

    /// Looks for new descendants of watched processes, and for their control groups, at the next
    /// sample.
    pub fn rescan(&mut self) {
        self.processes.rescan();
        self.groups.rescan();
    }

    /// Cores that the first server may use, as far as known.
    pub(crate) fn server_cores(&self) -> Vec<u32> {
        self.processes.server_cores()
    }

    /// Whether a process belongs to a server.
    pub(crate) fn is_of_server(&self, pid: u32) -> bool {
        self.processes.is_of_server(pid)
    }

    /// When the host of the last sample was booted, in seconds since the Unix epoch by its clock.
    pub(crate) const fn boot_unix_s(&self) -> Option<u64> {
        self.host.before.stat.boot_unix_s
    }

    /// Takes a sample; `at` is now. The first one is the base of the rates to come.
    pub fn sample(&mut self, at: ClockReading) -> &Sample {
        self.sample_reported(at, None)
    }

    /// The same of a host whose figures are not in texts.
    pub(crate) fn sample_reported(
        &mut self,
        at: ClockReading,
        reported: Option<&HostFigures>,
    ) -> &Sample {
        let sample = &mut self.sample;
        sample.elapsed_ns = match self.sampled {
            true => at.monotonic_ns.saturating_sub(sample.at.monotonic_ns),
            false => 0,
        };
        self.sampled = true;
        sample.at = at;
        let elapsed = Elapsed::from_ns(sample.elapsed_ns);
        self.host.sample(elapsed, reported, &mut sample.host, &mut sample.cpus);
        std::thread::sleep(BREATH);
        self.disks.sample(elapsed, reported, &mut sample.disks);
        self.networks.sample(elapsed, reported, self.processes.watched(), &mut sample.networks);
        self.nfsd.sample(elapsed, &mut sample.nfsd);
        std::thread::sleep(BREATH);
        self.processes.sample(elapsed, &sample.cpus, &mut sample.processes);
        std::thread::sleep(BREATH);
        let groups = (&mut sample.groups, &mut sample.storage);
        self.groups.sample(elapsed, self.processes.watched(), groups);
        self.sockets.sample(self.processes.watched(), &mut sample.sockets);
        // Last: a server may keep us waiting.
        let rows = [&mut sample.servers, &mut sample.models, &mut sample.gpus];
        self.servers.sample(clock::monotonic_ns, rows);
        sample
    }
}

/// Pause between groups of files: a worker that spins on the same core is then delayed by a part of
/// a sample's millisecond at a time, not by all of it.
const BREATH: std::time::Duration = std::time::Duration::from_micros(300);

/// Seconds between two samples; absent for the first.
#[derive(Clone, Copy, Debug)]
struct Elapsed(Option<f64>);

impl Elapsed {
    fn from_ns(ns: u64) -> Self {
        Self((ns > 0).then(|| ns as f64 / NANOS_PER_SECOND as f64))
    }

    /// Growth per second; absent when a counter is missing or went back (the device was replaced).
    fn rate(self, before: Option<u64>, now: Option<u64>) -> Option<f64> {
        Some(growth(before, now)? / self.0?)
    }
}

/// By how much a counter grew.
fn growth(before: Option<u64>, now: Option<u64>) -> Option<f64> {
    Some(now?.checked_sub(before?)? as f64)
}

/// A share; absent when there is nothing to share.
fn share(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let whole = whole.filter(|&whole| whole > 0.0)?;
    Some(part? / whole)
}

#[cfg(test)]
mod tests;
