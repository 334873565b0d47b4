//! Whole disks, and network interfaces: of this host, and of the network namespaces of watched
//! servers, with the rates that they are shaped to (tc-tbf(8)).

use std::process::{Command, Stdio};

use super::table::{Column, Rows, Table, Unit};
use super::{Elapsed, HostFigures, growth, share};
use crate::inventory::whole_disks;
use crate::parse::{DeviceCounters, DiskCounters, NetworkCounters, parse_diskstats, parse_net_dev};
use crate::process::WatchedProcess;
use crate::root::{ProcFile, Root};

/// `/proc/diskstats` counts these, whatever the disk's own sectors.
const SECTOR_BYTES: f64 = 512.0;
const MILLIS_PER_SECOND: f64 = 1_000.0;

pub(super) static DISKS: Table = Table::keyed("disk").without_idle().columns(&[
    Column::drawn("read", Unit::BytesPerSecond),
    Column::drawn("written", Unit::BytesPerSecond),
    Column::drawn("reads", Unit::PerSecond),
    Column::drawn("writes", Unit::PerSecond),
    Column::summed("per_read", Unit::Seconds),
    Column::summed("per_write", Unit::Seconds),
    Column::written("in_flight", Unit::Count),
    Column::summed("queue_mean", Unit::Count),
    Column::drawn("busy", Unit::Ratio),
]);

#[derive(Debug)]
pub(super) struct DiskSource {
    file: ProcFile,
    /// Names of whole disks with a size; without `/sys`, absent, and every line counts.
    whole: Option<Vec<String>>,
    before: Vec<DiskCounters>,
    buffer: Vec<u8>,
}

impl DiskSource {
    pub(super) fn open(root: &Root) -> Self {
        let whole = Some(whole_disks(root)).filter(|names| !names.is_empty());
        let file = ProcFile::open(root, "proc/diskstats");
        Self { file, whole, before: Vec::new(), buffer: Vec::new() }
    }

    pub(super) fn sample(
        &mut self,
        elapsed: Elapsed,
        reported: Option<&HostFigures>,
        rows: &mut Rows,
    ) {
        rows.clear();
        let read = || Some(parse_diskstats(&self.file.read(&mut self.buffer)?));
        let Some(mut now) = reported.map(|it| it.disks.clone()).or_else(read) else { return };
        if let Some(whole) = &self.whole {
            now.retain(|disk| whole.contains(&disk.name));
        }
        for disk in &now {
            let was = self.before.iter().find(|was| was.name == disk.name);
            rows.push(&disk.name, &disk_values(was, disk, elapsed));
        }
        self.before = now;
    }
}

fn disk_values(
    was: Option<&DiskCounters>,
    is: &DiskCounters,
    elapsed: Elapsed,
) -> [Option<f64>; 9] {
    let rates = is.rates(was, elapsed);
    let [reads, sectors_read, _, writes, sectors_written, .., busy_ms, queue_ms] = rates;
    let grown = |index: usize| growth(was?.counters[index], is.counters[index]);
    let seconds = |ms: Option<f64>| ms.map(|ms| ms / MILLIS_PER_SECOND);
    [
        sectors_read.map(|sectors| sectors * SECTOR_BYTES),
        sectors_written.map(|sectors| sectors * SECTOR_BYTES),
        reads,
        writes,
        share(seconds(grown(2)), grown(0)),
        share(seconds(grown(5)), grown(3)),
        is.counters[6].map(|transfers| transfers as f64),
        seconds(queue_ms),
        // The kernel rounds up; a full disk reads as 1.001 now and then.
        seconds(busy_ms).map(|busy| busy.min(1.0)),
    ]
}

const BITS_PER_BYTE: f64 = 8.0;
const BITS_PER_MEGABIT: f64 = 1e6;

pub(super) static NETWORKS: Table = Table::keyed("network").without_idle().columns(&[
    Column::drawn("received", Unit::BytesPerSecond),
    Column::drawn("sent", Unit::BytesPerSecond),
    // Share of the link's capacity one way, or of the shaped rate; absent where unknown.
    Column::summed("received_share", Unit::Ratio),
    Column::summed("sent_share", Unit::Ratio),
    Column::drawn("received_packets", Unit::PerSecond),
    Column::drawn("sent_packets", Unit::PerSecond),
    Column::summed("received_per_packet", Unit::Bytes),
    Column::summed("sent_per_packet", Unit::Bytes),
    Column::summed("receive_drops", Unit::PerSecond),
    Column::summed("send_drops", Unit::PerSecond),
    Column::written("receive_errors", Unit::PerSecond),
    Column::written("send_errors", Unit::PerSecond),
    // Packets for which the adapter had no free buffer in its ring.
    Column::summed("receive_overruns", Unit::PerSecond),
]);

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
    /// Capacities of links, as far as they were looked up.
    links: Vec<(String, Link)>,
}

impl Namespace {
    fn new(prefix: String, pid: Option<u32>, file: ProcFile) -> Self {
        Self { prefix, pid, file, before: Vec::new(), links: Vec::new() }
    }

    /// `/sys` shows the interfaces of this host's namespace only.
    /// `reported_mbit` is its speed where the host has no `/sys`.
    fn link(&mut self, root: &Root, name: &str, reported_mbit: Option<u64>) -> Link {
        if let Some((_, link)) = self.links.iter().find(|(interface, _)| interface == name) {
            return *link;
        }
        let read = || root.number(format!("sys/class/net/{name}/speed"));
        let megabits = self.pid.is_none().then(|| reported_mbit.or_else(read));
        let speed =
            megabits.flatten().map(|megabits| megabits as f64 * BITS_PER_MEGABIT / BITS_PER_BYTE);
        let shaped = shaped_bytes_per_s(root, self.pid, name);
        let send = [speed, shaped].into_iter().flatten().reduce(f64::min);
        let link = Link { receive: speed, send };
        self.links.push((name.to_owned(), link));
        link
    }
}

