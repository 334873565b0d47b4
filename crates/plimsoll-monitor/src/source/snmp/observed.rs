//! What an agent told at one instant, written as the texts of `/proc`; the times of all processors
//! together as systemStats of UCD-SNMP-MIB tells them. Pure.

use std::collections::BTreeMap;

use plimsoll_model::units::NANOS_PER_SECOND;

use super::walk::Column;
use crate::root::Texts;
use crate::source::Lost;
use crate::source::proc_texts::{CpuSeconds, NetworkTotals, ProcTexts};

/// hrStorageRam and hrStorageVirtualMemory (RFC 2790, hrStorageTypes).
const RAM: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 2, 1, 2];
const VIRTUAL: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 2, 1, 3];
/// Size of a 32-bit counter.
const WRAP: u64 = 1 << 32;
/// Where a counter stands that was not told, and how far it goes back each time: the samplers give
/// no rate of a counter that goes back, and a missing one is no zero.
const UNTOLD: f64 = 1.8e19;
const UNTOLD_STEP: f64 = 1e6;
const BYTES_PER_MBIT: f64 = 125_000.0;

/// Counters of all interfaces.
#[derive(Clone, Debug, Default)]
pub(super) struct Interfaces {
    pub(super) received: Column<u64>,
    pub(super) sent: Column<u64>,
    pub(super) received_packets: Column<u64>,
    pub(super) sent_packets: Column<u64>,
    pub(super) receive_errors: Column<u64>,
    pub(super) receive_drops: Column<u64>,
    pub(super) send_errors: Column<u64>,
    pub(super) send_drops: Column<u64>,
}

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
    pub(super) interfaces: Interfaces,
    /// Percent, a mean over a minute.
    pub(super) loads: Column<u64>,
    /// systemStats of UCD-SNMP-MIB, where the agent has them.
    pub(super) stats: Column<u64>,
    /// In units of the storage.
    pub(super) sizes: Column<u64>,
    pub(super) used: Column<u64>,
}

/// What must be carried from one instant to the next.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    at_ns: Option<u64>,
    up_time: Option<u64>,
    /// Seconds of each processor, which the agent gives as a load only.
    cpus: BTreeMap<u64, CpuSeconds>,
    /// 32-bit counters, by what they count and row: as told last, and made 64-bit.
    wide: BTreeMap<(&'static str, u64), (u64, u64)>,
    /// How often it was asked.
    turns: u32,
}

impl Accounts {
    pub(super) fn texts(
        &mut self,
        observed: &Observed,
        at_ns: u64,
        names: &Column<String>,
        speeds: &Column<u64>,
        storage: &Storage,
    ) -> Result<Texts, Lost> {
        // An agent that began anew counts from zero: that is no wrap.
        let began_anew =
            matches!((self.up_time, observed.up_time), (Some(was), Some(is)) if is < was);
        if began_anew {
            self.wide.clear();
        }
        self.up_time = observed.up_time;
        self.turns = self.turns.saturating_add(1);
        let mut texts = ProcTexts::default();
        self.add_loads(&observed.loads, at_ns);
        let cpus: Vec<(u32, CpuSeconds)> = (0..).zip(self.cpus.values().copied()).collect();
        let stats: Column<u64> = observed
            .stats
            .iter()
            .map(|(number, told)| (*number, self.widened("stats", *number, *told)))
            .collect();
        texts.stat(&cpus, &[("ctxt", context_switches(&stats))]);
        if Ticks::are_in(&stats) {
            texts.all_cpus(Ticks::of(&stats).map(|Ticks(all)| all));
        }
        texts.memory(memory(observed, storage));
        let networks = self.networks(&observed.interfaces, names, speeds)?;
        texts.networks(networks.iter().map(|(name, network)| (name.as_str(), *network)));
        Ok(texts.into_texts())
    }

    fn add_loads(&mut self, loads: &Column<u64>, at_ns: u64) {
        let elapsed_ns = self.at_ns.replace(at_ns).map_or(0, |was| at_ns.saturating_sub(was));
        let elapsed_s = elapsed_ns as f64 / NANOS_PER_SECOND as f64;
        self.cpus.retain(|row, _| loads.contains_key(row));
        for (row, percent) in loads {
            let cpu = self.cpus.entry(*row).or_default();
            let busy = (*percent).min(100) as f64 / 100.0;
            cpu.user += elapsed_s * busy;
            cpu.idle += elapsed_s * (1.0 - busy);
        }
    }

