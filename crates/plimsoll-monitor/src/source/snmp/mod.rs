//! An SNMP agent: interfaces by IF-MIB (RFC 2863), processors and memory by HOST-RESOURCES-MIB
//! (RFC 2790), the times of all processors by UCD-SNMP-MIB where the agent has it, SNMP version 2c.

mod observed;
mod walk;

use std::net::SocketAddr;

use super::http::resolve;
use super::{Fact, Fetched, Lost, Peer, middle};
use crate::clock::{self, ClockReading};
use crate::root::Frame;
use observed::{Accounts, Observed, Storage, has_ticks};
use walk::{Column, Walker};

/// The default community of agents.
pub(super) const COMMUNITY_DEFAULT: &str = "public";
/// Agents refresh their figures once in some seconds (net-snmp: up to 15). One that reported the
/// same for longer has no figures.
const SAME_NS_MAX: u64 = 30_000_000_000;

const SYS_DESCR: &[u64] = &[1, 3, 6, 1, 2, 1, 1, 1];
const SYS_UP_TIME: &[u64] = &[1, 3, 6, 1, 2, 1, 1, 3];
const IF_DESCR: &[u64] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2];
const IF_IN_OCTETS: &[u64] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 10];
const IF_OUT_OCTETS: &[u64] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 16];
const IF_NAME: &[u64] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1];
const IF_HC_IN_OCTETS: &[u64] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6];
const IF_HC_OUT_OCTETS: &[u64] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10];
const IF_HIGH_SPEED: &[u64] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 15];
/// Counters of an interface in the order of [`crate::parse::NetworkCounters`]. Received: octets,
/// unicast packets, errors, discards; the same sent.
const IF_COUNTERS: [&[u64]; 8] = [
    IF_HC_IN_OCTETS,
    &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 7],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 14],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 13],
    IF_HC_OUT_OCTETS,
    &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 11],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 20],
    &[1, 3, 6, 1, 2, 1, 2, 2, 1, 19],
];
const HR_STORAGE_TYPE: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 2];
const HR_STORAGE_DESCR: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 3];
const HR_STORAGE_UNITS: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 4];
const HR_STORAGE_SIZE: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 5];
const HR_STORAGE_USED: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 6];
const HR_PROCESSOR_LOAD: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 3, 3, 1, 2];
/// systemStats of UCD-SNMP-MIB, by the numbers of its objects.
const SYSTEM_STATS: &[u64] = &[1, 3, 6, 1, 4, 1, 2021, 11];

pub(super) struct SnmpPeer {
    address: SocketAddr,
    community: String,
    walker: Option<Walker>,
    names: Column<String>,
    speeds: Column<u64>,
    /// 64-bit counters are there.
    wide: bool,
    /// Times of all processors are there.
    has_ticks: bool,
    storage: Storage,
    accounts: Accounts,
    /// The octets reported last, and when they were new.
    last: Option<(Column<u64>, u64)>,
}

impl std::fmt::Debug for SnmpPeer {
    /// Without the community.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnmpPeer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl SnmpPeer {
    /// Requests what does not change: names and speeds of interfaces, kinds of storage.
    pub(super) fn open(host: &str, port: u16, community: &str) -> Result<(Self, Vec<Fact>), Lost> {
        let address = resolve(host, port)?;
        let mut walker = Walker::open(address, community)?;
        let system = walker.texts(SYS_DESCR)?.into_values().next();
        let mut names = walker.texts(IF_NAME)?;
        for (index, name) in walker.texts(IF_DESCR)? {
            names.entry(index).or_insert(name);
        }
        let wide = !walker.numbers(IF_HC_IN_OCTETS)?.is_empty();
        if names.is_empty() && walker.numbers(HR_PROCESSOR_LOAD)?.is_empty() {
            return Err(Lost("its agent reports neither interfaces nor processors".to_owned()));
        }
        let has_ticks = has_ticks(&walker.numbers(SYSTEM_STATS)?);
        let storage = Storage {
            kinds: walker.ids(HR_STORAGE_TYPE)?,
            names: walker.texts(HR_STORAGE_DESCR)?,
            units: walker.numbers(HR_STORAGE_UNITS)?,
        };
        let system = system.unwrap_or_else(|| "unknown".to_owned());
        let peer = Self {
            address,
            community: community.to_owned(),
            speeds: walker.numbers(IF_HIGH_SPEED)?,
            walker: Some(walker),
            names,
            wide,
            has_ticks,
            storage,
            accounts: Accounts::default(),
            last: None,
        };
        let load = match has_ticks {
            true => "ticks of UCD-SNMP-MIB for all; of each one-minute mean (hrProcessorLoad)",
            false => "one-minute mean (hrProcessorLoad)",
        };
        let counters = if wide { "64-bit" } else { "32-bit, wraps made good" };
        let facts = vec![
            ("system", format!("{system} (SNMP)")),
            ("clock", "unknown; samples carry this host's time".to_owned()),
            ("counters of interfaces", counters.to_owned()),
            ("load of processors", load.to_owned()),
        ];
        Ok((peer, facts))
    }

    fn observe(&mut self, walker: &mut Walker) -> Result<Option<(ClockReading, Observed)>, Lost> {
        let requested = ClockReading::now();
        let mut columns = IF_COUNTERS;
        if !self.wide {
            (columns[0], columns[4]) = (IF_IN_OCTETS, IF_OUT_OCTETS);
        }
        let received = walker.numbers(columns[0])?;
        let at = middle(requested, clock::monotonic_ns());
        if let Some((last, since_ns)) = &self.last
            && *last == received
            && at.monotonic_ns.saturating_sub(*since_ns) < SAME_NS_MAX
        {
            return Ok(None);
        }
        let mut interfaces: [Column<u64>; 8] = Default::default();
        for (counts, column) in interfaces.iter_mut().zip(columns).skip(1) {
            *counts = walker.numbers(column)?;
        }
        interfaces[0] = received;
        let mut numbers = |column| walker.numbers(column);
        let observed = Observed {
            up_time: numbers(SYS_UP_TIME)?.into_values().next(),
            interfaces,
            loads: numbers(HR_PROCESSOR_LOAD)?,
            stats: if self.has_ticks { numbers(SYSTEM_STATS)? } else { Column::new() },
            sizes: numbers(HR_STORAGE_SIZE)?,
            used: numbers(HR_STORAGE_USED)?,
        };
        // Only now: of a sample that breaks off the counters have not been reported.
        self.last = Some((observed.interfaces[0].clone(), at.monotonic_ns));
        Ok(Some((at, observed)))
    }
}

impl Peer for SnmpPeer {
    fn fetch(&mut self, _frame: &Frame) -> Result<Option<Fetched>, Lost> {
        // After an error there is a new one, with a socket that no late answer reaches.
        let mut walker = match self.walker.take() {
            Some(walker) => walker,
            None => Walker::open(self.address, &self.community)?,
        };
        walker.begin();
        let observed = self.observe(&mut walker)?;
        self.walker = Some(walker);
        let Some((at, observed)) = observed else { return Ok(None) };
        let figures = self.accounts.figures(
            &observed,
            at.monotonic_ns,
            &self.names,
            &self.speeds,
            &self.storage,
        )?;
        Ok(Some(Fetched { at, figures: Some(figures), ..Fetched::default() }))
    }
}

#[cfg(test)]
mod tests;
