//! An agent's figures at one instant, as the counters of `/proc`; the times of all processors
//! together come from systemStats of UCD-SNMP-MIB. Pure.

use std::collections::BTreeMap;

use plimsoll_model::units::NANOS_PER_SECOND;

use super::walk::Column;
use crate::parse::{CpuTimes, MeasuredTimes, MemInfo, NetworkCounters, Stat};
use crate::sampler::{HostCounters, HostFigures};
use crate::source::{Lost, row_name, ticks, whole_kib};

/// hrStorageRam and hrStorageVirtualMemory (RFC 2790, hrStorageTypes).
const RAM: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 2, 1, 2];
const VIRTUAL: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 2, 1, 3];
/// Size of a 32-bit counter.
const WRAP: u64 = 1 << 32;
/// Stands for systemStats among the counters of interfaces.
const STATS: usize = 8;

/// Kinds of storage, which stay as they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Storage {
    pub(super) kinds: Column<Vec<u64>>,
    pub(super) names: Column<String>,
    pub(super) units: Column<u64>,
}

/// All of one instant.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    /// Hundredths of a second since the agent began.
    pub(super) up_time: Option<u64>,
    /// Counters of interfaces, in the order of [`NetworkCounters`].
    pub(super) interfaces: [Column<u64>; 8],
    /// Percent, a mean over a minute.
    pub(super) loads: Column<u64>,
    /// systemStats of UCD-SNMP-MIB, where the agent has them.
    pub(super) stats: Column<u64>,
    /// In units of the storage.
    pub(super) sizes: Column<u64>,
    pub(super) used: Column<u64>,
}

/// State carried from one instant to the next.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    at_ns: Option<u64>,
    up_time: Option<u64>,
    /// Seconds that each processor was busy and idle: the agent gives a load only.
    cpus: Column<[f64; 2]>,
    /// 32-bit counters, by what they count and row: as reported last, and made 64-bit.
    wide: BTreeMap<(usize, u64), (u64, u64)>,
}

impl Accounts {
    pub(super) fn figures(
        &mut self,
        observed: &Observed,
        at_ns: u64,
        names: &Column<String>,
        speeds: &Column<u64>,
        storage: &Storage,
    ) -> Result<HostFigures, Lost> {
        // An agent that began anew counts from zero: that is no wrap.
        let began_anew =
            matches!((self.up_time, observed.up_time), (Some(was), Some(is)) if is < was);
        if began_anew {
            self.wide.clear();
        }
        self.up_time = observed.up_time;
        let memory = memory(observed, storage);
        self.add_loads(&observed.loads, at_ns);
        let times = |seconds: &[f64; 2]| {
            let ([user, idle], measured) = (seconds.map(ticks), MeasuredTimes::BusyAndIdle);
            CpuTimes { user, idle, measured, ..CpuTimes::default() }
        };
        let mut stat = Stat::from_cpus((0..).zip(self.cpus.values().map(times)).collect());
        let stats: Column<u64> = observed
            .stats
            .iter()
            .map(|(number, reported)| (*number, self.widened(STATS, *number, *reported)))
            .collect();
        stat.context_switches = stats.get(&CONTEXTS).copied().filter(|count| *count > 0);
        if has_ticks(&stats) {
            stat.all = all_cpus(&stats);
        }
        let host = HostCounters { stat, memory, ..HostCounters::default() };
        let (networks, speeds_mbit) = self.networks(&observed.interfaces, names, speeds)?;
        Ok(HostFigures { host, disks: Vec::new(), networks, speeds_mbit })
    }

    fn add_loads(&mut self, loads: &Column<u64>, at_ns: u64) {
        let elapsed_ns = self.at_ns.replace(at_ns).map_or(0, |was| at_ns.saturating_sub(was));
        let elapsed_s = elapsed_ns as f64 / NANOS_PER_SECOND as f64;
        self.cpus.retain(|row, _| loads.contains_key(row));
        for (row, percent) in loads {
            let [busy_s, idle_s] = self.cpus.entry(*row).or_default();
            let busy = (*percent).min(100) as f64 / 100.0;
            *busy_s += elapsed_s * busy;
            *idle_s += elapsed_s * (1.0 - busy);
        }
    }

