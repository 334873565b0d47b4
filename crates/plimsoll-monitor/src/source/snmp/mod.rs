//! An SNMP agent: interfaces by IF-MIB (RFC 2863), processors and memory by HOST-RESOURCES-MIB
//! (RFC 2790), the times of all processors by UCD-SNMP-MIB where the agent has it, SNMP version 2c.

mod observed;
mod walk;

use std::net::{SocketAddr, ToSocketAddrs};

use super::{Fact, Fetched, Lost, Peer, middle};
use crate::clock::{self, ClockReading};
use crate::root::Frame;
use observed::{Accounts, Interfaces, Observed, Storage, Ticks};
use walk::{Column, Walker};

/// What agents take unless told otherwise.
pub(super) const COMMUNITY_DEFAULT: &str = "public";
/// Agents renew what they tell once in some seconds (net-snmp: up to 15). One that told the same
/// for longer has nothing to tell.
const SAME_NS_MAX: u64 = 30_000_000_000;

const SYS_DESCR: &[u64] = &[1, 3, 6, 1, 2, 1, 1, 1];
const SYS_UP_TIME: &[u64] = &[1, 3, 6, 1, 2, 1, 1, 3];
const IF_DESCR: &[u64] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2];
const IF_IN_OCTETS: &[u64] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 10];
const IF_IN_DISCARDS: &[u64] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 13];
const IF_IN_ERRORS: &[u64] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 14];
const IF_OUT_OCTETS: &[u64] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 16];
const IF_OUT_DISCARDS: &[u64] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 19];
const IF_OUT_ERRORS: &[u64] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 20];
const IF_NAME: &[u64] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1];
const IF_HC_IN_OCTETS: &[u64] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6];
const IF_HC_IN_UCAST: &[u64] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 7];
const IF_HC_OUT_OCTETS: &[u64] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10];
const IF_HC_OUT_UCAST: &[u64] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 11];
const IF_HIGH_SPEED: &[u64] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 15];
const HR_STORAGE_TYPE: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 2];
const HR_STORAGE_DESCR: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 3];
const HR_STORAGE_UNITS: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 4];
const HR_STORAGE_SIZE: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 5];
const HR_STORAGE_USED: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 6];
const HR_PROCESSOR_LOAD: &[u64] = &[1, 3, 6, 1, 2, 1, 25, 3, 3, 1, 2];
/// systemStats of UCD-SNMP-MIB, by the numbers of its objects ([`Ticks`]).
const SYSTEM_STATS: &[u64] = &[1, 3, 6, 1, 4, 1, 2021, 11];

/// What HOST-RESOURCES-MIB does not tell apart: a processor is busy, and no more is known.
const UNTOLD: [(&str, &str); 12] = [
    ("host", "cpu_user"),
    ("host", "cpu_system"),
    ("host", "cpu_iowait"),
    ("host", "cpu_irq"),
    ("host", "cpu_softirq"),
    ("host", "cpu_steal"),
    ("cpu", "user"),
    ("cpu", "system"),
    ("cpu", "iowait"),
    ("cpu", "irq"),
    ("cpu", "softirq"),
    ("cpu", "steal"),
];

/// Of single processors UCD-SNMP-MIB tells nothing.
const UNTOLD_WITH_TICKS: [(&str, &str); 6] = [
    ("cpu", "user"),
    ("cpu", "system"),
    ("cpu", "iowait"),
    ("cpu", "irq"),
    ("cpu", "softirq"),
    ("cpu", "steal"),
];

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
    /// The octets told last, and when they were new.
    last: Option<(Column<u64>, u64)>,
}