/// Capacity of a link each way in bytes per second; absent where unknown.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    receive: Option<f64>,
    /// The rate it is shaped to, where that is less.
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
        reported: Option<&HostFigures>,
        watched: impl Iterator<Item = &'w WatchedProcess>,
        rows: &mut Rows,
    ) {
        rows.clear();
        for process in watched {
            self.look_at(process);
        }
        for namespace in &mut self.namespaces {
            let read = || Some(parse_net_dev(&namespace.file.read(&mut self.buffer)?));
            let now = reported.map(|it| it.networks.clone()).or_else(read);
            let Some(now) = now else { continue };
            for network in &now {
                let speed = reported.and_then(|it| it.speeds_mbit.get(&network.name).copied());
                let link = namespace.link(&self.root, &network.name, speed);
                let was = namespace.before.iter().find(|was| was.name == network.name);
                let key = format!("{}{}", namespace.prefix, network.name);
                rows.push(&key, &network_values(was, network, link, elapsed));
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

fn network_values(
    was: Option<&NetworkCounters>,
    is: &NetworkCounters,
    link: Link,
    elapsed: Elapsed,
) -> [Option<f64>; 13] {
    let [received, packets_in, errors_in, drops_in, sent, packets_out, ..] = is.rates(was, elapsed);
    let [.., errors_out, drops_out, overruns] = is.rates(was, elapsed);
    [
        received,
        sent,
        share(received, link.receive),
        share(sent, link.send),
        packets_in,
        packets_out,
        share(received, packets_in),
        share(sent, packets_out),
        drops_in,
        drops_out,
        errors_in,
        errors_out,
        overruns,
    ]
}

impl<const N: usize> DeviceCounters<N> {
    fn rates(&self, was: Option<&Self>, elapsed: Elapsed) -> [Option<f64>; N] {
        let was = was.map_or([None; N], |was| was.counters);
        std::array::from_fn(|index| elapsed.rate(was[index], self.counters[index]))
    }
}

/// Output of `tc` on another host: the token buckets of all its interfaces.
const SHAPING_FILE: &str = "plimsoll/shaping";

/// Bytes per second that an interface may send. The kernel reports them over netlink only, so the
/// system's `tc` reads them, once for an interface; `pid` is a process in its network namespace if
/// that is not ours. `None` where it is not shaped or that is unknown.
fn shaped_bytes_per_s(root: &Root, pid: Option<u32>, interface: &str) -> Option<f64> {
    if let Some(frame) = root.frame() {
        let text = frame.text(SHAPING_FILE).filter(|_| pid.is_none())?;
        let dev = format!(" dev {interface} ");
        return text.lines().find(|line| line.contains(&dev)).and_then(parse_tbf);
    }
    if !root.is_this_host() {
        return None;
    }
    let mut command = match pid {
        Some(pid) => {
            let mut command = Command::new("nsenter");
            command.args(["--net", "--target", &pid.to_string(), "tc"]);
            command
        }
        None => Command::new("tc"),
    };
    command.args(["qdisc", "show", "dev", interface]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    parse_tbf(&String::from_utf8_lossy(&output.stdout))
}

/// The rate of a token bucket at the root, as `tc` writes it: `rate 20Mbit`.
fn parse_tbf(text: &str) -> Option<f64> {
    let line =
        text.lines().find(|line| line.starts_with("qdisc tbf") && line.contains(" root "))?;
    let mut tokens = line.split_whitespace().skip_while(|word| *word != "rate");
    let rate = tokens.nth(1)?.strip_suffix("bit")?;
    let (number, factor) = match rate.strip_suffix(['K', 'M', 'G']) {
        Some(number) if rate.ends_with('K') => (number, 1e3),
        Some(number) if rate.ends_with('M') => (number, 1e6),
        Some(number) => (number, 1e9),
        None => (rate, 1.0),
    };
    let bits: f64 = number.parse().ok()?;
    Some(bits * factor / BITS_PER_BYTE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Frame;

    #[test]
    fn the_rate_of_a_token_bucket_is_in_bytes() {
        let line =
            |rate| format!("qdisc tbf 8001: root refcnt 2 rate {rate} burst 4Kb lat 400ms\n");
        assert_eq!(parse_tbf(&line("20Mbit")), Some(2_500_000.0));
        assert_eq!(parse_tbf(&line("800bit")), Some(100.0));
        assert_eq!(parse_tbf(&line("1Gbit")), Some(125_000_000.0));
        assert_eq!(parse_tbf("qdisc noqueue 0: root refcnt 2\n"), None);
        assert_eq!(parse_tbf(&line("fast")), None);
    }

    #[test]
    fn another_hosts_interfaces_are_told_apart() {
        let text = "qdisc tbf 8001: dev eth0 root refcnt 2 rate 20Mbit burst 4Kb lat 400ms\n\
                    qdisc tbf 8002: dev eth01 root refcnt 2 rate 8Mbit burst 4Kb lat 400ms\n";
        let frame = Frame::default();
        frame.replace([(SHAPING_FILE.to_owned(), text.to_owned())].into());
        let root = Root::of_frame(frame);
        let rate = |interface| shaped_bytes_per_s(&root, None, interface);
        assert_eq!(rate("eth0"), Some(2_500_000.0));
        assert_eq!(rate("eth01"), Some(1_000_000.0));
        assert_eq!(rate("eth1"), None);
    }
}