    fn networks(
        &mut self,
        interfaces: &Interfaces,
        names: &Column<String>,
        speeds: &Column<u64>,
    ) -> Result<BTreeMap<String, NetworkTotals>, Lost> {
        let mut networks = BTreeMap::new();
        let mut has_holes = false;
        for (row, received) in &interfaces.received {
            // Counters of 64 bits do not wrap in a century; what goes back there began anew.
            let untold = UNTOLD - f64::from(self.turns) * UNTOLD_STEP;
            let mut wide = |what, column: &Column<u64>| match column.get(row) {
                Some(told) => self.widened(what, *row, *told) as f64,
                None => {
                    has_holes |= self.wide.contains_key(&(what, *row));
                    untold
                }
            };
            let network = NetworkTotals {
                received_bytes: wide("received", &[(*row, *received)].into()),
                sent_bytes: wide("sent", &interfaces.sent),
                received_packets: wide("received_packets", &interfaces.received_packets),
                sent_packets: wide("sent_packets", &interfaces.sent_packets),
                receive_errors: wide("receive_errors", &interfaces.receive_errors),
                receive_drops: wide("receive_drops", &interfaces.receive_drops),
                send_errors: wide("send_errors", &interfaces.send_errors),
                send_drops: wide("send_drops", &interfaces.send_drops),
                speed: speeds.get(row).map(|mbit| *mbit as f64 * BYTES_PER_MBIT),
            };
            let name = names.get(row).cloned().filter(|name| !name.is_empty());
            let mut name = name.unwrap_or_else(|| format!("if{row}"));
            if networks.contains_key(&name) {
                name = format!("{name}-{row}");
            }
            networks.insert(name, network);
        }
        match has_holes {
            true => Err(Lost("it leaves out counters that it told before".to_owned())),
            false => Ok(networks),
        }
    }

    /// A counter that went back is taken to have wrapped where both readings fit in 32 bits and the
    /// one before lay in the upper half: one that began anew is near zero and was anywhere.
    fn widened(&mut self, what: &'static str, row: u64, told: u64) -> u64 {
        let (was, wide) = self.wide.get(&(what, row)).copied().unwrap_or((told, told));
        let wide = match told.checked_sub(was) {
            Some(grown) => wide.saturating_add(grown),
            None if (WRAP / 2..WRAP).contains(&was) && told < WRAP / 2 => {
                wide.saturating_add(WRAP - was + told)
            }
            // Back to what is told: the samplers see a counter that went back.
            None => told,
        };
        self.wide.insert((what, row), (told, wide));
        wide
    }
}

fn memory(observed: &Observed, storage: &Storage) -> Vec<(&'static str, f64)> {
    let rows_of = |kind: &[u64]| -> Vec<u64> {
        storage.kinds.iter().filter(|(_, k)| *k == kind).map(|(row, _)| *row).collect()
    };
    let is_named = |row: &u64, text: &str| {
        storage.names.get(row).is_some_and(|name| name.to_ascii_lowercase().contains(text))
    };
    let bytes = |column: &Column<u64>, row: u64| {
        Some(*column.get(&row)? as f64 * *storage.units.get(&row)? as f64)
    };
    let mut sizes = Vec::new();
    let ram = rows_of(RAM);
    let physical = ram.iter().find(|row| is_named(row, "physical")).or(ram.first());
    if let Some(&row) = physical
        && let (Some(size), Some(used)) = (bytes(&observed.sizes, row), bytes(&observed.used, row))
    {
        // Some agents count the page cache as used, and tell it besides.
        let cached = storage.names.keys().find(|row| is_named(row, "cached"));
        let cached = cached.and_then(|&row| bytes(&observed.used, row));
        sizes.push(("MemTotal", size));
        sizes.push(("MemAvailable", (size - used + cached.unwrap_or(0.0)).min(size)));
        sizes.extend(cached.map(|cached| ("Cached", cached)));
    }
    let swap = rows_of(VIRTUAL).into_iter().find(|row| is_named(row, "swap"));
    if let Some(row) = swap
        && let (Some(size), Some(used)) = (bytes(&observed.sizes, row), bytes(&observed.used, row))
    {
        sizes.push(("SwapTotal", size));
        sizes.push(("SwapFree", size - used));
    }
    sizes
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
/// "The standard is 100 ticks per second" (UCD-SNMP-MIB); shares do not depend on it.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds of all processors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks(pub(super) CpuSeconds);

impl Ticks {
    /// Whether an agent has them, be it with zeros.
    pub(super) fn are_in(stats: &Column<u64>) -> bool {
        [USER, SYSTEM, IDLE].iter().all(|object| stats.contains_key(object))
    }

    /// From the objects of systemStats; `None` where it tells no times. An agent that has only begun
    /// tells zeros until it has looked.
    pub(super) fn of(stats: &Column<u64>) -> Option<Self> {
        let ticks = |object: u64| stats.get(&object).map(|told| *told as f64 / TICKS_PER_SECOND);
        let or_zero = |object| ticks(object).unwrap_or_default();
        let (irq, softirq) = (or_zero(INTERRUPT), or_zero(SOFT_IRQ));
        Some(Self(CpuSeconds {
            user: ticks(USER)?,
            nice: or_zero(NICE),
            // Where the kernel's own time is told apart, ssCpuRawSystem may hold the waits too.
            system: ticks(KERNEL).filter(|kernel| *kernel > 0.0).or(ticks(SYSTEM))?,
            idle: ticks(IDLE).filter(|idle| *idle > 0.0)?,
            iowait: or_zero(WAIT),
            irq,
            softirq,
            steal: or_zero(STEAL),
        }))
    }
}

/// Context switches of all processors.
fn context_switches(stats: &Column<u64>) -> Option<f64> {
    stats.get(&CONTEXTS).filter(|told| **told > 0).map(|told| *told as f64)
}

#[cfg(test)]
mod tests;
