//! Network interfaces: of this host, and of the network namespaces of watched servers.

use super::proc_file::ProcFile;
use super::shaping::shaped_bytes_per_s;
use super::table::{Column, Rows, Table, Unit};
use super::{Elapsed, share};
use crate::parse::{NetworkCounters, parse_net_dev};
use crate::root::Root;
use crate::watched::WatchedProcess;

const BITS_PER_BYTE: f64 = 8.0;
const BITS_PER_MEGABIT: f64 = 1e6;

pub(super) static NETWORKS: Table = Table {
    name: "network",
    keyed: true,
    idle_left_out: true,
    ends_with_load: false,
    columns: &[
        Column::drawn("received", Unit::BytesPerSecond),
        Column::drawn("sent", Unit::BytesPerSecond),
        // Of what the link carries one way, or is shaped to; absent where that is not known.
        Column::summed("received_share", Unit::Ratio),
        Column::summed("sent_share", Unit::Ratio),
        Column::summed("received_packets", Unit::PerSecond),
        Column::summed("sent_packets", Unit::PerSecond),
        Column::summed("received_per_packet", Unit::Bytes),
        Column::summed("sent_per_packet", Unit::Bytes),
        Column::summed("receive_drops", Unit::PerSecond),
        Column::summed("send_drops", Unit::PerSecond),
        Column::written("receive_errors", Unit::PerSecond),
        Column::written("send_errors", Unit::PerSecond),
    ],
};

#[derive(Debug)]
pub(super) struct NetworkSource {
    root: Root,
    /// This host's first.
    namespaces: Vec<Namespace>,
    /// Watched processes that were looked at.
    looked_at: Vec<String>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Namespace {
    /// Before the name of an interface; empty for this host's.
    prefix: String,
    /// A process in it; absent for this host's.
    pid: Option<u32>,
    file: ProcFile,
    before: Vec<NetworkCounters>,
    /// What links carry, as far as they were asked for.
    links: Vec<(String, Link)>,
}

impl Namespace {
    fn new(prefix: String, pid: Option<u32>, file: ProcFile) -> Self {
        Self { prefix, pid, file, before: Vec::new(), links: Vec::new() }
    }

    /// `/sys` shows the interfaces of this host's namespace only.
    fn link(&mut self, root: &Root, name: &str) -> Link {
        if let Some((_, link)) = self.links.iter().find(|(known, _)| known == name) {
            return *link;
        }
        let own = self.pid.is_none();
        let megabits = own.then(|| root.number(format!("sys/class/net/{name}/speed"))).flatten();
        let speed = megabits.map(|megabits| megabits as f64 * BITS_PER_MEGABIT / BITS_PER_BYTE);
        let shaped = shaped_bytes_per_s(root, self.pid, name);
        let send = [speed, shaped].into_iter().flatten().reduce(f64::min);
        let link = Link { receive: speed, send };
        self.links.push((name.to_owned(), link));
        link
    }
}

/// Bytes per second that a link carries each way; absent where that is not known.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    receive: Option<f64>,
    /// What it is shaped to, where that is less.
    send: Option<f64>,
}

impl NetworkSource {
    pub(super) fn open(root: &Root) -> Self {
        let host = Namespace::new(String::new(), None, ProcFile::open(root, "proc/net/dev"));
        let root = root.clone();
        Self { root, namespaces: vec![host], looked_at: Vec::new(), buffer: Vec::new() }
    }

    pub(super) fn sample<'w>(
        &mut self,
        elapsed: Elapsed,
        watched: impl Iterator<Item = &'w WatchedProcess>,
        rows: &mut Rows,
    ) {
        rows.clear();
        for process in watched {
            self.look_at(process);
        }
        for namespace in &mut self.namespaces {
            let Some(text) = namespace.file.read(&mut self.buffer) else { continue };
            let now = parse_net_dev(&text);
            for network in &now {
                let link = namespace.link(&self.root, &network.name);
                let was = namespace.before.iter().find(|was| was.name == network.name);
                let key = format!("{}{}", namespace.prefix, network.name);
                rows.push(&key, &values(was, network, link, elapsed));
            }
            namespace.before = now;
        }
    }

    /// A server may have a network namespace of its own (a container).
    fn look_at(&mut self, process: &WatchedProcess) {
        let Some(&pid) = process.pids.first() else { return };
        if self.looked_at.contains(&process.name) {
            return;
        }
        self.looked_at.push(process.name.clone());
        let namespace = |of: &str| self.root.link_name(format!("proc/{of}/ns/net"));
        let (own, theirs) = (namespace("self"), namespace(&pid.to_string()));
        if own.is_some() && theirs.is_some() && own != theirs {
            let file = ProcFile::open(&self.root, format!("proc/{pid}/net/dev"));
            let prefix = format!("{}:", process.name);
            self.namespaces.push(Namespace::new(prefix, Some(pid), file));
        }
    }
}

fn values(
    was: Option<&NetworkCounters>,
    is: &NetworkCounters,
    link: Link,
    elapsed: Elapsed,
) -> [Option<f64>; 12] {
    let rate = |of: fn(&NetworkCounters) -> u64| elapsed.rate(was.map(of), Some(of(is)));
    let (received, sent) = (rate(|n| n.received_bytes), rate(|n| n.sent_bytes));
    let (packets_in, packets_out) = (rate(|n| n.received_packets), rate(|n| n.sent_packets));
    [
        received,
        sent,
        share(received, link.receive),
        share(sent, link.send),
        packets_in,
        packets_out,
        share(received, packets_in),
        share(sent, packets_out),
        rate(|n| n.receive_drops),
        rate(|n| n.send_drops),
        rate(|n| n.receive_errors),
        rate(|n| n.send_errors),
    ]
}