    fn networks(
        &mut self,
        interfaces: &[Column<u64>; 8],
        names: &Column<String>,
        speeds: &Column<u64>,
    ) -> Result<(Vec<NetworkCounters>, BTreeMap<String, u64>), Lost> {
        let (mut networks, mut speeds_mbit) = (BTreeMap::new(), BTreeMap::new());
        for row in interfaces[0].keys() {
            // Counters of 64 bits do not wrap in a century; one that goes back was reset.
            // IF-MIB has no overruns.
            let mut counters = [None; 9];
            for (index, column) in interfaces.iter().enumerate() {
                counters[index] =
                    column.get(row).map(|reported| self.widened(index, *row, *reported));
                if counters[index].is_none() && self.wide.contains_key(&(index, *row)) {
                    return Err(Lost("it leaves out counters that it reported before".to_owned()));
                }
            }
            let name = names.get(row).cloned().filter(|name| !name.is_empty());
            let mut name = name.unwrap_or_else(|| format!("if{row}"));
            if networks.contains_key(&name) {
                name = format!("{name}-{row}");
            }
            let row_name = row_name(&name);
            speeds_mbit.extend(speeds.get(row).map(|mbit| (row_name.clone(), *mbit)));
            networks.insert(name, NetworkCounters { name: row_name, counters });
        }
        Ok((networks.into_values().collect(), speeds_mbit))
    }

    /// A counter that went back is taken to have wrapped where both readings fit in 32 bits and the
    /// one before lay in the upper half: one that began anew is near zero and was anywhere.
    fn widened(&mut self, what: usize, row: u64, reported: u64) -> u64 {
        let (was, wide) = self.wide.get(&(what, row)).copied().unwrap_or((reported, reported));
        let wide = match reported.checked_sub(was) {
            Some(grown) => wide.saturating_add(grown),
            None if (WRAP / 2..WRAP).contains(&was) && reported < WRAP / 2 => {
                wide.saturating_add(WRAP - was + reported)
            }
            // Back to reported values: the samplers see a counter that went back.
            None => reported,
        };
        self.wide.insert((what, row), (reported, wide));
        wide
    }
}

fn memory(observed: &Observed, storage: &Storage) -> MemInfo {
    let rows_of = |kind: &[u64]| -> Vec<u64> {
        storage.kinds.iter().filter(|(_, k)| *k == kind).map(|(row, _)| *row).collect()
    };
    let is_named = |row: &u64, text: &str| {
        storage.names.get(row).is_some_and(|name| name.to_ascii_lowercase().contains(text))
    };
    let bytes = |column: &Column<u64>, row: u64| {
        Some(*column.get(&row)? as f64 * *storage.units.get(&row)? as f64)
    };
    let mut memory = MemInfo::default();
    let ram = rows_of(RAM);
    let physical = ram.iter().find(|row| is_named(row, "physical")).or(ram.first());
    if let Some(&row) = physical
        && let (Some(size), Some(used)) = (bytes(&observed.sizes, row), bytes(&observed.used, row))
    {
        // Some agents count the page cache as used, and also report it separately.
        let cached = storage.names.keys().find(|row| is_named(row, "cached"));
        let cached = cached.and_then(|&row| bytes(&observed.used, row));
        memory.total = whole_kib(size);
        memory.available = whole_kib((size - used + cached.unwrap_or(0.0)).min(size));
        memory.cached = cached.and_then(whole_kib);
    }
    let swap = rows_of(VIRTUAL).into_iter().find(|row| is_named(row, "swap"));
    if let Some(row) = swap
        && let (Some(size), Some(used)) = (bytes(&observed.sizes, row), bytes(&observed.used, row))
    {
        memory.swap_total = whole_kib(size);
        memory.swap_free = whole_kib(size - used);
    }
    memory
}

/// Objects of systemStats: ssCpuRawUser and its like.
const USER: u64 = 50;
const NICE: u64 = 51;
const SYSTEM: u64 = 52;
const IDLE: u64 = 53;
const WAIT: u64 = 54;
const KERNEL: u64 = 55;
const INTERRUPT: u64 = 56;
const CONTEXTS: u64 = 60;
const SOFT_IRQ: u64 = 61;
const STEAL: u64 = 64;

/// Whether an agent has the times of all processors, even as zeros.
pub(super) fn has_ticks(stats: &Column<u64>) -> bool {
    [USER, SYSTEM, IDLE].iter().all(|object| stats.contains_key(object))
}

/// Times of all processors from the objects of systemStats; `None` where it has no times. An agent
/// that has just started reports zeros until it has looked.
fn all_cpus(stats: &Column<u64>) -> Option<CpuTimes> {
    let reported = |object: u64| stats.get(&object).copied().filter(|ticks| *ticks > 0);
    // If the kernel's own time is reported separately, ssCpuRawSystem may include the waits too.
    let system = if reported(KERNEL).is_some() { KERNEL } else { SYSTEM };
    let objects = [USER, NICE, system, IDLE, WAIT, INTERRUPT, SOFT_IRQ, STEAL];
    let times = objects.map(|object| reported(object).unwrap_or_default());
    reported(IDLE).is_some().then(|| CpuTimes::from_ticks(times))
}

#[cfg(test)]
mod tests;
