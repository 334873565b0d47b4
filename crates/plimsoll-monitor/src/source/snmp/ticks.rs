//! Times of all processors together, as systemStats of UCD-SNMP-MIB tells them. Pure.

use super::walk::Column;
use crate::source::proc_texts::CpuSeconds;

/// Objects of the group: ssCpuRawUser and its like.
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

    /// From the group's objects; `None` where it tells no times. An agent that has only begun tells
    /// zeros until it has looked.
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
pub(super) fn context_switches(stats: &Column<u64>) -> Option<f64> {
    stats.get(&CONTEXTS).filter(|told| **told > 0).map(|told| *told as f64)
}