impl std::fmt::Debug for SnmpPeer {
    /// Without the community.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnmpPeer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl SnmpPeer {
    /// Asks for what stays as it is: names and speeds of interfaces, kinds of storage.
    pub(super) fn open(host: &str, port: u16, community: &str) -> Result<(Self, Vec<Fact>), Lost> {
        let mut addresses =
            (host, port).to_socket_addrs().map_err(|e| Lost(format!("cannot resolve: {e}")))?;
        let address = addresses.next().ok_or_else(|| Lost("has no address".to_owned()))?;
        let mut walker = Walker::open(address, community)?;
        let system = walker.texts(SYS_DESCR)?.into_values().next();
        let mut names = walker.texts(IF_NAME)?;
        for (index, name) in walker.texts(IF_DESCR)? {
            names.entry(index).or_insert(name);
        }
        let wide = !walker.numbers(IF_HC_IN_OCTETS)?.is_empty();
        if names.is_empty() && walker.numbers(HR_PROCESSOR_LOAD)?.is_empty() {
            return Err(Lost("its agent tells neither interfaces nor processors".to_owned()));
        }
        let has_ticks = Ticks::are_in(&walker.numbers(SYSTEM_STATS)?);
        let storage = Storage {
            kinds: walker.ids(HR_STORAGE_TYPE)?,
            names: walker.texts(HR_STORAGE_DESCR)?,
            units: walker.numbers(HR_STORAGE_UNITS)?,
        };
        let system = system.unwrap_or_else(|| "not told".to_owned());
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
            ("clock", "not told; samples carry this host's time".to_owned()),
            ("counters of interfaces", counters.to_owned()),
            ("load of processors", load.to_owned()),
        ];
        Ok((peer, facts))
    }

    fn observe(&mut self, walker: &mut Walker) -> Result<Option<(ClockReading, Observed)>, Lost> {
        let asked = ClockReading::now();
        let [received, sent] = match self.wide {
            true => [IF_HC_IN_OCTETS, IF_HC_OUT_OCTETS],
            false => [IF_IN_OCTETS, IF_OUT_OCTETS],
        };
        let received = walker.numbers(received)?;
        let at = middle(asked, clock::monotonic_ns());
        if let Some((last, since_ns)) = &self.last
            && *last == received
            && at.monotonic_ns.saturating_sub(*since_ns) < SAME_NS_MAX
        {
            return Ok(None);
        }
        let sent = walker.numbers(sent)?;
        self.last = Some((received.clone(), at.monotonic_ns));
        let mut numbers = |column| walker.numbers(column);
        let interfaces = Interfaces {
            received,
            sent,
            received_packets: numbers(IF_HC_IN_UCAST)?,
            sent_packets: numbers(IF_HC_OUT_UCAST)?,
            receive_errors: numbers(IF_IN_ERRORS)?,
            receive_drops: numbers(IF_IN_DISCARDS)?,
            send_errors: numbers(IF_OUT_ERRORS)?,
            send_drops: numbers(IF_OUT_DISCARDS)?,
        };
        let observed = Observed {
            up_time: numbers(SYS_UP_TIME)?.into_values().next(),
            interfaces,
            loads: numbers(HR_PROCESSOR_LOAD)?,
            stats: if self.has_ticks { numbers(SYSTEM_STATS)? } else { Column::new() },
            sizes: numbers(HR_STORAGE_SIZE)?,
            used: numbers(HR_STORAGE_USED)?,
        };
        Ok(Some((at, observed)))
    }
}

impl Peer for SnmpPeer {
    fn fetch(&mut self, frame: &Frame) -> Result<Option<Fetched>, Lost> {
        // After an error there is a new one, with a socket that no late answer reaches.
        let mut walker = match self.walker.take() {
            Some(walker) => walker,
            None => Walker::open(self.address, &self.community)?,
        };
        walker.begin();
        let observed = self.observe(&mut walker)?;
        self.walker = Some(walker);
        let Some((at, observed)) = observed else { return Ok(None) };
        let texts = self.accounts.texts(
            &observed,
            at.monotonic_ns,
            &self.names,
            &self.speeds,
            &self.storage,
        )?;
        frame.replace(texts);
        Ok(Some(Fetched { at, servers: Vec::new(), cost_ns: None }))
    }

    fn untold(&self) -> &'static [(&'static str, &'static str)] {
        if self.has_ticks { &UNTOLD_WITH_TICKS } else { &UNTOLD }
    }
}

#[cfg(test)]
mod tests;
